"""Tests `gradcli.save` and `gradcli.load`."""

from __future__ import annotations

import io
import os
import pickle
import zipfile

import pytest

import gradcli
from gradcli import nn


class Marked:
    """An object that runs code when it is loaded."""

    def __reduce__(self):
        return os.mkdir, ("made-by-a-file",)


def test_a_checkpoint_is_gone_on_from(tmp_path):
    gradcli.manual_seed(0)

    def made():
        model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
        return model, gradcli.optim.Adam(model.parameters(), lr=0.1)

    def step(model, optimizer):
        optimizer.zero_grad()
        model(x).pow(2).sum().backward()
        optimizer.step()

    x = gradcli.randn(5, 2)
    model, optimizer = made()
    step(model, optimizer)
    gradcli.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, tmp_path / "a.pt")
    checkpoint = gradcli.load(tmp_path / "a.pt", map_location="cpu")
    other, again = made()
    other.load_state_dict(checkpoint["model"])
    again.load_state_dict(checkpoint["optimizer"])
    assert checkpoint["epoch"] == 3
    step(model, optimizer)
    step(other, again)
    assert other(x).tolist() == model(x).tolist()


def test_tensors_stay_what_they_are():
    file = io.BytesIO()
    x = gradcli.tensor([1.0, 2.0], dtype="float32", requires_grad=True)
    gradcli.save([x, nn.Parameter([1.5]), gradcli.tensor(3), gradcli.tensor(0.5), x.shape, x.size(), x.dtype], file)
    file.seek(0)
    y, parameter, whole, number, *outline = gradcli.load(file)
    assert outline == [(2,), (2,), "float32"]
    assert isinstance(outline[1], gradcli.Size)
    assert (y.tolist(), y.dtype, y.requires_grad) == ([1.0, 2.0], "float32", True)
    assert isinstance(parameter, nn.Parameter)
    assert (whole.item(), number.item()) == (3, 0.5)


def test_a_module_is_loaded_where_that_is_wanted(tmp_path):
    model = nn.Linear(2, 1)
    gradcli.save(model, tmp_path / "model")
    with pytest.raises(
        RuntimeError, match=r"Weights only load failed: the file has a gradcli\.nn\.linear_layers\.Linear"
    ):
        gradcli.load(tmp_path / "model")
    x = gradcli.tensor([1.0, 2.0])
    assert gradcli.load(tmp_path / "model", weights_only=False)(x).tolist() == model(x).tolist()


def test_a_file_of_weights_runs_no_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad").write_bytes(pickle.dumps({"weight": Marked()}))
    with pytest.raises(RuntimeError, match=r"the file has a posix\.mkdir"):
        gradcli.load(tmp_path / "bad")
    assert not (tmp_path / "made-by-a-file").exists()


def test_what_is_no_such_file_says_so(tmp_path):
    (tmp_path / "text").write_text("no pickle")
    with pytest.raises(RuntimeError, match="this file cannot be loaded"):
        gradcli.load(tmp_path / "text")
    with zipfile.ZipFile(tmp_path / "archive", "w") as archive:
        archive.writestr("data.pkl", b"")
    with pytest.raises(RuntimeError, match="this file is PyTorch's"):
        gradcli.load(tmp_path / "archive")

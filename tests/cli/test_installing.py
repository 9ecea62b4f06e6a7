"""Tests that the installation command in a hint works as typed in the user's environment."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from email.message import Message
from importlib import metadata
from pathlib import Path

import pytest

from gradcli import install_command

ROOT = str(Path(__file__).parents[2])


@pytest.fixture(autouse=True)
def pip_that_is_found(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _name: os.path.join(os.path.dirname(sys.executable), "pip"))


def test_in_a_checkout_and_elsewhere(monkeypatch, tmp_path):
    monkeypatch.setattr(install_command, "_checkout", lambda: ROOT)
    monkeypatch.chdir(ROOT)
    assert install_command.install_command("sympy") == "pip install '.[sympy]'"
    assert install_command.install_command() == "pip install ."
    monkeypatch.chdir(tmp_path)
    assert install_command.install_command("sympy") == f"pip install '{ROOT}[sympy]'"


def test_the_pip_of_another_python_is_not_named(monkeypatch, tmp_path):
    monkeypatch.setattr(install_command, "_checkout", lambda: str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv/bin/python"))
    monkeypatch.setattr(shutil, "which", lambda _name: "/usr/bin/pip")
    monkeypatch.chdir(tmp_path)
    assert install_command.install_command("jax") == ".venv/bin/python -m pip install '.[jax]'"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert install_command.install_command("jax") == f"{tmp_path}/.venv/bin/python -m pip install '{tmp_path}[jax]'"


@pytest.mark.parametrize(
    ("noted", "expected"),
    [
        ("pipx_metadata.json", "pipx install --force 'gradcli[jax]'"),
        ("uv-receipt.toml", "uv tool install --force 'gradcli[jax]'"),
        ("pyvenv.cfg", "uv pip install --python bin/python 'gradcli[jax]'"),
    ],
)
def test_by_what_installed_it(monkeypatch, tmp_path, noted, expected):
    (tmp_path / noted).write_text("home = /usr\nuv = 0.9.1\n")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin/python"))
    monkeypatch.setattr(install_command, "_has_pip", lambda: False)
    monkeypatch.setattr(install_command, "_requirements", lambda extra, _others: [f"gradcli[{extra}]"])
    monkeypatch.setattr(install_command, "_packages", lambda extra: ["one"])
    monkeypatch.chdir(tmp_path)
    assert install_command.install_command("jax") == expected
    monkeypatch.setattr(install_command, "_requirements", lambda extra, _others: ["one"])
    assert install_command.install_command("jax") == (
        "pipx inject gradcli one" if "pipx" in noted else "uv pip install --python bin/python one"
    )


def test_a_tool_keeps_the_extras_that_are_there(monkeypatch, tmp_path):
    (tmp_path / "pipx_metadata.json").write_text("{}")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(install_command, "_checkout", lambda: None)
    monkeypatch.setattr(install_command, "_origin", lambda: None)
    extras = Message()
    for name in ("here", "gone", "all", "jax"):
        extras["Provides-Extra"] = name
    monkeypatch.setattr(metadata, "metadata", lambda _name: extras)
    needed = ["pytest>=8; extra == 'here'", "no-such-package; extra == 'gone'", "gradcli[here]; extra == 'all'"]
    monkeypatch.setattr(metadata, "requires", lambda _name: needed)
    assert install_command.install_command("jax") == "pipx install --force 'gradcli[here,jax]'"
    assert install_command.install_command() == "pipx install --force gradcli"


class Noted:
    def __init__(self, origin):
        self.origin = origin

    def read_text(self, name):
        assert name == "direct_url.json"
        return None if self.origin is None else json.dumps(self.origin)


ORIGINS = [
    (None, "pip install 'gradcli[jax]'"),
    ({"url": "file://{0}", "dir_info": {}}, "pip install '{0}[jax]'"),
    ({"url": "file://{0}", "dir_info": {"editable": True}}, "pip install -e '{0}[jax]'"),
    ({"url": "file://{0}/a.whl", "archive_info": {}}, "pip install 'gradcli[jax] @ file://{0}/a.whl'"),
    ({"url": "https://host/a.whl", "archive_info": {}}, "pip install 'gradcli[jax] @ https://host/a.whl'"),
    (
        {"url": "https://host/g.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
        "pip install 'gradcli[jax] @ git+https://host/g.git@abc'",
    ),
    ({"url": "file://{0}/gone.whl", "archive_info": {}}, "pip install 'jax>=0.6' one"),
]


@pytest.mark.parametrize(("origin", "expected"), ORIGINS)
def test_by_what_the_installer_noted(monkeypatch, tmp_path, origin, expected):
    (tmp_path / "a.whl").write_text("")
    if origin is not None:
        origin = origin | {"url": origin["url"].format(tmp_path)}
    monkeypatch.setattr(install_command, "_checkout", lambda: None)
    monkeypatch.setattr(metadata, "distribution", lambda _name: Noted(origin))
    needed = ["numpy", "jax>=0.6; extra == 'jax'", 'one ; extra == "jax"', "two; extra == 'torch'"]
    monkeypatch.setattr(metadata, "requires", lambda _name: needed)
    assert install_command.install_command("jax") == expected.format(tmp_path)


def test_an_extra_of_the_checkout_is_known_to_pip():
    words = shlex.split(install_command.install_command("sympy"))
    assert words[:2] == ["pip", "install"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--no-index", "--no-build-isolation", *words[2:]],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "does not provide the extra" not in done.stderr
    assert "No such file" not in done.stderr
    assert "not a valid" not in done.stderr.lower()

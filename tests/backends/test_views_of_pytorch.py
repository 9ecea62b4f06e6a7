"""Views and edits of them, drawn at random, do in gradcli what they do in PyTorch: numbers, versions, gradients, errors."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.errors import ShapeError

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

START = [[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]]
WEIGHTS = [0.5, 2.0, -1.0]


class Both:
    """A tensor of gradcli and the one of PyTorch that it should be like."""

    def __init__(self, ours: Any, theirs: Any) -> None:
        self.ours, self.theirs = ours, theirs
        # PyTorch does not notice at once that a view of a constant is in the graph, where its base is by now.
        self.late = theirs._is_view() and not theirs._base.requires_grad

    def check(self) -> None:
        np.testing.assert_allclose(
            self.ours.detach().numpy(), self.theirs.detach().numpy(), rtol=1e-12, atol=1e-12, strict=True
        )
        assert self.ours.version == self.theirs._version


def _keys(rank: int) -> list[Any]:
    if rank == 0:
        return [..., None]
    keys: list[Any] = [0, -1, slice(1, None), slice(None, None, 2), ..., None]
    return keys if rank == 1 else [*keys, (slice(None), 1), (..., slice(0, 2)), (0, None)]


def _view(draw: random.Random, x: Any) -> tuple[str, Callable[[Any], Any]] | None:
    """A view of a tensor, as what is called in both libraries."""
    rank, size = x.ndim, x.numel()
    if not size:
        return None
    key = draw.choice(_keys(rank))
    kinds: dict[str, Callable[[Any], Any]] = {
        f"[{key}]": lambda t: t[key],
        ".reshape(-1)": lambda t: t.reshape(-1),
        ".unsqueeze(0)": lambda t: t.unsqueeze(0),
        ".squeeze()": lambda t: t.squeeze(),
        ".detach()": lambda t: t.detach(),
        ".data": lambda t: t.data,
        ".clone()": lambda t: t.clone(),
        ".expand": lambda t: t.expand(2, *t.shape),
    }
    if rank > 1:
        order = draw.sample(range(rank), rank)
        kinds[f".permute({order})"] = lambda t: t.permute(*order)
        kinds[".transpose(0, 1)"] = lambda t: t.transpose(0, 1)
        kinds[".diagonal()"] = lambda t: t.diagonal()
        kinds[".mT"] = lambda t: t.mT
    if rank:
        place = draw.randrange(x.shape[0])
        kinds[f".unbind()[{place}]"] = lambda t: t.unbind()[place]
        kinds[".chunk(2)[0]"] = lambda t: t.chunk(2)[0]
    if size % 2 == 0:
        kinds[".reshape(2, -1)"] = lambda t: t.reshape(2, -1)
    name = draw.choice([*kinds, f"[{key}]", f"[{key}]"])
    return name, kinds[name]


def _edit(draw: random.Random, rank: int) -> tuple[str, Callable[[Any, Any, Any], Any]]:
    key = draw.choice(_keys(rank))
    edits: dict[str, Callable[[Any, Any, Any], Any]] = {
        ".mul_(2)": lambda _m, t, _w: t.mul_(2),
        ".add_(w[0])": lambda _m, t, w: t.add_(w[0]),
        ".mul_(w.sum())": lambda _m, t, w: t.mul_(w.sum()),
        ".zero_()": lambda _m, t, _w: t.zero_(),
        ".sin_()": lambda _m, t, _w: t.sin_(),
        ".exp_()": lambda _m, t, _w: t.clamp_(-1, 1).exp_(),
        ".copy_(w[1])": lambda _m, t, w: t.copy_(w[1] * 3),
        "+= 1": lambda _m, t, _w: t.__iadd__(1),
        f"[{key}] = 2": lambda _m, t, _w: t.__setitem__(key, 2.0),
        f"[{key}] = w": lambda _m, t, w: t.__setitem__(key, w[2]),
        ".ge_(0)": lambda m, t, _w: t.ge_(0) if m is torch else t.greater_equal_(0),
        "square": lambda _m, t, _w: t * t,
        "exp": lambda _m, t, _w: (t * 0.1).exp(),
    }
    name = draw.choice([*edits])
    return name, edits[name]


def _message(error: Exception) -> str:
    text = str(error).splitlines()[0]
    if isinstance(error, (IndexError, ShapeError)):
        return "a key that there is not"
    for known in (
        "a view of a leaf Variable that requires grad",
        "a leaf Variable that requires grad",
        "unsupported operation: more than one element",
        "is a view and is being modified inplace. This view is the output of a function that returns multiple views",
        "is a view and its base or another view of its base has been modified inplace. This view is the output of",
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given",
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. This view",
        "A view was created in no_grad mode and its base or another view of its base has been modified inplace",
    ):
        if known in text:
            return known
    if "modified by an inplace operation" in text:
        return text[text.index("is at version") :].split(" instead")[0]
    return text


@contextlib.contextmanager
def _without_grad(asked: bool) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        if asked:
            stack.enter_context(gradcli.no_grad())
            stack.enter_context(torch.no_grad())
        yield


def _unnamed(error):
    """A message without the name of the node of a view, as a transposition is a permutation here."""
    return error and re.sub(r"^Output 0 of \w+", "Output 0 of a node", error)


def _attempt(action: Callable[[], Any]) -> tuple[Any, str | None]:
    try:
        return action(), None
    except (RuntimeError, IndexError, gradcli.GradcliError) as error:
        return None, _message(error)


def _both(what: Callable[[Any, Any], Any], ours: Any, theirs: Any) -> tuple[Any, Any, str | None]:
    """What is done in both libraries, and the error that both raise."""
    mine, error = _attempt(lambda: what(gradcli, ours))
    other, expected = _attempt(lambda: what(torch, theirs))
    assert _unnamed(error) == _unnamed(expected), (error, expected)
    return mine, other, error


def run(seed: int, steps: int) -> list[str]:
    """Draw and compare a program; its text."""
    draw = random.Random(seed)
    wanted, with_data = draw.random() < 0.8, draw.random() < 0.3
    x = Both(
        gradcli.tensor(START, requires_grad=wanted), torch.tensor(START, dtype=torch.float64, requires_grad=wanted)
    )
    w = Both(
        gradcli.tensor(WEIGHTS, requires_grad=True), torch.tensor(WEIGHTS, dtype=torch.float64, requires_grad=True)
    )
    pool = [x, Both(x.ours * 1, x.theirs * 1)]
    text = ["x", "a = x*1"]
    for _ in range(steps):
        source = draw.choice(pool)
        if source.late and source.theirs._base.requires_grad:
            continue
        silent = draw.random() < 0.25
        if draw.random() < 0.5:
            drawn = _view(draw, source.theirs)
            if drawn is None:
                continue
            name, view = drawn
            if name == ".data" and not with_data:
                continue
            text.append(f"t{len(pool)} = t{pool.index(source)}{name}" + " without grad" * silent)
            with _without_grad(silent):
                ours, theirs, error = _both(lambda _m, t, view=view: view(t), source.ours, source.theirs)
            if silent and theirs is not None and theirs.requires_grad and not ours.requires_grad:
                # As documented: what is made without grad requires none, and cannot be compared further.
                break
        else:
            name, edit = _edit(draw, source.theirs.ndim)
            if "exp" in name and with_data:
                # An edit of .data is not noticed there, and the derivative of exp that of another number.
                continue
            text.append(f"t{pool.index(source)} {name}" + " without grad" * silent)
            with _without_grad(silent):
                mine, error = _attempt(lambda edit=edit, t=source.ours: edit(gradcli, t, w.ours))
                other, expected = _attempt(lambda edit=edit, t=source.theirs: edit(torch, t, w.theirs))
            assert _unnamed(error) == _unnamed(expected), (error, expected, text)
            ours, theirs = (mine, other) if mine is not None and mine is not source.ours else (None, None)
        if error is not None:
            break
        if ours is not None:
            pool.append(Both(ours, theirs))
        for both in pool:
            both.check()
    _compare_gradients(pool, x, w)
    return text


def _compare_gradients(pool: list[Both], x: Both, w: Both) -> None:
    def total(module: Any, tensors: Any) -> Any:
        return sum(((t * (i + 1)).sum() for i, t in enumerate(tensors)), start=0.0)

    ours, theirs, error = _both(total, [b.ours for b in pool], [b.theirs for b in pool])
    if error is not None or not theirs.requires_grad:
        assert error is not None or not ours.requires_grad
        return
    _, refused = _attempt(theirs.backward)
    if refused == "unsupported operation: more than one element":
        # PyTorch cannot go back through an expanded tensor that was filled.
        return
    _, error = _attempt(ours.backward)
    assert error == refused
    for both in (x, w) if error is None and x.theirs.is_leaf else ():
        mine, other = both.ours.grad, both.theirs.grad
        zero = np.zeros(both.ours.shape)
        np.testing.assert_allclose(
            zero if mine is None else mine.numpy(), zero if other is None else other.numpy(), rtol=1e-9, atol=1e-12
        )


@pytest.mark.cases(80)
@pytest.mark.parametrize("seed", range(200))
def test_programs_of_views_and_edits(seed: int) -> None:
    run(seed, 8)

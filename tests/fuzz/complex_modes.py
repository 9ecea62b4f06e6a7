"""Runs random programs of complex numbers in every way that they can be run, and compares with mpmath and PyTorch.

`python -m tests.fuzz.complex_modes --count 1000` compares values and derivatives of so many programs; `--first I
--count 1` runs program I again, and `--no-torch` leaves PyTorch out. Findings are printed, and the exit status is 1 where
there are any. A program for which the value or a derivative does not exist, or is larger than 1e12, counts as no program.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

import gradcli
from gradcli import Tensor, func, tensor
from gradcli.autograd import forward_ad
from gradcli.errors import GradcliError
from gradcli.language.interpreter import loop_policy
from gradcli.language.interpreter.run import evaluate
from gradcli.language.syntax import parse
from tests.fuzz import commands
from tests.fuzz.complex_meaning import Reference, of_pytorch, reference, second_derivative
from tests.fuzz.complex_programs import SPECIAL, ComplexProgram, complex_program

# The largest difference from mpmath, relative to the largest element; and how many times the error of mpmath itself at 53
# bits, which tells what the program loses.
_CLOSE, _SINGLE, _LOST = 1e-8, 2e-4, 1e5
# Single precision has so many times the rounding error of double precision.
_COARSER = 2.0**29
# The weights of both parts in the readout, L = real(weight*value).
_WEIGHT = 0.8 - 0.6j


class Difference(NamedTuple):
    """What one way gives, and what it should."""

    way: str
    detail: str


class Trial:
    """A program at a point, and what it is there by mpmath."""

    def __init__(self, program: ComplexProgram, inputs: Mapping[str, Any], expected: Reference) -> None:
        self.program = program
        self.inputs = dict(inputs)
        self.expected = expected
        self.text = program.text()
        self.readout = program.text(readout=True)
        self.value = expected.value
        axes = tuple(range(np.ndim(self.value)))
        total = np.sum(self.value)
        self.loss = (_WEIGHT * total).real
        # dL/da + i*dL/db by complex inputs, dL/dx by real ones.
        self.gradients = {}
        for name, slopes in expected.slopes.items():
            parts = [(_WEIGHT * np.sum(part, axis=axes)).real for part in slopes]
            self.gradients[name] = parts[0] + 1j * parts[1] if np.iscomplexobj(self.inputs[name]) else parts[0]

    @property
    def complex_names(self) -> list[str]:
        return [name for name, value in self.inputs.items() if np.iscomplexobj(value)]

    @property
    def holomorphic(self) -> bool:
        return all(self.expected.slopes[name].holomorphic for name in self.complex_names)

    @property
    def scalars(self) -> bool:
        """Whether the value and all inputs are numbers."""
        return not any(map(np.ndim, (self.value, *self.inputs.values())))

    def words(self) -> list[str]:
        return [f"{name}={_text(value)}" for name, value in self.inputs.items()]

    def leaves(self) -> dict[str, Tensor]:
        return {name: tensor(value, requires_grad=True) for name, value in self.inputs.items()}

    def differs(self, way: str, key: str, found: Any, wanted: Any, close: float = _CLOSE) -> Difference | None:
        """That a number or array is not what it should be."""
        if found is None:
            found = np.zeros(np.shape(wanted))
        if isinstance(found, dict):
            found = np.asarray(found["re"], float) + 1j * np.asarray(found["im"], float)
        found, wanted = np.asarray(found, complex), np.asarray(wanted)
        if found.shape != wanted.shape:
            return Difference(way, f"{key} has the shape {found.shape}, not {wanted.shape}")
        allowed = close + _LOST * self.expected.rounding * (_COARSER if close == _SINGLE else 1.0)
        size = max(np.abs(wanted).max(), 1e-3 * np.abs(self.value).max(), 1e-3 if close == _SINGLE else 1e-6)
        if np.isfinite(found).all() and np.abs(found - wanted).max() <= allowed * size:
            return None
        return Difference(way, f"{key} is {found}, not {wanted}")

    def proved(self, key: str, found: Any, wanted: Any) -> Difference | None:
        """That proved digits are not those of mpmath."""
        found, size = np.asarray(found), max(np.abs(wanted).max(), 1e-3 * np.abs(self.value).max())
        if found.shape == np.shape(wanted) and np.abs(found - wanted).max() <= 1e-12 * size + 1e-25:
            return None
        return Difference("--digits", f"{key} is {found}, not {wanted}")


Way = Callable[[Trial], Iterator[Difference | None]]


def _text(value: Any) -> str:
    if np.ndim(value):
        return f"[{', '.join(map(_text, value))}]"
    if np.iscomplexobj(value):
        return f"{value.real!r}{value.imag:+}j" if not isinstance(value, np.generic) else _text(complex(value))
    return repr(float(value))


# --- the command line


def _printed(trial: Trial, program: str, *options: str) -> dict[str, Any]:
    done = commands.run(["eval", program, *trial.words(), *options, "--json"])
    if done.status:
        raise _Failed(json.loads(done.err)["error"]["message"] if done.err else "digits are missing")
    found: dict[str, Any] = json.loads(done.out)
    return found


class _Failed(Exception):
    """A command ended with an error."""


def gradients_of_eval(trial: Trial) -> Iterator[Difference | None]:
    found = _printed(trial, trial.readout)
    yield trial.differs("eval", "the value", found["value"], trial.loss)
    for name, wanted in trial.gradients.items():
        yield trial.differs("eval", f"the gradient by {name}", found["grad"][name], wanted)


def _derivatives(trial: Trial, way: str, found: Mapping[str, Any]) -> Iterator[Difference | None]:
    for name, derivative in found.items():
        slopes = trial.expected.slopes[name]
        if np.iscomplexobj(trial.inputs[name]) and trial.program.kind != "r" and not slopes.holomorphic:
            yield Difference(way, f"a derivative by {name}, in which the program is not holomorphic")
        elif trial.program.kind != "r":
            yield trial.differs(way, f"the derivative by {name}", derivative, slopes.real)


def derivatives_of_eval(trial: Trial) -> Iterator[Difference | None]:
    if np.ndim(trial.value):
        found = _printed(trial, trial.text, "--jacobian")
        yield trial.differs("eval --jacobian", "the value", found["value"], trial.value)
        yield from _derivatives(trial, "eval --jacobian", found["jacobian"])
        return
    for way, options, key in (("eval of the value", (), "grad"), ("eval --jacobian", ("--jacobian",), "jacobian")):
        found = _printed(trial, trial.text, *options)
        yield trial.differs(way, "the value", found["value"], trial.value)
        yield from _derivatives(trial, way, found[key])


def wirtinger(trial: Trial) -> Iterator[Difference | None]:
    if np.ndim(trial.value) or not trial.complex_names:
        return
    found = _printed(trial, trial.text, "--wirtinger")["wirtinger"]
    for name in trial.complex_names:
        along = trial.expected.slopes[name]
        both = found[name] or {"by": None, "by_conjugate": None}
        size = np.abs(along.real).max() + np.abs(along.imaginary).max()
        for key, sign in (("by", -1j), ("by_conjugate", 1j)):
            wanted = (along.real + sign * along.imaginary) / 2
            # Of a holomorphic function one of them is 0, and has the rounding errors of the other.
            shifted = None if both[key] is None else _number(both[key]) + size
            yield trial.differs("--wirtinger", f"{key} {name}", shifted, wanted + (0 if shifted is None else size))


def _number(written: Any) -> Any:
    """Numbers in JSON, of texts where their digits are proved."""
    return (
        np.asarray(written["re"], float) + 1j * np.asarray(written["im"], float)
        if isinstance(written, dict)
        else np.asarray(written, float)
    )


def second_order(trial: Trial) -> Iterator[Difference | None]:
    if not trial.scalars or trial.program.kind == "r":
        return
    names = [n for n in trial.inputs if n not in trial.complex_names or trial.expected.slopes[n].holomorphic]
    if not names:
        return
    wrt = ("--wrt", ",".join(names))
    found = _printed(trial, trial.text, "--order", "2", *wrt)["derivatives"]
    for key, derivative in found.items():
        pair = key.split(",")
        if len(pair) == 2:
            wanted = second_derivative(trial.program, trial.inputs, (pair[0], pair[1]))
            yield trial.differs("--order 2", key, derivative, wanted, 1e-7)


def single_precision(trial: Trial) -> Iterator[Difference | None]:
    found = _printed(trial, trial.readout, "--dtype", "float32")
    # The numbers of a program that loses few digits alone are compared.
    yield trial.differs("float32", "the value", found["value"], trial.loss, _SINGLE)


def proved_digits(trial: Trial) -> Iterator[Difference | None]:
    """Digits of ball arithmetic, which leave nothing to rounding; an error where it cannot decide or has no function."""
    try:
        found = _printed(trial, trial.readout, "--digits", "18")
    except _Failed:
        return
    yield trial.proved("the value", float(found["value"]), trial.loss)
    for name, wanted in trial.gradients.items():
        given = found["grad"][name]
        if given is not None:
            yield trial.proved(f"the gradient by {name}", _number(given), wanted)


def differences_of_check(trial: Trial) -> Iterator[Difference | None]:
    """That `gradcli check` finds no mismatch, of the numbers that differences tell."""
    done = commands.run(["check", trial.readout, *trial.words(), "--json"])
    if '"problem":"mismatch"' in done.out:
        yield Difference("check", done.out)


def rows_of_map(trial: Trial) -> Iterator[Difference | None]:
    if not trial.scalars:
        return
    points = _points(trial, 4)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "points.csv")
        with path.open("w") as file:
            writer = csv.writer(file)
            writer.writerow(trial.inputs)
            writer.writerows([str(point.inputs[name]) for name in trial.inputs] for point in points)
        of_values = trial.program.kind == "c" and all(point.holomorphic for point in points)
        for is_readout in (True, False) if of_values else (True,):
            done = commands.run(["map", trial.program.text(is_readout), str(path)])
            if done.status or "rows failed" in done.err:
                raise _Failed(done.err)
            yield from _of_table(done.out, points, is_readout)


def _of_table(text: str, points: list[Trial], is_readout: bool) -> Iterator[Difference | None]:
    for row, point in zip(csv.DictReader(io.StringIO(text)), points, strict=True):
        yield point.differs("map", "the value", _cell(row, "value"), point.loss if is_readout else point.value)
        for name in point.inputs:
            wanted = point.gradients[name] if is_readout else point.expected.slopes[name].real
            yield point.differs("map", f"the derivative by {name}", _cell(row, f"d_{name}"), wanted)


def _cell(row: Mapping[str, str], name: str) -> complex:
    if name in row:
        return complex(float(row[name] or 0))
    return complex(float(row[f"{name}_re"] or 0), float(row[f"{name}_im"] or 0))


def _points(trial: Trial, count: int) -> list[Trial]:
    """The trial, and the same program at points nearby and elsewhere."""
    rng, found = Random(trial.text), [trial]
    for _ in range(10 * count):
        factor = rng.choice((0.9, 1.1, -1.0, 0.5 + 0.5j, 2.0))
        inputs = {
            name: value * (factor if np.iscomplexobj(value) else abs(factor)) for name, value in trial.inputs.items()
        }
        expected = reference(trial.program, inputs)
        if expected is not None:
            found.append(Trial(trial.program, inputs, expected))
        if len(found) == count:
            break
    return found


# --- Python


def compiled(trial: Trial) -> Iterator[Difference | None]:
    value, readout = gradcli.compile(trial.text), gradcli.compile(trial.readout)
    for point in [*_points(trial, 3), trial]:
        for time in ("first", "second"):
            way = f"the {time} call of a compiled program"
            yield point.differs(
                way, "the value", value(**point.inputs), point.value if trial.program.kind != "r" else point.value.real
            )
            loss, found = readout.value_and_grad(point.inputs)
            yield point.differs(way, "the readout", loss, point.loss)
            for name, wanted in point.gradients.items():
                yield point.differs(way, f"the gradient by {name}", found[name], wanted)


def compiled_by_rows(trial: Trial) -> Iterator[Difference | None]:
    points = _points(trial, 4)
    rows = {name: np.stack([np.asarray(point.inputs[name]) for point in points]) for name in trial.inputs}
    losses, found = gradcli.compile(trial.readout).value_and_grad(rows, rows=True)
    for i, point in enumerate(points):
        yield point.differs("rows of a compiled program", "the value", losses[i], point.loss)
        for name, wanted in point.gradients.items():
            # Where the value of some rows alone depends on an input, the others have nan.
            if found[name] is None or not np.isnan(found[name][i]).any() or np.abs(wanted).max() > 0:
                part = None if found[name] is None else found[name][i]
                yield point.differs("rows of a compiled program", f"the gradient by {name}", part, wanted)


def _function(trial: Trial, text: str) -> Callable[..., Any]:
    """The program as a function of tensors; its value is one too where it depends on none of them."""
    tree, inputs = parse(text), [*trial.inputs]

    def function(*given: Any) -> Any:
        value = evaluate(tree, dict(zip(inputs, given))).value
        return value if isinstance(value, Tensor) else tensor(value)

    return function


def forward_mode(trial: Trial) -> Iterator[Difference | None]:
    rng = Random(trial.text)
    along = {
        name: np.full(np.shape(value), complex(rng.gauss(0, 1), rng.gauss(0, 1)) if np.iscomplexobj(value) else 0.7)[()]
        for name, value in trial.inputs.items()
    }
    wanted = sum(_times(s, along[name]) for name, s in trial.expected.slopes.items())
    primals, tangents = ([tensor(v) for v in given.values()] for given in (trial.inputs, along))
    value, tangent = func.jvp(_function(trial, trial.text), tuple(primals), tuple(tangents))
    yield trial.differs("func.jvp", "the value", value, trial.value)
    yield trial.differs("func.jvp", "the tangent", tangent, wanted)
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(p, t) for p, t in zip(primals, tangents)]
        found = forward_ad.unpack_dual(_function(trial, trial.text)(*duals)).tangent
        yield trial.differs("forward_ad", "the tangent", found, wanted)


def _times(slopes: Any, direction: Any) -> Any:
    parts = slopes.real * np.real(direction) + slopes.imaginary * np.imag(direction)
    return parts.sum(axis=tuple(range(parts.ndim - np.ndim(direction), parts.ndim)))


def vmapped(trial: Trial) -> Iterator[Difference | None]:
    if trial.program.calls("if"):
        # A branch on a batch is an error.
        return
    points = _points(trial, 3)
    rows = [tensor(np.stack([np.asarray(point.inputs[name]) for point in points])) for name in trial.inputs]
    numbers = tuple(range(len(rows)))
    losses = func.vmap(_function(trial, trial.readout))(*rows)
    found = func.vmap(func.grad(_function(trial, trial.readout), numbers))(*rows)
    for i, point in enumerate(points):
        yield point.differs("vmap", "the value", np.asarray(losses)[i], point.loss)
        for part, (name, wanted) in zip(found, point.gradients.items()):
            yield point.differs("vmap", f"the gradient by {name}", np.asarray(part)[i], wanted)


# --- PyTorch


def beside_pytorch(trial: Trial) -> Iterator[Difference | None]:
    """Value, gradient, and the gradient of a readout of the gradient."""
    import torch

    if any(map(trial.program.calls, SPECIAL)):
        return
    library, leaves = of_pytorch(), trial.leaves()
    others = {n: torch.as_tensor(np.asarray(v)).requires_grad_() for n, v in trial.inputs.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torch.sum(trial.program.meaning(library, others))
        theirs = torch.real(_WEIGHT * theirs)
        if not theirs.requires_grad:
            return
        wanted = torch.autograd.grad(theirs, [*others.values()], create_graph=True, allow_unused=True)
    loss = evaluate(parse(trial.readout), leaves).value
    found = gradcli.grad(loss, [*leaves.values()], create_graph=True, allow_unused=True)
    yield trial.differs("beside PyTorch", "the value", loss.item(), theirs.item())
    for name, own, other in zip(leaves, found, wanted):
        other_value = (
            np.zeros(np.shape(trial.inputs[name]))
            if other is None
            else other.detach().resolve_conj().resolve_neg().numpy()
        )
        yield trial.differs(
            "beside PyTorch", f"the gradient by {name}", own.detach() if own is not None else None, other_value
        )
    sums = [_squares(own, gradcli.real, gradcli.imag, gradcli.sum) for own in found if own is not None]
    others_sums = [_squares(o, torch.real, torch.imag, torch.sum) for o in wanted if o is not None]
    if not all(getattr(total, "requires_grad", False) for total in (sum(sums), sum(others_sums))):
        return
    second = gradcli.grad(sum(sums), [*leaves.values()], allow_unused=True)
    second_wanted = torch.autograd.grad(sum(others_sums), [*others.values()], allow_unused=True)
    for name, own, other in zip(leaves, second, second_wanted):
        other_value = (
            np.zeros(np.shape(trial.inputs[name]))
            if other is None
            else other.detach().resolve_conj().resolve_neg().numpy()
        )
        if np.isfinite(other_value).all():
            yield trial.differs("second order beside PyTorch", f"by {name}", own, other_value, 1e-6)


def _squares(gradient: Any, real: Any, imag: Any, total: Any) -> Any:
    """A real number that depends on both parts of a gradient."""
    parts = (real(gradient), imag(gradient)) if gradient.is_complex() else (gradient,)
    return sum(total(weight * part + part**3 / 3) for weight, part in zip((0.7, 1.3), parts))


WAYS: dict[str, Way] = {
    way.__name__: way
    for way in (
        gradients_of_eval,
        derivatives_of_eval,
        wirtinger,
        second_order,
        single_precision,
        proved_digits,
        differences_of_check,
        rows_of_map,
        compiled,
        compiled_by_rows,
        forward_mode,
        vmapped,
        beside_pytorch,
    )
}
# Where mpmath knows that a program is holomorphic and its operations do not show it, there is an error, as there should.
_UNPROVED = "not known to be"


@contextmanager
def loops_as_a_whole() -> Iterator[None]:
    """Within it, a loop is run as a whole if it has more than a dozen rounds, however little they compute."""
    names = ("_WORTH_RECORDING", "_WORTH_TRACING", "_BEYOND_DIAGNOSIS")
    worth = {name: getattr(loop_policy, name) for name in names}
    try:
        for name in names:
            setattr(loop_policy, name, 0)
        yield
    finally:
        for name, least in worth.items():
            setattr(loop_policy, name, least)


def differences(trial: Trial, ways: Mapping[str, Way] = WAYS) -> Iterator[Difference]:
    """What is wrong with a program; a way that ends with an error is wrong, unless the program is not holomorphic."""
    for name, way in ways.items():
        try:
            with loops_as_a_whole():
                found = [*filter(None, way(trial))]
            yield from found
        except (GradcliError, _Failed) as error:
            if _UNPROVED not in str(error):
                yield Difference(name, f"an error: {error}")
            elif trial.holomorphic and trial.program.analytic:
                yield Difference(name, f"an error of a holomorphic program: {error}")
        except Exception as error:
            yield Difference(name, f"{type(error).__name__}: {error}")


def trial(seed: int, i: int) -> Trial | None:
    """Program `i` of a seed; None where it has no value that can be compared."""
    program = complex_program(seed, i, special=i % 3 == 0)
    expected = reference(program, program.inputs)
    return None if expected is None else Trial(program, program.inputs, expected)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.complex_modes", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="how many programs (default: 1000)")
    parser.add_argument("--first", type=int, default=0, metavar="I", help="the first program (default: 0)")
    parser.add_argument("--seed", type=int, default=0, help="which programs (default: 0)")
    parser.add_argument("--no-torch", action="store_true", help="leave PyTorch out")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    ways = {n: way for n, way in WAYS.items() if not (options.no_torch and way is beside_pytorch)}
    found: Counter[str] = Counter()
    compared = 0
    for i in range(options.first, options.first + options.count):
        current = trial(options.seed, i)
        if current is None:
            continue
        compared += 1
        for difference in differences(current, ways):
            found[difference.way] += 1
            print(
                f"\n--- program {i}: {difference.way}: {difference.detail}\n{current.text}\n{' '.join(current.words())}",
                flush=True,
            )
    print(f"{compared} programs compared, {sum(found.values())} differences {dict(found)}", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

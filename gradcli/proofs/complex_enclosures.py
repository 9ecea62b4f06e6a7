"""Encloses programs with complex numbers: the real and the imaginary part of a value are programs of real numbers.

A complex input is made of its parts, which are inputs themselves. By a complex input the derivative of a holomorphic
value u + i*v is that by its real part, and the gradient of a real value consists of those by both parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flint import fmpq

from gradcli import arrays
from gradcli.arrays.flint.balls import Balls, Undecided, UndecidedError, interval_evaluation, precise
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.complex_derivatives import names_of_parts
from gradcli.errors import DifferentiationError, GradcliError, Span, locating
from gradcli.evaluation.complex_results import ComplexValue
from gradcli.language.interpreter.run import evaluate
from gradcli.language.named_values import with_named_value
from gradcli.language.names.resolution import resolve
from gradcli.language.stable import stable_expressions
from gradcli.language.syntax import tree
from gradcli.language.syntax.tree import Module
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import concrete
from gradcli.primitives.entries.elementwise.complex_numbers import imag, real
from gradcli.proofs import enclosed
from gradcli.proofs.enclosed import Enclosure
from gradcli.proofs.interval_evaluation import IntervalProgram
from gradcli.proofs.interval_inputs import ComplexIntervals, Intervals, points

# The working precision in bits at which it is found out whether a value is complex.
_BITS = 128


class Rectangle(NamedTuple):
    """The complex numbers with parts in intervals; nested lists of these for tensors."""

    real: Any
    imag: Any


def enclose(program: Module, values: Mapping[str, Any], wrt: Sequence[str], **options: Any) -> Enclosure:
    """Enclose the value and all its derivatives; see `enclosed.enclose`, which has the options.

    Raises as it does, and DifferentiationError where there is no derivative by a complex input.
    """
    if not resolve(program).makes_complex and not any(map(_is_complex, values.values())):
        return enclosed.enclose(program, values, wrt, **options)
    return _ComplexProgram(program, values, wrt, options).enclose()


def _is_complex(value: Any) -> bool:
    return isinstance(value, ComplexIntervals) or (not isinstance(value, Intervals) and arrays.is_complex(value))


class _ComplexProgram:
    def __init__(
        self, program: Module, values: Mapping[str, Any], wrt: Sequence[str], options: Mapping[str, Any]
    ) -> None:
        self.program = program
        self.wrt = wrt
        self.options = options
        self.order: int = options.get("order", 1)
        # The complex inputs in whose place their real and imaginary parts are inputs.
        self.complex_names = [n for n, v in values.items() if _is_complex(v) and (n in wrt or _is_wide(v))]
        self.values: dict[str, Any] = {}
        for name, value in values.items():
            if name in self.complex_names:
                self.values |= dict(zip(names_of_parts(name), _parts(value)))
            else:
                self.values[name] = value

    def enclose(self) -> Enclosure:
        made = _with_inputs(self.program, self.complex_names)
        with _of_source(self.program, made):
            point = self._inside()
            if not self._has_complex_value(made, point):
                return self._of_real_value(made)
            self._check_holomorphic(point)
            return self._of_complex_value(made)

    def _inside(self) -> dict[str, Any]:
        """The values of the program at a point of the box."""
        found = {name: _point(value) for name, value in self.values.items()}
        namespace: Any = arrays.default_namespace()
        for name in self.complex_names:
            found[name] = namespace.complex(*(found.pop(part) for part in names_of_parts(name)))
        return found

    def _has_complex_value(self, made: Module, point: Mapping[str, Any]) -> bool:
        """Return whether the value is complex, over the box or at a point of it."""
        given = {n: v if isinstance(v, Intervals) else points(v) for n, v in self.values.items() if n not in point}
        given |= {n: v for n, v in self.values.items() if isinstance(v, Intervals)}
        fixed = {n: v for n, v in self.values.items() if n not in given}
        whole = tuple(part for interval in given.values() for part in interval.parts)
        boxed = IntervalProgram(made, fixed, {n: interval.shape for n, interval in given.items()}, whole)
        with precise(_BITS):
            try:
                with interval_evaluation(Undecided()):
                    return arrays.is_complex(boxed.value_over_box())
            except UndecidedError:
                return arrays.is_complex(concrete(evaluate(self.program, point).value))

    def _check_holomorphic(self, point: Mapping[str, Any]) -> None:
        """Raise DifferentiationError where the value is not proved to be holomorphic in complex inputs."""
        names = [name for name in self.complex_names if name in self.wrt]
        if not self.order or not names:
            return
        with precise(_BITS), enable_grad(), locating(self.program.source, self.program.body[-1].span):
            leaves = {name: Tensor(point[name]).requires_grad_() for name in names}
            value = evaluate(self.program, {**point, **leaves}).value
            try:
                ComplexValue(value, self.program, point, leaves).check_holomorphic()
            except DifferentiationError as error:
                error.hint = "enclose real(…), imag(…) or abs(…) of it"
                raise

    def _of_real_value(self, made: Module) -> Enclosure:
        chosen = [name for name in self.complex_names if name in self.wrt]
        by = [part for name in self.wrt for part in (names_of_parts(name) if name in chosen else (name,))]
        found = enclosed.enclose(made, self.values, by, **self.options)
        if found.grad is not None:
            grad = found.grad
            found.grad = {
                name: Rectangle(*(grad[part] for part in names_of_parts(name))) if name in chosen else grad[name]
                for name in self.wrt
            }
        found.monotonic = {name: word for name, word in found.monotonic.items() if name in self.wrt}
        if any(_is_wide(v) for n, v in self.values.items() if n not in self.wrt):
            # It would be that by one part of a complex input.
            found.curvature = None
        found.box = self._box(found.box)
        return found

    def _of_complex_value(self, made: Module) -> Enclosure:
        keys = {name: names_of_parts(name)[0] if name in self.complex_names else name for name in self.wrt}
        one, other = (
            enclosed.enclose(_part(made, part), self.values, [*keys.values()], **self.options)
            for part in ("real", "imag")
        )
        found = Enclosure(one.shape, one.digits)
        found.value, found.box = Rectangle(one.value, other.value), self._box(one.box)
        if one.grad is not None and other.grad is not None:
            found.grad = {name: Rectangle(one.grad[key], other.grad[key]) for name, key in keys.items()}
        if one.derivatives is not None and other.derivatives is not None:
            of_parts = {key: name for name, key in keys.items()}
            found.derivatives = {
                ",".join(of_parts[part] for part in key.split(",")): Rectangle(derivative, other.derivatives[key])
                for key, derivative in one.derivatives.items()
            }
        return found

    def _box(self, box: Mapping[str, Any]) -> dict[str, Any]:
        """The intervals of the inputs, with those of complex ones joined."""
        found = {}
        for name, interval in box.items():
            whole = next((n for n in self.complex_names if name in names_of_parts(n)), None)
            if whole is None:
                found[name] = interval
            else:
                found[whole] = Rectangle(*(box[part] for part in names_of_parts(whole)))
        return found


def _is_wide(value: Any) -> bool:
    return isinstance(value, (Intervals, ComplexIntervals))


def _parts(value: Any) -> tuple[Any, Any]:
    if isinstance(value, ComplexIntervals):
        return value.real, value.imag
    return concrete(real(value)), concrete(imag(value))


# A share of an interval at which there is nothing special, unlike at its centre.
_SHARE = fmpq(5, 13)


def _point(value: Any) -> Any:
    """A point inside intervals; other values are their own."""
    if not isinstance(value, Intervals):
        return value
    numbers = [part.low + _SHARE * (part.high - part.low) for part in value.parts]
    if not value.shape:
        return Balls(numbers[0])
    import numpy

    array = numpy.empty(len(numbers), object)
    array[:] = numbers
    return Balls(array.reshape(value.shape))


# --- programs of real numbers


class _of_source:
    """Within the block, errors that point into the source of a program made of `program` point into that itself."""

    def __init__(self, program: Module, made: Module) -> None:
        self.program, self.made = program, made

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: Any, error: Any, _traceback: Any) -> None:
        source = self.program.source
        if isinstance(error, GradcliError) and error.source is not None and error.source.startswith(source):
            error.source = source
            if error.span is not None and error.span.end > len(source):
                error.span = self.program.body[-1].span


def _with_inputs(program: Module, names: Sequence[str]) -> Module:
    """The program that first makes the complex inputs of their parts.

    Added text has a source of its own, because expressions are distinguished in reports by their texts.
    """
    source, made = program.source, []
    for name in names:
        parts = []
        for label in names_of_parts(name):
            source, place = _appended(source, f"⟨{label}⟩")
            parts.append(tree.Name(place, label, ""))
        # A call ends after its operands.
        span = Span(parts[0].span.start, len(source))
        value = tree.Call(span, "complex", span, None, tuple(parts), (), stable_expressions.MODULE)
        made.append(tree.Assign(span, (tree.BoundName(span, name),), value))
    return Module(program.span, source, (*made, *program.body))


def _part(program: Module, part: str) -> Module:
    """The program whose value is a part of that of `program`."""
    statements, name = with_named_value(program)
    source, place = _appended(program.source, "⟨value⟩")
    source, end = _appended(source, f"⟨{part}⟩")
    span = Span(place.start, end.end)
    call = tree.Call(span, part, span, None, (tree.Name(place, name, ""),), (), stable_expressions.MODULE)
    return Module(program.span, source, (*statements, tree.Evaluate(span, call)))


def _appended(source: str, text: str) -> tuple[str, Span]:
    return f"{source}\n{text}", Span(len(source) + 1, len(source) + 1 + len(text))

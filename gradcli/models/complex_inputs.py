"""Complex inputs of a model for real numbers, which has their real and imaginary parts as inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from gradcli import arrays
from gradcli.calculus.complex_derivatives import names_of_parts
from gradcli.errors import GradcliError, Span
from gradcli.language.stable import stable_expressions
from gradcli.language.syntax import tree

# The texts in the source of a program that stand for the parts of an input; no program contains them.
_PARTS = "⟨real part of {}⟩", "⟨imaginary part of {}⟩"


def parts_of(value: Any) -> tuple[Any, ...]:
    """The real and the imaginary part of a complex value, and a real one by itself."""
    return (value.real, value.imag) if arrays.is_complex(value) else (value,)


def with_parts(values: Mapping[str, Any], complex_names: Collection[str]) -> dict[str, Any]:
    """The values by name, with those of the complex names replaced by those of their parts."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name in complex_names:
            found |= dict(zip(names_of_parts(name), parts_of(value)))
        else:
            found[name] = value
    return found


class AppendedSource:
    """The source of a program, followed by the texts of expressions that are not written in it: expressions are
    distinguished by their texts."""

    def __init__(self, source: str) -> None:
        self.source = source

    def span(self, text: str) -> Span:
        """The place of a text, which is appended."""
        start = len(self.source) + 1
        self.source += f"\n{text}"
        return Span(start, len(self.source))


def made_of_parts(name: str, source: AppendedSource) -> tree.Statement:
    """The statement that makes a complex number of its parts."""
    parts = tuple(
        tree.Name(source.span(text.format(name)), label, "") for label, text in zip(names_of_parts(name), _PARTS)
    )
    span = Span(parts[0].span.start, parts[1].span.end)
    made = tree.Call(span, "complex", span, None, parts, (), stable_expressions.MODULE)
    return tree.Assign(span, (tree.BoundName(span, name),), made)


def taken_apart(name: str, source: AppendedSource) -> Iterator[tree.Statement]:
    """The statements that make the parts of a complex number."""
    for part, label in zip(("real", "imag"), names_of_parts(name)):
        span = source.span(f"⟨{label}⟩")
        value = tree.Call(span, part, span, None, (tree.Name(span, name, ""),), (), stable_expressions.MODULE)
        yield tree.Assign(span, (tree.BoundName(span, label),), value)


@contextmanager
def real_inputs(module: tree.Module, complex_names: Sequence[str]) -> Iterator[tree.Module]:
    """Yield the program that first makes the complex inputs of their parts. Errors show the source of `module`."""
    source = AppendedSource(module.source)
    made = [made_of_parts(name, source) for name in complex_names]
    with showing(module.source, source.source):
        yield tree.Module(module.span, source.source, (*made, *module.body)) if made else module


@contextmanager
def showing(source: str, appended: str) -> Iterator[None]:
    """Let errors show the source in place of that with texts appended."""
    try:
        yield
    except GradcliError as error:
        if error.source == appended:
            error.source = source
            if error.span is not None and error.span.start > len(source):
                error.span = None
        raise

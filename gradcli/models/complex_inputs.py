"""Complex inputs of a model for real numbers, which has their real and imaginary parts as inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from gradcli import arrays
from gradcli.errors import GradcliError, Span
from gradcli.language.stable import stable_expressions
from gradcli.language.syntax import tree

# What is read in the source of a program for the parts of an input; no program has it.
_PARTS = "⟨real part of {}⟩", "⟨imaginary part of {}⟩"


def names_of_parts(name: str) -> tuple[str, str]:
    """The names of the parts of a complex input. No program can use them, because of the parentheses."""
    return f"real({name})", f"imag({name})"


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


@contextmanager
def real_inputs(module: tree.Module, complex_names: Sequence[str]) -> Iterator[tree.Module]:
    """Yield the program that first makes the complex inputs of their parts. Errors show the source of `module`."""
    found = _program_of_parts(module, complex_names) if complex_names else module
    try:
        yield found
    except GradcliError as error:
        if error.source == found.source:
            error.source = module.source
            if error.span is not None and error.span.start > len(module.source):
                error.span = None
        raise


def _program_of_parts(module: tree.Module, complex_names: Sequence[str]) -> tree.Module:
    # The parts have a source of their own, behind that of the program, as expressions are told apart by their texts.
    source, made = module.source, []
    for name in complex_names:
        parts = []
        for label, text in zip(names_of_parts(name), _PARTS):
            written = text.format(name)
            parts.append(tree.Name(Span(len(source) + 1, len(source) + 1 + len(written)), label, ""))
            source += f"\n{written}"
        span = Span(parts[0].span.start, len(source))
        value = tree.Call(span, "complex", span, None, tuple(parts), (), stable_expressions.MODULE)
        made.append(tree.Assign(span, (tree.BoundName(span, name),), value))
    return tree.Module(module.span, source, (*made, *module.body))

"""`gradcli diff`: derivatives as formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import limits
from gradcli.cli import inputs
from gradcli.cli.environment import Environment
from gradcli.cli.options import DiffOptions
from gradcli.errors import ExitStatus, UnknownNameError, UsageError, nearest
from gradcli.formulas import languages
from gradcli.io import json_text
from gradcli.language import scope
from gradcli.language.syntax import tree
from gradcli.program.ir import Program
from gradcli.run.symbolic import Formulas, derivatives_as_formulas, parsed_formula

# A part of a formula that stands in it twice is named where it has more characters.
_SHORT = 40


def run(options: DiffOptions, environment: Environment) -> ExitStatus:
    """Differentiate, simplify, print; see `gradcli diff --help`."""
    _check(options)
    with limits.max_elements(options.max_elements):
        program, bindings = inputs.read(options, environment, "float64")
        wrt = _names(program, options)
        formulas = derivatives_as_formulas(program, bindings, wrt, options.order, max_steps=options.max_steps)
        if options.simplify:
            formulas = _simplified(formulas)
    texts = _texts(formulas, program.source, options)
    if options.json:
        environment.write(json_text.dumps(_json(program.source, wrt, options, texts)) + "\n")
    else:
        environment.write(_shown(texts, options.to) + "\n")
    return ExitStatus.SUCCESS


def _check(options: DiffOptions) -> None:
    if options.order < 1:
        raise UsageError("--order is 1 or more", hint="--order 2 is the second derivative")
    if options.to not in languages.NAMES:
        close = nearest(options.to, languages.NAMES)
        hint = f"did you mean '{close}'?" if close else f"--to is one of {', '.join(languages.NAMES)}"
        raise UsageError(f"there is no language {options.to!r} to write formulas in", hint=hint)


def _names(program: tree.Module, options: DiffOptions) -> Sequence[str]:
    """The names to differentiate by: those asked for, or every one that the program reads."""
    reads = {n: r for n, r in scope.outer_reads(program).items() if n not in scope.CONSTANTS}
    names = inputs.names_of(options.wrt) or [n for n, r in reads.items() if not r.maybe_assigned]
    if not names:
        raise UsageError("the program reads no names to differentiate by", hint="gradcli diff 'log(x**q)' --wrt x")
    for name in names:
        if name not in reads:
            close = nearest(name, reads)
            hint = f"did you mean '{close}'?" if close else f"it reads {', '.join(reads)}"
            raise UnknownNameError(f"the program does not read '{name}', which --wrt asks for", hint=hint)
    return names


def _simplified(formulas: Formulas) -> Formulas:
    from gradcli.formulas.simplify import simplified

    found = {key: parsed_formula(simplified(d), like=d) for key, d in formulas.derivatives.items()}
    return formulas._replace(derivatives=found)


def _texts(formulas: Formulas, source: str, options: DiffOptions) -> dict[str, str]:
    """What is printed, by the names that it is the derivative by; one text for all columns of SQL."""
    if options.to == "sql":
        from gradcli.formulas.sql import sql

        columns = {_identifier("d", key): d for key, d in formulas.derivatives.items()}
        return {"": sql({"value": formulas.value, **columns})}
    return {key: _text(d, key, source, options.to) for key, d in formulas.derivatives.items()}


def _text(program: Program, key: str, source: str, to: str) -> str:
    if to == "text":
        from gradcli.formulas.text import text

        return text(program, short=_SHORT)
    if to == "latex":
        from gradcli.formulas.latex import latex

        return latex(program)
    doc = f"The derivative of {' '.join(source.split())} by {key.replace(',', ', ')}."
    if to == "python":
        from gradcli.formulas.python import python

        return python(program, name=_identifier("derivative", key), doc=doc, short=_SHORT)
    from gradcli.formulas.c import c

    return c(program, name=_identifier("derivative", key), doc=doc, short=_SHORT)


def _identifier(stem: str, key: str) -> str:
    return f"{stem}_{key.replace(',', '_')}"


def _shown(texts: Mapping[str, str], to: str) -> str:
    if len(texts) == 1:
        return next(iter(texts.values()))
    if to in ("python", "c"):
        return "\n\n\n".join(texts.values())
    return "\n".join(f"{key}: {text}" if "\n" not in text else f"{key}:\n{text}" for key, text in texts.items())


def _json(source: str, wrt: Sequence[str], options: DiffOptions, texts: Mapping[str, str]) -> dict[str, Any]:
    record: dict[str, Any] = {
        "schema": "gradcli/1",
        "program": source,
        "wrt": list(wrt),
        "order": options.order,
        "to": options.to,
    }
    return record | ({"select": texts[""]} if options.to == "sql" else {"derivatives": dict(texts)})

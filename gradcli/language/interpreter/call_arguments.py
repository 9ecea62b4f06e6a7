"""Checks the arguments of a call against the signature of the function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gradcli.errors import CallError, did_you_mean
from gradcli.primitives.signature import SignatureParameter
from gradcli.type_hints import Any


def fit(
    name: str, parameters: Sequence[SignatureParameter], positional: Sequence[Any], keywords: Mapping[str, Any]
) -> None:
    """Raise CallError for too many, missing, duplicate or unknown arguments."""
    known = dict.fromkeys(p.name for p in parameters if not p.variadic)
    for keyword in keywords:
        if keyword not in known:
            hint = did_you_mean(keyword, known, usage(name, parameters))
            raise CallError(f"'{name}' has no argument '{keyword}'", hint=hint)
    before = []
    for parameter in parameters:
        if parameter.variadic:
            break
        if not parameter.keyword_only:
            before.append(parameter)
    else:
        if len(positional) > len(before):
            raise CallError(
                f"'{name}' takes {_count(len(before))}, and {len(positional)} were given",
                hint=usage(name, parameters),
            )
    doubled = [p.name for p in before[: len(positional)] if p.name in keywords]
    if doubled:
        raise CallError(f"'{name}' got '{doubled[0]}' twice", hint=usage(name, parameters))
    given = {*keywords, *(p.name for p in before[: len(positional)])}
    missing = [p.name for p in parameters if p.default is None and not p.variadic and p.name not in given]
    if missing:
        names = " and ".join(f"'{n}'" for n in missing)
        raise CallError(f"'{name}' needs {names}", hint=usage(name, parameters))


def _count(n: int) -> str:
    return {0: "no arguments", 1: "1 argument"}.get(n, f"{n} arguments")


def usage(name: str, parameters: Sequence[SignatureParameter]) -> str:
    """The signature of a function as the text of a hint."""
    words = [
        f"*{p.name}" if p.variadic else p.name if p.default is None else f"{p.name}={p.default}" for p in parameters
    ]
    return f"its signature is {name}({', '.join(words)})"

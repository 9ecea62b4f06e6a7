"""Runs a test at every sample in the table of primitives, as one test for each entry."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def at_each(cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a test of one `case`, which then runs at all cases of an entry in turn.

    A pytest test for each case would do the same, but the overhead of pytest would exceed the tests' own time.
    """
    groups = {name: list(group) for name, group in itertools.groupby(sorted(cases, key=_entry_name), _entry_name)}

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        def walk(entry_cases: list[Any], **fixtures: Any) -> None:
            for case in entry_cases:
                try:
                    check(case=case, **fixtures)
                except BaseException as error:
                    error.add_note(f"at the sample {case.operands!r} of {case.entry.name}")
                    raise

        fixtures = [p for name, p in inspect.signature(check).parameters.items() if name != "case"]
        first = inspect.Parameter("entry_cases", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        walk.__signature__ = inspect.Signature([first, *fixtures])  # type: ignore[attr-defined]
        walk.__doc__ = check.__doc__
        return pytest.mark.parametrize("entry_cases", groups.values(), ids=groups)(walk)

    return decorate


def _entry_name(case: Any) -> str:
    return str(case.entry.name)

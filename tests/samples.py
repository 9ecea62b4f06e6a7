"""Runs a test at every sample in the table of primitives, as one test for a few entries."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import pytest

# Entries of one test. The overhead of pytest would exceed the time of most tests of a single entry.
_ENTRIES = 8


def at_each(cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a test of one `case`, which then runs at all cases of a few entries in turn, whose names it has."""
    by_entry = [list(group) for _, group in itertools.groupby(sorted(cases, key=_entry_name), _entry_name)]
    parts = [by_entry[i : i + _ENTRIES] for i in range(0, len(by_entry), _ENTRIES)]
    groups = {"-".join(_entry_name(cases[0]) for cases in part): [*itertools.chain(*part)] for part in parts}

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

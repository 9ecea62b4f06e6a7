"""Runs a test at every sample in the table of primitives, as one test for a few entries."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Check = Callable[..., None]
# Values of one test. The overhead of pytest would exceed the time of most tests of a single entry.
_COUNT = 8


def several(argument: str, values: Iterable[Any], name: Callable[[Any], str] = str) -> Callable[[Check], Check]:
    """Decorate a test of one value, which then runs for a few of them in turn, whose names it has."""
    waiting = iter(values)
    parts = {"-".join(map(name, part)): part for part in iter(lambda: [*itertools.islice(waiting, _COUNT)], [])}
    return _decorator(argument, parts, name)


def at_each(cases: Iterable[Any]) -> Callable[[Check], Check]:
    """Decorate a test of one `case`, which then runs at all cases of a few entries in turn, whose names it has."""
    by_entry = [list(group) for _, group in itertools.groupby(sorted(cases, key=_entry_name), _entry_name)]
    parts = [by_entry[i : i + _COUNT] for i in range(0, len(by_entry), _COUNT)]
    groups = {"-".join(_entry_name(cases[0]) for cases in part): [*itertools.chain(*part)] for part in parts}
    return _decorator("case", groups, lambda case: f"the sample {case.operands!r} of {case.entry.name}")


def has_complex_sample(entry: Any) -> bool:
    """Whether a sample of an entry has complex numbers."""

    def is_complex(value: Any) -> bool:
        return any(map(is_complex, value)) if isinstance(value, list | tuple) else isinstance(value, complex)

    return is_complex(list(entry.samples))


def _decorator(
    argument: str, groups: dict[str, list[Any]], described: Callable[[Any], str]
) -> Callable[[Check], Check]:
    def decorate(check: Check) -> Check:
        def walk(group: list[Any], **fixtures: Any) -> None:
            for value in group:
                try:
                    check(**{argument: value}, **fixtures)
                except BaseException as error:
                    error.add_note(f"at {described(value)}")
                    raise

        fixtures = [p for name, p in inspect.signature(check).parameters.items() if name != argument]
        first = inspect.Parameter("group", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        walk.__signature__ = inspect.Signature([first, *fixtures])  # type: ignore[attr-defined]
        walk.__doc__ = check.__doc__
        return pytest.mark.parametrize("group", groups.values(), ids=groups)(walk)

    return decorate


def _entry_name(case: Any) -> str:
    return str(case.entry.name)

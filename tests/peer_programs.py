"""Runs programs written for another library on that library and, with the imports renamed, on gradcli.

A program calls `show` with its results: numbers, arrays and containers of them. `python -m tests.peer_programs
autograd`, or `jax`, stores the results of that library.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy

DATA = Path(__file__).resolve().parent / "data"
EXPECTED = DATA / "peer-programs.json"


def found_by(program: Path, library: str, stand_in: str) -> list[Any]:
    """The results that a program shows, as numbers and lists, with `library` replaced by `stand_in`."""
    text = program.read_text(encoding="utf-8")
    text = re.sub(rf"^(\s*(?:import|from) ){library}\b(?! as)", rf"\g<1>{stand_in}", text, flags=re.MULTILINE)
    # `import jax` binds a name that `import gradcli.jax` does not.
    text = re.sub(rf"^import {stand_in}$", f"import {stand_in} as {library}", text, flags=re.MULTILINE)
    shown: list[Any] = []
    variables = {"__name__": "__main__", "show": lambda *values: shown.extend(map(_plain, values))}
    exec(compile(text, str(program), "exec"), variables)
    assert shown, f"{program.name} shows nothing"
    return shown


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return [_plain(value[key]) for key in sorted(value)]
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return None if value is None else numpy.asarray(value).astype(float).tolist()


def assert_same(found: Any, expected: Any, tolerance: float) -> None:
    """Raise AssertionError where numbers differ by more than `tolerance`, relative to the larger one of them and 1."""
    if isinstance(expected, list):
        assert isinstance(found, list)
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            assert_same(one, other, tolerance)
    elif expected is None:
        assert found is None
    else:
        assert abs(found - expected) <= tolerance * max(1.0, abs(expected)), (found, expected)


def programs() -> Iterator[tuple[str, str, Path]]:
    """For each program: the library, its replacement in gradcli, and the file."""
    for library, stand_in, folder in (
        ("autograd", "gradcli", "autograd_examples"),
        ("jax", "gradcli.jax", "jax_pieces"),
    ):
        for program in sorted((DATA / folder).glob("*.py")):
            yield library, stand_in, program


def main(library: str) -> None:
    """Store the results of a library's programs; JAX must compute in float64: JAX_ENABLE_X64=1."""
    known = json.loads(EXPECTED.read_text(encoding="utf-8")) if EXPECTED.exists() else {}
    known[library] = {
        program.stem: found_by(program, library, library) for name, _, program in programs() if name == library
    }
    lines = json.dumps(known, sort_keys=True).replace("}, ", "},\n").replace(']], "', ']],\n"').replace('], "', '],\n"')
    EXPECTED.write_text(lines + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])

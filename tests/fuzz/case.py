"""A program with values for its names, and what may be found wrong with it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """A program, the numbers and nested lists that its names stand for, and the seed of what is drawn while it is checked."""

    program: str
    bindings: Mapping[str, Any]
    draw: int = 0

    def line(self, **more: str) -> str:
        """The case as a line of JSON."""
        written = {n: _written(v) for n, v in self.bindings.items()}
        return json.dumps({"program": self.program, "bindings": written, "draw": self.draw, **more})

    @classmethod
    def of_line(cls, line: str) -> Case:
        record = json.loads(line)
        bindings = {n: _read(v) for n, v in record.get("bindings", {}).items()}
        return cls(record["program"], bindings, record.get("draw", 0))

    def arrays(self) -> dict[str, Any]:
        """The values as gradcli has them: numbers and arrays."""
        return {n: _array(v) if isinstance(v, list) else v * 1.0 for n, v in self.bindings.items()}

    @property
    def is_complex(self) -> bool:
        """Whether a value is complex."""
        return any(map(np.iscomplexobj, self.bindings.values()))

    def words(self) -> list[str]:
        """The values as words of a command line."""
        return [f"{n}={_text(v)}" for n, v in self.bindings.items()]


class Finding(NamedTuple):
    """What is wrong with a case: `key` is the same for what is likely the same fault, `detail` is for people."""

    key: str
    detail: str


def _array(value: Any) -> Any:
    return np.array(value, complex if np.iscomplexobj(value) else np.float64)


def _written(value: Any) -> Any:
    """Without the numbers that strict JSON lacks."""
    if isinstance(value, list):
        return [_written(v) for v in value]
    if isinstance(value, complex):
        return str(value)
    return value if math.isfinite(value) else str(value)


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(v) for v in value]
    return complex(value) if isinstance(value, str) and "j" in value else float(value)


def _text(value: Any) -> str:
    return f"[{','.join(map(_text, value))}]" if isinstance(value, list) else repr(value).strip("()")

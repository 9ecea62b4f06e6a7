"""Runs printed C and SQL code: with gcc, and with SQLite extended by functions of other databases."""

from __future__ import annotations

import ctypes
import math
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

NEEDS_GCC = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")


def in_c(text: str, folder: Path, *flags: str, compiler: str = "gcc", standard: str = "c99") -> Callable[[str], Any]:
    """The functions of a C source text, each of which returns a double, by name."""
    source, library = folder / "f.c", folder / "f.so"
    source.write_text(text, encoding="utf-8")
    command = [compiler, f"-std={standard}", *flags, "-shared", "-fPIC", str(source), "-lm", "-o", str(library)]
    subprocess.run(command, check=True)
    functions = ctypes.CDLL(str(library))

    def function(name: str) -> Any:
        found = getattr(functions, name)
        found.restype = ctypes.c_double
        return found

    return function


def database() -> sqlite3.Connection:
    """An SQLite database with the mathematical functions that are optional in SQLite."""
    made = sqlite3.connect(":memory:")
    for name in "exp sqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh floor ceil".split():  # noqa: SIM905
        made.create_function(name, 1, getattr(math, name))
    for name, function in {"ln": math.log, "log2": math.log2, "log10": math.log10}.items():
        made.create_function(name, 1, function)
    made.create_function("power", 2, math.pow)
    made.create_function("mod", 2, math.fmod)
    made.create_function("atan2", 2, math.atan2)
    made.create_function("sign", 1, lambda x: (x > 0) - (x < 0))
    return made

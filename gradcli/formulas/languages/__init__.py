"""In which languages is a formula written? A file for each, which is imported when it is asked for.

Begin with `text`, the language of programs themselves; `NAMES` lists all.
"""

from __future__ import annotations

from importlib import import_module

from gradcli.formulas.writing.documents import Document, Formulas
from gradcli.formulas.writing.text_writer import Language, UnsupportedPrimitiveError

NAMES = ("text", "latex", "python", "c", "julia", "javascript", "rust", "matlab", "excel", "sql", "polars")


# The dialects of SQL.
DIALECTS = ("duckdb", "postgres", "sqlite", "bigquery", "spark")


def find(name: str, dialect: str | None = None) -> Language:
    """The language with this name, imported on demand; `dialect` is one of DIALECTS for SQL."""
    module = import_module(f"gradcli.formulas.languages.{name}")
    language: Language = module.LANGUAGE if dialect is None else module.of_dialect(dialect)
    return language


def document(name: str, formulas: Formulas, dialect: str | None = None) -> Document:
    """Derivatives in the language `name`. The hint of an UnsupportedPrimitiveError names the languages that have the
    missing function."""
    try:
        return find(name, dialect).document(formulas)
    except UnsupportedPrimitiveError as error:
        others = [n for n in NAMES if n != name and find(n).writes(error.primitive)]
        if others:
            error.hint = f"--to {', '.join(others[:-1])} or {others[-1]} can" if others[1:] else f"--to {others[0]} can"
        raise

"""The languages that a program can be written in."""

from __future__ import annotations

from importlib import import_module

from gradcli.formulas.writing import Language

NAMES = ("text", "latex", "python", "c", "sql")


def find(name: str) -> Language:
    """The language with this name, which is loaded now."""
    module = import_module(f"gradcli.formulas.{name}")
    language: Language = module.LANGUAGE
    return language

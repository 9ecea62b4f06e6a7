"""Prepares the parse tables, for wheels and editable installs, so that no start has to."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TABLES = "gradcli/language/syntax/_lalr.py"


class ParseTablesHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        spec = spec_from_file_location("generate", root / "gradcli/language/syntax/generate.py")
        assert spec is not None
        assert spec.loader is not None
        generate = module_from_spec(spec)
        spec.loader.exec_module(generate)
        grammar = (root / "grammar/gradcli.lark").read_bytes()
        (root / TABLES).write_text(generate.module_text(grammar), encoding="utf-8")
        build_data["artifacts"].append(f"/{TABLES}")

"""Prepares the parse tables and the index of entries, for wheels and editable installs, so that no start has to."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TABLES = "gradcli/language/syntax/_lalr.py"
INDEX = "gradcli/primitives/_entry_files.py"


class PreparedModulesHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        spec = spec_from_file_location("generate", root / "gradcli/language/syntax/generate.py")
        assert spec is not None
        assert spec.loader is not None
        generate = module_from_spec(spec)
        spec.loader.exec_module(generate)
        grammar = (root / "grammar/gradcli.lark").read_bytes()
        (root / TABLES).write_text(generate.module_text(grammar), encoding="utf-8")
        (root / INDEX).write_text(_index(root), encoding="utf-8")
        build_data["artifacts"] += [f"/{TABLES}", f"/{INDEX}"]


def _index(root: Path) -> str:
    """The text of the index, from a process of its own, as importing the entries imports gradcli; it needs no other
    package."""
    code = "from gradcli.primitives import table; print(table.prepared_text(), end='')"
    environment = os.environ | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"}
    return subprocess.check_output([sys.executable, "-c", code], env=environment, encoding="utf-8")

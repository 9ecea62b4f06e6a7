"""How the JSON objects begin that commands print of a program that was run."""

from __future__ import annotations

from typing import Any


def opening(program: str, namespace: Any) -> dict[str, Any]:
    """What was run, and what computed it; `namespace` is None for NumPy."""
    return {
        "schema": "gradcli/1",
        "program": program,
        "backend": "numpy" if namespace is None else namespace.name,
        "device": "cpu" if namespace is None else namespace.device_name,
    }

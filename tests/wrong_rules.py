"""Replaces the derivative of a primitive by a wrong one, for tests of what finds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradcli.primitives.primitive import Primitive


def replace_vjp(monkeypatch: pytest.MonkeyPatch, primitive: Primitive, *rules: Callable[..., Any]) -> None:
    """Replace the vjp rules of a primitive, also where they were kept for the operands of earlier operations."""
    monkeypatch.setattr(primitive, "vjp", rules)
    monkeypatch.setattr(primitive, "needs", {})
    monkeypatch.setattr(primitive, "recordings", {})

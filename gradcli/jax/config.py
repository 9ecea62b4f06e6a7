"""`jax.config`, which programs ask for float64; that is what there is here."""

from __future__ import annotations

from typing import Any

from gradcli.errors import ArgumentError


def update(name: str, value: Any) -> None:
    """Take options as they are here: numbers in float64. Raises ArgumentError for others of those."""
    if name == "jax_enable_x64" and not value:
        raise ArgumentError("numbers are float64", hint="dtype=jnp.float32 gives those of float32")

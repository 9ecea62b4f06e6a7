"""`jax.config`, with which programs request float64, the only default here."""

from __future__ import annotations

from typing import Any

from gradcli.errors import ArgumentError


def update(name: str, value: Any) -> None:
    """Accept JAX's options. Raises ArgumentError if float64 is switched off."""
    if name == "jax_enable_x64" and not value:
        raise ArgumentError("numbers are float64", hint="dtype=jnp.float32 gives those of float32")

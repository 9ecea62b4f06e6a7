"""The backends that are installed here, and the generic one.

These tests have an environment of their own, and run where they are asked for: `python -m pytest tests/backends`.
PyTorch and JAX compute on the processor, and with `--device cuda` on a GPU; CuPy has no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradcli import arrays
from gradcli.arrays import backends, standard


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", choices=["cpu", "cuda"], default="cpu", help="where PyTorch and JAX compute")


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    return None if any(Path(__file__).parent.name in Path(word).parts for word in config.args) else True


@pytest.fixture(scope="session", autouse=True)
def default_devices(pytestconfig: pytest.Config) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("torch", "jax"):
            chosen = backends.check_name(name)._replace(default_device=pytestconfig.getoption("--device"))
            patch.setitem(backends._BY_NAME, name, chosen)
        yield


def strict() -> Any:
    """The generic namespace, over a library that refuses whatever the Python array API does not have."""
    library = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    return standard.namespace_of(library.zeros(1))


@pytest.fixture(scope="session", params=["torch", "jax", "cupy", "standard"])
def xp(request: pytest.FixtureRequest) -> Any:
    """The namespace of a backend; those that are not there are skipped."""
    if request.param == "standard":
        return strict()
    try:
        return backends.namespace(request.param)
    except backends.BackendError as error:
        pytest.skip(error.message)


@pytest.fixture(params=["torch", "jax", "cupy"])
def backend(request: pytest.FixtureRequest) -> str:
    """The name of a backend that is there."""
    try:
        backends.namespace(request.param)
    except backends.BackendError as error:
        pytest.skip(error.message)
    return str(request.param)


@pytest.fixture
def float64() -> Iterator[None]:
    """The default dtype of PyTorch is float64 during a test, as that of gradcli is."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def host(value: Any) -> Any:
    return None if value is None else arrays.on_host(value)

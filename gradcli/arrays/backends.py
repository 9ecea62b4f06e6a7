"""The array libraries that can compute: what they are called, how they are installed, which arrays are theirs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli import installing
from gradcli.errors import BackendError, UsageError
from gradcli.timing import phase

if TYPE_CHECKING:
    from gradcli.arrays.protocol import Namespace


class Worth(NamedTuple):
    """From which size on a program is worth recording and compiling: from how many elements of its largest
    input, if it is run once, if it is run for the first time and may be run again, and if it is run again."""

    once: int
    first: int
    again: int


class Backend(NamedTuple):
    """A library by its name in Python; `home` is the module here that speaks to it, and `extra` that of gradcli which
    brings it. `classes` are those of its arrays, by their package and name. `executor`
    is the module among the executors that compiles for it, and `worth` what that takes against what it saves, which may
    be other sizes on a GPU."""

    name: str
    home: str
    extra: str
    classes: Sequence[tuple[str, str]]
    executor: str
    worth: Worth
    default_device: str = "cpu"
    worth_on_gpu: Worth | None = None

    def worth_on(self, namespace: Namespace | None) -> Worth:
        """From which sizes on compiling pays on the device of a namespace of this backend."""
        if namespace is None or self.worth_on_gpu is None or not namespace.device_name.startswith("cuda"):
            return self.worth
        return self.worth_on_gpu

    @property
    def install(self) -> str:
        """The command that installs it."""
        return installing.command(self.extra)


BACKENDS = (
    Backend(
        "numpy",
        home="gradcli.arrays.numpy_arrays",
        extra="",
        classes=[("numpy", "ndarray"), ("numpy", "generic")],
        executor="on_host",
        worth=Worth(2**20, 2**18, 0),
    ),
    Backend(
        "torch",
        home="gradcli.arrays.torch_arrays",
        extra="torch",
        classes=[("torch", "Tensor")],
        executor="whole_program",
        worth=Worth(2**26, 2**26, 2**20),
        # The compiler takes as long there, and what it saves is a hundredth.
        worth_on_gpu=Worth(2**63, 2**63, 2**26),
    ),
    Backend(
        "cupy",
        home="gradcli.arrays.cupy_arrays",
        extra="cupy",
        classes=[("cupy", "ndarray")],
        executor="cupy_kernels",
        worth=Worth(2**22, 2**22, 0),
        default_device="cuda",
    ),
    Backend(
        "jax",
        home="gradcli.arrays.jax_arrays",
        extra="jax",
        classes=[("jax", "Array"), ("jaxlib", "ArrayImpl"), ("jax", "Tracer")],
        executor="whole_program",
        worth=Worth(2**16, 2**18, 0),
    ),
)
# Balls are chosen by the digits that are wanted, and are no backend of the same numbers.
DIGITS = Backend(
    "flint",
    home="gradcli.arrays.flint_arrays",
    extra="digits",
    classes=[("gradcli", "Balls")],
    executor="single_numbers",
    # No array has so many elements.
    worth=Worth(2**63, 2**63, 2**63),
)
# A library that is known only to follow the Python array API.
STANDARD = "standard"

_BY_NAME = {backend.name: backend for backend in (*BACKENDS, DIGITS)}
_CLASSES = {names: backend.name for backend in _BY_NAME.values() for names in backend.classes}


def _backend_of(kind: type) -> str | None:
    """The library whose arrays have this type, found without importing one; STANDARD for one that is known
    only to follow the Python array API, None for what is no array."""
    for base in kind.__mro__:
        found = _CLASSES.get((base.__module__.partition(".")[0], base.__name__))
        if found is not None:
            return found
    return STANDARD if hasattr(kind, "__array_namespace__") else None


backend_of: Callable[[type], str | None] = cache(_backend_of)


class Device(NamedTuple):
    """A device as its library calls it, with its memory in bytes where the library tells."""

    name: str
    kind: str
    memory: int | None = None
    free: int | None = None


class Found(NamedTuple):
    """What is known of a library on this machine; `problem` says why it cannot be used, if it is installed."""

    backend: Backend
    version: str | None
    devices: tuple[Device, ...]
    problem: str | None = None


def check_name(name: str) -> Backend:
    """The backend of this name. Raises UsageError where there is none."""
    if name not in _BY_NAME:
        known = ", ".join(backend.name for backend in BACKENDS)
        raise UsageError(f"there is no backend {name!r}", hint=f"the backends are {known}; gradcli backends shows them")
    return _BY_NAME[name]


def of_namespace(namespace: Namespace | None) -> Backend | None:
    """The backend that a namespace is of, numpy where it is None; None for one that only follows the standard."""
    return _BY_NAME.get("numpy" if namespace is None else namespace.name)


@cache
@phase("import")
def home(name: str) -> ModuleType:
    """The module that speaks to a library. Raises BackendError where that is missing or broken."""
    backend = check_name(name)
    other = _other_module(name)
    if other is not None:
        raise BackendError(f"the backend {name} cannot be imported: the module {name!r} of this process is {other}")
    if not _installed(name):
        raise BackendError(f"the backend {name} is not installed", hint=backend.install)
    try:
        return import_module(backend.home)
    except Exception as error:
        # A library that is broken fails in ways of its own.
        problem = f"the backend {name} is installed, but cannot be imported: {first_line(error)}"
        raise BackendError(problem, hint=f"install it anew: {backend.install}") from error


def loaded(name: str) -> Any:
    """The module here that speaks to a library, where that has been imported; None where it was not.

    `sys.modules` is asked for a module of gradcli: under the name of the library it may have another one.
    """
    return sys.modules.get(_BY_NAME[name].home)


def _other_module(name: str) -> str | None:
    """What stands in the place of a library among the modules of this process, as gradcli itself may; None for nothing
    or the library."""
    found = getattr(sys.modules.get(name), "__name__", name)
    return None if found == name else str(found)


def _installed(name: str) -> bool:
    from importlib.util import find_spec

    try:
        return sys.modules[name] is not None if name in sys.modules else find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def namespace(name: str, device: str | None = None) -> Namespace:
    """The array namespace of a backend other than numpy on a device, its default one where that is None.

    Raises UsageError for names that no backend has, BackendError where the library or the device is not there.
    """
    backend = check_name(name)
    found: Namespace = home(name).on_device(device or backend.default_device)
    return found


def found() -> Iterator[Found]:
    """What this machine has of every backend."""
    for backend in BACKENDS:
        if not _installed(backend.name):
            yield Found(backend, None, ())
            continue
        try:
            module = home(backend.name)
            yield Found(backend, module.version(), tuple(module.devices()))
        except BackendError as error:
            yield Found(backend, _version(backend.name), (), error.message)
        except Exception as error:
            # Finding out must not fail, whatever the library does.
            yield Found(backend, _version(backend.name), (), first_line(error))


def _version(name: str) -> str | None:
    return None if _other_module(name) else getattr(sys.modules.get(name), "__version__", None)


def first_line(error: Exception) -> str:
    """The message of a library's error, or its kind where it has none."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__

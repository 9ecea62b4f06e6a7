"""The supported array libraries: their names, how to install them, and which array types belong to them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType

from gradcli.errors import BackendError, LimitError, UsageError
from gradcli.named_tuples import NamedTuple
from gradcli.timing import phase
from gradcli.type_hints import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.arrays.protocol import Namespace


class CompileThresholds(NamedTuple):
    """The sizes from which recording and compiling a program pays, in elements of its largest input.

    `once` is for a program that is run once, `first` for the first run of one that may run again, `again` for repeated
    runs.
    """

    once: int
    first: int
    again: int


class Backend(NamedTuple):
    """A library, by its import name.

    `backend_module` is the module of gradcli that wraps the library, `extra` the optional dependency of gradcli that installs it,
    `classes` its array classes as pairs of package and class name. `executor` is the module in `gradcli.executors` that
    compiles for it, `worth` the sizes from which compiling pays, which may differ on a GPU (`worth_on_gpu`).
    """

    name: str
    home: str
    extra: str
    classes: Sequence[tuple[str, str]]
    executor: str
    worth: CompileThresholds
    default_device: str = "cpu"
    worth_on_gpu: CompileThresholds | None = None

    def worth_on(self, namespace: Namespace | None) -> CompileThresholds:
        """The sizes from which compiling pays on the device of a namespace of this backend."""
        if namespace is None or self.worth_on_gpu is None or not namespace.device_name.startswith("cuda"):
            return self.worth
        return self.worth_on_gpu

    @property
    def install(self) -> str:
        """The shell command that installs the library."""
        # Loaded on demand, for hints of errors.
        from gradcli.install_command import install_command

        return install_command(self.extra)


BACKENDS = (
    Backend(
        "numpy",
        home="gradcli.arrays.numpy_arrays",
        extra="",
        classes=[("numpy", "ndarray"), ("numpy", "generic")],
        executor="cpu",
        worth=CompileThresholds(2**20, 2**18, 0),
    ),
    Backend(
        "torch",
        home="gradcli.arrays.torch_arrays",
        extra="torch",
        classes=[("torch", "Tensor")],
        executor="whole_program",
        worth=CompileThresholds(2**26, 2**26, 2**20),
        # On a GPU, compiling takes as long as on the CPU, but saves about a hundredth of the time.
        worth_on_gpu=CompileThresholds(2**63, 2**63, 2**26),
    ),
    Backend(
        "cupy",
        home="gradcli.arrays.cupy_arrays",
        extra="cupy",
        classes=[("cupy", "ndarray")],
        executor="cupy_kernels",
        worth=CompileThresholds(2**22, 2**22, 0),
        default_device="cuda",
    ),
    Backend(
        "jax",
        home="gradcli.arrays.jax_arrays",
        extra="jax",
        classes=[("jax", "Array"), ("jaxlib", "ArrayImpl"), ("jax", "Tracer")],
        executor="whole_program",
        worth=CompileThresholds(2**16, 2**18, 0),
    ),
)
# Ball arithmetic is selected by asking for digits, not as a backend for float arrays.
DIGITS = Backend(
    "flint",
    home="gradcli.arrays.flint.flint_arrays",
    extra="digits",
    classes=[("gradcli", "Balls")],
    executor="single_numbers",
    # Larger than any array: ball arithmetic is never compiled by size.
    worth=CompileThresholds(2**63, 2**63, 2**63),
)
# The name for a library of which only conformance to the Python array API is known.
STANDARD = "standard"

_BY_NAME = {backend.name: backend for backend in (*BACKENDS, DIGITS)}
_CLASSES = {names: backend.name for backend in _BY_NAME.values() for names in backend.classes}


def _backend_of(kind: type) -> str | None:
    """The name of the library whose arrays have this type, found without importing one.

    STANDARD for a type that is only known to follow the Python array API, None for a type that is not an array.
    """
    for base in kind.__mro__:
        found = _CLASSES.get((base.__module__.partition(".")[0], base.__name__))
        if found is not None:
            return found
    return STANDARD if hasattr(kind, "__array_namespace__") else None


backend_of: Callable[[type], str | None] = cache(_backend_of)


class Device(NamedTuple):
    """A device by its name in the library, with total and free memory in bytes where the library reports them."""

    name: str
    kind: str
    memory: int | None = None
    free: int | None = None


class BackendStatus(NamedTuple):
    """The state of a library on this machine; `problem` says why an installed library cannot be used."""

    backend: Backend
    version: str | None
    devices: tuple[Device, ...]
    problem: str | None = None


def check_name(name: str) -> Backend:
    """The backend with this name. Raises UsageError if there is none."""
    if name not in _BY_NAME:
        known = ", ".join(backend.name for backend in BACKENDS)
        raise UsageError(f"there is no backend {name!r}", hint=f"the backends are {known}; gradcli backends shows them")
    return _BY_NAME[name]


def of_namespace(namespace: Namespace | None) -> Backend | None:
    """The backend of a namespace: numpy for None, None for a library that only follows the Python array API."""
    return _BY_NAME.get("numpy" if namespace is None else namespace.name)


@cache
@phase("import")
def backend_module(name: str) -> ModuleType:
    """The module of gradcli that wraps a library. Raises BackendError if the library is missing or broken."""
    backend = check_name(name)
    other = _other_module(name)
    if other is not None:
        raise BackendError(f"the backend {name} cannot be imported: the module {name!r} of this process is {other}")
    if not is_installed(name):
        raise BackendError(f"the backend {name} is not installed", hint=backend.install)
    try:
        return import_module(backend.home)
    except Exception as error:
        # A broken library may raise any exception when it is imported.
        problem = f"the backend {name} is installed, but cannot be imported: {first_line(error)}"
        raise BackendError(problem, hint=f"install it anew: {backend.install}") from error


def loaded(name: str) -> Any:
    """The wrapper module of a library if it is imported already, else None.

    It is looked up by its own name, because another module may be imported under the name of the library.
    """
    return sys.modules.get(_BY_NAME[name].home)


def _other_module(name: str) -> str | None:
    """The name of an unrelated module that is imported under the name of a library, None if there is none.

    A user's script with the name of the library, or gradcli itself, may be in `sys.modules` under it.
    """
    found = getattr(sys.modules.get(name), "__name__", name)
    return None if found == name else str(found)


def is_installed(name: str) -> bool:
    """Return whether a library can be imported; it is not loaded."""
    from importlib.util import find_spec

    try:
        return sys.modules[name] is not None if name in sys.modules else find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def namespace(name: str, device: str | None = None) -> Namespace:
    """The array namespace of a backend other than numpy on a device (the backend's default device if None).

    Raises UsageError for an unknown name, BackendError if the library or the device is not available.
    """
    backend = check_name(name)
    found: Namespace = backend_module(name).on_device(device or backend.default_device)
    return found


def backend_statuses() -> Iterator[BackendStatus]:
    """The version and devices of every backend on this machine."""
    for backend in BACKENDS:
        if not is_installed(backend.name):
            yield BackendStatus(backend, None, ())
            continue
        try:
            module = backend_module(backend.name)
            yield BackendStatus(backend, module.version(), tuple(module.devices()))
        except BackendError as error:
            yield BackendStatus(backend, _version(backend.name), (), error.message)
        except Exception as error:
            # Listing the backends must not fail, whatever a library raises.
            yield BackendStatus(backend, _version(backend.name), (), first_line(error))


def _version(name: str) -> str | None:
    return None if _other_module(name) else getattr(sys.modules.get(name), "__version__", None)


def first_line(error: Exception) -> str:
    """The first line of an exception's message, or its class name if the message is empty."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__


# Compiled at its first use, as few runs need it.
_SIZE = r"allocat(?:e|ing) ([\d,]+(?:\.\d+)?) ?(bytes|[KMGT]iB)"


def host(name: str) -> Device:
    """The CPU as a device, with the memory of the machine if the system reports it."""
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        total, free = (os.sysconf(key) * page for key in ("SC_PHYS_PAGES", "SC_AVPHYS_PAGES"))
    except (ValueError, OSError, AttributeError):
        return Device(name, "processor")
    # Imported here, because few runs need it.
    from gradcli import subprocess_calls

    left = subprocess_calls.memory_left()
    return Device(name, "processor", total, free if left is None else min(free, left))


def out_of_memory(text: str, free: int | None) -> LimitError:
    """The error for running out of memory, with the free bytes and the requested size.

    The size is taken from the library's message `text`, if it is found there.
    """
    size = re.search(_SIZE, text, re.IGNORECASE)
    known = [f"{size[1]} {size[2]} asked for"] if size else []
    if free is not None:
        known.append(f"{free:,} bytes free")
    return LimitError(
        "out of memory" + (f": {', '.join(known)}" if known else ""),
        hint="make the arrays smaller, use --dtype float32, or a device with more memory (gradcli backends)",
    )

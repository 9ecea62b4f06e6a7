"""Compile loops in LLVM IR to machine code with `llvmlite`, if it is installed, and wrap them as NumPy ufuncs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from threading import RLock
from typing import Any

from gradcli.named_tuples import NamedTuple

# NumPy's type numbers of dtypes.
_TYPES = {"bool": 0, "float64": 12}
# The indices of PyUFunc_FromFuncAndData and PyUFunc_FromFuncAndDataAndSignature in the table of NumPy's ufunc C API.
_FROM_LOOP, _WITH_SIGNATURE = 1, 31
# LLVM is used by one thread at a time; the lock is reentrant.
lock = RLock()

if hasattr(os, "register_at_fork"):
    # A fork waits until no thread compiles, because in the child that thread would not exist, and the lock would stay
    # held.
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


class MachineCode(NamedTuple):
    """The machine code of the loop `name` at an `address`, valid as long as its `engine` is alive."""

    name: str
    address: int
    engine: Any


class Loop:
    """A loop wrapped as the NumPy function `ufunc`.

    It accepts strided arrays and, like NumPy's own ufuncs, releases the GIL for long ones. The machine code lives as
    long as this object.
    """

    __slots__ = ("_kept", "ufunc")

    def __init__(self, ufunc: Any, *kept: Any) -> None:
        self.ufunc = ufunc
        self._kept = kept


def is_available() -> bool:
    """Return whether loops can be compiled and wrapped."""
    with lock:
        return _target() is not None and _make() is not None


def compile_loop(name: str, text: str, symbols: Sequence[str] = ()) -> MachineCode | None:
    """The compiled loop `name` of an IR text; None without `llvmlite` or if compiling fails.

    `symbols` are the C library functions that it calls. NumPy is not needed.
    """
    with lock:
        target = _target()
        if target is None or not all(map(_is_found, symbols)):
            return None
        try:
            engine = _engine(*target, text)
            return MachineCode(name, engine.get_function_address(name), engine)
        except Exception:
            # The compiler may raise any exception; NumPy computes the same without it.
            return None


def as_ufunc(
    code: MachineCode | None, inputs: Sequence[str], outputs: Sequence[str], signature: str | None = None
) -> Loop | None:
    """The code wrapped as a ufunc over arrays of these dtypes; None if there is no code, or NumPy lacks the C API.

    With a `signature`, such as `(n),(m,n)->(m)`, it is a generalised ufunc.
    """
    make = None if code is None else _make()
    if code is None or make is None:
        return None
    import ctypes

    loops, data = (ctypes.c_void_p * 1)(code.address), (ctypes.c_void_p * 1)()
    types = ctypes.create_string_buffer(bytes(_TYPES[d] for d in (*inputs, *outputs)))
    called = ctypes.create_string_buffer(code.name.encode())
    axes = None if signature is None else ctypes.create_string_buffer(signature.encode())
    given = [
        ctypes.addressof(loops), ctypes.addressof(data), ctypes.addressof(types), 1, len(inputs), len(outputs), -1,
        ctypes.addressof(called), None, 0,
    ]  # fmt: skip
    ufunc = make.elementwise(*given) if axes is None else make.generalised(*given, ctypes.addressof(axes))
    # The ufunc refers to these objects as long as it lives.
    return Loop(ufunc, code, loops, data, types, called, axes)


@cache
def _target() -> tuple[Any, Any] | None:
    """The LLVM bindings and the target of this processor; None if llvmlite is missing or fails."""
    try:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        return llvm, llvm.Target.from_default_triple()
    except Exception:
        return None


def _engine(llvm: Any, target: Any, text: str) -> Any:
    machine = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
    module = llvm.parse_assembly(text)
    module.verify()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


@cache
def _is_found(symbol: str) -> bool:
    """Make a function of the C library known to LLVM; return whether it exists.

    Linking code to an unknown name would abort the process.
    """
    import ctypes

    import llvmlite.binding as llvm

    try:
        llvm.add_symbol(symbol, ctypes.cast(getattr(ctypes.pythonapi, symbol), ctypes.c_void_p).value)
    except AttributeError:
        return False
    return True


class _Makers(NamedTuple):
    """The functions of NumPy's C API that make ufuncs from loops."""

    elementwise: Callable[..., Any]
    generalised: Callable[..., Any]


@cache
def _make() -> _Makers | None:
    """The functions that make ufuncs; None if this NumPy does not expose them."""
    import ctypes

    try:
        table = import_module("numpy._core._multiarray_umath")._UFUNC_API
    except (ImportError, AttributeError):
        return None
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    functions = ctypes.cast(pointer(table, None), ctypes.POINTER(ctypes.c_void_p))
    signature = [*[ctypes.c_void_p] * 3, *[ctypes.c_int] * 4, *[ctypes.c_void_p] * 2, ctypes.c_int]
    return _Makers(
        ctypes.PYFUNCTYPE(ctypes.py_object, *signature)(functions[_FROM_LOOP]),
        ctypes.PYFUNCTYPE(ctypes.py_object, *signature, ctypes.c_void_p)(functions[_WITH_SIGNATURE]),
    )

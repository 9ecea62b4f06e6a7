"""Loops written in LLVM's language as functions of NumPy, compiled for this processor where `llvmlite` is installed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from threading import RLock
from typing import Any, NamedTuple

# NumPy's numbers for dtypes.
_TYPES = {"bool": 0, "float64": 12}
# In the table of the functions of NumPy's C interface.
_FROM_LOOP = 1
# LLVM is told one thing at a time; who holds this may ask for more.
lock = RLock()

if hasattr(os, "register_at_fork"):
    # Whatever another thread compiles is done before the process forks: in the new one nobody would end it.
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


class Code(NamedTuple):
    """Machine code for the loop `name`, at an `address`; it is there for as long as its `engine` is."""

    name: str
    address: int
    engine: Any


class Loop:
    """A loop as `ufunc`, NumPy's function around it: it takes arrays with steps, and as those of NumPy's own it frees the
    lock of Python's for long ones. The machine code lives for as long as this does."""

    __slots__ = ("_kept", "ufunc")

    def __init__(self, ufunc: Any, *kept: Any) -> None:
        self.ufunc = ufunc
        self._kept = kept


def is_there() -> bool:
    """Whether loops can be compiled."""
    with lock:
        return _target() is not None and _make() is not None


def code(name: str, text: str, symbols: Sequence[str] = ()) -> Code | None:
    """The loop `name` of a text, compiled; None where there is no `llvmlite`, or it fails. `symbols` are functions of the C
    library that it calls. It does without NumPy."""
    with lock:
        target = _target()
        if target is None or not all(map(_is_found, symbols)):
            return None
        try:
            engine = _engine(*target, text)
            return Code(name, engine.get_function_address(name), engine)
        except Exception:
            # Compilers fail in ways of their own, and NumPy computes the same.
            return None


def loop(code: Code | None, inputs: Sequence[str], outputs: Sequence[str]) -> Loop | None:
    """The code as a function of NumPy, over arrays of these dtypes; None where there is none, or NumPy does not take it."""
    if code is None or _make() is None:
        return None
    import ctypes

    loops, data = (ctypes.c_void_p * 1)(code.address), (ctypes.c_void_p * 1)()
    types = ctypes.create_string_buffer(bytes(_TYPES[d] for d in (*inputs, *outputs)))
    called = ctypes.create_string_buffer(code.name.encode())
    ufunc = _make()(
        ctypes.addressof(loops), ctypes.addressof(data), ctypes.addressof(types), 1, len(inputs), len(outputs), -1,
        ctypes.addressof(called), None, 0,
    )  # fmt: skip
    # The ufunc looks at all of them for as long as it lives.
    return Loop(ufunc, code, loops, data, types, called)


@cache
def _target() -> tuple[Any, Any] | None:
    """LLVM, and what it knows of this processor; None where it is not there, or fails."""
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
    """Have a function of the C library found. The process ends where code is linked to a name that is not."""
    import ctypes

    import llvmlite.binding as llvm

    try:
        llvm.add_symbol(symbol, ctypes.cast(getattr(ctypes.pythonapi, symbol), ctypes.c_void_p).value)
    except AttributeError:
        return False
    return True


@cache
def _make() -> Any:
    """What makes a ufunc of a loop in NumPy's C interface; None where NumPy does not have it there."""
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
    return ctypes.PYFUNCTYPE(ctypes.py_object, *signature)(functions[_FROM_LOOP])

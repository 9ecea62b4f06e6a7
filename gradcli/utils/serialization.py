"""Saves and loads tensors, state dicts and modules as `torch.save` and `torch.load`; the files are pickles."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from typing import IO, Any

from gradcli.errors import EvaluationError, GradcliError
from gradcli.io import output, system

Place = str | PathLike[str] | IO[bytes]

# The globals that a file may use with `weights_only`: calling them has no side effects.
_ALLOWED_GLOBALS = frozenset(
    {
        ("builtins", "complex"),
        ("builtins", "frozenset"),
        ("builtins", "set"),
        ("builtins", "slice"),
        ("collections", "Counter"),
        ("collections", "OrderedDict"),
        ("gradcli.arrays.shapes", "Size"),
        ("gradcli.autograd.dtype_names", "Dtype"),
        ("gradcli.autograd.tensor", "Tensor"),
        ("gradcli.nn.parameter", "Parameter"),
        ("numpy", "dtype"),
        ("numpy", "ndarray"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "scalar"),
        ("numpy._core.numeric", "_frombuffer"),
    }
)
# The exceptions that unpickling an invalid file can raise.
_NOT_READ = (pickle.UnpicklingError, EOFError, AttributeError, ImportError, IndexError, KeyError, TypeError, ValueError)
# The first bytes of a file that PyTorch wrote, a ZIP archive.
_ARCHIVE = b"PK\x03\x04"


def save(obj: Any, f: Place) -> None:
    """Write an object with tensors to a file: a path, or a binary stream. Raises OutputError if the path cannot be
    written; an existing file is replaced only after everything is written."""

    def write(file: IO[bytes]) -> None:
        pickle.dump(obj, file, protocol=pickle.HIGHEST_PROTOCOL)

    if isinstance(f, (str, PathLike)):
        output.write_atomically(fspath(f), write)
    else:
        write(f)


def load(f: Place, map_location: Any = None, *, weights_only: bool = True) -> Any:
    """Read an object that `save` wrote. With `weights_only`, a file with anything but tensors, numbers, strings and
    containers of these raises EvaluationError; without it, the file may run arbitrary code. `map_location` is ignored:
    arrays are on the CPU.
    """
    with _opened(f) as file:
        begin = file.read(len(_ARCHIVE))
        if begin == _ARCHIVE:
            raise EvaluationError(
                "this file is PyTorch's", hint="load it there: model.load_state_dict takes PyTorch's tensors too"
            )
        file.seek(-len(begin), 1)
        reader = _WeightsUnpickler(file) if weights_only else pickle.Unpickler(file)
        try:
            return reader.load()
        except GradcliError:
            raise
        except _NOT_READ as error:
            raise EvaluationError(f"this file cannot be loaded: {error}") from None


class _WeightsUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED_GLOBALS:
            raise EvaluationError(
                f"Weights only load failed: the file has a {module}.{name}",
                hint="weights_only=False loads it, and runs the code that it has; do so for a file that you trust",
            )
        return super().find_class(module, name)


@contextmanager
def _opened(place: Place) -> Iterator[Any]:
    if isinstance(place, (str, PathLike)):
        with system.reader(fspath(place)) as file:
            yield file
    else:
        yield place

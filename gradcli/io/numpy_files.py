"""Reading of NumPy's files, `.npy` and `.npz`, without loading pickles or trusting headers."""

from __future__ import annotations

import math
import warnings
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from gradcli import limits
from gradcli.errors import BindingError, GradcliError
from gradcli.io.source import Source
from gradcli.timing import phase

if TYPE_CHECKING:
    import zipfile

    import numpy
    from numpy.typing import NDArray

_DAMAGED = "write it again with numpy.save or numpy.savez"
# The largest compression ratio of deflate.
_DEFLATE_RATIO = 1032
# The longest header in bytes that NumPy accepts.
_MOST_HEADER = 20_000
# Bytes that are read at a time, which bounds the memory for an archive member beyond its array.
_CHUNK = 2**20
# Bytes that are decompressed for 1/8 of a step.
_UNPACKED = 64


def read_npy(source: Source) -> float | complex | NDArray[Any]:
    """The array of a `.npy` file. Raises BindingError where it does not hold a complete array of numbers."""
    source.refuse_member()
    return _read_array(source)


def read_npz(source: Source) -> float | complex | NDArray[Any]:
    """One array of a `.npz` file.

    Raises BindingError where there is no such array, or it is not a complete array of numbers.
    """
    import struct
    import zipfile
    import zlib

    try:
        with zipfile.ZipFile(source.stream) as archive:
            return _read_member(source, archive)
    except GradcliError:
        raise
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, RuntimeError) as error:
        raise source.error("it is damaged, or no .npz file (a zip archive)", _DAMAGED) from error


def _read_member(source: Source, archive: zipfile.ZipFile) -> float | complex | NDArray[Any]:
    from zipfile import ZIP_DEFLATED, ZIP_STORED

    suffix = ".npy"
    names = [name.removesuffix(suffix) for name in archive.namelist() if name.endswith(suffix)]
    entry = archive.getinfo(source.choose("array", names) + suffix)
    if entry.flag_bits & 1:
        raise source.error("it is encrypted", _DAMAGED)
    if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise source.error("it is compressed in a way that NumPy does not use", _DAMAGED)
    stored = min(entry.compress_size, source.size)
    size = min(entry.file_size, stored * _DEFLATE_RATIO)
    if entry.compress_type == ZIP_DEFLATED:
        limits.charge_steps(size // _UNPACKED)
    with archive.open(entry) as stream:
        return _read_array(source._replace(stream=cast(Any, stream), size=size))


def _read_array(source: Source) -> float | complex | NDArray[Any]:
    with phase("import"):
        import numpy

    header = _read_header(source)
    _check_dtype(source, header.dtype)
    _check_size(source, header)
    try:
        array = _read_data(source, header)
        # Signalling nans are converted without an error.
        with numpy.errstate(over="raise", invalid="ignore"):
            dtype = numpy.complex128 if array.dtype.kind == "c" else numpy.float64
            numbers = array.astype(dtype, order="C", copy=False)
    except FloatingPointError as error:
        raise source.error("it holds numbers too large for float64", "scale them down") from error
    except (ValueError, OverflowError, EOFError) as error:
        raise source.error("it is truncated or damaged", _DAMAGED) from error
    return numbers.item() if numbers.ndim == 0 else numbers


class _Header(NamedTuple):
    """The header of an array, whose data start at the byte `start`."""

    shape: tuple[int, ...]
    in_columns: bool
    dtype: numpy.dtype[Any]
    start: int


def _read_header(source: Source) -> _Header:
    from numpy.lib import format as npy

    # The read is bounded, whatever length the header claims.
    stream = BytesIO(source.stream.read(_MOST_HEADER))
    start = stream.read(npy.MAGIC_LEN)
    if start.startswith(b"\x80"):
        raise _pickled(source)
    if not start.startswith(npy.MAGIC_PREFIX) or len(start) < npy.MAGIC_LEN:
        raise source.error("it is no .npy file: it does not begin as one", _DAMAGED)
    readers = {
        b"\1\0": npy.read_array_header_1_0,
        b"\2\0": npy.read_array_header_2_0,
        b"\3\0": npy.read_array_header_2_0,
    }
    try:
        read_header = readers[start[-2:]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shape, in_columns, dtype = read_header(stream)
        # NumPy accepts a bool as a length.
        if not all(type(length) is int and length >= 0 for length in shape):
            raise ValueError("a length is no whole number")
    except Exception as error:
        # Malicious bytes reach Python's parser and tokenizer, which raise many types of errors.
        raise source.error("its header is damaged", _DAMAGED) from error
    return _Header(shape, in_columns, dtype, stream.tell())


def _read_data(source: Source, header: _Header) -> NDArray[Any]:
    """The array after its header. Raises ValueError where the data end too early, or the shape is invalid."""
    import numpy

    data = numpy.empty(math.prod(header.shape) * header.dtype.itemsize, numpy.uint8)
    source.stream.seek(header.start)
    left = data.data
    while left:
        count = source.stream.readinto(left[:_CHUNK])  # type: ignore[attr-defined]
        if not count:
            raise ValueError("it ends too early")
        left = left[count:]
    return data.view(header.dtype).reshape(header.shape, order="F" if header.in_columns else "C")


def _pickled(source: Source) -> BindingError:
    return source.error(
        "it holds Python objects (a pickle), which could run code and are never loaded",
        "save plain numbers: numpy.save(path, array.astype(float))",
    )


def _check_dtype(source: Source, dtype: numpy.dtype[Any]) -> None:
    if dtype.hasobject:
        raise _pickled(source)
    if dtype.kind not in "biufc":
        raise source.error(
            f"it holds elements of dtype {str(dtype)!r}, not numbers", "save an array of floats or integers"
        )


def _check_size(source: Source, header: _Header) -> None:
    """Raise BindingError for a header that claims more data than the file holds, before memory of that size is
    allocated."""
    count = math.prod(header.shape)
    source.check_elements(count)
    claimed, held = count * header.dtype.itemsize, max(source.size - header.start, 0)
    if claimed > held:
        raise source.error(
            f"it is truncated or damaged: its header claims {claimed} bytes of data, and {held} are there", _DAMAGED
        )
    limits.charge(count)

"""Reading of the values of `NAME=@PATH` and `NAME=@PATH:member`: text, tables, and NumPy's files without pickles."""

from __future__ import annotations

import math
import os
import stat
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from functools import partial
from io import BytesIO
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from gradcli import limits
from gradcli.errors import BindingError, GradcliError, Span, UsageError, closest_word, did_you_mean, locating
from gradcli.io import by_polars, file_formats, system, text_lines
from gradcli.io.json_numbers import charge_text, decode, expect_end, numbers, read_json
from gradcli.io.source import STANDARD_INPUT, Source, display_name
from gradcli.io.tables import read_table
from gradcli.named_tuples import NamedTuple
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
_NPY_CHUNK = 2**20
# Bytes that are decompressed for 1/8 of a step.
_UNPACKED = 64


def _read_npy(source: Source) -> float | complex | NDArray[Any]:
    """The array of a `.npy` file. Raises BindingError where it does not hold a complete array of numbers."""
    source.refuse_member()
    return _read_array(source)


def _read_npz(source: Source) -> float | complex | NDArray[Any]:
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
        count = source.stream.readinto(left[:_NPY_CHUNK])  # type: ignore[attr-defined]
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


# The charges for each object and each of its members, in units of 1/8 of a step, beyond that of its line.
_OBJECT, _MEMBER = 5, 1


def read_json_records(source: Source, members: Sequence[str | None]) -> list[NDArray[Any]]:
    """Read the values with the name of each member, or those of the only name for None.

    They have the shape (rows,), or (rows, …) for nested lists. Null and missing values are nan.

    Raises BindingError where a line is not an object, a name is in none of them, or a value is anything else.
    """
    sources = [source._replace(member=member) for member in members]
    records = _records(source)
    first = next(records, None)
    if first is None:
        raise source.error("it is empty", "give an object on each line")
    names = [s.choose("name", [*first]) if s.member is None else s.member for s in sources]
    found: dict[str, list[object]] = {name: [] for name in names}
    known = {*first}
    for record in chain([first], records):
        known.update(record.keys() & found.keys())
        for name, values in found.items():
            value = record.get(name)
            values.append("NaN" if value is None else value)
    for asked, name in zip(sources, names):
        if name not in known:
            raise asked.no_such_member("name", name, [*first])
    return [_array(asked, name, found[name]) for asked, name in zip(sources, names)]


def _records(source: Source) -> Iterator[dict[str, object]]:
    number = 0
    for lines in text_lines.lines(source, text_lines.beginning(source.stream, 3), source.stream):
        for line in lines:
            number += 1
            if line.strip():
                yield _record(source, line.rstrip("\r\n"), number)


def _record(source: Source, line: str, number: int) -> dict[str, object]:
    what = f"line {number} of {source.name}"
    charge_text(line)
    value, end = decode(line, 0, what, source.exact)
    expect_end(line, end, f"{what} goes on after its object", "put each object on a line of its own")
    if not isinstance(value, dict):
        raise source.error(f"line {number} is no object", 'give an object of names to values: {"x": 5, "y": [1, 2]}')
    limits.charge_steps(_OBJECT + _MEMBER * len(value))
    return value


def _array(asked: Source, name: str, values: list[object]) -> NDArray[Any]:
    try:
        array: Any = numbers(values, f"the list of {name!r}", asked.exact)
    except BindingError as error:
        raise asked.error(error.message, error.hint or "") from error
    asked.check_elements(array.size)
    return array  # type: ignore[no-any-return]


def read_columnar(source: Source, format: str) -> NDArray[Any]:
    """One column, with shape (rows,) and nan for nulls, of a Parquet or Arrow file.

    Structs {re, im} are complex numbers. Raises BindingError where Polars is not installed, the file is damaged, there
    is no such column, or it holds something other than numbers.
    """
    suffix = os.path.splitext(source.path)[1].lower()
    polars = by_polars.required(f"{source.path!r}, a {suffix} file,")
    errors = polars.exceptions
    try:
        # For damaged files, panics of Polars' threads are printed to standard error.
        with system.without_standard_error():
            source.stream.seek(0)
            return _read_column(source, polars, by_polars.scanned(polars, source.stream, format))
    except errors.DuplicateError as error:
        name = str(error).split("'")[1]
        raise source.error(f"it has more than one column {name!r}", "give the columns different names") from error
    except (errors.PolarsError, errors.PanicException, OSError) as error:
        if getattr(error, "errno", None):
            # The system could not read the file.
            raise
        raise source.error(f"it is damaged, or no {suffix} file", "write it again") from error


def _read_column(source: Source, polars: Any, file: Any) -> NDArray[Any]:
    import numpy

    schema = file.collect_schema()
    name = source.choose("column", schema.names())
    kind = schema[name]
    parts = by_polars.parts_of_complex(kind)
    if not (kind.is_numeric() or kind == polars.Boolean or parts):
        raise source.error(
            f"column {name!r} holds {kind}, not numbers",
            "choose a column of floats or integers, or of structs {re, im} for complex numbers",
        )
    rows = file.select(polars.len()).collect().item()
    source.check_elements(rows)
    # Charge the columns that are read and their copies in the array.
    limits.charge(2 * rows * max(1, len(parts)))
    column = polars.col(name)
    read = [column.struct.field(part) for part in parts] or [column]
    frame = file.select([part.cast(polars.Float64).fill_null(numpy.nan) for part in read]).collect()
    if not parts:
        return numpy.array(frame.to_series().to_numpy(), dtype=numpy.float64)
    found = numpy.empty(rows, numpy.complex128)
    found.real, found.imag = (frame[part].to_numpy() for part in parts)
    return found


# Readers of formats with one value, or with several of which one is chosen.
_READERS: dict[str, Callable[[Source], float | complex | NDArray[Any]]] = {
    "npy": _read_npy,
    "npz": _read_npz,
    "json": read_json,
    "parquet": partial(read_columnar, format="parquet"),
    "arrow": partial(read_columnar, format="arrow"),
}
# Readers that read several columns in one pass.
_TABLES: dict[str, Callable[[Source, Sequence[str | None]], Sequence[NDArray[Any]]]] = {
    "csv": read_table,
    "tsv": partial(read_table, separators=("\t",)),
    "jsonl": read_json_records,
}
# Bytes that are read at a time, and bytes of an array element.
_CHUNK, _ELEMENT = 2**20, 8
# The longest path in Linux.
_LONGEST_PATH = 4_096


class Reference(NamedTuple):
    """`PATH` or `PATH:member`, and the word of the command line that contains it at `offset`. The path `-` is standard
    input."""

    text: str
    word: str = ""
    offset: int = 0


class ValueReadOptions(NamedTuple):
    """The options for reading files. `form`, one of `file_formats.FORMS`, is the format of files whose names do not
    tell, and `standard_input` opens standard input. A value has at most `max_elements` numbers. With `exact`, numbers
    in text are `Written`, in object arrays."""

    max_elements: int | None = None
    exact: bool = False
    form: str | None = None
    standard_input: Callable[[], BinaryIO] | None = None


def read(reference: str, max_elements: int | None = None, exact: bool = False) -> float | complex | NDArray[Any]:
    """The numbers in the file that `reference`, `PATH` or `PATH:member`, names; see `read_all`."""
    return read_all([Reference(reference)], ValueReadOptions(max_elements, exact))[0]


def read_all(references: Sequence[Reference], options: ValueReadOptions) -> list[float | complex | NDArray[Any]]:
    """The numbers that references name; several columns of one file are read in one pass.

    A value is a float or a complex number where the file holds a single one without axes, otherwise a C-contiguous
    float64 or complex128 array in the file's shape; tables have shape (rows, columns), a single column (rows,). Raises BindingError, located in its word,
    where a file is missing, unreadable, damaged, holds something other than numbers, or more of them than the
    limit, and UsageError for a `form` that is unknown or not used.
    """
    files: dict[str, list[tuple[int, str | None]]] = {}
    for at, reference in enumerate(references):
        with _in_its_word(reference):
            path, member = _split(reference.text)
        files.setdefault(path, []).append((at, member))
    _check_form(options.form, files)
    values: dict[int, float | complex | NDArray[Any]] = {}
    for path, asked in files.items():
        members = [member for _, member in asked]
        try:
            values.update(zip([at for at, _ in asked], _read(path, members, options)))
        except GradcliError as error:
            wrong = getattr(error, "member", None)
            with _in_its_word(references[next((at for at, member in asked if member == wrong), asked[0][0])]):
                raise
    return [values[at] for at in range(len(references))]


def _check_form(form: str | None, paths: Iterable[str]) -> None:
    if form is None:
        return
    if form not in file_formats.FORMS:
        hint = did_you_mean(form, file_formats.FORMS, f"--from is one of {', '.join(file_formats.FORMS)}")
        raise UsageError(f"there is no form {form!r} to read", hint=hint)
    if all(file_formats.format_of_values(path) for path in paths):
        raise UsageError(
            "nothing is read of which --from says the form",
            hint="it is for standard input, as in x=@-, and for files whose name does not say it",
        )


def _in_its_word(reference: Reference) -> AbstractContextManager[None]:
    if not reference.word:
        return nullcontext()
    return locating(reference.word, Span(reference.offset, len(reference.word)))


def _read(
    path: str, members: Sequence[str | None], options: ValueReadOptions
) -> Sequence[float | complex | NDArray[Any]]:
    try:
        with _opened(path, options) as (form, source):
            if form in _TABLES:
                return _TABLES[form](source, members)
            values = {member: _READERS[form](source._replace(member=member)) for member in dict.fromkeys(members)}
            # Names must not share an array.
            return [
                copy(values[member]) if member in members[:at] else values[member] for at, member in enumerate(members)
            ]
    except OSError as error:
        raise _refused(path, error) from error
    except UnicodeDecodeError as error:
        raise _unreadable(path, "it is not UTF-8 text", "save it as UTF-8") from error
    except MemoryError as error:
        raise _unreadable(path, "it does not fit in memory", "give a smaller file") from error


@contextmanager
def _opened(path: str, options: ValueReadOptions) -> Iterator[tuple[str, Source]]:
    """A context with the format of a file and its source."""
    if path == STANDARD_INPUT and options.standard_input is not None:
        form, stream, size = _of_input(options.standard_input(), options.form)
        yield form, Source(path, None, stream, size, options.max_elements, options.exact)
        return
    size = _size(path)
    known = file_formats.format_of_values(path) or options.form
    if known is None:
        raise BindingError(
            f"cannot read {path!r}: its name does not end in a known suffix",
            hint=f"--from says what it holds, as in --from csv, or its suffix: {' '.join(file_formats.VALUE_EXTENSIONS)}",
        )
    with system.reader(path) as stream:
        yield known, Source(path, None, stream, size, options.max_elements, options.exact)


def _of_input(stream: BinaryIO, form: str | None) -> tuple[str, BinaryIO, int]:
    """The format of standard input, a stream to read it from like a file, and its size, 0 where that is not known."""
    start = stream.read(file_formats.SAMPLE_BYTES) if form is None else b""
    form = form or file_formats.detected_format(start)
    if form not in file_formats.FORMS:
        raise _unreadable(STANDARD_INPUT, f"it is a .{form} file", f"save it, and read that: @data.{form}")
    stream = text_lines.prepended(start, stream)
    if form != "npy":
        return form, stream, 0
    # The reader of .npy seeks in its stream.
    content = bytearray()
    while part := stream.read(_CHUNK):
        limits.charge(len(part) // _ELEMENT)
        content += part
    return form, BytesIO(content), len(content)


def is_standard_input(reference: str) -> bool:
    return reference.partition(":")[0] == STANDARD_INPUT


def _split(reference: str) -> tuple[str, str | None]:
    """The path and the member of a reference. A path may contain ':' itself, so that existing files decide."""
    if is_standard_input(reference):
        path, colon, member = reference.partition(":")
        return path, member if colon else None
    if not reference:
        raise BindingError("no file is named after '@'", hint="write NAME=@PATH, such as x=@data.npy")
    ends = [len(reference), *_colons(reference)]
    supported = [end for end in ends if file_formats.format_of_values(reference[:end])]
    there = (end for end in supported or ends if system.exists(reference[:end]))
    end = next(there, (supported or ends[:1])[-1])
    return reference[:end], None if end == len(reference) else reference[end + 1 :]


def _colons(reference: str) -> Iterator[int]:
    """The offsets at which a path may end, the longest first."""
    end = min(len(reference), _LONGEST_PATH)
    while (end := reference.rfind(":", 1, end)) > 0:
        yield end


def _size(path: str) -> int:
    """The size in bytes of a regular file. Other files are refused, as reading them could block or never end."""
    try:
        status = system.status(path)
    except OSError as error:
        raise _refused(path, error) from error
    if stat.S_ISDIR(status.st_mode):
        raise _unreadable(path, "it is a directory", "name a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise _unreadable(path, "it is no regular file", "copy its data to a file first")
    return status.st_size


def _unreadable(path: str, reason: str, hint: str) -> BindingError:
    return BindingError(f"cannot read {display_name(path)}: {reason}", hint=hint)


def _refused(path: str, error: OSError) -> BindingError:
    if isinstance(error, FileNotFoundError):
        return _unreadable(path, "there is no such file", _missing_hint(path))
    if isinstance(error, PermissionError):
        return _unreadable(path, "permission denied", "make it readable: chmod u+r")
    return _unreadable(path, error.strerror or str(error), "check the path and the file")


def _missing_hint(path: str) -> str:
    directory, name = os.path.split(path)
    current = system.current_directory()
    if current is None and not os.path.isabs(path):
        return "the current directory was removed: cd to another"
    try:
        names = [entry for entry in system.names_in(directory or ".") if file_formats.format_of_values(entry)]
    except OSError:
        return f"there is no directory {directory!r}, or it cannot be listed"
    close = closest_word(name, names)
    if close:
        return f"did you mean {os.path.join(directory, close)!r}?"
    return f"paths are relative to the current directory, {current!r}"

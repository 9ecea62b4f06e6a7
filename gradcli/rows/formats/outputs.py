"""The outputs of a run over tables: which inputs each is made of, and its format."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import IO

from gradcli.errors import UsageError
from gradcli.io import system
from gradcli.io.file_formats import TABLE_EXTENSIONS
from gradcli.named_tuples import NamedTuple
from gradcli.rows.formats.sources import format_of, packed

# Standard input, as a source, and standard output.
STDIN = STDOUT = "-"
# The names of formats.
NAMES = tuple(dict.fromkeys(TABLE_EXTENSIONS.values()))
# Extensions that leave the format open: it is then that of the input.
_OPEN = ("", ".txt", ".dat")


class OutputTarget(NamedTuple):
    """An output: its path (None for standard output), the inputs it is made of, its format and compression where they
    differ from those of the input, and the directory where it is one of several files."""

    path: str | None
    sources: Sequence[str]
    format: str | None
    compression: str | None
    directory: str | None = None


def targets(sources: Sequence[str], output: str | None, to: str | None) -> list[OutputTarget]:
    """The outputs of a run over `sources`: one, or one for each source where `output` is a directory.

    Raises UsageError for an unknown format or extension, and where a file would be written twice or is an input.
    """
    check_format(to)
    if output is None or output == STDOUT:
        return [OutputTarget(None, sources, to, None)]
    if not _is_directory(output, sources):
        if to is None and not _is_open(output):
            check_path(output, ", or --to says it")
        found = [_target(output, sources, to)]
    else:
        paths = [os.path.join(output, _name(source, to)) for source in sources]
        found = [_target(path, [source], to)._replace(directory=output) for path, source in zip(paths, sources)]
    _check(found, sources)
    return found


def check_format(to: str | None) -> None:
    """Raise UsageError for an unknown format."""
    if to is not None and to not in NAMES:
        raise UsageError(f"there is no format {to!r}", hint=f"--to {' or '.join(NAMES)}")


def check_path(path: str, otherwise: str = "") -> None:
    """Raise UsageError for a path without the extension of a table format; `otherwise` is text for the hint that names
    other ways to choose the format."""
    if format_of(path)[0] is None:
        raise UsageError(
            f"the name '{path}' does not say what to write", hint=f"it ends in {', '.join(TABLE_EXTENSIONS)}{otherwise}"
        )


def _is_open(path: str) -> bool:
    """Return whether the extension of a path leaves the format open."""
    compression = format_of(path)[1]
    stem = path[: -len(compression) - 1] if compression else path
    return os.path.splitext(stem)[1].lower() in _OPEN


def _is_directory(output: str, sources: Sequence[str]) -> bool:
    if output.endswith(("/", os.sep)) or system.is_directory(output):
        return True
    return len(sources) > 1 and format_of(output)[0] is None and not system.exists(output)


def _target(path: str, sources: Sequence[str], to: str | None) -> OutputTarget:
    format, compression = format_of(path)
    return OutputTarget(path, sources, to or format, compression)


def _name(source: str, to: str | None) -> str:
    """The name of the results of a file in a directory."""
    if source == STDIN:
        raise UsageError("the results of standard input have no name in a directory", hint="--output PATH.csv")
    name = os.path.basename(source)
    format, compression = format_of(name)
    if to is None or format == to:
        return name
    stem = name.removesuffix(f".{compression}") if compression else name
    return os.path.splitext(stem)[0] + _ending(to)


def _ending(format: str) -> str:
    return next(ending for ending, name in TABLE_EXTENSIONS.items() if name == format)


def _check(found: Sequence[OutputTarget], sources: Sequence[str]) -> None:
    read = {system.real_path(source) for source in sources if source != STDIN}
    seen: set[str] = set()
    for target in found:
        path = system.real_path(target.path or "")
        if path in read:
            raise UsageError(f"'{target.path}' is read and would be written", hint="give the output another name")
        if path in seen:
            raise UsageError(f"two tables would be written to '{target.path}'", hint="run the command for each of them")
        seen.add(path)


def compressing(stream: IO[bytes], write: Callable[[IO[bytes]], object], compression: str | None) -> None:
    """Call `write` with a stream, or with one that compresses into it. Raises BindingError where the library for the
    compression is not installed."""
    if compression is None:
        write(stream)
        return
    with packed(stream, compression) as inner:
        write(inner)

"""The manifest of a run in parts: a file that records which parts are done, is consistent at any time, and lets a later
run resume."""

from __future__ import annotations

import json
import os
import stat
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gradcli.errors import BindingError, GradcliError, UsageError
from gradcli.io import json_text, output, system
from gradcli.named_tuples import NamedTuple
from gradcli.rows.formats.sources import is_url

# The name of the file, and the prefix of those of parts.
_NAME = "gradcli-{}.json"
PREFIX = "part-"
# The version of the format. Later versions of gradcli may add keys within a schema, and read all earlier schemas.
_SCHEMA = 1
_WAITING, _DONE, _FAILED = "waiting", "done", "failed"
_LONGEST = 2**31
_LONGEST_SHOWN = 80
# The largest share of the run time that writing the manifest may take; it is long with many parts.
_SHARE = 0.05
_ANEW = "leave out --resume and name another directory to start anew"


class InputFile(NamedTuple):
    """An input file as it was found: its size in bytes and its modification time in nanoseconds, None for a URL."""

    path: str
    size: int | None
    modified: int | None


class Part(NamedTuple):
    """Rows of the input with index `input`: the bytes, or the rows of a columnar file, from `start` to before `end`;
    the whole file where these are None. Where `input` is None, the groups from `start` to before `end` of all inputs as
    one table."""

    input: int | None
    start: int | None
    end: int | None


def found(path: str) -> InputFile:
    """The input at a path. Raises OSError where there is no such file, and BindingError for one that can be read only
    once."""
    if is_url(path):
        return InputFile(path, None, None)
    status = system.status(path)
    if not stat.S_ISREG(status.st_mode):
        raise BindingError(f"{path!r} is no regular file", hint="copy its data to a file first: all workers read it")
    return InputFile(path, status.st_size, status.st_mtime_ns)


class Manifest:
    """The parts of a run of a `command` in a directory, and the result of each.

    `job` is what is computed, as data for `json`. The result of a part is None until it is done; then it has its
    counts, or the reason of its failure under `error`.
    """

    def __init__(
        self, directory: str, command: str, version: str, job: Mapping[str, Any], inputs: Sequence[InputFile]
    ) -> None:
        self.directory = directory
        self.job = job
        self.inputs = inputs
        self.parts: list[Part] = []
        self.results: list[dict[str, Any] | None] = []
        self._command = command
        self._head = {"schema": _SCHEMA, "version": version, **job}
        self._formats: list[str] = []
        self._lines: list[str] = []
        self._written = self._taken = 0.0

    @property
    def file(self) -> str:
        return _path(self.directory, self._command)

    def divide(
        self, parts: Iterable[Part], formats: Iterable[str], results: Iterable[dict[str, Any] | None] = ()
    ) -> None:
        """Set the parts of the inputs; `formats` are those of the parts of each input, or one for all."""
        self.parts, self._formats = [*parts], [*formats]
        self.results = [*results] or [None] * len(self.parts)
        self._lines = [self._line(part) for part in range(len(self.parts))]

    @property
    def rows(self) -> int:
        """The number of rows of all parts that are done."""
        return sum(result["rows_in"] for result in self.results if result is not None and "error" not in result)

    def name(self, part: int) -> str:
        """The name of the file of a part."""
        digits = max(5, len(str(len(self.parts) - 1)))
        return f"{PREFIX}{part:0{digits}}.{self._formats[self.parts[part].input or 0]}"

    def path(self, part: int) -> str:
        return os.path.join(self.directory, self.name(part))

    def parts_without_files(self) -> Iterator[int]:
        """The parts that are done but whose files are missing or have another size."""
        for part, result in enumerate(self.results):
            if _state(result) == _DONE:
                there = system.status_or_none(self.path(part))
                if there is None or there.st_size != (result or {})["bytes"]:
                    yield part

    def record(self, part: int, result: dict[str, Any]) -> None:
        """Record the result of a part. The file is saved only from time to time; parts lost when the process is killed
        are computed again."""
        self.results[part] = result
        self._lines[part] = self._line(part)
        if time.monotonic() - self._written > self._taken / _SHARE:
            self.save()

    def save(self) -> None:
        """Write the file. Raises OutputError where that fails."""
        began = time.monotonic()
        head = self._head | {"inputs": [each._asdict() for each in self.inputs], "formats": self._formats}
        counts = Counter(map(_state, self.results))
        head |= {"rows": self.rows, "parts_done": counts[_DONE], "parts_missing": len(self.parts) - counts[_DONE]}
        members = [f"{json.dumps(key)}:{json_text.dumps(value)}" for key, value in head.items()]
        text = ",\n".join([*members, '"parts":[\n'])
        content = ["{", text, ",\n".join(self._lines), "\n]}\n"]
        output.write_atomically(self.file, lambda stream: stream.write("".join(content).encode()), on_disk=True)
        self._written = time.monotonic()
        self._taken = self._written - began

    def _line(self, part: int) -> str:
        result = self.results[part]
        line = {"file": self.name(part), **self.parts[part]._asdict(), "state": _state(result)}
        return json_text.dumps(line if result is None else line | {"result": result})

    def resume(self, record: Mapping[str, Any]) -> None:
        """Resume the run that left `record`. Parts that failed are to be computed again.

        Raises UsageError where the run is another one: of another program, of other or changed inputs, or by another
        version.
        """
        try:
            self._check(record)
            parts = [Part(*(line[field] for field in Part._fields)) for line in record["parts"]]
            self.divide(parts, record["formats"], [line.get("result") for line in record["parts"]])
            failed = (part for part, result in enumerate(self.results) if _state(result) == _FAILED)
            gone = [*self.parts_without_files(), *failed]
        except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
            raise _damaged(self.file) from error
        for part in gone:
            self.results[part] = None
            self._lines[part] = self._line(part)

    def _check(self, record: Mapping[str, Any]) -> None:
        if record["version"] != self._head["version"]:
            raise UsageError(
                f"the run in {self.directory!r} is one of gradcli {record['version']}, not {self._head['version']}",
                hint=f"go on with that version, or {_ANEW}",
            )
        mine = dict(_members(self._head))
        theirs = dict(_members({key: record[key] for key in self._head}))
        for place in {**mine, **theirs}:
            before, now = (json_text.dumps(members.get(place)) for members in (theirs, mine))
            if before != now and place != ("schema",):
                raise UsageError(
                    f"the run in {self.directory!r} has another {place[-1]}: {_short(before)}, not {_short(now)}",
                    hint=f"go on with the same, or {_ANEW}",
                )
        self._check_inputs([InputFile(*(each[field] for field in InputFile._fields)) for each in record["inputs"]])

    def _check_inputs(self, earlier: Sequence[InputFile]) -> None:
        if [each.path for each in earlier] != [each.path for each in self.inputs]:
            others = sorted({each.path for each in earlier} ^ {each.path for each in self.inputs})
            which = f", as {others[0]!r}" if others else ", or in another order"
            raise UsageError(
                f"the run in {self.directory!r} has other inputs{which}", hint=f"name the same, or {_ANEW}"
            )
        for before, now in zip(earlier, self.inputs):
            if before != now:
                raise UsageError(f"{now.path!r} has changed since the run began", hint=_ANEW)


def _state(result: Mapping[str, Any] | None) -> str:
    return _WAITING if result is None else _FAILED if "error" in result else _DONE


def _path(directory: str, command: str) -> str:
    return os.path.join(directory, _NAME.format(command))


def read_record(directory: str, command: str) -> Mapping[str, Any] | None:
    """The record that a run of a command left in a directory, None where there is none. Raises UsageError for an
    invalid one."""
    path = _path(directory, command)
    if not system.exists(path):
        return None
    try:
        record = json.loads(system.read_text(path, _LONGEST))
    except OSError as error:
        raise GradcliError(f"cannot read {path!r}: {error.strerror or error}", hint="check the path") from error
    except (ValueError, RecursionError) as error:
        raise _damaged(path) from error
    if not isinstance(record, dict) or not isinstance(record.get("schema"), int):
        raise _damaged(path)
    if record["schema"] > _SCHEMA:
        raise UsageError(f"{path!r} is of a later gradcli", hint="go on with that")
    return record


def _damaged(path: str) -> UsageError:
    return UsageError(f"{path!r} is damaged, or of something else", hint=_ANEW)


def _members(record: Mapping[str, Any], place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The leaves of nested objects with their paths."""
    for key, value in record.items():
        if isinstance(value, dict):
            yield from _members(value, (*place, key))
        else:
            yield (*place, key), value


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"

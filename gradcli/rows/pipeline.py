"""The pipeline of a run over rows: blocks are parsed and evaluated in parallel, and written in the order of the
input."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, TypeVar

from gradcli import arrays
from gradcli.errors import GradcliError, LimitError, ShapeError
from gradcli.limits import MAX_LIMITED_ROWS
from gradcli.named_tuples import NamedTuple
from gradcli.rows.element_columns import ElementColumns, Shapes, shapes_of
from gradcli.rows.evaluation import EvaluatedRows, TableEvaluation
from gradcli.rows.failures import Failure, TextForNumber, failure_of
from gradcli.rows.formats.blocks import MOST_LOST, RowBlock, UnparsedPiece, numbers_at, without
from gradcli.rows.formats.reading import ColumnSelection, TableReader
from gradcli.rows.formats.writing import Writer, check_width, writer
from gradcli.rows.plan import Plan

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

Item = TypeVar("Item")
Made = TypeVar("Made")

# Threads in addition to one per core, since blocks sometimes wait for Polars, which has its own threads.
_MORE_THREADS = 1


class FailurePolicy(NamedTuple):
    """The treatment of rows that fail: they are written without results, or left out with `skip`. More than
    `max_failures` failures end the run, where that is not None."""

    skip: bool = False
    max_failures: int | None = None

    @property
    def texts_fail(self) -> bool:
        """True if rows with a text in place of a number count as failures."""
        return self.skip or self.max_failures is not None


class ReportedRow(NamedTuple):
    """A row with results that are not finite, or have few digits: its number, its table, and the inputs of its program."""

    row: int
    source: str
    inputs: Mapping[str, Any]


class RunReport(NamedTuple):
    """The counts of a run: rows read and written, rows without results since a number is `missing` or since they
    `failed`, and rows with results that are not finite; the first row of the latter two kinds; names of members that
    are `lost`, as the output has no column for them; how many missing numbers are `texts`, with the first; and rows with
    results that are `inaccurate`, with the first."""

    rows_in: int = 0
    rows_out: int = 0
    missing: int = 0
    failed: int = 0
    nonfinite: int = 0
    first_failure: Failure | None = None
    first_nonfinite: ReportedRow | None = None
    lost: tuple[str, ...] = ()
    texts: int = 0
    first_text: TextForNumber | None = None
    inaccurate: int = 0
    first_inaccurate: ReportedRow | None = None

    def plus(self, later: RunReport) -> RunReport:
        """The report of two consecutive runs together."""
        return RunReport(
            self.rows_in + later.rows_in,
            self.rows_out + later.rows_out,
            self.missing + later.missing,
            self.failed + later.failed,
            self.nonfinite + later.nonfinite,
            self.first_failure or later.first_failure,
            self.first_nonfinite or later.first_nonfinite,
            tuple(dict.fromkeys((*self.lost, *later.lost)))[:MOST_LOST] if later.lost else self.lost,
            self.texts + later.texts,
            self.first_text or later.first_text,
            self.inaccurate + later.inaccurate,
            self.first_inaccurate or later.first_inaccurate,
        )


class RunProgress(NamedTuple):
    """The progress of a run: the bytes read and the rows."""

    size: int
    rows: int


class _Worked(NamedTuple):
    """An evaluated block with what the writer prepared, the number of rows that are not finite, the first of them, and
    the sorted indices of rows that failed. `evaluated` keeps only those errors that may be reported."""

    block: RowBlock
    source: str
    size: int
    evaluated: EvaluatedRows
    prepared: Any
    nonfinite: int
    first: int | None
    failed: NDArray[numpy.intp]


def run_rows(
    readers: Iterable[TableReader],
    plan: Plan,
    format: str,
    stream: IO[bytes],
    policy: FailurePolicy,
    progress: Callable[[RunProgress], object] = lambda _: None,
    threads: int | None = None,
    shapes: Shapes | None = None,
) -> RunReport:
    """Evaluate the rows of some tables one after the other, and write them to a stream. A table is requested when the
    rows before it have been read; all have the same columns, and are written like the first one.

    At most `threads` blocks are processed at a time, about one per core where that is None, and a bounded number is in
    memory. The `shapes` of results default to those of the first row with results. The output depends neither on the
    number of threads nor on the size of blocks. Raises RowError where more rows fail than the policy allows, after the
    rows before are written.
    """
    threads = threads or (os.cpu_count() or 1) + _MORE_THREADS
    if threads > 1:
        share_malloc_arenas()
    run = _Run(readers, plan, format, stream, policy, shapes)
    try:
        with closing(run.pieces()) as pieces, closing(_in_order(run.work, pieces, threads, run.ready)) as done:
            for worked in done:
                run.finish(worked)
                progress(RunProgress(run.size, run.report.rows_in))
        return run.close()
    except BaseException:
        run.abandon()
        raise


def first_shapes(reader: TableReader, plan: Plan, format: str) -> Shapes | None:
    """The shapes of the results of the first rows of a table, None where it has no rows."""
    piece = next(iter(reader.pieces(_chosen(plan, format))), None)
    return None if piece is None else shapes_of(_evaluated(TableEvaluation(plan), piece.block()), plan.results)


def _chosen(plan: Plan, format: str) -> ColumnSelection:
    return ColumnSelection(plan.needed, plan.kept, plan.texts, format, [*plan.results.values()])


def _evaluated(evaluation: TableEvaluation, block: RowBlock) -> EvaluatedRows:
    return evaluation.run(block.rows, block.numbers.__getitem__, block.texts.__getitem__, block.failed)


class _Run:
    """The state of one run: what threads do to blocks in parallel, and what is done to them in order."""

    def __init__(
        self,
        readers: Iterable[TableReader],
        plan: Plan,
        format: str,
        stream: IO[bytes],
        policy: FailurePolicy,
        shapes: Shapes | None,
    ) -> None:
        self._readers = iter(readers)
        self._reader = self._first = next(self._readers)
        check_width(format, self._first, plan.kept)
        self._chosen = _chosen(plan, format)
        # Some readers prefetch while the program is compiled, which imports NumPy.
        self._begun = self._first.pieces(self._chosen)
        self._plan = plan
        self._format = format
        self._stream = stream
        self._policy = policy
        most = MAX_LIMITED_ROWS if policy.max_failures is None else policy.max_failures
        self._evaluation = TableEvaluation(plan, most_limited=most, texts_fail=policy.texts_fail)
        self._spread = ElementColumns(plan.results, format, shapes)
        self._writer: Writer | None = None
        # The number of rows of the tables before the current one, and its name.
        self._before, self._source = 0, ""
        self.report = RunReport()
        self.size = 0
        self._limited_rows = 0

    def pieces(self) -> Generator[tuple[TableReader, UnparsedPiece], None, None]:
        """The pieces of all tables, in order."""
        for piece in self._begun:
            yield self._first, piece
        for reader in self._readers:
            self._reader = reader
            for piece in reader.pieces(self._chosen):
                yield reader, piece

    def ready(self) -> bool:
        """Return whether a piece is available without waiting."""
        return self._reader.ready()

    def work(self, piece: tuple[TableReader, UnparsedPiece]) -> _Worked:
        """Parse, evaluate and prepare a block. The first block must be processed alone, as it determines how results
        are written."""
        reader, part = piece
        block = part.block()
        evaluated = _evaluated(self._evaluation, block)
        if self._writer is None:
            self.begin(evaluated)
        evaluated = self._spread.columns(evaluated)
        failed = arrays.numpy_namespace().asarray(sorted(evaluated.failures), "intp")
        prepared, (nonfinite, first) = self._prepared(block, evaluated, failed), _nonfinite(evaluated)
        if len(failed):
            evaluated = evaluated._replace(failures=self._told(evaluated.failures, failed.tolist()))
        elif first is None and not evaluated.inaccurate:
            # Free the numbers, which are not needed any more, while the block waits to be written.
            block, evaluated = RowBlock(block.rows, {}, lost=block.lost), evaluated._replace(results={})
        return _Worked(block, reader.name, part.size, evaluated, prepared, nonfinite, first, failed)

    def _told(self, failures: Mapping[int, GradcliError], rows: Sequence[int]) -> dict[int, GradcliError]:
        """The errors of a block that may be reported: the first, and those that may end the run."""
        most = self._policy.max_failures
        if most is not None:
            return {row: failures[row] for row in rows[: most + 1]}
        limited = [row for row in rows if isinstance(failures[row], LimitError)][: MAX_LIMITED_ROWS + 1]
        return {row: failures[row] for row in sorted({*rows[:1], *limited})}

    def begin(self, evaluated: EvaluatedRows | None) -> None:
        """Open the writer, for results like these."""
        names = self._spread.names(evaluated)
        if not names and not (self._first.columns if self._plan.kept is None else self._plan.kept):
            raise ShapeError(
                "the results have no elements, and no column is left to write",
                hint="JSON lines, Parquet and Arrow hold empty lists: --to jsonl",
            )
        self._writer = writer(self._format, self._stream, names, like=self._first, kept=self._plan.kept)

    def _prepared(
        self, block: RowBlock, evaluated: EvaluatedRows, failed: NDArray[numpy.intp], until: int | None = None
    ) -> Any:
        """The prepared rows, without those that `failed` where they are skipped, and without those from `until` on."""
        gone = failed if self._policy.skip else failed[:0]
        skip = None
        if len(gone) or until is not None:
            skip = arrays.numpy_namespace().zeros(block.rows, "bool")
            skip[gone] = True
            if until is not None:
                skip[until:] = True
        assert self._writer is not None
        return self._writer.prepared(block, evaluated.results, evaluated.null, skip)

    def finish(self, worked: _Worked) -> None:
        """Write a block and update the report. Raises RowError where a row of it ends the run."""
        if worked.source != self._source:
            self._before, self._source = self.report.rows_in, worked.source
        most = self._policy.max_failures
        ending = self._limited(worked) if most is None else self._beyond(worked, most - self.report.failed)
        assert self._writer is not None
        if ending is not None:
            self._writer.write(self._prepared(worked.block, worked.evaluated, worked.failed, ending))
            self._writer.close()
            raise self._failure(worked, ending).error()
        self._writer.write(worked.prepared)
        # The reader of a pipe may be waiting for these rows.
        self._stream.flush()
        self.size += worked.size
        self.report = self.report.plus(self._of_block(worked))

    def _beyond(self, worked: _Worked, most: int) -> int | None:
        """The index of the row that fails after `most` others of a block, None where there is none."""
        return int(worked.failed[most]) if len(worked.failed) > most else None

    def _limited(self, worked: _Worked) -> int | None:
        """The index of the row that ends a run although any row may fail: if every row used up its limits, the run
        would not end."""
        for index, error in sorted(worked.evaluated.failures.items()):
            self._limited_rows += isinstance(error, LimitError)
            if self._limited_rows > MAX_LIMITED_ROWS:
                return index
        return None

    def _of_block(self, worked: _Worked) -> RunReport:
        failed = len(worked.failed)
        return RunReport(
            rows_in=worked.block.rows,
            rows_out=worked.block.rows - (failed if self._policy.skip else 0),
            missing=int(arrays.numpy_namespace().count_nonzero(worked.evaluated.null)) - failed,
            failed=failed,
            nonfinite=worked.nonfinite,
            first_failure=None
            if not failed or self.report.first_failure
            else self._failure(worked, int(worked.failed[0])),
            first_nonfinite=None
            if worked.first is None or self.report.first_nonfinite
            else self._odd(worked, worked.first),
            lost=tuple(worked.block.lost),
            texts=worked.evaluated.words,
            first_text=None if self.report.first_text else self._text(worked),
            inaccurate=len(worked.evaluated.inaccurate),
            first_inaccurate=None
            if not worked.evaluated.inaccurate or self.report.first_inaccurate
            else self._odd(worked, worked.evaluated.inaccurate[0]),
        )

    def _number(self, index: int) -> int:
        """The number of a row of this block in its table, counted from 1."""
        return self.report.rows_in - self._before + index + 1

    def _odd(self, worked: _Worked, index: int) -> ReportedRow:
        return ReportedRow(
            self._number(index), worked.source, self._inputs(worked.block, index) | dict(self._plan.asked.shared)
        )

    def _text(self, worked: _Worked) -> TextForNumber | None:
        word = worked.evaluated.first_word
        return None if word is None else TextForNumber(self._number(word.row), worked.source, word.name, word.text)

    def _failure(self, worked: _Worked, index: int) -> Failure:
        inputs = self._inputs(worked.block, index)
        return failure_of(self._number(index), worked.source, inputs, worked.evaluated.failures[index])

    def _inputs(self, block: RowBlock, index: int) -> dict[str, Any]:
        """The inputs of the program for a row."""
        if index in block.failed or self._plan.program is None:
            return {}
        return numbers_at({name: block.numbers[column] for name, column in self._plan.columns.items()}, index)

    def abandon(self) -> None:
        if self._writer is not None:
            self._writer.abandon()

    def close(self) -> RunReport:
        """Finish the output. Raises GradcliError where the number of written rows is not the expected one."""
        if self._writer is None:
            self.begin(None)
        assert self._writer is not None
        self._writer.close()
        if self._writer.rows != self.report.rows_out:
            raise GradcliError(
                f"internal error: {self.report.rows_out:,} rows were to be written, and {self._writer.rows:,} were",
                hint="this is a fault of gradcli; the output is not to be used",
            )
        return self.report


def _nonfinite(evaluated: EvaluatedRows) -> tuple[int, int | None]:
    """The number of rows with results that are not finite, and the index of the first."""
    np = arrays.numpy_namespace()
    some = None
    for found in evaluated.results.values():
        # A quick test, as most arrays are finite; masked elements are only considered below.
        if found.dtype.kind == "O" or np.count_nonzero(np.isfinite(np.asarray(found))) == found.size:
            continue
        values, null = without(found, evaluated.null)
        bad = (~np.isfinite(values)).reshape(len(values), -1).any(1) & ~null
        some = bad if some is None else some | bad
    if some is None or not some.any():
        return 0, None
    return int(some.sum()), int(some.argmax())


def _in_order(
    function: Callable[[Item], Made], items: Iterator[Item], threads: int, ready: Callable[[], bool]
) -> Generator[Made, None, None]:
    """The function of each item, in their order, computed by several threads; at most about `threads` results are
    pending.

    The first item is computed alone, and so is one after which no other is `ready`, since its result may be awaited.
    """
    yield from map(function, islice(items, 1 if threads > 1 else None))
    waiting: deque[Future[Made]] = deque()
    with ThreadPoolExecutor(threads, "gradcli-rows") as pool:
        try:
            for item in items:
                alone = not ready()
                if not alone:
                    waiting.append(pool.submit(function, item))
                while waiting and (alone or len(waiting) > threads):
                    yield waiting.popleft().result()
                if alone:
                    yield function(item)
            while waiting:
                yield waiting.popleft().result()
        finally:
            for made in waiting:
                made.cancel()


# --- malloc arenas

# M_ARENA_MAX in glibc's malloc.h.
_ARENA_MAX = -8
_ARENAS = 2


def share_malloc_arenas() -> None:
    """Make all threads that start later allocate from two arenas.

    By default glibc uses an arena for each thread, up to eight per core, and each retains memory of freed blocks of
    rows: 50 MB of 380 on two cores. Blocks are few and large, so that threads rarely wait for an arena.
    """
    if sys.platform != "linux":
        return
    import ctypes

    set_option = getattr(ctypes.pythonapi, "mallopt", None)
    if set_option is not None:
        set_option(_ARENA_MAX, _ARENAS)

"""What must hold for every program: one check without prints and comparisons, and one with all of them."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import tempfile
import traceback
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from gradcli import limits
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import gradients
from gradcli.errors import AccuracyWarning, GradcliError
from gradcli.language.interpreter import loop_policy
from gradcli.language.interpreter.machine import Rolling
from gradcli.language.interpreter.run import evaluate
from gradcli.language.syntax import parse
from tests.fuzz.case import Case, Finding

# The limits that programs run under, so that many of them run in a second.
MAX_STEPS = 1_000
MAX_ELEMENTS = 100_000
# Seconds of one program's own time, under these limits, and what it may add to the memory of the process.
SLOW = 5.0
MEBIBYTES = 200
# What has no place in a message: names of Python's or a library's insides.
_INSIDES = re.compile(
    r"internal error|Traceback|<class|<function|<built-in|<lambda|<module|<gradcli| object at |0x[0-9a-f]{6,}|site-packages|/gradcli/"
    r"|\.py\b|\bnumpy\.|\bscipy\.|NoneType|\bndarray\b|dtype\('|(?<![\w.])array\((?!…)|\bTensor\(|__[a-z]\w*?__|\bself\b|'(?:float|int|str|tuple|list|dict|bool)'"
    r"|\b(?:Value|Type|Index|Key|Attribute|ZeroDivision|Overflow|Runtime|Recursion|Assertion)Error\b"
)


class TooLong(BaseException):
    """A program took more than its time. No Exception, so that nothing takes it for an error of the program."""


Check = Callable[[Case], Finding | None]


def guarded(check: Check, case: Case, seconds: float = SLOW) -> Finding | None:
    """What `check` finds, or that it took too long, too much memory, or raised what is no GradcliError."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with _alarm(seconds):
            found = check(case)
    except TooLong as late:
        return Finding(f"slow: {_place(late)}", f"more than {seconds} s")
    except (Exception, RecursionError) as error:
        return foreign(error)
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    if found is None and more > MEBIBYTES:
        return Finding("memory", f"{more:.0f} MiB more")
    return found or _printed()


def foreign(error: BaseException) -> Finding:
    """That what is no GradcliError left the package."""
    text = "".join(traceback.format_exception(error)[-6:])
    return Finding(f"{type(error).__name__}: {_place(error)}", text)


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(_number: int, _frame: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _place(error: BaseException) -> str:
    """The function of gradcli where an exception came from."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "/gradcli/" in f.filename] or list(frames)
    return f"{own[-1].filename.rpartition('/gradcli/')[2]}:{own[-1].name}" if own else "?"


# --- quick


def quick(case: Case) -> Finding | None:
    """Parse, evaluate and differentiate, or an error of ours."""
    try:
        program = parse(case.program)
        with limits.within(MAX_STEPS, MAX_ELEMENTS):
            leaves = {n: Tensor(v).requires_grad_() for n, v in case.arrays().items()}
            value = evaluate(program, leaves).value
            if not isinstance(value, Tensor):
                return None
            found = gradients(value, list(leaves.values()), Tensor(np.ones(value.shape)), retain_graph=False)
    except GradcliError as error:
        return wrong_error(error)
    for leaf, gradient in zip(leaves.values(), found):
        if gradient is not None and gradient.shape != leaf.shape:
            return Finding("shape of a gradient", f"{gradient.shape} for a leaf of shape {leaf.shape}")
    return None


# --- loops


# The limits of programs that are run round by round, too.
_STEPS_OF_ROUNDS = 30_000
# The largest difference of a number from that of the rounds, relative to the largest one.
_DIFFERENCE = 1e-9


def rolled(case: Case) -> Finding | None:
    """That a loop that is run as a whole gives what its rounds give, one by one."""
    if not re.search(r"\brange\(|\bwhile\b|_loop\(|\bscan\(", case.program):
        return None
    as_written, worth = _numbers(case, "never"), loop_policy._WORTH_TRACING
    loop_policy._WORTH_TRACING = 0
    try:
        found = _numbers(case, "early")
    finally:
        loop_policy._WORTH_TRACING = worth
    if as_written is None or found is None:
        # Which limit is reached first, and the error of a later round, may differ.
        return None
    for name, number in as_written.items():
        if (number is None) != (found[name] is None) or (number is not None and not _agree(number, found[name])):
            return Finding("a loop as a whole", f"{name}: {found[name]}, round by round {number}")
    return None


def _numbers(case: Case, rolling: Rolling) -> dict[str, Any] | None:
    """The value and the gradients, None where there are none."""
    try:
        program = parse(case.program)
        with limits.within(_STEPS_OF_ROUNDS, MAX_ELEMENTS):
            leaves = {n: Tensor(v).requires_grad_() for n, v in case.arrays().items()}
            value = evaluate(program, leaves, rolling=rolling).value
            if not isinstance(value, Tensor):
                return None
            found = gradients(value, list(leaves.values()), Tensor(np.ones(value.shape)), retain_graph=False)
    except GradcliError:
        return None
    return {"the value": value.detach().numpy(), **{n: None if g is None else g.numpy() for n, g in zip(leaves, found)}}


def _agree(a: Any, b: Any) -> bool:
    with np.errstate(all="ignore"):
        size = np.max(np.abs(a[np.isfinite(a)]), initial=0.0) if np.shape(a) else np.abs(a)
        return bool(np.allclose(a, b, rtol=_DIFFERENCE, atol=_DIFFERENCE * min(size, 1e300), equal_nan=True))


def wrong_error(error: GradcliError) -> Finding | None:
    """What is wrong with an error, if anything."""
    text = error.report()
    source = error.source or ""
    placed = error.span if error.source is not None else None
    if not isinstance(error.message, str) or not error.message.strip():
        return Finding("error without a message", text)
    if placed is not None and not 0 <= placed.start <= placed.end <= len(source):
        return Finding(f"place outside of the text: {kind_of(error.message)}", f"{placed}\n{text}")
    strict_json(json.dumps(error.as_json()))
    return wrong_words(f"{error.message}\n{error.hint or ''}", source)


def wrong_words(text: str, source: str) -> Finding | None:
    """That a message names the insides of Python, which the source does not. Names are told as they are read, as NFKC
    has them."""
    source += unicodedata.normalize("NFKC", source)
    for match in _INSIDES.finditer(text):
        # A name may be told with more behind it.
        if match[0].strip("'( /").rstrip("_") not in source:
            return Finding(f"insides in a message: {match[0]}: {kind_of(text)}", text)
    return None


def kind_of(message: str) -> str:
    """A message without what differs from case to case."""
    return re.sub(r"'[^']*'|\[[^]]*\]|[\d.,]+(?:e[+-]?\d+)?", "_", message.splitlines()[0] if message else "")[:80]


def strict_json(text: str) -> Any:
    """Raises ValueError for what is no JSON, or has numbers in it that JSON lacks."""

    def refused(name: str) -> Any:
        raise ValueError(f"{name} in JSON")

    return json.loads(text, parse_constant=refused)


# --- full


def full(case: Case) -> Finding | None:
    """Every reading, and every command."""
    from tests.fuzz import commands, disagreement

    found = quick(case) or rolled(case)
    if found is None and not case.is_complex:
        # `python -m tests.fuzz.complex_modes` compares the ways of complex programs.
        found = disagreement.disagreement(case)
    return found or commands.wrong_output(case)


MODES: dict[str, Check] = {"quick": quick, "loops": rolled, "full": full}


def prepare(gibibytes: int) -> None:
    """Have warnings raise, allocations of more than so much fail, and what libraries print seen, in this process."""
    global _spilt
    warnings.simplefilter("error")
    # That digits are lost is said of the right numbers.
    warnings.simplefilter("ignore", AccuracyWarning)
    resource.setrlimit(resource.RLIMIT_AS, (gibibytes << 30, gibibytes << 30))
    _spilt = tempfile.TemporaryFile()  # noqa: SIM115
    for descriptor in (1, 2):
        os.dup2(_spilt.fileno(), descriptor)


# What is printed past gradcli, where somebody looks.
_spilt: IO[bytes] | None = None


def _printed() -> Finding | None:
    if _spilt is None or not os.fstat(_spilt.fileno()).st_size:
        return None
    _spilt.seek(0)
    text = _spilt.read().decode(errors="replace")
    os.truncate(_spilt.fileno(), 0)
    _spilt.seek(0)
    return Finding(f"a library prints: {kind_of(text)}", text)

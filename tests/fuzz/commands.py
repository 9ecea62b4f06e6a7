"""Every command prints what it should: strict JSON, carets under the text, formulas that mean what they say."""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from gradcli.cli.commands.graph import FORMATS
from gradcli.cli.main import main
from gradcli.cli.process.environment import Environment
from gradcli.errors import GradcliError
from gradcli.formulas import languages
from gradcli.language.names import scope
from gradcli.language.syntax import parse
from gradcli.primitives import table
from tests.fuzz import checks
from tests.fuzz.case import Case, Finding

LIMITS = (f"--max-steps={checks.MAX_STEPS}", f"--max-elements={checks.MAX_ELEMENTS}")
_EVAL = (
    (), ("--jacobian",), ("--order=1",), ("--order=2",), ("--order=3",), ("--order=2", "--sparse"), ("--order=6",), ("--nodes",),
    ("--dtype=float32",), ("--dtype=float32", "--order=2"), ("--executor=compiled",), ("--executor=eager",), ("--no-grad",),
    ("--no-rewrite",), ("--grad-output=1",), ("--grad-output=[1, 2]",), ("--grad-output=ones(2, 2)", "--jacobian"), ("--order=20",),
    ("--fail-on-nonfinite",), ("--retain=a,b,y",), ("--wrt=x",), ("--const=x",), ("--order=2", "--jacobian", "--nodes"),
    ("--dtype=float32", "--jacobian"), ("--dtype=float32", "--executor=compiled"), ("--order=1000000",), ("--wrt=zz",), ("--order=-1",),
)  # fmt: skip
_CHECK = ((), ("--order=2",), ("--order=3",), ("--tolerance=1e-3",), ("--wrt=x",))
_DIFF = ((), (), (), ("--order=2",), ("--order=3",), ("--wrt=x",))
_GRAPH = (
    (),
    ("--values",),
    ("--expand",),
    ("--values", "--expand"),
    ("--values", "--no-grad"),
    ("--values", "--grad-output=1"),
)
# Where reverse mode and differences differ by intention, or where jumps may lie between one number and the next, as
# those of ceil beyond 2**53.
ON_PURPOSE = re.compile(
    r"backward|detach|stop_gradient|cholesky|eigh|eigvalsh|%|//|mod|remainder|floor|ceil|round|rint|trunc|fix|frac"
)
# Of whole numbers all alike: far out, where floats are whole, differences see nothing of them.
_PERIODIC = re.compile(r"sinpi|cospi|sinc")
_WHOLE = 2.0**52
_CARETS = re.compile(r"^( *| *\d+ )\| ( *)(\^+)$")


class Printed(NamedTuple):
    """What a command line did."""

    arguments: Sequence[str]
    status: int
    out: str
    err: str


def run(arguments: Sequence[str], stdin: str = "") -> Printed:
    """A command line, in this process."""
    out, err = io.StringIO(), io.StringIO()
    status = main(arguments, Environment(io.StringIO(stdin), out, err, {"COLUMNS": "100"}))
    return Printed(arguments, int(status), out.getvalue(), err.getvalue())


def wrong_output(case: Case) -> Finding | None:
    """What is wrong with what the commands print for a case; which of their options are used depends on its draw."""
    rng = Random(case.draw)
    lines = _lines(case, rng)
    for line in lines:
        printed = run(line)
        found = wrong(printed, case.program)
        if found is not None:
            return found._replace(detail=f"{list(line)}\n{found.detail}")
    return None


def _lines(case: Case, rng: Random) -> list[list[str]]:
    """The command lines to try."""
    try:
        reads = scope.free_names(parse(case.program))
        words = case._replace(bindings={n: v for n, v in case.bindings.items() if n in reads}).words()
    except GradcliError:
        words = case.words()
    program = case.program
    first = [program, *words]
    lines = [
        ["eval", *first, "--json", *rng.choice(_EVAL), *LIMITS],
        ["eval", *first, *rng.choice(_EVAL), *LIMITS],
        [
            "diff",
            *(first if rng.random() < 0.5 else [program]),
            "--to",
            rng.choice(languages.NAMES),
            *rng.choice(_DIFF),
            *LIMITS,
        ],
        ["graph", *first, "--to", rng.choice([*FORMATS]), *rng.choice(_GRAPH), *LIMITS],
    ]
    if rng.random() < 0.3:
        lines[2].append("--json")
    # Differences take ten times as long as the rest.
    if rng.random() < 0.2:
        lines.append(["check", *first, *rng.choice(_CHECK), "--json", *LIMITS])
    if rng.random() < 0.05:
        lines.append(["ops", rng.choice((program, rng.choice(table.names())))])
    # What would be an option is no program.
    return [line for line in lines if line[1] != "-" and not line[1].startswith("--")]


def wrong(printed: Printed, source: str) -> Finding | None:
    """What is wrong with what was printed."""
    command = printed.arguments[0]
    typed = "\n".join(printed.arguments)
    if printed.status not in (0, 1, 2):
        return Finding(f"{command}: exit status {printed.status}", printed.err)
    if printed.status and not printed.err and "--fail-on-nonfinite" not in printed.arguments:
        return Finding(f"{command}: fails without a word", printed.out)
    found = checks.wrong_words(printed.err, typed) or _wrong_carets(printed.err)
    if found is not None:
        return found._replace(key=f"{command}: {found.key}")
    wants_json = "--json" in printed.arguments or (command == "graph" and "--to\njson" in typed)
    if wants_json:
        return _wrong_json(printed)
    if printed.status == 0 and not printed.out.strip():
        return Finding(f"{command}: prints nothing", printed.err)
    return None


def _wrong_json(printed: Printed) -> Finding | None:
    command = printed.arguments[0]
    texts = [printed.out] if printed.status == 0 or printed.out else []
    texts += [printed.err] if printed.err else []
    for text in texts:
        if not text.endswith("\n") or text.count("\n") != 1:
            return Finding(f"{command}: JSON is not one line", text)
        try:
            checks.strict_json(text)
            text.encode("utf-8")
        except ValueError as error:
            return Finding(f"{command}: JSON is not strict", f"{error}\n{text}")
    if command == "check" and '"problem":"mismatch"' in printed.out and not _is_blind(*printed.arguments[1:]):
        return Finding("check: reverse mode and differences disagree", printed.out)
    return None


def _is_blind(program: str, *words: str) -> bool:
    """Whether differences say nothing of a derivative."""
    program = unicodedata.normalize("NFKC", program)
    numbers = re.findall(r"\d[\d.]*(?:e[+-]?\d+)?", " ".join(words))
    return bool(
        ON_PURPOSE.search(program) or (_PERIODIC.search(program) and any(float(number) >= _WHOLE for number in numbers))
    )


def _wrong_carets(text: str) -> Finding | None:
    """Carets that stand behind the text that they should stand under."""
    lines = ["", *text.split("\n"), ""]
    for above, line, below in zip(lines, lines[1:], lines[2:]):
        marks = _CARETS.match(line)
        # A text of carets alone has carets under it.
        if marks is None or _CARETS.match(below):
            continue
        _, bar, shown = above.partition("| ")
        if not bar:
            return Finding("carets without a text", text)
        if len(marks[2]) + len(marks[3]) > _width(shown) + 1:
            return Finding("carets outside of the text", text)
    return None


def _width(text: str) -> int:
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)

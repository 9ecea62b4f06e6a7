"""Programs of a corpus, spoilt: tokens and characters that are left out, doubled, exchanged or made up."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from random import Random

from gradcli.errors import GradcliError
from gradcli.language.syntax import parse
from gradcli.primitives import table
from tests.fuzz import values
from tests.fuzz.case import Case

TESTS = Path(__file__).resolve().parent.parent
_LONGEST = 240
_TOKEN = re.compile(r"\w+(?:\.\d+)?(?:[eE][+-]?\d+)?|\s+|\*\*|//|[<>=!]=|\.\.\.|\"[^\"]*\"|'[^']*'|.", re.DOTALL)
_WORDS = """
    ( ) [ ] { } , ; : = == != < <= > >= + - * / // % @ ** ^ . ... ' " # \\ ! | & ~ $ ? += -= ** -- ++ => -> :: '' () [] {} [[]] ,, ;; <>
    if else for in while and or not True False None backward def lambda return import class is from with print elif break continue pass
    0 1 2 -1 0.5 1e999 1e-999 1__0 0x10 1j 1e 00 9999999999999999999 1e18 x y q v A f g i n e pi tau inf nan σ x² √x 2x x! |x| ∞ ½ · × −
    diff jacobian hessian detach axis=0 keepdims=True ord=x n=2 .T .mT .shape .ndim .size .real .__class__ .sum() [0] [-1] [None] [...]
    [::-1] [99] [x] [0.5] (x) @x .x x. np. torch. np.linalg. __import__ self range(3) range(x) range(1e9) zeros(3) [] (1,) (,) f(x)=x
"""
_TOKENS = (*_WORDS.split(), " ", "\n", "\r\n", "\t", "  ", "\n\n")
_CHARACTERS = (
    "()[]{},;:=<>+-*/%@^.'\"#\\!|&~$?`_ \t\n\r\f\v\x00\x01\x1b\x7f\x85\xa0\xad0123456789eExXjnN"
    "é文😀𝟙²½∞√·×÷−≤≥≠π∛µｘＡ①Ⅷ٣א\u0301\u200b\u200d\u202e\u2028\u2029\ufeff\ufffd\uffff\U0010ffff\ud800\udcff"
)


class _Literal(Case):
    """A string of a test, which may be no program."""


@cache
def corpus(further: str | None = None) -> Sequence[Case]:
    """The programs that the tests have, and those of the JSON lines of a file or of the files of a folder `further`.

    Of the strings in tests it has those too that are no programs: `drawn` leaves them out, so that not all are parsed.
    """
    found: dict[str, Case] = {}
    files = [*sorted((TESTS / "data").glob("*.jsonl"))]
    if further is not None:
        path = Path(further)
        files += [path] if path.is_file() else sorted(path.glob("*.jsonl"))
    for file in files:
        for line in file.read_text("utf-8").splitlines():
            case = Case.of_line(line)
            found.setdefault(case.program, case)
    for text in _literals(sorted(TESTS.rglob("test_*.py"))):
        found.setdefault(text, _Literal(text, {}))
    return tuple(found.values())


def drawn(rng: Random, cases: Sequence[Case]) -> Case:
    """A program of the corpus."""
    while True:
        case = rng.choice(cases)
        if type(case) is not _Literal or _is_program(case.program):
            return case


def _literals(files: Iterable[Path]) -> Iterable[str]:
    """The short strings of Python sources that may be programs."""
    for file in files:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and 2 < len(node.value) <= _LONGEST:
                yield node.value


@cache
def _is_program(text: str) -> bool:
    if text.isidentifier() or not text.strip():
        return False
    try:
        return bool(parse(text).body)
    except GradcliError:
        return False


def from_corpus(rng: Random, cases: Sequence[Case]) -> Case:
    """A program of the corpus as it is, with numbers of its own or with others."""
    case = drawn(rng, cases)
    if rng.random() < 0.3 and case.bindings:
        return case._replace(draw=rng.getrandbits(32))
    return Case(case.program, numbers_for(case.program, rng), rng.getrandbits(32))


@cache
def _known() -> frozenset[str]:
    words = "if else for in while and or not True False None backward diff jacobian hessian detach np torch math jnp numpy linalg"
    return frozenset((*table.names(), *words.split()))


def numbers_for(text: str, rng: Random) -> dict[str, object]:
    """Values of any shape for what look like names."""
    policy = rng.choice(values.POLICIES)
    names = [n for n in dict.fromkeys(re.findall(r"[^\W\d]\w*", text)) if n not in _known() and len(n) < 12][:6]
    shape = values.any_shape(rng)
    return {n: values.tensor(rng, policy, shape if rng.random() < 0.7 else values.any_shape(rng)) for n in names}


def mutated(case: Case, rng: Random, cases: Sequence[Case]) -> Case:
    """The case with its text spoilt in one to four places."""
    text = case.program
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        text = _in_characters(text, rng) if rng.random() < 0.25 else _in_tokens(text, rng, cases)
    given = case.bindings
    if not given or rng.random() < 0.2:
        given = numbers_for(text, rng)
    return Case(text[:2000], given, rng.getrandbits(32))


def _in_characters(text: str, rng: Random) -> str:
    at = rng.randint(0, len(text))
    roll = rng.random()
    if roll < 0.3:
        return text[:at] + text[at + rng.choice((1, 1, 2, 5)) :]
    if roll < 0.7:
        return text[:at] + rng.choice(_CHARACTERS) + text[at:]
    if roll < 0.9:
        return text[:at] + rng.choice(_CHARACTERS) + text[at + 1 :]
    return text[:at] + text[at : at + 3] * rng.choice((2, 3, 30)) + text[at + 3 :]


def _in_tokens(text: str, rng: Random, cases: Sequence[Case]) -> str:
    tokens = _TOKEN.findall(text)
    if not tokens:
        return rng.choice(_TOKENS)
    at, other = rng.randrange(len(tokens)), rng.randrange(len(tokens))
    roll = rng.random()
    if roll < 0.15:
        del tokens[at : at + rng.choice((1, 1, 2, 4))]
    elif roll < 0.4:
        tokens[at] = rng.choice(_TOKENS)
    elif roll < 0.55:
        tokens.insert(at, rng.choice(_TOKENS))
    elif roll < 0.65:
        tokens[at], tokens[other] = tokens[other], tokens[at]
    elif roll < 0.75:
        tokens[at] = rng.choice(table.names())
    elif roll < 0.85:
        low, high = sorted((at, other))
        tokens[low:low] = tokens[low : high + 1]
    elif roll < 0.95:
        foreign = _TOKEN.findall(drawn(rng, cases).program)
        start = rng.randrange(len(foreign))
        tokens[at:at] = foreign[start : start + rng.randint(1, 12)]
    else:
        tokens[at] = f"({tokens[at]})" if rng.random() < 0.5 else repr(rng.choice(values.EDGES))
    return "".join(tokens)

"""Compares the lengths of printed derivatives with those of Maxima and SymPy: the formulas of derivatives.jsonl.

Spaces are not counted, and Maxima's `^`, `%pi` and `%e^x` are counted as `**`, `pi` and `exp(x)`. Derivatives by
vectors and matrices, which SymPy and Maxima cannot express, are compared with textbook forms. Each text is checked to
have the values of the derivative by reverse mode.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measure import circumstances, publish

import gradcli
from gradcli.formulas import languages
from gradcli.formulas.symbolic import derivatives_as_formulas
from gradcli.language.parsing import parse_charged

LIST = Path(__file__).with_name("derivatives.jsonl")
POINTS = 20
# The texts are evaluated at points from these ranges, in turn, where the derivative is finite.
RANGES = ((0.3, 0.9), (1.1, 2.9), (-0.9, -0.3))
CLOSE = 1e-8
OURS, MAXIMA, SYMPY = "gradcli", "Maxima, ratsimp", "SymPy, simplify"


class Derivative(NamedTuple):
    """A derivative to print: `values` are those of tensors, and `textbook` is the textbook form for these."""

    program: str
    wrt: str
    values: Mapping[str, Any] = {}
    textbook: str | None = None


def derivatives() -> Sequence[Derivative]:
    return [Derivative(**json.loads(line)) for line in LIST.read_text(encoding="utf-8").splitlines()]


# --- the texts


def by_gradcli(derivative: Derivative) -> str:
    formulas = derivatives_as_formulas(parse_charged(derivative.program), _arrays(derivative), [derivative.wrt])
    return languages.document("text", formulas).text


def _arrays(derivative: Derivative) -> dict[str, Any]:
    return {name: np.asarray(value, "float64") for name, value in derivative.values.items()}


def by_sympy(derivatives: Sequence[Derivative]) -> Mapping[str, Sequence[str]]:
    import sympy

    def found(derivative: Derivative) -> Any:
        names = {n: sympy.Symbol(n, real=True) for n in re.findall(r"\b[A-Za-z]\b", derivative.program)}
        return sympy.diff(sympy.sympify(derivative.program, locals=names), names[derivative.wrt])

    plain = [found(d) for d in derivatives]
    texts = {"SymPy, diff": plain, SYMPY: [sympy.simplify(p) for p in plain]}
    return {name: [str(f).replace("Abs(", "abs(") for f in found] for name, found in texts.items()}


def by_maxima(derivatives: Sequence[Derivative]) -> Mapping[str, Sequence[str]]:
    lines = ["display2d:false$ linel:100000$"]
    for derivative in derivatives:
        found = f"diff({derivative.program.replace('**', '^')}, {derivative.wrt})"
        lines += [f'print("=", string({f}))$' for f in (found, f"ratsimp({found})")]
    run = subprocess.run(
        ["maxima", "--very-quiet"], input="\n".join(lines), capture_output=True, text=True, check=True, timeout=600
    )
    texts = [in_python(line.split("= ", 1)[1].strip()) for line in run.stdout.splitlines() if "= " in line]
    return {"Maxima, diff": texts[::2], MAXIMA: texts[1::2]}


def in_python(text: str) -> str:
    """A text of Maxima in Python's notation."""
    text = text.replace("%pi", "pi")
    while (start := text.find("%e^")) >= 0:
        end = _end_of_exponent(text, start + 3)
        exponent = text[start + 3 : end]
        whole = exponent.startswith("(") and _end_of_operand(exponent, 0) == len(exponent)
        text = f"{text[:start]}exp{exponent if whole else f'({exponent})'}{text[end:]}"
    return text.replace("^", "**")


def _end_of_exponent(text: str, start: int) -> int:
    end = _end_of_operand(text, start + (text[start] == "-"))
    return _end_of_exponent(text, end + 1) if text[end : end + 1] == "^" else end


def _end_of_operand(text: str, start: int) -> int:
    """The end of a number, a name, a call or a parenthesised expression."""
    end = start
    while end < len(text) and (text[end].isalnum() or text[end] in "%._"):
        end += 1
    depth = 0
    while end < len(text) and (depth or text[end] == "("):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return end


# --- their values


def check(derivative: Derivative, texts: Mapping[str, str]) -> Sequence[str]:
    """The names of the programs whose texts have other values than reverse mode at some points."""
    draw = random.Random(1)
    program = gradcli.compile(derivative.program)
    others = [name for name in program.inputs if name not in {"pi", *derivative.values}]
    wrong = set()
    compiled = {whose: gradcli.compile(text) for whose, text in texts.items()}
    for i in range(POINTS):
        point = {
            "pi": math.pi,
            **_arrays(derivative),
            **{name: draw.uniform(*RANGES[i % len(RANGES)]) for name in others},
        }
        _, found = program.value_and_grad({name: point[name] for name in program.inputs}, wrt=[derivative.wrt])
        right = _flat(found[derivative.wrt])
        for whose, formula in compiled.items():
            value = formula(**{name: point[name] for name in formula.inputs})
            if not all(_near(a, b) for a, b in zip(right, _flat(value), strict=True)):
                wrong.add(whose)
    return sorted(wrong)


def _flat(value: Any) -> list[float]:
    value = value.tolist() if hasattr(value, "tolist") else value
    return [x for item in value for x in _flat(item)] if isinstance(value, list) else [float(value)]


def _near(first: float, second: float) -> bool:
    return not math.isfinite(first) or math.isclose(first, second, rel_tol=CLOSE, abs_tol=CLOSE)


def length(text: str) -> int:
    return len(text.replace(" ", ""))


# --- tables


def all_texts(wanted: Sequence[Derivative]) -> list[dict[str, str]]:
    """The texts of each derivative, by program."""
    found: list[dict[str, str]] = [{OURS: by_gradcli(d)} for d in wanted]
    scalars = [i for i, d in enumerate(wanted) if d.textbook is None]
    peers = dict(by_sympy([wanted[i] for i in scalars]))
    if shutil.which("maxima"):
        peers |= by_maxima([wanted[i] for i in scalars])
    for name, texts in peers.items():
        for i, text in zip(scalars, texts, strict=True):
            found[i][name] = text
    for derivative, texts in zip(wanted, found):
        if derivative.textbook is not None:
            texts["books"] = derivative.textbook
    return found


def summary(found: Sequence[Mapping[str, str]]) -> str:
    """For each other program, how often gradcli's text is shorter, as long and longer, and the total lengths."""
    lines = ["| beside | formulas | shorter | as long | longer | characters | gradcli's |", "|---|" + "---:|" * 6]
    for peer in dict.fromkeys(name for texts in found for name in texts if name != OURS):
        pairs = [(length(texts[OURS]), length(texts[peer])) for texts in found if peer in texts]
        counts = [
            sum(1 for a, b in pairs if a < b),
            sum(1 for a, b in pairs if a == b),
            sum(1 for a, b in pairs if a > b),
        ]
        cells = [len(pairs), *counts, sum(b for _, b in pairs), sum(a for a, _ in pairs)]
        lines.append(f"| {peer} | " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def longer(wanted: Sequence[Derivative], found: Sequence[Mapping[str, str]]) -> str:
    """A table of derivatives for which another text is shorter."""
    lines = ["| derivative of | gradcli | shorter |", "|---|---|---|"]
    for derivative, texts in zip(wanted, found):
        best = min((texts[name] for name in (MAXIMA, SYMPY, "books") if name in texts), key=length)
        if length(best) < length(texts[OURS]):
            lines.append(f"| `{derivative.program}` | `{texts[OURS]}` | `{best}` |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="print every text")
    parser.add_argument("--write", action="store_true", help="put the tables into README.md")
    options = parser.parse_args()
    wanted = derivatives()
    found = all_texts(wanted)
    for derivative, texts in zip(wanted, found):
        wrong = check(derivative, texts)
        if options.all or wrong:
            print(f"{derivative.program} by {derivative.wrt}")
            for name, text in texts.items():
                print(f"  {length(text):4d} {name:16s} {text}{'  WRONG' if name in wrong else ''}")
    about = circumstances(["sympy"])
    tables = {"printed derivatives": summary(found), "where another text is shorter": longer(wanted, found)}
    publish(options, "formulas", about, tables)


if __name__ == "__main__":
    main()

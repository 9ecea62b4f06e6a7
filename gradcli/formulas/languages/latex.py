"""Code generation: programs as LaTeX formulas."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.formulas.languages.text import OUTER, key_text, sizes
from gradcli.formulas.simplification.numbers import written_fraction
from gradcli.formulas.writing.documents import Document, Formulas, separate_formulas
from gradcli.formulas.writing.naming import Naming, names_of
from gradcli.formulas.writing.text_writer import (
    ATOM,
    COMPARE,
    CONDITIONAL,
    POWER,
    PRODUCT,
    SUM,
    TIMES,
    UNARY,
    BooleanConversion,
    Fragment,
    Language,
    UnsupportedPrimitiveError,
    operators,
    with_body,
    write,
)
from gradcli.primitives.entries.linear import latin
from gradcli.program import program_constants
from gradcli.program.ir import Equation

_LETTERS = dict(zip("αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ", """alpha beta gamma delta epsilon zeta eta theta iota kappa
    lambda mu nu xi pi rho sigma tau upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi
    Omega""".split(), strict=True))  # fmt: skip # noqa: SIM905
_GREEK = frozenset(_LETTERS.values())
# LaTeX accents by the combining character after the letter.
_ACCENTS = {
    "\u0300": "grave", "\u0301": "acute", "\u0302": "hat", "\u0303": "tilde", "\u0304": "bar", "\u0306": "breve",
    "\u0307": "dot", "\u0308": "ddot", "\u030a": "mathring", "\u030c": "check", "\u20d7": "vec",
}  # fmt: skip


def latex(formulas: Formulas) -> Document:
    """Each derivative as a formula."""
    names = names_of(formulas.value, LANGUAGE.naming)
    return separate_formulas(formulas, lambda program: write(program, LANGUAGE, names).result)


def _spellings(name: str) -> Iterator[str]:
    """The conventional spelling of a name, unless it is that of a constant, then the name spelled out."""
    found = _variable(name)
    if found not in (None, "e", r"\pi"):
        yield found
    yield _spelled_out(name)


def _elements(spelled: str, key: Sequence[int]) -> Iterator[str]:
    """The name with a subscript; a name that has a subscript already, or whose subscripted name is taken, in
    parentheses."""
    places = ", ".join(map(str, key))
    if "_" not in spelled:
        yield f"{spelled}_{{{places}}}"
    while True:
        spelled = f"\\left({spelled}\\right)"
        yield f"{spelled}_{{{places}}}"


def _variable(name: str) -> str | None:
    """A name with Greek letters as commands, and a trailing number or the parts after underscores as subscript; None
    for empty parts."""
    head, *tail = name.split("_")
    digits = re.fullmatch(r"([^\d]+)(\d+)", head)
    if digits and not tail:
        head, *tail = digits.groups()
    if not all([head, *tail]):
        return None
    return _word(head) + (f"_{{{', '.join(map(_word, tail))}}}" if tail else "")


def _word(word: str) -> str:
    if word in _GREEK:
        return f"\\{word}"
    letter, *accents = list(unicodedata.normalize("NFD", word))
    if len(accents) == 1 and accents[0] in _ACCENTS:
        return f"\\{_ACCENTS[accents[0]]}{{{_word(letter)}}}"
    if word in _LETTERS:
        return f"\\{_LETTERS[word]}"
    return word if word.isascii() and (len(word) == 1 or word.isdigit()) else _spelled_out(word)


def _spelled_out(name: str) -> str:
    style = "mathrm" if name.isascii() else "text"
    return f"\\{style}{{{name}}}".replace("_", r"\_")


def _number(value: Any) -> Fragment:
    if arrays.dtype_name(value) == "bool":
        return Fragment(f"\\text{{{str(bool(value)).lower()}}}")
    value = float(value)
    if value != value:
        return Fragment(r"\text{nan}")
    if math.copysign(1.0, value) < 0:
        return Fragment(f"-{_number(-value).text}", UNARY)
    named = {math.pi: r"\pi", math.e: "e", math.inf: r"\infty"}
    if value in named:
        return Fragment(named[value])
    fraction = written_fraction(value)
    if fraction is not None:
        return Fragment(f"\\frac{{{fraction.numerator}}}{{{fraction.denominator}}}", POWER)
    mantissa, _, exponent = repr(value).removesuffix(".0").partition("e")
    return Fragment(f"{mantissa} \\cdot 10^{{{int(exponent)}}}", TIMES) if exponent else Fragment(mantissa)


def _array(constant: Any) -> Fragment:
    element = program_constants.uniform(constant)
    if element is not None:
        return Fragment(
            f"\\operatorname{{full}}\\left({sizes(arrays.shape(constant))}, {_number(element).text}\\right)"
        )
    if len(arrays.shape(constant)) > 2:
        return Fragment(r"\text{constant}")
    limits.charge_steps(limits.UNITS_PER_STEP * arrays.size(constant))
    rows = arrays.tolist(constant)
    rows = rows if len(arrays.shape(constant)) == 2 else [[n] for n in rows]
    body = r" \\ ".join(" & ".join(_number(n).text for n in row) for row in rows)
    return Fragment(f"\\begin{{pmatrix}} {body} \\end{{pmatrix}}")


def _bracketed(piece: Fragment, level: int) -> str:
    return piece.text if piece.level >= level else f"\\left({piece.text}\\right)"


def _times(_equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    first, second = (_bracketed(o, PRODUCT) for o in operands)
    after_word = re.search(r"\\(mathrm|text)\{[^{}]*\}(_\{[^{}]*\})?$", first)
    # A word directly before a parenthesis would read as a function call.
    dot = second[:1].isdigit() or operands[1].level == UNARY or (after_word and second.startswith("\\left("))
    sign = r" \cdot " if dot else r" \, " if after_word and re.match(r"\\(mathrm|text)\b", second) else " "
    return Fragment(f"{first}{sign}{second}", TIMES)


def _fraction(_equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    return Fragment(f"\\frac{{{operands[0].text}}}{{{operands[1].text}}}", POWER)


def _power(base: Fragment, exponent: str) -> Fragment:
    named = re.fullmatch(r"(\\[a-z]+)(\\left\((?:(?!\\left|\\right).)*\\right\))", base.text)
    if named and named[1][1:] in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "log"):
        return Fragment(f"{named[1]}^{{{exponent}}}{named[2]}")
    return Fragment(f"{_bracketed(base, ATOM)}^{{{exponent}}}", POWER)


def _whole_power(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    return _power(operands[0], _number(equation.params["n"]).text)


def _operator(symbol: str, level: int, left: int = SUM) -> Any:
    def spelling(_equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        return Fragment(f"{_bracketed(operands[0], left)} {symbol} {_bracketed(operands[1], level + 1)}", level)

    return spelling


def _around(begin: str, end: str, level: int = ATOM) -> Any:
    return lambda _equation, operands: Fragment(f"{begin}{operands[0].text}{end}", level)


def _called(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    """A call of any function: its name, operands, and parameters by name."""
    primitive = equation.primitive
    # Each output of a function with several outputs has a primitive of its own, whose name says which.
    name, command = primitive.called if primitive.elementwise else primitive.name, primitive.spelling.get("latex")
    called = f"\\{command}" if command else f"\\operatorname{{{name}}}".replace("_", r"\_")
    ndim = len(arrays.shape(equation.inputs[0]))
    shown = {
        k: v
        for k, v in equation.params.items()
        if v not in (False, None) and not (k == "axis" and v == tuple(range(ndim)))
    }
    params = [f"\\mathrm{{{k}}}={_param(v)}" for k, v in shown.items()]
    return Fragment(f"{called}\\left({', '.join([*(o.text for o in operands), *params])}\\right)")


def _param(value: Any) -> str:
    return sizes(value) if isinstance(value, tuple) and all(isinstance(v, int) for v in value) else f"\\text{{{value}}}"


def _indexed(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    return Fragment(f"{_bracketed(operands[0], ATOM)}_{{{key_text(equation.params['key'])}}}", POWER)


def _permuted(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    if equation.params["axes"] == (1, 0):
        return Fragment(f"{_bracketed(operands[0], ATOM)}^{{\\top}}", POWER)
    return _called(equation, operands)


def _contracted(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    if latin(equation.params["terms"], equation.params["result"]) == OUTER:
        x, y = operands
        return Fragment(f"{_bracketed(x, PRODUCT)} {_bracketed(y, ATOM)}^{{\\top}}", PRODUCT)
    return _called(equation, operands)


_BEGIN, _END = r"\begin{cases} ", r" \end{cases}"


def _choice(_equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    condition, x, y = (o.text for o in operands)
    # A choice nested in the last branch becomes further cases.
    others = f"{y} & \\text{{otherwise}}"
    if operands[2].level == ATOM and y.startswith(_BEGIN):
        others = y.removeprefix(_BEGIN).removesuffix(_END)
    return Fragment(f"{_BEGIN}{x} & {condition} \\\\ {others}{_END}")


def _scaled_erfc(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    if equation.params["n"]:
        raise UnsupportedPrimitiveError(equation, "LaTeX")
    return Fragment(f"\\operatorname{{erfcx}}\\left({operands[0].text}\\right)")


def _partial(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    """A partial derivative by the positions of the operands, as in \\partial_{1} kv(v, x)."""
    signs = (
        f"\\partial_{{{place}}}" + (f"^{{{n}}}" if n > 1 else "")
        for place, n in enumerate(equation.params["orders"], 1)
        if n
    )
    name = equation.params["function"].replace("_", r"\_")
    inside = ", ".join(o.text for o in operands)
    return Fragment(f"{' '.join(signs)} \\operatorname{{{name}}}\\left({inside}\\right)")


LANGUAGE: Language = Language(
    name="latex",
    imaginary_unit="\\mathrm{i}",
    comment="%",
    functions={
        **operators("* / // % @ **", form=_operator, less_equal=r"\le", greater_equal=r"\ge", equal="=", not_equal=r"\ne"),
        "multiply": _times,
        "erfcx": _scaled_erfc,
        "divide": _fraction,
        "matmul": lambda _equation, operands: Fragment(
            f"{_bracketed(operands[0], PRODUCT)} {_bracketed(operands[1], UNARY)}", PRODUCT
        ),
        "negative": lambda _equation, operands: Fragment(f"-{_bracketed(operands[0], PRODUCT)}", UNARY),
        "reciprocal": lambda _equation, operands: Fragment(f"\\frac{{1}}{{{operands[0].text}}}", POWER),
        "pow": lambda _equation, operands: _power(operands[0], operands[1].text),
        "whole_power": _whole_power,
        "exp": _around("e^{", "}", POWER),
        "exp2": _around("2^{", "}", POWER),
        "sqrt": _around(r"\sqrt{", "}"),
        "flat_sqrt": _around(r"\sqrt{", "}"),
        "cbrt": _around(r"\sqrt[3]{", "}"),
        "rsqrt": _around(r"\frac{1}{\sqrt{", "}}", POWER),
        "conjugate": _around(r"\overline{", "}"),
        "real_part": _around(r"\operatorname{Re}\left(", r"\right)"),
        "imaginary_part": _around(r"\operatorname{Im}\left(", r"\right)"),
        "phase": _around(r"\arg\left(", r"\right)"),
        "abs": _around(r"\left|", r"\right|"),
        "floor": _around(r"\left\lfloor ", r"\right\rfloor"),
        "ceil": _around(r"\left\lceil ", r"\right\rceil"),
        "inv": lambda _equation, operands: Fragment(f"{_bracketed(operands[0], ATOM)}^{{-1}}", POWER),
        "where": _choice,
        "logical_and": _operator(r"\land", CONDITIONAL, left=COMPARE),
        "logical_or": _operator(r"\lor", CONDITIONAL, left=COMPARE),
        "logical_not": lambda _equation, operands: Fragment(f"\\lnot {_bracketed(operands[0], ATOM)}", UNARY),
        "permute": _permuted,
        "contract": _contracted,
        "index": _indexed,
        "identity": lambda _equation, operands: operands[0],
        "cast": lambda _equation, operands: operands[0],
        "integral": with_body(
            lambda: LANGUAGE, "tusw", r"\int_{{{low}}}^{{{high}}} {body} \,\mathrm{{d}}{variable}", SUM
        ),
        "series_sum": with_body(lambda: LANGUAGE, "kjnm", r"\sum_{{{variable}={low}}}^{{{high}}} {body}", SUM),
        **dict.fromkeys(("partial_of_one", "partial_of_two", "partial_of_three", "partial_of_four"), _partial),
    },
    # A function of a body, such as a root, or of a system of equations, has no notation.
    others=lambda primitive: None if {"body", "system"} & {p.name for p in primitive.parameters} else _called,
    number=_number,
    array=_array,
    document=latex,
    naming=Naming(_spellings, elements=_elements),
    parts=False,
    truths=BooleanConversion(
        lambda truth: Fragment(f"\\left[{truth.text}\\right]"),
        lambda number: Fragment(f"{_bracketed(number, SUM)} \\ne 0", COMPARE),
    ),
)  # fmt: skip

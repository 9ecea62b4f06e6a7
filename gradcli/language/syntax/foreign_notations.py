"""Proposes corrections for notations of books, spreadsheets and other languages that the parser does not accept.

Each rule rewrites one notation in a statement that could not be parsed; the result of all rules is proposed if it
parses. A rule is a pattern with its replacement and an example, or a function where a pattern is not enough.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from gradcli.errors import Proposal, Span
from gradcli.language.syntax.foreign_keywords import FOREIGN_COMMANDS
from gradcli.named_tuples import NamedTuple

# Longest statement and longest source, in characters: the time for rewriting is a power of the length of the statement,
# and the rewritten source is parsed as a whole.
_LONGEST, _LONGEST_TEXT = 300, 20_000


class Notation(NamedTuple):
    """A notation and how it is written in the language; `example` contains the notation."""

    pattern: str
    replacement: str | Callable[[re.Match[str]], str]
    example: str

    def __call__(self, text: str) -> str:
        return re.sub(self.pattern, self.replacement, text)


def propose_correction(source: str, place: int, is_read: Callable[[str, int], bool]) -> Proposal | None:
    """The hint with a correction of the statement around `place`, where parsing stopped; None where no rule helps.

    `is_read(text, place)` tells whether a text can be parsed up to a place.
    """
    if len(source) > _LONGEST_TEXT:
        return None
    span = _statement(source, place)
    given = source[span.start : span.end]
    if len(given) > _LONGEST:
        return None
    called = re.search(r"(?<!\w)([A-Z]\w+)\[", given)
    if called is not None and called[1].casefold() in FOREIGN_COMMANDS:
        return None
    written = given
    for rule in _RULES:
        written = rule(written)
    written = written.strip()
    if written == given or not is_read(source[: span.start] + written + source[span.end :], span.start + len(written)):
        return None
    if ".T" not in written or ".T" in given:
        function = re.fullmatch(r"lambda [\w, ]*: (.+)", written)
        # A program that is only a function has no value, so that its body is proposed instead.
        body = Proposal(f"write {function[1]}", function[1], span=span) if function is not None else None
        length = re.search(r"(?<![|\w])\|(\w+)\|(?!\|)", given)
        said = f"write {written}" + (f"; norm({length[1]}) is the length of a vector" if length is not None else "")
        return Proposal(said, written, span=span, otherwise=body)
    # `*` is elementwise here, while books mean the matrix product unless one factor is a number.
    factors = {re.sub(r"\.T\s*\*\s*(?=[\w(])", ".T@", written): None, written: None}
    hint = None
    for text in reversed(factors):
        said = f"write {text} for the transpose, diff(y, x) for a derivative"
        hint = Proposal(said, text, span=span, otherwise=hint)
    return hint


def _statement(source: str, place: int) -> Span:
    """The span of the line around a place, or of its part between semicolons outside of brackets."""
    start = source.rfind("\n", 0, place) + 1
    end = source.find("\n", place)
    end = len(source) if end < 0 else end
    depth = 0
    for at in range(start, end):
        depth += {"[": 1, "]": -1, "(": 1, ")": -1}.get(source[at], 0)
        if source[at] == ";" and depth <= 0:
            if at >= place:
                end = at
                break
            start = at + 1
    text = source[start:end]
    return Span(start + len(text) - len(text.lstrip()), start + len(text.rstrip()))


# Functions that are often written without parentheses around the argument.
FUNCTIONS_WITHOUT_PARENTHESES = (
    "sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh",
    "coth", "exp", "log", "ln", "log2", "log10", "sqrt", "abs", "erf", "det",
)  # fmt: skip
FUNCTIONS_OF_TWO = ("max", "min", "maximum", "minimum", "atan2", "hypot", "pow", "mod", "gcd", "lcm", "comb")
_FUNCTION = rf"(?<![\w.])({'|'.join(sorted(FUNCTIONS_WITHOUT_PARENTHESES, key=len, reverse=True))})"
_NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
# An argument without parentheses: a number and a name, with exponents or superscripts.
_BARE = rf"(?:{_NUMBER})?(?:[^\W\d_]\w*(?:\([^()]*\))?)?(?:\^\w+|[⁰¹²³⁴-⁹]+)?"
_BRACKETED = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_OPERAND = rf"({_NUMBER}|[^\W\d]\w*|{_BRACKETED})"
# An argument of a call.
_ARGUMENT = rf"((?:[^(),]|{_BRACKETED})+)"
# Names of books: a letter with at most one more, or a few with a digit.
_SHORT = r"(?:[^\W\d_]\w?|[^\W\d_]{1,3}_?\d)(?!\w)(?!(?<=if|or|in|is|of|to|by|at|do|be|we|no))"
# A part of a call in Mathematica.
_PART = r"((?:[^][{},]|\[[^][]*\])+)"

# --- LaTeX

GREEK = [
    "alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "vartheta", "iota", "kappa",
    "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "varphi", "chi", "psi", "omega", "Gamma",
    "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Phi", "Psi", "Omega",
]  # fmt: skip
_SIGNS = {
    "cdot": "*", "times": "*", "ast": "*", "div": "/", "leq": "<=", "le": "<=", "geq": ">=", "ge": ">=", "neq": "!=",
    "ne": "!=", "infty": "inf", "lvert": "|", "rvert": "|", "vert": "|", "lambda": "lambda_", "lVert": "‖", "rVert": "‖",
}  # fmt: skip


# A sum or product at the end of a formula.
_SUM = (
    r"((?:.*[-+*/(=]|[\d.]*)\s*)\\?(sum|prod)\s*(?:\\limits)?\s*"
    r"_\{\s*(\w+)\s*=\s*([^{}=]+)\}\s*\^\s*(?:\{([^{}]+)\}|(\w))\s*(\S.*)"
)


def _from_latex(text: str) -> str:
    if not re.search(r"\\[a-zA-Z(\[,]|[_^]\{|^\$.*\$$", text):
        return text
    summed = re.fullmatch(_SUM, text)
    if summed is not None and not re.search(r"[-+]", re.sub(r"\([^()]*\)|\{[^{}]*\}", "", summed[7])):
        before, name, index, start, end, last, term = summed.groups()
        return f"{before}{name}({_from_latex(f'${term}$')} for {index} in range({start}, {_next(end or last)}))"
    if re.search(r"\\(?:sum|prod|int|lim|begin|partial)|_\{[^{}]*=", text):
        return text
    text = re.sub(r"\\frac\s*\{d\}\s*\{d(\w)\}\s*(.+)$", r"diff(\2, \1)", text)
    text = re.sub(r"^\s*(?:\$+|\\\(|\\\[)|(?:\$+|\\\)|\\\])\s*$", "", text)
    text = re.sub(r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|limits|quad|qquad)(?![a-zA-Z])|\\[,;:! ]", " ", text)
    text = re.sub(r"\\(?:mathrm|text|operatorname|mathbf|mathit|boldsymbol)\s*\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\\[dt]?frac\s*(\w)\s*(\w)", r"(\1)/(\2)", text)
    # A base is kept apart from the argument, which may follow it without a space.
    text = re.sub(r"\\log\s*_\s*(?:\{(\w+)\}|(\w))", r"\\log<\1\2>", text)
    before = None
    while text != before:
        before = text
        text = re.sub(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r"((\1)/(\2))", text)
        text = re.sub(r"\\sqrt\s*\[([^\[\]]*)\]\s*\{([^{}]*)\}", r"((\2)^(1/(\1)))", text)
        text = re.sub(r"\\sqrt\s*(?:\{([^{}]*)\}|(\w))", r"sqrt(\1\2)", text)
        text = re.sub(r"\^\s*\{([^{}\\]*)\}", lambda m: f"^{m[1]}" if m[1].isalnum() else f"^({m[1]})", text)
        text = re.sub(r"_\s*\{(\w*)\}", r"_\1", text)
    for _ in range(text.count("{")):
        text = re.sub(r"\{([^{}]*)\}", r"(\1)", text)
    text = re.sub(rf"\\log<(\w+)>\s*(?:({_BRACKETED})|(?=[\w.])({_BARE}))", _log_to_base, text)
    text = re.sub(rf"\\({'|'.join(_SIGNS)})(?![a-zA-Z])", lambda m: f" {_SIGNS[m[1]]} ", text)
    text = re.sub(rf"\\({'|'.join([*FUNCTIONS_WITHOUT_PARENTHESES, 'max', 'min'])})(?![a-zA-Z])\s*", r" \1 ", text)
    text = re.sub(rf"\\({'|'.join(GREEK)})(?![a-zA-Z])", r" \1 ", text)
    text = re.sub(rf"({_FUNCTION}|\b(?:max|min))\s+(?=\()", r"\1", text)
    # Factors side by side are multiplied.
    words = rf"(?!(?:{'|'.join(FUNCTIONS_WITHOUT_PARENTHESES)})\b)"
    text = _functions_without_brackets(_powers_of_functions(text))
    text = re.sub(
        rf"(\)|\b{words}[^\W\d]\w*|(?<!\w)\d[\d.]*)\s*(?<![-+*/^(,=<>])(?=\(|[^\W\d]|\d)(?<=[\s)])", r"\1*", text
    )
    return re.sub(r"\s+", " ", text)


def _log_to_base(m: re.Match[str]) -> str:
    base, bracketed, bare = m.groups()
    return f"log({bracketed[1:-1] if bracketed else bare}, {base})"


def _next(whole: str) -> str:
    """The end of a range that includes `whole`, which is a number or a name: that number plus 1."""
    return str(int(whole) + 1) if whole.strip().isdecimal() else f"{whole.strip()} + 1"


# --- typographic notation


def _powers_of_functions(text: str) -> str:
    """`sin^2 x`, `sin²(x)`, `sin^-1 x`."""
    power = r"\s*(?:(?:\^|\*\*)\s*(\(\s*[-−]?\s*\w+\s*\)|[-−]?\s*\d+)|([⁺⁻]?[⁰¹²³⁴-⁹]+))"

    def written(m: re.Match[str]) -> str:
        name, exponent, raised, argument = m.groups()
        exponent = exponent.strip("() ").replace("−", "-") if exponent else unicodedata.normalize("NFKC", raised)
        exponent = exponent.replace(" ", "").replace("−", "-")
        argument = argument if argument.startswith("(") else f"({argument})"
        if exponent == "-1":
            return f"{_inverse(name)}{argument}"
        return f"{name}{argument}^{exponent if exponent.isalnum() else f'({exponent})'}"

    return re.sub(rf"{_FUNCTION}{power}\s*({_BRACKETED}|(?=[\w.]){_BARE})", written, text)


def _inverse(name: str) -> str:
    return {"exp": "log", "log": "exp", "ln": "exp"}.get(name, f"a{name}")


_functions_without_brackets = Notation(
    rf"{_FUNCTION}\s+(?=[\w.])(?!(?:if|else|and|or|in)\b)({_BARE})", r"\1(\2)", "sin 2x + 1"
)


def _bars(text: str) -> str:
    if text.count("|") % 2 == 0 and not re.search(r"\|\||\|>", text):
        return re.sub(r"(?:(?<=[\w)])(?=\|[^|]*\|\s*(?:[-+*/^)]|$)))?\|([^|]+)\|", _absolute, text)
    return text


def _absolute(m: re.Match[str]) -> str:
    before = m.string[: m.start()].rstrip()
    if re.search(rf"(?<![^\W\d])(?:{'|'.join(FUNCTIONS_WITHOUT_PARENTHESES)})$", before):
        return f"(abs({m[1].strip()}))"
    return f"{'*' if before and (before[-1].isalnum() or before[-1] == ')') else ''}abs({m[1].strip()})"


def _fractions(text: str) -> str:
    def written(m: re.Match[str]) -> str:
        fraction = unicodedata.normalize("NFKC", m[2]).replace("⁄", "/")
        return f"({m[1]} + {fraction})" if m[1] else f"({fraction})"

    if not any(unicodedata.decomposition(c).startswith("<fraction>") for c in text):
        return text
    if re.search(r"/\s*[^\W\d]\w*[¼-¾⅐-⅞]", text):
        # `a/x½` is ambiguous, and no product where T½ is a half-life.
        return text
    text = re.sub(r"(?<![\w.])(\d*)([¼-¾⅐-⅞])", written, re.sub(r"(?<=[^\W\d])(?=[¼-¾⅐-⅞])", "*", text))
    return re.sub(r"(\([\d+/ ]+\))(?=[\w(])", r"\1*", text)


_CHARACTERS = str.maketrans({
    "∗": "*", "∙": "*", "•": "*", "∘": "*", "∕": "/", "⁄": "/", "–": "-", "—": "-", "‐": "-", "‑": "-", "“": '"', "”": '"',
    "„": '"', "‘": "'", "’": "'", "←": "=", "∆": "Δ", "′": "'", "″": "''",
    "∧": " and ", "∨": " or ", "¬": "not ", "∣": "|",
})  # fmt: skip


def _characters(text: str) -> str:
    return text.translate(_CHARACTERS)


# Letters above the line, with digits and signs beside them.
_RAISED = r"[⁺⁻⁰¹²³⁴-⁹]*[ʰ-ʸˠ-ˤᴬ-ᵡⁱⁿ][⁺⁻⁰¹²³⁴-⁹ʰ-ʸˠ-ˤᴬ-ᵡⁱⁿ]*"


def _exponent(m: re.Match[str]) -> str:
    """`xⁿ` and `e⁻ˣ`, and the transpose `Aᵀ`."""
    if m[0] == "ᵀ":
        return ".T"
    written = unicodedata.normalize("NFKC", m[0]).replace("−", "-")
    return f"^{written}" if written.isalpha() else f"^({written})"


def _derivatives(text: str) -> str:
    """`f'(x)`, `f''(x)`, `∂f/∂x`, and the transpose `A'`."""
    order = re.search(rf"([^\W\d]\w*)('+)\s*({_BRACKETED})\s*$", text)
    if order is not None and order.end() == len(text):
        if not order[3][1:-1].strip().isidentifier():
            times = len(order[2])
            return f"{text[: order.start()]}g = {'grad(' * times}{order[1]}{')' * times}; g{order[3]}"
        count = f", {len(order[2])}" if len(order[2]) > 1 else ""
        return f"{text[: order.start()]}y = {order[1]}{order[3]}; diff(y, {order[3][1:-1]}{count})"
    text = re.sub(r"∂\s*(\w+)\s*/\s*∂\s*(\w+)", r"diff(\1, \2)", text)
    return re.sub(r"(?<=[\w)\]])\.?'(?=\s*(?:[-+*/^),\]@]|$))(?=[^']*$)", ".T", text)


# The operator d/dx or d²/dx² before a product, to which it applies also where that is part of a sum.
_QUOTIENT_OF_DIFFERENTIALS = (
    r"[∂d](?:\^?([2-9])|([²³])|)\s*/\s*[∂d]([^\W\d]+)(?(1)\^?\1)(?(2)\2)(?!\w)"
    rf"\s*((?:{_BRACKETED}|[\w^*./])+)(?=\s*(?:[-+=]|$))"
)


def _derivative(m: re.Match[str]) -> str:
    order = m[1] or (m[2] and str("²³".index(m[2]) + 2))
    return f"diff({m[4]}, {m[3]}{f', {order}' if order else ''})"


# --- numbers and units

_UNITS = "kg|g|mg|km|m|cm|mm|nm|s|ms|h|min|N|J|kJ|W|kW|V|A|K|Pa|kPa|bar|Hz|kHz|MHz|GHz|eV|keV|MeV|mol|L|l|mL|ml|C|F|T|USD|EUR"


def _hundredths(m: re.Match[str]) -> str:
    """A percentage as a fraction, unless it is added to something other than 1, of which it may be a share."""
    before = m.string[: m.start()]
    added = re.search(r"[\w)\]]\s*[-+]\s*$", before) and not re.search(r"(?<![\w.)\]])1\s*[-+]\s*$", before)
    return m[0] if added else f"{m[1]}/100"


def _polar(m: re.Match[str]) -> str:
    """A modulus and an angle, in degrees or radians, as `polar(3, pi/4)`."""
    angle = m[2].replace(" ", "")
    if not angle.endswith("°"):
        return f"polar({m[1]}, {angle})"
    sign, degrees = ("-" if angle.startswith("-") else ""), angle.strip("-°")
    # Angles that are simple parts of pi are written as such.
    part = 180 / float(degrees) if float(degrees) else 0.0
    if part.is_integer():
        return f"polar({m[1]}, {sign}pi{f'/{part:.0f}' if part > 1 else ''})" if part else f"polar({m[1]}, 0)"
    return f"polar({m[1]}, deg2rad({sign}{degrees}))"


def _in_decimals(m: re.Match[str]) -> str:
    try:
        return str(int(m[1], 0))
    except ValueError:
        return m[1]


_UNIT = rf"(?:{_UNITS})(?:(?:\^|\*\*)-?\d|[²³])?"
# In these units of the SI, numbers can be computed with as they are.
_COHERENT = frozenset(["kg", "m", "s", "A", "K", "mol", "N", "J", "W", "V", "Pa", "Hz", "C", "F", "T"])


def _without_units(text: str) -> str:
    """`9.81 m/s^2` without the unit. Where units differ, as in `3 m + 2 cm`, the numbers alone would mean another quantity."""
    units = rf"(?<![\w.])({_NUMBER})\s+({_UNIT}(?:\s*[/*·]\s*{_UNIT})*)(?!\s*[\w(])"
    names = {name for m in re.finditer(units, text) for name in re.findall(r"[A-Za-z]+", m[2])}
    return re.sub(units, r"\1", text) if len(names) == 1 or names <= _COHERENT else text


def _thousands(text: str) -> str:
    """`1 000*x`. Inside brackets, spaces separate numbers."""
    if "[" in text:
        return text
    return re.sub(r"(?<![\w.])\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?![\w])", lambda m: re.sub(r"\s", "_", m[0]), text)


def _commas(text: str) -> str:
    """A statement that is a single number, unless it is as 1,234, which has two readings."""
    number = re.fullmatch(r"[-+]?\d{1,3}(?:(?:,\d{3})+\.\d+|(?:\.\d{3})*,\d+)", text)
    return text if number is None or re.fullmatch(r"[-+]?[1-9]\d{0,2},\d{3}", text) else with_decimal_points(text)


def with_decimal_points(text: str) -> str:
    """A text with its decimal commas turned into points, or without the commas between thousands."""
    thousands = re.sub(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?=\.\d)", lambda m: m[0].replace(",", ""), text)
    decimal = re.sub(r"(?<![\w.,])\d{1,3}(?:\.\d{3})+(?=,\d)", lambda m: m[0].replace(".", ""), text)
    return re.sub(r"(?<=\d),(?=\d)", ".", decimal) if thousands == text else thousands


def without_thousands_commas(text: str) -> str:
    """A text with each number that may have commas between thousands, as in 12,500, without them."""
    return re.sub(r"(?<![\w.,])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])", lambda m: m[0].replace(",", ""), text)


# --- spreadsheets and other languages


def _formula_of_spreadsheet(text: str) -> str:
    return _of_spreadsheet(text.lstrip("= \t")) if re.match(r"\s*=\s*[^=\s]", text) else text


def _of_spreadsheet(text: str) -> str:
    """A formula with the precedence of spreadsheets, where `-x^2` is `(-x)^2` and `2^3^2` is `(2^3)^2`."""
    operand = rf"(?:{_NUMBER}|[^\W\d]\w*(?:{_BRACKETED})?|{_BRACKETED})"
    text = re.sub(rf"(^|[-+*/^(,;<>=&])(\s*)(-\s*{operand})(?=\s*\^)", r"\1\2(\3)", text)
    return re.sub(rf"({operand}\s*\^\s*-?{operand})(?=\s*\^)", r"(\1)", text)


_FORTRAN = {"gt": ">", "lt": "<", "ge": ">=", "le": "<=", "eq": "==", "ne": "!="}


def _logical(text: str) -> str:
    """`x && y` and `x || y`."""
    return text.replace("&&", " and ").replace("||", " or ") if re.search(r"&&|\w\s*\|\|\s*\w", text) else text


def _assignment(text: str) -> str:
    """`y := x^2` and `f(x) := x^2`."""
    return re.sub(r"\s*:=\s*", " = ", text) if re.match(r"[^\W\d]\w*(?:\([\w, ]*\))?\s*:=", text) else text


def _sum_of_mathematica(m: re.Match[str]) -> str:
    name = {"Sum": "sum", "Product": "prod", "Table": ""}[m[1]]
    items = f"{m[2]} for {m[3]} in range({m[4].strip()}, {_next(m[5])})"
    return f"{name}({items})" if name else f"[{items}]"


def _sum_of_maple(m: re.Match[str]) -> str:
    return f"{m[1]}({m[2]} for {m[3]} in range({m[4].strip()}, {_next(m[5])}))"


def _separated_arguments(text: str) -> str:
    """`MAX(1,5;2)`: where semicolons separate arguments, commas are decimal commas."""
    within = re.search(r"\w\([^()]*;", text)
    if within is None or re.search(r"\[[^\[\]]*;", text):
        return text
    text = re.sub(r"(?<=\d),(?=\d)", ".", text)
    return re.sub(_BRACKETED, lambda m: m[0].replace(";", ","), text)


_WHOLE = r"\d+|end"


def _indices(text: str) -> str:
    """MATLAB's indices, which start at 1: `A(1,:)`, `x(2:3)` and `x(2:end)`; and its ranges `1:5` and `0:0.1:1`."""

    def written(m: re.Match[str]) -> str:
        parts = [part.strip() for part in m[2].split(",")]
        return f"{m[1]}[{', '.join(map(_from_one, parts))}]" if any(":" in part for part in parts) else m[0]

    part = rf"\s*(?:(?:{_WHOLE})?\s*:\s*(?:{_WHOLE})?|{_WHOLE})\s*"
    text = re.sub(rf"(?<![\w.])([^\W\d]\w*)\(({part}(?:,{part})*)\)", written, text)
    number = rf"[-+]?{_NUMBER}"
    steps = re.fullmatch(rf"({number})\s*:\s*(?:({number})\s*:\s*)?({number})", text.strip())
    if steps is None:
        return text
    start, step, end = float(steps[1]), float(steps[2] or 1), float(steps[3])
    count = round((end - start) / step) + 1 if step else 0
    if count < 1 or abs(start + (count - 1) * step - end) > abs(step) * 1e-6:
        return text
    return f"linspace({steps[1]}, {steps[3]}, {count})"


def _from_one(part: str) -> str:
    """An index or slice counted from 1, converted to one counted from 0."""
    first, colon, last = (bound.strip() for bound in part.partition(":"))
    start = "-1" if first == "end" else str(int(first) - 1) if first else ""
    return f"{start}:{'' if last == 'end' else last}" if colon else start


def _statements(text: str) -> str:
    """`x = 1, y = 2, x + y`."""
    parts = re.split(r",(?![^()\[\]]*[)\]])", text)
    assigns = [re.match(r"\s*[^\W\d]\w*\s*=(?!=)", part) is not None for part in parts]
    return ";".join(parts) if len(parts) > 1 and all(assigns[:-1]) else text


def _matrices(text: str) -> str:
    """`[1 2; 3 4]`."""

    def written(m: re.Match[str]) -> str:
        rows = [re.split(r"\s*,\s*|\s+", row.strip()) for row in m[1].split(";") if row.strip()]
        texts = [f"[{', '.join(row)}]" for row in rows]
        return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"

    item = r"[-+]?[\w.]+"
    row = rf"\s*{item}(?:(?:\s*,\s*|\s+){item})*\s*"
    return re.sub(rf"(?<![\w)\]])\[({row}(?:;{row})*;?\s*)\]", written, text)


def _braces(text: str) -> str:
    if re.search(r"\b(?:if|for|while|else|def)\b", text):
        return text
    text = re.sub(r"(?<![\w)\]])\{([^{}:;=]*,[^{}:;=]*)\}", r"[\1]", text)
    return re.sub(r"(?<![\w)\]])\{([^{}:;=]*)\}", r"(\1)", text)


# In this order, as the result of a rule may be a notation of the next.
_RULES: tuple[Notation | Callable[[str], str], ...] = (
    _from_latex,
    # Mathematica, and words.
    Notation(rf"\b(Sum|Product|Table)\[{_PART},\s*\{{\s*(\w+)\s*,\s*([^{{}},]+),\s*([^{{}},]+)\}}\s*\]", _sum_of_mathematica, "Sum[k^2, {k, 1, 3}]"),
    Notation(rf"\bD\[{_PART},\s*\{{\s*(\w+)\s*,\s*(\d+)\s*\}}\s*\]", r"diff(\1, \2, \3)", "D[x^3, {x, 2}]"),
    Notation(rf"\blog base {_OPERAND} of {_OPERAND}", r"log(\2, \1)", "log base x of 8"),
    Notation(rf"\bcube root of {_OPERAND}", r"cbrt(\1)", "cube root of x"),
    Notation(rf"\b(?:square root|sqrt) of {_OPERAND}", r"sqrt(\1)", "square root of x"),
    Notation(rf"{_OPERAND} squared\b", r"\1^2", "x squared"),
    Notation(rf"{_OPERAND} cubed\b", r"\1^3", "x cubed"),
    # Maple, and integrals and limits as books write them.
    Notation(rf"\b(sum|prod)\({_ARGUMENT},\s*(\w+)\s*=\s*([^.,()]+)\.\.\s*([^.,()]+)\)", _sum_of_maple, "sum(k^2, k=1..3)"),
    Notation(rf"\b(?:int|integral|integrate)\({_ARGUMENT},\s*(\w+)\s*=\s*([^,()]+?)\.\.\s*([^,()]+)\)", r"integrate(\1, \2, \3, \4)", "int(t^2, t=0..1)"),
    Notation(rf"\blim(?:it)?\({_ARGUMENT},\s*(\w+)\s*(?:->|→)\s*([^,()]+)\)", r"limit(\1, \2, \3)", "lim(sin(t)/t, t->0)"),
    Notation(rf"\blim(?:it)?\(\s*(\w+)\s*(?:->|→)\s*([^,()]+),\s*{_ARGUMENT}\)", r"limit(\3, \1, \2)", "limit(t → 0, sin(t)/t)"),
    Notation(r"∫\s*_?\{?([^\s{}^_]+)\}?\s*\^\s*\{?([^\s{}^_]+)\}?\s+(.+?)\s*\bd([^\W\d_])$", r"integrate(\3, \4, \1, \2)", "∫_0^1 t^2 dt"),
    Notation(r"∫\s*(?=\()", "integrate", "∫(t², t, 0, 1)"),
    # Typographic characters.
    _characters,
    Notation(r"\^(?=[⁺⁻⁰¹²³⁴-⁹])", "", "x^²"),
    Notation(_RAISED, _exponent, "2ⁿ"),
    # A superscript before a root is its index, unless it can be an exponent of what stands before it.
    Notation(r"(?<![\w)\]²³!])⁴\s*√", "∜", "⁴√16"),
    Notation(r"(?<![\w)\]²³!])³\s*√", "∛", "³√(x + 6)"),
    Notation(rf"∜\s*({_BRACKETED}|\w+)", r"(\1)^(1/4)", "∜16"),
    Notation(r"(\w+)\s*∈\s*\[([^][,]+),([^][,]+)\]", r"\2 <= \1 <=\3", "x ∈ [1, 3]"),
    Notation(r"[∏Π]\s*(?=\()", "prod", "∏(v)"),
    Notation(r"[∑Σ]\s*(?=\()", "sum", "∑(v)"),
    Notation(r"(\w)⁺(?=\W|$)", r"\1", "x⁺ + 1"),
    Notation(r"(?<=\w)[₀-₉]+", lambda m: unicodedata.normalize("NFKC", m[0]), "log₁₀(x)"),
    _fractions,
    # Numbers and units.
    Notation(r"(?<![\w.])(0[xXoObB][0-9a-fA-F]+)\b", _in_decimals, "0x1F"),
    Notation(r"(?<![\w.])(\d+(?:\.\d*)?|\.\d+)[dD]([-+]?\d+)", r"\1e\2", "1.5d0*x"),
    Notation(r"(?<![\w.])(\d+\.\d*|\.\d+)(?:[fFL]|_[a-z]+\d*)\b", r"\1", "1.0_dp*x"),
    Notation(rf"({_NUMBER})\s*(?:°\s*[CFK]|℃|℉)(?!\w)", r"\1", "20°C"),
    Notation(rf"({_NUMBER}|[^\W\d]\w*|{_BRACKETED})\s*∠\s*(-?\s*{_NUMBER}\s*°?|-?\s*[^\W\d]\w*)", _polar, "3∠45°"),
    Notation(rf"({_NUMBER})\s*°(?!\s*[CFK])", r"deg2rad(\1)", "90°"),
    Notation(rf"({_NUMBER})\s+deg(?:rees?)?\b", r"deg2rad(\1)", "sin 90 degrees"),
    Notation(rf"(?<=[/%@])\s*({_NUMBER})\s*%(?=\s*(?:$|[*/),]))", r"(\1/100)", "x/5%"),
    Notation(rf"(?<![\w.])({_NUMBER})\s*%\s*of\s+(?=[\w(])", r"\1/100*", "5% of x"),
    Notation(rf"(?<![\w.])({_NUMBER})\s*%(?=\s*(?:$|[*/),]))", _hundredths, "5% * x"),
    _thousands,
    Notation(r"\$?\b([A-Z]{1,2})\$(\d+)\b", r"\1\2", "$A$1*2"),
    Notation(rf"[$€£]\s*({_NUMBER})|({_NUMBER})\s*[€£]", r"\1\2", "$5"),
    _without_units, _separated_arguments, _commas, _derivatives,
    # Spreadsheets, MATLAB, R, C and Fortran.
    _formula_of_spreadsheet,
    Notation(r"\.\^", "**", "x.^2"),
    Notation(r"\.(\*\*?|/)", r"\1", "x.*3"),
    Notation(r"^([^\W\d]\w*)(\+\+|--)$", lambda m: f"{m[1]} {m[2][0]}= 1", "x++"),
    Notation(rf"(?<![\w.])({_NUMBER}|[^\W\d]\w*)\s+choose\s+({_NUMBER}|[^\W\d]\w*)", r"comb(\1, \2)", "10 choose x"),
    Notation(r"\((?:float|double|real)\)\s*(?=[\w(.])", "", "(float)x*2"),
    Notation(r"\b(?:std|math)::", "", "std::sin(x)"),
    Notation(r"^let\s+([^\W\d]\w*\s*=(?!=).+?)\s+in\s+(.+)$", r"\1; \2", "let beta = x^2 in beta + 3"),
    Notation(r"^(?:const\s+)?(?:double|float|auto|real|const|var|let)\s+(?=[^\W\d]\w*\s*=(?!=)[^;]*$)", "", "double y = x*x"),
    Notation(r"%\*%", "@", "b %*% v"),
    Notation(r"%/%", "//", "x %/% 2"),
    Notation(r"%%", "%", "x %% 2"),
    Notation(r"~=|<>", "!=", "x ~= 2"),
    _logical,
    Notation(r"(?<![\w)\]!])!\s*(?=[\w(])", "not ", "!(x > 3)"),
    Notation(r"\b(AND|OR|NOT)\b", lambda m: m[1].lower(), "x AND 1"),
    Notation(r"(?<=[\w)])\s+(?:mod|MOD)\s+(?=[\w(])", " % ", "x mod 2"),
    Notation(r"(?<=[\w)])\s+(?:div|DIV)\s+(?=[\w(])", " // ", "x div 2"),
    Notation(r"\.(gt|lt|ge|le|eq|ne)\.", lambda m: _FORTRAN[m[1]], "x .gt. 1"),
    _assignment,
    Notation(r"=<", "<=", "x =< 3"),
    Notation(r"^([\w.]+)\s*\\\s*([\w.]+)$", r"solve(\1, \2)", "A\\b"),
    Notation(r" {2,}", " ", "x  mod 2"),
    Notation(r"\bin\s+(\d+)\.\.\.?(\d+)(?![\w.])", lambda m: f"in range({m[1]}, {_next(m[2])})", "[x*k for k in 1..5]"),
    # Conditions and functions.
    Notation(r"\(([^()?:]+?)\s*\?\s*([^()?:]+?)\s*:\s*([^()?:]+)\)", r"(\2 if \1 else \3)", "1 + (x > 2 ? 5 : 6)"),
    Notation(r"^(.*?(?<![<>!=~])=(?!=)\s*)?([^?]+?)\s*\?\s*([^?:]+?)\s*:\s*([^?:]+)$", r"\1\3 if \2 else \4", "x >= 2 ? 5 : 6"),
    Notation(r"\bif\s+(.+?)\s+then\s+(.+?)\s+else\s+(.+)$", r"\2 if \1 else \3", "if x > 1 then 2 else 3"),
    Notation(rf"\b(?:IF|if)\({_ARGUMENT},{_ARGUMENT},{_ARGUMENT}\)", r"where(\1,\2,\3)", "if(x > 1, 2, 3)"),
    Notation(r"(?i:\bcase\s+when)\s+(.+?)\s+(?i:then)\s+(.+?)\s+(?i:else)\s+(.+?)\s+(?i:end)\b", r"(\2 if \1 else \3)", "case when x > 1 then 2 else 3 end"),
    Notation(r"^d(\w+)\s*/\s*d(\w+)\s+where\s+\1\s*=(?!=)\s*(.+)$", r"\1 = \3; diff(\1, \2)", "dbeta/dx where beta = x^2"),
    Notation(r"^(.+?)\s+where\s+([^\W\d]\w*\s*=(?!=).+)$", r"\2; \1", "beta*x where beta = 3"),
    Notation(r"^([^\W\d]\w*)\s*<-\s*function\s*\(([\w, ]*)\)\s*(?=[^\s{])", r"\1(\2) = ", "f <- function(u) u^2"),
    Notation(r"(?:@|\bfunction)\s*\(([\w, ]*)\)\s*", r"lambda \1: ", "f = @(u) u^2"),
    Notation(r"(^|(?<![<>!=])=\s*|[(,]\s*)\\?([^\W\d]\w*)\s*(?:->|→|↦)\s*(?=\S)", r"\1lambda \2: ", "root(u → u^2 - 2, 1)"),
    Notation(r"([(,]\s*)([^\W\d]\w*)\s*=>\s*(?=\S)", r"\1lambda \2: ", "root(u => u^2 - 2, 1)"),
    _statements, _indices, _matrices, _powers_of_functions, _functions_without_brackets, _bars,
    Notation(_QUOTIENT_OF_DIFFERENTIALS, _derivative, "d/dx x^2 + 1"),
    # Brackets, and products without a sign.
    Notation(r"^\|\|([^|]+)\|([^|]+)\|$", r"abs(abs(\1)\2)", "||x - 5| - 1|"),
    Notation(r"\|\|\s*([^|]+?)\s*\|\|(?=\s*(?:$|[-+*/^),]))", r"norm(\1)", "||v||"),
    Notation(r"‖([^‖]+)‖", r"norm(\1)", "‖v‖"),
    Notation(r"⟨([^⟨⟩|,]+)[,|]([^⟨⟩|,]+)⟩", r"dot(\1,\2)", "⟨b,v⟩"),
    Notation(r"⌊([^⌊⌋]+)⌋", r"floor(\1)", "⌊x/3⌋"),
    Notation(r"⌈([^⌈⌉]+)⌉", r"ceil(\1)", "⌈x/3⌉"),
    _braces,
    Notation(r"\)\s*\((?=[^()]*\))", ")*(", "(x+1)(x+2)"),
    Notation(r"(?<=[)⁰¹²³⁴-⁹])\s*(?=\d|[^\W\d_])(?!(?:if|for|in|is|or|and|not|else|where|then)\b|[⁰¹²³⁴-⁹])", "*", "(x+1)x"),
    Notation(r"(?<=[\w)\]⁰¹²³⁴-⁹])\s*(?=√)", "*", "2π√(x)"),
    Notation(rf"(?<![\w.])({_NUMBER}|[^\W\d_])\s+(?={_FUNCTION}\()", r"\1*", "2 sin(x)"),
    Notation(rf"((?<![\w.])(?:{_NUMBER}(?:{_SHORT})?|{_SHORT}))\s+(?=\(|{_SHORT})", r"\1*", "2 pi x"),
)  # fmt: skip

"""Programs as functions of NumPy."""

from __future__ import annotations

import keyword
import math
from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.formulas.documents import separate_functions
from gradcli.formulas.naming import Names, Naming, with_underscores
from gradcli.formulas.text import (
    contraction,
    indexed,
    joined,
    negated,
    one_minus_square,
    over_one_plus_square,
    permuted,
    reduction,
    shaped,
    whole_power,
    with_keywords,
    with_order,
)
from gradcli.formulas.text import number as plain_number
from gradcli.formulas.writing import (
    SUM,
    TIMES,
    UNARY,
    Language,
    Piece,
    function,
    listed,
    names,
    operators,
    plain_call,
    template,
    with_parameters,
    write,
)
from gradcli.program.ir import Program


def python(program: Program, names: Names, *, name: str, doc: str, short: int) -> str:
    """A program with one output as a function of the program's inputs, with the imports that it needs."""
    written = write(program, LANGUAGE, names, short=short)
    parameters = ", ".join(names.inputs.values())
    doc = doc.replace("\\", "\\\\").replace('"""', "'''")
    body = [f'"""{doc}"""', *(f"{n} = {part}" for n, part in written.parts), f"return {written.result}"]
    code = "\n".join([f"def {name}({parameters}):", *(f"    {line}" for line in body)])
    imports = ["import numpy as np"] * ("np." in code) + ["from scipy import special"] * ("special." in code)
    return "\n".join([*imports, "", "", code] if imports else [code])


def _number(value: Any) -> Piece:
    text = plain_number(value).text.lstrip("-")
    names = {"pi": "np.pi", "e": "np.e", "inf": "np.inf", "nan": "np.nan"}
    if text in names:
        sign = math.copysign(1.0, float(value)) < 0 and text != "nan"
        return Piece(f"-{names[text]}", UNARY) if sign else Piece(names[text])
    return plain_number(value)


def _array(constant: Any) -> Piece:
    return function("np.array", listed(arrays.tolist(constant), lambda n: _number(n).text))


def _is_taken(name: str) -> bool:
    return keyword.iskeyword(name) or name in ("np", "special", "__debug__")


# What NumPy and SciPy call each primitive that they have.
_NAMES = {**names("scipy", "special.{}".format), **names("numpy", "np.{}".format)}


def _split_at_zero(operands: Sequence[Piece], below: str) -> Piece:
    """x above 0, and below it what is scaled by the second operand."""
    x, scale = operands
    return function("np.where", f"{x.at(SUM)} > 0", x.text, f"{scale.at(TIMES)}*{below}")


_NAMING = Naming(lambda name: with_underscores(name, _is_taken))

LANGUAGE = Language(
    name="python",
    functions={
        **{name: plain_call("python", text) for name, text in _NAMES.items()},
        **operators(),
        "negative": negated,
        "reciprocal": template("1/{0}", TIMES),
        "rsqrt": lambda _equation, operands: Piece(f"1/np.sqrt({operands[0].text})", TIMES),
        "whole_power": whole_power,
        "softplus": lambda _equation, operands: function("np.logaddexp", "0", operands[0].text),
        "relu": lambda _equation, operands: function("np.maximum", operands[0].text, "0"),
        "identity": lambda _equation, operands: operands[0],
        "one_minus_square": one_minus_square,
        "over_one_plus_square": over_one_plus_square,
        "sech": template("1/np.cosh({0})", TIMES),
        "sech_square": template("1/np.cosh({0})**2", TIMES),
        "logcosh": template("np.logaddexp({0}, -{0}) - np.log(2)", SUM),
        "leaky_relu": lambda _equation, operands: _split_at_zero(operands, operands[0].at(UNARY)),
        "elu": lambda _equation, operands: _split_at_zero(operands, f"np.expm1({operands[0].text})"),
        "cast": lambda _equation, operands: Piece(f"1.0*{operands[0].at(UNARY)}", TIMES),
        "logdet": lambda _equation, operands: Piece(f"np.linalg.slogdet({operands[0].text})[1]"),
        "order_statistic": lambda equation, operands: Piece(f"np.sort({operands[0].text})[..., {equation.params['k']}]"),
        "sinc": lambda _equation, operands: function("np.sinc", operands[0].text),
        **{name: with_order(_NAMES[name]) for name in ("polygamma", "bessel_i", "bessel_j")},
        **{p.name: reduction(_NAMES[p.name]) for p in with_parameters("x axis keepdims") if p.name in _NAMES},
        **{p.name: with_keywords(_NAMES[p.name], "axis") for p in with_parameters("x axis") if p.name in _NAMES},
        **{p.name: with_keywords(_NAMES[p.name], "k") for p in with_parameters("x k") if p.name in _NAMES},
        "roll": with_keywords("np.roll", "shift", "axis"),
        "reshape": shaped("np.reshape"),
        "broadcast_to": shaped("np.broadcast_to"),
        "concat": joined("np.concatenate"),
        "stack": joined("np.stack"),
        "permute": permuted("np.transpose"),
        "index": indexed,
        "contract": contraction("np.einsum"),
    },
    number=_number,
    array=_array,
    document=lambda formulas: separate_functions(formulas, python, _NAMING),
    naming=_NAMING,
)  # fmt: skip

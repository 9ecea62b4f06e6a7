"""Programs as functions of NumPy."""

from __future__ import annotations

import keyword
import math
from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.formulas.documents import separate_functions
from gradcli.formulas.text import axis_text, indexed, negated, one_minus_square, permuted, sizes
from gradcli.formulas.text import number as plain_number
from gradcli.formulas.writing import (
    ATOM,
    POWER,
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
from gradcli.primitives.linear import latin
from gradcli.program.ir import Equation, Program


def python(program: Program, *, name: str, doc: str, short: int) -> str:
    """A program with one output as a function of the program's inputs, with the imports that it needs."""
    written = write(program, LANGUAGE, short=short)
    parameters = ", ".join(LANGUAGE.variable(v.name or "") for v in program.inputs)
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


def _variable(name: str) -> str:
    taken = keyword.iskeyword(name) or name in ("np", "special")
    return f"{name}_" if taken else name


# What NumPy and SciPy call each primitive that they have.
_NAMES = {**names("scipy", "special.{}".format), **names("numpy", "np.{}".format)}


def _reduction(name: str) -> Any:
    def spelling(equation: Equation, operands: Sequence[Piece]) -> Piece:
        axis = equation.params["axis"]
        whole = axis is None or axis == tuple(range(len(arrays.shape(equation.inputs[0]))))
        arguments = [] if whole else [f"axis={axis_text(axis)}"]
        arguments += ["keepdims=True"] if equation.params["keepdims"] else []
        return function(name, operands[0].text, *arguments)

    return spelling


def _with(name: str, *params: str) -> Any:
    """A function of an operand and parameters."""

    def spelling(equation: Equation, operands: Sequence[Piece]) -> Piece:
        values = ((p, equation.params[p]) for p in params)
        return function(name, operands[0].text, *(f"{p}={axis_text(v)}" for p, v in values if v is not None))

    return spelling


def _shaped(name: str) -> Any:
    return lambda equation, operands: function(name, operands[0].text, sizes(equation.params["shape"]))


def _joined(name: str) -> Any:
    def spelling(equation: Equation, operands: Sequence[Piece]) -> Piece:
        items = ", ".join(o.text for o in operands)
        return function(name, f"[{items}]", f"axis={equation.params['axis']}")

    return spelling


def _contraction(equation: Equation, operands: Sequence[Piece]) -> Piece:
    subscripts = latin(equation.params["terms"], equation.params["result"])
    return function("np.einsum", f"'{subscripts}'", *(o.text for o in operands))


def _split_at_zero(x: Piece, below: str) -> Piece:
    return function("np.where", f"{x.at(SUM)} > 0", x.text, below)


def _of_order(name: str) -> Any:
    return lambda equation, operands: function(name, str(equation.params["n"]), operands[0].text)


def _whole_power(equation: Equation, operands: Sequence[Piece]) -> Piece:
    return Piece(f"{operands[0].at(ATOM)}**{plain_number(equation.params['n']).at(UNARY)}", POWER)


LANGUAGE = Language(
    name="python",
    functions={
        **{name: plain_call("python", text) for name, text in _NAMES.items()},
        **operators(),
        "negative": negated,
        "reciprocal": template("1/{0}", TIMES),
        "rsqrt": lambda _equation, operands: Piece(f"1/np.sqrt({operands[0].text})", TIMES),
        "whole_power": _whole_power,
        "softplus": lambda _equation, operands: function("np.logaddexp", "0", operands[0].text),
        "relu": lambda _equation, operands: function("np.maximum", operands[0].text, "0"),
        "identity": lambda _equation, operands: operands[0],
        "one_minus_square": one_minus_square,
        "leaky_relu": lambda _equation, operands: _split_at_zero(operands[0], f"{operands[1].at(TIMES)}*{operands[0].at(UNARY)}"),
        "elu": lambda _equation, operands: _split_at_zero(operands[0], f"{operands[1].at(TIMES)}*np.expm1({operands[0].text})"),
        "cast": lambda _equation, operands: Piece(f"1.0*{operands[0].at(UNARY)}", TIMES),
        "logdet": lambda _equation, operands: Piece(f"np.linalg.slogdet({operands[0].text})[1]"),
        "order_statistic": lambda equation, operands: Piece(f"np.sort({operands[0].text})[..., {equation.params['k']}]"),
        "sinc": lambda _equation, operands: function("np.sinc", operands[0].text),
        **{name: _of_order(_NAMES[name]) for name in ("polygamma", "bessel_i", "bessel_j")},
        **{p.name: _reduction(_NAMES[p.name]) for p in with_parameters("x axis keepdims") if p.name in _NAMES},
        **{p.name: _with(_NAMES[p.name], "axis") for p in with_parameters("x axis") if p.name in _NAMES},
        **{p.name: _with(_NAMES[p.name], "k") for p in with_parameters("x k") if p.name in _NAMES},
        "roll": _with("np.roll", "shift", "axis"),
        "reshape": _shaped("np.reshape"),
        "broadcast_to": _shaped("np.broadcast_to"),
        "concat": _joined("np.concatenate"),
        "stack": _joined("np.stack"),
        "permute": lambda equation, operands: (
            permuted(equation, operands)
            if equation.params["axes"] == (1, 0)
            else function("np.transpose", operands[0].text, sizes(equation.params["axes"]))
        ),
        "index": indexed,
        "contract": _contraction,
    },
    number=_number,
    array=_array,
    document=lambda formulas: separate_functions(formulas, python),
    variable=_variable,
    reserved=("np", "special"),
)  # fmt: skip

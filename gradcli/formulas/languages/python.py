"""Code generation: programs as functions of NumPy and SciPy."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from gradcli import arrays
from gradcli.formulas.languages.text import (
    axis_text,
    contraction,
    digamma_rise,
    indexed,
    joined,
    negated,
    of_branch,
    of_order,
    one_minus_square,
    over_one_plus_square,
    permuted,
    reduction,
    scaled_erfc,
    shaped,
    sinc,
    sizes,
    whole_power,
    with_keywords,
)
from gradcli.formulas.languages.text import number as plain_number
from gradcli.formulas.writing.documents import Code, Document, Formulas, functions
from gradcli.formulas.writing.naming import Names, Naming, with_underscores
from gradcli.formulas.writing.stability import stable
from gradcli.formulas.writing.text_writer import (
    ATOM,
    COMPARE,
    CONDITIONAL,
    POWER,
    SUM,
    TANHSHRINK,
    TIMES,
    UNARY,
    BooleanConversion,
    Fragment,
    Language,
    Spelling,
    by_part,
    calls,
    function,
    infix,
    listed_array,
    operators,
    template,
    with_order,
    write,
)
from gradcli.primitives.primitive import Primitive
from gradcli.program import program_constants
from gradcli.program.ir import Equation, Program

_IMPORTS = {"np": "import numpy as np", "special": "from scipy import special"}


def python(
    program: Program, names: Names, *, name: str, doc: str, short: int, converted: str = "np.float64({0})"
) -> Code:
    """A program as a function of its inputs, with the imports that it needs; with several outputs it returns a
    tuple. `converted` is how a number that is an input becomes one of NumPy."""
    written = write(program, LANGUAGE, names, short=short)
    parameters = ", ".join(names.parameters)
    doc = doc.replace("\\", "\\\\").replace('"""', "'''")
    lines = [*(f"{n} = {part}" for n, part in written.parts), f"return {', '.join(written.results)}"]
    body = [f'"""{doc}"""', *_converted(names.read_by(program), names, lines, converted), *lines]
    code = "\n".join([f"def {name}({parameters}):", *(f"    {line}" for line in body)])
    return Code([line for module, line in _IMPORTS.items() if f"{module}." in code], code)


def _converted(read: Sequence[str], names: Names, lines: Sequence[str], number: str) -> Iterator[str]:
    """The line that converts the inputs to NumPy values, where operators need it: Python's numbers raise for 1/0 and
    1e200**2, and nested lists lack `A[0, 1]`."""
    if read and any(operator in line for line in lines for operator in ("/", "%", "**", "[")):
        shapes = names.parameters
        values = (f"np.asarray({name}, float)" if shapes[name] else number.format(name) for name in read)
        yield f"{', '.join(read)} = {', '.join(values)}"


def _number(value: Any) -> Fragment:
    text = plain_number(value).text.lstrip("-")
    names = {"pi": "np.pi", "e": "np.e", "inf": "np.inf", "nan": "np.nan"}
    if text in names:
        sign = math.copysign(1.0, float(value)) < 0 and text != "nan"
        return Fragment(f"-{names[text]}", UNARY, plain=True) if sign else Fragment(names[text], plain=True)
    return plain_number(value)._replace(plain=arrays.dtype_name(value) != "bool")


def _array(constant: Any) -> Fragment:
    shape, element = arrays.shape(constant), program_constants.uniform(constant)
    if element is not None:
        return function("np.full", sizes(shape), _as_float(_number(element)).text)
    return function("np.array", listed_array(constant, lambda n: _as_float(_number(n)).text))


def _as_float(piece: Fragment) -> Fragment:
    """A piece with integer literals as floats, which NumPy would otherwise compute with as integers."""
    if not piece.plain:
        return piece
    if re.fullmatch(r"-?\d+", piece.text):
        return piece._replace(text=f"{piece.text}.0", plain=False)
    return piece._replace(plain=False) if piece.level == ATOM else Fragment(f"np.float64({piece.text})")


def _with_floats(spelling: Spelling) -> Spelling:
    """A spelling for a call of NumPy or SciPy, with float operands."""
    return lambda equation, operands: spelling(equation, [*map(_as_float, operands)])


def _operator(symbol: str, level: int) -> Spelling:
    """An operator whose first operand is a NumPy number where Python would raise for two of its own."""
    spelling = infix(symbol, level)

    def spelled(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        plain = all(o.plain for o in operands)
        if plain and symbol in ("/", "//", "%", "**"):
            operands = [_of_numpy(operands[0]), *operands[1:]]
            plain = False
        return spelling(equation, operands)._replace(plain=plain and level in (SUM, TIMES))

    return spelled


def _of_numpy(piece: Fragment) -> Fragment:
    return Fragment(f"np.float64({piece.text})") if piece.plain else piece


def _power(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    return whole_power(equation, [_of_numpy(operands[0])])


def _reciprocal(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    return template("1/{0}", TIMES)(equation, [_of_numpy(operands[0])])


def _negated(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    return negated(equation, operands)._replace(plain=operands[0].plain)


def _is_taken(name: str) -> bool:
    return keyword.iskeyword(name) or name in ("np", "special", "__debug__")


def _name(primitive: Primitive) -> str:
    """The name of a primitive in NumPy or SciPy, with its module, or ""."""
    known = primitive.spelling
    return f"np.{known['numpy']}" if "numpy" in known else f"special.{known['scipy']}" if "scipy" in known else ""


def _named(form: Callable[[str], Spelling]) -> Spelling:
    """The spelling that `form` makes of the primitive's name in NumPy or SciPy."""
    return lambda equation, operands: form(_name(equation.primitive))(equation, operands)


def _of_symmetric_part(equation: Equation, operands: Sequence[Fragment], part: Callable[[str], str]) -> Fragment:
    """A function of the symmetric part of a matrix, because NumPy reads one triangle only."""
    x = operands[0].text if operands[0].text.isidentifier() else part(operands[0].text)
    is_matrix = len(arrays.shape(equation.inputs[0])) == 2
    return function(_name(equation.primitive), f"({x} + {f'{x}.T' if is_matrix else f'np.swapaxes({x}, -1, -2)'})/2")


def _split_at_zero(operands: Sequence[Fragment], below: str) -> Fragment:
    """x where it is positive, else scale*below."""
    x, scale = operands
    return function("np.where", f"{x.at(SUM)} > 0", x.text, f"{scale.at(TIMES)}*{below}")


def _reduced_by(name: str) -> Spelling:
    """A reduction with a ufunc of two operands, which does not overflow as np.linalg.norm does."""

    def spelling(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        keepdims = ["keepdims=True"] if equation.params["keepdims"] else []
        return function(f"{name}.reduce", operands[0].text, f"axis={axis_text(equation.params['axis'])}", *keepdims)

    return spelling


_CALLS: dict[str, Spelling] = {
    "rsqrt": lambda _equation, operands: Fragment(f"1/np.sqrt({operands[0].text})", TIMES),
    "softplus": lambda _equation, operands: function("np.logaddexp", "0", operands[0].text),
    "relu": lambda _equation, operands: function("np.maximum", operands[0].text, "0"),
    "sech": template("1/np.cosh({0})", TIMES),
    "csch": template("1/np.sinh({0})", TIMES),
    "coth": template("1/np.tanh({0})", TIMES),
    "erfcx": scaled_erfc("special.erfcx", "np.sqrt(np.pi)"),
    "softsign": template("{0}/(1 + np.abs({0}))", TIMES),
    "tanhshrink": template(f"np.where(np.abs({{0}}) < 0.01, {TANHSHRINK}, {{0}} - np.tanh({{0}}))"),
    "sech_square": template("1/np.cosh({0})**2", TIMES),
    "logcosh": template(
        "np.where(np.abs({0}) < 1, np.log1p(2*np.sinh(np.minimum(np.abs({0}), 1)/2)**2), "
        "np.logaddexp({0}, -{0}) - np.log(2))",
        inner=POWER,
    ),
    "leaky_relu": lambda _equation, operands: _split_at_zero(operands, operands[0].at(UNARY)),
    "elu": lambda _equation, operands: _split_at_zero(operands, f"np.expm1({operands[0].text})"),
    "norm": _reduced_by("np.hypot"),
    "logsumexp": _reduced_by("np.logaddexp"),
    "logdet": lambda _equation, operands: Fragment(f"np.linalg.slogdet({operands[0].text})[1]"),
    "order_statistic": lambda equation, operands: Fragment(f"np.sort({operands[0].text})[..., {equation.params['k']}]"),
    **dict.fromkeys(
        ("polygamma", "bessel_i", "bessel_j", "expn", "spherical_jn", "spherical_yn", "spherical_in", "spherical_kn"),
        _named(with_order),
    ),
    **dict.fromkeys(
        ("scaled_i", "k0e", "dawsn", "ellipk", "ellipe", "hurwitz_zeta"), _named(partial(of_order, "python"))
    ),
    "lambertw": of_branch("special.lambertw({}).real", "special.lambertw({}, -1).real"),
    "positions_in_order": with_keywords("np.argsort", "axis"),
    "roll": with_keywords("np.roll", "shift", "axis"),
    "reshape": shaped("np.reshape"),
    "broadcast_to": shaped("np.broadcast_to"),
    "concat": joined("np.concatenate"),
    "stack": joined("np.stack"),
    "permute": permuted("np.transpose"),
    "index": indexed,
    "contract": contraction("np.einsum", "np.outer"),
}

_OTHER_CALLS = calls(
    "python",
    _name,
    {
        "x axis keepdims": reduction,
        "x axis": lambda name: with_keywords(name, "axis"),
        "x k": lambda name: with_keywords(name, "k"),
    },
)


def _others(primitive: Primitive) -> Spelling | None:
    spelling = _OTHER_CALLS(primitive)
    return None if spelling is None else _with_floats(spelling)


# A number of NumPy, real or complex.
_OF_EITHER_KIND = "np.asarray({0}, np.result_type({0}, float))[()]"


def of_complex(_names: frozenset[str]) -> partial[Code]:
    """The writer of functions with complex numbers."""
    return partial(python, converted=_OF_EITHER_KIND)


def _document(formulas: Formulas) -> Document:
    if formulas.complex_names is not None:
        # Stable spellings are those of real numbers.
        return functions(formulas, of_complex(formulas.complex_names), _NAMING)
    return functions(stable(formulas, LANGUAGE), python, _NAMING)


# The operand of a function of period 2, reduced modulo 2.
_REST = "{0} - 2*np.round({0}/2)"
_NAMING = Naming(lambda name: with_underscores(name, _is_taken))

LANGUAGE = Language(
    name="python",
    imaginary_unit="1j",
    functions={
        **{name: _with_floats(spelling) for name, spelling in _CALLS.items()},
        **operators(form=_operator),
        "negative": _negated,
        "reciprocal": _reciprocal,
        "whole_power": _power,
        "identity": lambda _equation, operands: operands[0],
        "conjugate": template("np.conj({0})", inner=CONDITIONAL),
        "real_part": template("np.real({0})", inner=CONDITIONAL),
        "imaginary_part": template("np.imag({0})", inner=CONDITIONAL),
        "phase": template("np.angle({0})", inner=CONDITIONAL),
        "one_minus_square": one_minus_square,
        "digamma_rise": lambda _equation, operands: digamma_rise("special.digamma", operands),
        "over_one_plus_square": lambda equation, operands: over_one_plus_square(equation, [_of_numpy(operands[0])]),
        "cast": lambda _equation, operands: Fragment(f"1.0*{operands[0].at(UNARY)}", TIMES),
    },
    others=_others,
    number=_number,
    array=_array,
    document=_document,
    with_parts={
        "sinc": sinc("np.{}({})".format, _number),
        "sinpi": by_part(_REST, "np.sin(np.pi*np.where(np.abs({0}) > 0.5, np.sign({0}) - {0}, {0}))"),
        "cospi": by_part(_REST, "np.sin(np.pi*(0.5 - np.abs({0})))"),
        **dict.fromkeys(("cholesky", "eigvalsh"), _of_symmetric_part),
    },
    truths=BooleanConversion(
        lambda truth: Fragment(f"1.0*{truth.at(UNARY)}", TIMES),
        lambda number: Fragment(f"{number.at(SUM)} != 0", COMPARE),
    ),
    naming=_NAMING,
)  # fmt: skip

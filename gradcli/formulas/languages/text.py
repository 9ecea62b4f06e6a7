"""Code generation: programs in the expression language, as text that gradcli can read back."""

from __future__ import annotations

import keyword
import math
from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays
from gradcli.errors import DifferentiationError, LimitError
from gradcli.formulas.simplification.numbers import written_fraction
from gradcli.formulas.writing.documents import SHORT, Document, Formulas, separate_formulas
from gradcli.formulas.writing.naming import Names, names_of
from gradcli.formulas.writing.root_sum_squares import without_squares
from gradcli.formulas.writing.text_writer import (
    ATOM,
    COMPARE,
    POWER,
    PRODUCT,
    SUM,
    TIMES,
    UNARY,
    Fragment,
    Language,
    Spelling,
    SpellingWithPart,
    UnsupportedPrimitiveError,
    calls,
    function,
    infix,
    listed,
    listed_array,
    negated_piece,
    operators,
    plain_call,
    template,
    with_body,
    with_order,
    write,
)
from gradcli.primitives import table
from gradcli.primitives.entries.linear import latin
from gradcli.program import program_constants
from gradcli.program.ir import Equation, Program, owner_name

# Maximum characters of a program that can be read back; equals the limit of `gradcli.language.syntax`.
LONGEST = 1_000_000
# The contraction that is the outer product of two vectors.
OUTER = "a,b->ab"
# Largest order of repeated integrals of erfc; the text doubles with each order.
_MOST_INTEGRALS = 5
# Numbers that have a name in the language.
_NAMED = {math.pi: "pi", math.e: "e", math.inf: "inf"}
# The same numbers and nan as literals, for programs with inputs that have these names.
_NAMELESS = {"pi": repr(math.pi), "e": repr(math.e), "inf": "1e999", "nan": "1e999 - 1e999"}
# Library names that the reader drops before a dot, so that an input with such a name must not stand there.
_LIBRARIES = frozenset({"np", "numpy", "torch", "jnp", "jax", "scipy", "special", "nn", "F", "math"})


def text(program: Program, names: Names | None = None, *, short: int = 0) -> str:
    """A program with one output in the expression language; see `write`.

    Raises LimitError also for a text that is longer than what can be read back.
    """
    named = {owner_name(v.name or "") for v in program.inputs} & set(_NAMELESS)
    language = LANGUAGE._replace(number=_without_names) if named else LANGUAGE
    written = write(program, language, names, short=short)
    # A Python keyword may be the name of an input, but not stand alone as an expression.
    result = f"1*{written.result}" if keyword.iskeyword(written.result) else written.result
    found = "\n".join([*(f"{name} = {part}" for name, part in written.parts), result])
    if len(found) > LONGEST:
        raise LimitError(
            f"the formula is longer than the {LONGEST:,} characters that a program can have",
            hint="gradcli eval computes it",
        )
    return found


def number(value: Any) -> Fragment:
    """The text of a number that reads back as the same float."""
    if arrays.dtype_name(value) == "bool":
        return Fragment(str(bool(value)))
    value = float(value)
    if value != value:
        return Fragment("nan")
    if math.copysign(1.0, value) < 0:
        return negated_piece(number(-value))
    if value in _NAMED:
        return Fragment(_NAMED[value])
    fraction = written_fraction(value)
    if fraction is not None:
        return Fragment(str(fraction), TIMES)
    return Fragment(repr(value).removesuffix(".0"))


def _without_names(value: Any) -> Fragment:
    """The text of a number where an input has the name of a constant, such as `e`."""
    piece = number(value)
    sign, name = ("-", piece.text[1:]) if piece.text.startswith("-") else ("", piece.text)
    return piece._replace(text=sign + _NAMELESS.get(name, name), level=SUM if name == "nan" else piece.level)


def array(constant: Any) -> Fragment:
    """A constant array as nested lists, or as a call of `zeros` or `full`. Raises DifferentiationError for dtypes other
    than float64 and bool."""
    shape = arrays.shape(constant)
    if arrays.dtype_name(constant) not in ("float64", "bool"):
        raise DifferentiationError(f"a tensor of {arrays.dtype_name(constant)} cannot be written as text")
    if 0 in shape:
        return function("zeros", sizes(shape))
    element = program_constants.uniform(constant)
    if element is not None and arrays.dtype_name(constant) == "float64":
        return function("full", sizes(shape), number(element).text)
    return Fragment(listed_array(constant, lambda n: number(n).text))


def _operator_on_lists(symbol: str, level: int) -> Spelling:
    """An operator that writes lists as arrays where Python would concatenate or repeat them."""
    plain = infix(symbol, level)
    if symbol not in ("*", "+"):
        return plain

    def spelling(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        lists = [p.text.startswith("[") for p in operands]
        if all(lists) or (symbol == "*" and any(lists) and any(p.text[:1].isdigit() for p in operands)):
            operands = [function("array", p.text) if is_list else p for p, is_list in zip(operands, lists)]
        return plain(equation, operands)

    return spelling


def sizes(shape: Sequence[int]) -> str:
    """A shape or a tuple of axes as text."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def reduction(name: str) -> Spelling:
    """A reduction; the axes are left out where all axes are reduced."""

    def spelling(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        axis = equation.params["axis"]
        whole = axis is None or axis == tuple(range(len(arrays.shape(equation.inputs[0]))))
        arguments = [] if whole else [f"axis={axis_text(axis)}"]
        arguments += ["keepdims=True"] if equation.params["keepdims"] else []
        # Python's `sum` of nested lists would add the lists.
        module = "np." if name == "sum" and whole and operands[0].text.startswith("[[") else ""
        return function(f"{module}{name}", operands[0].text, *arguments)

    return spelling


def axis_text(axis: Any) -> str:
    if isinstance(axis, tuple):
        return str(axis[0]) if len(axis) == 1 else sizes(axis)
    return str(axis)


def with_keywords(name: str, *params: str) -> Spelling:
    """A function of one operand and keyword parameters, without those that are None."""

    def spelling(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        values = ((p, equation.params[p]) for p in params)
        return function(name, operands[0].text, *(f"{p}={axis_text(v)}" for p, v in values if v is not None))

    return spelling


def shaped(name: str) -> Spelling:
    return lambda equation, operands: function(name, operands[0].text, sizes(equation.params["shape"]))


def permuted(name: str) -> Spelling:
    def spelling(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        axes = equation.params["axes"]
        if axes == (1, 0) and operands[0].text not in _LIBRARIES:
            return Fragment(f"{operands[0].at(ATOM)}.T")
        return function(name, operands[0].text, sizes(axes))

    return spelling


def joined(name: str) -> Spelling:
    def spelling(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        items = ", ".join(o.text for o in operands)
        return function(name, f"[{items}]", f"axis={equation.params['axis']}")

    return spelling


def _rolled(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    shift, axis = equation.params["shift"], equation.params["axis"]
    arguments = [axis_text(shift)] if axis is None else [axis_text(shift), f"axis={axis_text(axis)}"]
    return function("roll", operands[0].text, *arguments)


def key_text(key: Sequence[Any]) -> str:
    """The text between the brackets of an index."""
    return ", ".join(map(_key_item, key))


def _key_item(item: Any) -> str:
    if item is Ellipsis:
        return "..."
    if isinstance(item, slice):
        step = "" if item.step is None else f":{item.step}"
        return f"{'' if item.start is None else item.start}:{'' if item.stop is None else item.stop}{step}"
    if item is None or isinstance(item, int):
        return str(item)
    return listed(arrays.tolist(item), str)


def indexed(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    key = equation.params["key"]
    return Fragment(f"{operands[0].at(ATOM)}[{key_text(key)}]") if key else operands[0]


def negated(_equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    return negated_piece(operands[0])


def whole_power(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    return Fragment(f"{operands[0].at(ATOM)}**{number(equation.params['n']).at(UNARY)}", POWER)


def contraction(name: str, outer: str) -> Spelling:
    """A call of the function `name` with Einstein's convention, or of `outer` for the outer product of two vectors."""

    def spelling(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        subscripts = latin(equation.params["terms"], equation.params["result"])
        if subscripts == OUTER:
            return function(outer, *(o.text for o in operands))
        return function(name, f"'{subscripts}'", *(o.text for o in operands))

    return spelling


def of_order(language: str, *names: str) -> Any:
    """A family of functions of which only the first orders have a name; raises UnsupportedPrimitiveError for the others."""

    def spelling(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        n = equation.params["n"]
        if n >= len(names):
            raise UnsupportedPrimitiveError(equation, language)
        return function(names[n], *(o.text for o in operands))

    return spelling


def _hurwitz_zeta(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    n = equation.params["n"]
    return function("zeta", *(o.text for o in operands), *([str(n)] if n else []))


def of_branch(*calls: str) -> Spelling:
    """A function with branches; `calls` are the texts of branches 0, -1 and so on."""
    return lambda equation, operands: Fragment(calls[-equation.params["k"]].format(operands[0].text))


def _cast(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    """A conversion: `x != 0` to bool, `1*x` to float64. Raises UnsupportedPrimitiveError for other dtypes."""
    if equation.params["dtype"] == "bool":
        return Fragment(f"{operands[0].at(SUM)} != 0", COMPARE)
    if equation.params["dtype"] != "float64":
        raise UnsupportedPrimitiveError(equation, "text")
    return Fragment(f"1*{operands[0].at(UNARY)}", PRODUCT)


def one_minus_square(_equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    x = operands[0].at(TIMES)
    return Fragment(f"(1 - {x})*(1 + {x})", TIMES)


def over_one_plus_square(_equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    return Fragment(f"1/(1 + {operands[0].at(ATOM)}**2)", TIMES)


def digamma_rise(digamma: str, operands: Sequence[Fragment]) -> Fragment:
    x, y = operands
    return Fragment(f"{digamma}({x.at(SUM)} + {y.at(PRODUCT)}) - {digamma}({x.text})", SUM)


def sinc(calls: Callable[[str, str], str], number: Callable[[float], Fragment]) -> SpellingWithPart:
    """sinc and its derivatives by their recurrence; `calls` writes a call of sinc, sin or cos."""

    def spelling(equation: Equation, operands: Sequence[Fragment], part: Callable[[str], str]) -> Fragment:
        def times(factor: float, text: str) -> str:
            return text if factor == 1 else f"{number(factor).at(UNARY)}*{text}"

        n, x = equation.params["n"], operands[0].text
        if n and not x.isidentifier():
            x = part(x)
        value = calls("sinc", x)
        for k in range(1, n + 1):
            wave = calls(("sin", "cos")[k % 2], f"{number(math.pi).text}*{x}")
            scale = (1, 1, -1, -1)[k % 4] * math.pi ** (k - 1)
            rest = f"({times(scale, wave)} - {times(k, value)})/{x}"
            value = part(rest) if k < n else rest
        return Fragment(value, TIMES if n else ATOM)

    return spelling


def _flat_root(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    """A root of order n, written so that its derivative at 0 is 0."""
    x, root = operands[0].text, number(1.0 / equation.params["n"]).at(UNARY)
    return function("where", f"{operands[0].at(SUM)} == 0", "0", f"{Fragment(x, operands[0].level).at(ATOM)}**{root}")


def scaled_erfc(name: str, root: str) -> Spelling:
    """erfcx, which is called `name`, or for n > 0 the scaled n-fold integral of erfc, of which derivative n is a multiple,
    by recurrence; `root` is the text of sqrt(pi)."""

    def spelling(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        n, x = equation.params["n"], operands[0]
        if n > _MOST_INTEGRALS:
            raise UnsupportedPrimitiveError(equation, "a formula")
        before, value = f"2/{root}", f"{name}({x.text})"
        for k in range(1, n + 1):
            before, value = value, f"(({before} - 2*{x.at(UNARY)}*{value})/{2 * k})"
        return Fragment(value)

    return spelling


def _scattered(equation: Equation, operands: Sequence[Fragment], part: Callable[[str], str]) -> Fragment:
    """The adjoint of an index, as the derivative of a sum over the indexed elements."""
    name = part(function("zeros", sizes(equation.params["shape"])).text)
    indexed_part = f"{name}[{key_text(equation.params['key'])}]"
    return function("diff", f"sum({operands[0].at(TIMES)}*{indexed_part})", name)


def _ranked(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
    """The element of rank k, counted from 0, along the last axis."""
    return Fragment(f"sort({operands[0].text})[..., {equation.params['k']}]")


def _result_of(call: str) -> Spelling:
    """One output of a function with several outputs."""
    return lambda _equation, operands: Fragment(call.format(operands[0].text))


def _with_k(name: str) -> Spelling:
    """A function of one operand and the parameter k."""
    return lambda equation, operands: function(name, operands[0].text, axis_text(equation.params["k"]))


def _document(formulas: Formulas) -> Document:
    """The value and its derivatives as separate formulas that share their names."""
    names = names_of(formulas.value, LANGUAGE.naming)

    def written(program: Program) -> str:
        program = without_squares(program, LANGUAGE, own=formulas.squares, read=True)
        return text(program, names.local_scope(), short=SHORT)

    return separate_formulas(formulas, written)


LANGUAGE: Language = Language(
    name="text",
    imaginary_unit="1j",
    functions={
        **operators(form=_operator_on_lists),
        "negative": negated,
        "whole_power": whole_power,
        "identity": lambda _equation, operands: operands[0],
        "cast": _cast,
        "flat_sqrt": plain_call("text", "sqrt"),
        "flat_root": _flat_root,
        "one_minus_square": one_minus_square,
        "over_one_plus_square": over_one_plus_square,
        "digamma_rise": lambda _equation, operands: digamma_rise("digamma", operands),
        "sech_square": lambda _equation, operands: Fragment(f"sech({operands[0].text})**2", POWER),
        "polygamma": with_order("polygamma"),
        "erfcx": scaled_erfc("erfcx", "sqrt(pi)"),
        "bessel_i": of_order("text", "i0", "i1"),
        "bessel_j": lambda equation, operands: (
            of_order("text", "j0", "j1") if equation.params["n"] < 2 else with_order("jv")
        )(equation, operands),
        "jv_of_number": plain_call("text", "jv"),
        **{f"{name}_part": plain_call("text", called) for name, called in (("real", "real"), ("imaginary", "imag"))},
        "conjugate": plain_call("text", "conj"),
        "phase": plain_call("text", "angle"),
        "riemann_zeta": plain_call("text", "zeta"),
        **{name: with_order(name) for name in ("expn", "spherical_jn", "spherical_yn", "spherical_in", "spherical_kn")},
        **{name: of_order("text", name) for name in ("k0e", "dawsn", "ellipk", "ellipe")},
        "scaled_i": of_order("text", "i0e"),
        "hurwitz_zeta": _hurwitz_zeta,
        "gamma_density": template("{1}**({0} - 1)*exp(-{1})/gamma({0})", TIMES),
        "beta_density": template("{2}**({0} - 1)*(1 - {2})**({1} - 1)/beta({0}, {1})", TIMES),
        "ive_slope": template("(ive({0} - 1, {1}) + ive({0} + 1, {1}))/2 - sign({1})*ive({0}, {1})", SUM),
        "lambertw": of_branch("lambertw({})", "lambertw({}, -1)"),
        "reshape": shaped("reshape"),
        "broadcast_to": shaped("broadcast_to"),
        "concat": joined("concat"),
        "stack": joined("stack"),
        "permute": permuted("permute"),
        "roll": _rolled,
        "index": indexed,
        "order_statistic": _ranked,
        "positions_in_order": with_keywords("argsort", "axis"),
        "determinant_sign": _result_of("slogdet({})[0]"),
        "log_magnitude": _result_of("slogdet({})[1]"),
        "paired_values": _result_of("svd({}, full_matrices=False)[1]"),
        "left_vectors": _result_of("svd({}, full_matrices=False)[0]"),
        "right_vectors": _result_of("svd({}, full_matrices=False)[2].mT"),
        "contract": contraction("einsum", "outer"),
        "integral": with_body(lambda: LANGUAGE, "tusw", "integrate({body}, {variable}, {low}, {high})"),
        "series_sum": with_body(lambda: LANGUAGE, "kjnm", "nsum({body}, {variable}, {low}, {high})"),
    },
    others=calls(
        "text",
        lambda primitive: primitive.name if table.find(primitive.name) else "",
        {"x axis keepdims": reduction, "x axis": lambda name: with_keywords(name, "axis"), "x k": _with_k},
    ),
    number=number,
    array=array,
    document=_document,
    with_parts={"put_at": _scattered, "sinc": sinc("{}({})".format, lambda value: _without_names(value))},
)

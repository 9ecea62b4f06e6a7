"""Hypothesis strategies for well-formed programs, as text."""

# ruff: noqa: SIM905 - columns of quoted words are hard to read

from __future__ import annotations

import re
from functools import cache, partial
from typing import NamedTuple

from hypothesis import strategies as st

NAMES = ("x", "y", "q")
PREFIXES = ("", "", "", "np.", "numpy.", "torch.", "jnp.", "math.")

ELEMENTWISE = tuple(
    """abs sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt cbrt square reciprocal sin cos tan asin acos atan
    sinh cosh tanh asinh acosh atanh floor ceil round trunc frac deg2rad rad2deg sigmoid expit logsigmoid softplus
    relu leaky_relu elu silu gelu sinc logit erf erfc erfinv gamma lgamma digamma ndtr ndtri i0 i1 j0 j1
    detach""".split()
)
ELEMENTWISE_OF_TWO = tuple(
    """atan2 hypot maximum minimum copysign fmod remainder logaddexp pow beta betaln xlogy xlog1py""".split()
)
REDUCTIONS = tuple("sum mean prod max min var std norm logsumexp any all argmax argmin median".split())
ALONG_AN_AXIS = tuple("cumsum cumprod softmax log_softmax sort".split())
SHAPES = tuple("squeeze ravel diag tril triu transpose flip".split())
LINEAR = tuple(
    """trace det logdet inv cholesky svdvals eigvalsh pinv matrix_exp""".split(),
)
LINEAR_OF_TWO = tuple("matmul dot outer kron cross solve tensordot".split())


class Piece(NamedTuple):
    """An expression and its precedence level, from CONDITIONAL to NAME."""

    text: str
    level: int

    def at(self, level: int) -> str:
        """The text where an expression of at least this level is expected, in parentheses if needed."""
        return self.text if self.level >= level else f"({self.text})"


(
    CONDITIONAL,
    OR,
    AND,
    NOT,
    COMPARE,
    SUM,
    PRODUCT,
    UNARY,
    POWER,
    ATOM,  # a number, after which a '.' would belong to it
    NAME,
) = range(11)


@cache
def expressions(names: tuple[str, ...] = NAMES, *, scalar: bool = False) -> st.SearchStrategy[str]:
    """An expression over `names`; with `scalar`, one whose value is a scalar if they are scalars."""
    leaves = st.one_of(numbers(), st.sampled_from(names).map(lambda name: Piece(name, NAME)), constants())
    if not scalar:
        leaves = st.one_of(leaves, lists(leaves))
    grow = _scalar_growth if scalar else partial(_growth, names)
    return st.recursive(leaves, grow, max_leaves=10).map(lambda piece: piece.text)


def numbers() -> st.SearchStrategy[Piece]:
    whole = st.integers(0, 12).map(str)
    return st.one_of(
        whole,
        st.sampled_from(("1.5", ".5", "1.", "2.25", "1e-3", "2.5E+1", "1_000", "0.1")),
    ).map(lambda text: Piece(text, ATOM))


def constants() -> st.SearchStrategy[Piece]:
    names = st.sampled_from(("pi", "tau", "e", "np.pi", "math.e", "torch.pi"))
    return names.map(lambda text: Piece(text, NAME))


def lists(items: st.SearchStrategy[Piece]) -> st.SearchStrategy[Piece]:
    comma = st.sampled_from(("", ","))
    rows = st.lists(items, min_size=1, max_size=3).map(lambda row: ", ".join(item.text for item in row))
    return st.tuples(rows, comma).map(lambda parts: Piece(f"[{parts[0]}{parts[1]}]", NAME))


def _scalar_growth(inner: st.SearchStrategy[Piece]) -> st.SearchStrategy[Piece]:
    return st.one_of(
        _binary(inner, ("+", "-"), SUM, SUM, PRODUCT),
        _binary(inner, ("*", "/", "//", "%"), PRODUCT, PRODUCT, UNARY),
        _binary(inner, ("**", "^"), POWER, ATOM, UNARY),
        _unary(inner, ("+", "-"), UNARY, UNARY),
        _conditional(inner, _comparison(inner)),
        inner.map(lambda piece: Piece(f"({piece.text})", NAME)),
        _call(ELEMENTWISE, inner),
        _call(ELEMENTWISE_OF_TWO, inner, inner),
        _method(ELEMENTWISE, inner),
        st.tuples(inner, inner, inner).map(lambda p: Piece(f"where({p[0].text} > 0, {p[1].text}, {p[2].text})", NAME)),
        st.tuples(inner, inner, inner).map(lambda p: Piece(f"clip({p[0].text}, {p[1].text}, max={p[2].text})", NAME)),
    )


def _growth(names: tuple[str, ...], inner: st.SearchStrategy[Piece]) -> st.SearchStrategy[Piece]:
    axis = st.sampled_from(("axis=0", "axis=-1", "dim=0", "axis=None, keepdims=True", "axis=(0, 1)", "keepdim=True"))
    return st.one_of(
        _scalar_growth(inner),
        _comparison(inner),
        _conditional(inner, inner),
        _logical(inner),
        lists(inner),
        st.tuples(inner, st.sampled_from(names)).map(lambda p: Piece(f"diff(sum({p[0].text}), {p[1]})", NAME)),
        _binary(inner, ("@",), PRODUCT, PRODUCT, UNARY),
        _call(REDUCTIONS, inner),
        _call(REDUCTIONS, inner, axis.map(lambda text: Piece(text, NAME))),
        _method(REDUCTIONS, inner),
        _method(REDUCTIONS, inner, axis),
        _method(ALONG_AN_AXIS, inner, st.sampled_from(("axis=0", "dim=-1", "0"))),
        _call(SHAPES, inner),
        _call(LINEAR, inner, prefix=st.sampled_from(("", "np.linalg.", "torch.linalg."))),
        _call(LINEAR_OF_TWO, inner, inner),
        _shaped(inner),
        _index(inner),
        st.tuples(inner, st.sampled_from(("T", "mT", "shape", "ndim", "size"))).map(
            lambda p: Piece(f"{p[0].at(NAME)}.{p[1]}", NAME)
        ),
        st.sampled_from(
            (
                "zeros(3)",
                "ones((2, 2))",
                "eye(2)",
                "full((2,), 3.0)",
                "arange(3)",
                "linspace(0, 1, 3)",
                "randn(2, seed=1)",
            )
        ).map(lambda text: Piece(text, NAME)),
    )


def _binary(
    inner: st.SearchStrategy[Piece], operators: tuple[str, ...], level: int, left: int, right: int
) -> st.SearchStrategy[Piece]:
    space = st.sampled_from(("", " "))
    return st.tuples(inner, st.sampled_from(operators), inner, space).map(
        lambda p: Piece(f"{p[0].at(left)}{p[3]}{p[1]}{p[3]}{p[2].at(right)}", level)
    )


def _unary(
    inner: st.SearchStrategy[Piece], operators: tuple[str, ...], level: int, operand: int
) -> st.SearchStrategy[Piece]:
    return st.tuples(st.sampled_from(operators), inner).map(lambda p: Piece(f"{p[0]}{p[1].at(operand)}", level))


def _comparison(inner: st.SearchStrategy[Piece]) -> st.SearchStrategy[Piece]:
    more = st.tuples(st.sampled_from(("<", "<=", ">", ">=", "==", "!=")), inner)
    return st.tuples(inner, st.lists(more, min_size=1, max_size=2)).map(
        lambda p: Piece(p[0].at(SUM) + "".join(f" {symbol} {piece.at(SUM)}" for symbol, piece in p[1]), COMPARE)
    )


def _logical(inner: st.SearchStrategy[Piece]) -> st.SearchStrategy[Piece]:
    return st.one_of(
        st.tuples(inner, inner).map(lambda p: Piece(f"{p[0].at(OR)} or {p[1].at(AND)}", OR)),
        st.tuples(inner, inner).map(lambda p: Piece(f"{p[0].at(AND)} and {p[1].at(NOT)}", AND)),
        inner.map(lambda p: Piece(f"not {p.at(NOT)}", NOT)),
    )


def _conditional(inner: st.SearchStrategy[Piece], test: st.SearchStrategy[Piece]) -> st.SearchStrategy[Piece]:
    return st.tuples(inner, test, inner).map(
        lambda p: Piece(f"{p[0].at(OR)} if {p[1].at(OR)} else {p[2].text}", CONDITIONAL)
    )


def _call(
    functions: tuple[str, ...],
    *arguments: st.SearchStrategy[Piece],
    prefix: st.SearchStrategy[str] = st.sampled_from(PREFIXES),  # noqa: B008
) -> st.SearchStrategy[Piece]:
    return st.tuples(prefix, st.sampled_from(functions), st.tuples(*arguments)).map(
        lambda p: Piece(f"{p[0]}{p[1]}({', '.join(argument.text for argument in p[2])})", NAME)
    )


def _method(
    functions: tuple[str, ...], receiver: st.SearchStrategy[Piece], *arguments: st.SearchStrategy[str]
) -> st.SearchStrategy[Piece]:
    return st.tuples(receiver, st.sampled_from(functions), st.tuples(*arguments)).map(
        lambda p: Piece(f"{p[0].at(NAME)}.{p[1]}({', '.join(p[2])})", NAME)
    )


def _shaped(inner: st.SearchStrategy[Piece]) -> st.SearchStrategy[Piece]:
    """Calls of functions that take a shape, a permutation of axes or more than one tensor."""
    forms = st.sampled_from(
        (
            "reshape({0}, (-1,))",
            "{0}.reshape(1, -1)",
            "permute({0}, (1, 0))",
            "expand_dims({0}, axis=0)",
            "broadcast_to({0}, (2, 2))",
            "concat([{0}, {0}], axis=0)",
            "stack([{0}, {1}])",
            "roll({0}, 1)",
            "tile({0}, 2)",
            "repeat({0}, 2, axis=0)",
            "take({0}, [0], axis=0)",
            "einsum('i,i->', {0}, {1})",
            'einsum("ij,jk->ik", {0}, {1})',
            "norm({0}, ord=1)",
            "matrix_power({0}, 2)",
            "polygamma(1, {0})",
        )
    )
    return st.tuples(forms, inner, inner).map(lambda p: Piece(p[0].format(p[1].at(NAME), p[2].at(NAME)), NAME))


def _index(inner: st.SearchStrategy[Piece]) -> st.SearchStrategy[Piece]:
    bound = st.sampled_from(("", "0", "1", "-1", "2"))
    slices = st.one_of(
        st.tuples(bound, bound).map(":".join),
        st.tuples(bound, bound, st.sampled_from(("", "1", "2", "-1"))).map(":".join),
    )
    item = st.one_of(slices, st.sampled_from(("0", "-1", "None", "[0]")))
    items = st.tuples(st.lists(item, min_size=1, max_size=3), st.sampled_from((None, "...")))
    return st.tuples(inner, items).map(
        lambda p: Piece(f"{p[0].at(NAME)}[{', '.join(filter(None, (*p[1][0], p[1][1])))}]", NAME)
    )


@st.composite
def programs(draw: st.DrawFn, names: tuple[str, ...] = NAMES, *, scalar: bool = False, max_statements: int = 4) -> str:
    """A program over the free names `names` that binds every other name before it reads it.

    Loops take at most three rounds. With `scalar`, its value is a scalar if `names` are scalars.
    """
    scope = _Scope(names, (), scalar)
    statements: list[str] = []
    for _ in range(draw(st.integers(0, max_statements))):
        text, scope = draw(_statements(scope, depth=2))
        statements.append(text)
    statements.append(draw(_expressions(scope)))
    return _joined(draw, statements)


# Functions that complex numbers lack, and others in their place.
_OF_COMPLEX = {"floor": "real", "ceil": "imag", "round": "conj", "trunc": "angle", "frac": "abs", "copysign": "complex"}
# A number that is no bound, index or axis.
_NUMBER = re.compile(r"(?<![\w.\[:=-])(\d+\.\d*|\.\d+|\d+e-?\d+|[1-9]\d*)(?![\w.:\]])")


@st.composite
def complex_programs(draw: st.DrawFn, names: tuple[str, ...] = NAMES) -> str:
    """A program of `programs`, with imaginary numbers in place of some of its numbers."""
    text = draw(programs(names))
    for name, other in _OF_COMPLEX.items():
        text = re.sub(rf"\b{name}\b", other, text)
    imaginary = iter(draw(st.lists(st.booleans(), min_size=20, max_size=20)))
    return _NUMBER.sub(lambda number: number[0] + "j" * next(imaginary, False), text)


class _Scope(NamedTuple):
    names: tuple[str, ...]
    functions: tuple[tuple[str, int], ...]
    scalar: bool


@cache
def _expressions(scope: _Scope) -> st.SearchStrategy[str]:
    plain = expressions(scope.names, scalar=scope.scalar)
    if not scope.functions:
        return plain
    calls = st.sampled_from(scope.functions).flatmap(
        lambda f: st.tuples(*[plain] * f[1]).map(lambda arguments: f"{f[0]}({', '.join(arguments)})")
    )
    return st.one_of(plain, calls, st.tuples(calls, plain).map(lambda p: f"{p[0]} + ({p[1]})"))


@cache
@st.composite
def _statements(draw: st.DrawFn, scope: _Scope, depth: int) -> tuple[str, _Scope]:
    """A statement, and the scope after it."""
    kinds = ["assign", "define"] + ["if", "for", "while"] * (depth > 0)
    kind = draw(st.sampled_from(kinds))
    if kind == "assign":
        name = draw(st.sampled_from(("a", "b", "σ", "theta_1", *scope.names)))
        text = f"{name} = {draw(_expressions(scope))}"
        return text, scope._replace(names=tuple(dict.fromkeys((*scope.names, name))))
    if kind == "define":
        return draw(_definitions(scope))
    if kind == "for":
        index = draw(st.sampled_from(("i", "j")))
        body = draw(_blocks(scope._replace(names=tuple(dict.fromkeys((*scope.names, index)))), depth - 1))
        return f"for {index} in range({draw(st.integers(1, 3))}) {body}", scope
    if kind == "while":
        counter = f"n{depth}"
        inside = scope._replace(names=(*scope.names, counter))
        body = draw(_blocks(inside, depth - 1, last=f"{counter} = {counter} + 1"))
        return f"{counter} = 0; while {counter} < {draw(st.integers(1, 3))} {body}", scope
    return draw(_branches(scope, depth)), scope


@cache
@st.composite
def _branches(draw: st.DrawFn, scope: _Scope, depth: int) -> str:
    text = f"if {draw(_expressions(scope))} > 0 " if draw(st.booleans()) else f"if {scope.names[0]} < 1 "
    text += draw(_blocks(scope, depth - 1))
    if draw(st.booleans()):
        text += f" else if {scope.names[-1]} >= 2 {draw(_blocks(scope, depth - 1))}"
    if draw(st.booleans()):
        text += draw(st.sampled_from((" ", "\n"))) + f"else {draw(_blocks(scope, depth - 1))}"
    return text


@cache
@st.composite
def _blocks(draw: st.DrawFn, scope: _Scope, depth: int, last: str | None = None) -> str:
    statements = []
    for _ in range(draw(st.integers(0, 2))):
        # A block assigns only to names that are bound already, so that no branch leaves a name unbound.
        name = draw(st.sampled_from(tuple(name for name in scope.names if name not in {"i", "j", "n1", "n2"})))
        statements.append(f"{name} = {draw(_expressions(scope))}")
    if depth > 0 and draw(st.booleans()):
        statements.append(draw(_branches(scope, depth)))
    if last is not None:
        statements.append(last)
    return f"{{ {_joined(draw, statements)} }}" if statements else "{ }"


@cache
@st.composite
def _definitions(draw: st.DrawFn, scope: _Scope) -> tuple[str, _Scope]:
    function = f"f{len(scope.functions)}"
    parameters = draw(st.sampled_from((("u",), ("u", "v"), ("x", "w"))))
    body = draw(_expressions(scope._replace(names=parameters)))
    text = f"{function}({', '.join(parameters)}) = {body}"
    if draw(st.booleans()):
        gradients = [draw(expressions((*parameters, "g"), scalar=scope.scalar)) for _ in parameters]
        text += draw(st.sampled_from((" ", "\n"))) + f"backward(g) = {', '.join(gradients)}"
    return text, scope._replace(functions=(*scope.functions, (function, len(parameters))))


_SEPARATORS = st.sampled_from(("; ", ";", "\n", "\r\n", "\n\n", " # note\n", ";;", ";\n"))
_ENDS = st.sampled_from(("", "\n", ";", " # end\n"))


def _joined(draw: st.DrawFn, statements: list[str]) -> str:
    text = statements[0]
    for statement in statements[1:]:
        text += draw(_SEPARATORS) + statement
    return text + draw(_ENDS)

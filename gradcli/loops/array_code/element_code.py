"""The instructions of elementwise equations in loops of arrays: on numbers, or on vectors of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from gradcli.arrays.definitions.common_definitions import SMALL
from gradcli.executors.function_pairs import FunctionPair, function_code
from gradcli.executors.llvm_equations import LOGIC, writers
from gradcli.executors.vector_functions import PAIRS
from gradcli.loops import loop_code
from gradcli.loops.body_tracing import chosen, frozen
from gradcli.loops.loop_code import NumberCode
from gradcli.primitives import conversions
from gradcli.primitives.entries import arithmetic, comparisons, exponential, linear, powers
from gradcli.primitives.entries.elementwise import elementary, trigonometric
from gradcli.primitives.entries.layers import activations
from gradcli.primitives.entries.special_functions import special
from gradcli.primitives.entries.statistics import flat_sqrt
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Equation

# The cost of computing an element, in operations that the processor computes for a vector at once: of a division or a
# square root, and of a function of the C library.
_DIVISION, _CALL = 8, 60
# The cost of a function that is computed for a vector at once.
_VECTORISED = 25
_FREE = frozenset([arithmetic.identity, arithmetic.zeros_like, arithmetic.ones_like, conversions.cast, frozen])
_DIVIDING = frozenset(
    [
        arithmetic.divide, arithmetic.reciprocal, powers.sqrt, powers.rsqrt, flat_sqrt, activations.softsign,
        trigonometric.over_one_plus_square,
    ]
)  # fmt: skip
# Primitives of a few instructions, besides those of `writers`.
_SIMPLE = frozenset(
    [
        chosen, comparisons.where, comparisons.maximum, comparisons.minimum, arithmetic.copysign,
        comparisons.clip_between, exponential.relu, special.leaky_relu, elementary.isinf, trigonometric.one_minus_square,
        *LOGIC, *_FREE, *_DIVIDING,
    ]
)  # fmt: skip
_ROUNDINGS = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "roundeven"}


@cache
def _writers() -> Mapping[Primitive, Callable[..., str]]:
    """The writers of further primitives, as functions of the code and the names of their operands."""
    return {
        flat_sqrt: lambda code, x: code.intrinsic("sqrt", x),
        comparisons.clip_between: lambda code, x, low, high: code.selected("olt", code.selected("ogt", x, low), high),
        elementary.isinf: lambda code, x: code.compared("oeq", code.intrinsic("fabs", x), code.literal(math.inf)),
        exponential.softplus: lambda code, x: code.softplus(x),
        exponential.logsigmoid: lambda code, x: code.operation("fneg", code.softplus(code.operation("fneg", x))),
        special.leaky_relu: lambda code, x, slope: code.where_positive(x, x, code.operation("fmul", slope, x)),
        special.elu: lambda code, x, alpha: code.elu(x, alpha),
        activations.softsign: lambda code, x: code.softsign(x),
        trigonometric.one_minus_square: lambda code, x: code.one_minus_square(x),
        trigonometric.over_one_plus_square: lambda code, x: code.over_one_plus_square(x),
    }


def is_elementwise(primitive: Primitive) -> bool:
    """Return whether `ElementCode` writes a primitive."""
    return loop_code.writes(primitive) or primitive in _writers() or primitive.function in _ROUNDINGS


def calls_library(equation: Equation) -> bool:
    """Return whether an elementwise equation is computed by a function of the C library."""
    primitive = equation.primitive
    if primitive is powers.whole_power:
        return bool(equation.params["n"] != 2)
    simple = primitive in _SIMPLE or primitive in writers() or primitive.function in _ROUNDINGS or _pair_of(primitive)
    return is_elementwise(primitive) and not simple


def cost(equation: Equation) -> int:
    """The cost of an element of the result of an elementwise equation."""
    if equation.primitive in _FREE:
        return 0
    if equation.primitive in _DIVIDING:
        return _DIVISION
    if _pair_of(equation.primitive):
        return _VECTORISED
    return _CALL if calls_library(equation) else 1


def _pair_of(primitive: Primitive) -> FunctionPair | None:
    """The pair of vectorised functions that a primitive belongs to."""
    return next((pair for pair in PAIRS if primitive in pair.primitives), None)


class ElementCode(NumberCode):
    """The instructions of elementwise equations, on numbers or on vectors, as `use_width` says.

    Functions of the C library are called for numbers alone, and those of `vector_functions` for vectors.
    """

    def use_width(self, width: int) -> None:
        """Write further instructions for vectors of this width, or for numbers if it is 1."""
        self.width = None if width == 1 else width
        self.kind, self.truths = self.vector("double"), self.vector("i1")

    def repeated(self, name: str, element: str) -> str:
        """A vector of equal elements of a type."""
        if self.width is None:
            return name
        if not name.startswith("%"):
            return self.filled(f"{element} {name}")
        kind = self.vector(element)
        one = self.put(f"insertelement {kind} poison, {element} {name}, i64 0")
        return self.put(f"shufflevector {kind} {one}, {kind} poison, <{self.width} x i32> zeroinitializer")

    def selected(self, order: str, x: str, y: str) -> str:
        either = self.put(f"or {self.truths} {self.compared(order, x, y)}, {self.compared('uno', x, x)}")
        return self.chosen(either, x, y)

    def where_positive(self, x: str, y: str, otherwise: str) -> str:
        return self.chosen(self.compared("ogt", x, self.literal(0.0)), y, otherwise)

    def sigmoid(self, x: str) -> str:
        self.called.add("exp")
        self.declared |= {"declare double @exp(double)", _SIGMOID}
        return self.put(f"call double @sigmoid(double {x})")

    def softplus(self, x: str) -> str:
        """log(1 + exp(-abs(x))), and x if it is positive."""
        power = self.call("exp", self.operation("fneg", self.intrinsic("fabs", x)))
        return self.operation("fadd", self.where_positive(x, x, self.literal(0.0)), self.call("log1p", power))

    def elu(self, x: str, alpha: str) -> str:
        power = self.call("expm1", self.where_positive(x, self.literal(0.0), x))
        return self.where_positive(x, x, self.operation("fmul", alpha, power))

    def softsign(self, x: str) -> str:
        return self.operation("fdiv", x, self.operation("fadd", self.literal(1.0), self.intrinsic("fabs", x)))

    def one_minus_square(self, x: str) -> str:
        one = self.literal(1.0)
        return self.operation("fmul", self.operation("fsub", one, x), self.operation("fadd", one, x))

    def over_one_plus_square(self, x: str) -> str:
        scaled = self.operation("fmul", x, self.literal(SMALL))
        square, one = self.operation("fmul", scaled, scaled), self.literal(SMALL**2)
        return self.operation("fdiv", one, self.operation("fadd", one, square))

    def computed(self, equation: Equation) -> str:
        if equation.primitive in (linear.matmul, linear.contract):
            return self.operation("fmul contract", *map(self.number, equation.inputs))
        return super().computed(equation)

    def written(self, primitive: Primitive, operands: Sequence[str]) -> str:
        own = _writers().get(primitive)
        if own is not None:
            return own(self, *operands)
        pair = _pair_of(primitive)
        if pair is not None:
            function = function_code(pair, primitive, self.width)
            self.declared |= function.texts
            self.called.update(pair.symbols)
            return self.put(f"call {self.kind} @{function.name}({self.kind} {operands[0]})")
        if primitive.function in _ROUNDINGS:
            return self.intrinsic(_ROUNDINGS[primitive.function], *operands)
        return super().written(primitive, operands)


# Computes exp(x) only where exp(-x) overflows.
_SIGMOID = """define internal double @sigmoid(double %x) {
  %opposite = fneg double %x
  %inverse = call double @exp(double %opposite)
  %sum = fadd double %inverse, 1.0
  %usual = fdiv double 1.0, %sum
  %overflows = fcmp oeq double %inverse, 0x7FF0000000000000
  br i1 %overflows, label %small, label %end
small:
  %power = call double @exp(double %x)
  ret double %power
end:
  ret double %usual
}"""

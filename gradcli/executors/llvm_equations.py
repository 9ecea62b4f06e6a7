"""Write elementwise equations in LLVM IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from gradcli.executors.llvm_vectors import VectorCode
from gradcli.primitives import conversions
from gradcli.primitives.entries import arithmetic, comparisons, powers
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation, Variable


@cache
def writers() -> Mapping[Primitive, Callable[..., str]]:
    """Map each primitive to the function that writes its result from the names of its operands."""
    comparison = {
        comparisons.less: "olt", comparisons.less_equal: "ole", comparisons.greater: "ogt",
        comparisons.greater_equal: "oge", comparisons.equal: "oeq", comparisons.not_equal: "une",
    }  # fmt: skip
    return {
        arithmetic.add: lambda body, x, y: body.operation("fadd", x, y),
        arithmetic.subtract: lambda body, x, y: body.operation("fsub", x, y),
        arithmetic.multiply: lambda body, x, y: body.operation("fmul", x, y),
        arithmetic.divide: lambda body, x, y: body.operation("fdiv", x, y),
        arithmetic.reciprocal: lambda body, x: body.operation("fdiv", body.literal(1.0), x),
        arithmetic.negative: lambda body, x: body.operation("fneg", x),
        arithmetic.absolute: lambda body, x: body.intrinsic("fabs", x),
        arithmetic.sign: lambda body, x: body.sign(x),
        powers.sqrt: lambda body, x: body.intrinsic("sqrt", x),
        **{p: lambda body, x, y, order=order: body.compared(order, x, y) for p, order in comparison.items()},
        comparisons.isnan: lambda body, x: body.compared("uno", x, x),
    }


# Primitives on truth values, for which numbers are converted.
LOGIC = {comparisons.logical_and: "and", comparisons.logical_or: "or", comparisons.logical_not: "xor"}


class EquationCode(VectorCode):
    """The instructions of equations. `names` has the results of variables: numbers, or truth values of type i1."""

    def __init__(self, name: str, width: int | None) -> None:
        super().__init__(name, width)
        self.names: dict[Variable, str] = {}

    def sign(self, x: str) -> str:
        """1, -1 or 0, and nan for nan."""
        zero = self.literal(0.0)
        found = self.chosen(self.compared("oeq", x, zero), zero, x)
        found = self.chosen(self.compared("olt", x, zero), self.literal(-1.0), found)
        return self.chosen(self.compared("ogt", x, zero), self.literal(1.0), found)

    def computed(self, equation: Equation) -> str:
        """Write an equation, and return the name of its result. Raises KeyError for a primitive without a writer."""
        primitive, inputs, output = equation.primitive, equation.inputs, equation.output
        if primitive in LOGIC:
            # The negation of x is x xor True.
            other = inputs[1] if len(inputs) > 1 else True
            return self.put(f"{LOGIC[primitive]} {self.truths} {self.truth(inputs[0])}, {self.truth(other)}")
        if primitive is conversions.cast:
            return self.truth(inputs[0]) if output.dtype == "bool" else self.number(inputs[0])
        if primitive is comparisons.where:
            read, kind = (self.truth, self.truths) if output.dtype == "bool" else (self.number, self.kind)
            return self.chosen(self.truth(inputs[0]), read(inputs[1]), read(inputs[2]), kind)
        operands = [self.number(a) for a in inputs]
        if primitive is powers.whole_power:
            return self.operation("fmul", *operands * 2)
        return self.written(primitive, operands)

    def number(self, atom: Atom) -> str:
        """An atom as a number."""
        if not isinstance(atom, Variable):
            return self.literal(float(atom))
        name = self.names[atom]
        return name if atom.dtype == "float64" else self.put(f"uitofp {self.truths} {name} to {self.kind}")

    def truth(self, atom: Atom) -> str:
        """An atom as a truth value: a number is true if it is not 0."""
        if not isinstance(atom, Variable):
            return self.filled(f"i1 {int(bool(atom))}")
        name = self.names[atom]
        return name if atom.dtype == "bool" else self.compared("une", name, self.literal(0.0))

    def written(self, primitive: Primitive, operands: Sequence[str]) -> str:
        """Write a primitive applied to numbers, and return the name of its result."""
        return writers()[primitive](self, *operands)

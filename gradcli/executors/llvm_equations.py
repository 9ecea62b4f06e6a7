"""Write elementwise equations in LLVM IR, as instructions on float64 numbers or on vectors of them."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from gradcli.primitives import conversions
from gradcli.primitives.entries import arithmetic, comparisons, powers
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation, Variable


class VectorCode:
    """Instructions on vectors of `width` elements, or on single numbers if it is None, with a name for every result.

    `name` is the beginning of these names. `kind` and `truths` are the types of numbers and truth values, `lines` the
    instructions, and `declared` the declarations of the functions that they call.
    """

    def __init__(self, name: str, width: int | None) -> None:
        self.name = name
        self.width = width
        self.kind = self.vector("double")
        self.truths = self.vector("i1")
        self.declared: set[str] = set()
        self.lines: list[str] = []
        self._count = 0

    def put(self, instruction: str) -> str:
        """Write an instruction, and return the name of its result."""
        self._count += 1
        name = f"%{self.name}.v{self._count}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def operation(self, name: str, *operands: str) -> str:
        return self.put(f"{name} {self.kind} {', '.join(operands)}")

    def compared(self, order: str, x: str, y: str) -> str:
        return self.operation(f"fcmp {order}", x, y)

    def intrinsic(self, function: str, *operands: str) -> str:
        """Call a function of LLVM whose operands and result are numbers."""
        called = f"@llvm.{function}.{'' if self.width is None else f'v{self.width}'}f64"
        self.declared.add(f"declare {self.kind} {called}({', '.join([self.kind] * len(operands))})")
        return self.put(f"call {self.kind} {called}({', '.join(f'{self.kind} {o}' for o in operands)})")

    def chosen(self, condition: str, x: str, y: str, kind: str | None = None) -> str:
        """`x` where `condition` is true, else `y`, which are numbers or of type `kind`."""
        kind = kind or self.kind
        return self.put(f"select {self.truths} {condition}, {kind} {x}, {kind} {y}")

    def literal(self, number: float) -> str:
        bits = struct.unpack("<Q", struct.pack("<d", number))[0]
        return self.filled(f"double 0x{bits:016X}")

    def filled(self, element: str) -> str:
        """A constant vector of equal elements, which are given with their type; the number if there are no vectors."""
        return element.split()[1] if self.width is None else f"<{', '.join([element] * self.width)}>"

    def vector(self, element: str) -> str:
        """The type of a vector of elements of a type; that type if there are no vectors."""
        return element if self.width is None else f"<{self.width} x {element}>"


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
        comparisons.isfinite: lambda body, x: body.compared("olt", body.intrinsic("fabs", x), body.literal(math.inf)),
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

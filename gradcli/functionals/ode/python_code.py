"""The Taylor coefficients of the solution of a system at a point, as a generated Python function of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import mul
from typing import Any, NoReturn

from gradcli import arrays
from gradcli.executors.scalars import ScalarWriter
from gradcli.functionals.ode.recurrences import Recurrence, Recurrences
from gradcli.program.ir import Atom, Variable

# Takes the order, the time, the states and the given values; returns the coefficients of each state and other output.
Coefficients = Callable[..., list[list[float]]]


def coefficients(system: Recurrences) -> Coefficients:
    """The function of a system. It raises ArithmeticError or ValueError where the right side is not analytic."""
    return SeriesWriter(system).function()


def array_coefficients(system: Recurrences) -> Coefficients:
    """The function of a system for arrays of times, states and given values.

    It raises ValueError or TypeError for an operation that is not known for arrays.
    """
    np = arrays.numpy_namespace()
    writer = SeriesWriter(system)
    for name, function in writer.known.items():
        if getattr(math, name, None) is function and callable(function):
            writer.known[name] = getattr(np, _NUMPY_NAMES.get(name, name), _no_array_function)
    return writer.function()


# Functions of `math` that have another name in NumPy.
_NUMPY_NAMES = {"pow": "power", **{f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")}}
_NUMPY_NAMES["atan2"] = "arctan2"


def _no_array_function(*_operands: Any) -> NoReturn:
    raise TypeError


class SeriesWriter(ScalarWriter):
    """Each varying value has a list of its coefficients, and some a list of those of its derivative."""

    def __init__(self, system: Recurrences) -> None:
        super().__init__(system.program)
        self.system = system
        self.known |= {"mul": mul, "power_at_zero": power_at_zero}
        count = len(system.rates)
        self.time, self.states = system.program.inputs[0], system.program.inputs[1 : 1 + count]
        varying = [self.time, *self.states, *(r.output for r in system.recurrences)]
        self.lists = {v: f"c{i}" for i, v in enumerate(varying)}
        # The lists of the coefficients of derivatives.
        self.slopes: dict[Variable, str] = {}
        for kind, operands, output in system.recurrences:
            pairs = zip(operands[::2], operands[1::2])
            sloped = [x for v, x in pairs if self._varies(v)] if kind == "chain" else [operands[0], output]
            self.slopes |= {x: f"d{self.lists[x]}" for x in sloped if kind in ("chain", "power")}

    def function(self) -> Coefficients:
        """The function of the order and of the inputs of the program."""
        return self.written(", ".join(self.names[v] for v in self.program.inputs), self.statements())

    def written(self, inputs: str, body: Sequence[str]) -> Coefficients:
        """The function of the order and of what is written as `inputs`; `body` computes everything at order 0."""
        rest = [line for r in self.system.recurrences for line in self._lines(r)]
        begin = [f"{c} = [{self.number(v)}]" for v, c in self.lists.items()]
        begin += [f"{d} = []" for d in self.slopes.values()]
        lines = [
            f"def coefficients(order, {inputs}):",
            *(f"    {line}" for line in (*body, *begin)),
            "    for k in range(1, order + 1):",
            *(f"        {self.lists[s]}.append({self._rate(r)} / k)" for s, r in zip(self.states, self.system.rates)),
            "        if k == order: break",
            f"        {self.lists[self.time]}.append(1.0 if k == 1 else 0.0)",
            *(f"        {line}" for s in (self.time, *self.states) for line in self._further(s)),
            *(f"        {line}" for line in rest),
            f"    return [{', '.join([*(self.lists[s] for s in self.states), *map(self._whole, self.system.others)])}]",
        ]
        exec("\n".join(lines), self.known)
        made: Coefficients = self.known["coefficients"]
        return made

    def _whole(self, atom: Atom) -> str:
        """The list of the coefficients of an output."""
        return self.lists[atom] if self._varies(atom) else f"[{self.number(atom)}]"

    def _rate(self, rate: Atom) -> str:
        if isinstance(rate, Variable) and rate in self.lists:
            # A slope may be a state, whose list has this order already.
            return f"{self.lists[rate]}[k - 1]"
        return f"({self.number(rate)} if k == 1 else 0.0)"

    def _further(self, x: Variable) -> list[str]:
        return [f"{self.slopes[x]}.append({self.lists[x]}[-1] * k)"] if x in self.slopes else []

    def _lines(self, recurrence: Recurrence) -> list[str]:
        """The statements that append a coefficient."""
        output = recurrence.output
        text = getattr(self, f"_{recurrence.kind}")(recurrence.operands, output)
        return [f"{self.lists[output]}.append({text})", *self._further(output)]

    def _last(self, atom: Atom) -> str:
        return f"{self.lists[atom]}[-1]" if self._varies(atom) else "0.0"

    def _varies(self, atom: Atom) -> bool:
        return isinstance(atom, Variable) and atom in self.lists

    def _add(self, operands: Sequence[Atom], _output: Variable) -> str:
        return " + ".join(self._last(a) for a in operands if self._varies(a))

    def _subtract(self, operands: Sequence[Atom], _output: Variable) -> str:
        a, b = operands
        if not self._varies(b):
            return self._last(a)
        return f"{self._last(a)} - {self._last(b)}" if self._varies(a) else f"-{self._last(b)}"

    def _negative(self, operands: Sequence[Atom], _output: Variable) -> str:
        return f"-{self._last(operands[0])}"

    def _scale(self, operands: Sequence[Atom], _output: Variable) -> str:
        return f"{self._last(operands[0])} * {self.number(operands[1])}"

    def _shrink(self, operands: Sequence[Atom], _output: Variable) -> str:
        return f"{self._last(operands[0])} / {self.number(operands[1])}"

    def _multiply(self, operands: Sequence[Atom], _output: Variable) -> str:
        a, b = (self.lists[o] for o in operands)
        return f"sum(map(mul, {a}, reversed({b})))"

    def _divide(self, operands: Sequence[Atom], output: Variable) -> str:
        b = self.lists[operands[1]]
        return f"({self._last(operands[0])} - sum(map(mul, {self.lists[output]}, reversed({b})))) / {b}[0]"

    def _choose(self, operands: Sequence[Atom], _output: Variable) -> str:
        condition, a, b = operands
        return f"{self._last(a)} if {self._atom(condition)} else {self._last(b)}"

    def _power(self, operands: Sequence[Atom], output: Variable) -> str:
        x, q = operands
        own, base, exponent = self.lists[output], self.lists[x], self.number(q)
        first = f"{exponent} * sum(map(mul, {own}, reversed({self.slopes[x]})))"
        second = f"sum(map(mul, {self.slopes[output]}, reversed({base}[1:-1])))"
        return f"({first} - {second}) / (k * {base}[0]) if {base}[0] else power_at_zero({base}, {exponent})"

    def _chain(self, operands: Sequence[Atom], _output: Variable) -> str:
        terms, scaled = [], []
        for v, x in zip(operands[::2], operands[1::2]):
            if self._varies(v):
                terms.append(f"sum(map(mul, {self.lists[v]}, reversed({self.slopes[x]})))")
            else:
                scaled.append(f"{self.number(v)} * {self._last(x)}")
        return " + ".join([*scaled, f"({' + '.join(terms)}) / k"] if terms else scaled)


def power_at_zero(base: Sequence[float], exponent: float) -> float:
    """The last coefficient of a power of a series that begins with 0. Raises ValueError where the power is no series."""
    first = next((i for i, c in enumerate(base) if c), len(base))
    skipped, k = first * exponent, len(base) - 1
    if first == len(base):
        # All that is known is that the power begins later, or is 0.
        if exponent < 1:
            raise ValueError
        return 0.0
    if skipped != int(skipped) or skipped < 0:
        raise ValueError
    rest = base[first:]
    found = [math.pow(rest[0], exponent)]
    for n in range(1, k - int(skipped) + 1):
        total = sum((exponent * j - (n - j)) * rest[j] * found[n - j] for j in range(1, min(n, len(rest) - 1) + 1))
        found.append(total / (n * rest[0]))
    place = k - int(skipped)
    return found[place] if place >= 0 else 0.0

"""The Taylor coefficients of the solution of a system at a point, as a generated Python function of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import mul
from typing import Any, NoReturn, TypeGuard

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


# The kinds of recurrences that read other coefficients than the last one.
_LISTED = frozenset({"multiply", "divide", "power", "chain"})


class SeriesWriter(ScalarWriter):
    """Each varying value has its last coefficient, and a list of all of them where a product or a result reads it; some
    have a list of those of their derivative."""

    def __init__(self, system: Recurrences) -> None:
        super().__init__(system.program)
        self.system = system
        self.known |= {"mul": mul, "power_at_zero": power_at_zero}
        self.time, self.states = system.time, system.states
        varying = system.varying()
        self.last = {v: f"w{i}" for i, v in enumerate(varying)}
        self.lists = {v: f"c{i}" for i, v in enumerate(varying)}
        # The lists of the coefficients of derivatives.
        self.slopes = {x: f"d{self.lists[x]}" for x in system.sloped()}
        # The values whose lists are read.
        self.listed: set[Variable] = {*self.states, *filter(self._varies, system.others)}
        for kind, operands, output in system.recurrences:
            read = operands[::2] if kind == "chain" else [*operands, output]
            self.listed.update(filter(self._varies, read if kind in _LISTED else ()))

    def function(self) -> Coefficients:
        """The function of the order and of the inputs of the program."""
        return self.written(", ".join(self.names[v] for v in self.program.inputs), self.statements())

    def written(self, inputs: str, body: Sequence[str]) -> Coefficients:
        """The function of the order and of what is written as `inputs`; `body` computes everything at order 0."""
        rest = [line for r in self.system.recurrences for line in self._lines(r)]
        begin = [f"{w} = {self.number(v)}" for v, w in self.last.items()]
        begin += [f"{c} = [{self.last[v]}]" for v, c in self.lists.items() if v in self.listed]
        begin += [f"{d} = []" for d in self.slopes.values()]
        # A slope may be a state, which keeps its coefficient until all slopes are read.
        rates = [f"s{i} = {self._rate(r)}" for i, r in enumerate(self.system.rates)]
        lines = [
            f"def coefficients(order, {inputs}):",
            *(f"    {line}" for line in (*body, *begin)),
            "    for k in range(1, order + 1):",
            *(f"        {line}" for line in rates),
            *(f"        {self.last[s]} = s{i} / k" for i, s in enumerate(self.states)),
            *(f"        {line}" for s in self.states for line in self._noted(s)),
            "        if k == order: break",
            f"        {self.last[self.time]} = 1.0 if k == 1 else 0.0",
            *(f"        {line}" for line in self._noted(self.time)),
            *(f"        {line}" for s in (self.time, *self.states) for line in self._further(s)),
            *(f"        {line}" for line in rest),
            f"    return [{', '.join([*(self.lists[s] for s in self.states), *map(self._whole, self.system.others)])}]",
        ]
        return self.defined("coefficients", lines)

    def _whole(self, atom: Atom) -> str:
        """The list of the coefficients of an output."""
        return self.lists[atom] if self._varies(atom) else f"[{self.number(atom)}]"

    def _rate(self, rate: Atom) -> str:
        if self._varies(rate):
            return self.last[rate]
        return f"({self.number(rate)} if k == 1 else 0.0)"

    def _noted(self, x: Variable) -> list[str]:
        return [f"{self.lists[x]}.append({self.last[x]})"] if x in self.listed else []

    def _further(self, x: Variable) -> list[str]:
        return [f"{self.slopes[x]}.append({self.last[x]} * k)"] if x in self.slopes else []

    def _lines(self, recurrence: Recurrence) -> list[str]:
        """The statements that compute a coefficient."""
        output = recurrence.output
        text = getattr(self, f"_{recurrence.kind}")(recurrence.operands, output)
        return [f"{self.last[output]} = {text}", *self._noted(output), *self._further(output)]

    def _last(self, atom: Atom) -> str:
        return self.last[atom] if self._varies(atom) else "0.0"

    def _varies(self, atom: Atom) -> TypeGuard[Variable]:
        return isinstance(atom, Variable) and atom in self.last

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
        base, exponent = self.lists[operands[0]], self.number(operands[1])
        return f"{self._power_of_nonzero(operands, output)} if {base}[0] else power_at_zero({base}, {exponent})"

    def _power_of_nonzero(self, operands: Sequence[Atom], output: Variable) -> str:
        x, q = operands
        own, base, exponent = self.lists[output], self.lists[x], self.number(q)
        first = f"{exponent} * sum(map(mul, {own}, reversed({self.slopes[x]})))"
        second = f"sum(map(mul, {self.slopes[output]}, reversed({base}[1:-1])))"
        return f"({first} - {second}) / (k * {base}[0])"

    def _chain(self, operands: Sequence[Atom], _output: Variable) -> str:
        terms, scaled = [], []
        for v, x in zip(operands[::2], operands[1::2]):
            if self._varies(v):
                terms.append(f"sum(map(mul, {self.lists[v]}, reversed({self.slopes[x]})))")
            else:
                scaled.append(f"{self.number(v)} * {self._last(x)}")
        return " + ".join([*scaled, f"({' + '.join(terms)}) / k"] if terms else scaled)


def unrolled(system: Recurrences, order: int) -> Coefficients | None:
    """The function of a system for this order alone, as one statement for each coefficient; None where these are too many.

    It takes a part of the time, and long to make.
    """
    return _UnrolledWriter(system, order).function() if _terms(system, order) <= _MOST_TERMS else None


# Bound on the products in the text of a function, which Python takes a second to read.
_MOST_TERMS = 50_000


def _terms(system: Recurrences, order: int) -> int:
    return sum(len(r.operands) for r in system.recurrences) * order * order // 4


class _UnrolledWriter(SeriesWriter):
    """Coefficient k of each varying value is a variable of its own."""

    def __init__(self, system: Recurrences, order: int) -> None:
        super().__init__(system)
        self._order, self._k = order, 0

    def function(self) -> Coefficients:
        lines = [*self.statements(), *(f"{c}_0 = {self.number(v)}" for v, c in self.lists.items())]
        for k in range(1, self._order + 1):
            self._k = k
            lines += [f"{self._at(s, k)} = {self._rate(r)} / {k}" for s, r in zip(self.states, self.system.rates)]
            if k < self._order:
                lines.append(f"{self._at(self.time, k)} = {float(k == 1)}")
                lines += [line for s in (self.time, *self.states) for line in self._further(s)]
                lines += [line for r in self.system.recurrences for line in self._lines(r)]
        states = [self._listed(s, self._order + 1) for s in self.states]
        others = [
            self._listed(o, self._order) if self._varies(o) else f"[{self.number(o)}]" for o in self.system.others
        ]
        inputs = ", ".join(self.names[v] for v in self.program.inputs)
        text = [f"def coefficients(order, {inputs}):", *(f"    {line}" for line in lines)]
        return self.defined("coefficients", [*text, f"    return [{', '.join([*states, *others])}]"])

    def _at(self, x: Variable, k: int) -> str:
        return f"{self.lists[x]}_{k}"

    def _listed(self, x: Variable, count: int) -> str:
        return f"[{', '.join(self._at(x, k) for k in range(count))}]"

    def _rate(self, rate: Atom) -> str:
        if self._varies(rate):
            return self._at(rate, self._k - 1)
        return self.number(rate) if self._k == 1 else "0.0"

    def _further(self, x: Variable) -> list[str]:
        if x not in self.slopes:
            return []
        return [f"{self.slopes[x]}_{self._k - 1} = {self._last(x)} * {self._k}"]

    def _lines(self, recurrence: Recurrence) -> list[str]:
        output = recurrence.output
        text = getattr(self, f"_{recurrence.kind}")(recurrence.operands, output)
        return [f"{self._last(output)} = {text}", *self._further(output)]

    def _last(self, atom: Atom) -> str:
        return self._at(atom, self._k) if self._varies(atom) else "0.0"

    def _product(self, a: str, b: str, top: int, count: int) -> str:
        """The sum of products of the first coefficients of `a` with those of `b` from `top` downwards."""
        return " + ".join(f"{a}_{i} * {b}_{top - i}" for i in range(count)) or "0.0"

    def _multiply(self, operands: Sequence[Atom], _output: Variable) -> str:
        a, b = (self.lists[o] for o in operands if self._varies(o))
        return self._product(a, b, self._k, self._k + 1)

    def _divide(self, operands: Sequence[Atom], output: Variable) -> str:
        b = self._whole(operands[1])
        return f"({self._last(operands[0])} - ({self._product(self.lists[output], b, self._k, self._k)})) / {b}_0"

    def _power(self, operands: Sequence[Atom], output: Variable) -> str:
        x, q = operands
        assert self._varies(x)
        k, own, base, exponent = self._k, self.lists[output], self.lists[x], self.number(q)
        first = f"{exponent} * ({self._product(own, self.slopes[x], k - 1, k)})"
        second = self._product(self.slopes[output], base, k - 1, k - 1)
        listed = self._listed(x, k + 1)
        return f"({first} - ({second})) / ({k} * {base}_0) if {base}_0 else power_at_zero({listed}, {exponent})"

    def _chain(self, operands: Sequence[Atom], _output: Variable) -> str:
        terms, scaled = [], []
        for v, x in zip(operands[::2], operands[1::2]):
            if self._varies(v):
                assert isinstance(x, Variable)
                terms.append(self._product(self.lists[v], self.slopes[x], self._k - 1, self._k))
            else:
                scaled.append(f"{self.number(v)} * {self._last(x)}")
        return " + ".join([*scaled, f"({' + '.join(terms)}) / {self._k}"] if terms else scaled)


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

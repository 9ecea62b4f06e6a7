"""A recorded program on float64 arrays as one function of machine code, where `llvmlite` is installed.

Calling NumPy takes some microseconds for each operation, more than a small density takes altogether.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.errors import GradcliError
from gradcli.loops.loop_code import NumberCode, loop_code, writes
from gradcli.loops.loop_execution import bounds_and_sizes
from gradcli.loops.loop_primitive import loop_history
from gradcli.primitives.entries import exponential, linear, reductions
from gradcli.primitives.entries.indexing import scatter
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation, Program, Variable
from gradcli.program.positions import broadcast_positions, source_positions, targets

# Upper bounds: of the equations of a program, since compiling takes 0.2 ms for each; of the elements of an array and
# the multiplications of a matrix product, beyond which calling NumPy takes no time in comparison.
_MOST_EQUATIONS, _MOST_ELEMENTS, _MOST_PRODUCTS = 2_000, 100_000, 200_000
# The most equations that NumPy computes, called by the machine code.
_MOST_CALLS = 10

_Call = ctypes.CFUNCTYPE(None, ctypes.c_int64)


class UncompiledError(Exception):
    """A program has an operation that is not written as machine code."""


class ProgramCode(NumberCode):
    """The instructions of a program as the body of a function.

    Its arrays are in one memory, at fixed addresses; truth values are the numbers 0 and 1 there. `kept` is what the code
    refers to. Raises UncompiledError, as `write` does.
    """

    def __init__(self, program: Program) -> None:
        super().__init__()
        if len(program.equations) > _MOST_EQUATIONS:
            raise UncompiledError
        self.kept: list[Any] = []
        # The texts of the functions that the code calls.
        self.functions: list[str] = []
        # The equations that NumPy computes, with the places of their operands and results.
        self._in_python: list[tuple[Equation, list[int], int]] = []
        self.error: BaseException | None = None
        self.block = "entry"
        self._size = 0
        # The offsets of arrays in the memory, and the names of elements of arrays within a loop.
        self._offsets: dict[Variable, int] = {}
        self._elements: dict[Variable, str] = {}
        self._blocks = 0
        self._known: dict[str, str] = {}
        self.program = program

    def put(self, instruction: str) -> str:
        # Nothing but loads depends on more than the operands. What a block computes is known in those after it.
        if instruction.startswith("load "):
            return super().put(instruction)
        name = self._known.get(instruction)
        if name is None:
            name = self._known[instruction] = super().put(instruction)
        return name

    # --- memory

    def allocated(self, size: int) -> int:
        """The offset of further memory."""
        self._size += size
        return self._size - size

    def given(self, variable: Variable, offset: int) -> None:
        """Let an input of the program be at an offset of the memory."""
        self._offsets[variable] = offset

    def finished(self, text: str) -> str:
        """The text of functions with the addresses of the memory, which is 0 at first, and of what computes equations
        in Python."""
        memory = np.zeros(max(1, self._size))
        called = _Call(self._computes(memory))
        self.kept += [memory, called]
        address = ctypes.cast(called, ctypes.c_void_p).value
        text = text.replace("@memory", f"inttoptr (i64 {memory.__array_interface__['data'][0]} to ptr)")
        return text.replace("@python", f"inttoptr (i64 {address} to ptr)")

    def _computes(self, memory: Any) -> Callable[[int], None]:
        def array(place: int, atom: Atom) -> Any:
            if not isinstance(atom, Variable):
                return atom
            found = memory[place : place + math.prod(atom.shape)].reshape(atom.shape)
            return found if atom.dtype == "float64" else found != 0

        runner = arrays.numpy_namespace().runner

        def compute(number: int) -> None:
            equation, places, place = self._in_python[number]
            output = memory[place : place + math.prod(equation.output.shape)].reshape(equation.output.shape)
            operands = [array(p, a) for p, a in zip(places, equation.inputs)]
            # An exception must not leave a function that machine code calls.
            try:
                output[...] = runner(equation.primitive)(operands, equation.params)
            except (GradcliError, ArithmeticError, ValueError):
                output[...] = math.nan
            except BaseException as error:
                self.error, output[...] = error, math.nan

        return compute

    def at(self, pointer: str, place: int | str) -> str:
        """The pointer to an element of an array."""
        return self.put(f"getelementptr double, ptr {pointer}, i64 {place}")

    def own(self, offset: int) -> str:
        """The pointer to an offset of the memory."""
        return self.at("@memory", offset)

    def load(self, pointer: str, place: int | str) -> str:
        return self.put(f"load double, ptr {self.at(pointer, place)}")

    def store(self, number: str, pointer: str, place: int | str) -> None:
        self.lines.append(f"  store double {number}, ptr {self.at(pointer, place)}")

    def constant(self, array: Any) -> str:
        """The pointer to an array of constants."""
        array = np.ascontiguousarray(array)
        self.kept.append(array)
        return self.put(f"inttoptr i64 {array.__array_interface__['data'][0]} to ptr")

    def integer(self, pointer: str, place: str) -> str:
        """An element of an array of integers."""
        return self.put(f"load i64, ptr {self.put(f'getelementptr i64, ptr {pointer}, i64 {place}')}")

    # --- loops

    def loop(self, count: int, totals: int = 0) -> Iterator[tuple[str, list[str], list[str]]]:
        """Yields the counter of a loop, the names of `totals` sums before a round, and the list for those after it."""
        if not count:
            raise UncompiledError
        self._blocks += 1
        name, outer, lines = f"b{self._blocks}", self.block, self.lines
        self.lines.append(f"  br label %{name}")
        self.block, self.lines = name, []
        sums = [f"%{name}.t{k}" for k in range(totals)]
        after: list[str] = []
        yield f"%{name}.i", sums, after
        body, end = self.lines, self.block
        lines += [
            f"{name}:",
            f"  %{name}.i = phi i64 [ 0, %{outer} ], [ %{name}.next, %{end} ]",
            *(f"  {s} = phi double [ 0.0, %{outer} ], [ {a}, %{end} ]" for s, a in zip(sums, after)),
            *body,
            f"  %{name}.next = add i64 %{name}.i, 1",
            f"  %{name}.more = icmp slt i64 %{name}.next, {count}",
            f"  br i1 %{name}.more, label %{name}, label %{name}.end",
            f"{name}.end:",
        ]
        self.block, self.lines = f"{name}.end", lines

    # --- operands

    def pointer(self, atom: Atom) -> str:
        """The pointer to the elements of an array."""
        if isinstance(atom, Variable):
            return self.own(self._offsets[atom])
        return self.constant(np.asarray(atom, float))

    def element(self, atom: Atom, shape: Shape, place: str) -> str:
        """The element of an operand that is broadcast to a shape, as a number."""
        if isinstance(atom, Variable) and atom in self._elements:
            return self._as_number(self._elements[atom], atom)
        given = arrays.shape(atom)
        if not given:
            return self.scalar(atom)
        if given != shape:
            place = self.integer(self.constant(broadcast_positions(given, shape).astype(np.int64)), place)
        return self.load(self.pointer(atom), place)

    def scalar(self, atom: Atom) -> str:
        """An operand without axes, as a number."""
        if not isinstance(atom, Variable):
            return self.literal(float(atom))
        if atom in self.names:
            return self._as_number(self.names[atom], atom)
        return self.load(self.own(self._offsets[atom]), 0)

    def _as_number(self, name: str, variable: Variable) -> str:
        return name if variable.dtype == "float64" else self.put(f"uitofp i1 {name} to double")

    # --- equations

    def write(self) -> None:
        """Write all equations, in an order in which those of one shape stand together."""
        read = {a for a in (*self.program.outputs, *self.program.guards) if isinstance(a, Variable)}
        for variable in self.program.inputs:
            self._check(variable)
        for group in _groups(self.program.equations):
            for equation in group:
                self._check(equation.output)
            if _is_looped(group[0]):
                self._looped(group, read)
            else:
                self._single(group[0])

    def _check(self, variable: Variable) -> None:
        if variable.dtype not in ("float64", "bool") or math.prod(variable.shape) > _MOST_ELEMENTS:
            raise UncompiledError

    def _looped(self, group: Sequence[Equation], read: set[Variable]) -> None:
        """Equations whose elements, or whose operands' elements, one loop computes."""
        shape = _shape(group[0])
        own = {e.output for e in group}
        sums = [e for e in group if not _is_elementwise(e)]
        others = {a for e in self.program.equations if e.output not in own for a in e.inputs if isinstance(a, Variable)}
        results: list[str] = []
        for i, totals, after in self.loop(math.prod(shape), len(sums)):
            for equation in group:
                if not _is_elementwise(equation):
                    after.append(self.operation("fadd", totals[len(after)], self.element(equation.inputs[0], shape, i)))
                    continue
                name = self._elements[equation.output] = self._computed(equation, shape, i)
                if equation.output in others or equation.output in read:
                    self._offsets[equation.output] = offset = self.allocated(math.prod(shape))
                    self.store(self._as_number(name, equation.output), self.own(offset), i)
            results = after
        self._elements.clear()
        for equation, total in zip(sums, results):
            count = self.literal(float(math.prod(shape)))
            mean = equation.primitive is reductions.mean
            self.names[equation.output] = self.operation("fdiv", total, count) if mean else total

    def _computed(self, equation: Equation, shape: Shape, place: str) -> str:
        """An elementwise equation, for the elements at a place."""
        operands = [Variable((), arrays.dtype_name(a)) if arrays.shape(a) else a for a in equation.inputs]
        for atom, operand in zip(equation.inputs, operands):
            if operand is not atom:
                number = self.element(atom, shape, place)
                is_truth = operand.dtype == "bool"
                self.names[operand] = self.compared("une", number, self.literal(0.0)) if is_truth else number
            elif isinstance(atom, Variable) and atom not in self.names:
                self.names[atom] = self.scalar(atom)
        return self.computed(equation._replace(inputs=tuple(operands), output=Variable((), equation.output.dtype)))

    def written(self, primitive: Primitive, operands: Sequence[str]) -> str:
        own = _writers().get(primitive)
        return super().written(primitive, operands) if own is None else own(self, *operands)

    def small_power(self, x: str) -> str:
        """exp(-|x|)"""
        return self.call("exp", self.operation("fneg", self.intrinsic("fabs", x)))

    def sigmoid(self, x: str) -> str:
        """1/(1 + exp(-x)), by the power that softplus has too."""
        power = self.small_power(x)
        above = self.chosen(self.compared("olt", x, self.literal(0.0)), power, self.literal(1.0))
        return self.operation("fdiv", above, self.operation("fadd", self.literal(1.0), power))

    def softplus(self, x: str) -> str:
        """log(1 + exp(x))"""
        return self.operation(
            "fadd", self.selected("ogt", x, self.literal(0.0)), self.call("log1p", self.small_power(x))
        )

    def unless_zero(self, x: str, function: str, y: str) -> str:
        """`x` times a function of `y`; 0 where `x` is, unless `y` is nan."""
        is_zero = self.put(f"and i1 {self.compared('oeq', x, self.literal(0.0))}, {self.compared('ord', y, y)}")
        return self.chosen(is_zero, self.literal(0.0), self.operation("fmul", x, self.call(function, y)))

    def _single(self, equation: Equation) -> None:
        primitive, inputs, params, output = equation
        if _is_elementwise(equation):
            self.names[output] = self._computed(equation, (), "0")
        elif primitive.moves:
            self._moved(equation)
        elif primitive is scatter:
            self._scattered(inputs[0], targets(params), output)
        elif primitive is reductions.sum_:
            kept = tuple(1 if a in params["axis"] else s for a, s in enumerate(arrays.shape(inputs[0])))
            self._scattered(inputs[0], broadcast_positions(kept, arrays.shape(inputs[0])), output)
        elif primitive is linear.matmul:
            self._product(inputs, output)
        elif primitive is loop_history:
            self._history(equation)
        else:
            self._by_numpy(equation)

    def _by_numpy(self, equation: Equation) -> None:
        """An equation that NumPy computes, called by the machine code."""
        if len(self._in_python) == _MOST_CALLS:
            raise UncompiledError
        places: list[int] = []
        for atom in equation.inputs:
            if isinstance(atom, Variable) and atom not in self._offsets:
                self._offsets[atom] = offset = self.allocated(1)
                self.store(self.scalar(atom), self.own(offset), 0)
            places.append(self._offsets[atom] if isinstance(atom, Variable) else 0)
        self._new(equation.output)
        self.lines.append(f"  call void @python(i64 {len(self._in_python)})")
        self._in_python.append((equation, places, self._offsets[equation.output]))

    def _new(self, output: Variable) -> str:
        self._offsets[output] = offset = self.allocated(math.prod(output.shape))
        return self.own(offset)

    def _moved(self, equation: Equation) -> None:
        """Elements that are moved to known places."""
        sources, output = source_positions(equation).ravel(), equation.output
        if len(equation.inputs) == 1 and self._is_part(equation.inputs[0], sources):
            self._offsets[output] = self._offsets[equation.inputs[0]] + int(sources[0]) - 1
            return
        found, first = self._new(output), 1
        for atom in equation.inputs:
            size = arrays.size(atom)
            (places,) = np.nonzero((first <= sources) & (sources < first + size))
            if not arrays.shape(atom) and len(places) <= 16:
                number = self.scalar(atom)
                for place in places.tolist():
                    self.store(number, found, place)
            elif len(places):
                self._copied(atom, sources[places] - first, found, places)
            first += size

    def _is_part(self, atom: Atom, sources: Any) -> bool:
        """Return whether the sources are consecutive elements of a variable in the memory."""
        consecutive = len(sources) > 0 and sources[0] > 0 and bool((np.diff(sources) == 1).all())
        return consecutive and isinstance(atom, Variable) and atom in self._offsets

    def _copied(self, atom: Atom, sources: Any, found: str, places: Any) -> None:
        taken, put = self.constant(sources.astype(np.int64)), self.constant(places.astype(np.int64))
        number = None if arrays.shape(atom) else self.scalar(atom)
        given = self.pointer(atom) if number is None else ""
        for i, _, _ in self.loop(len(places)):
            value = number or self.load(given, self.integer(taken, i))
            self.store(value, found, self.integer(put, i))

    def _scattered(self, atom: Atom, places: Any, output: Variable) -> None:
        """The sums of the elements that have the same place in the result."""
        found = self._new(output)
        for i, _, _ in self.loop(math.prod(output.shape)):
            self.store("0.0", found, i)
        given, put = arrays.shape(atom), self.constant(np.asarray(places).ravel().astype(np.int64))
        for i, _, _ in self.loop(np.size(places)):
            number = self.element(atom, np.shape(places) if given else (), i)
            place = self.integer(put, i)
            self.store(self.operation("fadd", self.load(found, place), number), found, place)

    def _product(self, inputs: Sequence[Atom], output: Variable) -> None:
        """The product of two vectors or matrices."""
        one, other = (arrays.shape(a) for a in inputs)
        if not 0 < len(one) <= 2 or not 0 < len(other) <= 2:
            raise UncompiledError
        rows, inner = (1, *one)[-2:]
        columns = 1 if len(other) == 1 else other[1]
        if rows * inner * columns > _MOST_PRODUCTS or inner != other[0]:
            raise UncompiledError
        first, second, found = self.pointer(inputs[0]), self.pointer(inputs[1]), self._new(output)
        for i, _, _ in self.loop(rows):
            row = self.at(first, self.put(f"mul i64 {i}, {inner}"))
            for j, _, _ in self.loop(columns):
                result = ""
                for k, totals, after in self.loop(inner, 1):
                    place = self.put(f"add i64 {self.put(f'mul i64 {k}, {columns}')}, {j}")
                    product = self.operation("fmul", self.load(row, k), self.load(second, place))
                    after.append(result := self.operation("fadd", totals[0], product))
                place = self.put(f"add i64 {self.put(f'mul i64 {i}, {columns}')}, {j}")
                self.store(result, found, place)

    def _history(self, equation: Equation) -> None:
        loop, last = equation.params["loop"], equation.params["last"]
        single = all(len(arrays.shape(a)) == 1 + (n > 0) for n, a in enumerate(equation.inputs))
        name = f"loop{len(self.functions)}"
        written = loop_code(loop, name) if single and loop is loop.with_all_rows else None
        if written is None:
            self._by_numpy(equation)
            return
        text, called, declared = written
        self.functions.append(text)
        self.called |= called
        self.declared |= declared
        bounds, sizes = map(self.constant, bounds_and_sizes(loop, last=last))
        read = [bounds, *map(self.pointer, equation.inputs), self._new(equation.output)]
        arguments = self.own(self.allocated(len(read)))
        for k, pointer in enumerate(read):
            self.lines.append(f"  store ptr {pointer}, ptr {self.at(arguments, k)}")
        self.lines.append(f"  call void @{name}(ptr {arguments}, ptr {sizes}, ptr null, ptr null)")


@functools.cache
def _writers() -> Mapping[Primitive, Callable[..., str]]:
    """The writers of further primitives, as functions of the code and the names of their operands."""
    return {
        exponential.softplus: lambda code, x: code.softplus(x),
        exponential.xlogy: lambda code, x, y: code.unless_zero(x, "log", y),
        exponential.xlog1py: lambda code, x, y: code.unless_zero(x, "log1p", y),
    }


def _is_elementwise(equation: Equation) -> bool:
    return equation.primitive.elementwise and (equation.primitive in _writers() or writes(equation.primitive))


def _shape(equation: Equation) -> Shape:
    """The shape of the loop that computes an equation."""
    return equation.output.shape if _is_elementwise(equation) else arrays.shape(equation.inputs[0])


def _is_looped(equation: Equation) -> bool:
    if _is_elementwise(equation):
        return math.prod(equation.output.shape) > 0 and equation.output.shape != ()
    return (
        equation.primitive in (reductions.sum_, reductions.mean)
        and equation.output.shape == ()
        and equation.output.dtype == "float64"
        and arrays.size(equation.inputs[0]) > 0
        and arrays.dtype_name(equation.inputs[0]) == "float64"
    )


def _groups(equations: Sequence[Equation]) -> Iterator[list[Equation]]:
    """The equations in an order in which their operands are known, as groups that one loop computes each.

    An equation that reads a sum is in another loop than that sum.
    """
    left = list(equations)
    done: set[Variable] = set()
    made = {e.output for e in equations}

    def is_ready(equation: Equation, known: set[Variable]) -> bool:
        return all(not isinstance(a, Variable) or a not in made or a in known for a in equation.inputs)

    while left:
        single = [e for e in left if not _is_looped(e) and is_ready(e, done)]
        if single:
            for equation in single:
                done.add(equation.output)
                yield [equation]
            left = [e for e in left if e.output not in done]
            continue
        shape = _shape(next(e for e in left if is_ready(e, done)))
        group, within = [], set(done)
        for equation in left:
            if _is_looped(equation) and _shape(equation) == shape and is_ready(equation, within):
                group.append(equation)
                if _is_elementwise(equation):
                    within.add(equation.output)
        done.update(e.output for e in group)
        left = [e for e in left if e.output not in done]
        yield group

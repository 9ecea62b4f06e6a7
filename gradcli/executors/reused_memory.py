"""Generate straight-line Python for equations on arrays: calls of NumPy functions that write into reused memory.

The text contains only generated names and numbers, whatever the program was made from, so that `exec` is safe.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.executors import ufuncs
from gradcli.executors.function_pairs import FunctionPair
from gradcli.executors.loop_fusion import FusedLoop
from gradcli.executors.vector_functions import Used, pair_of
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation, Variable

# The maximum size in bytes of a set that is kept between runs; larger sets would not stay in the cache of a core.
_MOST_KEPT = 2**21
_BYTES = {"bool": 1, "float32": 4}


class NumpyCode:
    """The lines that compute equations one after the other, and the values of the names in them.

    `freed` maps the number of each equation to the variables that are not read after it. `place` returns the name of
    the array for a result, or None if it goes to a buffer. `together` has the compiled functions of pairs.
    """

    def __init__(
        self,
        equations: Sequence[Equation],
        freed: Mapping[int, Sequence[Variable]],
        place: Callable[[Variable], str | None],
        together: Used,
    ) -> None:
        self.body: list[str] = []
        self.known: dict[str, Any] = {}
        # Keyed by variable, or by the id of a constant array.
        self.names: dict[Any, str] = {}
        self.buffers: list[Buffer] = []
        self._freed = freed
        self._place = place
        self._together = together
        # By result: the results that are computed with it, and itself. A function may stand there twice.
        self._pairs: dict[Variable, dict[Primitive, Variable]] = {}
        groups: dict[tuple[FunctionPair, Atom], dict[Primitive, Variable]] = {}
        for equation in equations:
            if pair := self.pair(equation):
                key = pair, equation.inputs[0]
                if equation.primitive in groups.setdefault(key, {}):
                    groups[key] = {}
                groups[key][equation.primitive] = equation.output
                self._pairs[equation.output] = groups[key]
        self._global_names: dict[int, str] = {}
        # The names of variables outside of buffers, the buffers of the other variables, and the free buffers.
        self._unbuffered: dict[Variable, str] = {}
        self._held: dict[Variable, int] = {}
        self._free: dict[Buffer, list[int]] = {}
        self._surcharges: dict[Any, str] = {}

    def compute(self, number: int, equation: Equation) -> None:
        """Write the lines for an elementwise equation."""
        if pair := self.pair(equation):
            self._compute_pair(equation, pair)
            return
        self._surcharge(equation)
        operands = [self.operand(a, _dtype_beside(equation.inputs)) for a in equation.inputs]
        function = ufuncs.of(equation)
        if function is None:
            self._compute_anew(equation, operands)
            return
        if ufuncs.is_in_place(equation):
            self._free_buffers(v for v in self._freed.get(number, ()) if v is not equation.output)
        self.body.append(f"{self.constant(function)}({', '.join([*operands, self._put(equation.output)])})")

    def pair(self, equation: Equation) -> FunctionPair | None:
        """The pair that computes an equation, if its compiled function is used."""
        pair = pair_of(equation) if self._together else None
        return pair if pair in self._together else None

    def compute_product(self, product: Equation) -> None:
        """Write the line for a product of a matrix and a vector."""
        first, second = map(self.operand, product.inputs)
        self.body.append(f"{first}.dot({second}, {self._put(product.output)})")

    def compute_merged(self, number: int, merged: FusedLoop) -> None:
        """Write the line for equations that are computed by one loop."""
        # The ufunc does not keep the machine code of the loop alive.
        self.constant(merged.loop)
        operands = [self.names[v] for v in merged.inputs]
        self._free_buffers(self._freed.get(number, ()))
        places = [self._put(v) for v in merged.outputs]
        self.body.append(f"{self.constant(merged.loop.ufunc)}({', '.join([*operands, *places])})")

    def operand(self, atom: Atom, dtype: str | None = None) -> str:
        """The name of a variable or constant.

        A number becomes a 0-d array of `dtype`, so that NumPy need not convert it in each call.
        """
        if isinstance(atom, Variable):
            return self.names[atom]
        if id(atom) in self.names:
            return self.names[id(atom)]
        if type(atom) is float and dtype is not None:
            np = arrays.numpy_namespace()
            # A number too large for `dtype` becomes infinite, as it does beside arrays; NumPy must not warn.
            with np.quiet():
                return self.constant(np.asarray(atom, dtype))
        return self.constant(atom)

    def constant(self, value: Any) -> str:
        """A global name for any object."""
        name = self._global_names.get(id(value))
        if name is None:
            name = self._global_names[id(value)] = f"c{len(self.known)}"
            self.known[name] = value
        return name

    def new_name(self, variable: Variable) -> str:
        """A name for a variable outside of buffers."""
        name = self.names[variable] = self._unbuffered[variable] = f"v{len(self.names)}"
        return name

    def is_buffer(self, variable: Variable) -> bool:
        """Return whether a variable is in a buffer."""
        return variable in self._held

    def release(self, variables: Iterable[Variable]) -> list[str]:
        """Free the buffers of variables that are not read any more; return the names of those outside of buffers."""
        gone = [*variables]
        self._free_buffers(gone)
        return [self._unbuffered.pop(v) for v in gone if v in self._unbuffered]

    def function(self, lines: Sequence[str]) -> Callable[..., Any]:
        """The function `program` that the lines define."""
        exec("\n".join(lines), self.known)
        made: Callable[..., Any] = self.known["program"]
        return made

    def _put(self, variable: Variable) -> str:
        """The name of the array into which a variable is computed."""
        name = self.names[variable] = self._place(variable) or self._put_aside(variable)
        return name

    def _put_aside(self, variable: Variable) -> str:
        """The name of a buffer that holds a variable until it is freed."""
        self._held[variable] = number = self._buffer(Buffer(variable.shape, variable.dtype))
        return f"b{number}"

    def _free_buffers(self, variables: Iterable[Variable]) -> None:
        for variable in variables:
            buffer = self._held.pop(variable, None)
            if buffer is not None:
                self._free.setdefault(self.buffers[buffer], []).append(buffer)

    def _buffer(self, kind: Buffer) -> int:
        free = self._free.get(kind)
        if free:
            return free.pop()
        self.buffers.append(kind)
        return len(self.buffers) - 1

    def _compute_anew(self, equation: Equation, operands: Sequence[str]) -> None:
        """Compute an equation without a function that writes into an array; the result is copied if it has a place."""
        text = f"{self.constant(_forward(equation))}({', '.join(operands)})"
        place = self._place(equation.output)
        if place is None:
            self.body.append(f"{self.new_name(equation.output)} = {text}")
        else:
            self.names[equation.output] = place
            self.body.append(f"{place}[...] = {text}")

    def _compute_pair(self, equation: Equation, pair: FunctionPair) -> None:
        if equation.output in self.names:
            return
        self._surcharge(equation)
        operand, read = equation.inputs[0], self._pairs[equation.output]
        # The compiled function writes both results; one that is not read goes to a buffer.
        unread = [Variable(equation.output.shape, "float64") for p in pair.primitives if p not in read]
        places = [self._put_aside(unread[0]) if p not in read else self._put(read[p]) for p in pair.primitives]
        self._free_buffers(unread)
        self.body.append(f"{self.constant(self._together[pair])}({', '.join([self.names[operand], *places])})")

    def _surcharge(self, equation: Equation) -> None:
        """Charge the cost that depends on the values of the operands."""
        surcharge, params = equation.primitive.surcharge, equation.params
        if surcharge is None:
            return
        key = (surcharge, *params.items(), *(a if isinstance(a, Variable) else id(a) for a in equation.inputs))
        name = self._surcharges.get(key)
        found = f"budget.charge({name})"
        if name is None:
            name = self._surcharges[key] = f"s{len(self._surcharges)}"
            function = functools.partial(surcharge, **params) if params else surcharge
            operands = ", ".join(self.operand(a, None) for a in equation.inputs)
            found = f"{name} = {self.constant(function)}({operands}); budget.charge({name})"
        self.body.append(f"if budget is not None: {found}")


def _dtype_beside(atoms: Sequence[Atom]) -> str | None:
    """The dtype that a Python number takes beside the arrays among `atoms`."""
    dtypes = {arrays.dtype_name(a) for a in atoms if type(a) not in arrays.PYTHON_NUMBERS}
    return next((d for d in arrays.DTYPES if d in dtypes), None)


def _forward(equation: Equation) -> Callable[..., Any]:
    primitive, params = equation.primitive, equation.params
    xp = arrays.numpy_namespace()

    def forward(*operands: Any) -> Any:
        return primitive.forward(xp, *xp.promoted(operands, truths=primitive.truths), **params)

    return forward


class Buffer(NamedTuple):
    """The shape and dtype of a reusable array."""

    shape: Shape
    dtype: str


class Buffers:
    """A pool of sets of arrays with the given shapes and dtypes, shared by threads; a thread may take several sets.

    Free sets are in `unused`, which generated code accesses directly. Sets are kept after use (`are_kept`) if they are
    small.
    """

    def __init__(self, kinds: Sequence[Buffer]) -> None:
        self._kinds = kinds
        self.unused: list[list[Any]] = []
        self.are_kept = sum(math.prod(k.shape) * _BYTES.get(k.dtype, 8) for k in kinds) <= _MOST_KEPT

    def take(self) -> list[Any]:
        """A set for exclusive use."""
        try:
            return self.unused.pop()
        except IndexError:
            return self.made()

    def made(self) -> list[Any]:
        """A new set."""
        return [_array(*kind) for kind in self._kinds]

    def give(self, taken: list[Any]) -> None:
        """Return a set that is not read any more. Returning it is optional."""
        if self.are_kept:
            self.unused.append(taken)


def _array(shape: Shape, dtype: str) -> Any:
    np = arrays.numpy_namespace()
    # Searching a 0 in the `base`, a bytearray, takes a tenth of the time of searching it in the array.
    return np.ndarray(shape, bool, bytearray(math.prod(shape))) if dtype == "bool" else np.empty(shape, dtype)

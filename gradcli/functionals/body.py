"""The function that a functional is applied to, as a program of scalars, with its derivatives as further such
functions, and how a functional is computed for each element of its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.arrays.shapes import broadcast
from gradcli.autograd.engine import grad
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import EvaluationError
from gradcli.executors import stepwise
from gradcli.kinds.branch_points import watching
from gradcli.kinds.jets import Jet
from gradcli.loops.rolled_loop import EXAMPLE, BodyPath, joined
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import constant
from gradcli.program.ir import Program
from gradcli.program.passes import optimise, without_dead_code
from gradcli.program.record import record

# From the program of a path and the inputs of a derived body to the outputs of the program of the path there.
Derivation = Callable[[Program, Sequence[Any]], list[Any]]


class Origin(NamedTuple):
    """What a body is derived from: the function, and the name and number of the method of that."""

    body: Body
    kind: str
    number: int


@dataclass(frozen=True, eq=False)
class Body:
    """A function of float64 scalars.

    The inputs of `program` are the `bound` variables, which the functional varies, and the `reads`, values from outside
    that it holds fixed. `paths` are the execution paths, which `program` joins. Compared by identity, so that it can be
    a parameter of a primitive.
    """

    paths: Sequence[BodyPath]
    program: Program
    bound: int
    # Whether the results are derivatives or Taylor coefficients of those of another body.
    is_derivative: bool = False
    # None for a function that was traced, and for results of one.
    origin: Origin | None = None
    _derived: dict[tuple[str, int], Body] = field(default_factory=dict, init=False)

    @property
    def reads(self) -> int:
        """The number of values from outside."""
        return len(self.program.inputs) - self.bound

    @property
    def results(self) -> int:
        """The number of values of the function."""
        return len(self.program.outputs)

    def require_real(self, what: str) -> None:
        """Raise EvaluationError, which says of what, for a function that computes with complex numbers."""
        parts = [(*e.inputs, e.output) for path in self.paths for e in path.program.equations]
        if any(arrays.is_complex(atom) for atoms in parts for atom in atoms):
            raise EvaluationError(
                f"{what} takes real numbers, and its function computes with complex ones",
                hint="write real and imaginary parts, as in cos(x) for real(exp(1j*x))",
            )

    def __call__(self, *inputs: Any) -> list[Any]:
        """The values of the function for inputs of any kinds, which are broadcast."""
        return stepwise.outputs(self.program, inputs)

    def result(self, k: int) -> Body:
        """The function with result `k` alone."""
        if self.results == 1:
            return self

        def run(program: Program, inputs: Sequence[Any]) -> list[Any]:
            results = stepwise.outputs(program, inputs)
            return [results[k], *results[self.results :]]

        return self._cached("result", k, run, self.reads)

    def partial(self, i: int) -> Body:
        """The derivatives of all results by input `i`."""

        def run(program: Program, inputs: Sequence[Any]) -> list[Any]:
            leaf = Tensor(inputs[i]).requires_grad_()
            with enable_grad():
                results = stepwise.outputs(program, [*inputs[:i], leaf, *inputs[i + 1 :]])
                found = [_derivative(y, leaf) for y in results[: self.results]]
            return [*found, *map(constant, results[self.results :])]

        return self._cached("partial", i, run, self.reads)

    @property
    def gradient(self) -> Body:
        """The derivatives of the only result by all bound variables."""

        def run(program: Program, inputs: Sequence[Any]) -> list[Any]:
            leaves = [Tensor(x).requires_grad_() for x in inputs[: self.bound]]
            with enable_grad():
                y, *conditions = stepwise.outputs(program, [*leaves, *inputs[self.bound :]])
                found = [_derivative(y, leaf) for leaf in leaves]
            return [*found, *map(constant, conditions)]

        return self._cached("gradient", 0, run, self.reads)

    def coefficient(self, order: int) -> Body:
        """The Taylor coefficients of this `order` of all results along a curve of the reads.

        Its reads are the coefficients of order 0 of all reads, followed by those of order 1, and so on.
        """

        def run(program: Program, inputs: Sequence[Any]) -> list[Any]:
            bound, rest = inputs[: self.bound], inputs[self.bound :]
            jets = [Jet(rest[k :: self.reads], order) for k in range(self.reads)]
            results = stepwise.outputs(program, [*bound, *jets])
            found = [y.coefficient(order) if isinstance(y, Jet) else None for y in results[: self.results]]
            return [*(0.0 if c is None else c for c in found), *map(constant, results[self.results :])]

        return self._cached("coefficient", order, run, self.reads * (order + 1))

    @property
    def movable(self) -> Body:
        """The only result times the Jacobian determinant of the bound variable as a linear function of another one.

        Its reads are those of this body, followed by a place c and two numbers d and e, which are 0 where nothing is moved:
        the bound variable of this body is u + d + e*(u - c).
        """

        def run(program: Program, inputs: Sequence[Any]) -> list[Any]:
            u, *reads, fixed, shift, stretch = inputs
            y, *conditions = stepwise.outputs(program, [u + shift + stretch * (u - fixed), *reads])
            return [y * (1.0 + stretch), *map(constant, conditions)]

        return self._cached("movable", 0, run, self.reads + 3)

    def _cached(self, kind: str, number: int, run: Derivation, reads: int) -> Body:
        found = self._derived.get((kind, number))
        if found is None:
            found = self.derived(run, self.bound, reads)
            origin = None if kind == "result" else Origin(self, kind, number)
            found = replace(found, is_derivative=self.is_derivative or origin is not None, origin=origin)
            self._derived[kind, number] = found
        return found

    def derived(self, run: Derivation, bound: int, reads: int) -> Body:
        """The function that `run` computes from the program of each path, with other numbers of inputs.

        The values that it returns are followed by the conditions of the path.
        """
        given = dict.fromkeys([f"{i}" for i in range(bound + reads)], EXAMPLE)
        paths = []
        # The constants of derivatives of functions are balls where the function is evaluated in balls.
        with nullcontext() if is_exact() else arrays.using_namespace(None), watching(None):
            for path in self.paths:
                recorded = record(lambda **given: run(path.program, [*given.values()]), given)  # noqa: B023
                # Guards say that numbers are finite; where they are not, so is the value of the function. What may fail
                # and is not read, such as an integral whose derivative is, fails where the function itself is computed.
                derived = without_dead_code(optimise(recorded.program._replace(guards=())))
                paths.append(BodyPath(derived, path.holds))
        results = len(paths[0].program.outputs) - len(paths[0].holds)
        return Body(paths, joined(paths, results), bound)


def coefficient_operands(reads: Sequence[Jet], order: int) -> list[Any]:
    """The reads of `Body.coefficient` for series of the reads of a body."""
    found = [read.coefficient(k) for k in range(order + 1) for read in reads]
    return [0.0 if c is None else c for c in found]


def _derivative(y: Any, leaf: Tensor) -> Any:
    if not (isinstance(y, Tensor) and y.requires_grad):
        return 0.0
    (found,) = grad([y], [leaf], allow_unused=True, retain_graph=True)
    return 0.0 if found is None else found


def of_each(operands: Sequence[Any], compute: Callable[[Any], Any]) -> Any:
    """The results for all elements of the operands, in the library of the first operand; nan where an operand is nan.

    `compute` takes an array of shape [elements, operands] and returns one of shape [elements].
    """
    np = arrays.numpy_namespace()
    given = np.broadcast_arrays(*map(arrays.to_numpy, operands))
    rows = np.array([g.ravel() for g in given], float).T
    known = ~np.isnan(rows).any(axis=1)
    found = np.full(len(rows), np.nan)
    if known.any():
        found[known] = compute(rows[known])
    shape = given[0].shape
    return arrays.like_library_of(found.reshape(shape), operands[0]) if shape else float(found[0])


def stacked_balls(operands: Sequence[Any]) -> Any:
    """Broadcast operands along a new last axis, in the library of balls."""
    xp: Any = arrays.default_namespace()
    shape = broadcast([arrays.shape(o) for o in operands])
    return xp.stack([xp.broadcast_to(xp.asarray(o, "float64"), shape) for o in operands], -1)

"""Records the round of a loop, whose values are traced, as a program; what it reads from outside becomes an input."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.autograd.tensor import Tensor
from gradcli.errors import NotRecordableError
from gradcli.kinds.branch_points import BranchPointWatcher, watcher_now
from gradcli.kinds.jets import Jet
from gradcli.kinds.levels import TRACED
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import Kind, assume, bind
from gradcli.primitives.conversions import cast
from gradcli.primitives.entries import arithmetic
from gradcli.primitives.entries.comparisons import compares_with_itself, where
from gradcli.primitives.families import elementwise
from gradcli.primitives.jet_rules import linear, locally_constant
from gradcli.primitives.primitive import Primitive
from gradcli.program.abstract import Abstract
from gradcli.program.ir import Atom, Equation, Variable
from gradcli.program.record import ExampleValue, Recorded

# Cost of tracing an equation, in eighths of a step.
_EQUATION = 80
# The dtypes of numbers that rounds pass on.
_DTYPES = frozenset({"float64", "complex128"})
# Up to here every integer is exactly representable as a float.
_LARGEST_EXACT = 2**53


frozen = elementwise(
    "frozen", "x", "x, whose derivative is 0",
    internal=True,
    forward=lambda _xp, x: x,
    vjp=(None,),
    jet=locally_constant,
    keeps_integers=True,
    truths=True,
    derivative="0",
)  # fmt: skip

chosen = elementwise(
    "chosen", "condition, x, y", "x where the condition is true, else y, both of which have finite derivatives",
    internal="where",
    forward=lambda xp, condition, x, y: xp.where(condition, x, y),
    vjp=(
        None,
        lambda g, _y, condition, _a, _b: g * cast(condition, "float64"),
        lambda g, _y, condition, _a, _b: g * (1.0 - cast(condition, "float64")),
    ),
    jet=linear,
    rounds_alike=True,
    truths=True,
    derivative="g where the condition is true, else 0; the rest to y",
)  # fmt: skip


class Row(NamedTuple):
    """A sequence of which round i reads row i + `offset`, which is `variable`."""

    sequence: Any
    offset: int
    variable: Variable


class TracedPath(NamedTuple):
    """One execution path of a round.

    `holds` says which of `conditions`, in the order in which they were met, hold on it.
    """

    equations: tuple[Equation, ...]
    outputs: tuple[Atom, ...]
    conditions: tuple[Variable, ...]
    holds: tuple[bool, ...]


# Traces are numbered in the order in which they begin.
_numbers = itertools.count()
_number = operator.attrgetter("number")


class RoundTrace:
    """The values that a round of a loop reads from outside, and the execution path that is being traced.

    With `strict`, guards exclude all kinks and ties, not only those that are watched for. If it `computes_all`,
    operations on values from outside alone are traced too, provided that a function reads those values by name.
    """

    computes_all = False

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.number = next(_numbers)
        self._excludes = False
        # Whether a guard excludes a kink or a tie.
        self.excluded = False
        # Whether some path stands for an operand of `where`.
        self.selects = False
        self._inputs = 0
        # Inputs of the round that are the same for all inputs of the program.
        self.constants: set[Variable] = set()
        self.rows: list[Row] = []
        # Maps the identity of a value from outside to the value, which is kept alive, and to the input that it became.
        self.read: dict[int, tuple[Any, Variable]] = {}
        self.begin(())

    def begin(self, asked: Sequence[bool]) -> None:
        """Begin another path, on which the first conditions are decided as `asked`."""
        self.asked = asked
        self.equations: list[Equation] = []
        self.guards: list[Variable] = []
        self.conditions: list[Variable] = []
        self.holds: list[bool] = []

    def ended(self, results: Sequence[Any]) -> TracedPath:
        """The path that was traced, with the values that it gives."""
        outputs = tuple(map(self.atom, results))
        return TracedPath(tuple(self.equations), outputs, tuple(self.conditions), tuple(self.holds))

    def input(self, example: Any, *, constant: bool = False) -> Traced:
        """A value of the round that no equation computes; a `constant` is the same for all inputs of the program."""
        made = Traced(self, self._variable(example), example, counts=constant)
        if constant:
            self.constants.add(made.variable)
        return made

    def _variable(self, example: Any) -> Variable:
        """A variable for an input, with a name by which the programs of different paths are joined."""
        self._inputs += 1
        return Variable(arrays.shape(example), arrays.dtype_name(example), f"i{self._inputs}")

    def row(self, sequence: Any, offset: int, example: Any) -> Traced:
        """The row of a sequence that the round reads."""
        for row in self.rows:
            if row.sequence is sequence and row.offset == offset:
                return Traced(self, row.variable, example)
        made = self.input(example)
        self.rows.append(Row(sequence, offset, made.variable))
        return made

    def atom(self, value: Any) -> Atom:
        """A variable or constant that stands for a value of the round or from outside."""
        if isinstance(value, Traced) and value.trace is self:
            return value.variable
        return self._captured(value) if isinstance(value, Kind) else arrays.owned(value)

    def inside(self, value: Any) -> Traced:
        """A value from outside as one of the round."""
        return Traced(self, self._captured(value), self.example(value))

    def _captured(self, value: Kind) -> Variable:
        known = self.read.get(id(value))
        if known is None:
            known = self.read[id(value)] = value, self._variable(self.example(value))
        return known[1]

    def example(self, value: Any) -> Any:
        """The number or array that stands for an operand while the round is traced."""
        if isinstance(value, Kind) and not (isinstance(value, Traced) and value.trace is self):
            require_plain(value)
        return example_of(value)

    def exclude_branch_point(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> None:
        """Add the guards under which a primitive has no kink and compares no equal numbers, if that is watched for."""
        see = BranchPointWatcher() if self.strict else watcher_now()
        if see is None or self._excludes or compares_with_itself(primitive, operands):
            return
        self._excludes = True
        try:
            see(primitive, operands, params)
        finally:
            self._excludes = False

    def guard(self, condition: Traced) -> None:
        """Let the path hold only where a condition does."""
        self.guards.append(condition.variable)
        self.excluded |= self._excludes

    def decided(self, condition: Traced) -> bool:
        """Return whether a condition holds on this path: as asked, else as in the example."""
        if condition.variable in self.conditions:
            return self.holds[self.conditions.index(condition.variable)]
        place = len(self.holds)
        if place < len(self.asked):
            holds = self.asked[place]
        else:
            holds = isinstance(condition.example, Abstract) or arrays.all_true(condition.example)
        self.conditions.append(condition.variable)
        self.holds.append(holds)
        return holds


class Traced(ExampleValue):
    """A value of the round of a loop. `example` is its value in the first round.

    `lag` is its distance from the counter of the loop, if it is the counter plus a whole number; `counts` says whether
    it depends on nothing but the counter and values that are the same for all inputs. It is `differential` unless it is a constant to derivatives.
    """

    __slots__ = ("counts", "differential", "lag", "trace")
    level = TRACED

    def __init__(
        self,
        trace: RoundTrace,
        variable: Variable,
        example: Any,
        lag: int | None = None,
        *,
        counts: bool = False,
        differential: bool = True,
    ) -> None:
        super().__init__(variable, example)
        self.trace = trace
        self.lag = lag
        self.counts = counts
        self.differential = differential  # type: ignore[misc]

    @property
    def inner(self) -> Traced:
        """This value as a constant to derivatives."""
        if not self.differential:
            self.refuse()
        output = Variable(self.shape, self.dtype)
        self.trace.equations.append(Equation(frozen, (self.variable,), {}, output))
        return Traced(self.trace, output, self.example, self.lag, counts=self.counts, differential=False)

    def assume(self) -> bool:
        held = assume(self.example)
        if held:
            self.trace.guard(self)
        return held

    def decide(self, *, of_loop: bool = False) -> bool:
        if of_loop:
            self.refuse()
        return self.trace.decided(self)

    @staticmethod
    def read(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        limits.charge_steps(_EQUATION)
        # Where traces nest, the inner one takes the values of the outer one as constants.
        trace = max((o.trace for o in operands if isinstance(o, Traced)), key=_number)
        counts = not any(isinstance(o, Kind) and not (isinstance(o, Traced) and o.counts) for o in operands)
        if not counts and (primitive.truths or primitive.smooth is not None):
            trace.exclude_branch_point(primitive, operands, params)
        if primitive is where and isinstance(operands[0], Traced) and _are_numbers(*operands[1:]):
            # Each branch is a path, so that the derivatives of the other one leave no trace.
            trace.selects = True
            return operands[1] if operands[0].trace.decided(operands[0]) else operands[2]
        example = bind(primitive, [trace.example(o) for o in operands], params)
        if type(example) is list:
            raise NotRecordableError(f"'{primitive.called}' has several results")
        output = Variable(arrays.shape(example), arrays.dtype_name(example))
        trace.equations.append(Equation(primitive, tuple(map(trace.atom, operands)), params, output))
        differential = any(isinstance(o, Kind) and o.differential for o in operands)
        return Traced(trace, output, example, _lag(primitive, operands), counts=counts, differential=differential)

    def __repr__(self) -> str:
        return f"<traced {self.variable!r}>"


def require_plain(value: Any) -> None:
    """Raise NotRecordableError for a value of a kind for which rolled loops have no rule."""
    while isinstance(value, Kind) and not isinstance(value, (Recorded, Abstract, Traced)):
        if type(value) not in (Tensor, Jet):
            raise NotRecordableError(f"loops of {type(value).__name__} are not rolled")
        value = value.inner
    if not isinstance(value, Kind) and arrays.backend_of(type(value)) not in ("numpy", None):
        raise NotRecordableError("loops of other libraries are not rolled")


def _are_numbers(x: Any, y: Any) -> bool:
    """Return whether both are numbers of one dtype that rounds compute with."""
    dtype = arrays.dtype_name(x)
    return not arrays.shape(x) and not arrays.shape(y) and dtype == arrays.dtype_name(y) and dtype in _DTYPES


def example_of(value: Any) -> Any:
    """The number or array of a value in the run that is traced, or its shape and dtype alone.

    Raises NotRecordableError where none is known.
    """
    while isinstance(value, Kind) and not isinstance(value, Abstract):
        value = value.example if isinstance(value, ExampleValue) else value.inner
    return value


def _lag(primitive: Primitive, operands: Sequence[Any]) -> int | None:
    """The distance of a sum or difference from the counter."""
    if primitive not in (arithmetic.add, arithmetic.subtract):
        return None
    x, y = operands
    if primitive is arithmetic.add and not isinstance(x, Traced):
        x, y = y, x
    lag = x.lag if isinstance(x, Traced) else None
    if (
        lag is None
        or type(y) is complex
        or type(y) not in arrays.PYTHON_NUMBERS
        or not abs(y) <= _LARGEST_EXACT
        or int(y) != y
    ):
        return None
    return lag + int(y) if primitive is arithmetic.add else lag - int(y)

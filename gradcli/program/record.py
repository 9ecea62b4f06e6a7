"""Records a computation: runs it once and collects the primitives that it applies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

from gradcli import arrays, limits
from gradcli.autograd.modes import recording
from gradcli.errors import NotRecordableError
from gradcli.kinds.levels import RECORDED
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import assume, bind, constant
from gradcli.primitives.entries.comparisons import logical_not
from gradcli.primitives.entries.reductions import all_
from gradcli.primitives.operators import Operators
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Equation, Program, Variable, check
from gradcli.timing import phase

# Cost in eighths of steps: of recording an equation, including its check, rewriting and compilation, and of each
# operand beyond the second.
_EQUATION = 80
_FURTHER = 8


class Decisions(Protocol):
    """Decides control flow that depends on numbers while recording.

    With `loops`, it also decides whether a loop continues, for any number of iterations. With `apart`, a program
    without a shortcut excludes numbers that could take it.
    """

    loops: bool
    apart: bool

    def __call__(self, tape: Tape, condition: Variable, example: Any) -> bool: ...


class Following:
    """Decisions by the example numbers; guards restrict the program to numbers that decide alike."""

    loops = True

    def __init__(self, *, apart: bool = False) -> None:
        self.apart = apart

    def __call__(self, tape: Tape, condition: Variable, example: Any) -> bool:
        held = bool(example)
        tape.guards.append(condition if held else logical_not(Recorded(tape, condition, example)).variable)
        return held


class Tape:
    """The inputs, equations and guards recorded so far. Without `decisions`, control flow must not depend on
    numbers."""

    def __init__(self, decisions: Decisions | None = None) -> None:
        self.inputs: list[Variable] = []
        self.equations: list[Equation] = []
        self.guards: list[Variable] = []
        self.decisions = decisions

    def input(self, variable: Variable, example: Any) -> Recorded:
        """Add an input."""
        self.inputs.append(variable)
        return Recorded(self, variable, example)


class ExampleValue(Operators):
    """A variable of a program that is being made, with its value for some example.

    The example provides the shape and dtype. A computation that reads its numbers cannot be recorded.
    """

    __slots__ = ("example", "variable")

    def __init__(self, variable: Variable, example: Any) -> None:
        self.variable = variable
        self.example = example

    @property
    def shape(self) -> tuple[int, ...]:
        return self.variable.shape

    @property
    def dtype(self) -> str:
        return self.variable.dtype

    @property
    def inner(self) -> Any:
        self.refuse()

    def __array__(self, *_arguments: Any, **_keywords: Any) -> NoReturn:
        self.refuse()

    def refuse(self) -> NoReturn:
        """Raise NotRecordableError."""
        raise NotRecordableError("what is computed here depends on the numbers, so it cannot be recorded")

    __float__ = __int__ = refuse

    def __bool__(self) -> bool:
        self.refuse()


class Recorded(ExampleValue):
    """A variable of a program that is being recorded. The example decides shortcuts under a guard."""

    __slots__ = ("tape",)
    level = RECORDED

    def __init__(self, tape: Tape, variable: Variable, example: Any) -> None:
        # A call of the base class would take a tenth of the time of recording an operation on numbers.
        self.variable = variable
        self.example = example
        self.tape = tape

    def assume(self) -> bool:
        held = assume(self.example)
        decisions = self.tape.decisions
        if held:
            self.tape.guards.append(self.variable)
        elif decisions is not None and decisions.apart:
            self.tape.guards.append(logical_not(all_(self)).variable)
        return held

    def __bool__(self) -> bool:
        """Decide a Python condition; a guard is recorded."""
        decisions = self.tape.decisions or Following()
        return decisions(self.tape, self.variable, self.example)

    def decide(self, *, of_loop: bool = False) -> Any:
        decisions = self.tape.decisions
        if decisions is None or (of_loop and not decisions.loops):
            return self.inner
        return decisions(self.tape, self.variable, self.example)

    @staticmethod
    def read(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Recorded:
        limits.charge_steps(_EQUATION + _FURTHER * max(0, len(operands) - 2))
        tape: Any = None
        examples: list[Any] = []
        inputs: list[Any] = []
        for operand in operands:
            if isinstance(operand, Recorded):
                if tape is None:
                    tape = operand.tape
                examples.append(operand.example)
                inputs.append(operand.variable)
            else:
                examples.append(operand)
                inputs.append(operand if type(operand) is float else arrays.owned(operand))
        example = bind(primitive, examples, params)
        if type(example) is float:
            output = Variable((), "float64")
        else:
            output = Variable(arrays.shape(example), arrays.dtype_name(example))
        tape.equations.append(Equation(primitive, tuple(inputs), params, output))
        return Recorded(tape, output, example)

    def __repr__(self) -> str:
        return f"<recorded {self.variable!r}>"


class RecordedRun(NamedTuple):
    """A program, and the values of its outputs for the example inputs."""

    program: Program
    values: tuple[Any, ...]


@phase("record")
def record(
    function: Callable[..., Sequence[Any]], inputs: Mapping[str, Any], decisions: Decisions | None = None
) -> RecordedRun:
    """Return the program that `function` runs for `inputs`, arrays by name, which are passed as keyword arguments.

    Results may be of any kinds that wrap the recorded one; derivatives are stripped. Without `decisions`, raises
    NotRecordableError where control flow depends on the numbers of an input; with them, the program is that of the
    execution path that they choose.
    """
    tape = Tape(decisions)
    given = {
        name: tape.input(Variable(arrays.shape(array), arrays.dtype_name(array), name), array)
        for name, array in inputs.items()
    }
    with recording():
        results = [constant(value) for value in function(**given)]
    outputs = tuple(r.variable if isinstance(r, Recorded) else r for r in results)
    values = tuple(r.example if isinstance(r, Recorded) else r for r in results)
    program = Program(tuple(tape.inputs), tuple(tape.equations), outputs, tuple(tape.guards))
    return RecordedRun(check(program), values)

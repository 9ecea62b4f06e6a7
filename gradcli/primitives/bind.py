"""`bind` applies a primitive to operands: the outermost kind among the operands decides how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from gradcli import arrays
from gradcli.arrays import chosen_namespace
from gradcli.arrays.shapes import broadcast
from gradcli.errors import CallError, EvaluationError, GradcliError, ShapeError
from gradcli.limits import Budget
from gradcli.limits import budget as budget_now
from gradcli.type_hints import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from gradcli.primitives.primitive import Primitive

Params = Mapping[str, Any]

# Costs charged to the budget, in eighths of a step (see `gradcli.limits`): an operation on numbers, a call of an array
# library, and each operand of that call.
_NUMBER_COST = 2
_CALL_COST = 28
_OPERAND_COST = 3

# The rank of an operand by its type: numbers, truth values and arrays, followed by the kinds in the order of their
# levels. The operand of the highest rank interprets the operation.
_NUMBER, _TRUTH, _ARRAY = range(3)
# For each type of operand its rank, and the function that interprets an operation in which it ranks highest.
_OF_ARRAYS = _ARRAY, None
readings: dict[type, tuple[int, Any]] = {
    float: (_NUMBER, None),
    int: (_NUMBER, None),
    bool: (_TRUTH, None),
    complex: _OF_ARRAYS,
}
# The rank of containers, such as lists, whose items may be operands of any kind: above all kinds.
CONTAINER_RANK = 100


class Kind:
    """An operand type that interprets primitives in its own way, such as a traced, batched or differentiated value.

    Kinds nest: the operand with the highest `level` (see `gradcli.kinds.levels`) is outermost. Its `read` unwraps its
    own kind, binds the primitive to the values inside and wraps the result again. `inner` is the value without this
    kind.

    differential
        whether this kind adds derivatives to the value
    parts
        the value and the derivatives that have been computed already
    one_sided
        whether comparisons hold near a point, on one side of it: operands that are equal there do not differ by
        rounding
    by_row
        whether this is a batch: many values of one shape, one per row
    fuses
        whether a primitive with a `definition` in other functions is one operation; else the definition is applied
    """

    __slots__ = ()
    level: ClassVar[int] = 0
    differential: ClassVar[bool] = False
    one_sided: ClassVar[bool] = False
    by_row: ClassVar[bool] = False
    fuses: ClassVar[bool] = False
    inner: Any

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        readings[cls] = _ARRAY + 1 + cls.level, cls.read

    @property
    def parts(self) -> tuple[Any, ...]:
        return (self.inner,)

    @property
    def shape(self) -> tuple[int, ...]:
        return arrays.shape(self.inner)

    @property
    def dtype(self) -> str:
        return arrays.dtype_name(self.inner)

    def assume(self) -> bool:
        """See `gradcli.primitives.bind.assume`."""
        return assume(self.inner)

    def decide(self, *, of_loop: bool = False) -> Any:
        """See `gradcli.primitives.bind.decide`."""
        return decide(self.inner, of_loop=of_loop)

    def made_as_view(self, operand: Any, primitive: Primitive, params: Params) -> None:
        """Record that this result of a primitive is a view of `operand`, although it could be a copy."""

    def in_memory(self) -> Any:
        """The positions of the elements in memory shared with other tensors; None if they are contiguous in row-major
        order."""

    def take_result(self, name: str, operands: Sequence[Any], compute: Callable[[], Any]) -> Any:
        """Become the result of `apply_to_arrays`: the implementation of the keyword `out=`."""
        raise CallError(f"{name}() gives its result, and puts it into nothing else")

    def made_together(self, number: int, node_name: str) -> None:
        """Record that this is result `number` of several results of one function, which share one node."""

    def made_by(self, node_name: str, gradient_name: str | None, operand: Any) -> None:
        """Record that this result was made from `operand` by a composite that is a single function in PyTorch.

        Its node in the graph is named `node_name`; with a `gradient_name`, its gradient stays in the graph of the
        operand.
        """

    @staticmethod
    def stacked(items: Sequence[Any]) -> Any:
        """Stack a list of which this is an item, or is nested in one, into one tensor."""
        raise NotImplementedError

    @staticmethod
    def read(primitive: Primitive, operands: Sequence[Any], params: Params) -> Any:
        raise NotImplementedError


def mark_views(parts: Iterable[Any], node_name: str) -> tuple[Any, ...]:
    """Mark `parts` as the views that one function makes of its operand; their common node is named `node_name`."""
    made = tuple(parts)
    for number, part in enumerate(made):
        if isinstance(part, Kind):
            part.made_together(number, node_name)
    return made


def concrete(value: Any) -> Any:
    """The array inside `value`, with all kinds removed."""
    while isinstance(value, Kind):
        value = value.inner
    return value


def constant(value: Any) -> Any:
    """`value` without derivatives: for conditions and scale factors in a rule."""
    while isinstance(value, Kind) and value.differential:
        value = value.inner
    return value


def constant_for_branching(value: Any) -> Any:
    """`value` without derivatives, for conditions in a rule; a one-sided series is kept, as its comparisons hold near a
    point."""
    while isinstance(value, Kind) and value.differential and not value.one_sided:
        value = value.inner
    return value


def primal_and_tangents(value: Any) -> list[Any]:
    """The primal of `value`, followed by all derivatives that it carries."""
    if isinstance(value, Kind) and value.differential:
        return [component for part in value.parts for component in primal_and_tangents(part)]
    return [value]


def detached(value: Any) -> Any:
    """`value` detached from the graph, but with the tangents or Taylor coefficients that it carries."""
    while isinstance(value, Kind) and value.differential and len(value.parts) == 1:
        value = value.inner
    return value


def assume(condition: Any) -> bool:
    """Return whether a condition, or every element of it, is true, so that a shortcut may be taken.

    A recorded program keeps the condition as a guard: it is valid only for inputs that satisfy it.
    """
    if isinstance(condition, Kind):
        return condition.assume()
    return arrays.all_true(condition)


def decide(condition: Any, *, of_loop: bool = False) -> Any:
    """The array inside a condition that selects the execution path; `of_loop` if it decides whether a loop goes on.

    While execution paths are recorded, the truth value on the current path.
    """
    return condition.decide(of_loop=of_loop) if isinstance(condition, Kind) else condition


def _with_whole_numbers(primitive: Primitive, operands: Sequence[Any], params: Params) -> Any:
    """Interpret an operation on the `size` of a tensor, as a plain int."""
    return bind(primitive, [int(o) if type(o) is arrays.ElementCount else o for o in operands], params)


readings[arrays.ElementCount] = CONTAINER_RANK, _with_whole_numbers


def bind(primitive: Primitive, operands: Sequence[Any], params: Params) -> Any:
    """Apply `primitive` to operands of any kinds; the result is of the outermost kind among them."""
    highest = _NUMBER
    outermost = None
    for operand in operands:
        kind = type(operand)
        if kind is not float:
            rank, read = readings.get(kind, _OF_ARRAYS)
            if rank > highest:
                highest, outermost = rank, read
    if outermost is not None:
        if primitive.definition is not None and not all(o.fuses for o in operands if isinstance(o, Kind)):
            return primitive.definition(*operands, **params)
        return outermost(primitive, operands, params)
    if highest == _ARRAY or not primitive.elementwise:
        return apply_to_arrays(primitive, operands, params)
    if highest == _TRUTH and not primitive.truths:
        operands = [float(o) if type(o) is bool else o for o in operands]
    return apply_to_numbers(primitive, operands, params)


def apply_to_numbers(primitive: Primitive, operands: Sequence[Any], params: Params, further: int = 0) -> Any:
    """Apply an elementwise primitive to numbers; `further` eighths of a step are charged for work on its result."""
    budget = budget_now()
    if budget is not None:
        budget.charge_steps(_NUMBER_COST * primitive.time + further)
    chosen = chosen_namespace()
    if chosen is not None and chosen.scalars is not None:
        if budget is not None:
            budget.charge_steps(chosen.scalars.eighths(primitive.name, primitive.time))
        return exact_forward(chosen.scalars, primitive)(*operands, **params)
    of_floats = primitive.of_floats
    try:
        return of_floats(*operands, **params) if params else of_floats(*operands)
    except OverflowError:
        raise EvaluationError("an integer is too large for a float") from None


def apply_to_arrays(primitive: Primitive, operands: Sequence[Any], params: Params) -> Any:
    """Apply a primitive to arrays: run `forward` in their namespace, or in the default one if all are numbers and NumPy
    arrays.

    Raises ShapeError if the shapes do not fit, LimitError if memory or the run's limit on elements is exhausted,
    EvaluationError for any other error of the array library.
    """
    budget, chosen = budget_now(), chosen_namespace()
    xp: Any = chosen or arrays.numpy_namespace()
    try:
        if budget is None and chosen is None and xp.are_float64(operands):
            return xp.runner(primitive)(operands, params)
        xp = arrays.foreign_namespace(operands) or xp
        if budget is not None:
            _charge(budget, primitive, operands, params, xp)
        operands = xp.promoted(operands, truths=primitive.truths)
        with xp.quiet():
            if any(map(arrays.is_complex, operands)):
                of_complex = _of_complex(primitive) if xp.scalars is None else _exact_of_complex(xp, primitive)
                result = of_complex(xp, *operands, **params)
                return [xp.tidy(r) for r in result] if type(result) is list else xp.tidy(result)
            if budget is not None and primitive.surcharge is not None and xp.name == "numpy":
                budget.charge(primitive.surcharge(*operands, **params))
            if xp.scalars is None:
                result = primitive.forward(xp, *operands, **params)
            else:
                result = exact_forward(xp, primitive)(*operands, **params)
    except (GradcliError, RecursionError):
        raise
    except (MemoryError, ValueError, IndexError, TypeError, RuntimeError) as error:
        raise xp.explained(error) or _refused(primitive, operands, error) from None
    except AttributeError:
        for operand in operands:
            # Raises for an operand that is not an array.
            arrays.shape(operand)
        raise
    except ArithmeticError as error:
        raise EvaluationError(f"'{primitive.called}' failed: {error}") from None
    return [xp.tidy(r) for r in result] if type(result) is list else xp.tidy(result)


def _of_complex(primitive: Primitive) -> Callable[..., Any]:
    """The implementation of a primitive for complex operands. Raises EvaluationError if it takes real numbers only."""
    if primitive.numbers == "real":
        raise real_numbers_only(primitive.called)
    return primitive.of_complex


def _exact_of_complex(xp: Any, primitive: Primitive) -> Callable[..., Any]:
    """The implementation of a primitive for complex operands in a namespace with exact numbers; see `exact_forward`."""
    of_complex, exactly = _of_complex(primitive), xp.of_complex_numbers()
    if primitive.elementwise:
        # What is written in other functions may be accurate to float rounding only.
        found = exactly.own(primitive.name, primitive.called)
        return lambda _xp, *operands, **params: found(*operands, **params)
    return lambda _xp, *operands, **params: of_complex(exactly, *operands, **params)


def real_numbers_only(name: str) -> EvaluationError:
    """The error of the function `name` for complex operands."""
    return EvaluationError(
        f"'{name}' takes real numbers, and not complex ones", hint="real(z), imag(z), abs(z) and angle(z) are real"
    )


def _charge(budget: Budget, primitive: Primitive, operands: Sequence[Any], params: Params, xp: Any) -> None:
    """Charge the expected cost of an operation on arrays to the budget."""
    budget.charge_steps(_CALL_COST + _OPERAND_COST * len(operands))
    if primitive.view is None or not _is_view(primitive.view, xp, operands[0], params):
        elements = primitive.elements([arrays.shape(o) for o in operands], params)
        budget.charge(elements * primitive.time)
        if xp.scalars is not None:
            name = primitive.name if primitive.elementwise else ""
            budget.charge_steps(elements * xp.scalars.eighths(name, primitive.time))


def exact_forward(xp: Any, primitive: Primitive) -> Callable[..., Any]:
    """The implementation of a primitive in a namespace with exact numbers.

    A `forward` written in other functions may be accurate to float rounding only, so the namespace's own function of
    that name is used if there is one.
    """
    if primitive.elementwise and primitive.function is None and xp.has(primitive.name):
        found: Callable[..., Any] = getattr(xp, primitive.name)
        return found
    return partial(primitive.forward, xp)


def _is_view(view: Callable[..., bool], xp: Any, operand: Any, params: Params) -> bool:
    return xp.name == "numpy" and type(operand) not in arrays.PYTHON_NUMBERS and view(operand, **params)


def _refused(primitive: Primitive, operands: Sequence[Any], error: Exception) -> EvaluationError:
    if type(error).__name__.lstrip("_") == "LinAlgError":
        return EvaluationError(f"'{primitive.called}' failed: {str(error).lower()}")
    shapes = [arrays.shape(o) for o in operands]
    if not primitive.elementwise:
        text = " and ".join(str(list(s)) for s in shapes)
        return ShapeError(f"'{primitive.called}' does not fit operands of shape {text}: {error}")
    try:
        broadcast(shapes)
    except ShapeError as misfit:
        return ShapeError(
            f"{misfit} in '{primitive.called}'", hint="sizes must be equal or 1, counted from the last axis"
        )
    types = " and ".join(arrays.dtype_name(o) for o in operands)
    return EvaluationError(f"'{primitive.called}' does not work on {types} values: {error}")

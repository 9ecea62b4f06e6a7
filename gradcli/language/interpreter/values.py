"""The types of values in the language, and conversions and checks of them."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence

from gradcli import arrays, limits
from gradcli.autograd.tensor import Tensor
from gradcli.errors import EvaluationError, SeveralTensorsError, ShapeError
from gradcli.language.interpreter.lists import ProgramList
from gradcli.language.interpreter.mutable_references import MutableReference
from gradcli.language.operations import EXACT_INTEGERS
from gradcli.language.syntax import tree
from gradcli.primitives.axes import integer
from gradcli.primitives.bind import Kind, concrete, decide
from gradcli.primitives.operation import Operation
from gradcli.primitives.signature import SignatureParameter
from gradcli.type_hints import Any

# A number, array or Tensor; True, False or None; a string; a list or a range; the tuple of tensors that a function such
# as `qr` returns; a function of the program.
Value = Any


class Closure:
    """A function of the program as a value: its definition, scope, parameters, defaults and local names (`own`)."""

    __slots__ = ("defaults", "node", "own", "parameters", "scope")

    def __init__(
        self,
        node: tree.Define | tree.Lambda,
        scope: Any,
        parameters: Sequence[SignatureParameter],
        defaults: Mapping[str, Value],
        own: Collection[str],
    ) -> None:
        self.node = node
        self.scope = scope
        self.parameters = parameters
        self.defaults = defaults
        self.own = own

    @property
    def name(self) -> str:
        return self.node.name if isinstance(self.node, tree.Define) else "lambda"


class TailCall:
    """A call that a function makes of itself last, in place of its value: the node, and the arguments by name."""

    __slots__ = ("named", "node")

    def __init__(self, node: tree.Call, named: Mapping[str, Value]) -> None:
        self.node = node
        self.named = named


class BuiltinFunction:
    """A function of the language as a value, as `torch.sin` without a call."""

    __slots__ = ("module", "name")

    def __init__(self, name: str, module: str) -> None:
        self.name = name
        self.module = module


class TransformedFunction:
    """A transformed function, as `grad(f)`: the name of the transformation, the function `of`, and its options."""

    __slots__ = ("name", "of", "options")

    def __init__(self, name: str, of: Value, options: Mapping[str, Value]) -> None:
        self.name = name
        self.of = of
        self.options = options


class RandomVariable:
    """A distribution with its parameters, as `torch.distributions.Normal(0.0, 1.0)`, by its qualified name."""

    __slots__ = ("distribution", "keywords", "positional")

    def __init__(self, distribution: str, positional: Sequence[Value], keywords: Mapping[str, Value]) -> None:
        self.distribution = distribution
        self.positional = positional
        self.keywords = keywords


# Types that are converted where a tensor is needed.
TENSOR_CONVERTIBLE = (ProgramList, MutableReference, range)
# Types that can be called.
FUNCTIONS = (Closure, BuiltinFunction, TransformedFunction)


def written_number(node: tree.Number, scalars: Any) -> Value:
    """The value of a literal: a float, or a number of `scalars`, those of a namespace that has others."""
    if scalars is None or not node.text:
        return node.value
    # Whole numbers are exact as floats. A text that is not longer than the 15 digits which a float distinguishes, and
    # whose value is whole, was not rounded to it.
    if len(node.text) <= sys.float_info.dig and node.value % 1.0 == 0.0 and 0.0 < node.value < EXACT_INTEGERS:
        return node.value
    return scalars.number(node.text)


def length_of(numbers: range) -> int:
    """The length of a range, also where `len` overflows."""
    return max(0, -((numbers.start - numbers.stop) // numbers.step))


def as_tensor_or_number(value: Value, what: str) -> Value:
    """A value as a number or tensor; lists and ranges become tensors. Raises EvaluationError for all else."""
    kind = type(value)
    # The most common types are tested first.
    if kind is Tensor or kind is float:
        return value
    if kind in arrays.PYTHON_NUMBERS:
        # See `gradcli.language.interpreter.whole_numbers`.
        return float(value) if kind is int and abs(value) > EXACT_INTEGERS else value
    if isinstance(value, MutableReference):
        return value.value
    if kind is ProgramList:
        return value.tensor(lambda item: as_tensor_or_number(item, "a tensor"))
    if kind is range:
        limits.charge(length_of(value))
        return arrays.in_default_namespace(arrays.asarray([float(i) for i in value], arrays.default_dtype()))
    if kind in FUNCTIONS:
        raise EvaluationError(
            f"{what} needs a number or a tensor, and this is a function",
            hint="call it, as in f(x)",
        )
    if kind is RandomVariable:
        raise EvaluationError(
            f"{what} needs a number or a tensor, and this is a distribution",
            hint="call a function of it, as in scipy.stats.norm(0, 1).pdf(x)",
        )
    if isinstance(value, tuple):
        raise _several(value, what)
    if value is None or kind is str:
        raise EvaluationError(
            f"{what} needs a number or a tensor, and this is {'a text' if kind is str else 'no value'}"
        )
    return value


def _several(tensors: tuple[Value, ...], what: str) -> SeveralTensorsError:
    fields: tuple[str, ...] = getattr(tensors, "_fields", ())
    error = SeveralTensorsError(
        f"{what} needs a number or a tensor, and this is {len(tensors)} tensors{': ' * bool(fields)}{', '.join(fields)}",
        hint="take one of them by its number, as in qr(A)[0], or name them all, as in Q, R = qr(A)",
    )
    error.names = fields or tuple(range(len(tensors)))
    return error


def select_result(tensors: tuple[Value, ...], key: Sequence[Value]) -> Value:
    """One of the tensors that a function returns, by its index. Raises ShapeError for any other key."""
    position = integer(key[0], "the number of a tensor") if len(key) == 1 else None
    if position is None or not -len(tensors) <= position < len(tensors):
        raise ShapeError(f"one of {len(tensors)} tensors is taken by its number, from 0 to {len(tensors) - 1}")
    return tensors[position]


def as_numpy(value: Value) -> Any:
    """A result as a number or NumPy array of the dtype in use, or as balls; booleans become 0 and 1."""
    array, namespace = concrete(value), arrays.chosen_namespace()
    if array is not None and namespace is not None and namespace.scalars is not None:
        return namespace.asarray(array, arrays.default_dtype())
    return None if array is None else arrays.on_host(arrays.in_precision(array, arrays.default_dtype()))


def check_arguments(operation: Operation, positional: Sequence[Value], keywords: Mapping[str, Value]) -> None:
    """Raise EvaluationError for a string, None or several tensors as an argument that must be a number or a tensor.

    A string is accepted only by the parameters in `_TEXTS`, several tensors only by those in `_RESULTS`,
    None only by optional parameters whose default it is.
    """
    parameters = operation.parameters
    if operation.name == "einsum" and len(positional) < 2 and not (positional and isinstance(positional[0], str)):
        raise EvaluationError("the first argument of 'einsum' must be a text such as 'ij,jk->ik'")
    for place, value in enumerate(positional):
        if isinstance(value, _NO_NUMBERS):
            _check_argument(operation, parameters[min(place, len(parameters) - 1)], value)
    for name, value in keywords.items():
        if isinstance(value, _NO_NUMBERS):
            _check_argument(operation, next(p for p in parameters if p.name == name), value)


_NO_NUMBERS = (str, tuple, type(None), *FUNCTIONS)
# The parameters that accept a string.
_TEXTS = frozenset(
    [
        "subscripts", "ord", "dtype", "device", "reduction", "mode", "method", "side", "indexing", "approximate", "UPLO", "norm",
        "padding", "rounding_mode", "driver", "compute_mode", "reduce",
    ]
)  # fmt: skip
# The parameters that accept all results of a function with several, as those of `lu_factor`.
_RESULTS = frozenset({"lu_and_piv"})


def _check_argument(operation: Operation, parameter: SignatureParameter, value: Value) -> None:
    if (isinstance(value, str) and parameter.name in _TEXTS) or (
        isinstance(value, tuple) and parameter.name in _RESULTS
    ):
        return
    if value is None and (parameter.default == "None" or parameter.name == "ord"):
        return
    as_tensor_or_number(value, f"'{operation.name}'")


def as_bool(value: Value, node: tree.SyntaxNode, *, of_loop: bool = False) -> bool:
    """Return whether a condition holds; `of_loop` marks that of a loop, which may run any number of times.

    Raises EvaluationError for values that are not numbers, and ShapeError for a tensor of several elements.
    """
    condition = value.value if isinstance(value, MutableReference) else value
    # A recorded condition is decided only where it is a single number.
    if not isinstance(condition, Kind) or arrays.size(condition) == 1:
        condition = decide(condition, of_loop=of_loop)
    if isinstance(condition, (ProgramList, range)):
        raise EvaluationError(
            "a condition needs one number, and this is a list",
            hint="len(…) > 0 asks whether it has items",
            span=node.span,
        )
    if isinstance(condition, _NO_NUMBERS):
        raise EvaluationError("a condition needs a number", span=node.span)
    if type(condition) in arrays.PYTHON_NUMBERS:
        return bool(condition)
    if arrays.size(condition) != 1:
        raise ShapeError(
            f"a condition needs one number, and this has shape {list(arrays.shape(condition))}",
            hint="use where(condition, a, b) to choose element by element, or any(…), all(…)",
            span=node.span,
        )
    return bool(condition)

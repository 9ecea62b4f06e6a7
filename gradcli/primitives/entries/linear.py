"""Products of tensors: matmul, dot, outer, einsum, trace."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from gradcli import arrays, limits
from gradcli.arrays.shapes import Shape
from gradcli.errors import EvaluationError, ShapeError
from gradcli.primitives import batching
from gradcli.primitives.axes import normalize_axis, whole_numbers
from gradcli.primitives.bind import bind
from gradcli.primitives.conversions import permute, reshape, reshaped
from gradcli.primitives.costs import matmul_cost
from gradcli.primitives.entries.arithmetic import multiply
from gradcli.primitives.entries.indexing import take_diagonal
from gradcli.primitives.entries.reductions import sum_
from gradcli.primitives.entries.shape import matrix_transpose, moveaxis
from gradcli.primitives.jet_rules import multilinear
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import NodeName, Primitive
from gradcli.type_hints import Any

SUBJECT = "linear algebra"

_NO_PARAMS: Mapping[str, Any] = {}
_VECTOR = [1.0, 2.5, -3.0]
_MATRIX = [[1.0, 2.0, 3.0], [4.0, 5.5, 6.0]]
_SQUARE = [[1.0, 2.0], [3.0, -4.0]]


def _as_matrices(a: Any, b: Any) -> tuple[Any, Any]:
    """A vector on the left as a matrix with one row, one on the right as a matrix with one column."""
    shape_a, shape_b = arrays.shape(a), arrays.shape(b)
    return (
        reshaped(a, (1, *shape_a)) if len(shape_a) == 1 else a,
        reshaped(b, (*shape_b, 1)) if len(shape_b) == 1 else b,
    )


def _matrix_cotangent(g: Any, shape_a: Shape, shape_b: Shape) -> Any:
    """The cotangent `g` of a matmul with the axes restored that were dropped for vector operands."""
    rows = (1,) if len(shape_a) == 1 else shape_a[-2:-1]
    columns = (1,) if len(shape_b) == 1 else shape_b[-1:]
    batch = arrays.shape(g)[: max(len(shape_a), len(shape_b), 2) - 2]
    return reshaped(g, batch + rows + columns)


def _drop_axis(x: Any, axis: int, drop: bool) -> Any:
    if not drop:
        return x
    sizes = list(arrays.shape(x))
    del sizes[axis]
    return reshaped(x, sizes)


def _matmul_left(g: Any, _y: Any, _a: Any, b: Any) -> Any:
    shape_a, shape_b = _a.shape, arrays.shape(b)
    if len(shape_b) > 1 and (len(shape_a) > 1 or len(shape_b) == 2):
        return bind(matmul, (g, matrix_transpose(b)), _NO_PARAMS)
    g = _matrix_cotangent(g, shape_a, shape_b)
    _, right = _as_matrices(g, b)
    return _drop_axis(bind(matmul, (g, matrix_transpose(right)), _NO_PARAMS), -2, len(shape_a) == 1)


def _matmul_right(g: Any, _y: Any, a: Any, _b: Any) -> Any:
    shape_a, shape_b = arrays.shape(a), _b.shape
    if len(shape_a) > 1 and (len(shape_b) > 1 or len(shape_a) == 2):
        return bind(matmul, (matrix_transpose(a), g), _NO_PARAMS)
    g = _matrix_cotangent(g, shape_a, shape_b)
    left, _ = _as_matrices(a, g)
    return _drop_axis(bind(matmul, (matrix_transpose(left), g), _NO_PARAMS), -1, len(shape_b) == 1)


def prepared_matmul(a: Any, b: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The operands and params of a matrix product. Raises ShapeError for numbers and for shapes that do not fit."""
    shape_a, shape_b = arrays.shape(a), arrays.shape(b)
    if not shape_a or not shape_b:
        raise ShapeError("a matrix product needs vectors or matrices, not numbers", hint="use * for numbers")
    if shape_a[-1] != shape_b[-2 if len(shape_b) > 1 else 0]:
        raise ShapeError(
            f"shapes {list(shape_a)} and {list(shape_b)} do not fit in a matrix product",
            hint="the last size of the first must be that of the vector, or the number of rows of the matrix",
        )
    return (a, b), _NO_PARAMS


# The number of elements that are read from memory in the time in which one is computed.
_READS_PER_ELEMENT = 16


def _matmul_elements(shapes: Sequence[Shape], _params: Mapping[str, Any]) -> int:
    a, b = shapes
    batch = max(math.prod(a[:-2]), math.prod(b[:-2]))
    results = batch * (a[-2] if len(a) > 1 else 1) * (b[-1] if len(b) > 1 else 1)
    return results + matmul_cost(results * a[-1]) + (math.prod(a) + math.prod(b)) // _READS_PER_ELEMENT


_NAMES = {(1, 1): NodeName("DotBackward0"), (2, 1): NodeName("MvBackward0"), (2, 2): NodeName("MmBackward0")}
_NAMES[1, 2] = _NAMES[2, 1]
_NAME_OF_BATCHES = NodeName("BmmBackward0")


def _matmul_name(operands: Sequence[Any], _params: Mapping[str, Any]) -> NodeName:
    a, b = operands
    return _NAMES.get((len(arrays.shape(a)), len(arrays.shape(b))), _NAME_OF_BATCHES)


matmul = Primitive(
    "matmul", "a, b", "matrix product over the last two axes; the operator @",
    operator="@",
    vjp=(_matmul_left, _matmul_right),
    jet=multilinear,
    prepare=prepared_matmul,
    batch=batching.matmul,
    derivative="g@b.T, a.T@g",
    elements=_matmul_elements,
    multilinear=True,
    node_name=_matmul_name,
    aliases=("mm", "bmm", "mv"),
    samples=((_SQUARE, _MATRIX), (_SQUARE, [1.0, -1.0]), (_VECTOR, _VECTOR), ([_SQUARE, _SQUARE], _MATRIX)),
)  # fmt: skip


outer = Composite(
    "outer", "a, b", "all products of an element of a with one of b",
    lambda a, b: multiply(reshape(a, (-1, 1)), reshape(b, (1, -1))),
    derivative="g@b, a@g",
    aliases=("ger",),
    samples=((_VECTOR, [0.5, 2.0]),),
)  # fmt: skip


def _in_front(x: Any, axis1: Any, axis2: Any) -> Any:
    """`x` with the two axes of its matrices moved to the front."""
    rank = len(arrays.shape(x))
    if rank < 2:
        return x
    first, second = (normalize_axis(axis, rank) for axis in (axis1, axis2))
    if first == second:
        raise ShapeError("a diagonal needs two different axes")
    return x if (first, second) == (0, 1) else moveaxis(x, (first, second), (0, 1))


trace = Composite(
    "trace", "x, k=0, axis1=0, axis2=1", "sum of diagonal k of two axes, the first ones unless named",
    lambda x, k=0, axis1=0, axis2=1: sum_(take_diagonal(_in_front(x, axis1, axis2), k), axis=0),
    node_name="TraceBackward0",
    derivative="g on the diagonal, 0 elsewhere",
    samples=((_SQUARE,), (_MATRIX,), ([_MATRIX, _MATRIX], 1, 2, 1)),
)  # fmt: skip

diagonal = Composite(
    "diagonal", "x, k=0, axis1=0, axis2=1",
    "diagonal k of two axes, the first ones unless named, as the last axis of the result",
    lambda x, k=0, axis1=0, axis2=1: moveaxis(take_diagonal(_in_front(x, axis1, axis2), k, view=True), 0, -1),
    derivative="g put back on the diagonal",
    samples=((_MATRIX,), (_MATRIX, 1), ([_MATRIX, _MATRIX], -1), ([_MATRIX, _MATRIX], 1, -1, 0)),
)  # fmt: skip


def _with_letters(given: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The subscripts and tensors of an einsum call in which each tensor is followed by its axes as numbers: `einsum(a,
    [0, 1], b, [1, 2], [0, 2])`."""
    pairs, result = given[: len(given) // 2 * 2], given[len(given) // 2 * 2 :]
    terms = [_letters(axes) for axes in pairs[1::2]]
    return ",".join(terms) + "".join(f"->{_letters(axes)}" for axes in result), pairs[::2]


def _letters(axes: Any) -> str:
    if isinstance(axes, (tuple, list)):
        return "".join("..." if axis is Ellipsis else _letters(axis) for axis in axes)
    numbers = whole_numbers(axes, "an axis of 'einsum'")
    if any(not 0 <= number < len(_ALPHABET) for number in numbers):
        raise EvaluationError(f"the axes of 'einsum' are numbers from 0 to {len(_ALPHABET) - 1}, or a text for all")
    # An implicit result has its letters sorted, upper case first; swapping the case keeps the order of the numbers.
    return "".join(_ALPHABET.swapcase()[number] for number in numbers)


_ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _parse_subscripts(subscripts: Any, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The letters of each operand and of the result; an ellipsis becomes one unused letter for each of its axes."""
    if not isinstance(subscripts, str):
        raise EvaluationError("the first argument of 'einsum' must be a string such as 'ij,jk->ik'")
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise EvaluationError(f"'{subscripts}' is for {len(terms)} tensors, and {len(ranks)} were given")
    unused = [c for c in map(chr, range(0x391, 0x3FF)) if c.isalpha() and c not in subscripts]
    hidden = [rank - len(t.replace("...", "")) if "..." in t else 0 for t, rank in zip(terms, ranks)]
    if min(hidden) < 0 or max(hidden) > len(unused):
        raise EvaluationError(f"'{subscripts}' does not fit tensors of {list(ranks)} dimensions")
    dots = unused[: max(hidden)]
    terms = [t.replace("...", "".join(dots[len(dots) - n :])) for t, n in zip(terms, hidden)]
    letters = "".join(terms)
    if not arrow:
        times = Counter(letters)
        right = "..." * bool(dots) + "".join(c for c in sorted(set(letters) - set(dots)) if times[c] == 1)
    result = right.replace("...", "".join(dots))
    _check_subscripts(str(subscripts), terms, result, ranks)
    return terms, result


def _check_subscripts(subscripts: str, terms: list[str], result: str, ranks: Sequence[int]) -> None:
    if not "".join([*terms, result]).isalpha() and "".join([*terms, result]):
        raise EvaluationError(f"'{subscripts}' holds something that is neither a letter, ',', '->' nor '...'")
    for term, rank in zip(terms, ranks):
        if len(term) != rank:
            raise ShapeError(f"'{term}' in '{subscripts}' is for {len(term)} dimensions, and the tensor has {rank}")
    for letter in result:
        if result.count(letter) > 1 or not any(letter in t for t in terms):
            raise EvaluationError(f"'{letter}' in the result of '{subscripts}' must stand there once, and in a tensor")


def _take_diagonals(x: Any, term: str) -> tuple[Any, str]:
    """`x` with the diagonal taken along each repeated letter of its term, and the reduced term."""
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            first, second = [i for i, c in enumerate(term) if c == letter][:2]
            others = [i for i in range(len(term)) if i not in (first, second)]
            sizes = arrays.shape(x)
            if sizes[first] != sizes[second]:
                raise ShapeError(f"the axes '{letter}' have different sizes {sizes[first]} and {sizes[second]}")
            x = take_diagonal(permute(x, (first, second, *others)))
            term = letter + "".join(term[i] for i in others)
    return x, term


def _sum_lone(x: Any, term: str, used: Mapping[str, int]) -> tuple[Any, str]:
    """`x` summed over the letters that occur in no other term and not in the result, and the reduced term."""
    lone = tuple(i for i, c in enumerate(term) if used[c] == 1)
    kept = "".join(c for c in term if used[c] > 1)
    return (sum_(x, axis=lone) if lone else x), kept


def _einsum(subscripts: Any, *tensors: Any) -> Any:
    if not isinstance(subscripts, str) and tensors:
        subscripts, tensors = _with_letters((subscripts, *tensors))
    terms, result = _parse_subscripts(subscripts, [len(arrays.shape(t)) for t in tensors])
    # The number of terms, the result included, in which each letter occurs.
    used = Counter(c for term in (*terms, result) for c in set(term))
    operands = []
    for i, (tensor, term) in enumerate(zip(tensors, terms)):
        tensor, term = _take_diagonals(tensor, term)
        tensor, terms[i] = _sum_lone(tensor, term, used)
        operands.append(tensor)
    while len(operands) > _MOST_AT_ONCE:
        _contract_pair(operands, terms, used)
    if len(operands) == 1:
        return permute(operands[0], [terms[0].index(c) for c in result])
    return contract(*operands, terms=tuple(terms), result=result)


# The largest number of tensors contracted by one primitive: the best order for that many is found quickly, and the
# derivative by each involves all others.
_MOST_AT_ONCE = 16
# The cost of considering one tensor for the next pair, in eighths of a step.
_CANDIDATE_COST = 3


def _contract_pair(operands: list[Any], terms: list[str], used: Counter[str]) -> None:
    """Contract the last tensor with the one that gives the smallest product, and put the product last."""
    tensor, term = operands.pop(), terms.pop()
    limits.charge_steps(_CANDIDATE_COST * len(operands))
    shapes = [arrays.shape(o) for o in operands]
    sizes = dict(zip(term, arrays.shape(tensor)))
    grown = [math.prod(n for c, n in zip(t, shape) if c not in sizes) for t, shape in zip(terms, shapes)]
    apart = [sizes.keys().isdisjoint(t) for t in terms]
    i = min(range(len(terms)), key=lambda j: (apart[j], grown[j], -j))
    both = set(term).intersection(terms[i])
    used.subtract(both)
    made = "".join(c for c in dict.fromkeys(term + terms[i]) if c not in both or used[c] > 1)
    operands[i] = contract(operands[i], tensor, terms=(terms[i], term), result=made)
    terms[i] = made
    operands.append(operands.pop(i))
    terms.append(terms.pop(i))


def _contract_rule(i: int, g: Any, _y: Any, *operands: Any, terms: tuple[str, ...], result: str) -> Any:
    others = [o for j, o in enumerate(operands) if j != i]
    other_terms = tuple(t for j, t in enumerate(terms) if j != i)
    return contract(g, *others, terms=(result, *other_terms), result=terms[i])


def _sizes_by_letter(terms: Sequence[str], shapes: Sequence[Shape]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes):
        for letter, size in zip(term, shape):
            known = sizes.setdefault(letter, size)
            if known != size and 1 not in (known, size):
                raise ShapeError(f"the axes '{letter}' have different sizes {known} and {size}")
            sizes[letter] = max(known, size)
    return sizes


# The cost of planning a contraction, for each tensor, in elements.
_PLAN_COST = 2000


def _contract_elements(shapes: Sequence[Shape], params: Mapping[str, Any]) -> int:
    terms, result = params["terms"], params["result"]
    sizes = _sizes_by_letter(terms, shapes)
    return (
        math.prod(sizes[letter] for letter in result)
        + _PLAN_COST * len(shapes)
        + matmul_cost(4 * _multiplications(shapes, terms, result, sizes))
    )


def _multiplications(shapes: Sequence[Shape], terms: Sequence[str], result: str, sizes: Mapping[str, int]) -> int:
    """The number of multiplications of a contraction in the order that the array library chooses."""
    left = list(terms)
    total = 0
    for step in arrays.numpy_namespace().contraction_steps(shapes, subscripts=latin(terms, result)):
        taken = set().union(*(left[i] for i in step))
        left = [term for i, term in enumerate(left) if i not in step]
        left.append("".join(taken.intersection(result, *left)))
        total += math.prod(sizes[letter] for letter in taken)
    return total


def latin(terms: Sequence[str], result: str) -> str:
    """The subscripts with ASCII letters, which array libraries accept. Raises EvaluationError for more than 52
    letters."""
    letters = dict.fromkeys("".join(terms))
    if len(letters) > len(_ALPHABET):
        raise EvaluationError(f"'einsum' has more than {len(_ALPHABET)} different letters at once")
    names = dict(zip(letters, _ALPHABET))
    return ",".join("".join(names[c] for c in t) for t in terms) + "->" + "".join(names[c] for c in result)


def matmul_letters(shapes: Sequence[Shape]) -> tuple[Sequence[Sequence[Any]], Sequence[Any]]:
    """A matmul of operands of these shapes as a contraction: the labels of the axes of both operands, and of the
    result."""
    left, right = map(len, shapes)
    before = [*range(max(left, right) - 2)]
    first = [*before[len(before) - max(left - 2, 0) :], *("row" for _ in range(left > 1)), "sum"]
    second = [*before[len(before) - max(right - 2, 0) :], "sum", *("column" for _ in range(right > 1))]
    return (first, second), [*before, *(a for a in (*first, *second) if a in ("row", "column"))]


# Every letter of a term occurs in it once, and in another term or in the result.
contract = Primitive(
    "contract", "*tensors", "sum of products over the letters that are not in the result",
    internal="einsum",
    forward=lambda xp, *tensors, terms, result: xp.einsum(*tensors, subscripts=latin(terms, result)),
    vjp=_contract_rule,
    jet=multilinear,
    variadic=True,
    prepare=lambda *tensors, terms, result: (tensors, {"terms": terms, "result": result}),
    batch=batching.contract,
    derivative="the contraction of g with the other tensors",
    elements=_contract_elements,
    node_name="EinsumBackward0",
    multilinear=True,
)  # fmt: skip

einsum = Composite(
    "einsum", "subscripts, *tensors", "sum of products by Einstein's convention, as 'ij,jk->ik', or with lists of numbers for letters behind each tensor", _einsum,
    derivative="einsum of g with the other tensors",
    samples=(("ij,jk->ik", _SQUARE, _MATRIX), ("ii", _SQUARE), ("i,j->ji", _VECTOR, [1.0, 2.0])),
)  # fmt: skip

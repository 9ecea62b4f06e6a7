"""`jax.lax`: control flow, run by Python, and elementwise functions under their names there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.calculus.functions.mapping import as_tensor
from gradcli.errors import ArgumentError, ShapeError
from gradcli.jax.arrays import returning_tensors
from gradcli.jax.tree_util import tree_leaves, tree_map
from gradcli.kinds.batch import nestings
from gradcli.primitives import table
from gradcli.primitives.entries.comparisons import where
from gradcli.primitives.entries.shape import concat, stack

# Functions with the same name and meaning in gradcli, and those with another name there.
_SAME = frozenset(
    """
    abs add acos acosh asin asinh atan atan2 atanh cbrt ceil clamp cos cosh cummax cummin cumprod cumsum digamma dot erf erfc exp exp2 expm1 floor lgamma
    log log1p pow polygamma reciprocal round rsqrt sign sin sinh sqrt square sub tan tanh
    """.split()  # noqa: SIM905
)
_CALLED = {
    "div": "divide",
    "erf_inv": "erfinv",
    "logistic": "sigmoid",
    "max": "maximum",
    "min": "minimum",
    "mul": "multiply",
    "neg": "negative",
    "select": "where",
    "top_k": "topk",
}


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """The running results of an associative operation along an axis of the arrays in `elems`: the first element, the
    first two combined, and so on; from the end with `reverse`. `fn` is called with slices that keep the axis."""
    leaves = tree_leaves(elems)
    if not leaves:
        raise ArgumentError("associative_scan needs an array to scan")
    size = as_tensor(leaves[0]).shape[axis]
    order = [*range(size)][:: -1 if reverse else 1]
    parts = [tree_map(lambda x, k=k: as_tensor(x).narrow(axis, k, 1), elems) for k in order]
    found = parts[:1]
    for part in parts[1:]:
        found.append(fn(found[-1], part))
    return tree_map(lambda *slices: concat(slices[:: -1 if reverse else 1], axis), *found) if found else elems


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """The last state, and the outputs stacked along a new first axis, of `state, output = f(state, x)` for each slice x
    of `xs`, starting with `init`. Raises ShapeError where the numbers of slices differ, and ArgumentError where no
    number is known."""
    sliced = tree_map(as_tensor, xs)
    sizes = {x.shape[0] for x in tree_leaves(sliced)} | ({length} if length is not None else set())
    if len(sizes) != 1:
        if not sizes:
            raise ArgumentError("a scan of nothing needs its length")
        raise ShapeError(f"the slices of a scan are not equally many: {', '.join(str(size) for size in sorted(sizes))}")
    (count,) = sizes
    state, outputs = tree_map(as_tensor, init), []
    for i in reversed(range(count)) if reverse else range(count):
        state, output = f(state, tree_map(lambda x, i=i: x[i], sliced))
        outputs.append(output)
    if reverse:
        outputs.reverse()
    return state, tree_map(lambda *ys: stack([*ys]), *outputs) if outputs else None


def fori_loop(lower: int, upper: int, body_fun: Callable[[int, Any], Any], init_val: Any) -> Any:
    """The last state of `state = body_fun(i, state)` for each i from `lower` up to but not including `upper`."""
    state = tree_map(as_tensor, init_val)
    for i in range(int(lower), int(upper)):
        state = body_fun(i, state)
    return state


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """The first state of `state = body_fun(state)` for which `cond_fun` is false."""
    state = tree_map(as_tensor, init_val)
    while cond_fun(state):
        state = body_fun(state)
    return state


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """`true_fun` or `false_fun` of the operands. Within `vmap`, where rows choose differently, both are evaluated."""
    if isinstance(pred, Tensor) and nestings(pred.inner):
        return tree_map(lambda a, b: where(pred, a, b), true_fun(*operands), false_fun(*operands))
    return true_fun(*operands) if pred else false_fun(*operands)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """The branch at an index, clipped to the valid range, applied to the operands."""
    return branches[min(max(int(index), 0), len(branches) - 1)](*operands)


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """`f` applied to each slice of `xs`, with the results stacked."""
    return scan(lambda _, x: (None, f(x)), None, xs)[1]


def stop_gradient(x: Any) -> Any:
    """`x` detached, as a constant in differentiation."""
    return tree_map(lambda leaf: leaf.detach() if isinstance(leaf, Tensor) else leaf, x)


def __getattr__(name: str) -> Any:
    called = name if name in _SAME else _CALLED.get(name)
    found = None if called is None else table.find(called, "jax.lax")
    if found is None:
        raise AttributeError(f"module 'gradcli.jax.lax' has no attribute {name!r}")
    return returning_tensors(found)

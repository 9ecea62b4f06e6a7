"""Derivatives of complex values, and of values by complex inputs.

By a complex input z = a + i*b a value f has two derivatives, Wirtinger's df/dz = (df/da - i*df/db)/2 and
df/dconj(z) = (df/da + i*df/db)/2. Where the second is 0, f is holomorphic, and the first is its derivative f'(z). By a
real input a value u + i*v has the derivative u' + i*v'.

Reverse mode gives for a real u the gradient du/da + i*du/db, from which all of these follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.autograd.ancestors import ancestors, beginning
from gradcli.autograd.node import ANALYTIC_IN, Node
from gradcli.autograd.primitive_node import PrimitiveNode
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.higher_orders import Function, derivatives
from gradcli.errors import DifferentiationError
from gradcli.primitives.entries.arithmetic import add, multiply, subtract, zeros_like
from gradcli.primitives.entries.complex_numbers import conj, from_parts, imag, real
from gradcli.primitives.entries.complex_parts import conjugate

# The derivatives of a real value by leaves, each a gradient or a Jacobian; None by a leaf that it does not depend on.
Differentiate = Callable[[Any, Sequence[Tensor]], Sequence[Any]]


class WirtingerDerivatives(NamedTuple):
    """The derivatives by z and by the conjugate of z."""

    by: Any
    by_conjugate: Any


def non_holomorphic_node(value: Any, leaves: Sequence[Tensor]) -> Node | None:
    """The first operation between complex leaves and a value for which the value is not known to be holomorphic; None
    where it is.

    This decides whether the value is holomorphic wherever the same operations are applied, not only at these leaves. A
    holomorphic function of conjugates is the conjugate of a holomorphic one.
    """
    sources = [leaf for leaf in leaves if arrays.is_complex(leaf.inner)]
    # For each leaf, by its identity, and each node that depends on one: whether it is holomorphic, not the conjugate of
    # what is.
    holomorphic: dict[Any, bool] = {id(leaf): True for leaf in sources}
    conjugated = None
    nodes = ancestors(value, after=beginning(sources))
    noted = {node: _operations(node.metadata[ANALYTIC_IN]) for node in nodes if _is_noted(node)}
    hidden = {n for node, known in noted.items() for n in _between(node, known)}
    for node in reversed(nodes):
        if node in hidden:
            continue
        targets = noted.get(node) or node.targets
        kinds = {holomorphic.get(t if isinstance(t, Node) else id(t)) for t in targets} - {None}
        if not kinds:
            continue
        if node in noted and kinds == {True}:
            holomorphic[node] = True
            continue
        primitive = node.primitive if isinstance(node, PrimitiveNode) else None
        if primitive is conjugate:
            conjugated = node
            holomorphic[node] = not kinds.pop()
        elif primitive is not None and primitive.numbers == "analytic" and len(kinds) == 1:
            holomorphic[node] = bool(kinds.pop())
        else:
            return conjugated if len(kinds) > 1 else node
    last = value.grad_fn if isinstance(value, Tensor) else None
    return None if holomorphic.get(last, True) else conjugated


def _is_noted(node: Node) -> bool:
    return node.attached is not None and ANALYTIC_IN in node.attached.metadata


def _operations(values: Sequence[Any]) -> list[Any]:
    """The nodes of values that operations gave, and the leaves themselves."""
    return [v.grad_fn or v for v in values if isinstance(v, Tensor)]


def _between(node: Node, known: Sequence[Any]) -> list[Node]:
    """The nodes between a node and values that it is known to depend on alone."""
    ends = {n for n in known if isinstance(n, Node)}
    found = ancestors(node, past=lambda n: n not in ends)
    return [n for n in found if n is not node and n not in ends]


def check_holomorphic(value: Any, leaves: Sequence[Tensor]) -> None:
    """Raise DifferentiationError where a value is not known to be holomorphic in complex leaves."""
    node = non_holomorphic_node(value, leaves)
    if node is not None:
        raise DifferentiationError(
            "the derivative of a complex number by a complex one is that of a holomorphic function, and this is not "
            "known to be one",
            hint="differentiate real(…), imag(…) or abs(…) of it",
            span=node.span,
        )


def complex_derivatives(value: Any, leaves: Mapping[str, Tensor], differentiate: Differentiate) -> dict[str, Any]:
    """The derivative of a complex value by each leaf; None where the value does not depend on it.

    The value is holomorphic in complex leaves.
    """
    tensors = [*leaves.values()]
    reals = differentiate(real(value), tensors)
    imaginaries = iter(differentiate(imag(value), [t for t in tensors if not arrays.is_complex(t.inner)]))
    found = {}
    for (name, leaf), u in zip(leaves.items(), reals):
        # By the Cauchy-Riemann equations, u alone determines the derivative by a complex leaf.
        found[name] = None if u is None else conj(u)
        if not arrays.is_complex(leaf.inner):
            found[name] = _joined(u, next(imaginaries))
    return found


def derivative_within_graph(value: Any, leaf: Tensor, differentiate: Differentiate) -> Any:
    """The derivative of a complex value by a leaf, which can be differentiated again; None as in `complex_derivatives`.

    Raises DifferentiationError where the value is not known to be holomorphic.
    """
    check_holomorphic(value, [leaf])
    return complex_derivatives(value, {"": leaf}, differentiate)[""]


def wirtinger_derivatives(
    value: Any, leaves: Mapping[str, Tensor], differentiate: Differentiate
) -> dict[str, WirtingerDerivatives | None]:
    """Wirtinger's derivatives of a value by complex leaves; None where the value does not depend on a leaf."""
    tensors = [*leaves.values()]
    reals = differentiate(real(value), tensors)
    imaginaries = differentiate(imag(value), tensors) if arrays.is_complex(value) else [None] * len(tensors)
    return {name: _wirtinger(u, v) for name, u, v in zip(leaves, reals, imaginaries)}


def _wirtinger(u: Any, v: Any) -> WirtingerDerivatives | None:
    """The derivatives of u + i*v from the gradients of u and v."""
    if u is None and v is None:
        return None
    u, v = _beside(u, v)
    a, b, c, d = real(u), imag(u), real(v), imag(v)
    by = from_parts(_half(add(a, d)), _half(subtract(c, b)))
    return WirtingerDerivatives(by, from_parts(_half(subtract(a, d)), _half(add(b, c))))


def _half(x: Any) -> Any:
    return multiply(x, 0.5)


def _joined(u: Any, v: Any) -> Any:
    """The complex derivative u + i*v, made of its parts so that an infinite one leaves the other."""
    return None if u is None and v is None else from_parts(*_beside(u, v))


def _beside(u: Any, v: Any) -> tuple[Any, Any]:
    """Two derivatives as arrays; where the value does not depend on a leaf in one part, that is 0."""
    return (zeros_like(v) if u is None else u), (zeros_like(u) if v is None else v)


def higher_complex_derivatives(function: Function, leaves: Mapping[str, Any], order: int) -> Mapping[str, Any]:
    """The derivatives of a complex value up to an order, keyed as by `derivatives`.

    The value is holomorphic in complex leaves.
    """
    if len(leaves) == 1 and not any(map(arrays.shape, leaves.values())):
        return derivatives(function, leaves, order)[1]
    reals, imaginaries = (_of_part(part, function, leaves, order) for part in (real, imag))
    return {
        key: None
        if u is None
        else conj(u)
        if arrays.is_complex(leaves[key.partition(",")[0]])
        else _joined(u, imaginaries[key])
        for key, u in reals.items()
    }


def _of_part(
    part: Callable[[Any], Any], function: Function, leaves: Mapping[str, Any], order: int
) -> Mapping[str, Any]:
    return derivatives(lambda given: part(function(given)), leaves, order)[1]


def check_real_leaves(leaves: Mapping[str, Any], order: int) -> None:
    """Raise DifferentiationError for derivatives of order 2 or more of a real value by complex leaves."""
    name = next((name for name, leaf in leaves.items() if arrays.is_complex(leaf)), None)
    if order > 1 and name is not None:
        raise DifferentiationError(
            f"a real value has no second derivative by the complex '{name}' that is a single number",
            hint=f"differentiate by real parts: complex(a, b) in place of {name}",
        )

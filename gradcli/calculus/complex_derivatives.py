"""Derivatives of complex values, and of values by complex inputs.

By a complex input z = a + i*b a value f has two derivatives, Wirtinger's df/dz = (df/da - i*df/db)/2 and
df/dconj(z) = (df/da + i*df/db)/2. Where the second is 0, f is holomorphic, and the first is its derivative f'(z). By a
real input a value u + i*v has the derivative u' + i*v'.

Reverse mode gives for a real u the gradient du/da + i*du/db, from which all of these follow.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.node import ANALYTIC_IN, Node
from gradcli.autograd.primitive_node import PrimitiveNode
from gradcli.autograd.targets import ancestors, beginning
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.first_orders import Function
from gradcli.calculus.higher_orders import derivatives
from gradcli.errors import DifferentiationError
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import concrete
from gradcli.primitives.conversions import permuted
from gradcli.primitives.entries.arithmetic import add, multiply, negative, subtract, zeros_like
from gradcli.primitives.entries.complex_parts import conjugate, from_parts
from gradcli.primitives.entries.elementwise.complex_numbers import conj, imag, real

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
        if node in noted and len(kinds) == 1:
            holomorphic[node] = bool(kinds.pop())
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
    kinds = {name: _kind(value, leaf) for name, leaf in leaves.items()}
    tensors = [*leaves.values()]
    reals = differentiate(real(value), tensors)
    if all(kinds.values()) or not arrays.is_complex(value):
        imaginaries: Sequence[Any] = [None] * len(tensors)
    else:
        imaginaries = differentiate(imag(value), tensors)
    return {
        name: _of_kind(u, kind) if kind else _wirtinger(u, v)
        for (name, kind), u, v in zip(kinds.items(), reals, imaginaries)
    }


_HOLOMORPHIC, _OF_CONJUGATE = "holomorphic", "holomorphic in the conjugate"


def _kind(value: Any, leaf: Tensor) -> str | None:
    """The kind of dependence on a complex leaf that makes one of two derivatives 0; None if neither is known to be 0."""
    if non_holomorphic_node(value, [leaf]) is None:
        return _HOLOMORPHIC
    return _OF_CONJUGATE if non_holomorphic_node(conj(value), [leaf]) is None else None


def _of_kind(u: Any, kind: str) -> WirtingerDerivatives | None:
    """The derivatives of u + i*v from the gradient of u, by the Cauchy-Riemann equations."""
    if u is None:
        return None
    nothing = zeros_like(u)
    return WirtingerDerivatives(conj(u), nothing) if kind == _HOLOMORPHIC else WirtingerDerivatives(nothing, u)


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
            hint=f"write complex(a, b) in place of {name}; gradcli eval has the derivatives by real({name}) and "
            f"imag({name}) itself",
        )


# --- derivatives of higher order by parts, and by conjugates


def names_of_parts(name: str) -> tuple[str, str]:
    """The names of the parts of a complex input. No program can use them, because of the parentheses."""
    return f"real({name})", f"imag({name})"


class FunctionOfParts(NamedTuple):
    """A function of leaves as one of the real and imaginary parts of those that are complex.

    `leaves` are the arrays by name, with the parts in place of complex ones; `parts` are the names of these by the name
    of each original leaf, a single one for a real leaf.
    """

    function: Function
    leaves: Mapping[str, Any]
    parts: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, function: Function, leaves: Mapping[str, Any]) -> FunctionOfParts:
        parts = {n: names_of_parts(n) if arrays.is_complex(leaf) else (n,) for n, leaf in leaves.items()}
        apart: dict[str, Any] = {}
        for name, leaf in leaves.items():
            both = [concrete(real(leaf)), concrete(imag(leaf))] if len(parts[name]) > 1 else [leaf]
            apart |= zip(parts[name], both)

        def of_parts(given: Mapping[str, Any]) -> Any:
            inputs = {}
            for name, own in parts.items():
                if any(part in given for part in own):
                    numbers = [given.get(part, apart[part]) for part in own]
                    inputs[name] = from_parts(*numbers) if len(own) > 1 else numbers[0]
            return function(inputs)

        return cls(of_parts, apart, parts)


def higher_wirtinger_derivatives(
    function: Function, value: Any, leaves: Mapping[str, Tensor], order: int
) -> dict[str, Any]:
    """The derivatives of order 2 up to `order` of a value by complex leaves and their conjugates, and by real leaves.

    They are keyed like those of `derivatives`, by `z` and `conj(z)`; None where the value does not depend on a leaf.
    Each is a sum of derivatives by real and imaginary parts.
    """
    given = FunctionOfParts.of(function, {name: leaf.inner for name, leaf in leaves.items()})
    sides = [real, imag] if arrays.is_complex(value) else [real]
    found = [_RealDerivatives(given, _of_part(side, given.function, given.leaves, order)) for side in sides]
    slots = [slot for name, leaf in leaves.items() for slot in _slots(name, given.parts[name], value, leaf)]
    return {
        ",".join(slot.label for slot in chosen): _sum_of_parts(found, chosen)
        for n in range(2, order + 1)
        for chosen in itertools.combinations_with_replacement(slots, n)
    }


class _Slot(NamedTuple):
    """A variable to differentiate by, as a sum of real ones: each by its name, and by the quarter turns that its
    derivative is multiplied by. `part` is one of those that it consists of. With `halved`, half of the sum counts."""

    label: str
    part: str
    terms: Sequence[tuple[str, int]]
    halved: bool = False


def _slots(name: str, parts: Sequence[str], value: Any, leaf: Tensor) -> list[_Slot]:
    if len(parts) == 1:
        return [_Slot(name, name, [(name, 0)])]
    a, b = parts
    by = {_HOLOMORPHIC: ([(a, 0)], []), _OF_CONJUGATE: ([], [(a, 0)])}.get(_kind(value, leaf) or "")
    if by is not None:
        return [_Slot(name, a, by[0]), _Slot(f"conj({name})", a, by[1])]
    return [_Slot(name, a, [(a, 0), (b, 3)], True), _Slot(f"conj({name})", a, [(a, 0), (b, 1)], True)]


class _RealDerivatives(NamedTuple):
    """The derivatives of a real function of parts, each mixed one once."""

    given: FunctionOfParts
    found: Mapping[str, Any]

    def by(self, names: Sequence[str]) -> Any:
        """The derivative by names in any order, whose axes are in that order."""
        position = {name: k for k, name in enumerate(self.given.leaves)}
        places = sorted(range(len(names)), key=lambda k: position[names[k]])
        tensor = self.found[",".join(names[k] for k in places)]
        ranks = [len(arrays.shape(self.given.leaves[names[k]])) for k in places]
        if tensor is None or not any(ranks) or places == sorted(places):
            return tensor
        starts = itertools.accumulate(ranks, initial=0)
        axes = {place: range(start, start + rank) for place, start, rank in zip(places, starts, ranks)}
        return permuted(tensor, tuple(axis for k in range(len(names)) for axis in axes[k]))


def _sum_of_parts(found: Sequence[_RealDerivatives], chosen: Sequence[_Slot]) -> Any:
    """A derivative of the value whose real part, and imaginary part if it has one, have the derivatives `found`."""
    # The real part and the imaginary part of the sum.
    totals: list[Any] = [None, None]
    for terms in itertools.product(*(slot.terms for slot in chosen)):
        turns = sum(n for _, n in terms)
        for k, side in enumerate(found, turns):
            term = side.by([name for name, _ in terms])
            if term is not None:
                term = negative(term) if k % 4 > 1 else term
                totals[k % 2] = term if totals[k % 2] is None else add(totals[k % 2], term)
    if all(total is None for total in totals):
        some = (side.by([slot.part for slot in chosen]) for side in found)
        totals[0] = next((zeros_like(term) for term in some if term is not None), None)
        if totals[0] is None:
            return None
    if len(found) == 1 and all(slot.part == slot.label for slot in chosen):
        return totals[0]
    return multiply(from_parts(*_beside(*totals)), 0.5 ** sum(slot.halved for slot in chosen))

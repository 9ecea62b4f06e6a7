"""Forward-mode differentiation by dual numbers: tensors that carry a tangent.

A tangent is a tensor with its own place in the graph, and views share memory with the tangent of their base. An
operation on duals first runs on the primals, and then on the series of order 1 formed by the primals and tangents: the
jet rules of primitives, with tensors as coefficients, give the tangent of the result.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar

from gradcli import arrays
from gradcli.autograd.modes import grad_enabled, inference
from gradcli.autograd.node import recorders
from gradcli.autograd.primitive_node import PrimitiveNode
from gradcli.autograd.tensor import Tensor
from gradcli.autograd.views import StoragePlace, place_of
from gradcli.errors import DifferentiationError, MissingRuleError
from gradcli.kinds.jets import Jet
from gradcli.kinds.levels import DUAL, PAIR
from gradcli.primitives import strides
from gradcli.primitives.bind import Kind
from gradcli.primitives.conversions import cast
from gradcli.primitives.entries.arithmetic import identity, zeros_like
from gradcli.primitives.entries.reductions import sum_
from gradcli.primitives.families import elementwise
from gradcli.primitives.jet_rules import linear
from gradcli.primitives.operation import Operation
from gradcli.primitives.primitive import Primitive

_NO_PARAMS: Mapping[str, Any] = {}


class Level:
    """The lifetime of tangents: at its end, all duals created in it lose their tangents."""

    def __init__(self) -> None:
        self._known: list[weakref.ref[Dual]] = []
        self._most = 64

    def join(self, dual: Dual) -> None:
        self._known.append(weakref.ref(dual))
        if len(self._known) > self._most:
            self._known = [known for known in self._known if known() is not None]
            self._most = 64 + 2 * len(self._known)

    def end(self) -> None:
        for reference in self._known:
            dual = reference()
            if isinstance(dual, Dual):
                dual._drop_tangent()


# Both are context variables, so that each thread and task has its own.
current_level: ContextVar[Level | None] = ContextVar("gradcli_forward_level", default=None)
forward_enabled: ContextVar[bool] = ContextVar("gradcli_forward_enabled", default=True)


def gives_tangents() -> bool:
    """Return whether operations on duals produce tangents here.

    They do not in a thread or task without a level, nor in `inference_mode`.
    """
    return current_level.get() is not None and forward_enabled.get() and not inference.get()


alias = elementwise(
    "alias", "x", "x, as a tensor of its own in the graph that shares its memory",
    numbers="analytic",
    internal=True, rounds_alike=True, keeps_integers=True, truths=True, jet=linear,
    forward=lambda _xp, x: x,
    vjp=(lambda g, _y, _x: g,),
    strides=lambda layout: layout,
    derivative="g",
)  # fmt: skip


class DualSeries(Jet):
    """A tensor and its tangent as a series of order 1, for the jet rules."""

    __slots__ = ()
    level = PAIR


class Dual(Tensor):
    """A tensor with a tangent, until its level ends; then it becomes a plain tensor again.

    The class attribute `plain` is the corresponding class without a tangent.
    """

    __slots__ = ()
    level = DUAL
    dual = True
    fuses = False
    plain: ClassVar[type[Tensor]] = Tensor

    @staticmethod
    def read(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        mask = primitive.differentiable(len(operands))
        varied = [isinstance(o, Dual) and mask >> i & 1 for i, o in enumerate(operands)]
        if not any(varied) or not gives_tangents():
            return Tensor.read(primitive, operands, params)
        known = recorders.set(())
        try:
            made = Tensor.read(primitive, operands, params)
        finally:
            recorders.reset(known)
        tangent = _tangent_of_result(primitive, made, operands, varied, params)
        node = made._node
        if isinstance(node, PrimitiveNode):
            if node.result is made.inner:
                # The result that backward uses has a tangent too, so that gradients have tangents.
                node.result = with_tangent(Tensor(made.inner), tangent)
            # The recorders run only now, because some of them replace the saved tensors.
            for record in recorders.get():
                record(node, made.inner)
        return with_tangent(made, tangent)

    @property
    def tangent(self) -> Tensor:
        found: Tensor = self._tangent
        return found

    @property
    def parts(self) -> tuple[Any, ...]:
        return self.inner, self._tangent

    def _primal(self) -> Tensor:
        """The tensor without its tangent, for the computation of primals."""
        if self._leaf_requires_grad and self._node is None:
            made: Tensor = Tensor.read(identity, (self,), _NO_PARAMS)
            return made
        return Tensor(self.inner, self._node, self.output_nr)

    def _drop_tangent(self) -> None:
        del self._tangent
        self.__class__ = self.plain  # type: ignore[assignment]

    def detach_(self) -> Any:
        super().detach_()
        self._drop_tangent()
        return self

    def _without_graph(self) -> Tensor:
        return with_tangent(Tensor(self.inner), _as_it_is(self._tangent))

    def _as_output(self, node: Any, number: int) -> Tensor:
        """A dual that was saved outside of the graph, as output `number` of `node` again."""
        return with_tangent(Tensor(self.inner, node, number), self._tangent)

    # --- in-place operations: the tangent changes in place too

    def _before_change(self, given: Sequence[Any]) -> Tensor:
        # The tangent of the result depends on the tangent before the change.
        return with_tangent(super()._before_change(given), _as_it_is(self._tangent))

    def _become(self, result: Any) -> Any:
        tangent = result._tangent if isinstance(result, Dual) else None
        super()._become(result._primal() if tangent is not None else result)
        if not gives_tangents():
            return self
        if tangent is None:
            self._tangent.zero_()
        elif tangent is not self._tangent:
            self._tangent.copy_(tangent)
        return self

    def _see_otherwise(self, operation: Operation, *arguments: Any, **params: Any) -> Any:
        super()._see_otherwise(operation, *arguments, **params)
        self._tangent._see_otherwise(operation, *arguments, **params)
        return self

    def _write_dual_to(self, target: Tensor) -> None:
        target._become(self._primal())
        if gives_tangents():
            give_tangent(target, self._tangent)

    def made_as_view(self, operand: Any, primitive: Primitive, params: Mapping[str, Any]) -> None:
        super().made_as_view(operand, primitive, params)
        self._tangent.made_as_view(operand._tangent, primitive, params)

    def made_together(self, number: int, node_name: str) -> None:
        super().made_together(number, node_name)
        self._tangent.made_together(number, node_name)

    # --- copies and texts

    def __getstate__(self) -> Any:
        attributes, slots = super().__getstate__()
        del slots["_tangent"]
        return attributes, slots

    def __reduce_ex__(self, _protocol: Any) -> Any:
        """Pickle and deep-copy without the tangent."""
        # Protocol 2 and later require the class of the object itself.
        reduced: Any = super().__reduce_ex__(0)
        made, (_, *arguments), state = reduced
        return made, (self.plain, *arguments), state

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, tangent={self._tangent!r})"


def _as_it_is(tangent: Tensor) -> Tensor:
    """A tangent as a separate tensor, which later in-place changes do not affect.

    A leaf that requires grad is returned itself, because in-place changes of it are refused.
    """
    leaf = tangent.is_leaf and tangent.requires_grad
    return tangent if leaf else Tensor(tangent.inner, tangent._node, tangent.output_nr)


@functools.cache
def _dual_class(plain: type[Tensor]) -> type[Dual]:
    if plain is Tensor:
        return Dual
    return type(plain.__name__, (plain, Dual), {"__slots__": (), "plain": plain})


def with_tangent(tensor: Tensor, tangent: Tensor) -> Tensor:
    """`tensor` itself, with a new tangent from now on; unchanged outside of a level."""
    if not isinstance(tensor, Dual):
        level = current_level.get()
        if level is None:
            return tensor
        tensor.__class__ = _dual_class(type(tensor))  # type: ignore[arg-type]
        level.join(tensor)  # type: ignore[arg-type]
    tensor._tangent = tangent
    return tensor


def _tangent_of_result(
    primitive: Primitive, made: Tensor, operands: Sequence[Any], varied: Sequence[Any], params: Mapping[str, Any]
) -> Tensor:
    result = DualSeries([Tensor(made.inner, made._node, made.output_nr)], 1)
    series = []
    for operand, varies in zip(operands, varied):
        value = operand._primal() if isinstance(operand, Dual) else operand
        series.append(DualSeries([value, operand._tangent], 1) if varies else result.lift(value))
    try:
        result.begin(primitive.jet(primitive, result, *series, **params))
        tangent: Any = result.coefficient(1)
    except NotImplementedError as error:
        raise MissingRuleError(
            f"Trying to use forward AD with {primitive.called} that does not support it: {error}"
        ) from error
    if tangent is None:
        tangent = result.zeros()
    if arrays.is_complex(made.inner) and not arrays.is_complex(tangent):
        # The sum of a complex and a real number has a real tangent along the real one.
        tangent = cast(tangent, made.dtype)
    if primitive.strides is None and (
        tangent.place is not None or any(isinstance(o, Dual) and tangent is o._tangent for o in operands)
    ):
        # The tangent of a result that is not a view must not be a view either.
        tangent = tangent.clone()
    made_tangent: Tensor = tangent
    return made_tangent


# --- what shares memory


def give_tangent(target: Tensor, tangent: Tensor) -> None:
    """Give a tensor that was changed in place a tangent equal to `tangent`.

    The tangent of a view is a part of the tangent of its base, which is 0 elsewhere; all views of the base get one with
    it.
    """
    base = None if target.place is None else base_of_tangent(target.place)
    if base is None:
        base = with_tangent(target, with_layout_of(tangent, target, copy=True))
    else:
        with_tangent(base, with_layout_of(_zeros(base.inner, tangent), base))
    if base.place is not None:
        for other in base.place.storage.sharing():
            if base_of_tangent(other.place) is base:
                with_tangent(other, other.place.applied_to(base._tangent, base.place))
    if base is not target:
        target._tangent.copy_(tangent)


def base_of_tangent(place: StoragePlace) -> Tensor | None:
    """The tensor whose tangent contains the tangent of a tensor at `place`; None if that has a separate tangent."""
    if place.base is None or hasattr(place, "bearer"):
        return None
    above: StoragePlace | None = place.parent
    while above is not None and above is not place.origin:
        if hasattr(above, "bearer"):
            found: Tensor | None = above.bearer()
            return found
        above = above.parent
    base: Tensor | None = place.viewed
    return base


def check_size(tangent: Tensor, primal: Tensor) -> None:
    """Raise DifferentiationError if a tangent has another shape than its primal."""
    if tangent.shape != primal.shape:
        raise DifferentiationError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(primal.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )


def with_layout_of(tangent: Tensor, primal: Tensor, copy: bool = False) -> Tensor:
    """`tangent` with the memory layout of `primal`: itself if the layouts agree and no `copy` is asked for."""
    if _memory(tangent) == _memory(primal):
        return tangent.clone() if copy else tangent
    place = place_of(primal)
    if strides.overlaps(place.layout()):
        return tangent.clone()
    made: Tensor = place.applied_to(_zeros(place.storage.numbers, tangent)).copy_(tangent)
    return made


def _zeros(numbers: Any, tangent: Tensor) -> Tensor:
    """Zeros in the shape of `numbers`, batched as `tangent` is."""
    made: Tensor = zeros_like(Tensor(numbers))
    return made + zeros_like(sum_(Tensor(tangent.inner))) if isinstance(tangent.inner, Kind) else made


def _memory(x: Tensor) -> Any:
    """The layout of the elements in the storage, and the size of the storage."""
    if x.place is None:
        return strides.contiguous(x.shape), x.size
    return x.place.layout(), arrays.size(x.place.storage.numbers)


def primal_alias(x: Tensor) -> Tensor:
    """A tensor with the memory and graph of `x`, but with a tangent separate from that of `x`."""
    made: Tensor = Tensor.read(alias, (x,), _NO_PARAMS) if grad_enabled.get() else x.detach()
    place_of(made).bearer = weakref.ref(made)
    return made

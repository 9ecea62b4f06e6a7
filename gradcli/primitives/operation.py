"""What is known about every function of the language, and those that are written in others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gradcli.primitives.bind import Kind
from gradcli.primitives.refusals import FOREIGN, refuse
from gradcli.primitives.signature import SEQUENCES, parse_signature, with_arrays, with_own_names


class Operation:
    """A function of the language.

    `signature` is its parameters as a user writes them, which `parameters` are read from, `doc` one line
    of what it computes, `derivative` the derivative as a formula, `domain` where it is defined, `edges` what holds by
    convention where the formula does not say, `aliases` its other names, `samples` argument
    tuples at which tests examine it: interior points of the domain where it is smooth. `example`
    is the words of a `gradcli eval` that shows it, where the first sample does not. `subject` is the
    heading under which it is listed, where that is not the one of its file; `dialects` names those whose meaning of the
    name it is, where that is not the meaning of the name alone; an `internal` one is no
    function of the language, but what others are written in, or what the one of that name is: it is
    `called` so in errors.
    """

    __slots__ = (
        "_names",
        "_required",
        "aliases",
        "called",
        "derivative",
        "dialects",
        "doc",
        "domain",
        "edges",
        "example",
        "internal",
        "name",
        "parameters",
        "samples",
        "signature",
        "subject",
    )

    def __init__(
        self,
        name: str,
        signature: str,
        doc: str,
        *,
        derivative: str,
        domain: str = "everywhere",
        edges: Sequence[str] = (),
        aliases: Sequence[str] = (),
        samples: Sequence[Any] = (),
        example: str | None = None,
        subject: str | None = None,
        internal: bool | str = False,
        dialects: str = "",
    ) -> None:
        self.name = name
        self.dialects = dialects
        self.signature = signature
        self.parameters = parse_signature(signature)
        self._names = frozenset(p.name for p in self.parameters)
        self._required = sum(p.default is None and not p.variadic for p in self.parameters)
        self.doc = doc
        self.derivative = derivative
        self.domain = domain
        self.edges = tuple(edges)
        self.aliases = tuple(aliases)
        self.samples = tuple(samples)
        self.example = example
        self.subject = subject
        self.internal = bool(internal)
        self.called = internal if isinstance(internal, str) else name

    @property
    def __name__(self) -> str:
        """As of a function of Python's, which what wraps one asks for."""
        return self.name

    def __call__(self, *operands: Any, **params: Any) -> Any:
        raise NotImplementedError

    def _placed(self, operands: tuple[Any, ...], params: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A call with the keywords of other libraries as those that they are here, and those of required arguments
        in their places."""
        params = with_own_names(params, self.parameters)
        for parameter in self.parameters[len(operands) :]:
            if parameter.default is not None or parameter.name not in params:
                break
            operands = (*operands, params.pop(parameter.name))
        return operands, params

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}({self.signature})>"


class Composite(Operation):
    """A function written in other functions of the language; its derivatives follow from theirs.

    `node_name` is what the last node that it makes in the graph is called, where PyTorch has one node for all of it, or a
    function of the operands that says so, and
    `gradient_name` what the node of its gradient by the first operand is, where that is constant and PyTorch has it in
    the graph of the operand all the same.
    """

    __slots__ = ("definition", "gradient_name", "node_name")

    def __init__(
        self,
        name: str,
        signature: str,
        doc: str,
        definition: Callable[..., Any],
        *,
        node_name: str | Callable[..., str | None] | None = None,
        gradient_name: str | None = None,
        **known: Any,
    ) -> None:
        super().__init__(name, signature, doc, **known)
        self.definition = definition
        self.node_name = node_name
        self.gradient_name = gradient_name

    def __call__(self, *operands: Any, **params: Any) -> Any:
        # As a primitive has it: one call more would be a twentieth of the time of an operation on numbers.
        try:
            if params and (len(operands) < self._required or not self._names.issuperset(params)):
                if isinstance(params.get("out"), Kind):
                    return params.pop("out").take_result(self.name, operands, partial(self, *operands, **params))
                operands, params = self._placed(operands, params)
            for operand in operands:
                if type(operand) in SEQUENCES:
                    operands = with_arrays(self.parameters, operands)
                    break
            result = self.definition(*operands, **params)
            if self.node_name is not None and isinstance(result, Kind):
                self._name_node(result, operands)
            return result
        except FOREIGN as error:
            refuse(self.name, operands, params, error)
            raise

    def _name_node(self, result: Kind, operands: Sequence[Any]) -> None:
        for operand in operands:
            if operand is result:
                # It was made elsewhere.
                return
        name = self.node_name
        if name is not None and not isinstance(name, str):
            name = name(*operands)
        if name is not None:
            result.made_by(name, self.gradient_name, operands[0])

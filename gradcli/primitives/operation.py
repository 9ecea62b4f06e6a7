"""The properties that every function of the language has, and functions composed of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from gradcli.primitives.argument_errors import FOREIGN, refuse
from gradcli.primitives.bind import Kind
from gradcli.primitives.signature import (
    SEQUENCES,
    lists_to_arrays,
    names_and_required,
    parse_signature,
    resolve_keywords,
)
from gradcli.type_hints import Any


class Operation:
    """A function of the language.

    signature
        its parameters as a user writes them; `parameters` is parsed from it
    doc
        one line that says what it computes
    derivative
        the derivative as a formula
    domain
        where it is defined
    edges
        values by convention at points where the formula does not apply
    aliases
        its other names
    samples
        argument tuples at which tests check it: interior points of the domain where it is smooth
    example
        the arguments of a `gradcli eval` that demonstrates it, where the first sample does not
    subject
        the heading under which it is listed, where it differs from that of its file
    dialects
        the libraries in whose meaning the name stands for this function, where the plain name means another
    internal
        whether it is not in the language but implements other functions; a string is its name in errors (`called`)
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
        self._names, self._required = names_and_required(self.parameters)
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
        """The name, as of a Python function, for wrappers such as functools.wraps."""
        return self.name

    def __call__(self, *operands: Any, **params: Any) -> Any:
        raise NotImplementedError

    def _placed(self, operands: tuple[Any, ...], params: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Map the keywords of a call, which may be those of other libraries, to the function's own, and required
        arguments to positions."""
        params = resolve_keywords(params, self.parameters)
        for parameter in self.parameters[len(operands) :]:
            if parameter.default is not None or parameter.name not in params:
                break
            operands = (*operands, params.pop(parameter.name))
        return operands, params

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}({self.signature})>"


class Composite(Operation):
    """A function composed of other functions of the language, from which its derivatives follow.

    node_name
        the name of the last graph node, where PyTorch has one node for the whole function; or a function of the
        operands that returns it
    gradient_name
        the name of the node of the gradient by the first operand, where that gradient is constant but PyTorch keeps it
        in the graph of the operand
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
        # Duplicates Primitive.__call__: a shared helper would add 5 % to the time of an operation on numbers.
        try:
            if params and (len(operands) < self._required or not self._names.issuperset(params)):
                if isinstance(params.get("out"), Kind):
                    return params.pop("out").take_result(self.name, operands, partial(self, *operands, **params))
                operands, params = self._placed(operands, params)
            for operand in operands:
                if type(operand) in SEQUENCES:
                    operands = lists_to_arrays(self.parameters, operands)
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
                # The operand itself was returned; its node belongs to another function.
                return
        name = self.node_name
        if name is not None and not isinstance(name, str):
            name = name(*operands)
        if name is not None:
            result.made_by(name, self.gradient_name, operands[0])

"""The entries of functions with a derivative rule of their own: all that is known about each, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NoReturn

from gradcli.arrays import floats, spellings
from gradcli.arrays.shapes import Shape
from gradcli.arrays.spellings import Spelling
from gradcli.errors import CallError, MissingRuleError
from gradcli.primitives.bind import Kind, bind
from gradcli.primitives.elements import broadcast_elements, largest_operand
from gradcli.primitives.needs import Needs
from gradcli.primitives.node_name import NodeName
from gradcli.primitives.operation import Operation
from gradcli.primitives.refusals import FOREIGN, refuse
from gradcli.primitives.signature import SEQUENCES, used_parameters, with_arrays
from gradcli.primitives.strides import Layout, always
from gradcli.primitives.surcharges import of_one

Vjp = Callable[..., Any] | None
Prepared = tuple[Sequence[Any], Mapping[str, Any]]

_NO_PARAMS: Mapping[str, Any] = {}


def spelled(same: str = "", **other: str) -> Mapping[str, str]:
    """What a function is called elsewhere: `same` are the libraries and languages that have it under its own
    name, and for `other`s their names, as in `spelled("c sql", numpy="arcsin")`."""
    return {**dict.fromkeys(same.split(), ""), **other}


class NotImplementedRule:
    """A rule that is missing on purpose; using it raises MissingRuleError with the reason."""

    def __init__(self, why: str) -> None:
        self.why = why

    def __call__(self, *_operands: Any, **_params: Any) -> NoReturn:
        raise MissingRuleError(self.why, hint="--wrt names the inputs to differentiate by")


def not_implemented(why: str) -> NotImplementedRule:
    return NotImplementedRule(why)


class Primitive(Operation):
    """A function with a derivative rule of its own.

    forward(xp, *arrays, **params)
        the numbers, in an array namespace; a list where there are several outputs. A name stands
        for the namespace's function of that name, and nothing for that of the entry's own name;
        `function` is that name then, and else None. `of_floats` is what it is for plain numbers
    vjp
        one rule per operand: `rule(g, y, *operands, **params)` is the cotangent of that operand,
        written in primitives; None for an operand that has no derivative. A parameter of a rule
        whose name starts with an underscore is not used and not saved for backward, but its
        shape is known. A single rule `rule(i, g, y, *operands, **params)` where `variadic`.
    jet
        the rule for truncated Taylor series, `rule(primitive, y, *operands, **params)`: a generator
        of the coefficients of the result y, see `gradcli.primitives.series`
    batch
        the rule for one more leading axis, see `gradcli.primitives.batching`
    prepare(*arguments)
        operands and params from the arguments of a call, where they are not simply the operands
    spelling
        what it is called elsewhere, as `spelled` says it. For languages and libraries whose functions
        cannot be looked up (c, sql, sympy, latex, cuda, and scipy, which is loaded late) the name says
        that they have it. For the array libraries (numpy, torch, jax, cupy, standard) it is there where it is not
        the name of the entry; NumPy has every `function` that is not from SciPy
    fallback(xp, *arrays, **params)
        the numbers where the library of the namespace lacks the function, in others that it has
    operator
        the operator that calls it in Python's syntax
    keeps_integers
        whether it gives whole numbers for whole numbers, which else become floats
    truths
        whether truth values are operands as they are; else they count as the numbers 0 and 1
    elementwise
        whether the result at an index depends on the operands at that index alone
    selects
        whether the result is made of some of the operands' elements, so that a zero in a
        cotangent may mean "not taken" (see `gradcli.autograd.selection`)
    piecewise
        whether it is a number, an operand or infinite over a whole range of its operands and something else beyond,
        where it neither selects nor has truth values
    parity
        "odd" where f(-x) is -f(x), "even" where it is f(x)
    commutative
        whether the operands may be exchanged without changing any number
    rounds_alike
        whether it gives the same bits for a number as for each element of an array
    moves
        whether each element of the result is an element of an operand or 0, whatever the elements are
    reduces
        the function of two elements that joins all those along the axes
    multilinear
        whether the result is a sum of products of one element of each operand
    reach(taken, **params)
        which elements of the operand have an influence on the elements of the result in the mask
        `taken`, as a mask broadcast to the operand; None where all of them may have
    smooth(*arrays, **params)
        whether the function is differentiable at this point; None where it is on its whole domain
    nan_at_kinks
        whether its derivatives are nan where it is not differentiable; else they are those of a convention
    elements(shapes, params)
        how many elements the result has; where the work is more, that in the time of an element,
        see `gradcli.primitives.elements`
    fails
        whether it is an error for some numbers, whatever becomes of its result
    view(x, **params)
        whether NumPy gives its array `x` back, or a view of it, which takes no time and no memory for its elements;
        None where it never does, and where the view has more elements than `x`
    strides(layout, **params)
        where the elements of the result lie in memory, see `gradcli.primitives.strides`, where it is a view of the
        operand as PyTorch has it, which is changed in place with it; None where it never is one
    shares(layout, **params)
        whether it is one; `layout()` is that of the operand, and `layout` None where its elements lie row by row
    time
        that of one element, where it is much more than that of a sum or a sine; they are charged as so many
    surcharge(*arrays, **params)
        how many elements take the time that NumPy needs beyond that, for numbers like these
    node_name
        what its node in the graph is called, or a function of (operands, params) that says so
    gradient_name
        what the node of its gradient is called in a graph of gradients, where PyTorch has a function for that, or a
        function of the params that says so; where it `selects`, or gives the cotangent as it is, that is a function of
        its first operand too, and has the derivative 0
    """

    __slots__ = (
        "_arity",
        "_differentiable",
        "_uses",
        "batch",
        "commutative",
        "elements",
        "elementwise",
        "fails",
        "forward",
        "function",
        "gradient_name",
        "jet",
        "moves",
        "multilinear",
        "nan_at_kinks",
        "needs",
        "node_name",
        "of_floats",
        "operator",
        "parity",
        "piecewise",
        "prepare",
        "reach",
        "reduces",
        "rounds_alike",
        "selects",
        "shares",
        "smooth",
        "spelling",
        "strides",
        "surcharge",
        "time",
        "truths",
        "variadic",
        "view",
        "vjp",
    )

    def __init__(
        self,
        name: str,
        signature: str,
        doc: str,
        *,
        forward: Callable[..., Any] | str | None = None,
        vjp: tuple[Vjp, ...] | Callable[..., Any] | None,
        jet: Callable[..., Any],
        batch: Callable[..., Any],
        prepare: Callable[..., Prepared] | None = None,
        spelling: Mapping[str, str] = _NO_PARAMS,
        fallback: Callable[..., Any] | None = None,
        operator: str | None = None,
        keeps_integers: bool = False,
        truths: bool = False,
        elementwise: bool = False,
        selects: bool = False,
        piecewise: bool = False,
        parity: Literal["odd", "even"] | None = None,
        commutative: bool = False,
        rounds_alike: bool = False,
        moves: bool = False,
        reduces: Primitive | None = None,
        multilinear: bool = False,
        reach: Callable[..., Any] | None = None,
        variadic: bool = False,
        smooth: Callable[..., bool] | None = None,
        nan_at_kinks: bool = False,
        elements: Callable[[Sequence[Shape], Mapping[str, Any]], int] | None = None,
        fails: bool = False,
        view: Callable[..., bool] | None = None,
        strides: Callable[..., Layout | None] | None = None,
        shares: Callable[..., bool] = always,
        time: int = 1,
        surcharge: Callable[..., int] | None = None,
        node_name: str | Callable[[Sequence[Any], Mapping[str, Any]], NodeName] | None = None,
        gradient_name: str | Callable[..., str | None] | None = None,
        **known: Any,
    ) -> None:
        super().__init__(name, signature, doc, **known)
        self._arity = len(self.parameters)
        self.function = None if callable(forward) else forward or name
        self.forward = forward if callable(forward) else _of_namespace(forward or name, self._arity, elementwise)
        self.of_floats = vars(floats).get(self.function or "") or partial(self.forward, floats)
        if surcharge is not None:
            self.of_floats = of_one(self.of_floats, time, surcharge)
        self.vjp = vjp
        self.jet = jet
        self.batch = batch
        self.prepare = prepare
        self.spelling = {library: other or name for library, other in spelling.items()}
        if self.function is not None and "scipy" not in spelling:
            self.spelling.setdefault("numpy", self.function)
        self.operator = operator
        self.truths = truths
        predicate = truths and vjp is None
        between = operator if self._arity == 2 else None
        spellings.declare(name, Spelling(self.spelling, elementwise, keeps_integers, predicate, between, fallback))
        self.elementwise = elementwise
        self.selects = selects
        self.piecewise = piecewise
        self.parity = parity
        self.commutative = commutative
        self.rounds_alike = rounds_alike
        self.moves = moves
        self.reduces = reduces
        self.multilinear = multilinear
        self.reach = reach
        self.variadic = variadic
        self.smooth = smooth
        self.nan_at_kinks = nan_at_kinks
        self.elements = elements or (broadcast_elements if elementwise else largest_operand)
        self.fails = fails
        self.view = view
        self.strides = strides
        self.shares = shares
        self.time = time
        self.surcharge = surcharge
        if not callable(node_name):
            node_name = NodeName(node_name or "".join(word.capitalize() for word in name.split("_")) + "Backward0")
        self.node_name = node_name
        self.gradient_name = gradient_name
        rules = (vjp,) if callable(vjp) else vjp or ()
        self._uses = tuple(used_parameters(rule, 2 if variadic else 1) for rule in rules)
        self._differentiable = sum(1 << i for i, rule in enumerate(rules) if rule is not None)
        self.needs: dict[int, Needs] = {}

    def __call__(self, *operands: Any, **params: Any) -> Any:
        try:
            if params and (len(operands) < self._required or not self._names.issuperset(params)):
                if isinstance(params.get("out"), Kind):
                    return params.pop("out").take_result(self.name, operands, partial(self, *operands, **params))
                operands, params = self._placed(operands, params)
            if self.prepare is not None:
                for operand in operands:
                    if type(operand) in SEQUENCES:
                        operands = with_arrays(self.parameters, operands)
                        break
                operands, params = self.prepare(*operands, **params)  # type: ignore[assignment]
            elif params or len(operands) != self._arity:
                raise CallError(f"{self.name}({self.signature}) needs each of its operands once")
            return bind(self, operands, params or _NO_PARAMS)
        except FOREIGN as error:
            refuse(self.name, operands, params, error)
            raise

    def rule(self, i: int) -> Any:
        """The rule for operand `i`, called as rule(g, y, *operands, **params)."""
        if self.variadic:
            rule = self.vjp
            assert callable(rule)
            return lambda *arguments, **params: rule(i, *arguments, **params)
        return self.vjp[i] if isinstance(self.vjp, tuple) else None

    def differentiable(self, count: int) -> int:
        """A bit mask of the operands, of `count`, that have a rule."""
        if self.variadic:
            return (1 << count) - 1
        return self._differentiable

    def find_needs(self, wanted: int) -> Needs:
        """What backward needs to differentiate by the operands in the bit mask `wanted`, in which a bit more stands for
        the end."""
        ruled = self.differentiable(wanted.bit_length() - 1)
        found = self.needs[wanted] = Needs(wanted, ruled, self._uses, self.variadic, self.smooth is not None)
        return found


def _of_namespace(name: str, operands: int, elementwise: bool) -> Callable[..., Any]:
    """A namespace's function of this name, as fast as a lambda that says it where the operands are a few and all."""
    if elementwise and operands == 1:
        return lambda xp, x: getattr(xp, name)(x)
    if elementwise and operands == 2:
        return lambda xp, x, y: getattr(xp, name)(x, y)
    if elementwise and operands == 3:
        return lambda xp, x, y, z: getattr(xp, name)(x, y, z)
    return lambda xp, *operands, **params: getattr(xp, name)(*operands, **params)

"""Primitives: functions with their own derivative rules, and all that is known about each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from gradcli.arrays import floats, spellings
from gradcli.arrays.shapes import Shape
from gradcli.arrays.spellings import Spelling
from gradcli.errors import CallError, MissingRuleError
from gradcli.primitives.argument_errors import FOREIGN, refuse
from gradcli.primitives.bind import Kind, bind
from gradcli.primitives.costs import broadcast_elements, largest_operand_size, of_one
from gradcli.primitives.operation import Operation
from gradcli.primitives.signature import SEQUENCES, lists_to_arrays, parameters_read
from gradcli.primitives.strides import Layout, always
from gradcli.type_hints import Any, Literal, NoReturn, final


class SavedForBackward:
    """The values that backward needs to compute the gradients by some operands of a primitive.

    `rules` are the vjp rules of the requested operands, with the indices of these. `result` says whether a rule reads
    the result. `operands`, `shapes` and `fixed` are indices of operands: those whose values are read, those of which the
    shape is sufficient, and those that have no derivative although it was requested.
    """

    __slots__ = ("fixed", "operands", "result", "rules", "shapes")

    def __init__(
        self, wanted: int, rules: Sequence[Any], uses: Sequence[frozenset[int]], variadic: bool, kinks: bool
    ) -> None:
        """Find the needs for the operands in the bit mask `wanted`, whose highest bit marks the end.

        `rules` has the rule of each operand, None where there is none. `uses` has, for each rule, the positions that it
        reads: 0 is the result, 1 the first operand. A `variadic` primitive has one rule for all operands, which reads
        all of them as position 1. With `kinks` all operands are needed, to check whether the function is smooth there.
        """
        places = range(len(rules))
        asked = [i for i in places if wanted >> i & 1]
        own = [0 if variadic else i for i in places]
        self.rules = tuple((i, rules[i]) for i in asked if rules[i] is not None)
        read = frozenset[int]().union(*(uses[own[i]] for i, _ in self.rules))
        self.result = 0 in read
        self.operands = tuple(i for i in places if kinks or own[i] + 1 in read)
        self.shapes = tuple(i for i in places if i not in self.operands)
        self.fixed = tuple(i for i in asked if rules[i] is None)


@final
class NodeName(str):
    """The name of a node. It is a string that returns itself when called, as PyTorch nodes have a method `name()`."""

    __slots__ = ()

    def __call__(self) -> str:
        return str(self)


Vjp = Callable[..., Any] | None
Prepared = tuple[Sequence[Any], Mapping[str, Any]]
# See `by_element`.
Elements = Sequence[tuple["Primitive", Sequence[tuple[int, int]], Mapping[str, Any]]]

_NO_PARAMS: Mapping[str, Any] = {}


def names_elsewhere(same: str = "", **other: str) -> Mapping[str, str]:
    """The names of a function elsewhere.

    `same` lists libraries and languages that have it under its own name, `other` gives its name in the others, as in
    `names_elsewhere("c sql", numpy="arcsin")`.
    """
    return {**dict.fromkeys(same.split(), ""), **other}


class NotImplementedRule:
    """A rule that is missing deliberately; calling it raises MissingRuleError with the reason."""

    def __init__(self, why: str) -> None:
        self.why = why

    def __call__(self, *_operands: Any, **_params: Any) -> NoReturn:
        raise MissingRuleError(self.why, hint="--wrt names the inputs to differentiate by")


def not_implemented(why: str) -> NotImplementedRule:
    """A rule that is missing deliberately, for the reason `why`."""
    return NotImplementedRule(why)


class Primitive(Operation):
    """A function with its own derivative rules.

    forward(xp, *arrays, **params)
        the implementation in an array namespace; returns a list if there are several outputs. A string stands for the
        namespace's function of that name, None for the one with the primitive's own name. `function` is that name, None
        if `forward` is a callable. `of_floats` is the implementation for Python numbers
    vjp
        one rule per operand, None for an operand without a derivative: `rule(g, y, *operands, **params)` returns the
        cotangent of that operand and is written in primitives. A parameter whose name starts with an underscore is not
        read and not saved for backward; only its shape is known. If `variadic`, a single rule `rule(i, g, y, *operands,
        **params)`
    jet
        the rule for truncated Taylor series, `rule(primitive, y, *operands, **params)`: a generator of the coefficients
        of the result y, see `gradcli.primitives.jet_rules`
    batch
        the batching rule, see `gradcli.primitives.batching`
    definition(*operands, **params)
        the same in other functions, which all kinds but tensors apply instead: a primitive that has it is one node of the
        graph, as in PyTorch, and needs no `jet` and `batch`
    prepare(*arguments)
        returns operands and params for the arguments of a call; None if the arguments are the operands
    spelling
        the names elsewhere, see `names_elsewhere`. For targets whose functions cannot be looked up (c, sql, sympy, latex, cuda,
        and scipy, which is imported late) a name says that they have the function. For array libraries (numpy, torch,
        jax, cupy, standard) it is given only if it differs from the primitive's name; NumPy has every `function` that
        is not from SciPy
    fallback(xp, *arrays, **params)
        the implementation in other functions, for namespaces that lack this one
    operator
        the operator that calls it in Python's syntax
    numbers
        the numbers that it takes: "real"; "analytic", also complex ones, in each of which it is holomorphic; or
        "complex", also complex ones, without being holomorphic. By default "analytic" if it `moves` or is
        `multilinear`, else "real". For a real result L, the cotangent of z = a + i*b in rules is dL/da - i*dL/db, so that
        the rules of holomorphic functions hold as they stand; the backward pass conjugates what users pass and get
    of_complex(xp, *arrays, **params)
        the implementation for complex operands, if it is another than `forward`
    keeps_integers
        whether integers give integers; otherwise they are converted to floats
    truths
        whether truth values are accepted as such; otherwise they are converted to 0 and 1
    elementwise
        whether an element of the result depends only on the elements of the operands at the same index
    selects
        whether the result consists of elements of the operands, so that a zero in a cotangent may mean "not taken" (see
        `gradcli.autograd.untaken_masks`)
    piecewise
        whether it is constant, equal to an operand or infinite on a region of its operands and another function
        elsewhere, although it neither selects nor has truth values
    parity
        "odd" if f(-x) is -f(x), "even" if it is f(x)
    commutative
        whether exchanging the operands never changes the result
    rounds_alike
        whether a number gives the same bits as an element of an array
    moves
        whether each element of the result is an element of an operand or 0, independently of the elements' values
    reorders
        whether the elements of the result are those of the operand, in an order that depends on their values
    reduces
        the binary function that is folded over the axes of a reduction
    multilinear
        whether the result is a sum of products, each of at most one element of each operand
    reach(taken, **params)
        the elements of the operand that influence the elements of the result in the mask `taken`, as a mask that
        broadcasts to the operand; None if all of them may
    by_element(shapes, params)
        the elements of the result, in row-major order, as functions of elements of the operands: for each an elementwise
        primitive, its operands as pairs of the number of the operand and that of the element, and its params. None where
        the elements are no such functions
    asymptotic(primitive, *operands, **params)
        the result for operands of which some are sums of exponentials times series (see
        `gradcli.kinds.exponential_scales`), where it does not follow from `jet`, as where operands grow
    endless
        whether its derivatives are ever new functions, each of which costs as much as the one before or more
    smooth(*arrays, **params)
        whether the function is differentiable at this point; None if it is on its whole domain
    nan_at_kinks
        whether its derivatives are nan where it is not differentiable; otherwise they are those of a convention
    jumps
        whether it may be discontinuous where it is not differentiable, so that a product with a factor of 0 has a kink
        there: x*sign(x) is abs(x)
    elements(shapes, params)
        the number of elements of the result, or the larger number of elements that take as long to compute, see
        `gradcli.primitives.costs`
    result_shape(shapes, params)
        the shape of the result, whose dtype is that of the first operand, where evaluation would take long to find it
    fails
        whether it raises for some inputs, so that it must be evaluated even if its result is not used
    view(x, **params)
        whether NumPy returns `x` itself or a view of it, which costs neither time nor memory per element; None if it
        never does, or if the view has more elements than `x`
    strides(layout, **params)
        the strides of the result, see `gradcli.primitives.strides`, if in PyTorch it is a view of the operand, which is
        modified in place with it; None if it never is
    shares(layout, **params)
        whether the result is such a view; `layout()` is that of the operand, and `layout` is None if the operand is
        contiguous
    time
        the cost of one element, if it is far above that of a sum or a sine: the number of elements charged for it
    surcharge(*arrays, **params)
        the number of elements to charge beyond that, for values that NumPy processes more slowly
    node_name
        the name of its node in the graph, or a function of (operands, params) that returns it
    gradient_name
        the name of the node of its gradient in a graph of gradients, if PyTorch has a function for it, or a function of
        the params that returns it. If the primitive `selects`, or passes the cotangent on unchanged, that node also
        depends on the first operand, with derivative 0
    """

    __slots__ = (
        "_arity",
        "_differentiable",
        "asymptotic",
        "batch",
        "by_element",
        "commutative",
        "definition",
        "elements",
        "elementwise",
        "endless",
        "fails",
        "forward",
        "function",
        "gradient_name",
        "jet",
        "jumps",
        "moves",
        "multilinear",
        "nan_at_kinks",
        "needs",
        "node_name",
        "numbers",
        "of_complex",
        "of_floats",
        "operator",
        "parity",
        "piecewise",
        "prepare",
        "reach",
        "recordings",
        "reduces",
        "reorders",
        "result_shape",
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
        jet: Callable[..., Any] | None = None,
        batch: Callable[..., Any] | None = None,
        definition: Callable[..., Any] | None = None,
        prepare: Callable[..., Prepared] | None = None,
        spelling: Mapping[str, str] = _NO_PARAMS,
        fallback: Callable[..., Any] | None = None,
        operator: str | None = None,
        numbers: Literal["real", "analytic", "complex"] | None = None,
        of_complex: Callable[..., Any] | None = None,
        keeps_integers: bool = False,
        truths: bool = False,
        elementwise: bool = False,
        selects: bool = False,
        piecewise: bool = False,
        parity: Literal["odd", "even"] | None = None,
        commutative: bool = False,
        rounds_alike: bool = False,
        moves: bool = False,
        reorders: bool = False,
        reduces: Primitive | None = None,
        multilinear: bool = False,
        reach: Callable[..., Any] | None = None,
        variadic: bool = False,
        by_element: Callable[[Sequence[Shape], Mapping[str, Any]], Elements | None] | None = None,
        asymptotic: Callable[..., Any] | None = None,
        endless: bool = False,
        smooth: Callable[..., bool] | None = None,
        nan_at_kinks: bool = False,
        jumps: bool = False,
        elements: Callable[[Sequence[Shape], Mapping[str, Any]], int] | None = None,
        result_shape: Callable[[Sequence[Shape], Mapping[str, Any]], Shape] | None = None,
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
        if callable(forward):
            self.forward = forward
        else:
            self.forward = _of_namespace(forward or name, self._arity if self._arity == self._required else 0)
        self.of_floats = vars(floats).get(self.function or "") or partial(self.forward, floats)
        if surcharge is not None:
            self.of_floats = of_one(self.of_floats, time, surcharge)
        self.numbers = numbers or ("analytic" if moves or multilinear else "real")
        self.of_complex = of_complex or self.forward
        self.vjp = vjp
        self.jet: Any = jet
        self.batch: Any = batch
        self.definition = definition
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
        self.reorders = reorders
        self.reduces = reduces
        self.multilinear = multilinear
        self.reach = reach
        self.variadic = variadic
        self.by_element = by_element
        self.asymptotic = asymptotic
        self.endless = endless
        self.smooth = smooth
        self.nan_at_kinks = nan_at_kinks
        self.jumps = jumps
        self.elements = elements or (broadcast_elements if elementwise else largest_operand_size)
        self.result_shape = result_shape
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
        self._differentiable = sum([1 << i for i, rule in enumerate(rules) if rule is not None])
        self.needs: dict[int, SavedForBackward] = {}
        # How it is recorded in the graph, by the form of the operands.
        self.recordings: dict[tuple[Any, ...], Any] = {}

    def __call__(self, *operands: Any, **params: Any) -> Any:
        try:
            if params and (len(operands) < self._required or not self._names.issuperset(params)):
                if isinstance(params.get("out"), Kind):
                    return params.pop("out").take_result(self.name, operands, partial(self, *operands, **params))
                operands, params = self._placed(operands, params)
            if self.prepare is not None:
                for operand in operands:
                    if type(operand) in SEQUENCES:
                        operands = lists_to_arrays(self.parameters, operands)
                        break
                operands, params = self.prepare(*operands, **params)  # type: ignore[assignment]
            elif params or len(operands) != self._arity:
                raise CallError(f"{self.name}({self.signature}) needs each of its operands once")
            return bind(self, operands, params or _NO_PARAMS)
        except FOREIGN as error:
            refuse(self.name, operands, params, error)
            raise

    def rule(self, i: int) -> Any:
        """The vjp rule of operand `i`, called as rule(g, y, *operands, **params); None if it has no derivative."""
        if self.variadic:
            rule = self.vjp
            assert callable(rule)
            return lambda *arguments, **params: rule(i, *arguments, **params)
        return self.vjp[i] if isinstance(self.vjp, tuple) else None

    def differentiable(self, count: int) -> int:
        """A bit mask of those of the first `count` operands that have a rule."""
        if self.variadic:
            return (1 << count) - 1
        return self._differentiable

    def find_needs(self, wanted: int) -> SavedForBackward:
        """The tensors that backward needs to differentiate by the operands in the bit mask `wanted`, whose highest bit
        marks the end; cached."""
        count = wanted.bit_length() - 1
        rules = [self.rule(i) if self.differentiable(count) >> i & 1 else None for i in range(count)]
        uses = [parameters_read(self.vjp, 2)] if self.variadic else [parameters_read(rule, 1) for rule in rules]
        found = self.needs[wanted] = SavedForBackward(wanted, rules, uses, self.variadic, self.smooth is not None)
        return found


def _of_namespace(name: str, operands: int) -> Callable[..., Any]:
    """A wrapper of the namespace's function of this name.

    It has fixed parameters for up to three `operands`, which is faster to call, and any parameters for 0.
    """
    if operands == 1:
        return lambda xp, x: getattr(xp, name)(x)
    if operands == 2:
        return lambda xp, x, y: getattr(xp, name)(x, y)
    if operands == 3:
        return lambda xp, x, y, z: getattr(xp, name)(x, y, z)
    return lambda xp, *operands, **params: getattr(xp, name)(*operands, **params)

"""Finds the expressions of a program that have a stable form: an equal expression that neither overflows nor cancels.

The forms themselves are in `gradcli.language.stable.stable_forms`.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, lru_cache

from gradcli.arrays.mathematical_constants import is_exact
from gradcli.errors import Span
from gradcli.language.names.call_meanings import call_meanings, meaning_of
from gradcli.language.names.resolution import Resolution, resolve
from gradcli.language.operations import EXACT_INTEGERS
from gradcli.language.stable.stable_forms import RULES_BY_ROOT, RULES_FOR_STABLE_SUMS, StableForm
from gradcli.language.syntax import parse_expression, tree
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import table
from gradcli.primitives.bind import constant
from gradcli.primitives.entries.comparisons import not_equal
from gradcli.primitives.signature import resolve_keyword
from gradcli.type_hints import Any

_OF_EULER = StableForm("e**x", "exp(x)", "e is Euler's number")
_COMMUTATIVE = ("+", "*")
# A term with more factors is kept as one factor.
_MOST_FACTORS = 8
# The numbers that occur in patterns.
_NUMBERS = (1.0, 2.0)
# The most arguments of a call in a pattern.
_MOST_ARGUMENTS = 2
# The module prefix of functions in stable forms, so that a function of the program does not shadow them.
MODULE = "gradcli"

# The name of a common factor in a stable form.
_FACTOR = "c"
# Separates the words of a pattern, with its functions before their brackets; `-` becomes `+`.
_SEPARATED = str.maketrans({"(": "( ", ")": " ", ",": " ", "=": " ", "+": " + ", "-": " + ", "*": " * ", "/": " / "})
# A name in a pattern; `argument` matches where it is a whole argument of a call.
_PATTERN_NAME = r"(?P<argument>(?:(?<=[(=])|(?<=, ))(?=\w[,)]))?\b(?P<name>[a-z])\b"


class RewrittenExpression(tree.Expression):
    """An expression that is evaluated in another form; `original` is as written, or a form of lower precedence."""

    rule: StableForm
    original: tree.Expression


class StableExpression(RewrittenExpression):
    """An expression that matches a rule; `parts` has the subexpressions that each name of the pattern matched."""

    stable: tree.Expression
    parts: Mapping[str, Sequence[tree.Expression]]


def stable_expressions(
    program: tree.Module, own_functions: Collection[str], named: Collection[str]
) -> dict[tree.SyntaxNode, RewrittenExpression]:
    """The expressions of a program that have a stable form, each with that form.

    Functions that the program defines (`own_functions`) do not match a rule, and a name with a value (`named`) does not
    match a constant.
    """
    resolution = resolve(program)
    powers = euler_powers(program, named, MODULE)
    found: dict[tree.SyntaxNode, RewrittenExpression] = {
        node: StableExpression(node.span, _OF_EULER, node, call, {"x": call.arguments}) for node, call in powers.items()
    }
    everything = _used(resolution, powers)
    if not powers and not any(_usable(root, everything) for root in RULES_BY_ROOT.keys() & (everything | {"-"})):
        return found
    calls = [*powers.values()]
    used = _used_within(program, powers)
    # Subexpressions come before the expressions that contain them.
    for node, root in reversed(resolution.roots.items()):
        if root not in RULES_BY_ROOT or node in powers:
            continue
        fits: tree.Expression = node
        for rule, read in [*_readings(root, node, powers, used[node])]:
            parts = _match(read.pattern, read.node, own_functions, powers)
            if parts is None:
                continue
            if rule.pattern in RULES_FOR_STABLE_SUMS and tree.children(node)[0] in found:
                rule = RULES_FOR_STABLE_SUMS[rule.pattern]
            if read.sign or read.factor is not None:
                rule = _scaled(rule, read.sign, read.factor is not None)
                parts = parts if read.factor is None else {**parts, _FACTOR: [read.factor]}
            stable = _filled(_parsed(rule.stable), parts, node.span, calls)
            fits = found[node] = StableExpression(node.span, rule, fits, stable, parts)
    meanings = call_meanings(program)
    meanings.update((call, meaning_of(call, table.known(call.name))) for call in calls)
    return found


class _Reading(NamedTuple):
    """A pattern that may match `node`, which is an expression or, with `factor` and `sign`, a part of it."""

    pattern: tree.Expression
    node: tree.Expression
    factor: tree.Expression | None = None
    sign: str = ""


def _readings(
    root: str, node: tree.Expression, powers: _ReadAs, used: frozenset[str]
) -> Iterator[tuple[StableForm, _Reading]]:
    """The rules that may match an expression, in ascending precedence.

    For a sum, these begin with rules for the sum without its common factor, or with the signs exchanged.
    """
    if root in ("+", "-") and (_usable("+", used) or _usable("-", used)):
        for factor, sign, terms in _with_factor(node):  # type: ignore[arg-type]
            for rule, pattern in _likely(terms.operator, _outline(terms, powers), used):
                yield rule, _Reading(pattern, terms, factor, sign)
    if _usable(root, used):
        for rule, pattern in _likely(root, _outline(node, powers), used):
            yield rule, _Reading(pattern, node)


def stable_text(rewritten: RewrittenExpression, source: str) -> str:
    """The stable form in the syntax of programs, with its parts as they are written in `source`."""

    parts = rewritten.parts if isinstance(rewritten, StableExpression) else {}

    def written(match: re.Match[str]) -> str:
        part = parts[match["name"]][0]
        text = _text(part, rewritten.span, source)
        return f"({text})" if _is_loose(part) and match["argument"] is None else text

    return re.sub(_PATTERN_NAME, written, rewritten.rule.stable)


def _text(part: tree.Expression, whole: Span, source: str) -> str:
    """The text of a part. A part that was built, not parsed, has the span of the whole expression."""
    if isinstance(part, tree.Number) and part.text:
        return part.text
    if part.span == whole and isinstance(part, tree.Binary):
        return part.operator.join(_text(operand, whole, source) for operand in (part.left, part.right))
    return source[part.span.start : part.span.end]


def _is_loose(node: tree.SyntaxNode) -> bool:
    """Return whether an expression needs parentheses as an operand: it starts with an operand of its own."""
    loose = isinstance(node, (tree.Binary, tree.Compare, tree.Logical, tree.Conditional))
    return loose and tree.children(node)[0].span.start == node.span.start


def _used(resolution: Resolution, powers: _ReadAs) -> frozenset[str]:
    """The functions and operators of a program, `-` as `+`, since -x + y matches y - x."""
    has_minus = "-" in resolution.used or resolution.nodes(tree.Unary)
    return resolution.used.union(("+",) if has_minus else (), ("exp",) if powers else ())


def _used_within(program: tree.Module, powers: _ReadAs) -> Mapping[tree.SyntaxNode, frozenset[str]]:
    """The functions and operators in each expression of a program, as `_used` has those of the whole."""
    found: dict[tree.SyntaxNode, frozenset[str]] = {}
    roots = resolve(program).roots
    # Subexpressions come before the expressions that contain them.
    for node in reversed(tree.all_nodes(program)):
        root = "exp" if node in powers else "-" if isinstance(node, tree.Unary) else roots.get(node)  # type: ignore[call-overload]
        own = frozenset(() if root is None else ("+" if root == "-" else root,))
        found[node] = own.union(*[found[child] for child in tree.children(node)])
    return found


# The type, operator or function at the root of an expression, and the outlines of its operands down to `_LEVELS`; None
# for operands that are not compared.
_Outline = tuple[Any, tuple[Any, ...] | None]
# Depth of an outline.
_LEVELS = 2
# Nodes that are to be matched as another expression.
_ReadAs = Mapping[Any, tree.Expression]
# Size of the cache of rules by outline.
_MOST_OUTLINES = 10_000


def _outline(node: tree.SyntaxNode, read_as: _ReadAs, levels: int = _LEVELS) -> _Outline:
    node = read_as.get(node, node)
    kind = type(node)
    if kind is tree.Binary or kind is tree.Unary:
        head: Any = (kind, node.operator)  # type: ignore[attr-defined]
    elif kind is tree.Call:
        head = table.find(node.name)  # type: ignore[attr-defined]
        if node.keywords or head is None:  # type: ignore[attr-defined]
            return head, None
    else:
        return node.value if kind is tree.Number and node.value in _NUMBERS else kind, None  # type: ignore[attr-defined]
    if levels == 0:
        return head, None
    return head, tuple([_outline(part, read_as, levels - 1) for part in _operands(node)])


def _operands(node: Any) -> Sequence[tree.SyntaxNode]:
    if type(node) is tree.Binary:
        return node.left, node.right
    # No pattern has more arguments than these.
    return (node.operand,) if type(node) is tree.Unary else tree.positional(node)[:_MOST_ARGUMENTS]


@lru_cache(_MOST_OUTLINES)
def _likely(root: str, outline: _Outline, used: frozenset[str]) -> Sequence[tuple[StableForm, tree.Expression]]:
    """The rules that may match an expression with this outline, in ascending precedence; usually there are none.

    `used` are the functions and operators in the expression. Each rule comes with its pattern in the order of operands
    that may match.
    """
    return [
        (rule, order)
        for rule in reversed(_usable(root, used))
        for order, expected in reversed(_ordered(rule))
        if _may_fit(expected, outline)
    ]


@lru_cache(_MOST_OUTLINES)
def _usable(root: str, used: frozenset[str]) -> Sequence[StableForm]:
    """The rules whose patterns have no other functions and operators, found faster than by parsing the patterns."""
    return [rule for rule in RULES_BY_ROOT[root] if used.issuperset(_needed(rule.pattern))]


@cache
def _needed(pattern: str) -> list[str]:
    """The functions and operators that an expression needs to match a pattern. A square also matches a whole number."""
    words = pattern.replace("**2", " ").replace("**", " ^ ").translate(_SEPARATED).split()
    functions = [word[:-1] for word in words if word.endswith("(") and word != "("]
    return functions + ["**" if word == "^" else word for word in words if word in "+*/^"]


@cache
def _ordered(rule: StableForm) -> Sequence[tuple[tree.Expression, _Outline]]:
    """The pattern of a rule in every order of commutative operands, each with its outline."""
    return [(order, _outline(order, {})) for order in _orders(_parsed(rule.pattern))]


def _with_factor(node: tree.Binary) -> Iterator[tuple[tree.Expression | None, str, tree.Binary]]:
    """A sum of two terms as `factor` (None for 1) times a sum without common factors, with a sign.

    2 - 2*cos(x) is 2*(1 - cos(x)), and cos(x) - 1 is -(1 - cos(x)).
    """
    (sign, factors), (other_sign, others) = _term(node.left, 1), _term(node.right, -1 if node.operator == "-" else 1)
    if not any(type(part) in (tree.Call, tree.Binary) for part in (*factors, *others)):
        return
    common = []
    for part in [*factors]:
        if any(_alike(part, other) for other in others):
            factors, others = _without(part, factors), _without(part, others)
            common.append(part)
    factor = _product(common, node.span) if common else None
    one, other = _product(factors, node.span), _product(others, node.span)
    if sign == other_sign:
        if factor is not None or sign < 0:
            yield factor, "-" if sign < 0 else "", _binary(node, "+", one, other)
        return
    if sign < 0:
        one, other = other, one
    if factor is not None or sign < 0:
        yield factor, "", _binary(node, "-", one, other)
    yield factor, "-", _binary(node, "-", other, one)


def _term(node: tree.Expression, sign: int) -> tuple[int, list[tree.Expression]]:
    """The sign and the factors of a term, without factors of 1."""
    factors: list[tree.Expression] = []
    waiting, whole = [node], sign
    while waiting:
        part = waiting.pop()
        if len(factors) == _MOST_FACTORS:
            return whole, [node]
        if isinstance(part, tree.Unary) and part.operator == "-":
            sign = -sign
            waiting.append(part.operand)
        elif isinstance(part, tree.Binary) and part.operator == "*":
            waiting += (part.right, part.left)
        elif not (isinstance(part, tree.Number) and part.value == 1.0):
            factors.append(part)
    return sign, factors


def _without(factor: tree.Expression, parts: Sequence[tree.Expression]) -> list[tree.Expression]:
    found = next(k for k, part in enumerate(parts) if _alike(part, factor))
    return [*parts[:found], *parts[found + 1 :]]


def _product(factors: Sequence[tree.Expression], span: Span) -> tree.Expression:
    if not factors:
        return tree.Number(span, 1.0, "1")
    product, *others = factors
    for factor in others:
        product = tree.Binary(span, "*", span, product, factor)
    return product


def _binary(node: tree.Binary, operator: Any, left: tree.Expression, right: tree.Expression) -> tree.Binary:
    return tree.Binary(node.span, operator, node.operator_span, left, right)


@cache
def _scaled(rule: StableForm, sign: str, has_factor: bool) -> StableForm:
    """A rule for multiples of its pattern, with a sign and a common factor in front."""
    before = sign + (f"{_FACTOR}*" if has_factor else "")
    when, of_complex = map(_of_others, (rule.when, rule.of_complex))
    scaled = rule._replace(
        pattern=f"{before}({rule.pattern})", stable=f"{before}({rule.stable})", when=when, of_complex=of_complex
    )
    if sign and rule.pattern.startswith("1 - ") and of_complex is not None:
        # cos(z) - 1 keeps the sign of an imaginary part of 0, which -(1 - cos(z)) does not.
        apart = None if rule.when else _BESIDE_REAL_AXIS
        return scaled._replace(of_complex=None if rule.when else _beside_real_axis, apart=apart)
    return scaled


# In the form of `apart`: a number that is not real, and one that is.
_BESIDE_REAL_AXIS: Any = (1j, 1.0)


def _beside_real_axis(x: Any, **_factor: Any) -> Any:
    # Loaded on demand: few programs have complex numbers.
    from gradcli.primitives.entries.elementwise.complex_numbers import imag

    return not is_exact() and not_equal(imag(constant(x)), 0.0)


def _of_others(when: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """A condition for the values of all names but the common factor."""

    def of_others(**values: Any) -> Any:
        values.pop(_FACTOR, None)
        assert when is not None
        return when(**values)

    return when and of_others


def _orders(pattern: Any) -> list[Any]:
    """A pattern with the operands of its sums and products in every order."""
    fields = [_orders_of(getattr(pattern, field)) for field in pattern.__match_args__]
    found = [type(pattern)(*chosen) for chosen in itertools.product(*fields)]
    if isinstance(pattern, tree.Binary) and pattern.operator in _COMMUTATIVE:
        found += [type(p)(p.span, p.operator, p.operator_span, p.right, p.left) for p in found]
    return found


def _orders_of(value: Any) -> list[Any]:
    if isinstance(value, tuple) and not isinstance(value, Span):
        return [*itertools.product(*map(_orders_of, value))]
    return _orders(value) if isinstance(value, tree.SyntaxNode) else [value]


def _may_fit(pattern: _Outline, given: _Outline) -> bool:
    if pattern[0] is tree.Name:
        return True
    if pattern[0] != given[0]:
        return False
    if pattern[1] is None or given[1] is None:
        return True
    return len(pattern[1]) == len(given[1]) and all(map(_may_fit, pattern[1], given[1]))


@cache
def _parsed(text: str) -> tree.Expression:
    return parse_expression(text)


def _match(
    pattern: tree.SyntaxNode, node: tree.SyntaxNode, own: Collection[str], read_as: _ReadAs
) -> Mapping[str, Sequence[tree.Expression]] | None:
    """The subexpressions that each name of `pattern` matches in `node`, one per occurrence; None if it differs."""
    parts: dict[str, list[tree.Expression]] = {}
    pairs: list[tuple[tree.SyntaxNode, tree.SyntaxNode]] = [(pattern, node)]
    while pairs:
        expected, given = pairs.pop()
        if isinstance(given, tree.Number) and isinstance(expected, tree.Binary):
            root = _root_of_square(expected, given)
            if root is None:
                return None
            expected, given = expected.left, root
        if isinstance(expected, tree.Name):
            known = parts.setdefault(expected.id, [])
            if known and not _alike(known[0], given):
                return None
            known.append(given)  # type: ignore[arg-type]
            continue
        below = _pairs(expected, read_as.get(given, given), own)
        if below is None:
            return None
        pairs.extend(below)
    return parts


def _root_of_square(expected: tree.Binary, given: tree.Number) -> tree.Number | None:
    """The x for which a whole number matches the pattern `x**2`, or None."""
    is_square = expected.operator == "**" and isinstance(expected.right, tree.Number) and expected.right.value == 2.0
    if not is_square or not given.text.isdigit() or given.value >= EXACT_INTEGERS:
        return None
    root = math.isqrt(int(given.value))
    return tree.Number(given.span, float(root), str(root)) if root * root == given.value else None


def _alike(first: tree.SyntaxNode, second: tree.SyntaxNode) -> bool:
    """Return whether two expressions are the same apart from parentheses and spaces."""
    pairs = [(first, second)]
    while pairs:
        a, b = pairs.pop()
        if type(a) is not type(b) or _plain_fields(a) != _plain_fields(b):
            return False
        below, others = tree.children(a), tree.children(b)
        if len(below) != len(others):
            return False
        pairs.extend(zip(below, others))
    return True


def _plain_fields(node: tree.SyntaxNode) -> list[Any]:
    values = (getattr(node, field) for field in type(node).__match_args__ if field not in type(node).below)
    return [value for value in values if not isinstance(value, Span)]


def _pairs(
    expected: tree.SyntaxNode, given: tree.SyntaxNode, own: Collection[str]
) -> Sequence[tuple[tree.SyntaxNode, tree.SyntaxNode]] | None:
    """The pairs of children that must match, or None where the nodes themselves do not."""
    if isinstance(expected, tree.Call) and isinstance(given, tree.Call):
        if (given.name in own and not given.module) or table.find(given.name) is not table.find(expected.name):
            return None
        wanted, found = _named_arguments(expected), _named_arguments(given)
        if wanted is None or found is None or wanted.keys() != found.keys():
            return None
        return [(wanted[n], found[n]) for n in wanted]
    if isinstance(expected, tree.Binary) and isinstance(given, tree.Binary):
        same = expected.operator == given.operator
        return [(expected.left, given.left), (expected.right, given.right)] if same else None
    if isinstance(expected, tree.Unary) and isinstance(given, tree.Unary):
        return [(expected.operand, given.operand)] if expected.operator == given.operator else None
    if isinstance(expected, tree.Number) and isinstance(given, tree.Number):
        return [] if expected.value == given.value else None
    return None


def _named_arguments(call: tree.Call) -> dict[str, tree.Expression] | None:
    """The arguments of a call by parameter name; None where they do not fit the signature."""
    operation = table.find(call.name)
    assert operation is not None
    parameters = operation.parameters
    positional = tree.positional(call)
    named = {p.name: a for p, a in zip(parameters, positional)}
    named |= {resolve_keyword(k.name, parameters): k.value for k in call.keywords}
    return named if len(named) == len(positional) + len(call.keywords) else None


def _filled(
    template: tree.Expression, parts: Mapping[str, Sequence[tree.Expression]], span: Span, calls: list[tree.Call]
) -> Any:
    """A template with its names replaced by `parts`; new nodes get the span of the original expression, and those that
    are calls are added to `calls`."""
    if isinstance(template, tree.Name):
        return parts[template.id][0]
    fields = [_moved(getattr(template, field), parts, span, calls) for field in template.__match_args__]
    if isinstance(template, tree.Call):
        # The prefix keeps a function of the program with the same name from being called.
        fields[-1] = MODULE
        calls.append(tree.Call(*fields))
        return calls[-1]
    return type(template)(*fields)


def _moved(value: Any, parts: Mapping[str, Sequence[tree.Expression]], span: Span, calls: list[tree.Call]) -> Any:
    if isinstance(value, Span):
        return span
    if isinstance(value, tree.SyntaxNode):
        return _filled(value, parts, span, calls)  # type: ignore[arg-type]
    return tuple(_moved(v, parts, span, calls) for v in value) if isinstance(value, tuple) else value


# --- powers of Euler's number

_NAME = "e"


def euler_powers(program: tree.Module, named: Collection[str], module: str) -> dict[tree.Expression, tree.Call]:
    """The powers of Euler's number in a program, each as a call of exp of a `module`.

    If `e` is in `named`, it has another value and is not Euler's number.
    """
    return {
        node: tree.Call(node.span, "exp", node.span, None, (node.right,), (), module)
        for node in resolve(program).nodes(tree.Binary)
        if node.operator == "**" and _is_number(node.left, named)
    }


def _is_number(node: tree.Expression, named: Collection[str]) -> bool:
    return isinstance(node, tree.Name) and node.id == _NAME and (bool(node.module) or _NAME not in named)

"""Reads expressions as functions of one variable, which may be a subexpression, as a*x in sin(a*x)/(a*x)."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from gradcli import arrays
from gradcli.errors import GradcliError
from gradcli.language.names import binders, scope
from gradcli.language.names.resolution import COMPLEX, called_operation, resolve
from gradcli.language.operations import BINARY
from gradcli.language.stable import stable_expressions
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import table
from gradcli.primitives.argument_errors import FOREIGN
from gradcli.primitives.bind import Kind
from gradcli.primitives.entries.arithmetic import add, divide, multiply, negative
from gradcli.primitives.entries.powers import power
from gradcli.primitives.operation import Operation
from gradcli.primitives.primitive import Primitive
from gradcli.type_hints import Any

# The longest text that identifies a subexpression; each one with a longer text is distinct from all others.
_LONGEST = 200
# Size of the cache of which operations are elementwise.
_MOST_OPERATIONS = 1000
# At most this many subexpressions are tried as the variable.
_MOST_VARIABLES = 12
_OPERATORS = ("+", "-", "*", "/", "**")
# Powers of products are expanded for exponents below this.
_MOST_FACTORS = 100

# Prefix of the text of a number that is not a fraction.
_WRITTEN = "="

# Powers of expressions: pairs of text and exponent, sorted by text.
Factors = tuple[tuple[str, int], ...]
# A function of one variable: ("number", value), ("variable", factor, power), ("written", text) for a number that is no
# fraction, or (operation, operands).
Form = tuple[Any, ...]
# A float, or a Fraction in exact arithmetic.
Real = Any


class Monomial(NamedTuple):
    """An expression as a number times powers of others; equal for expressions that differ in the order of operands."""

    factor: Real
    factors: Factors

    def __str__(self) -> str:
        # In decimal, Python refuses whole numbers of more than 4,300 digits.
        fraction = () if type(self.factor) is float else map(hex, self.factor.as_integer_ratio())
        number = "/".join(fraction) or repr(self.factor)
        return "*".join([number, *(f"({text})^{n}" for text, n in self.factors)])


class Place(NamedTuple):
    """A node, whose value is `times` times the expression that it stands for."""

    node: tree.Expression
    times: Real


class OneVariable(NamedTuple):
    """An expression as a function of one variable times powers of others.

    `places` are the nodes that are multiples of the variable, those with the multiple 1 first.
    """

    form: Form
    places: tuple[Place, ...]
    others: tuple[tuple[Place, int], ...]


class _Factor(NamedTuple):
    """A factor of a product: an operation on operands, a sum (no operation), or opaque (no operands either).

    `varies` has the texts of the opaque expressions that it depends on; it is empty for a number.
    """

    varies: frozenset[str]
    operation: Operation | None = None
    operands: tuple[Monomial, ...] = ()


class ExpressionReader:
    """Reads the expressions of a program; `own` are the functions that it defines, `bound` the names of inputs, and
    `apart` the names that are not replaced by their definitions.

    Numbers are those of the chosen namespace: fractions where it is exact, floats otherwise.
    """

    def __init__(
        self, program: tree.Module, own: Collection[str], bound: Collection[str], apart: Collection[str]
    ) -> None:
        self._scalars = arrays.chosen_scalars()
        self._one: Real = 1.0 if self._scalars is None else _fraction(1)
        self._program = program
        self._own = own
        self._names = resolve(program).bound | set(bound)
        self._products: dict[tree.Expression, Monomial] = {}
        self._parts: dict[str, _Factor] = {}
        # Nodes that are read as another expression.
        self._read_as: dict[tree.SyntaxNode, tree.Expression] = {}
        self._read_as |= name_definitions(program, apart, self._is_plain)

    @property
    def reads_names(self) -> bool:
        """True if some names are read as the expressions that they were assigned."""
        return bool(self._read_as)

    def definition(self, name: tree.SyntaxNode) -> tree.Expression | None:
        """The plain expression that a read of a name stands for; None if there is none."""
        return self._read_as.get(name)

    def in_one_variable(self, node: tree.Expression) -> Iterator[OneVariable]:
        """All readings of an expression as a function of one of its subexpressions."""
        inside = [*self._inside(node)]
        places: dict[Factors, list[Place]] = {}
        for n in inside:
            product = self._product(n)
            places.setdefault(product.factors, []).append(Place(n, product.factor))
        whole = self._product(node)
        tried = [v for v in places if self._varies(v) and v != whole.factors][-_MOST_VARIABLES:]
        for variable in reversed(tried):
            found = self._split(whole, variable)
            if found is not None and all(((text, 1),) in places for text, _ in found[1]):
                form, others = found
                standing = sorted(places[variable], key=lambda place: place.times != 1)
                beside = ((places[(text, 1),][0], n) for text, n in others)
                yield OneVariable(form, tuple(standing), tuple(beside))

    def _split(self, product: Monomial, variable: Factors) -> tuple[Form, Factors] | None:
        """A product as a function of the variable times powers of other factors; None where that is impossible."""
        varies = self._varies(variable)
        if self._varies(product.factors) <= varies:
            form = self._form(product, variable)
            if form is not None:
                return form, ()
        powers = dict(variable)
        own: list[tuple[Form, int]] = []
        left: dict[str, int] = {}
        for text, n in product.factors:
            alone = text not in powers and self._parts[text].varies <= varies
            form = self._form_of_part(text, variable) if alone else None
            if form is None:
                left[text] = n
            else:
                own.append((form, n))
        # Split off the power of the variable that leaves non-negative exponents of its factors.
        most = [left.get(text, 0) // p for text, p in variable if p > 0]
        if not own or not most:
            return None
        n = min(most)
        if n:
            own.append((("variable", self._one, 1), n))
            left |= {text: left.get(text, 0) - n * p for text, p in variable}
        return _multiplied(product.factor, own), tuple((text, n) for text, n in left.items() if n)

    def _form(self, product: Monomial, variable: Factors) -> Form | None:
        factor, factors = product
        if not factors:
            return "number", factor
        n = _power_of(factors, variable)
        if n:
            return "variable", factor, n
        terms = self._terms(product)
        if len(terms) > 1:
            return _joined(add, [self._form(term, variable) for term in terms])
        forms = [(self._form_of_part(text, variable), n) for text, n in factors]
        return None if any(form is None for form, _ in forms) else _multiplied(factor, forms)  # type: ignore[arg-type]

    def _form_of_part(self, text: str, variable: Factors) -> Form | None:
        varies, operation, operands = self._parts[text]
        if not varies and not operands:
            return "written", text.removeprefix(_WRITTEN)
        if operation is None:
            return self._form(self._of_text(text), variable) if operands or variable == ((text, 1),) else None
        forms = [self._form(o, variable) for o in operands]
        return None if None in forms else (operation, tuple(forms))

    def operands(self, node: tree.SyntaxNode) -> Sequence[tree.Expression] | None:
        """The operands of an elementwise operation, empty for a number; None for any other node."""
        if isinstance(node, (tree.Number, tree.Name)):
            if self._number(node) is not None:
                return ()
            meaning = self._read_as.get(node)
            return None if meaning is None else (meaning,)
        if isinstance(node, tree.Unary) and node.operator in "+-":
            return (node.operand,)
        if isinstance(node, tree.Binary) and node.operator in _OPERATORS:
            return node.left, node.right
        if isinstance(node, tree.Call) and not node.keywords and (node.module or node.name not in self._own):
            operation, given = called_operation(node), tree.positional(node)
            return given if operation is not None and _is_elementwise(operation, len(given)) else None
        return None

    def cancels(self, node: tree.Expression) -> bool:
        """Return whether an expression is a number whatever its variables are, as x/x is."""
        return not self._product(node).factors

    def key(self, node: tree.SyntaxNode) -> str:
        """A text that is equal for equal expressions, among those without operands."""
        text = self._program.source[node.span.start : min(node.span.end, node.span.start + _LONGEST)]
        text = "".join(text.split()) if len(text) < _LONGEST else f"#{id(node)}"
        while text.startswith("(") and text.endswith(")"):
            text = text[1:-1]
        return text

    def float_of(self, node: tree.SyntaxNode) -> float | None:
        """The float nearest to a literal or a named constant, None for other nodes."""
        if isinstance(node, tree.Number):
            return node.value
        if isinstance(node, tree.Name) and self._number(node) is not None:
            return float((scope.LIBRARY_CONSTANTS if node.module else scope.CONSTANTS)[node.id])
        return None

    def _is_plain(self, node: tree.Expression) -> bool:
        """Return whether an expression consists of elementwise operations on names and numbers alone."""
        waiting, below = [node], self.operands(node)
        while waiting and below:
            part = waiting.pop()
            operands = self.operands(part)
            if operands is None and not isinstance(part, tree.Name):
                return False
            waiting += operands or ()
        return bool(below)

    def _number(self, node: tree.SyntaxNode) -> Real | str | None:
        """The number of a literal or a constant such as `pi`, None for other nodes.

        In exact arithmetic, a number that is not a fraction is given as its text.
        """
        value, text = None, ""
        if isinstance(node, tree.Number):
            value, text = node.value, node.text
        elif isinstance(node, tree.Name) and (node.module or node.id not in self._names):
            named = (scope.LIBRARY_CONSTANTS if node.module else scope.CONSTANTS).get(node.id)
            value = named if type(named) is float and math.isfinite(named) else None
        if value is None or self._scalars is None:
            return value
        if isinstance(node, tree.Name):
            return node.id if node.id in self._scalars.constants else _fraction(value)
        number = _fraction(self._scalars.number(text) if text else value)
        return text if number is None else number

    def _inside(self, node: tree.Expression) -> Iterator[tree.Expression]:
        yield node
        for operand in self._operands(node) or ():
            yield from self._inside(operand)

    def _operands(self, node: tree.Expression) -> Sequence[tree.Expression] | None:
        """The operands of an expression; a power x**q with varying exponent is read as exp(q*log(x))."""
        read = self._read_as.get(node)
        if read is None and isinstance(node, tree.Binary) and node.operator == "**" and self._is_general_power(node):
            read = self._read_as[node] = _by_logarithm(node)
        return self.operands(node) if read is None else (read,)

    def _is_general_power(self, node: tree.Binary) -> bool:
        """Return whether base and exponent both vary, without a name in common."""
        base, exponent = (
            {n.id for n in tree.walk(side) if isinstance(n, tree.Name)} for side in (node.left, node.right)
        )
        named = all(isinstance(side, tree.Name) or self._is_plain(side) for side in (node.left, node.right))
        varying = all(self._varies(self._product(side).factors) for side in (node.left, node.right))
        return named and varying and base.isdisjoint(exponent)

    def _product(self, node: tree.Expression) -> Monomial:
        found = self._products.get(node)
        if found is None:
            found = self._products[node] = self._read(node)
        return found

    def _read(self, node: tree.Expression) -> Monomial:
        value = self._number(node)
        if isinstance(value, str):
            return self._of_part(f"{_WRITTEN}{value}", _Factor(frozenset()))
        if value is not None:
            return Monomial(value, ())
        below = self._operands(node)
        if below is None:
            text = self.key(node)
            return self._of_part(text, _Factor(frozenset({text})))
        operands = [self._product(b) for b in below]
        if node in self._read_as:
            return operands[0]
        if isinstance(node, tree.Unary):
            return _scaled(operands[0], -1 if node.operator == "-" else 1)
        if isinstance(node, tree.Binary):
            if node.operator in ("+", "-"):
                return self._sum(operands[0], _scaled(operands[1], 1 if node.operator == "+" else -1))
            found = _combined(node.operator, *operands)
            if found is not None:
                return found
        return self._of_operands(_operation(node), operands)

    def _of_operands(self, operation: Operation | None, operands: Sequence[Monomial]) -> Monomial:
        text = f"{operation.name}({', '.join(map(str, operands))})" if operation else "+".join(map(str, operands))
        varies = frozenset().union(*(self._varies(o.factors) for o in operands))
        return self._of_part(text, _Factor(varies, operation, tuple(operands)))

    def _varies(self, factors: Factors) -> frozenset[str]:
        return frozenset().union(*(self._parts[text].varies for text, _ in factors))

    def _of_part(self, text: str, part: _Factor) -> Monomial:
        self._parts[text] = part
        return self._of_text(text)

    def _of_text(self, text: str) -> Monomial:
        return Monomial(self._one, ((text, 1),))

    def _sum(self, a: Monomial, b: Monomial) -> Monomial:
        """A sum as a number times a normalized sum, which is the same for the negated sum."""
        zero = 0 * self._one
        terms: dict[Factors, Real] = {}
        for product in (a, b):
            for term in self._terms(product):
                terms[term.factors] = terms.get(term.factors, zero) + term.factor
        listed = [Monomial(factor, factors) for factors, factor in sorted(terms.items()) if factor]
        if len(listed) < 2:
            return listed[0] if listed else Monomial(zero, ())
        sign = -1 if listed[0].factor < 0 else 1
        listed = [_scaled(term, sign) for term in listed]
        return _scaled(self._of_operands(None, listed), sign)

    def _terms(self, product: Monomial) -> Sequence[Monomial]:
        if len(product.factors) == 1 and product.factors[0][1] == 1:
            _, operation, terms = self._parts[product.factors[0][0]]
            if operation is None and terms:
                return [_scaled(term, product.factor) for term in terms]
        return (product,)


def _fraction(number: Any) -> Any:
    """A number as a Fraction; None where it is none or the fraction is too long."""
    # Imported here as few programs need it.
    from fractions import Fraction

    try:
        return Fraction(*number.as_integer_ratio())
    except (ValueError, OverflowError):
        return None


def _by_logarithm(node: tree.Binary) -> tree.Expression:
    """The node of exp(q*log(x)) for a node x**q."""

    def call(name: str, operand: tree.Expression) -> tree.Call:
        return tree.Call(node.span, name, node.span, None, (operand,), (), stable_expressions.MODULE)

    return call("exp", tree.Binary(node.span, "*", node.span, node.right, call("log", node.left)))


def operation_of(node: tree.SyntaxNode) -> Operation | None:
    """The operation of an expression with operands; None where the expression equals its operand."""
    if isinstance(node, tree.Name) or (isinstance(node, tree.Unary) and node.operator == "+"):
        return None
    return _operation(node)  # type: ignore[arg-type]


def _operation(node: tree.Expression) -> Operation:
    if isinstance(node, tree.Binary):
        return BINARY[node.operator]
    return table.known(node.name) if isinstance(node, tree.Call) else negative


@functools.lru_cache(_MOST_OPERATIONS)
def _is_elementwise(operation: Operation, count: int) -> bool:
    """Return whether an operation maps each real number to one real number."""
    if operation.name in COMPLEX:
        return False
    if isinstance(operation, Primitive):
        # A wrong number of arguments is an error at run time.
        needed = sum(p.default is None for p in operation.parameters)
        return operation.elementwise and needed <= count <= len(operation.parameters)
    try:
        with arrays.using_namespace(None):
            if type(operation(*[0.3] * count)) is not float:
                return False
        # Imported here as few programs need it.
        from gradcli.kinds.laurent import Laurent

        return isinstance(operation(*[Laurent.variable(0.3, 1)] * count), Kind)
    except (GradcliError, NotImplementedError, *FOREIGN):
        # This includes calls with too few arguments, which are an error at run time.
        return False


def _power_of(factors: Factors, variable: Factors) -> int:
    """The n for which a product is variable**n, or 0."""
    powers = dict(variable)
    found = {n // powers[text] if text in powers and n % powers[text] == 0 else 0 for text, n in factors}
    return found.pop() if len(found) == 1 and len(factors) == len(variable) else 0


def _scaled(a: Monomial, factor: Real) -> Monomial:
    return Monomial(factor * a.factor, a.factors)


def _combined(operator: str, a: Monomial, b: Monomial) -> Monomial | None:
    """The product that an operator makes of two products; None where the result is not a product of their factors."""
    if operator == "*" or (operator == "/" and b.factor):
        sign = 1 if operator == "*" else -1
        powers = dict(a.factors)
        for text, n in b.factors:
            powers[text] = powers.get(text, 0) + sign * n
        factor = a.factor * b.factor if sign > 0 else a.factor / b.factor
        return Monomial(factor, tuple(sorted((text, n) for text, n in powers.items() if n)))
    if operator == "**" and not b.factors and b.factor in range(1, _MOST_FACTORS) and abs(a.factor) == 1:
        n = int(b.factor)
        return Monomial(a.factor**n, tuple((text, p * n) for text, p in a.factors))
    return None


def _multiplied(factor: Real, forms: Sequence[tuple[Form, int]]) -> Form:
    """The form of a number times powers of functions, with negative powers as a denominator."""
    above = [_raised(form, n) for form, n in forms if n > 0]
    below = [_raised(form, -n) for form, n in forms if n < 0]
    if factor != 1 or not above:
        above.insert(0, ("number", factor))
    numerator, denominator = _joined(multiply, above), _joined(multiply, below) if below else None
    assert numerator is not None
    return numerator if denominator is None else (divide, (numerator, denominator))


def _joined(operation: Operation, forms: Sequence[Form | None]) -> Form | None:
    if None in forms:
        return None
    return functools.reduce(lambda a, b: (operation, (a, b)), forms)


def _raised(form: Form, n: int) -> Form:
    if form[0] == "variable":
        return "variable", form[1] ** n, n * form[2]
    return form if n == 1 else (power, (form, ("number", float(n))))


# --- the expressions that names stand for


class _Block(NamedTuple):
    """A sequence of statements, with the names around it.

    `counts` has how often each name is assigned in the enclosing function, `settled` the names that have their final
    value, and `known` the expressions that names stand for.
    """

    statements: Sequence[tree.Statement]
    counts: Mapping[str, int]
    settled: frozenset[str] = frozenset()
    known: Mapping[str, tree.Expression] = {}


def name_definitions(
    program: tree.Module, apart: Collection[str], is_plain: Callable[[tree.Expression], bool]
) -> dict[tree.SyntaxNode, tree.Expression]:
    """Map each read of a name to the plain expression that it stands for, if any.

    A name that is assigned once stands for its expression, as long as no name in that can have been reassigned. Names
    in `apart`, and names by which the program differentiates, stand for themselves.
    """
    if not any(isinstance(n, tree.Assign) for n in tree.all_nodes(program)) or resolve(program).changes_in_place:
        return {}
    apart = {*apart, *resolve(program).targets(())}
    found: dict[tree.SyntaxNode, tree.Expression] = {}
    waiting = [*_functions(program)]
    while waiting:
        waiting += _read(waiting.pop(), found, lambda name, value: name not in apart and is_plain(value))
    return found


def _functions(program: tree.Module) -> Iterator[_Block]:
    yield _Block(program.body, _counts(program.body))
    for node in tree.all_nodes(program):
        if isinstance(node, tree.Define) and isinstance(node.body, tree.Block):
            counts = _counts(node.body.statements)
            counts.update(p.name for p in node.parameters)
            settled = frozenset(p.name for p in node.parameters if counts[p.name] == 1)
            yield _Block(node.body.statements, counts, settled)


def _counts(statements: Sequence[tree.Statement]) -> Counter[str]:
    """The number of assignments of each name, not counting those inside functions."""
    found: Counter[str] = Counter()
    waiting = [*statements]
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, tree.Define):
            found[statement.name] += 1
        else:
            found.update(binders.bound_by(statement))
            waiting += [s for s in tree.children(statement) if isinstance(s, tree.Statement)]
    return found


def _read(
    block: _Block,
    found: dict[tree.SyntaxNode, tree.Expression],
    is_meant: Callable[[str, tree.Expression], bool],
) -> Iterator[_Block]:
    """Add to `found` what the names read in a block stand for, and yield the blocks inside it."""
    counts, settled, known = block.counts, block.settled, {**block.known}
    for statement in block.statements:
        found.update((name, known[name.id]) for name in _names(statement) if name.id in known)
        if isinstance(statement, (tree.If, tree.For, tree.While)):
            own = {n for n in binders.bound_by(statement) if counts[n] == 1}
            for inside in (statement.body, statement.orelse if isinstance(statement, tree.If) else ()):
                yield _Block(inside, counts, settled | own, {**known})
        elif isinstance(statement, tree.Assign):
            own = {n for n in binders.bound_by(statement) if counts[n] == 1}
            target, value = statement.targets[0], statement.value
            name = target.name if isinstance(target, tree.BoundName) else None
            settled_in = all(n.id in settled or not counts[n.id] for n in _names(value))
            if name is not None and own == {name} and settled_in and is_meant(name, value):
                known[name] = value
            settled |= own


def _names(node: tree.SyntaxNode) -> Iterator[tree.Name]:
    """The names that are read in an expression, or directly in a statement, outside of its blocks and functions."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tree.Name) and not part.module:
            yield part
        elif not isinstance(part, (tree.Lambda, tree.Comprehension, tree.Define)):
            waiting += [c for c in tree.children(part) if not isinstance(c, tree.Statement)]

"""Programs that mostly have a value: expressions by the shape that they should have, calls by signature."""

# ruff: noqa: SIM905 - columns of quoted words are hard to read

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from gradcli.primitives import table
from gradcli.primitives.operation import Operation
from gradcli.primitives.primitive import Primitive
from tests.fuzz import values
from tests.fuzz.case import Case

_OPERATIONS = [o for operations in table.subjects().values() for o in operations]
_NAMES = {o.name: (o.name, o.name, *o.aliases) for o in _OPERATIONS}
# Elementwise functions of so many operands.
_ELEMENTWISE = {
    n: [o for o in _OPERATIONS if isinstance(o, Primitive) and o.elementwise and len(o.parameters) == n] for n in (1, 2)
}
_UNARY = [*_ELEMENTWISE[1], *(table.known(n) for n in "softplus sinc logit silu square relu gelu".split())]
_REDUCTIONS = [table.known(n) for n in "sum mean prod max min var std norm logsumexp median".split()]
_PREFIXES = ("", "", "", "", "", "np.", "torch.", "math.", "jnp.", "special.", "torch.special.", "numpy.")
_LINALG = ("", "", "np.linalg.", "torch.linalg.")

# What a parameter is given, besides expressions.
_POOLS: dict[str, tuple[str, ...]] = {
    "axis": tuple("0 0 1 -1 None (0,1) [0] (0,-1) () 2 -3 1.5 True 99 x".split()),
    "axes": tuple("0 1 2 (1,0) (0,2,1) ([0],[1]) [[1],[0]] None -1 3 ()".split()),
    "keepdims": ("True", "True", "False", "1", "None"),
    "correction": tuple("0 1 2 True 0.5 -1 100 inf".split()),
    "ord": tuple("1 2 0 inf -inf 3 0.5 -1 'fro' 'nuc' nan 1e300 -0.0 x".split()),
    "decimals": tuple("0 1 -1 3 400 -400 1.5".split()),
    "k": tuple("0 1 -1 5 -5 0.5 10000000000".split()),
    "n": tuple("0 1 2 3 -1 -2 5 1.5 20 1e9 x".split()),
    "m": tuple("2 3 None 0 -1".split()),
    "shape": tuple("2 (2,) (3,) (2,3) -1 (-1,) (1,-1) (-1,1) (3,3) () 0 (0,) (1,3) (2,1,3) 9 (9,) -2 2.5 1e18 (2,-1,-1) [2,2]".split()),
    "repeats": tuple("2 1 3 0 (2,1) [1,2] (1,1,2) -1 1.5 1e9".split()),
    "shift": tuple("1 -1 2 0 (1,1) 1e18 0.5 99".split()),
    "source": tuple("0 1 -1 (0,1) 5".split()),
    "destination": tuple("0 -1 1 (1,0) 5".split()),
    "indices": tuple("0 -1 [0] [0,1] [1,0,1] [[0,1],[1,0]] [-1] [5] [] 0.5 [0.5] x>0 argmax(x)".split()),
    "num": tuple("2 3 5 1 0 -1 2.5 1e12".split()),
    "seed": tuple("0 1 7 -1 1e30 0.5".split()),
    "subscripts": tuple(
        "'i,i->' 'i,i' 'ij,jk->ik' 'ij->ji' 'ii' 'ii->i' 'ij,j->i' 'i,j->ij' '...i->...' '...ij,...jk->...ik' 'i->' 'i,->i' ',->'"
        " 'ij,ij' 'ij,kl->' 'i,i,i->i' '' 'i->ii' 'ij,jk' 'é->é' 'i ,j' 'i..->' 'a->b'".split()
    ),
    "negative_slope": tuple("0.01 0 1 -1 x inf".split()),
    "alpha": tuple("1 0.5 0 -1 x".split()),
    "start": tuple("0 1 3 -2 5 0.5 x".split()),
    "stop": tuple("3 5 0 None 2.5 x".split()),
    "step": tuple("1 2 -1 0.5 0 x".split()),
    "condition": ("x > 0", "x > 1", "x == x", "True", "x", "0", "not x", "x < 1 and x > 0", "[True, False]"),
    "value": tuple("0 1 x nan 2.5 [1,2]".split()),
}  # fmt: skip
_SPELLINGS = {
    "axis": ("axis", "axis", "dim"), "axes": ("axes", "dims"), "keepdims": ("keepdims", "keepdim"),
    "correction": ("correction", "ddof", "unbiased"), "min": ("min", "a_min"), "max": ("max", "a_max"),
    "num": ("num", "steps"), "shift": ("shift", "shifts"), "k": ("k", "diagonal", "offset"), "ord": ("ord", "p"),
    "value": ("value", "fill_value"),
}  # fmt: skip
# Parameters that want a matrix, or a list of tensors.
_MATRICES = frozenset({"A", "B"})
_CONSTANTS = tuple("pi e tau inf nan 0 1 2 3 0.5 1.5 -1 1e-3 10 1e300 5e-324 1_000 .5 2. 170 0.1".split())
# Values that no name has a part in, which are no Tensors then.
_WITHOUT_GRADIENT = tuple(
    "arange(3) arange(2) ones(2) zeros((2,2)) ones((3,1)) isfinite(arange(2)) isnan([1,nan]) [True,False] [True] (arange(3)>1) eye(2) eye(3)"
    " (eye(2)>0) randn(3,seed=1) [] zeros(0) zeros((0,2)) ones((1,2)) detach(x) x.shape round(eye(2)) argmax([1,2])".split()
)
_PLAIN_CONSTANTS = tuple("pi e 2 3 0.5 1.5 0.1 1 10 .25".split())


class Writer:
    """Writes one program. Shapes are kinds: "s" a number, "v" a vector, "m" a square matrix."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.size = rng.choice((2, 2, 3, 3, 1))
        self.policy = rng.choice(values.POLICIES)
        self.wild = rng.choice((0.0, 0.02, 0.1, 0.3))
        self.names: dict[str, list[str]] = {"s": ["x", "y", "q"], "v": ["v", "w"], "m": ["A", "M"]}
        if rng.random() < 0.5:
            self.names = {"s": ["x", "q"], "v": [], "m": []}
        # The program's own functions, and how many numbers each takes.
        self.functions: list[tuple[str, int]] = []
        self.counter = 0

    def case(self) -> Case:
        rng = self.rng
        statements = [self.statement(2) for _ in range(rng.choice((0, 0, 0, 0, 1, 2)))]
        depth = rng.choice((1, 1, 2, 2, 2, 3, 3))
        statements.append(self.expression(rng.choice("sssvm"), depth))
        separator = rng.choice(("; ", "; ", "\n", ";", "\r\n", " # a note\n"))
        program = separator.join(statements)
        return Case(program, bindings(program, rng, self.policy, self.size), rng.getrandbits(32))

    # Expressions

    def expression(self, kind: str, depth: int) -> str:
        rng = self.rng
        if rng.random() < self.wild:
            if rng.random() < 0.5:
                return self.anything(depth)
            kind = rng.choice("svm")
        if depth <= 0:
            return self.leaf(kind)
        return rng.choice(_GROWTH[kind])(self, depth - 1)

    def leaf(self, kind: str) -> str:
        rng = self.rng
        if self.names[kind] and rng.random() < 0.8:
            return rng.choice(self.names[kind])
        if kind == "s":
            return rng.choice(_PLAIN_CONSTANTS if self.policy == "plain" else _CONSTANTS)
        if rng.random() < 0.1:
            return rng.choice(_WITHOUT_GRADIENT)
        if kind == "v":
            return f"[{', '.join(self.leaf('s') for _ in range(self.size))}]"
        return rng.choice(
            (f"eye({self.size})", f"outer({self.leaf('v')}, {self.leaf('v')})", f"diag({self.leaf('v')})")
        )

    def unary(self, kind: str, depth: int) -> str:
        operation = self.rng.choice(_UNARY)
        inner = self.expression(kind, depth)
        name = self.rng.choice(_NAMES[operation.name])
        if self.rng.random() < 0.1:
            return f"({inner}).{name}()"
        return f"{self.rng.choice(_PREFIXES)}{name}({inner})"

    def binary(self, kind: str, depth: int) -> str:
        rng = self.rng
        left, right = self.expression(kind, depth), self.expression(rng.choice((kind, kind, "s")), depth)
        if rng.random() < 0.25:
            return f"{rng.choice(_NAMES[rng.choice(_ELEMENTWISE[2]).name])}({left}, {right})"
        operator = rng.choice(("+", "-", "*", "/", "*", "+", "**", "//", "%", "^"))
        if rng.random() < 0.5:
            left = f"({left})"
        return f"{left} {operator} ({right})" if rng.random() < 0.5 else f"{left}{operator}{right}"

    def conditional(self, kind: str, depth: int) -> str:
        rng = self.rng
        test, a, b = self.comparison(depth), self.expression(kind, depth), self.expression(kind, depth)
        return rng.choice((f"({a} if {test} else {b})", f"where({test}, {a}, {b})", f"clip({a}, {b}, {b} + 1)"))

    def comparison(self, depth: int) -> str:
        rng = self.rng
        left, right = self.expression("s", depth - 1), self.expression("s", depth - 1)
        text = f"{left} {rng.choice(('<', '<=', '>', '>=', '==', '!='))} {right}"
        if rng.random() < 0.15:
            text = rng.choice((f"not {text}", f"{text} < {self.leaf('s')}", f"{text} or {self.leaf('s')} > 0"))
        return text

    def call_own(self, kind: str, depth: int) -> str:
        if not self.functions:
            return self.binary(kind, depth)
        name, arity = self.rng.choice(self.functions)
        return f"{name}({', '.join(self.expression(kind, depth - 1) for _ in range(arity))})"

    def reduction(self, depth: int) -> str:
        rng = self.rng
        operation = rng.choice(_REDUCTIONS)
        inner = self.expression(rng.choice("vvm"), depth)
        more = self.keywords(operation, 0.15, skip=1)
        if rng.random() < 0.2:
            return f"({inner}).{operation.name}({', '.join(more)})"
        return f"{rng.choice(_PREFIXES)}{rng.choice(_NAMES[operation.name])}({', '.join([inner, *more])})"

    def along_an_axis(self, depth: int) -> str:
        operation = self.rng.choice(_REDUCTIONS)
        return f"{operation.name}({self.expression('m', depth)}, axis={self.rng.choice(('0', '1', '-1'))})"

    def of_matrix(self, depth: int) -> str:
        rng = self.rng
        matrix = self.expression("m", depth)
        if rng.random() < 0.4:
            matrix = f"({matrix} @ ({matrix}).T + eye({self.size}))"
        name = rng.choice(("det", "trace", "logdet", "norm", "sum", "max"))
        return f"{rng.choice(_LINALG) if name in ('det', 'norm') else ''}{name}({matrix})"

    def element(self, depth: int) -> str:
        rng = self.rng
        if rng.random() < 0.7:
            return f"({self.expression('v', depth)})[{rng.choice(('0', '-1', '0', 'argmax(' + self.leaf('v') + ')'))}]"
        return f"({self.expression('m', depth)})[{rng.choice(('0, 0', '-1, 0', '0][0', '(0, -1)'))}]"

    def inside(self, depth: int) -> str:
        rng = self.rng
        name = rng.choice(self.names["s"])
        order = rng.choice(("", "", "", ", 2", ", n=2", ", 3", ", 0"))
        return f"diff({self.expression('s', depth)}, {name}{order})"

    def part(self, depth: int) -> str:
        rng = self.rng
        if rng.random() < 0.4:
            return f"({self.expression('m', depth)})[{rng.choice(('0', '-1', ':, 0', '..., -1', '0, :', ':, -1', '0, ...'))}]"
        key = rng.choice(("::-1", ":", "...", "[0] * 1", "0:99", "None, :][0", ":, None][:, 0", "[-1, 0]", "v > 0"))
        return f"({self.expression('v', depth)})[{key}]"

    def vector(self, depth: int) -> str:
        rng = self.rng
        form = rng.choice(
            (
                "softmax({v})", "log_softmax({v})", "cumsum({v})", "cumprod({v})", "sort({v})", "flip({v})", "roll({v}, 1)",
                "{m} @ {v}", "{v} @ {m}", "solve({m}, {v})", "diagonal({m})", "diag({m})", "{m}.sum(axis=0)", "{m}.mean(dim=1)",
                "svdvals({m})", "eigvalsh({m} + ({m}).T)", "jacobian({v}, {n}) * 1", "where({v} > 0, {v}, {s})",
                "concat([{v}, {v}])[:{k}]", "stack([{s}, {s}])", "squeeze(expand_dims({v}, 0))", "ravel({m})[:{k}]",
                "linspace({s}, {s}, {k})", "arange({k})", "einsum('ij,j->i', {m}, {v})", "take({v}, [0])", "full(({k},), {s})",
                "broadcast_to({s}, ({k},))", "tile({s}, {k})", "repeat({s}, {k})", "tensordot({m}, {v}, 1)", "maximum({v}, {v})",
            )
        )  # fmt: skip
        return self.fill(form, depth)

    def matrix(self, depth: int) -> str:
        form = self.rng.choice(
            (
                "{m}.T", "{m} @ {m}", "inv({m})", "outer({v}, {v})", "diag({v})", "tril({m})", "triu({m}, 1)", "matrix_power({m}, 2)",
                "matrix_exp({m})", "cholesky({m} @ ({m}).T + eye({k}))", "qr({m})[0]", "qr({m})[1]", "eigh({m} + ({m}).T)[1]",
                "pinv({m})", "stack([{v}, {v}])", "kron({m}, {m})[:{k}, :{k}]", "hessian({s}, {n}) * {m}", "jacobian({v}, {w})",
                "reshape({m}, (-1, {k}))", "transpose({m}, 0, 1)", "flip({m}, axis=0)", "{m} * {v}", "{v}[:, None] * {m}",
                "einsum('ij,jk->ik', {m}, {m})", "solve({m}, {m})", "softmax({m}, axis=0)", "cumsum({m}, axis=1)", "sort({m}, axis=0)",
                "permute({m}, (1, 0))", "moveaxis({m}, 0, 1)", "vstack([{v}] * 1)", "swapaxes({m}, 0, -1)", "zeros_like({m})",
                "roll({m}, 1, axis=0)", "concat([{m}, {m}], axis=0)[:{k}]", "expand_dims({v}, 1) * {v}", "randn({k}, {k}, seed=1)",
                "{m}.mT", "cross({m}, {m})", "full_like({m}, {s})", "ones(({k}, {k})) * {s}", "hessian(sum({v}), {w})",
            )
        )  # fmt: skip
        return self.fill(form, depth)

    def fill(self, form: str, depth: int) -> str:
        """A form with expressions for its letters."""
        vectors = self.names["v"] or self.names["s"]
        return form.format_map(_Parts(self, depth, {"n": self.names["s"][0], "w": vectors[0], "k": str(self.size)}))

    def anything(self, depth: int) -> str:
        """A call of any function of the table with whatever fits its parameters, or does not."""
        rng = self.rng
        operation = rng.choice(_OPERATIONS)
        prefix = rng.choice(_PREFIXES) if rng.random() < 0.3 else ""
        arguments = self.arguments(operation, depth)
        if arguments and "=" not in arguments[0] and rng.random() < 0.15:
            return f"({arguments[0]}).{rng.choice(_NAMES[operation.name])}({', '.join(arguments[1:])})"
        return f"{prefix}{rng.choice(_NAMES[operation.name])}({', '.join(arguments)})"

    def arguments(self, operation: Operation, depth: int) -> list[str]:
        rng = self.rng
        positional: list[str] = []
        for parameter in operation.parameters:
            if parameter.variadic:
                positional += [self.argument(parameter.name, depth) for _ in range(rng.choice((1, 1, 2, 3)))]
            elif parameter.default is None and parameter.name != "seed":
                positional.append(self.argument(parameter.name, depth))
        if operation.parameters and operation.parameters[-1].name == "seed":
            positional.append(f"seed={self.argument('seed', 0)}")
        optional = self.keywords(operation, 0.4, skip=0)
        if optional and rng.random() < 0.3:
            optional[0] = optional[0].partition("=")[2]
        if rng.random() < 0.02:
            positional = positional[1:]
        return positional + optional

    def keywords(self, operation: Operation, chance: float, skip: int) -> list[str]:
        rng = self.rng
        return [
            f"{rng.choice(_SPELLINGS.get(p.name, (p.name,)))}={self.argument(p.name, 0)}"
            for p in operation.parameters[skip:]
            if p.default is not None and rng.random() < chance
        ]

    def argument(self, name: str, depth: int) -> str:
        rng = self.rng
        if name == "tensors":
            items = ", ".join(self.expression(rng.choice("vvm"), depth - 2) for _ in range(rng.choice((1, 2, 2, 3))))
            return rng.choice((f"[{items}]", f"[{items}]", f"({items},)", items))
        if name in _MATRICES:
            return self.expression("m", depth - 1)
        if name in _POOLS and rng.random() < 0.93:
            # Those that come first make more sense.
            pool = _POOLS[name]
            return pool[min(rng.randrange(len(pool)), rng.randrange(len(pool)))]
        return self.expression(rng.choice("sssvvm"), depth - 1)

    # Statements

    def statement(self, depth: int) -> str:
        rng = self.rng
        roll = rng.random()
        if roll < 0.45:
            kind = rng.choice("ssvm")
            text = self.expression(kind, 2)
            name = rng.choice(("a", "b", "σ", "theta_1", "x", "y"))
            self.names[kind] = [*self.names[kind], name]
            return f"{name} = {text}"
        if roll < 0.65:
            return self.definition()
        if roll < 0.7:
            a, b = self.expression("s", 1), self.expression("s", 1)
            self.names["s"] = [*self.names["s"], "a", "b"]
            return f"a, b = {a}, {b}"
        if roll < 0.85 and depth:
            return self.loop(depth)
        return f"if {self.comparison(1)} {self.block(depth)}" + rng.choice(
            ("", f" else {self.block(depth)}", f"\nelse if {self.comparison(1)} {self.block(depth)} else {{ }}")
        )

    def loop(self, depth: int) -> str:
        rng = self.rng
        if rng.random() < 0.4:
            return self.long_loop()
        if rng.random() < 0.7:
            items = rng.choice(
                ("range(2)", "range(3)", "range(1, 4)", "[1, 2]", "range(0)", *self.names["v"], *self.names["m"])
            )
            return f"for i in {items} {self.block(depth)}"
        self.counter += 1
        name = f"n{self.counter}"
        return f"{name} = 0; while {name} < {rng.choice('1234')} {self.block(depth, f'{name} = {name} + 1')}"

    def long_loop(self) -> str:
        """A loop of enough rounds to be run as a whole."""
        rng = self.rng
        a, b = rng.choice(self.names["s"]), rng.choice(self.names["s"])
        # Sums and products of few names neither overflow nor end in nan as most functions do, repeated.
        change = rng.choice(
            (
                f"{a} = {a}*0.9 + {self.expression('s', 1)}/9",
                f"{a}, {b} = {b}*0.9, sin({a})",
                f"if {self.comparison(1)} {{ {a} = {a}*0.9 }} else {{ {b} = {self.expression('s', 1)} }}",
                f"{a} = where({self.comparison(1)}, {a}*0.9, {self.expression('s', 1)}); {b} = {b} + {a}/9",
                f"p[0] = p[1]*0.9; p[1] = {self.expression('s', 1)}/9; {a} = p[0]",
                f"{a} += 0.1*{b}; if {self.comparison(1)} {{ {rng.choice(('break', 'continue'))} }}; {b} -= 0.1*{a}",
            )
        )
        before = f"p = [{a}, {b}]; " if "p[" in change else ""
        self.counter += 1
        name = f"n{self.counter}"
        following = f"{a}*0.9 + {self.expression('s', 1)}/9"
        return before + rng.choice(
            (
                f"for i in range({rng.choice(('14', '15', '2, 16', '20, 3, -1'))}) {{ {change} }}",
                f"for i in range(15) {{ for j in range({rng.choice('123')}) {{ {change} }} }}",
                f"{name} = 0; while {name} < 15 {{ {name} = {name} + 1; {change} }}",
                f"{name} = 0; while True {{ {name} += 1; if {name} > 14 {{ break }}; {change} }}",
                f"{a} = sum([{self.expression('s', 1)}*i for i in range(15)])",
                f"import jax; {a} = jax.lax.fori_loop(0, 15, lambda i, {a}: {following}, {b})",
                f"import jax; {a}, t = jax.lax.scan(lambda {a}, e: ({following}, {a}*e), {b}, arange(15)); {b} = t[7]",
                self.tail_call(a, b, following, change),
            )
        )

    def tail_call(self, a: str, b: str, following: str, change: str) -> str:
        """A function that calls itself last, and a call of it."""
        rng = self.rng
        name = f"again{self.counter}"
        ends = rng.choice(("n < 1", f"n < 1 or {self.comparison(1)}"))
        other = b if b != a else "t"
        body = f"if {ends} {{ return {a} }}; for i in range(2) {{ {change} }}; return {name}(n - 1, {a}, {other})"
        return rng.choice(
            (
                f"{name}(n, {a}) = {a} if {ends} else {name}(n - 1, {following}); {a} = {name}(15, {b})",
                f"{name}({a}, n=15) = {a} if {ends} else {name}(n=n - 1, {a}={following}); {a} = {name}({b})",
                f"def {name}(n, {a}, {other}) {{ {body} }}\n{a} = {name}(15, {a}, {b})",
            )
        )

    def block(self, depth: int, last: str = "") -> str:
        rng = self.rng
        name = rng.choice(self.names["s"])
        texts = [f"{name} = {self.expression('s', 1)}"] if rng.random() < 0.9 else []
        if depth > 1 and rng.random() < 0.2:
            texts.append(self.statement(depth - 1))
        return f"{{ {'; '.join([*texts, last] if last else texts)} }}"

    def definition(self) -> str:
        rng = self.rng
        name = f"f{len(self.functions)}"
        parameters = rng.choice((["u"], ["u", "t"], ["x"]))
        outer = self.names
        self.names = {"s": [*parameters, *parameters, "x"], "v": [], "m": []}
        text = f"{name}({', '.join(parameters)}) = {self.expression('s', 2)}"
        if rng.random() < 0.25:
            self.names["s"].append("g")
            gradients = ", ".join(f"g*({self.expression('s', 1)})" for _ in parameters)
            text += rng.choice((" ", "\n")) + f"backward(g) = {gradients}"
        self.names = outer
        self.functions.append((name, len(parameters)))
        return text


class _Parts(dict[str, str]):
    """The letters of a form: each occurrence is an expression of its own."""

    def __init__(self, writer: Writer, depth: int, fixed: dict[str, str]) -> None:
        super().__init__(fixed)
        self.writer = writer
        self.depth = depth

    def __missing__(self, letter: str) -> str:
        text = self.writer.expression(letter, self.depth)
        return text if text.isidentifier() or letter == "s" else f"({text})"


_Growth = Callable[[Writer, int], str]


def _of(method: Callable[[Writer, str, int], str], kind: str) -> _Growth:
    return lambda writer, depth: method(writer, kind, depth)


_ANY_KIND: tuple[tuple[int, Any], ...] = (
    (5, Writer.unary),
    (6, Writer.binary),
    (1, Writer.conditional),
    (1, Writer.call_own),
)
_OWN: dict[str, tuple[tuple[int, _Growth], ...]] = {
    "s": ((3, Writer.reduction), (1, Writer.of_matrix), (2, Writer.element), (1, Writer.inside)),
    "v": ((5, Writer.vector), (2, Writer.part), (1, Writer.along_an_axis)),
    "m": ((6, Writer.matrix),),
}
_GROWTH: dict[str, list[_Growth]] = {
    kind: [
        *(grow for weight, grow in own for _ in range(weight)),
        *(_of(method, kind) for weight, method in _ANY_KIND for _ in range(weight)),
    ]
    for kind, own in _OWN.items()
}


def bindings(program: str, rng: Random, policy: str, size: int) -> dict[str, Any]:
    """Values for those of the usual names that a program seems to read."""
    found = {}
    for name, shape in _SHAPES.items():
        if name in program:
            dimensions = (size,) * shape
            if rng.random() < 0.02:
                dimensions = values.any_shape(rng)
            found[name] = values.tensor(rng, policy, dimensions)
    return found


_SHAPES = {"x": 0, "y": 0, "q": 0, "v": 1, "w": 1, "A": 2, "M": 2}

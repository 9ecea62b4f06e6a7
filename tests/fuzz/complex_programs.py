"""Random programs of complex numbers, as text and as calls of another library: of mpmath, or of PyTorch.

A program is written as a tree, so that its value is known without the parser and the table of functions.
"""

# ruff: noqa: SIM905 - columns of quoted words are hard to read

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from gradcli.language.names import scope
from gradcli.language.syntax import parse

# A node: a word, then its parts. Kinds of expressions: "c" complex and "r" real numbers, "v" complex vectors, "m" matrices.
Node = tuple[Any, ...]
Values = dict[str, Any]

SIZE = 2
# Analytic functions of one number, by their names in programs.
ANALYTIC = tuple(
    """exp log sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh reciprocal rsqrt square expm1 log1p log2
    log10 exp2 sigmoid""".split()
)
# Analytic functions that PyTorch has for real numbers alone.
SPECIAL = tuple("gamma lgamma digamma erf erfc erfi j0 j1 i0 expi lambertw".split())
_REAL_PARTS = ("real", "imag", "abs", "angle", "square_modulus")
_OF_REAL = ("exp", "sin", "cos", "tanh", "atan", "square", "sigmoid")


class ComplexProgram(NamedTuple):
    """Statements, the expression that is the value, and the numbers of the inputs."""

    statements: tuple[Node, ...]
    value: Node
    kind: str
    inputs: Mapping[str, Any]
    # Whether it has analytic functions of its complex inputs alone.
    analytic: bool = False

    def text(self, readout: bool = False) -> str:
        """The program in the language; with `readout`, of a real number that both parts of the value have a share in."""
        value = write(self.value)
        if readout:
            value = f"sum({value})" if self.kind in "vm" else value
            value = f"real((0.8 - 0.6j)*({value}))"
        return "; ".join([*map(write, self.statements), value])

    def calls(self, name: str) -> bool:
        """Whether a word is among those of the program."""
        return any(name in node for node in self.nodes())

    def nodes(self) -> list[Node]:
        """The nodes, of which none stands behind those that it is part of."""
        found: list[Any] = [*self.statements, self.value]
        for node in found:
            found.extend(part for part in _flat(node) if isinstance(part, tuple))
        return found

    def meaning(self, library: Library, inputs: Mapping[str, Any]) -> Any:
        """The value by the functions of a library, for inputs that are numbers and arrays of it."""
        values = dict(inputs)
        for statement in self.statements:
            _run(statement, values, library)
        return _value(self.value, values, library)


def _flat(node: Any) -> list[Any]:
    parts: list[Any] = []
    for part in node[1:]:
        parts.extend(part if isinstance(part, list) else [part])
    return parts


class Library(NamedTuple):
    """A library's functions by the words of nodes, how it makes a number of a Python one, and a vector of numbers."""

    functions: Mapping[str, Callable[..., Any]]
    number: Callable[[complex], Any]
    vector: Callable[[Sequence[Any]], Any]


# --- text


_OPERATORS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**", "matmul": "@"}
_FORMS = {
    "square_modulus": "abs({})**2", "of_parts": "complex({}, {})", "of_angle": "polar({}, {})", "vdot": "np.vdot({}, {})",
    "transpose": "({}).T", "adjoint": "({}).mH", "element": "({})[0]", "last": "({})[-1]", "row": "({})[1]",
    "negative": "-({})", "conj_method": "({}).conj()", "outer": "outer({}, {})", "fft": "np.fft.fft({})",
    "cumsum": "cumsum({}, 0)", "einsum": "einsum('ij,j->i', {}, {})", "mean": "mean({})", "ifft": "np.fft.ifft({})",
    "euler": "exp(1j*({}))", "frobenius": "norm({})", "if_else": "where({} > {}, {}, {})",
}  # fmt: skip


def write(node: Node) -> str:
    """A node as text."""
    word, *parts = node
    match word:
        case "number":
            return str(parts[0])
        case "name":
            return str(parts[0])
        case "vector":
            return f"[{', '.join(map(write, parts[0]))}]"
        case "set":
            return f"{parts[0]} = {write(parts[1])}"
        case "for":
            return f"for k in range({parts[0]}) {{ {'; '.join(map(write, parts[1]))} }}"
        case "if":
            left, right, *blocks = parts
            bodies = ["; ".join(map(write, block)) for block in blocks]
            return f"if {write(left)} > {write(right)} {{ {bodies[0]} }} else {{ {bodies[1]} }}"
    if word in _OPERATORS:
        left, right = map(write, parts)
        return f"({left}) {_OPERATORS[word]} ({right})"
    if word in _FORMS:
        return _FORMS[word].format(*map(write, parts))
    return f"{word}({', '.join(map(write, parts))})"


# --- meaning


def _run(statement: Node, values: Values, library: Library) -> None:
    word, *parts = statement
    if word == "set":
        values[parts[0]] = _value(parts[1], values, library)
    elif word == "for":
        for k in range(parts[0]):
            values["k"] = library.number(float(k))
            for inner in parts[1]:
                _run(inner, values, library)
    else:
        left, right, then, otherwise = parts
        for inner in then if _value(left, values, library) > _value(right, values, library) else otherwise:
            _run(inner, values, library)


def _value(node: Node, values: Values, library: Library) -> Any:
    word, *parts = node
    if word == "number":
        return library.number(parts[1])
    if word == "name":
        return values[parts[0]]
    if word == "vector":
        return library.vector([_value(part, values, library) for part in parts[0]])
    return library.functions[word](*(_value(part, values, library) for part in parts))


# --- the writer


class ComplexWriter:
    """Writes one program. With `special`, it may call functions that PyTorch lacks for complex numbers."""

    def __init__(self, rng: Random, special: bool = True) -> None:
        self.rng = rng
        self.functions = ANALYTIC + (SPECIAL if special else ())
        self.analytic = rng.random() < 0.4
        tensors = rng.random() < 0.35
        self.names = {"c": ["z", "w", "z"], "r": ["x", "y"], "v": ["v"] * tensors, "m": ["A"] * tensors}
        self.tensors = tensors

    def program(self) -> ComplexProgram:
        rng = self.rng
        statements = [self.statement() for _ in range(rng.choice((0, 0, 1, 1, 2)))]
        kind = rng.choice("ccccccrrvm" if self.tensors else "ccccr")
        value = self.expression("c" if self.analytic and kind == "r" else kind, rng.choice((2, 2, 3)))
        kind = "c" if self.analytic and kind == "r" else kind
        found = ComplexProgram(tuple(statements), value, kind, {}, self.analytic)
        read = scope.free_names(parse(found.text()))
        inputs = {name: draw(rng) for name, draw in _INPUTS.items() if name in read}
        return found._replace(inputs=inputs)

    def expression(self, kind: str, depth: int) -> Node:
        if depth <= 0:
            return self.leaf(kind)
        grow = {"c": self.complex_number, "r": self.real_number, "v": self.vector, "m": self.matrix}
        return grow[kind](depth - 1)

    def leaf(self, kind: str) -> Node:
        rng = self.rng
        if kind == "v" and not self.names["v"]:
            return ("vector", [self.leaf("c") for _ in range(SIZE)])
        if rng.random() < (0.8 if kind in "cr" else 1.0):
            return ("name", rng.choice(self.names[kind]))
        if kind == "r":
            return _number(round(rng.uniform(0.2, 3.0), 2))
        # Real numbers would give nan where complex ones have a value.
        return _number(rng.choice((1j, 2j, -0.5j, 1 + 0.5j, -2 + 1j)))

    def complex_number(self, depth: int) -> Node:
        rng = self.rng
        roll = rng.random()
        if roll < 0.36:
            return (rng.choice(self.functions), self.expression("c", depth))
        if roll < 0.72:
            word = rng.choice(("add", "subtract", "multiply", "multiply", "divide", "power"))
            right = self.expression("c", depth)
            if word == "power" and rng.random() < 0.6:
                exponent = _number(rng.choice((2.0, 3.0, -1.0, 0.5, -2.0, 1.5, 1j)))
                return (word, self.expression("c", depth), exponent)
            return (word, self.expression(rng.choice("cccr"), depth), right)
        if self.tensors and roll < 0.85:
            return self.number_of_tensor(depth)
        if self.analytic:
            return rng.choice((("negative", self.expression("c", depth)), ("euler", self.expression("c", depth))))
        if roll < 0.91:
            return (rng.choice(("conj", "conj_method")), self.expression("c", depth))
        if roll < 0.95:
            word = rng.choice(("of_parts", "of_angle"))
            return (word, self.expression("r", depth), self.expression("r", depth))
        if roll < 0.98:
            return ("if_else", *(self.expression(kind, depth - 1) for kind in "rrcc"))
        return ("add", self.expression("c", depth), ("multiply", _number(1j), self.expression("r", depth)))

    def number_of_tensor(self, depth: int) -> Node:
        rng = self.rng
        words = ["sum", "det", "trace", "element", "prod", "matmul", "mean", "last"] + ["vdot"] * (not self.analytic)
        word = rng.choice(words)
        if word in ("det", "trace"):
            return (word, self.expression("m", depth))
        if word in ("matmul", "vdot"):
            return (word, self.expression("v", depth), self.expression("v", depth))
        if word in ("sum", "mean"):
            return (word, self.expression(rng.choice("vm"), depth))
        return (word, self.expression("v", depth))

    def real_number(self, depth: int) -> Node:
        rng = self.rng
        roll = rng.random()
        if self.analytic or roll < 0.3:
            if rng.random() < 0.5:
                return (rng.choice(_OF_REAL), self.expression("r", depth))
            word = rng.choice(("add", "subtract", "multiply"))
            return (word, self.expression("r", depth), self.expression("r", depth))
        if self.tensors and roll < 0.45:
            return ("frobenius", self.expression(rng.choice("vm"), depth))
        return (rng.choice(_REAL_PARTS), self.expression("c", depth))

    def vector(self, depth: int) -> Node:
        rng = self.rng
        if not self.names["m"] or rng.random() < 0.25:
            return ("vector", [self.expression("c", depth) for _ in range(SIZE)])
        roll = rng.random()
        if roll < 0.3:
            return self.elementwise("v", depth)
        if roll < 0.6:
            return (rng.choice(("matmul", "solve", "einsum")), self.expression("m", depth), self.expression("v", depth))
        if roll < 0.8:
            return (rng.choice(("fft", "ifft", "cumsum")), self.expression("v", depth))
        return ("row", self.expression("m", depth))

    def matrix(self, depth: int) -> Node:
        rng = self.rng
        roll = rng.random()
        if roll < 0.35:
            return self.elementwise("m", depth)
        if roll < 0.6:
            word = rng.choice(("matmul", "matmul", "outer"))
            kind = "v" if word == "outer" else "m"
            return (word, self.expression(kind, depth), self.expression(kind, depth))
        return (
            rng.choice(("inv", "transpose", "transpose" if self.analytic else "adjoint")),
            self.expression("m", depth),
        )

    def elementwise(self, kind: str, depth: int) -> Node:
        rng = self.rng
        if rng.random() < 0.4:
            return (rng.choice(self.functions), self.expression(kind, depth))
        if not self.analytic and rng.random() < 0.2:
            return ("conj", self.expression(kind, depth))
        word = rng.choice(("add", "subtract", "multiply", "divide"))
        return (word, self.expression(kind, depth), self.expression(rng.choice((kind, "c")), depth))

    def statement(self) -> Node:
        rng = self.rng
        roll = rng.random()
        if roll < 0.4:
            kind = rng.choice("ccr") if not self.analytic else "c"
            name = {"c": rng.choice("za"), "r": "b"}[kind]
            value = self.expression(kind, 2)
            if name not in self.names[kind]:
                self.names[kind].append(name)
            return ("set", name, value)
        if roll < 0.7:
            name = rng.choice("zw")
            factor = rng.choice((_number(0.5), _number(0.3j), ("name", "x")))
            body = rng.choice(("add", "multiply", "subtract"))
            inner = ("set", name, (body, ("multiply", factor, self.expression("c", 1)), ("name", rng.choice("zw"))))
            if rng.random() < 0.5:
                return ("for", rng.choice((1, 2, 3)), [inner])
            # Loops of many rounds have damped operations and a branch, so that the numbers of most programs stay bounded.
            bounded = ("set", name, ("add", ("multiply", _number(0.3j), self.expression("c", 2)), self.leaf("c")))
            part = (rng.choice(("real", "imag", "abs")), ("name", name))
            damped = [("set", name, ("multiply", _number(0.5), ("name", name)))]
            branch = ("if", part, _number(1.0), damped, [("set", name, ("add", ("name", name), self.leaf("c")))])
            return ("for", rng.choice((15, 25)), [bounded, inner] if rng.random() < 0.7 else [bounded, branch])
        part = rng.choice(("real", "imag", "abs"))
        name = rng.choice("zw")
        bodies = [[("set", name, self.expression("c", 2))] for _ in range(2)]
        return ("if", (part, self.expression("c", 1)), self.leaf("r"), *bodies)


def _number(value: complex) -> Node:
    """As it is written in programs, where a sign or a sum stands in parentheses."""
    text = str(value) if isinstance(value, float) or value.real else f"{value.imag}j"
    return ("number", f"({text})" if text.startswith("-") else text, value)


def _complex(rng: Random) -> complex:
    return complex(round(rng.gauss(0.0, 1.2), 3), round(rng.gauss(0.0, 1.2), 3))


def _array(*shape: int) -> Callable[[Random], Any]:
    return lambda rng: np.array([_complex(rng) for _ in range(int(np.prod(shape)))]).reshape(shape)


_INPUTS: dict[str, Callable[[Random], Any]] = {
    "z": _complex,
    "w": _complex,
    "x": lambda rng: round(rng.uniform(0.2, 2.0), 3),
    "y": lambda rng: round(rng.gauss(0.0, 1.5), 3),
    "v": _array(SIZE),
    "A": _array(SIZE, SIZE),
}


def complex_program(seed: int, i: int, special: bool = True) -> ComplexProgram:
    """A program with inputs that depends on `seed` and `i` alone."""
    rng = Random(f"complex/{seed}/{i}/{special}")
    while not (found := ComplexWriter(rng, special).program()).inputs:
        pass
    return found

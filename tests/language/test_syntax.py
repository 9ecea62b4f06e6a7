"""Tests parsing: every form of the language, spans, syntax errors, limits."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import lark
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradcli.errors import ProgramSyntaxError, Span
from gradcli.language.syntax import (
    MAX_LENGTH,
    MAX_NESTING,
    generate,
    lexer,
    parse,
    parse_expression,
    parse_tables,
    statement_spans,
    tree,
)
from gradcli.language.syntax import parser as syntax_parser
from gradcli.language.syntax.foreign_keywords import FOREIGN_WORDS
from tests.strategies import expressions, programs


def show(node: Any) -> str:
    """A tree as an S-expression."""
    match node:
        case None:
            return "_"
        case tree.Module(_, _, body):
            return "; ".join(map(show, body))
        case tree.Number(_, value):
            return f"{value:g}"
        case tree.String(_, value):
            return repr(value)
        case tree.Constant(_, value):
            return str(value)
        case tree.Name(_, name, module):
            return f"{module}:{name}" if module else str(name)
        case tree.BoundName(_, name):
            return str(name)
        case tree.TargetList(_, targets):
            return f"({' '.join(map(show, targets))})"
        case tree.Parameter(_, name, default, keyword_only):
            return f"{'*' * keyword_only}{name}" + (f"={show(default)}" if default is not None else "")
        case tree.Lambda(_, parameters, body):
            return f"(lambda {' '.join([*map(show, parameters), show(body)])})"
        case tree.Comprehension(_, element, clauses):
            return f"[{show(element)} {' '.join(map(show, clauses))}]"
        case tree.Clause(_, target, iterable, conditions):
            return " ".join([f"for {show(target)} {show(iterable)}", *(f"if {show(c)}" for c in conditions)])
        case tree.Factorial(_, operand):
            return f"(! {show(operand)})"
        case tree.NoneTest(_, operand, negated):
            return f"(is{' not' * negated} None {show(operand)})"
        case tree.Apply(_, function, arguments, keywords):
            return f"({' '.join(map(show, (function, *arguments, *keywords)))})"
        case tree.Input(_, name, default):
            return f"<{name}" + (f"={show(default)}>" if default is not None else ">")
        case tree.Ellipsis():
            return "..."
        case tree.List(_, items):
            return f"[{' '.join(map(show, items))}]"
        case tree.Unary(_, operator, operand):
            return f"({operator} {show(operand)})"
        case tree.Binary(_, operator, _, left, right) | tree.Logical(_, operator, left, right):
            return f"({operator} {show(left)} {show(right)})"
        case tree.Compare(_, operators, operands):
            rest = (f"{o} {show(x)}" for o, x in zip(operators, operands[1:], strict=True))
            return f"(compare {show(operands[0])} {' '.join(rest)})"
        case tree.Conditional(_, test, body, orelse):
            return f"(? {show(test)} {show(body)} {show(orelse)})"
        case tree.Keyword(_, name, value):
            return f"{name}={show(value)}"
        case tree.Call(_, name, _, receiver, arguments, keywords, module):
            head = name if receiver is None else f"{show(receiver)}.{name}"
            head = f"{module}:{head}" if module else head
            return f"({' '.join([head, *map(show, (*arguments, *keywords))])})"
        case tree.Attribute(_, value, name):
            return f"{show(value)}.{name}"
        case tree.Slice(_, start, stop, step):
            return f"{show(start)}:{show(stop)}:{show(step)}"
        case tree.Index(_, value, items):
            return f"{show(value)}[{' '.join(map(show, items))}]"
        case tree.Evaluate(_, value):
            return show(value)
        case tree.Assign(_, targets, value):
            return f"{' = '.join(map(show, targets))} = {show(value)}"
        case tree.Augment(_, target, operator, _, value):
            return f"{show(target)} {operator}= {show(value)}"
        case tree.Return(_, value):
            return f"return {show(value)}" if value is not None else "return"
        case tree.Break() | tree.Continue() | tree.Pass():
            return type(node).__name__.lower()
        case tree.Import(_, names):
            return f"import {names}"
        case tree.Block(_, statements):
            return block(statements)
        case tree.Define(_, name, _, parameters, body, backward):
            text = f"{name}({' '.join(map(show, parameters))}) = {show(body)}"
            if backward is None:
                return text
            return f"{text} backward({show(backward.cotangent)}) {' '.join(map(show, backward.gradients))}"
        case tree.If(_, test, body, orelse):
            return f"if {show(test)} {block(body)}" + (f" else {block(orelse)}" if orelse else "")
        case tree.For(_, target, iterable, body):
            return f"for {show(target)} {show(iterable)} {block(body)}"
        case tree.While(_, test, body):
            return f"while {show(test)} {block(body)}"
    raise TypeError(node)


def block(statements: tuple[tree.Statement, ...]) -> str:
    return f"{{{'; '.join(map(show, statements))}}}"


FORMS = [
    # numbers, strings, constants, names
    ("1", "1"),
    (".5", "0.5"),
    ("1.", "1"),
    ("1e-3", "0.001"),
    ("1_000.5e+1_0", "1.0005e+13"),
    ("007", "7"),
    ("1e999", "inf"),
    ("[True, False, None]", "[True False None]"),
    ("einsum('ij,jk->ik', A, B)", "(einsum 'ij,jk->ik' A B)"),
    ('f("a\'b#c")', '(f "a\'b#c")'),
    ("σ + theta_1", "(+ σ theta_1)"),
    ("ﬁ", "fi"),
    ("x̂ + 变量", "(+ x̂ 变量)"),
    ("iffy + nota", "(+ iffy nota)"),
    # precedence and associativity
    ("a + b*c", "(+ a (* b c))"),
    ("a - b - c", "(- (- a b) c)"),
    ("a / b * c // d % e @ f", "(@ (% (// (* (/ a b) c) d) e) f)"),
    ("-x**2", "(- (** x 2))"),
    ("2**-x", "(** 2 (- x))"),
    ("2**3**4", "(** 2 (** 3 4))"),
    ("a^b**c^-d", "(** a (** b (** c (- d))))"),
    ("-a*b", "(* (- a) b)"),
    ("- + -a", "(- (+ (- a)))"),
    ("a*-b", "(* a (- b))"),
    ("(a + b)*c", "(* (+ a b) c)"),
    ("not a == b", "(not (compare a == b))"),
    ("not not a and b or c", "(or (and (not (not a)) b) c)"),
    ("a or b and c", "(or a (and b c))"),
    ("a < b <= c != d + 1", "(compare a < b <= c != (+ d 1))"),
    ("(a < b) < c", "(compare (compare a < b) < c)"),
    ("a > b >= c == d", "(compare a > b >= c == d)"),
    ("a if b else c if d else e", "(? b a (? d c e))"),
    ("a or b if not c else d", "(? (not c) (or a b) d)"),
    ("(a if b else c) + 1", "(+ (? b a c) 1)"),
    ("-x.T[0]**2", "(- (** x.T[0] 2))"),
    # notation of printed mathematics
    ("2x + 3.5(y + 1)", "(+ (* 2 x) (* 3.5 (+ y 1)))"),
    ("a·b × c ÷ d − e", "(- (/ (* (* a b) c) d) e)"),
    ("a ≤ b ≠ c", "(compare a <= b != c)"),
    ("x²", "(** x 2)"),
    ("-x⁻¹²", "(- (** x (- 12)))"),
    ("2√x.T[0]", "(* 2 (sqrt x.T[0]))"),
    ("√(x²)", "(sqrt (** x 2))"),
    ("n!/(k!*m!)", "(/ (! n) (* (! k) (! m)))"),
    ("2π", "(* 2 π)"),
    ("x != 3", "(compare x != 3)"),
    ("∞", "inf"),
    # elementwise booleans
    ("(x > 0) & ~(y > 0) | z", "(| (& (compare x > 0) (~ (compare y > 0))) z)"),
    ("x is not None and y is None", "(and (is not None x) (is None y))"),
    # functions as values, and comprehensions
    ("lambda: 1", "(lambda 1)"),
    ("f = lambda a, b=2: a*b", "f = (lambda a b=2 (* a b))"),
    ("exp(-lambda*t)", "(exp (* (- lambda) t))"),
    ("x[lambda:3]", "x[lambda:3:_]"),
    ("grad(f)(x, y=1)", "((grad f) x y=1)"),
    ("[a*b for a, (b, _) in z if a if b]", "[(* a b) for (a (b _)) z if a if b]"),
    ("sum(a for r in m for a in r)", "(sum [a for r m for a r])"),
    # names that are keywords in Python
    ("def + class*from", "(+ def (* class from))"),
    ("return = 3; pass*is", "return = 3; (* pass is)"),
    # libraries
    ("import numpy as xx; xx.log(x)", "import numpy; (numpy:log x)"),
    ("from math import exp as e2, pi\ne2(pi)", "import math; (math:exp math:pi)"),
    ("import torch.nn.functional as G\nG.relu(G)", "import torch; (torch.nn.functional:relu G)"),
    ("from torch import nn\nnn.functional.relu(x)", "import torch; (torch.nn.functional:relu x)"),
    ("F.T @ F.relu(x)", "(@ F.T (F.relu x))"),
    ("F.relu(x)", "(torch.nn.functional:relu x)"),
    # lists and tuples
    ("[]", "[]"),
    ("()", "[]"),
    ("[1, 2,]", "[1 2]"),
    ("[[a, b], [c, d]]", "[[a b] [c d]]"),
    ("(3,)", "[3]"),
    ("sum(x, axis=(0, 1))", "(sum x axis=[0 1])"),
    ("((((x))))", "x"),
    # calls, methods, attributes, indices
    ("f()", "(f)"),
    ("f(x, y, axis=0, keepdim=True,)", "(f x y axis=0 keepdim=True)"),
    ("f(a if b else c, k=a if b else c)", "(f (? b a c) k=(? b a c))"),
    ("x.sum(axis=0).mean()", "((x.sum axis=0).mean)"),
    ("[1, 2].sum()", "([1 2].sum)"),
    ("(a + b).T.mT", "(+ a b).T.mT"),
    ("f(x)[0].T", "(f x)[0].T"),
    ("2.0.sqrt()", "(2.sqrt)"),
    ("x[1:, None, ..., ::2]", "x[1:_:_ None ... _:_:2]"),
    ("x[:]", "x[_:_:_]"),
    ("x[:b, a:b, a:b:c, :b:c, a::c, a::, ::, :b:]", "x[_:b:_ a:b:_ a:b:c _:b:c a:_:c a:_:_ _:_:_ _:b:_]"),
    ("x[i,]", "x[i]"),
    ("x[-1][[0, 2]]", "x[(- 1)][[0 2]]"),
    # library prefixes
    ("np.log(x)", "(numpy:log x)"),
    ("torch.log(x).sum(dim=0)", "((torch:log x).sum dim=0)"),
    ("np.linalg.norm(x) + np.pi", "(+ (numpy.linalg:norm x) numpy:pi)"),
    ("torch.nn.functional.softplus(x)", "(torch.nn.functional:softplus x)"),
    ("torch.special.expit(jnp.linalg.inv(A))", "(torch.special:expit (jax.numpy.linalg:inv A))"),
    ("numpy . linalg . norm(x)", "(numpy.linalg:norm x)"),
    ("(np\n.log(x))", "(numpy:log x)"),
    ("np.log(np.abs(x)) # np is numpy", "(numpy:log (numpy:abs x))"),
    ("math = x; math.sum()", "math = x; (math.sum)"),
    ("f(np) = np.sum()", "f(np) = (np.sum)"),
    ("for torch in x { torch.sum() }", "for torch x {(torch.sum)}"),
    ("x.np.T", "x.np.T"),
    ("linalg.norm(x)", "(linalg.norm x)"),
    # statements
    ("a = 1; b = 2\nc", "a = 1; b = 2; c"),
    ("\n\n;; a ;\n; b # c\r\n# d\r\rc;\n", "a; b; c"),
    ("f(a, b) = a*b; f(x, y)", "f(a b) = (* a b); (f x y)"),
    ("f() = 3", "f() = 3"),
    ("f(a, b,) = a*b backward(g) = g*b, g*a,", "f(a b) = (* a b) backward(g) (* g b) (* g a)"),
    ("f(a) = a\n\n# note\nbackward(g) = g\nf(x)", "f(a) = a backward(g) g; (f x)"),
    ("(1 +\n 2)\n[3,\n\n4 # five\n]", "(+ 1 2); [3 4]"),
    ("f(x,\r\n  axis=0)", "(f x axis=0)"),
    # control flow
    ("if a { b }", "if a {b}"),
    ("if a { b } else { c }", "if a {b} else {c}"),
    ("if a { b }\n# note\n\nelse { c }; d", "if a {b} else {c}; d"),
    ("if a\n{\n b = 1\n c\n}\nelse\n{\n}\nd", "if a {b = 1; c}; d"),
    ("if a {} else if b { c } else { d }", "if a {} else {if b {c} else {d}}"),
    ("if a {}\nelse if b {}", "if a {} else {if b {}}"),
    ("for i in range(3) { x = x*i } x", "for i (range 3) {x = (* x i)}; x"),
    (
        "while x < 3 { x = x + 1; if x > 2 { y = x } }",
        "while (compare x < 3) {x = (+ x 1); if (compare x > 2) {y = x}}",
    ),
    ("if a { f(x) = x\nbackward(g) = g }", "if a {f(x) = x backward(g) g}"),
    ("if a if b else c { d }", "if (? b a c) {d}"),
]


@pytest.mark.all_cases
@pytest.mark.parametrize(("source", "expected"), FORMS)
def test_form(source: str, expected: str) -> None:
    assert show(parse(source)) == expected


def test_expression() -> None:
    assert show(parse_expression("[[1, 2],\n [3, 4]]\n")) == "[[1 2] [3 4]]"
    assert show(parse_expression("\n1 +\n2")) == "(+ 1 2)"


def test_nodes_are_frozen() -> None:
    node = parse_expression("x")
    with pytest.raises(AttributeError, match="frozen"):
        node.span = Span(0, 0)  # type: ignore[misc]
    with pytest.raises(TypeError):
        tree.Name(Span(0, 1), "x")  # type: ignore[call-arg]
    assert tree.Name(Span(0, 1), "x", "").id == "x"


# Spans


def test_places() -> None:
    source = "f(a) = (a + 1)*b backward(g) = g\nx[1:, ...].sum( axis=0 ) ^ 2"
    program = parse(source)
    texts = [(type(node).__name__, source[node.span.start : node.span.end]) for node in tree.walk(program)]
    assert texts[1:] == [
        ("Define", "f(a) = (a + 1)*b backward(g) = g"),
        ("Parameter", "a"),
        ("Binary", "(a + 1)*b"),
        ("Binary", "(a + 1)"),
        ("Name", "a"),
        ("Number", "1"),
        ("Name", "b"),
        ("Backward", "backward(g) = g"),
        ("BoundName", "g"),
        ("Name", "g"),
        ("Evaluate", "x[1:, ...].sum( axis=0 ) ^ 2"),
        ("Binary", "x[1:, ...].sum( axis=0 ) ^ 2"),
        ("Call", "x[1:, ...].sum( axis=0 )"),
        ("Index", "x[1:, ...]"),
        ("Name", "x"),
        ("Slice", "1:"),
        ("Number", "1"),
        ("Ellipsis", "..."),
        ("Keyword", "axis=0"),
        ("Number", "0"),
        ("Number", "2"),
    ]


@pytest.mark.slow
@given(programs())
@settings(max_examples=20, derandomize=True, deadline=None, database=None)
def test_text_of_a_node_reads_as_the_node(source: str) -> None:
    program = parse(source)
    for node in tree.walk(program):
        for child in tree.children(node):
            assert node.span.start <= child.span.start <= child.span.end <= node.span.end
        if isinstance(node, tree.Expression):
            # The span of a name excludes its prefix.
            written = re.sub(r"[\w.]+:(?=\w)", "", show(node))
            read = re.sub(r"[\w.]+:(?=\w)", "", show(parse_expression(source[slice(*node.span)])))
            assert read == written
        if isinstance(node, tree.Binary):
            symbol = source[slice(*node.operator_span)]
            assert symbol == node.operator or (symbol, node.operator) == ("^", "**")
        if isinstance(node, tree.Call | tree.Attribute | tree.Define):
            assert source[slice(*node.name_span)] == node.name


# Syntax errors: text, the part under the carets, message, a part of the hint

MISTAKES = [
    ("", "", "the program is empty", "write an expression"),
    (" # nothing\n;", "", "the program is empty", "write an expression"),
    # the end of the text
    ("x +", "", "the program ends where an expression should follow", ""),
    ("x +  # note\n", "", "the program ends where an expression should follow", ""),
    ("x + ;", ";", "unexpected ';'", "should follow '+'"),
    ("x +\ny", "", "the line ends where an expression should follow", "inside brackets"),
    ("x.", "", "the program ends where a name should follow", ""),
    ("not", "", "the program ends where an expression should follow", ""),
    ("for", "", "the program ends where a name should follow", ""),
    ("while x", "", "a block { … } should follow here", "while condition { … }"),
    ("f(x) = x backward", "", "the program ends too early", ""),
    # brackets
    ("log(x", "(", "'(' is never closed", ""),
    ("(1, [2, 3", "[", "'[' is never closed", ""),
    ("if x { y", "{", "'{' is never closed", ""),
    ("x)", ")", "')' closes nothing", ""),
    ("log(x]", "]", "'(' is closed by ']'", "write ')'"),
    ("(a + )", ")", "unexpected ')'", "should follow '+'"),
    ("x[]", "]", "unexpected ']'", ""),
    ("f(,)", ",", "unexpected ','", ""),
    ("f(x,,y)", ",", "unexpected ','", ""),
    ("f(x; y)", ";", "unexpected ';'", "write f(x, y)"),
    # characters
    ("x $ y", "$", "unexpected character '$'", ""),
    ("x ? 1 : 2", "?", "unexpected character '?'", "write 1 if x else 2"),
    ("x\u00a0+ 1", "\u00a0", "unexpected character U+00A0 (no-break space)", "plain space"),
    ("f（x)", "（", "unexpected character '（' (fullwidth left parenthesis)", "write '('"),
    ("x\0", "\0", "unexpected character U+0000", ""),
    ("'a\x1b'", "\x1b", "unexpected character U+001B", ""),
    ("\ud800", "\ud800", "unexpected character U+D800", ""),
    ("f('abc)", "'abc)", "the string is never closed", "close it with '"),
    ('f("ab\ny")', '"ab', "the string is never closed", 'close it with "'),
    ("x && y", "&", "unexpected '&'", "write x and y"),
    ("!x", "!", "unexpected '!'", "write not x"),
    ("½x", "½", "unexpected character '½' (vulgar fraction one half)", "write (1/2)"),
    ("\\frac{x}{2}", "\\", "unexpected character '\\'", "write ((x)/(2))"),
    ("|x + 1|", "|", "'|' stands between truth values", "write abs(x + 1)"),
    ("f'(x)", "f'", "a derivative has no prime in the language", "write y = f(x); diff(y, x)"),
    # numbers
    ("1.0f", "1.0f", "'1.0f' is not a number", "write 1.0"),
    ("1d-3", "1d", "'1d' is not a number", "1e-3"),
    ("1__0", "1__0", "'1__0' is not a number", "1_000"),
    ("1_", "1_", "'1_' is not a number", "1_000"),
    ("0x10", "0x10", "'0x10' is not a number", "write 16"),
    ("1e", "1e", "'1e' is not a number", "exponent"),
    ("1e+", "1e", "'1e' is not a number", "exponent"),
    ("1.2.3", "1.2.3", "'1.2.3' is not a number", "one '.'"),
    # ambiguous texts
    ("1/2x", "1/2x", "this can be read as 1/(2*x) and as 1/2*x", "write 1/(2*x) or 1/2*x"),
    ("x^2(y + 1)", "^2(", "this can be read as x^2*(y + 1) and as x^(2*(y + 1))", "write"),
    ("a % -2x", "a % -2x", "this can be read as a%(-2*x) and as a%-2*x", "write"),
    ("√2x", "√2x", "this can be read as √(2*x) and as √2*x", "write"),
    ("√x²", "√x²", "this can be read as √(x²) and as (√x)²", "write √(x²) or (√x)²"),
    ("-x!", "-x!", "this can be read as (-x)! and as -(x!)", "write (-x)! or -(x!)"),
    ("2x!", "2x!", "this can be read as (2*x)! and as 2*(x!)", "write (2*x)! or 2*(x!)"),
    ("x!!", "x!!", "this can be read as (x!)! and as the double factorial", "write (x!)!"),
    ("3!=6", "3!=", "this can be read as 3 != … and as 3! == …", "write"),
    ("2(3)", "2(3)", "this can be read as 2*(3) and as one number", "write 2*(3)"),
    # missing operators
    ("sin x", "sin x", "'sin' is a function, and its argument stands in brackets", "write sin(x)"),
    ("max x y", "max x y", "'max' is a function, and its arguments stand in brackets", "write max(x, y)"),
    ("1 + atan2 y, x", "atan2 y, x", "'atan2' is a function, and its arguments stand in brackets", "write atan2(y, x)"),
    ("2 exp(x)", "exp", "missing operator or separator between '2' and 'exp'", "write 2*exp"),
    ("x y", "y", "missing operator or separator between 'x' and 'y'", "write x*y"),
    ("(a) b", "b", "missing operator or separator between ')' and 'b'", "write (a)*b"),
    # assignment
    ("3 = x", "3", "cannot assign to a number", ""),
    ("'a' = x", "'a'", "cannot assign to a string", ""),
    ("a + b = 3", "a + b", "cannot assign to an expression", "'==' compares"),
    ("a, b = 1, 2, 3", "1, 2, 3", "2 names do not fit 3 values", ""),
    ("a, 2 = x", "2", "cannot assign to a number", ""),
    ("x.y = 3", "x.y", "cannot assign to the attribute 'y'", ""),
    ("x.f(y) = 3", "x.f(y)", "cannot assign to the method call '.f(…)'", ""),
    ("True = 3", "True", "cannot assign to 'True'", "reserved"),
    ("if = 3", "if", "'if' is a reserved word", "another name"),
    ("𝐢𝐟*x", "𝐢𝐟", "'𝐢𝐟' is the reserved word 'if'", "another name"),
    ("in = 3", "in", "'in' is a reserved word", "another name"),
    ("not = 3", "not", "'not' is a reserved word", "another name"),
    ("for = 3", "for", "'for' is a reserved word", "another name"),
    ("backward = 3", "backward", "'backward' is a reserved word", "another name"),
    ("= 3", "=", "a name should stand before '='", ""),
    ("if x = 3 { y }", "=", "'=' binds a name, it does not compare", "write '=='"),
    ("a if x = 3 else b", "=", "'=' binds a name, it does not compare", "write '=='"),
    ("[x = 3]", "=", "unexpected '='", "'==' compares"),
    # functions
    ("f(a + 1) = 3", "a + 1", "a parameter is a name", ""),
    ("f(a, a) = 3", "a", "two parameters are named 'a'", ""),
    ("f(g) = g backward(g) = g", "g", "two parameters are named 'g'", ""),
    ("f(a, b) = a*b backward(g) = g*b", "g*b", "'f' has 2 parameters, its backward gives 1", "one expression per"),
    ("f(a, b) = a*b backward(g) = (g*b, g*a)", "(g*b, g*a)", "'f' has 2 parameters, its backward gives 1", "brackets"),
    ("f(a) = a backward(g) = g, g", "g, g", "'f' has 1 parameter, its backward gives 2", ""),
    ("x = 3 backward(g) = g", "backward", "only a function has a backward", ""),
    ("backward(g) = g", "backward", "unexpected 'backward'", "it follows a function"),
    ("f(axis=0, x)", "x", "a positional argument follows a keyword argument", "first"),
    ("f(axis=0, axis=1)", "axis=1", "'axis' is given twice", ""),
    ("f(x + 1=3)", "x + 1", "a keyword argument begins with a name", "=="),
    ("f(a=b=3)", "=", "unexpected '='", "=="),
    ("f(*a)", "*", "'*' cannot unpack here", ""),
    ("f(**kwargs)", "**", "'**' cannot unpack here", ""),
    # blocks and conditions
    ("if x > 3 y", "y", "a block { … } should follow here", "if condition { … }"),
    ("if a { b } else c", "c", "a block { … } should follow here", "else { … }"),
    ("else { 3 }", "else", "'else' without 'if'", ""),
    ("a if b", "", "the condition has no 'else'", "a if condition else b"),
    ("(a if b)", ")", "the condition has no 'else'", "a if condition else b"),
    ("for i range(3) { y }", "range", "'in' should follow the name of a loop", "for name in"),
    ("x in y", "in", "'in' asks for a value among others in Python, and is not part of the language", "x == a or"),
    ("x = if c { 1 }", "if", "unexpected 'if'", "a if condition else b"),
    ("x = {'a': 1}", "{", "dicts are not part of the language", "a = 1"),
    ("a == not b", "not", "unexpected 'not'", "(not x)"),
    ("x[1:2:3:4]", ":", "unexpected ':'", "start:stop:step"),
    # notation of Python and other languages
    ("x is y", "is", "'is' is not part of the language", "=="),
    ("x := 3", ":=", "':=' is not part of the language", "write x = 3"),
    ("x => y", "=>", "'=>' is not part of the language", ">="),
    ("x === y", "===", "'===' is not part of the language", "=="),
    ("x <> y", "<>", "'<>' is not part of the language", "!="),
    ("y.backward()", "backward", "'.backward()' is not part of the language", "leave it out"),
    ("x.in", "in", "'in' is a reserved word", ""),
    ("x..y", ".", "a name should stand before '.'", ""),
    ("np.", "", "the program ends where a name should follow", ""),
    ("@f", "@", "decorators are not part of the language", "leave it out"),
    ("a\n* b", "*", "unexpected '*'", "should stand before"),
]


@pytest.mark.all_cases
@pytest.mark.parametrize(("source", "marked", "message", "hint"), MISTAKES)
def test_mistake(source: str, marked: str, message: str, hint: str) -> None:
    with pytest.raises(ProgramSyntaxError) as caught:
        parse(source)
    error = caught.value
    assert error.message == message
    assert error.span is not None
    assert source[slice(*error.span)] == marked
    assert hint in (error.hint or "")
    assert error.source == source
    assert error.report().startswith(f"error: {message}\n")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "the expression is empty"),
        ("1; 2", "unexpected ';'"),
        ("x = 1", "unexpected '='"),
        ("if x { 1 }", "unexpected 'if'"),
        ("1\n2", "missing operator or separator between '1' and '2'"),
    ],
)
def test_mistake_in_an_expression(source: str, message: str) -> None:
    with pytest.raises(ProgramSyntaxError, match=re.escape(message)):
        parse_expression(source)


def test_place_of_an_end_is_after_the_last_character() -> None:
    with pytest.raises(ProgramSyntaxError) as caught:
        parse("x = 1\ny = x + ")
    assert caught.value.position == (2, 8)


# Limits


def test_nesting() -> None:
    opening = "(" * MAX_NESTING
    assert show(parse(opening + "x" + ")" * MAX_NESTING)) == "x"
    for source in (opening + "[", "([" * 400_000, "f(" * 2_000 + ")" * 2_000, "if x {" * 1_001):
        with pytest.raises(ProgramSyntaxError, match="nested more than 1000 deep") as caught:
            parse(source)
        assert caught.value.span is not None
        start, end = caught.value.span
        assert source[start:end] in set("([{")
        assert sum(source.count(bracket, 0, start) for bracket in "([{") == MAX_NESTING


def test_length() -> None:
    assert show(parse("x" + " " * (MAX_LENGTH - 1))) == "x"
    with pytest.raises(ProgramSyntaxError, match="longer than 1000000 characters"):
        parse("x" + " " * MAX_LENGTH)


def test_length_of_a_name() -> None:
    assert show(parse("σ" * 1_000)) == "σ" * 1_000
    for source in ("x" * 1_001, "a" + "\u0315\u0300" * 400_000):
        with pytest.raises(ProgramSyntaxError, match="the name is longer than 1000 characters"):
            parse(source)
    with pytest.raises(ProgramSyntaxError, match="unexpected character '½'"):
        parse("x" * 900_000 + "½")


LONG = 20_000


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("+".join("x" * LONG), LONG - 1),
        ("x" + "**x" * LONG, LONG),
        ("-" * LONG + "x", LONG),
        ("not " * LONG + "x", LONG),
        ("x and " * LONG + "x", LONG),
        ("a if b else " * LONG + "c", LONG),
        ("x" + ".T" * LONG, LONG),
        ("x" + "[0]" * LONG, LONG),
        ("x" + ".f()" * LONG, LONG),
        ("if a {} else " * LONG + "{}", LONG),
        ("x = 1;" * LONG, LONG),
    ],
    ids=["sum", "power", "minus", "not", "and", "if-else", "attribute", "index", "method", "else-if", "statements"],
)
def test_nothing_recurses(source: str, count: int) -> None:
    inner = tree.Unary | tree.Binary | tree.Logical | tree.Conditional | tree.Attribute | tree.Index
    nodes = tree.walk(parse(source))
    assert sum(isinstance(node, inner | tree.Call | tree.If | tree.Assign) for node in nodes) == count


# Any text


def check_fate(source: str) -> None:
    """Assert that a text is a program, or an error with a span in the text and a readable message."""
    error = None
    try:
        parse(source)
    except ProgramSyntaxError as raised:
        error = raised
    if error is None:
        return
    assert error.message
    assert error.span is not None
    assert 0 <= error.span.start <= error.span.end <= len(source)
    error.report().encode()
    for text in (error.message, error.hint or ""):
        assert not GRAMMAR_NAMES.intersection(re.findall(r"\$?\w+", text)), text


GRAMMAR_NAMES = {*parse_tables.load().literals.values(), lexer.END}
GRAMMAR_NAMES |= {"NAME", "NUMBER", "STRING", "SEPARATOR", "LITERAL", "SINGLE", "DIGITS", "NEWLINE"}

FRAGMENTS = sorted(
    {
        *parse_tables.load().literals,
        *FOREIGN_WORDS,
        *("x", "f", "σ", "1", "2.5", "1e", ".5", "'a'", '"', "'", ";", "\n", "\r\n", " ", "#", "np.", "math", "linalg"),
        *(
            "!",
            "&",
            "|",
            "?",
            "\\",
            "$",
            "²",
            "×",
            "\0",
            "\t",
            "\ud800",
            "\u00a0",
            "_",
            "0x",
            "+=",
            ":=",
            "=>",
            "f(x) =",
        ),
    }
)


@pytest.mark.slow
@given(st.one_of(st.text(max_size=20), st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join)))
@settings(max_examples=130, derandomize=True, deadline=None, database=None)
def test_any_text(source: str) -> None:
    check_fate(source)


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map(" ".join))
@settings(max_examples=100, derandomize=True, deadline=None, database=None)
def test_any_words(source: str) -> None:
    check_fate(source)


@pytest.mark.slow
@given(programs(), st.data())
@settings(max_examples=25, derandomize=True, deadline=None, database=None)
def test_a_program_with_a_slip(source: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(source)))
        end = min(len(source), start + data.draw(st.integers(0, 3)))
        source = source[:start] + data.draw(st.sampled_from(["", *FRAGMENTS])) + source[end:]
        check_fate(source)


@given(expressions(scalar=True))
@settings(max_examples=60, derandomize=True, deadline=None, database=None)
def test_an_expression_is_a_program(source: str) -> None:
    assert show(parse(source)) == show(parse_expression(source))


# Prepared parse tables


def grammar_tables() -> dict[str, Any]:
    return generate.generate(parse_tables.read_grammar())


def prepared_module(**changes: Any) -> ModuleType:
    module = ModuleType("gradcli.language.syntax._lalr")
    exec(generate.module_text(parse_tables.read_grammar()), vars(module))
    vars(module).update(changes)
    return module


@pytest.fixture
def fresh_tables() -> Iterator[None]:
    parse_tables.load.cache_clear()
    yield
    parse_tables.load.cache_clear()


@pytest.mark.usefixtures("fresh_tables")
def test_prepared_tables_are_those_of_the_grammar(monkeypatch: pytest.MonkeyPatch) -> None:
    generated = grammar_tables()
    prepared = prepared_module()
    monkeypatch.setattr(generate, "generate", None)
    monkeypatch.setitem(sys.modules, "gradcli.language.syntax._lalr", prepared)
    assert {name: getattr(prepared, name) for name in generated} == generated
    assert parse_tables.load().rules is prepared.rules


@pytest.mark.usefixtures("fresh_tables")
@pytest.mark.parametrize("kind", ["of another grammar", "empty", "missing"])
def test_tables_are_generated_where_none_fit(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    module = None if kind == "missing" else ModuleType("empty")
    if kind == "of another grammar":
        module = prepared_module(grammar=b"", rows=())
    monkeypatch.setitem(sys.modules, "gradcli.language.syntax._lalr", module)  # None: as if there were no such module
    assert show(parse("log(x**q)")) == "(log (** x q))"


def test_prepared_tables_are_the_same_in_every_run() -> None:
    code = "from gradcli.language.syntax import generate, parse_tables; print(generate.module_text(parse_tables.read_grammar()))"
    texts = {run(code, PYTHONHASHSEED=seed) for seed in "12"}
    assert len(texts) == 1


def test_prepared_tables_need_no_lark() -> None:
    code = (
        "import sys; from types import ModuleType; from gradcli.language.syntax import parse\n"
        "module = sys.modules['gradcli.language.syntax._lalr'] = ModuleType('_lalr')\n"
        f"exec({generate.module_text(parse_tables.read_grammar())!r}, vars(module))\n"
        "parse('log(x**q)'); print(sorted({'lark', 'dataclasses', 'inspect'} & set(sys.modules)))"
    )
    assert run(code).strip() == "[]"


def run(code: str, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
    )
    return result.stdout


def test_larks_own_parser_gives_the_same_trees() -> None:
    class Actions:
        def __getattr__(self, name: str) -> Any:
            if name not in syntax_parser.ACTIONS:
                raise AttributeError(name)
            return lambda children: syntax_parser.ACTIONS[name](*children)

    class Token(lark.Token):
        module: str

    class Lexer(lark.lexer.Lexer):
        def __init__(self, configuration: object) -> None: ...

        def lex(self, text: str) -> Iterator[lark.Token]:  # type: ignore[override]
            for token in syntax_parser.tokens(text, parse_tables.load(), lines=True):
                if token.type != lexer.END:
                    given = Token(token.type, token.value, token.start_pos, end_pos=token.end_pos)
                    given.module = token.module
                    yield given

    parser = lark.Lark(
        parse_tables.read_grammar().decode(),
        parser="lalr",
        lexer=Lexer,
        start="program",
        keep_all_tokens=True,
        maybe_placeholders=False,
        transformer=Actions(),
    )
    for source, expected in FORMS:
        assert "; ".join(map(show, parser.parse(source))) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("import numpy as n\nn.mean(x)", ["import numpy as n", "n.mean(x)"]),
        ("from numpy import (mean as avg,\n std)\navg(x)", ["from numpy import (mean as avg,\n std)", "avg(x)"]),
        ("(a + b)*c; d # e", ["(a + b)*c", "d"]),
        ("def f(x):\n    return x # y\n\n\n# z\nf(2)", ["def f(x):\n    return x", "f(2)"]),
        ("if x { 1; 2 }\nelse { 3 }; y", ["if x { 1; 2 }\nelse { 3 }", "y"]),
        ("", []),
    ],
)
def test_statements_stand_where_they_were_written(source, texts):
    assert [source[start:end] for start, end in statement_spans(source)] == texts

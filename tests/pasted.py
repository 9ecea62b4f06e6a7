"""A Hypothesis strategy for programs as people paste them: indented and braced blocks, `def`, `lambda`, comprehensions,
lists, element assignment, slices and printed output."""

from __future__ import annotations

from hypothesis import strategies as st

# Binds every name that an expression below reads, except `x` and `q`.
PRELUDE = """v = x*[1, 2, 3]
ys = [x, q, 1.5]
y = z = q
def f(a, b=2.0, *, c=1):
    '''What is bound by name.'''
    return a*b + c
g = lambda a: a² + x
"""

_ATOMS = st.sampled_from(
    ["x", "q", "y", "z", "2x", "3(x + 1)", "2π", "x²", "q⁻¹", "√(1 + x²)", "2!", "x·q", "0.5q ÷ 2", "v[0]", "v[-1]", "ys[0]",
     "ys[1:][0]", "len(ys)", "v[::-1][1]", "f(x)", "f(q, b=x)", "f(x, q, c=2)", "g(q)", "(lambda a, b=2: a*b)(x)", "v.sum()",
     "sum(v[1:])", "sum(a*b for a, b in zip(v, v[::-1]))", "sum([a² for a in v if a > 0.1])", "sum(ys)", "max(ys[:2])",
     "sum([i*a for i, a in enumerate(v)])", "[x, q][1]", "where((x > 1) | (q > 1), x, q)", "sum(abs(v) & 1 < 2)", "exp(-x)"]
)  # fmt: skip
_TESTS = st.sampled_from(
    ["x > q", "y < 1", "x >= q and y > 0", "not x > 1", "z is not None", "0 < x < 2", "sum(v) > 3 or q > 1"]
)


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    forms = [
        "({0}) + {1}",
        "({0})*({1})",
        "({0})/(1 + ({1})²)",
        "-({0})",
        "({0}) if {2} else {1}",
        "f({0}, b={1})",
        "g({0})",
    ]
    forms += [
        "[{0}, {1}][0]",
        "sum([a*({0}) for a in ys])",
        "sum([{0}, {1}, 2x])",
        "max({0}, {1})",
        "({0})!",
        "2({0})",
        "({0})² − {1}",
    ]
    return st.tuples(st.sampled_from(forms), inner, inner, _TESTS).map(lambda p: p[0].format(*p[1:]))


EXPRESSIONS = st.recursive(_ATOMS, _grown, max_leaves=4)
_SIMPLE = [
    "y = {0}", "y += {0}", "z *= 0.5 + {0}", "y = z = {0}", "y, z = {0}, {1}", "y, (z, w) = {0}, ({1}, x)", "y: float = {0}",
    "v[0] = {0}", "v[1:] *= {0}", "v[i] = {0}", "w = v.copy()", "w = v[1:]; w[0] = {0}", "ys.append({0})", "ys[0] = {0}", "ys += [{0}]",
    "ys.extend(v)", "z = ys.pop()", "g = lambda a: a*({0})", "f(a, b=2, c=1) = a*({0}) + b", "pass", "{0}", "v = v + {0}",
]  # fmt: skip


@st.composite
def programs(draw: st.DrawFn) -> str:
    lines = draw(_blocks("", 3, jump="", braces=False, least=0))
    # A collection to iterate over.
    return PRELUDE + "i = 1\n" + "".join(line + "\n" for line in lines) + draw(EXPRESSIONS)


@st.composite
def _blocks(draw: st.DrawFn, indent: str, depth: int, *, jump: str, braces: bool, least: int = 1) -> list[str]:
    """Lines of statements; `jump` leaves the enclosing loop or function, and `braces` says whether blocks use
    braces."""
    found: list[str] = []
    for _ in range(draw(st.integers(least, 3))):
        if depth and draw(st.integers(0, 2)) == 0:
            found += draw(_compound(indent, depth - 1, jump=jump, braces=braces))
        else:
            found.append(indent + draw(st.sampled_from(_SIMPLE)).format(draw(EXPRESSIONS), draw(EXPRESSIONS)))
    if jump and draw(st.integers(0, 3)) == 0:
        found.append(f"{indent}if {draw(_TESTS)}: {jump.format(draw(EXPRESSIONS))}")
    return found


@st.composite
def _compound(draw: st.DrawFn, indent: str, depth: int, *, jump: str, braces: bool) -> list[str]:
    braces = braces or draw(st.booleans())
    kind = draw(st.sampled_from(["if", "else", "elif", "for", "for", "while", "def"]))
    loop = draw(st.sampled_from(["break", "continue"]))
    if kind == "def":
        body = _blocks(indent + "    ", depth, jump="return {0}", braces=braces)
        return _block(f"{indent}def f(a, b=2, c=1)", [*draw(body), f"{indent}    return a + b*c"], indent, braces)
    body = draw(_blocks(indent + "    ", depth, jump=loop if kind in ("for", "while") else jump, braces=braces))
    if kind == "for":
        over = draw(
            st.sampled_from(["i in range(3)", "y in v", "y, z in zip(v, ys)", "i, (y, z) in enumerate(zip(ys, v))"])
        )
        return _block(f"{indent}for {over}", body, indent, braces)
    if kind == "while":
        return [f"{indent}z = 0", *_block(f"{indent}while z < 2", [f"{indent}    z += 1", *body], indent, braces)]
    found = _block(f"{indent}if {draw(_TESTS)}", body, indent, braces)
    for head in {"if": [], "else": ["else"], "elif": [f"elif {draw(_TESTS)}", "else"]}[kind]:
        found += _block(indent + head, draw(_blocks(indent + "    ", depth, jump=jump, braces=braces)), indent, braces)
    return found


def _block(head: str, body: list[str], indent: str, braces: bool) -> list[str]:
    return [head + " {", *body, indent + "}"] if braces else [head + ":", *body]

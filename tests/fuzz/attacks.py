"""Programs that ask for more than there is: of time, of memory, of nesting, of text."""

from __future__ import annotations

from random import Random

from tests.fuzz.case import Case

_FORMS = (
    "while True {{ x = x + 1 }}; x", "while 1 < 2 {{ }}; x", "for i in range({n}) {{ x = x*y }}; x", "for i in range({n}) {{ }}; x",
    "f(u) = f(u) + 1; f(x)", "f(u) = u if u < 1 else f(u - 1); f({n})", "f(u) = g(u); g(u) = f(u); f(x)", "sum(zeros({n}))*x",
    "sum(zeros({n}, {n}))*x", "x + sum(eye({n})[0])", "sum(linspace(0, x, {n}))", "sum(arange({n}))*x", "sum(tile([x], {n}))",
    "sum(repeat([x], {n}))", "sum(broadcast_to(x, ({n}, {n})))", "sum(outer(ones({n}), ones({n})))*x", "diff(x*x, x, {n})",
    "diff(sin(x)*exp(y), x, {n})", "diff(exp(x*y), x, n={m})", "sum(diff(sum(v**3), v, {m}))", "x**{n}", "polygamma({n}, x)",
    "matrix_power(eye(2)*x, {n})", "y = x; for i in range({m}) {{ y = y - 0.001*diff(sin(y)*y, y, 2) }}; y", "sum(randn({n}, seed=1))*x",
    "y = [x, x]; for i in range({m}) {{ y = concat([y, y]) }}; sum(y)", "y = [x, x]; for i in range({m}) {{ y = stack([y, y]) }}; sum(y)",
    "y = [x, 2]; for i in range({m}) {{ y = kron(y, y) }}; sum(y)", "y = [x, 2]; for i in range({m}) {{ y = outer(y, y) }}; sum(y)",
    "y = x; for i in range({m}) {{ y = y*y + sin(y) }}; y", "sum(expand_dims(v, 0){k_dims})", "prod(sin(v))*prod(cos(v))*x",
    "for i in range({n}) {{ for j in range({n}) {{ x = x + 1 }} }}; x", "f(u) = u backward(g) = f(g); f(x)",
    "f(u) = u**2 backward(g) = g*diff(f(u), u); f(x)", "sum(hessian(sum(v*v), v))", "jacobian(jacobian(v*v, v), v)", "round(x, {n})",
    "sum(roll(v, {n}))", "v[{n}]", "v[:{n}:{n}]", "sum(diag(ones({n}), {n}))", "sum(full(({n}, {n}), x))", "sum(tril(ones({m}, {m}), {n}))*x",
    "sort(ones({n}))[0]*x", "svdvals(ones({m}*40, {m}*40))[0]*x", "det(eye({m}*60)*x)", "qr(randn({m}*30, {m}*30, seed=1))[0][0, 0]*x",
    "sum(matrix_exp(ones({m}, {m})*1e300*x))", "for i in range({m}) {{ x = x + det(eye(50)*1.01) }}; x", "sum(cumprod(ones({n})*x))",
    "einsum('{letters}->', {ones})", "x{transposed}", "A{transposed}", "x{squares}", "{parens}x{closed}", "[{n_items}]", "sum([{n_items}])",
    "{brackets}x{unbracketed}", "x {added}", "x {powered}", "{minus}x", "not {nots}x", "f(u) = u; {nested}x{closed_calls}", "x # {added}", "{added}",
    "{conditionals}x", "if x {{ }} {elses} else {{ x }}", "x; {many_statements} x", "{definitions}; f0(x)", "'{added}'", "{long_name}", "x.{long_name}",
    "{long_name}(x)", "log(x, {keywords})", "f({parameters}) = x; f(x)", "x < {compared}", "{digits}", "x*1e{digits}", "x[{colons}]",
)  # fmt: skip


def attack(rng: Random) -> Case:
    """A program that must end early in a value or an error."""
    n = rng.choice((10, 100, 1000, 2500, 30000, 10**5, 10**6, 10**9, 10**18, 10**30))
    m = rng.choice((2, 5, 8, 12, 16, 20, 30, 60, 100))
    k = rng.choice((3, 30, 300, 1000))
    text = rng.choice(_FORMS).format(
        n=n,
        m=m,
        k_dims=".sum(0).expand_dims(0)" * min(k, 100),
        letters=",".join("abcdefghijklmnopqrstuvwxyz"[i % 26] for i in range(min(k, 60))),
        ones=", ".join(["ones(3)"] * min(k, 60)),
        transposed=".T" * k,
        squares="**2" * min(k, 300),
        parens="(" * k,
        closed=")" * k,
        n_items=", ".join(["x"] * k),
        brackets="[" * k,
        unbracketed="]" * k,
        added="+ x " * k,
        powered="** x " * k,
        minus="-" * k,
        nots="not " * k,
        nested="f(" * k,
        closed_calls=")" * k,
        conditionals="x if x else " * k,
        elses="else if x { } " * min(k, 300),
        many_statements="x = x + 1; " * k,
        definitions="; ".join(f"f{i}(u) = f{i + 1}(u)" for i in range(k)),
        long_name="a" * k,
        keywords=", ".join(f"a{i}=1" for i in range(k)),
        parameters=", ".join(f"a{i}" for i in range(k)),
        compared=" < ".join(["x"] * k),
        digits="9" * k,
        colons=":" * k,
    )
    given = {"x": 0.9, "y": 1.1, "v": [0.3, 0.7, 1.1], "A": [[1.0, 0.5], [0.25, 2.0]]}
    return Case(text, {name: value for name, value in given.items() if name in text}, rng.getrandbits(32))

import json

from sympy import log, symbols

x, q = symbols("x q", positive=True)
y = log(x**q)
at = {x: 5.0, q: 3.0}
grad = {str(name): float(y.diff(name).subs(at)) for name in (x, q)}
print(json.dumps({"value": float(y.subs(at)), "grad": grad}))

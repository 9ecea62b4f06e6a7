import math

def compose(f, g):
    return lambda x: f(g(x))

h = compose(math.exp, compose(lambda u: u * u, math.sin))
h(x)

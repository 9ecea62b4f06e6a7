"""Programs that executors compute in passes over array elements."""

MIXED = "sum(log(x**q)*sin(x)+exp(-x*x))"
# Programs of x and y, and the shapes of both.
BROADCASTING = [
    ("sum(x*y+sin(x))", (6, 5), (5,)),
    ("sum(x*y+sin(x))", (6, 5), (6, 1)),
    ("sum(x*y+sin(x))", (6, 1), (1, 5)),
    ("sum(x*y+sin(x))", (3, 2, 5), (2, 1)),
    ("sum(x*y+sin(x))", (2, 3, 1, 7), (3, 5, 1)),
    ("sum(x*y+sin(x))", (7, 3), ()),
    ("sum(mean(x*y, axis=0)**2)", (9, 3), (3,)),
    ("sum(max(x*y, axis=1)**2)", (9, 3), (9, 1)),
    ("sum(sum(x*y, axis=(0, 2))**2)", (5, 3, 2), (2,)),
    ("sum(x*y/sum(exp(x), axis=-1, keepdims=True))", (6, 3), (6, 1)),
    ("logsumexp(x*y) + sum(softmax(x, axis=1)[0])", (6, 3), (3,)),
    ("prod(x*y)", (3, 4), (4,)),
    ("sum((x - mean(x))**2)*y/x.size", (50,), ()),
    ("sum(where(x > 0.9, x*y, exp(x)))", (21,), ()),
    ("min(abs(x - y)) + sum(sigmoid(x)*relu(y)/sqrt(x))", (21,), (21,)),
    ("sum(x @ y + x.sum(axis=1, keepdims=True))", (6, 5), (5, 4)),
    ("sum(x*y+sin(x))", (1, 1), (1, 1)),
    ("sum(x.T*y+sin(x).T)", (3, 7), (7, 3)),
    ("prod(x*y)*max(x)", (3, 4), (4,)),
]

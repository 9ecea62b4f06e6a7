y = x.clone()
y[y < 0] = scale * y[y < 0]
y[0] += 1.0
y.sum() * y.prod()

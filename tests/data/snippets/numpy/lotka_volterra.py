def lotka_volterra(alpha, beta, delta, gamma, x0, y0, n=50, dt=0.01):
    xs, ys = [x0], [y0]
    for t in range(n):
        x, y = xs[-1], ys[-1]
        xs.append(x + dt * (alpha * x - beta * x * y))
        ys.append(y + dt * (delta * x * y - gamma * y))
    return np.stack([np.array(xs), np.array(ys)]).mean(axis=1)

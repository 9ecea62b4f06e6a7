def van_der_pol(x, v, mu, dt=0.05, steps=12):
    def deriv(x, v):
        return v, mu * (1 - x**2) * v - x

    for _ in range(steps):
        dx, dv = deriv(x, v)
        mx, mv = deriv(x + 0.5 * dt * dx, v + 0.5 * dt * dv)
        x, v = x + dt * mx, v + dt * mv
    return x**2 + v**2

import math

def lambert_w(z: float, tol: float = 1e-14) -> float:
    w = math.log(1 + z)
    for _ in range(50):
        ew = math.exp(w)
        delta = (w*ew - z) / (ew*(w + 1))
        w -= delta
        if abs(delta) < tol:
            break
    return w

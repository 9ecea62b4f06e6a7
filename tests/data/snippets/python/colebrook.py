import math

def friction_factor(Re, rel_rough):
    """Darcy friction factor, Colebrook-White by fixed-point iteration"""
    f = 0.02
    for _ in range(60):
        f = 1 / (-2 * math.log10(rel_rough / 3.7 + 2.51 / (Re * math.sqrt(f))))**2
    return f

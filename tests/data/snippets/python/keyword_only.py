def damped(t, *, amplitude=1.0, decay=0.1, omega=2.0, phase=0.0):
    from math import exp, cos
    return amplitude * exp(-decay * t) * cos(omega * t + phase)

def total(t, decay):
    return damped(t, decay=decay) - damped(t, amplitude=0.5, omega=3.0, phase=0.2, decay=decay)

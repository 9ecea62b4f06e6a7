import jax

def compound(rate, principal):
    return jax.lax.fori_loop(0, 12, lambda i, p: p * (1 + rate / 12) + 10.0, principal)

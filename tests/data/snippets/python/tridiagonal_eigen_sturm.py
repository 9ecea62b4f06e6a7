def char_poly(lam, diag, off):
    p_prev, p = 1.0, diag[0] - lam
    for k in range(1, len(diag)):
        p_prev, p = p, (diag[k] - lam) * p - off[k-1]**2 * p_prev
    return p

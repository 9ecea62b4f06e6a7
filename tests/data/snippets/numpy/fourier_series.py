def fourier(t, coeffs, period):
    y = np.zeros_like(t)
    for k, c in enumerate(coeffs, start=1):
        y += c * np.sin(2 * np.pi * k * t / period)
    return y

"""The functions without a definition in ball arithmetic, and the missing operation that each would need."""

REASONS = {
    "brentq": "enclosed roots of functions",
    "cholesky": "Cholesky decomposition",
    "cond": "singular values; a norm of order 1, inf or 'fro' has digits",
    "eigh": "eigenvectors",
    "eigvalsh": "eigenvalues",
    "nsum": "enclosed sums of series",
    "nextafter": "neighbours of a number",
    "odeint": "enclosed solutions of differential equations",
    "qr": "QR decomposition",
    "root": "enclosed roots of functions",
    "solve_ivp": "enclosed solutions of differential equations",
    "svd": "singular vectors",
    "svdvals": "singular values",
}

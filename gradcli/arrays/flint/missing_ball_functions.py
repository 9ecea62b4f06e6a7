"""The functions without a definition in ball arithmetic, and the missing operation that each would need."""

REASONS = {
    "cholesky": "Cholesky decomposition",
    "cond": "singular values; a norm of order 1, inf or 'fro' has digits",
    "eigh": "eigenvectors",
    "eigvalsh": "eigenvalues",
    "logm": "logarithms of matrices",
    "nextafter": "neighbours of a number",
    "qr": "QR decomposition",
    "sqrtm": "square roots of matrices",
    "svd": "singular vectors",
    "svdvals": "singular values",
}

# The same for functions of functions, which are no functions of the namespace.
REASONS_OF_FUNCTIONALS = {
    "nsum": "enclosed sums of infinite series that converge slowly; finite and fast ones have digits",
}

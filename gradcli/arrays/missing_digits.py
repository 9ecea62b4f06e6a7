"""The functions that ball arithmetic has no proved digits of, and what it would need for them."""

REASONS = {
    "cholesky": "Cholesky decomposition",
    "cond": "singular values; a norm of order 1, inf or 'fro' has digits",
    "eigh": "eigenvectors",
    "eigvalsh": "eigenvalues",
    "nextafter": "neighbours of a number",
    "qr": "QR decomposition",
    "svd": "singular vectors",
    "svdvals": "singular values",
}

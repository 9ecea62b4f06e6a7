def gauss(A, b):
    n = len(b)
    # forward elimination
    for i in range(n):
        for j in range(i + 1, n):
            m = A[j][i] / A[i][i]
            for k in range(i, n):
                A[j][k] -= m * A[i][k]
            b[j] -= m * b[i]
    # back substitution
    x = [0] * n
    for i in range(n - 1, -1, -1):
        s = sum(A[i][j] * x[j] for j in range(i + 1, n))
        x[i] = (b[i] - s) / A[i][i]
    return x

def det(M):
    n = len(M)
    if n == 1:
        return M[0][0]
    total = 0
    for j in range(n):
        minor = [[row[k] for k in range(n) if k != j] for row in M[1:]]
        total += (-1) ** j * M[0][j] * det(minor)
    return total

def transpose(A):
    return [[row[j] for row in A] for j in range(len(A[0]))]

def mul(A, B):
    return [[sum(a*b for a, b in zip(row, col)) for col in transpose(B)] for row in A]

def trace(A):
    return sum(A[i][i] for i in range(len(A)))

def f(A):
    return trace(mul(A, transpose(A)))

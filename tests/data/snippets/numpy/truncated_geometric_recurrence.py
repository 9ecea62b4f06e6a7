import numpy as np
def bessel_down(x, n=3, start=16):
    """Miller's backward recurrence for J_n."""
    jp, j = 0.0, 1e-8
    result, norm = 0.0, 0.0
    for k in range(start, 0, -1):
        jm = 2*k/x*j - jp
        jp, j = j, jm
        if k - 1 == n:
            result = j
        if (k - 1) % 2 == 0:
            norm += 2*j if k - 1 > 0 else j
    return result / norm

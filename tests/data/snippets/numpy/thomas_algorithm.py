import numpy as np

def TDMAsolver(a, b, c, d):
    nf = len(d)
    ac, bc, cc, dc = a.copy(), b.copy(), c.copy(), d.copy()  # copy arrays
    for it in range(1, nf):
        mc = ac[it-1] / bc[it-1]
        bc[it] = bc[it] - mc * cc[it-1]
        dc[it] = dc[it] - mc * dc[it-1]
    xc = bc
    xc[-1] = dc[-1] / bc[-1]
    for il in range(nf-2, -1, -1):
        xc[il] = (dc[il] - cc[il] * xc[il+1]) / bc[il]
    return xc

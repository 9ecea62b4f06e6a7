def laplacian(Z):
    Ztop = Z[0:-2, 1:-1]
    Zleft = Z[1:-1, 0:-2]
    Zbottom = Z[2:, 1:-1]
    Zright = Z[1:-1, 2:]
    Zcenter = Z[1:-1, 1:-1]
    return Ztop + Zleft + Zbottom + Zright - 4 * Zcenter

np.sum(laplacian(Z) ** 2)

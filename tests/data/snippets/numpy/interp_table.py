np.interp(x, xp, fp)

def kl(p, q):
    p = p / np.sum(p)
    q = q / np.sum(q)
    return np.sum(p * np.log(p / q))

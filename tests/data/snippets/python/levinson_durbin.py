def levinson(r):
    order = len(r) - 1
    a = [1.0 if i == 0 else 0.0 for i in range(order + 1)]
    e = r[0]
    for i in range(1, order + 1):
        acc = r[i]
        for j in range(1, i):
            acc += a[j] * r[i - j]
        k = -acc / e
        new = a[:]
        for j in range(1, i):
            new[j] = a[j] + k * a[i - j]
        new[i] = k
        a = new
        e = e * (1 - k * k)
    return e

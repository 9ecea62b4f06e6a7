def gini(incomes):
    s = sorted(incomes)
    n = len(s)
    cum = 0
    for i, x in enumerate(s, 1):
        cum += i * x
    return (2 * cum) / (n * sum(s)) - (n + 1) / n

BRACKETS = [(10000, 0.1), (30000, 0.2), (float('inf'), 0.35)]

def tax(income, allowance=0.0):
    taxable = max(income - allowance, 0.0)
    owed, lower = 0.0, 0.0
    for upper, rate in BRACKETS:
        if taxable <= lower:
            break
        owed += (min(taxable, upper) - lower) * rate
        lower = upper
    return owed

def tax(income):
    brackets = [(0, 0.10), (9875, 0.12), (40125, 0.22), (85525, 0.24)]
    owed = 0
    for i, (lower, rate) in enumerate(brackets):
        upper = brackets[i + 1][0] if i + 1 < len(brackets) else float('inf')
        if income > lower:
            owed += (min(income, upper) - lower) * rate
    return owed

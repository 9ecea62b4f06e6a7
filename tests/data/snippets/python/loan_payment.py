def monthly_payment(loan, annual_rate, years):
    r = annual_rate / 12
    n = years * 12
    return loan * r * (1 + r)**n / ((1 + r)**n - 1)

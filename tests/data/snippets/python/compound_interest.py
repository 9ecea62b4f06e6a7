def compound_interest(principal: float, rate: float, years: int) -> float:
    amount = principal * (1 + rate / 100) ** years
    return amount - principal

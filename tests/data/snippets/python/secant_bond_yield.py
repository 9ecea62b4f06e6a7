def price(y, coupons, face):
    pv = 0.0
    for t, c in enumerate(coupons, start=1):
        pv += c / (1 + y) ** t
    return pv + face / (1 + y) ** len(coupons)

def ytm(market, coupons, face):
    y0, y1 = 0.03, 0.06
    f0 = price(y0, coupons, face) - market
    while True:
        f1 = price(y1, coupons, face) - market
        if abs(f1) < 1e-12 or f1 == f0:
            return y1
        y0, y1, f0 = y1, y1 - f1 * (y1 - y0) / (f1 - f0), f1

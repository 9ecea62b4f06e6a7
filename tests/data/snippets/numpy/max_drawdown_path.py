def max_drawdown(returns):
    wealth = np.cumprod(1 + returns)
    peak = wealth[0]
    drawdowns = []
    for v in wealth:
        if v > peak:
            peak = v
        drawdowns.append((peak - v) / peak)
    return max(drawdowns)

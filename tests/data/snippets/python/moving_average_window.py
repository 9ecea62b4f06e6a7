def moving_average(prices, window):
    out = []
    for i in range(len(prices) - window + 1):
        out.append(sum(prices[i:i + window]) / window)
    return out

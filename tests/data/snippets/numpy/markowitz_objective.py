mu = returns.mean(axis=0)
centered = returns - mu
cov = centered.T @ centered / (len(returns) - 1)
weights @ mu - risk_aversion / 2 * weights @ cov @ weights

import numpy as np

log_returns = np.diff(np.log(prices))
vol = np.std(log_returns, ddof=1) * np.sqrt(252)
vol

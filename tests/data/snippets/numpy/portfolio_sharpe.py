import numpy as np

def sharpe_ratio(w: np.ndarray, mu: np.ndarray, cov: np.ndarray, rf: float = 0.0) -> float:
    """Annualised Sharpe ratio of a portfolio.

    Parameters
    ----------
    w : weights
    mu : expected returns
    cov : covariance matrix
    """
    ret = np.dot(w, mu)
    vol = np.sqrt(np.dot(w.T, np.dot(cov, w)))
    return (ret - rf) / vol

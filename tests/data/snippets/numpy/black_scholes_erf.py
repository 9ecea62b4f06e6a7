import numpy as np
from scipy import special

def norm_cdf(x):
    return 0.5 * (1 + special.erf(x / np.sqrt(2)))

def bs_price(spot, strike, maturity, rate, vol, kind="put"):
    d1 = (np.log(spot/strike) + (rate + vol**2/2)*maturity) / (vol*np.sqrt(maturity))
    d2 = d1 - vol*np.sqrt(maturity)
    if kind == "call":
        return spot*norm_cdf(d1) - strike*np.exp(-rate*maturity)*norm_cdf(d2)
    else:
        return strike*np.exp(-rate*maturity)*norm_cdf(-d2) - spot*norm_cdf(-d1)

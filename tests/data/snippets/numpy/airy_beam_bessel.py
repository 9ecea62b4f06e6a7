from scipy.special import j1
(2 * j1(x) / x) ** 2

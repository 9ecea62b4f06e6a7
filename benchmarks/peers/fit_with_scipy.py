"""Fits Misra1a with SciPy, for benchmarks/fits.py; the argument is the path of the data."""

import sys

import numpy as np
from scipy.optimize import curve_fit

x, y = np.loadtxt(sys.argv[1], delimiter=",", skiprows=1, unpack=True)
point, covariance = curve_fit(lambda x, b1, b2: b1 * (1 - np.exp(-b2 * x)), x, y, [500, 0.0001])
print(*point, *np.sqrt(np.diag(covariance)))

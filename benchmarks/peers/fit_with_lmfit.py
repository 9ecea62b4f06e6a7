"""Fits Misra1a with lmfit, for benchmarks/fits.py; the argument is the path of the data."""

import sys

import lmfit
import numpy as np

x, y = np.loadtxt(sys.argv[1], delimiter=",", skiprows=1, unpack=True)
model = lmfit.Model(lambda x, b1, b2: b1 * (1 - np.exp(-b2 * x)))
print(model.fit(y, x=x, b1=500, b2=0.0001).fit_report())

"""Fits an impedance spectrum with lmfit, for benchmarks/fits.py; the argument is the path of the data."""

import sys

import lmfit
import numpy as np

f, re, im = np.loadtxt(sys.argv[1], delimiter=",", skiprows=1, unpack=True)
z = re + 1j * im


def impedance(f, R0, R1, A, C1):  # noqa: N803
    w = 2 * np.pi * f
    return R0 + 1 / (1 / (R1 + A * (1 - 1j) / np.sqrt(w)) + 1j * w * C1)


print(lmfit.Model(impedance).fit(z, f=f, R0=10, R1=100, A=10, C1=1e-5, weights=1 / abs(z)).fit_report())

"""Fits an impedance spectrum with impedance.py, for benchmarks/fits.py; the argument is the path of the data."""

import sys

import numpy as np
from impedance.models.circuits import CustomCircuit

f, re, im = np.loadtxt(sys.argv[1], delimiter=",", skiprows=1, unpack=True)
circuit = CustomCircuit("R0-p(R1-W1,C1)", initial_guess=[10, 100, 10, 1e-5])
circuit.fit(f, re + 1j * im, weight_by_modulus=True)
print(circuit.parameters_.tolist(), circuit.conf_.tolist())

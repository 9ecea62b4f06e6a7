import numpy as np

h = 6.62607015e-34
c = 2.99792458e8
kB = 1.380649e-23

def planck(wavelength, T):
    a = 2.0 * h * c**2
    b = h * c / (wavelength * kB * T)
    return a / (wavelength**5 * (np.exp(b) - 1.0))

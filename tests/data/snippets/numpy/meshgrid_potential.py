import numpy as np

x = np.linspace(-1, 1, 5)
y = np.linspace(-1, 1, 4)
XX, YY = np.meshgrid(x, y)
V = -np.exp(-((XX - cx)**2 + (YY - cy)**2) / (2 * width**2))
V.mean()

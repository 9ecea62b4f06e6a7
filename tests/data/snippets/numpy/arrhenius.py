import numpy as np
R = 8.314  # J/(mol K)
k = A * np.exp(-Ea / (R * T))
np.log(k)

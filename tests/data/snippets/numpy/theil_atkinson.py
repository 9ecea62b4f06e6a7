import numpy as np
mu = np.mean(y)
theil = np.mean(y/mu * np.log(y/mu))
eps = 0.5
atkinson = 1 - np.mean(y**(1-eps))**(1/(1-eps)) / mu
theil + atkinson

import math
gamma = 1 / math.sqrt(1 - (v / c)**2)
E = gamma * m * c**2

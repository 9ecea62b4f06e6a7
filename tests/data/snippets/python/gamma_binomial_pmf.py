import math
math.comb(n, k) * p**k * (1-p)**(n-k)

from math import log

ll = 0
for x in data:
    ll += log(shape / scale) + (shape - 1) * log(x / scale) - (x / scale) ** shape
ll

import math

m = sum(xs) / len(xs)
math.sqrt(sum([(x - m)**2 for x in xs]) / (len(xs) - 1))

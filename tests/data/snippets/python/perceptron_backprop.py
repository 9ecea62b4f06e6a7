import math

def sigmoid(z):
    return 1 / (1 + math.exp(-z))

hidden = [sigmoid(row[0] * x1 + row[1] * x2) for row in w]
output = sigmoid(sum(h * vi for h, vi in zip(hidden, v)))
0.5 * (target - output) ** 2

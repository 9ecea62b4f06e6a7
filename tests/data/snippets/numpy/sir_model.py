import numpy as np

def sir(beta, gamma, I0, days):
    S, I, R = 1 - I0, I0, 0.0
    infected = []
    for day in range(days):
        new_inf = beta * S * I
        new_rec = gamma * I
        S, I, R = S - new_inf, I + new_inf - new_rec, R + new_rec
        infected.append(I)
    return np.max(infected)

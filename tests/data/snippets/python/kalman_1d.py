def update(mean1, var1, mean2, var2):
    new_mean = (var2 * mean1 + var1 * mean2) / (var1 + var2)
    new_var = 1 / (1 / var1 + 1 / var2)
    return [new_mean, new_var]

def predict(mean1, var1, mean2, var2):
    return [mean1 + mean2, var1 + var2]

mu = 0.0
sig = sig0
for i in range(len(measurements)):
    mu, sig = update(mu, sig, measurements[i], 4.0)
    mu, sig = predict(mu, sig, motions[i], 2.0)
mu / sig

from math import exp

def alpha_n(V): return 0.01*(V + 55)/(1 - exp(-(V + 55)/10))
def beta_n(V): return 0.125*exp(-(V + 65)/80)

def run(V, n, g_k=36.0):
    dt = 0.01
    for _ in range(10):
        I = g_k * n**4 * (V + 77) + 0.3 * (V + 54.4)
        V, n = V - dt*I, n + dt*(alpha_n(V)*(1 - n) - beta_n(V)*n)
    return V

import numpy as np

def force(q, k):
    r = np.linalg.norm(q)
    return -k * q / r**3

def orbit(q, v, k, dt=0.05):
    a = force(q, k)
    for step in range(10):
        q = q + v*dt + 0.5*a*dt**2
        a_new = force(q, k)
        v = v + 0.5*(a + a_new)*dt
        a = a_new
    return 0.5*np.dot(v, v) - k/np.linalg.norm(q)

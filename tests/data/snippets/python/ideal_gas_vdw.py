R = 8.314462618

def pressure(n, T, V, a, b):
    '''van der Waals equation of state'''
    return n*R*T/(V - n*b) - a*n**2/V**2

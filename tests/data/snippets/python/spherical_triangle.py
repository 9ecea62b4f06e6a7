from math import sin, cos, acos, radians, degrees, pi

def spherical_excess(a, b, c):
    a, b, c = radians(a), radians(b), radians(c)
    A = acos((cos(a) - cos(b)*cos(c)) / (sin(b)*sin(c)))
    B = acos((cos(b) - cos(c)*cos(a)) / (sin(c)*sin(a)))
    C = acos((cos(c) - cos(a)*cos(b)) / (sin(a)*sin(b)))
    return degrees(A + B + C - pi)

sum(1 / ((p[0] - q[0])**2 + (p[1] - q[1])**2) for i, p in enumerate(pts) for q in pts[i+1:])

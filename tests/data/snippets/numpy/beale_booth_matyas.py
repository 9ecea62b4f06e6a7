import numpy as np
beale = lambda x, y: (1.5 - x + x*y)**2 + (2.25 - x + x*y**2)**2 + (2.625 - x + x*y**3)**2
booth = lambda x, y: (x + 2*y - 7)**2 + (2*x + y - 5)**2
matyas = lambda x, y: 0.26*(x**2 + y**2) - 0.48*x*y
total = sum(f(x, y) for f in (beale, booth, matyas))

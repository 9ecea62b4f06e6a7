from scipy.optimize import minimize

import autograd.numpy as np
from autograd import hessian, value_and_grad


def rosenbrock(x):
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


found = minimize(value_and_grad(rosenbrock), x0=np.array([0.0, 0.0]), jac=True, method="CG", tol=1e-10)
show(found.x, value_and_grad(rosenbrock)(np.array([-1.2, 1.0])), hessian(rosenbrock)(np.array([-1.2, 1.0])))

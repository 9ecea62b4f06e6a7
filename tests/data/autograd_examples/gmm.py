from scipy.optimize import minimize

import autograd.numpy as np
import autograd.numpy.random as npr
import autograd.scipy.stats.multivariate_normal as mvn
from autograd import grad, hessian_vector_product
from autograd.misc.flatten import flatten_func
from autograd.scipy.special import logsumexp

rs = npr.RandomState(0)
data = np.concatenate([rs.randn(12, 2) * 0.3 + center for center in ([0, 1], [2, 0])])
init_params = {
    "log proportions": rs.randn(2) * 0.1,
    "means": rs.randn(2, 2),
    "lower triangles": np.zeros((2, 2, 2)) + np.eye(2),
}


def log_likelihood(params):
    proportions = params["log proportions"] - logsumexp(params["log proportions"])
    cluster_lls = []
    for log_proportion, mean, cov_sqrt in zip(proportions, params["means"], params["lower triangles"]):
        cluster_lls.append(log_proportion + mvn.logpdf(data, mean, np.dot(cov_sqrt.T, cov_sqrt)))
    return np.sum(logsumexp(np.vstack(cluster_lls), axis=0))


objective, unflatten, start = flatten_func(lambda params: -log_likelihood(params), init_params)
product = hessian_vector_product(objective)
found = minimize(objective, start, jac=grad(objective), hessp=product, method="Newton-CG", options={"maxiter": 3})
show(found.fun, grad(objective)(start), product(start, np.arange(float(len(start)))), unflatten(found.x)["means"])

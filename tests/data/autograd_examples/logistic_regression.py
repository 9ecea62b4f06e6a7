import autograd.numpy as np
from autograd import grad
from autograd.test_util import check_grads


def sigmoid(x):
    return 0.5 * (np.tanh(x) + 1)


def predictions(weights):
    return sigmoid(np.dot(inputs, weights))


def training_loss(weights):
    preds = predictions(weights)
    return -np.sum(np.log(preds * targets + (1 - preds) * (1 - targets)))


inputs = np.array([[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]])
targets = np.array([True, True, False, True])
weights = np.array([0.0, 0.0, 0.0])
gradient = grad(training_loss)
check_grads(training_loss, modes=["rev"])(weights)
for i in range(100):
    weights -= gradient(weights) * 0.01
show(weights, training_loss(weights))

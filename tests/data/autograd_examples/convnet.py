import autograd.numpy as np
import autograd.numpy.random as npr
import autograd.scipy.signal as signal
from autograd import grad


class WeightsParser:
    def __init__(self):
        self.places, self.size = {}, 0

    def add(self, name, shape):
        self.places[name] = (slice(self.size, self.size + np.prod(shape)), shape)
        self.size += np.prod(shape)

    def get(self, vector, name):
        place, shape = self.places[name]
        return np.reshape(vector[place], shape)


parser = WeightsParser()
parser.add("filters", (1, 3, 3, 3))
parser.add("biases", (1, 3, 1, 1))
parser.add("full", (27, 4))


def logsumexp(X, axis, keepdims=False):
    top = np.max(X)
    return top + np.log(np.sum(np.exp(X - top), axis=axis, keepdims=keepdims))


def predict(W, images):
    units = signal.convolve(images, parser.get(W, "filters"), axes=([2, 3], [2, 3]), dot_axes=([1], [0]), mode="valid")
    units = units + parser.get(W, "biases")
    n, k, rows, cols = units.shape
    pooled = np.max(np.max(units.reshape((n, k, rows // 2, 2, cols // 2, 2)), axis=3), axis=4)
    scores = np.dot(np.tanh(pooled.reshape((n, np.prod(pooled.shape[1:])))), parser.get(W, "full"))
    return scores - logsumexp(scores, axis=1, keepdims=True)


rs = npr.RandomState(0)
images, labels = rs.rand(10, 1, 8, 8), np.eye(4)[rs.randint(4, size=10)]
W, direction = rs.randn(parser.size) * 0.1, np.zeros(parser.size)
loss = grad(lambda W: np.dot(W, W) - np.sum(predict(W, images) * labels))
for _ in range(4):
    direction = 0.9 * direction + 0.1 * loss(W)
    W -= 0.1 * direction
show(W, np.mean(np.argmax(predict(W, images), axis=1) == np.argmax(labels, axis=1)))

import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import grad
from autograd.misc.optimizers import adam
from autograd.scipy.special import logsumexp

text = "to be or not to be that is the"
letters = sorted(set(text))
one_hot = np.array([letters.index(c) for c in text])[:, None] == np.arange(len(letters))[None, :]
sequences = np.array(one_hot, dtype=int).reshape((6, 5, len(letters)))
rs = npr.RandomState(0)
size, K = 4, len(letters)
init_params = {
    "init hiddens": rs.randn(1, size) * 0.1,
    "change": rs.randn(K + size + 1, size) * 0.1,
    "predict": rs.randn(size + 1, K) * 0.1,
}


def concat_and_multiply(weights, *args):
    cat_state = np.hstack(args + (np.ones((args[0].shape[0], 1)),))
    return np.dot(cat_state, weights)


def rnn_predict(params, inputs):
    def output(hiddens):
        scores = concat_and_multiply(params["predict"], hiddens)
        return scores - logsumexp(scores, axis=1, keepdims=True)

    hiddens = np.repeat(params["init hiddens"], inputs.shape[1], axis=0)
    out = [output(hiddens)]
    for x in inputs:
        hiddens = np.tanh(concat_and_multiply(params["change"], x, hiddens))
        out.append(output(hiddens))
    return out


def log_likelihood(params, inputs, targets):
    logprobs = rnn_predict(params, inputs)
    loglik = 0.0
    for t in range(inputs.shape[0]):
        loglik += np.sum(logprobs[t] * targets[t])
    return loglik / (inputs.shape[0] * inputs.shape[1])


def loss(params, i):
    return -log_likelihood(params, sequences, sequences)


params = adam(grad(loss), init_params, step_size=0.1, num_iters=12)
logprobs = np.asarray(rnn_predict(params, sequences))
show(loss(params, 0), logprobs.shape, logprobs[-1], npr.RandomState(0).choice(K, p=np.exp(logprobs[-1, 0])))

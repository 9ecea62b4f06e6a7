"""`jax.random`: random numbers determined by a key; the numbers differ from JAX's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.calculus.functions.mapping import as_tensor
from gradcli.errors import ArgumentError
from gradcli.numpy.dispatch import has_tensors

# The random streams of a key: for samples, for split keys and for folded keys.
_DRAWN, _SPLIT, _FOLDED = range(3)


def PRNGKey(seed: int) -> Tensor:
    """The key of a seed, two integers."""
    return as_tensor(np.array([0, int(seed) % 2**32], dtype=np.int64))


key = PRNGKey


def split(key: Any, num: int = 2) -> Tensor:
    """`num` new keys, stacked along the first axis."""
    return as_tensor(_generator(key, _SPLIT).integers(2**32, size=(num, 2)))


def fold_in(key: Any, data: int) -> Tensor:
    """A new key from a key and an integer."""
    return as_tensor(_generator(key, _FOLDED, int(data)).integers(2**32, size=2))


def normal(key: Any, shape: Sequence[int] = (), dtype: Any = np.float64) -> Tensor:
    return _made(_generator(key).standard_normal(_shape(shape)), dtype)


def uniform(
    key: Any, shape: Sequence[int] = (), dtype: Any = np.float64, minval: Any = 0.0, maxval: Any = 1.0
) -> Tensor:
    drawn: Tensor = _made(_generator(key).random(_shape(shape)), dtype) * (maxval - minval) + minval
    return drawn


def exponential(key: Any, shape: Sequence[int] = (), dtype: Any = np.float64) -> Tensor:
    return _made(_generator(key).standard_exponential(_shape(shape)), dtype)


def gumbel(key: Any, shape: Sequence[int] = (), dtype: Any = np.float64) -> Tensor:
    return _made(_generator(key).gumbel(size=_shape(shape)), dtype)


def laplace(key: Any, shape: Sequence[int] = (), dtype: Any = np.float64) -> Tensor:
    return _made(_generator(key).laplace(size=_shape(shape)), dtype)


def randint(key: Any, shape: Sequence[int], minval: int, maxval: int) -> Tensor:
    """Integers from `minval` up to but not including `maxval`."""
    return as_tensor(_generator(key).integers(minval, maxval, size=_shape(shape)))


def bernoulli(key: Any, p: Any = 0.5, shape: Sequence[int] | None = None) -> Tensor:
    """Booleans that are true with probability `p`."""
    probability = as_tensor(p).detach().numpy()
    return as_tensor(_generator(key).random(probability.shape if shape is None else _shape(shape)) < probability)


def permutation(key: Any, x: Any) -> Tensor:
    """range(x), or the slices of `x`, in random order."""
    generator = _generator(key)
    if isinstance(x, int):
        return as_tensor(generator.permutation(x))
    slices = as_tensor(x)
    permuted: Tensor = slices[generator.permutation(slices.shape[0])]
    return permuted


def choice(key: Any, a: Any, shape: Sequence[int] = (), replace: bool = True, p: Any = None) -> Tensor:
    """Random elements of range(a), or slices of `a`, with the probabilities `p`."""
    values = as_tensor(np.arange(a) if isinstance(a, int) else a)
    weights = None if p is None else as_tensor(p).detach().numpy()
    chosen: Tensor = values[_generator(key).choice(values.shape[0], _shape(shape), replace, weights)]
    return chosen


def categorical(key: Any, logits: Any, axis: int = -1, shape: Sequence[int] | None = None) -> Tensor:
    """Integers with the probabilities softmax(logits) along `axis`."""
    weights = np.moveaxis(as_tensor(logits).detach().numpy(), axis, -1)
    size = weights.shape[:-1] if shape is None else _shape(shape)
    return as_tensor(np.argmax(weights + _generator(key).gumbel(size=(*size, weights.shape[-1])), axis=-1))


def _generator(key: Any, *stream: int) -> np.random.Generator:
    numbers = np.asarray(key.detach().numpy() if has_tensors(key) else key)
    if numbers.shape != (2,):
        raise ArgumentError(f"a key is two whole numbers, not an array of shape {[*numbers.shape]}")
    return np.random.Generator(np.random.Philox([*map(int, numbers), *(stream or (_DRAWN,))]))


def _shape(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _made(drawn: Any, dtype: Any) -> Tensor:
    return as_tensor(np.asarray(drawn, dtype=dtype))

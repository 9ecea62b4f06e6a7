"""Tensors of random numbers, with the signatures of PyTorch's functions and the same numbers for the same seed.

A call with a `seed` argument returns the numbers of the function of the language with that seed instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.autograd import generators
from gradcli.autograd.creation.factory import as_tensor, new_leaf
from gradcli.autograd.dtype_names import known_dtype
from gradcli.autograd.tensor import Tensor
from gradcli.errors import CallError, EvaluationError
from gradcli.primitives.axes import integer
from gradcli.primitives.entries.manipulation import creation
from gradcli.primitives.entries.manipulation.creation import read_shape


def rand(*size: Any, dtype: Any = None, generator: Any = None, **options: Any) -> Tensor:
    """Uniform numbers in [0, 1); the shape and options are those of `zeros`."""
    return _of_floats(generators.uniform, creation.rand, size, dtype, generator, options)


def randn(*size: Any, dtype: Any = None, generator: Any = None, **options: Any) -> Tensor:
    """Standard normal numbers; see `rand`."""
    return _of_floats(generators.normal, creation.randn, size, dtype, generator, options)


def _of_floats(
    draw: Callable[..., Any], seeded: Any, size: Any, dtype: Any, generator: Any, options: dict[str, Any]
) -> Tensor:
    for name in ("size", "shape"):
        if name in options:
            size = (options.pop(name),)
    if options.get("seed") is not None:
        return new_leaf(seeded(*size, seed=options.pop("seed")), dtype=dtype, **options)
    options.pop("seed", None)
    asked = known_dtype(dtype)
    if asked is not None and asked.startswith("complex"):
        return new_leaf(_complex(draw, read_shape(size), asked, generator), **options)
    return new_leaf(draw(read_shape(size), _floating(dtype), generator=generator), **options)


def _complex(draw: Callable[..., Any], shape: Shape, dtype: str, generator: Any) -> Any:
    """Complex numbers with random parts; normal ones have a variance of 1, each part of 1/2."""
    parts = draw((*shape, 2), "float64" if dtype == "complex128" else "float32", generator=generator)
    numbers = (parts[..., 0] + 1j * parts[..., 1]).astype(dtype)
    return numbers / arrays.numpy_namespace().sqrt(2).astype(parts.dtype) if draw is generators.normal else numbers


def _floating(dtype: Any) -> str:
    name = known_dtype(dtype) or arrays.default_dtype()
    if not name.startswith("float"):
        raise EvaluationError(f"random floats are not drawn as {name}", hint="randint draws whole numbers")
    return name


def randint(
    low: Any, high: Any = None, size: Any = None, *, dtype: Any = "int64", generator: Any = None, **options: Any
) -> Tensor:
    """Integers in [low, high); with a single bound, in [0, low). See `rand`."""
    if size is None:
        if high is None:
            raise CallError("randint() needs the bound of the numbers and their shape: randint(10, (2, 3))")
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    return new_leaf(generators.integers(read_shape((size,)), low, high, generator), dtype=dtype, **options)


def randperm(n: Any, *, dtype: Any = "int64", generator: Any = None, **options: Any) -> Tensor:
    """The integers below n in random order; see `rand`."""
    (count,) = read_shape((integer(n, "a number of elements"),))
    numpy = arrays.numpy_namespace()

    def draw(stream: Any, total: int) -> Any:
        rows = (stream.permutation(count) for _ in range(total // count if count else 0))
        return numpy.array([*rows], "int64")

    return new_leaf(generators.drawn((count,), draw, generator), dtype=dtype, **options)


def rand_like(input: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """Uniform numbers in the shape and, by default, dtype of a tensor; see `rand`."""
    like = as_tensor(input)
    return rand(like.shape, dtype=dtype or like.dtype, **_beside(like, options))


def randn_like(input: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """Standard normal numbers in the shape of a tensor; see `rand_like`."""
    like = as_tensor(input)
    return randn(like.shape, dtype=dtype or like.dtype, **_beside(like, options))


def randint_like(input: Any, low: Any, high: Any = None, *, dtype: Any = None, **options: Any) -> Tensor:
    """Integers in the shape of a tensor; see `rand_like` and `randint`."""
    like = as_tensor(input)
    return randint(low, high, like.shape, dtype=dtype or like.dtype, **_beside(like, options))


def _beside(like: Tensor, options: dict[str, Any]) -> dict[str, Any]:
    """`options` with the backend and device of `like`, unless they specify one."""
    there = arrays.foreign_namespace((like.inner,))
    if there is None or "device" in options or "backend" in options:
        return options
    return {**options, "backend": there.name, "device": there.device_name}


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, **options: Any) -> Any:
    """Normal numbers with the given means and standard deviations.

    The shape is `size` if both are numbers, else the broadcast shape of both.
    """
    if size is not None:
        dtype = _floating(options.pop("dtype", None))
        shape = read_shape((size,))
        return new_leaf(generators.normal(shape, dtype, mean, std, generator), **options)
    if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        raise CallError("normal() needs a size where the mean and the standard deviation are numbers")
    around = as_tensor(mean).detach() + 0 * as_tensor(std).detach()
    return randn_like(around, generator=generator) * as_tensor(std).detach() + as_tensor(mean).detach()

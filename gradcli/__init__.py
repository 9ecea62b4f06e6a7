"""Exact derivatives of tensor expressions: an autograd with PyTorch's semantics, and a language for it.

Every function of the language is a function of this module: `gradcli.log(x)`, `gradcli.sum(x, axis=0)`.
"""

from __future__ import annotations

# Nothing is imported here, so that `import gradcli` is fast and the command can handle interrupts before it imports.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.arrays.shapes import Size
    from gradcli.autograd.creation.creation_functions import (
        arange,
        empty,
        empty_like,
        eye,
        full,
        full_like,
        linspace,
        logspace,
        ones,
        ones_like,
        tril_indices,
        triu_indices,
        zeros,
        zeros_like,
    )
    from gradcli.autograd.creation.factory import as_tensor, from_dlpack, from_numpy, is_inference, tensor
    from gradcli.autograd.creation.random_tensors import (
        normal,
        rand,
        rand_like,
        randint,
        randint_like,
        randn,
        randn_like,
        randperm,
    )
    from gradcli.autograd.dtype_names import (
        device,
        finfo,
        get_default_dtype,
        iinfo,
        set_default_device,
        set_default_dtype,
    )
    from gradcli.autograd.function import Function
    from gradcli.autograd.generators import (
        Generator,
        default_generator,
        get_rng_state,
        initial_seed,
        manual_seed,
        seed,
        set_rng_state,
    )
    from gradcli.autograd.modes import (
        enable_grad,
        inference_mode,
        is_grad_enabled,
        is_inference_mode_enabled,
        no_grad,
        set_grad_enabled,
    )
    from gradcli.autograd.operations.sampling_functions import bernoulli, multinomial, unique
    from gradcli.autograd.tensor import Tensor
    from gradcli.calculus.functions.calling_conventions import grad, hessian, jacobian
    from gradcli.calculus.functions.differential_operators import (
        deriv,
        elementwise_grad,
        grad_and_aux,
        grad_named,
        hessian_tensor_product,
        hessian_vector_product,
        make_ggnvp,
        make_hvp,
        make_jvp,
        make_jvp_reversemode,
        make_vjp,
        multigrad_dict,
        tensor_jacobian_product,
        value_and_grad,
        vector_jacobian_product,
    )
    from gradcli.calculus.functions.mapping import vmap
    from gradcli.compiled.compiling import compile
    from gradcli.compiled.derivative_check import gradcheck
    from gradcli.compiled.programs import CompiledProgram
    from gradcli.errors import AccuracyWarning, GradcliError
    from gradcli.models.expansions.power_series import series
    from gradcli.models.fitting.fits import fit
    from gradcli.models.optima.minima import minimize
    from gradcli.models.plotting.pictures import plot
    from gradcli.models.uncertainty.propagation import propagate
    from gradcli.primitives.index_tricks import c_, r_
    from gradcli.utils.checkpoint import checkpoint
    from gradcli.utils.serialization import load, save

__version__ = "0.1.0"

# The module of each name that is not a function of the language; it is imported on first access.
_HOMES = {
    "AccuracyWarning": "gradcli.errors",
    "BoolTensor": "gradcli.autograd.creation.factory",
    "ByteTensor": "gradcli.autograd.creation.factory",
    "CharTensor": "gradcli.autograd.creation.factory",
    "CompiledProgram": "gradcli.compiled.programs",
    "DoubleTensor": "gradcli.autograd.creation.factory",
    "FloatTensor": "gradcli.autograd.creation.factory",
    "Function": "gradcli.autograd.function",
    "Generator": "gradcli.autograd.generators",
    "GradcliError": "gradcli.errors",
    "HalfTensor": "gradcli.autograd.creation.factory",
    "IntTensor": "gradcli.autograd.creation.factory",
    "LongTensor": "gradcli.autograd.creation.factory",
    "ShortTensor": "gradcli.autograd.creation.factory",
    "Size": "gradcli.arrays.shapes",
    "Tensor": "gradcli.autograd.tensor",
    "alpha_dropout": "gradcli.nn.dropout",
    "arange": "gradcli.autograd.creation.creation_functions",
    "are_deterministic_algorithms_enabled": "gradcli.autograd.process_settings",
    "as_tensor": "gradcli.autograd.creation.factory",
    "autocast": "gradcli.amp",
    "bartlett_window": "gradcli.autograd.short_time_fourier",
    "bernoulli": "gradcli.autograd.operations.sampling_functions",
    "blackman_window": "gradcli.autograd.short_time_fourier",
    "bool": "gradcli.autograd.dtype_names",
    "broadcast_shapes": "gradcli.autograd.dtype_rules",
    "c_": "gradcli.primitives.index_tricks",
    "can_cast": "gradcli.autograd.dtype_rules",
    "cdouble": "gradcli.autograd.dtype_names",
    "cfloat": "gradcli.autograd.dtype_names",
    "checkpoint": "gradcli.utils.checkpoint",
    "compile": "gradcli.compiled.compiling",
    "complex128": "gradcli.autograd.dtype_names",
    "complex64": "gradcli.autograd.dtype_names",
    "default_generator": "gradcli.autograd.generators",
    "deriv": "gradcli.calculus.functions.differential_operators",
    "design": "gradcli.models.designs.optimal_designs",
    "device": "gradcli.autograd.dtype_names",
    "double": "gradcli.autograd.dtype_names",
    "dropout": "gradcli.nn.dropout",
    "dtype": "gradcli.autograd.dtype_names",
    "e": "math",
    "elementwise_grad": "gradcli.calculus.functions.differential_operators",
    "empty": "gradcli.autograd.creation.creation_functions",
    "empty_like": "gradcli.autograd.creation.creation_functions",
    "enable_grad": "gradcli.autograd.modes",
    "eye": "gradcli.autograd.creation.creation_functions",
    "feature_alpha_dropout": "gradcli.nn.dropout",
    "fftfreq": "gradcli.autograd.creation.creation_functions",
    "finfo": "gradcli.autograd.dtype_names",
    "fit": "gradcli.models.fitting.fits",
    "float": "gradcli.autograd.dtype_names",
    "float16": "gradcli.autograd.dtype_names",
    "float32": "gradcli.autograd.dtype_names",
    "float64": "gradcli.autograd.dtype_names",
    "from_dlpack": "gradcli.autograd.creation.factory",
    "from_numpy": "gradcli.autograd.creation.factory",
    "full": "gradcli.autograd.creation.creation_functions",
    "full_like": "gradcli.autograd.creation.creation_functions",
    "gcd": "gradcli.autograd.dtype_rules",
    "get_default_dtype": "gradcli.autograd.dtype_names",
    "get_float32_matmul_precision": "gradcli.autograd.process_settings",
    "get_num_threads": "gradcli.autograd.process_settings",
    "get_rng_state": "gradcli.autograd.generators",
    "grad": "gradcli.calculus.functions.calling_conventions",
    "grad_and_aux": "gradcli.calculus.functions.differential_operators",
    "grad_named": "gradcli.calculus.functions.differential_operators",
    "gradcheck": "gradcli.compiled.derivative_check",
    "half": "gradcli.autograd.dtype_names",
    "hamming_window": "gradcli.autograd.short_time_fourier",
    "hann_window": "gradcli.autograd.short_time_fourier",
    "hessian": "gradcli.calculus.functions.calling_conventions",
    "hessian_tensor_product": "gradcli.calculus.functions.differential_operators",
    "hessian_vector_product": "gradcli.calculus.functions.differential_operators",
    "holomorphic_grad": "gradcli.calculus.functions.differential_operators",
    "iinfo": "gradcli.autograd.dtype_names",
    "inf": "math",
    "inference_mode": "gradcli.autograd.modes",
    "initial_seed": "gradcli.autograd.generators",
    "int": "gradcli.autograd.dtype_names",
    "int16": "gradcli.autograd.dtype_names",
    "int32": "gradcli.autograd.dtype_names",
    "int64": "gradcli.autograd.dtype_names",
    "int8": "gradcli.autograd.dtype_names",
    "is_complex": "gradcli.autograd.creation.factory",
    "is_floating_point": "gradcli.autograd.creation.factory",
    "is_grad_enabled": "gradcli.autograd.modes",
    "is_inference": "gradcli.autograd.creation.factory",
    "is_inference_mode_enabled": "gradcli.autograd.modes",
    "is_nonzero": "gradcli.autograd.dtype_rules",
    "is_tensor": "gradcli.autograd.creation.factory",
    "istft": "gradcli.autograd.short_time_fourier",
    "jacobian": "gradcli.calculus.functions.calling_conventions",
    "kaiser_window": "gradcli.autograd.short_time_fourier",
    "lcm": "gradcli.autograd.dtype_rules",
    "linspace": "gradcli.autograd.creation.creation_functions",
    "load": "gradcli.utils.serialization",
    "load_ipython_extension": "gradcli.cli.notebook",
    "logspace": "gradcli.autograd.creation.creation_functions",
    "long": "gradcli.autograd.dtype_names",
    "make_ggnvp": "gradcli.calculus.functions.differential_operators",
    "make_hvp": "gradcli.calculus.functions.differential_operators",
    "make_jvp": "gradcli.calculus.functions.differential_operators",
    "make_jvp_reversemode": "gradcli.calculus.functions.differential_operators",
    "make_vjp": "gradcli.calculus.functions.differential_operators",
    "manual_seed": "gradcli.autograd.generators",
    "minimize": "gradcli.models.optima.minima",
    "multigrad_dict": "gradcli.calculus.functions.differential_operators",
    "multinomial": "gradcli.autograd.operations.sampling_functions",
    "nan": "math",
    "no_grad": "gradcli.autograd.modes",
    "normal": "gradcli.autograd.creation.random_tensors",
    "ones": "gradcli.autograd.creation.creation_functions",
    "ones_like": "gradcli.autograd.creation.creation_functions",
    "pi": "math",
    "plot": "gradcli.models.plotting.pictures",
    "promote_types": "gradcli.autograd.dtype_rules",
    "propagate": "gradcli.models.uncertainty.propagation",
    "r_": "gradcli.primitives.index_tricks",
    "rand": "gradcli.autograd.creation.random_tensors",
    "rand_like": "gradcli.autograd.creation.random_tensors",
    "randint": "gradcli.autograd.creation.random_tensors",
    "randint_like": "gradcli.autograd.creation.random_tensors",
    "randn": "gradcli.autograd.creation.random_tensors",
    "randn_like": "gradcli.autograd.creation.random_tensors",
    "randperm": "gradcli.autograd.creation.random_tensors",
    "result_type": "gradcli.autograd.dtype_rules",
    "rfftfreq": "gradcli.autograd.creation.creation_functions",
    "rrelu": "gradcli.nn.dropout",
    "sample": "gradcli.models.sampling.posterior_draws",
    "save": "gradcli.utils.serialization",
    "scalar_tensor": "gradcli.autograd.dtype_rules",
    "seed": "gradcli.autograd.generators",
    "series": "gradcli.models.expansions.power_series",
    "set_default_device": "gradcli.autograd.dtype_names",
    "set_default_dtype": "gradcli.autograd.dtype_names",
    "set_default_tensor_type": "gradcli.autograd.process_settings",
    "set_float32_matmul_precision": "gradcli.autograd.process_settings",
    "set_grad_enabled": "gradcli.autograd.modes",
    "set_num_interop_threads": "gradcli.autograd.process_settings",
    "set_num_threads": "gradcli.autograd.process_settings",
    "set_printoptions": "gradcli.autograd.process_settings",
    "set_rng_state": "gradcli.autograd.generators",
    "short": "gradcli.autograd.dtype_names",
    "stft": "gradcli.autograd.short_time_fourier",
    "tensor": "gradcli.autograd.creation.factory",
    "tensor_jacobian_product": "gradcli.calculus.functions.differential_operators",
    "tril_indices": "gradcli.autograd.creation.creation_functions",
    "triu_indices": "gradcli.autograd.creation.creation_functions",
    "uint8": "gradcli.autograd.dtype_names",
    "unique": "gradcli.autograd.operations.sampling_functions",
    "unravel_index": "gradcli.autograd.dtype_rules",
    "use_deterministic_algorithms": "gradcli.autograd.process_settings",
    "value_and_grad": "gradcli.calculus.functions.differential_operators",
    "vector_jacobian_product": "gradcli.calculus.functions.differential_operators",
    "vmap": "gradcli.calculus.functions.mapping",
    "zeros": "gradcli.autograd.creation.creation_functions",
    "zeros_like": "gradcli.autograd.creation.creation_functions",
}

_MODULES = (
    "accelerator",
    "amp",
    "autograd",
    "backends",
    "builtins",
    "cuda",
    "distributions",
    "extend",
    "fft",
    "func",
    "jax",
    "linalg",
    "misc",
    "models",
    "nn",
    "numpy",
    "optim",
    "scipy",
    "special",
    "test_util",
    "testing",
    "utils",
)

__all__ = [
    "AccuracyWarning",
    "CompiledProgram",
    "Function",
    "Generator",
    "GradcliError",
    "Size",
    "Tensor",
    "arange",
    "as_tensor",
    "bernoulli",
    "c_",
    "checkpoint",
    "compile",
    "default_generator",
    "deriv",
    "design",
    "device",
    "elementwise_grad",
    "empty",
    "empty_like",
    "enable_grad",
    "eye",
    "finfo",
    "fit",
    "from_dlpack",
    "from_numpy",
    "full",
    "full_like",
    "get_default_dtype",
    "get_rng_state",
    "grad",
    "grad_and_aux",
    "grad_named",
    "gradcheck",
    "hessian",
    "hessian_tensor_product",
    "hessian_vector_product",
    "iinfo",
    "inference_mode",
    "initial_seed",
    "is_grad_enabled",
    "is_inference",
    "is_inference_mode_enabled",
    "jacobian",
    "linspace",
    "load",
    "logspace",
    "make_ggnvp",
    "make_hvp",
    "make_jvp",
    "make_jvp_reversemode",
    "make_vjp",
    "manual_seed",
    "minimize",
    "multigrad_dict",
    "multinomial",
    "no_grad",
    "normal",
    "ones",
    "ones_like",
    "plot",
    "propagate",
    "r_",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "sample",
    "save",
    "seed",
    "series",
    "set_default_device",
    "set_default_dtype",
    "set_grad_enabled",
    "set_rng_state",
    "tensor",
    "tensor_jacobian_product",
    "tril_indices",
    "triu_indices",
    "unique",
    "value_and_grad",
    "vector_jacobian_product",
    "vmap",
    "zeros",
    "zeros_like",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module
    from importlib.machinery import PathFinder

    if name in _HOMES:
        from gradcli import garbage

        with garbage.imports_promoted():
            module = import_module(_HOMES[name])
        # Cached, so that later accesses do not call this function.
        found = globals()[name] = getattr(module, name)
        return found
    if name in _MODULES:
        return import_module(f"gradcli.{name}")
    # For a submodule that is not loaded yet, AttributeError is raised, and the import statement then finds it.
    reason = ""
    if not name.startswith("_") and PathFinder.find_spec(f"{__name__}.{name}", __path__) is None:
        from gradcli.autograd.operations.tensor_functions import function, in_place
        from gradcli.primitives import table

        found = function(name) or in_place(name) or table.numpy_meaning(name)
        if found is not None:
            globals()[name] = found
            return found
        reason = table.reason_suffix(name)
    raise AttributeError(f"module 'gradcli' has no attribute {name!r}{reason}")


def __dir__() -> list[str]:
    from gradcli.primitives import table

    return sorted({*__all__, *table.names()})

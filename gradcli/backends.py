"""`torch.backends`, as seen on a machine without the libraries that PyTorch is built with; see `gradcli.cuda`.

Attributes such as `cudnn.benchmark` can be set, and have no effect. `gradcli backends` shows the array libraries.
"""

from __future__ import annotations


class _Library:
    """A library that PyTorch may be built with, and that is not used here."""

    enabled = benchmark = deterministic = allow_tf32 = False

    def is_available(self) -> bool:
        return False

    is_built = is_available


cuda, cudnn, mkl, mkldnn, mps, openmp, opt_einsum = (_Library() for _ in range(7))
# What is set for products of matrices on a GPU.
cuda.matmul = _Library()  # type: ignore[attr-defined]

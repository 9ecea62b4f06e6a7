"""The modes of recording, under the name of PyTorch's module; they stand in `modes`."""

from gradcli.autograd.modes import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]

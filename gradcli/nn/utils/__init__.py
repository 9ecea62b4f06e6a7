"""Utilities for all parameters or gradients of a network at once."""

from gradcli.nn.utils import rnn
from gradcli.nn.utils.gradients import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from gradcli.nn.utils.vectors import parameters_to_vector, vector_to_parameters

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "rnn",
    "vector_to_parameters",
]

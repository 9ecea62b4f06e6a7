"""Which library's meaning a name of a program has."""

from __future__ import annotations

from typing import Literal as OneOf

from gradcli.errors import CallError
from gradcli.language.syntax import tree
from gradcli.primitives import table
from gradcli.primitives.operation import Operation

# The meaning of names without a prefix and of methods: PyTorch's, NumPy's, JAX's, which is NumPy's but for tensors that
# never change, or what is unclear, as PyTorch's and another occur.
Dialect = OneOf["torch", "numpy", "jax", "both"]

_TORCH = ("torch",)
# `math` and `scipy.special` call nothing as anybody else does not.
_NUMPY = ("numpy", "jax", "scipy.linalg")


def of_program(program: tree.Module) -> Dialect:
    """PyTorch's where only its prefixes and imports occur, else NumPy's."""
    libraries: set[str] = set()
    for node in tree.everything(program):
        if isinstance(node, (tree.Call, tree.Name)):
            libraries.add(node.module)
        elif isinstance(node, tree.Import):
            libraries.update(node.libraries.split())
    torch = any(library.startswith(_TORCH) for library in libraries)
    numpy = any(library.startswith(_NUMPY) and not library.startswith("jax.scipy.special") for library in libraries)
    if torch:
        return "both" if numpy else "torch"
    return "jax" if any(library.startswith("jax") for library in libraries) else "numpy"


def function(call: tree.Call, dialect: Dialect) -> Operation | None:
    """The function of the table that a call means, None where there is none of the name.

    Raises CallError where PyTorch and NumPy mean different ones, and the program speaks both languages.
    """
    if call.name == "log" and call.module in ("", "math") and _has_base(call):
        return table.find("log", "base")
    if call.module:
        if (call.module, call.name) in _OTHERWISE:
            raise CallError(f"'{call.module}.{call.name}' {_OTHERWISE[call.module, call.name]}", span=call.name_span)
        return table.find(call.name, *table.families(call.module))
    if call.receiver is not None and call.name == "where":
        # Of a tensor alone: what is chosen stands before the condition.
        return table.find("where", "method")
    if call.receiver is not None and call.name in _METHODS_OF_TORCH:
        return table.find(call.name, "torch")
    if dialect == "both" and table.differs(call.name):
        raise CallError(
            f"'{call.name}' means one thing in PyTorch and another in NumPy, and the program has prefixes of both",
            hint=f"write torch.{call.name}(…) or np.{call.name}(…)",
            span=call.name_span,
        )
    if dialect != "torch" and call.name == "gradient":
        raise CallError(
            "'gradient' without a prefix is no function",
            hint="write diff(y, x) for a derivative, np.gradient(…) for the slopes between samples",
            span=call.name_span,
        )
    if dialect != "torch" and table.find(call.name) is None and table.differs(call.name):
        raise CallError(
            f"'{call.name}' means one thing in PyTorch and another in SciPy",
            hint=f"write F.{call.name}(…) or scipy.special.{call.name}(…)",
            span=call.name_span,
        )
    if dialect == "numpy" and call.receiver is not None and call.name == "sort":
        raise CallError(
            "the method 'sort' gives nothing in NumPy, where it sorts in place, and values and indices in PyTorch",
            hint="write np.sort(x) or torch.sort(x)[0]",
            span=call.span,
        )
    if dialect == "torch":
        return table.find(call.name, "torch")
    return table.find(call.name, "linalg" if call.receiver is None else "numpy")


# Functions of modules that are not those of their names here.
_OTHERWISE = {
    ("torch.nn.functional", "unfold"): "takes the blocks of images, and 'unfold' here the windows along an axis",
    ("jax.lax", "round"): "rounds a half away from zero, and 'round' here to the even number",
}
# Methods that only PyTorch's tensors have, by names that NumPy has for something else.
_METHODS_OF_TORCH = ("size", "norm", "split")


def _has_base(call: tree.Call) -> bool:
    """Whether a logarithm is one to a base, as only Python and mathematics have it."""
    return len(tree.positional(call)) + len(call.keywords) > 1

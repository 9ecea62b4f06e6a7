"""The library whose meaning the name of a function has in a program."""

from __future__ import annotations

from gradcli.errors import CallError
from gradcli.language.names.resolution import Dialect, Resolution, resolve
from gradcli.language.syntax import tree
from gradcli.primitives import table
from gradcli.primitives.operation import Operation
from gradcli.primitives.signature import resolve_keyword

_TORCH = ("torch",)
# `math`, `scipy.special` and `scipy.stats` have no names with another meaning elsewhere.
_NUMPY = ("numpy", "jax", "scipy.linalg")
_NEUTRAL = ("jax.scipy.special", "jax.scipy.stats")


# Names that only SymPy has, without those that it shares with Julia.
_OF_SYMPY = frozenset(
    "Max Min Piecewise LambertW Ei E1 Si Ci Shi Chi elliptic_k elliptic_e elliptic_f loggamma fresnels fresnelc".split()  # noqa: SIM905
)
_OTHER_THAN_SYMPY = {"sinc": "NumPy", "jn": "SciPy", "yn": "SciPy"}
_PREFIXES_BESIDE = {"sinc": "np", "jn": "scipy.special", "yn": "scipy.special"}


def dialect_of(program: tree.Module) -> Dialect:
    """The dialect of a program, judged by its prefixes, imports and keywords; NumPy's where there are none.

    Raises CallError for a name with another meaning in SymPy, where the program has names that only SymPy has.
    """
    resolution = resolve(program)
    if resolution.dialect is None:
        resolution.dialect = _dialect(program, resolution)
    return resolution.dialect


def _dialect(program: tree.Module, resolution: Resolution) -> Dialect:
    libraries = {name.module for name in resolution.nodes(tree.Name, tree.ImaginaryUnit)}
    libraries.update(*(imported.libraries.split() for imported in resolution.nodes(tree.Import)))
    doubtful: tree.Call | None = None
    symbolic = False
    for call in resolution.operations:
        libraries.add(call.module)
        if not call.module:
            symbolic = symbolic or call.name in _OF_SYMPY
            doubtful = call if call.name in table.LIBRARY_MEANINGS["sympy"] and call.receiver is None else doubtful
        if call.keywords and table.differs(call.name) and _may_say(call):
            libraries.add("" if _is_defined(program, call.name) else _said_by_keywords(call) or "")
    if doubtful is not None and (symbolic or "sympy" in libraries):
        raise CallError(
            f"'{doubtful.name}' means one thing in SymPy and another in {_OTHER_THAN_SYMPY[doubtful.name]}",
            hint=f"write sympy.{doubtful.name}(…) or {_PREFIXES_BESIDE[doubtful.name]}.{doubtful.name}(…)",
            span=doubtful.name_span,
            source=program.source,
        )
    torch = any(library.startswith(_TORCH) for library in libraries)
    numpy = any(library.startswith(_NUMPY) and not library.startswith(_NEUTRAL) for library in libraries)
    if torch:
        return "both" if numpy else "torch"
    return "jax" if any(library.startswith("jax") for library in libraries) else "numpy"


def resolve_function(call: tree.Call, dialect: Dialect) -> Operation | None:
    """The function of the table that a call refers to, or None where none has this name.

    Raises CallError where PyTorch and NumPy mean different functions and the program uses both.
    """
    if call.name == "log" and call.module in ("", "math") and _has_base(call):
        return table.find("log", "base")
    if call.module:
        if (call.module, call.name) in _OTHERWISE:
            raise CallError(f"'{call.module}.{call.name}' {_OTHERWISE[call.module, call.name]}", span=call.name_span)
        return table.find(call.name, *table.dialects_of(call.module))
    if call.receiver is not None and call.name in table.LIBRARY_MEANINGS["method"]:
        # Methods of tensors have another order of arguments: `x.where(condition, y)`.
        return table.find(call.name, "method")
    if call.receiver is not None and call.name in _METHODS_OF_TORCH:
        return table.find(call.name, "torch")
    if dialect != "torch" and _may_say(call):
        library = _said_by_keywords(call)
        if library is not None:
            return table.find(call.name, library)
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
        other, *prefixes = _elsewhere(call.name)
        raise CallError(
            f"'{call.name}' means one thing in PyTorch and another in {other}",
            hint=f"write {prefixes[0]}.{call.name}(…) or {prefixes[1]}.{call.name}(…)",
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


def _elsewhere(name: str) -> tuple[str, str, str]:
    """The other library that has a name which the language itself lacks, and the prefixes for both."""
    return ("SciPy", "F", "scipy.special") if name == "kl_div" else ("NumPy", "torch", "np")


# Keywords that only PyTorch has, for functions whose meaning differs between PyTorch and NumPy.
_OF_TORCH_ALONE = frozenset({"dim", "dims", "keepdim", "unbiased", "input", "other"})


def _may_say(call: tree.Call) -> bool:
    """Return whether the keywords of a call may tell which library is meant."""
    return bool(call.keywords) and not call.module and (table.differs(call.name) or table.is_wider(call.name))


def _is_defined(program: tree.Module, name: str) -> bool:
    """Return whether a program defines or assigns a name itself."""
    return name in resolve(program).functions or name in resolve(program).bound


def _said_by_keywords(call: tree.Call) -> str | None:
    """The library to which the keywords of a call belong, None where it may be either.

    Raises CallError for keywords of both.
    """
    torch, numpy = table.find(call.name, "torch"), table.find(call.name, "numpy")
    said: dict[str, str] = {}
    for argument in call.keywords:
        name = argument.name
        in_torch = name in _OF_TORCH_ALONE or _takes(torch, name)
        in_numpy = name not in _OF_TORCH_ALONE and _takes(numpy, name)
        if in_torch != in_numpy:
            said.setdefault("torch" if in_torch else "numpy", name)
    if len(said) == 2:
        raise CallError(
            f"'{call.name}' means one thing in PyTorch, which has '{said['torch']}', and another in NumPy, which has "
            f"'{said['numpy']}'",
            hint=f"write torch.{call.name}(…) or np.{call.name}(…)",
            span=call.name_span,
        )
    return next(iter(said), None)


def _takes(operation: Operation | None, keyword: str) -> bool:
    if operation is None:
        return False
    return any(p.name == resolve_keyword(keyword, operation.parameters) for p in operation.parameters)


# Functions of modules that differ from the function of the same name in the language.
_OTHERWISE = {
    ("torch.nn.functional", "unfold"): "takes the blocks of images, and 'unfold' here the windows along an axis",
    ("torch", "range"): "includes the end, and 'range' here does not",
    ("jax.lax", "round"): "rounds a half away from zero, and 'round' here to the even number",
    ("jax.lax", "gather"): "takes slices by dimension numbers, and 'gather' here elements along an axis",
    ("jax.lax", "scatter"): "sets slices by dimension numbers, and 'scatter' here elements along an axis",
    ("jax.lax", "scatter_add"): "adds to slices by dimension numbers, and 'scatter_add' here to elements along an axis",
    ("jax.nn", "identity"): "gives its argument, and 'identity' here the identity matrix",
    **{
        (f"{library}.random", name): f"draws random numbers, and '{name}' here is a function without them"
        for library in ("numpy", "jax")
        for name in ("beta", "gamma", "power")
    },
}
# Methods of PyTorch tensors whose names mean something else in NumPy.
_METHODS_OF_TORCH = ("size", "norm", "split", "select")


def _has_base(call: tree.Call) -> bool:
    """Return whether a logarithm is called with a base, as in Python's `math`."""
    return len(tree.positional(call)) + len(call.keywords) > 1

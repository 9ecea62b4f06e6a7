"""Resolves library prefixes and imports: removes them from names and stores the module in the tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gradcli.language.syntax.lexer import PREFIXES, Token
from gradcli.named_tuples import NamedTuple

# Prefixes that are also common names of variables, such as F for a force: they are prefixes only before a module or a
# function that PyTorch has there.
_OWN_NAMES = frozenset({"F", "nn", "special"})
_FUNCTIONAL = frozenset(
    [
        "relu",
        "relu6",
        "leaky_relu",
        "elu",
        "celu",
        "selu",
        "silu",
        "gelu",
        "mish",
        "softplus",
        "softsign",
        "softmax",
        "log_softmax",
        "softmin",
        "logsigmoid",
        "sigmoid",
        "tanh",
        "hardtanh",
        "hardsigmoid",
        "hardswish",
        "tanhshrink",
        "softshrink",
        "hardshrink",
        "threshold",
        "mse_loss",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "cross_entropy",
        "nll_loss",
        "kl_div",
        "gaussian_nll_loss",
        "poisson_nll_loss",
        "linear",
        "normalize",
        "one_hot",
        "pad",
        "unfold",
        "cosine_similarity",
        "pairwise_distance",
        "layer_norm",
        "rms_norm",
        "glu",
        "embedding",
        "scaled_dot_product_attention",
        "conv1d",
        "conv2d",
        "avg_pool1d",
        "avg_pool2d",
        "max_pool1d",
        "max_pool2d",
        *"""
        prelu group_norm batch_norm instance_norm local_response_norm conv3d conv_transpose1d conv_transpose2d
        conv_transpose3d avg_pool3d max_pool3d margin_ranking_loss soft_margin_loss hinge_embedding_loss
        cosine_embedding_loss multi_margin_loss multilabel_soft_margin_loss triplet_margin_loss bilinear pdist
        pixel_shuffle pixel_unshuffle channel_shuffle interpolate upsample upsample_nearest upsample_bilinear adaptive_avg_pool1d adaptive_avg_pool2d
        adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d lp_pool1d lp_pool2d lp_pool3d
        max_unpool1d max_unpool2d max_unpool3d multilabel_margin_loss
        """.split(),  # noqa: SIM905
    ]
)
_MODULES = frozenset(
    {
        "linalg",
        "special",
        "nn",
        "functional",
        "numpy",
        "scipy",
        "lax",
        "func",
        "autograd",
        "random",
        "fft",
        "integrate",
        "stats",
        "distributions",
    }
)
# Modules of classes, whose methods may be named with a prefix: `scipy.stats.norm.pdf`.
_DISTRIBUTION_MODULES = frozenset({"scipy.stats", "jax.scipy.stats", "torch.distributions"})
_KNOWN = frozenset({"numpy", "jax", "scipy", "math", "torch", "sympy"})
# Modules that may be imported and have no effect.
SKIPPED = frozenset({"typing", "__future__"})


class Imported(NamedTuple):
    """The meaning of an imported name: a module, or the member `name` of it."""

    module: str
    name: str = ""


def resolve_prefixes(raw: Iterator[Token]) -> Iterator[Token]:
    """The tokens with library prefixes removed from names and stored in `Token.module`."""
    tokens = [*raw]
    yield from _without_prefixes(tokens, _prefixes(tokens, _imports(tokens)))


def known(module: str) -> bool:
    """Return whether a program may import a module."""
    root, *parts = module.split(".")
    return root in SKIPPED or (root in _KNOWN and _MODULES.issuperset(parts))


def _imports(tokens: Sequence[Token]) -> dict[str, Imported]:
    found: dict[str, Imported] = {}
    for place, token in enumerate(tokens):
        if token.type == "IMPORT":
            module = _module_before(tokens, place)
            found |= _imported(tokens, place + 1, module)
    return found


def _module_before(tokens: Sequence[Token], place: int) -> str | None:
    """The module of `from a.b import`, or None without a `from`."""
    parts: list[str] = []
    while place > 0 and tokens[place - 1].type in ("NAME", "DOT"):
        place -= 1
        parts.append(tokens[place].value)
    return "".join(reversed(parts)) if place > 0 and tokens[place - 1].type == "FROM" else None


def _imported(tokens: Sequence[Token], place: int, module: str | None) -> Iterator[tuple[str, Imported]]:
    """The names bound by an `import`, each with its meaning."""
    while True:
        place += tokens[place : place + 1] != [] and tokens[place].type == "LPAR"
        path: list[str] = []
        while place < len(tokens) and tokens[place].type in ("NAME", "DOT"):
            path.append(tokens[place].value)
            place += 1
        if not path:
            # `from math import *` lists no names.
            return
        dotted = "".join(path)
        alias = dotted.partition(".")[0] if module is None else dotted
        meant = Imported(alias) if module is None else Imported(module, dotted)
        if place + 1 < len(tokens) and tokens[place].type == "AS":
            alias = tokens[place + 1].value
            meant = Imported(dotted) if module is None else meant
            place += 2
        yield alias, meant
        if not (place < len(tokens) and tokens[place].type == "COMMA"):
            return
        place += 1


def _prefixes(tokens: Sequence[Token], imported: Mapping[str, Imported]) -> dict[str, Imported]:
    """The meaning of each prefix: imported names, and the usual prefixes unless the program uses them as variables."""
    usual = {name: Imported(module) for name, module in PREFIXES.items()}
    for i, token in enumerate(tokens):
        if token.type == "NAME" and token.value in usual and not _is_prefix(tokens, i):
            del usual[token.value]
    return usual | {name: _resolved(meant) for name, meant in imported.items()}


def _is_prefix(tokens: Sequence[Token], place: int) -> bool:
    name = tokens[place].value
    if place > 0 and tokens[place - 1].type == "DOT":
        return True
    if not (place + 2 < len(tokens) and tokens[place + 1].type == "DOT" and tokens[place + 2].type == "NAME"):
        return False
    following = tokens[place + 2].value
    return name not in _OWN_NAMES or following in _FUNCTIONAL or following in _MODULES or name == "special"


def _resolved(meant: Imported) -> Imported:
    """The module itself, where the imported member is a module, as in `from torch import nn`."""
    if _is_module(meant.name, meant.module):
        return Imported(f"{meant.module}.{meant.name}")
    return meant


def _is_module(name: str, parent: str) -> bool:
    """Return whether a name after a module is a module; `fft` has a function of its own name, and `integrate` is a function
    elsewhere than in SciPy."""
    return name in _MODULES and not parent.endswith(".fft") and (name != "integrate" or parent == "scipy")


def _without_prefixes(tokens: Sequence[Token], prefixes: Mapping[str, Imported]) -> Iterator[Token]:
    place, importing = 0, False
    while place < len(tokens):
        token = tokens[place]
        importing = token.type in ("IMPORT", "FROM") or (importing and token.type != "SEPARATOR")
        meant = prefixes.get(token.value) if token.type == "NAME" and not importing else None
        if meant is None or (place > 0 and tokens[place - 1].type == "DOT"):
            yield token
            place += 1
        elif meant.name and meant.module in _DISTRIBUTION_MODULES and _is_path(tokens, place):
            yield tokens[place + 2]._replace(module=f"{meant.module}.{meant.name}")
            place += 3
        elif meant.name:
            yield token._replace(value=meant.name, module=meant.module)
            place += 1
        else:
            module, place = _path(tokens, place, meant.module)
            yield tokens[place]._replace(module=module)
            place += 1


def _path(tokens: Sequence[Token], place: int, module: str) -> tuple[str, int]:
    """The module before a name, and the index of the name; "" and the index of the prefix where no name follows."""
    first = place
    while place + 2 < len(tokens) and tokens[place + 1].type == "DOT" and tokens[place + 2].type == "NAME":
        place += 2
        name = tokens[place].value
        if not _is_module(name, module) and not (module in _DISTRIBUTION_MODULES and _is_path(tokens, place)):
            return module, place
        module = f"{module}.{name}"
    return "", first


def _is_path(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a name is followed by a dot and another name."""
    return [t.type for t in tokens[place + 1 : place + 3]] == ["DOT", "NAME"]

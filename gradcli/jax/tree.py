"""`jax.tree`: the functions of `jax.tree_util` under their shorter names."""

from gradcli.jax.tree_util import tree_all as all
from gradcli.jax.tree_util import tree_flatten as flatten
from gradcli.jax.tree_util import tree_leaves as leaves
from gradcli.jax.tree_util import tree_map as map
from gradcli.jax.tree_util import tree_reduce as reduce
from gradcli.jax.tree_util import tree_structure as structure
from gradcli.jax.tree_util import tree_unflatten as unflatten

__all__ = ["all", "flatten", "leaves", "map", "reduce", "structure", "unflatten"]

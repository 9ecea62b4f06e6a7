"""Distributions as values of a program, such as `scipy.stats.norm(0, 1)` and `torch.distributions.Normal(0.0, 1.0)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gradcli.errors import CallError
from gradcli.language.interpreter import call_arguments
from gradcli.language.interpreter.values import RandomVariable, Value
from gradcli.language.syntax import tree
from gradcli.primitives.distribution_names import DISTRIBUTIONS, METHODS, is_distribution, may_be_distribution
from gradcli.primitives.entries.libraries import probability
from gradcli.primitives.signature import parse_signature


def made(node: tree.Call, positional: Sequence[Value], keywords: Mapping[str, Value]) -> RandomVariable:
    """The distribution that a constructor call makes. Raises CallError for arguments that do not fit."""
    distribution = f"{node.module}.{node.name}"
    call_arguments.fit(node.name, parse_signature(probability.parameters(distribution)), positional, keywords)
    return RandomVariable(distribution, positional, keywords)


def method(
    node: tree.Call, variable: RandomVariable, positional: Sequence[Value], keywords: Mapping[str, Value]
) -> tuple[tree.Call, list[Value], dict[str, Value]]:
    """A call of a distribution's method as one of the library's function, with the parameters as further arguments."""
    called = tree.Call(node.span, node.name, node.name_span, None, node.arguments, node.keywords, variable.distribution)
    return called, [*positional, *variable.positional], {**keywords, **variable.keywords}


def missing_method_error(call: tree.Call) -> CallError | None:
    """The error for a method that a distribution lacks, or that is called on another value; None for other calls."""
    if may_be_distribution(call.module) and not is_distribution(call.module):
        library = call.module.removeprefix("jax.").rpartition(".")[0]
        return CallError(
            f"there is no distribution '{call.module}' here",
            hint=f"those of {library} are {' '.join(sorted(DISTRIBUTIONS[library]))}",
            span=call.name_span,
        )
    if is_distribution(call.module):
        return CallError(
            f"'{call.module}' has no function '{call.name}' here",
            hint=f"it has {' '.join(probability.methods(call.module))}",
            span=call.name_span,
        )
    if call.receiver is not None and call.name in METHODS:
        return CallError(
            f"'{call.name}' is a function of distributions, and this is none",
            hint="as in scipy.stats.norm(0, 1).pdf(x), torch.distributions.Normal(0.0, 1.0).log_prob(x)",
            span=call.name_span,
        )
    return None

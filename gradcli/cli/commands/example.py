"""The worked example of a function: a `gradcli eval` command that uses it, and its output."""

from __future__ import annotations

import io
import shlex
from itertools import chain, repeat

from gradcli.cli.commands.eval import EvalOptions, run
from gradcli.cli.process.environment import Environment
from gradcli.errors import DifferentiationError
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.operation import Operation
from gradcli.primitives.signature import SignatureParameter
from gradcli.type_hints import Any


class Example(NamedTuple):
    command: str
    output: str


def worked(operation: Operation, *, json: bool) -> Example:
    """The example of a function, evaluated now."""
    words = _words(operation)
    options = EvalOptions(words=words, json=json, no_grad=operation.derivative == "none")
    try:
        output = _printed(options)
    except DifferentiationError:
        # A value that is not a scalar has a Jacobian as its derivative.
        options = options.replaced(jacobian=True)
        output = _printed(options)
    return Example(_command(words, options), output)


def _printed(options: EvalOptions) -> str:
    out = io.StringIO()
    # Warnings on standard error are dropped.
    run(options, Environment(None, out, None, {}))
    return out.getvalue()


def _command(words: list[str], options: EvalOptions) -> str:
    program, *bindings = words
    pairs = (binding.partition("=") for binding in bindings)
    quoted = [shlex.quote(program), *(f"{name}={shlex.quote(value)}" for name, _, value in pairs)]
    flags = {"--jacobian": options.jacobian, "--no-grad": options.no_grad, "--json": options.json}
    return " ".join(["gradcli", "eval", *quoted, *(flag for flag, given in flags.items() if given)])


def _words(operation: Operation) -> list[str]:
    """The program and its bindings: the example of the operation, or a call with its first sample."""
    if operation.example is not None:
        return shlex.split(operation.example)
    sample = operation.samples[0]
    arguments = sample if isinstance(sample, tuple) else (sample,)
    parameters = operation.parameters
    bound: dict[str, str] = {}
    # The last parameter repeats for variadic functions, as in `*tensors`.
    pairs = zip(chain(parameters, repeat(parameters[-1])), arguments)
    call = ", ".join([_argument(parameter, argument, bound) for parameter, argument in pairs])
    return [f"{operation.name}({call})", *(f"{name}={value}" for name, value in bound.items())]


def _argument(parameter: SignatureParameter, value: Any, bound: dict[str, str]) -> str:
    """An argument in the call: floats are bound to a name; integers and strings are written as literals."""
    if parameter.default is not None:
        return f"{parameter.name}={_literal(value)}"
    if not _is_numbers(value):
        return _literal(value)
    if parameter.name != "tensors":
        return _bind(parameter.name, value, bound)
    if parameter.variadic:
        return _bind("abc"[len(bound)], value, bound)
    return f"[{', '.join([_bind('abc'[len(bound)], tensor, bound) for tensor in value])}]"


def _bind(name: str, value: Any, bound: dict[str, str]) -> str:
    bound[name] = _literal(value)
    return name


def _is_numbers(value: Any) -> bool:
    return all(map(_is_numbers, value)) if isinstance(value, list) else isinstance(value, float)


def _literal(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_literal, value))}]"
    return f'"{value}"' if isinstance(value, str) else repr(value).removesuffix(".0")

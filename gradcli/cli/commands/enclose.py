"""The command `gradcli eval --enclose`: bounds of a value and its derivatives over intervals."""

from __future__ import annotations

from gradcli.cli.arguments import inputs
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering.render import opening, show, show_json
from gradcli.errors import ExitStatus, UsageError
from gradcli.io.text_tables import Table
from gradcli.limits import MAX_PRECISION
from gradcli.proofs import complex_enclosures
from gradcli.proofs.complex_enclosures import Rectangle
from gradcli.proofs.enclosed import Enclosure
from gradcli.type_hints import Any, Protocol


class EnclosingOptions(inputs.ProgramOptions, Protocol):
    """The options of `gradcli eval` that are used here."""

    @property
    def order(self) -> int | None: ...
    @property
    def jacobian(self) -> bool: ...
    @property
    def no_grad(self) -> bool: ...
    @property
    def digits(self) -> int | None: ...
    @property
    def json(self) -> bool: ...


def run(options: EnclosingOptions, environment: Environment) -> ExitStatus:
    """Evaluate over intervals and print the enclosures."""
    _check(options)
    with inputs.computing(options) as namespace:
        sources = inputs.sources(options, environment, "float64")
        values = {name: value() for name, value in sources.values.items()}
        found = complex_enclosures.enclose(
            sources.program,
            values,
            inputs.leaves(values, options),
            order=0 if options.no_grad else options.order or 1,
            jacobian=options.jacobian,
            digits=options.digits,
        )
    if options.json:
        show_json(_json(options, sources.program.source, found, namespace), environment)
    else:
        show(_tables(found), environment)
    return ExitStatus.SUCCESS


def _check(options: Any) -> None:
    """Raise UsageError for options that contradict --enclose."""
    other = {
        "--dtype": options.dtype != "float64",
        "--backend": options.backend != "numpy",
        "--device": options.device not in (None, "cpu"),
        "--max-precision": options.max_precision != MAX_PRECISION,
        "--executor": options.executor is not None,
        "--sparse": options.sparse,
        "--grad-output": options.grad_output is not None,
        "--wirtinger": options.wirtinger,
        "--retain": options.retain is not None,
        "--nodes": options.nodes,
        "--no-rewrite": options.no_rewrite,
        "--save": options.save is not None,
        "--timing": options.timing,
        "--fail-on-nonfinite": options.fail_on_nonfinite,
        "--certify": options.certify,
    }
    asked = [name for name, given in other.items() if given]
    if asked:
        raise UsageError(f"--enclose and {asked[0]} contradict each other", hint="leave out one of them")
    if options.jacobian and options.order is not None:
        raise UsageError("--enclose gives either Jacobians or derivatives of higher order", hint="leave out --jacobian")


def _json(options: EnclosingOptions, text: str, found: Enclosure, namespace: Any) -> dict[str, Any]:
    record = opening(text, namespace) | {"dtype": "arb", "digits": found.digits, "shape": list(found.shape)}
    parts = {
        "box": found.box,
        "value": found.value,
        "reached": found.reached,
        "grad": None if options.jacobian else found.grad,
        "derivatives": found.derivatives,
        "jacobian": found.grad if options.jacobian else None,
    }
    record |= {key: _listed(part) for key, part in parts.items() if part is not None}
    if found.grad is not None:
        record |= {"monotonic": found.monotonic, "curvature": found.curvature}
    return record


def _listed(part: Any) -> Any:
    """Enclosures as pairs of decimal strings; those of both parts of complex numbers by their names."""
    if isinstance(part, Rectangle):
        return {"re": _listed(part.real), "im": _listed(part.imag)}
    if isinstance(part, dict):
        return {name: _listed(member) for name, member in part.items()}
    if isinstance(part, list):
        return [_listed(member) for member in part]
    return [str(part.low), str(part.high)]


def _tables(found: Enclosure) -> list[Table]:
    value: tuple[str, ...] = ("value", _text(found.value))
    if found.reached is not None:
        value = (*value, f"reaches {_text(found.reached)}")
    tables = [Table((), [value])]
    if found.grad is not None:
        words = [found.monotonic.get(name) or "" for name in found.grad]
        title = "derivative" if isinstance(found.value, Rectangle) else "gradient"
        rows = [(name, _text(part)) for name, part in found.grad.items()]
        if any(words):
            tables.append(Table(("by", title, "value"), [(*row, word) for row, word in zip(rows, words)]))
        else:
            tables.append(Table(("by", title), rows))
    if found.derivatives:
        tables.append(Table(("by", "derivative"), [(name, _text(part)) for name, part in found.derivatives.items()]))
    if found.curvature is not None:
        tables.append(Table((), [("curvature", found.curvature)]))
    return tables


def _text(part: Any) -> str:
    if isinstance(part, Rectangle):
        if isinstance(part.real, list):
            return _text([Rectangle(*pair) for pair in zip(part.real, part.imag)])
        return f"{_text(part.real)} + {_text(part.imag)}j"
    if isinstance(part, list):
        return f"[{', '.join(map(_text, part))}]"
    return f"[{part.low}, {part.high}]"

"""Complex parameters of fits, as pairs of real ones: c is made of c_re and c_im, which are estimated."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gradcli.errors import UsageError
from gradcli.language.differential_equations import has_differential_equations
from gradcli.models import checked_arguments
from gradcli.models.fitting.fit_requests import FitRequest
from gradcli.rows.new_tables import unused_name

_ENDINGS = ("re", "im")


def in_parts(request: FitRequest) -> FitRequest:
    """The request with the parts of each parameter whose start is complex in its place.

    Raises UsageError for complex parameters of differential equations, and for bounds and priors of complex parameters
    as a whole.
    """
    own = request.parameters
    named = [name for name, value in own.start.items() if isinstance(value, complex)]
    if not named:
        return request
    texts = [request.model, *filter(None, (request.against, request.response)), *request.derived.values()]
    words = {word for text in texts for word in re.findall(r"\w+", text)}
    taken = {*words, *own.start, *request.table.columns}
    # Of a name that nothing reads, the rest of the fit tells that.
    parts = {name: [unused_name(f"{name}_{end}", taken) for end in _ENDINGS] for name in named if name in words}
    _check(request, parts)
    starts: dict[str, float] = {}
    for name, value in own.start.items():
        numbers = (checked_arguments.number(n, f"the start of '{name}'") for n in (value.real, value.imag))
        starts |= zip(parts.get(name, [name]), numbers)
    fixed = [part for name in own.fixed for part in parts.get(name, [name])]
    return request._replace(
        model=_begun(request.model, parts),
        against=request.against and _begun(request.against, parts),
        derived={name: _begun(text, parts) for name, text in request.derived.items()},
        parameters=own._replace(start=starts, fixed=fixed),
    )


def _begun(text: str, parts: Mapping[str, Sequence[str]]) -> str:
    """A program that begins by making each complex parameter that it reads of its parts. A program may have a function
    `complex` of its own, but none with a prefix."""
    read = {word for word in re.findall(r"\w+", text) if word in parts}
    made = [f"{name} = torch.complex({', '.join(own)}); " for name, own in parts.items() if name in read]
    return "".join([*made, text])


def _check(request: FitRequest, parts: Mapping[str, Sequence[str]]) -> None:
    if has_differential_equations(request.model):
        raise UsageError(
            "parameters of differential equations are real", hint="write complex(a, b) for one that is not"
        )
    for option, given in (("bounds", request.parameters.bounds), ("a prior", request.parameters.priors)):
        name = next((name for name in given if name in parts), None)
        if name is not None:
            raise UsageError(
                f"'{name}' is complex, and {option} are those of real numbers"
                if option == "bounds"
                else f"'{name}' is complex, and {option} is one of a real number",
                hint=f"{' and '.join(parts[name])} are its parts",
            )

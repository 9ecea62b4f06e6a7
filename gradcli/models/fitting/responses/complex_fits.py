"""Fits of complex numbers as fits of real ones. A complex parameter c is made of c_re and c_im, which are estimated.
With a complex response each row becomes two, one for the real part of the response and of the model, one for the
imaginary part, which are fitted as measurements of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradcli import arrays
from gradcli.errors import BindingError, GradcliError, Span, UsageError
from gradcli.evaluation.row_evaluation import evaluated
from gradcli.language.differential_equations import has_differential_equations
from gradcli.language.names import scope
from gradcli.language.syntax import tree
from gradcli.models import checked_arguments
from gradcli.models.data import Categories, Data
from gradcli.models.fitting.fit_requests import FitRequest
from gradcli.models.fitting.notation.model_texts import rewritten
from gradcli.models.fitting.problem.fit_problems import program_values
from gradcli.models.fitting.problem.fit_texts import FitTexts
from gradcli.models.fitting.statistics.inference import ROBUST
from gradcli.named_tuples import NamedTuple
from gradcli.rows.formats.new_tables import unused_name

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
    # A name that nothing reads is an error of the fit, which is raised later.
    parts = {name: [unused_name(f"{name}_{end}", taken) for end in _ENDINGS] for name in named if name in words}
    _check_parameters(request, parts)
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


def _check_parameters(request: FitRequest, parts: Mapping[str, Sequence[str]]) -> None:
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


# What `sigma` is where the standard deviations are proportional to the moduli of the responses.
MODULUS = "modulus"
# The part of a value that the column {part} tells, 1 for the real and 0 for the imaginary one: the real part of the value
# times 1 or times -1j. The value is computed once, and the products are exact. A model may have a name j, and a function
# `complex` of its own, but none with a prefix.
_PART = "({value}*torch.complex({part}, {part} - 1)).real"


def is_modulus(request: FitRequest) -> bool:
    """Return whether the standard deviations are the moduli of the responses; a column of this name comes first."""
    return request.sigma == MODULUS and MODULUS not in request.table.columns


def is_complex(response: tree.Module, data: Data, limits: tuple[int, int]) -> bool:
    """Return whether a response is complex, which its first row decides; False where that fails."""
    reads = [name for name in scope.free_names(response) if name in data.columns]
    if response.source.strip() in reads:
        return arrays.is_complex(data.columns[response.source.strip()])
    if not (len(data.rows) and reads):
        return False
    first = {name: data.columns[name][0].item() for name in reads}
    try:
        return arrays.is_complex(evaluated(response, first, (), 0, limits).value)
    except GradcliError:
        return False


class Rewriting(NamedTuple):
    """The program of a part, and the program as it is written."""

    made: tree.Module
    written: tree.Module


class RequestInParts(NamedTuple):
    """A request, its programs, its data with two rows for each row, and the column that tells the part of a row."""

    request: FitRequest
    texts: FitTexts
    data: Data
    part: str
    rewritings: Sequence[Rewriting]


def parts_of(request: FitRequest, texts: FitTexts, data: Data) -> RequestInParts:
    """The fit of both parts of a complex response.

    Raises UsageError for options that such a fit lacks, BindingError for a response that is no number, and what
    evaluating the response raises.
    """
    _check(request, texts)
    columns = {name: np.repeat(column, 2) for name, column in data.columns.items()}
    taken = {*request.table.columns, *re.findall(r"\w+", f"{texts.text.model.source} {texts.text.response.source}")}
    part = unused_name("part", taken)
    if is_modulus(request):
        moduli = unused_name("modulus_of_row", taken)
        columns[moduli] = np.repeat(_moduli(texts.text.response, data, request.limits), 2)
        request = request._replace(sigma=moduli)
    columns[part] = np.tile([1.0, 0.0], len(data.rows))
    formula = _PART.replace("{part}", part)
    rewritings = [
        Rewriting(rewritten(written, [formula]), written) for written in (texts.text.model, texts.text.response)
    ]
    text = texts.text._replace(model=rewritings[0].made, response=rewritings[1].made)
    words = {name: Categories(own.names, np.repeat(own.codes, 2)) for name, own in data.texts.items()}
    doubled = data._replace(columns=columns, rows=np.repeat(data.rows, 2), texts=words)
    return RequestInParts(request, texts._replace(text=text), doubled, part, rewritings)


@contextmanager
def as_written(rewritings: Sequence[Rewriting]) -> Iterator[None]:
    """Errors in the programs of parts show the programs as they are written."""
    try:
        yield
    except GradcliError as error:
        for made, written in rewritings:
            if error.source == made.source and error.span is not None:
                _relocate(error, error.span, made, written)
                break
        raise


def _relocate(error: GradcliError, span: Span, made: tree.Module, written: tree.Module) -> None:
    """Let an error within the last expression show it as it is written; what is added around it counts as all of it."""
    last = written.body[-1]
    assert isinstance(last, tree.Evaluate)
    value = last.value.span
    text = written.source[value.start : value.end]
    start = made.source.rindex(_PART.partition("{value}")[0] + f"({text})") + 2
    if span.end < start:
        return
    inside = start <= span.start and span.end <= start + len(text)
    shift = value.start - start
    error.source = written.source
    error.span = Span(span.start + shift, span.end + shift) if inside else value


def _moduli(response: tree.Module, data: Data, limits: tuple[int, int]) -> Any:
    moduli = np.abs(program_values(response, data, limits))
    if not moduli.all():
        raise BindingError(
            f"the response is 0 in row {int(data.rows[moduli.argmin()]) + 1}, and --sigma {MODULUS} divides by its modulus",
            hint="leave such rows out, or give a column of standard deviations",
        )
    return moduli


def _check(request: FitRequest, texts: FitTexts) -> None:
    if request.by is not None:
        raise UsageError("--by is for real responses, and this one is complex", hint="fit the groups one by one")
    if texts.indexed:
        raise UsageError(
            "parameters with levels are for real responses, and this one is complex", hint="fit the groups one by one"
        )
    if request.x_sigma:
        raise UsageError("errors of the predictors are for real responses, and this one is complex")
    if request.known.errors == ROBUST:
        raise UsageError(
            "--errors robust takes the two parts of a complex number for independent",
            hint="--errors cluster:COLUMN, with a column that numbers the rows, does not",
        )

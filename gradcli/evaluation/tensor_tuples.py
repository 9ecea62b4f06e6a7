"""Splits a program whose value is several tensors into one program for each tensor."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gradcli.errors import SeveralTensorsError
from gradcli.evaluation.session import EvaluationRequest, RequestFactory
from gradcli.language.syntax import tree


def parts(request: RequestFactory, error: SeveralTensorsError) -> Iterator[RequestFactory]:
    """Yield a request for each of the tensors that `error` names. Raises `error` where the program ends with a
    block."""
    for number in range(len(error.names)):
        yield partial(_requested, request, number, error)


def _requested(request: RequestFactory, number: int, error: SeveralTensorsError) -> EvaluationRequest:
    asked = request()
    return asked._replace(program=_part(asked.program, number, error))


def _part(program: tree.Module, number: int, error: SeveralTensorsError) -> tree.Module:
    """The program with tensor `number` as its value."""
    *before, last = program.body
    if isinstance(last, tree.Evaluate):
        taken = last.value
    elif isinstance(last, tree.Assign) and isinstance(last.targets[0], tree.BoundName):
        before.append(last)
        taken = tree.Name(last.span, last.targets[0].name, "")
    else:
        raise error
    index = tree.Index(last.span, taken, (tree.Number(last.span, float(number), ""),))
    return tree.Module(program.span, program.source, (*before, tree.Evaluate(last.span, index)))

"""Certify how many digits of a floating-point run are right, by comparing each number with a ball that encloses the
exact one.

The proof is about the program as written, whatever form was evaluated. Inputs and literals are the floats of the
ordinary run; constants such as `pi` are exact.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli import arrays
from gradcli.errors import GradcliError, Span
from gradcli.evaluation import session
from gradcli.evaluation.diagnose import Warning
from gradcli.evaluation.session import PARTS, EvaluationRequest, Result
from gradcli.language.operations import operation_at
from gradcli.language.syntax import tree
from gradcli.limits import MAX_PRECISION
from gradcli.named_tuples import NamedTuple
from gradcli.proofs import digits

if TYPE_CHECKING:
    from gradcli.arrays.flint.correct_digits import Right

# Decimal digits of the first attempt. A float has 16: most programs lose fewer than the 14 digits in between.
_FIRST = 30
# The code of the warnings that no digits are proved.
_CODE = "unproved"


class Certified(NamedTuple):
    """The results of a program, and how many of their digits are right.

    `digits` holds the counts under "value", and those of the derivatives under "grad", "derivatives" and "jacobian", by
    the same names. `problems` say why a count is None although the number exists.
    """

    value: Any
    grad: Mapping[str, Any] | None
    derivatives: Mapping[str, Any] | None
    jacobian: Mapping[str, Any] | None
    digits: Mapping[str, Any]
    problems: Sequence[str]


def run(request: EvaluationRequest, max_precision: int = MAX_PRECISION) -> Certified:
    """Run a program and certify its results. Raises what `session.run` and `certify` raise."""
    result = session.run(request)
    certify(request, result, max_precision)
    problems = tuple(w.message for w in result.warnings if w.code == _CODE)
    return Certified(result.value, result.grad, result.derivatives, result.jacobian, result.certified or {}, problems)


def certify(request: EvaluationRequest, result: Result, max_precision: int = MAX_PRECISION) -> int:
    """Set `result.certified` to the numbers of right digits, and return the smallest of them.

    `result.certified` has the value's count under "value", and under the name of each other member a dict with the
    counts of its numbers. The count of an array is that of its worst element, and that of a complex number the one of
    its worse part. A count is None for a derivative that does not exist, and where nothing is proved: ball arithmetic
    lacks a function, the proof takes too long or the result is nan. Where nothing is proved, a warning is added to the
    result, and the count is 0 in the return value. Raises BackendError where python-flint is not installed.
    """
    with digits.computing(as_written=False):
        try:
            proved, bits = digits.at_rising_precision(
                lambda: digits.at_precision(lambda: in_balls(request)),
                lambda exact: _is_enough(result, exact),
                _FIRST,
                max_precision,
            )
        except (GradcliError, NotImplementedError) as error:
            result.certified = _nested(result, {})
            result.warnings.append(_unproved(request, error))
            return 0
    from gradcli.arrays.flint.balls import precise

    with precise(bits):
        rights = {key: _right(number, exact) for key, number, exact in _pairs(result, proved)}
    counts = {
        key: right.proved for key, right in rights.items() if right is not None and (right.proved or _is_tight(right))
    }
    result.certified = _nested(result, counts)
    undefined = [key for key, right in rights.items() if right is None]
    if undefined:
        result.warnings.append(_no_digits_warning(request, undefined, "as it stands, the program has none there"))
    near = [key for key in rights if key not in counts and key not in undefined]
    if near:
        result.warnings.append(
            _no_digits_warning(request, near, f"with {digits.digits_of(bits):,} digits it is not told from 0")
        )
    return 0 if undefined or near else min(counts.values())


def in_balls(request: EvaluationRequest) -> EvaluationRequest:
    """Return the request with the same numbers as exact balls, without statements that no result depends on."""
    bindings = {name: _as_balls(value) for name, value in request.bindings.items()}
    cotangent = None if request.grad_output is None else _as_balls(request.grad_output)
    program = _without_unread(request.program, request.retain)
    return request._replace(program=program, bindings=bindings, grad_output=cotangent, nodes=False)


def _without_unread(program: tree.Module, kept: Collection[str]) -> tree.Module:
    """A program without assignments of names that nothing reads: a comparison or a branch cut in them that balls cannot
    decide affects no result. The float run has shown that they raise no error."""
    body = program.body
    while True:
        named = [_texts_in(statement) for statement in body]
        others = [set().union(kept, *named[:k], *named[k + 1 :]) for k in range(len(body))]
        needed = tuple(
            s
            for s, read in zip(body, others)
            if s is body[-1] or not _assigns_names(s) or not _targets(s).isdisjoint(read)
        )
        if len(needed) == len(body):
            return tree.Module(program.span, program.source, body)
        body = needed


def _texts_in(statement: tree.Statement) -> set[str]:
    """All strings in the nodes of a statement: the names of variables and functions, and more, such as operators."""
    fields = ((node, field) for node in tree.walk(statement) for field in type(node).__match_args__)
    return {text for node, field in fields if isinstance(text := getattr(node, field), str)}


def _assigns_names(statement: tree.Statement) -> bool:
    return isinstance(statement, tree.Assign) and all(isinstance(t, tree.BoundName) for t in statement.targets)


def _targets(statement: Any) -> set[str]:
    return {target.name for target in statement.targets}


def _as_balls(value: Any) -> Any:
    """A value in the namespace of balls; called within `digits.computing`."""
    return arrays.in_default_namespace(arrays.on_host(value))


def _pairs(result: Result, exact: Result) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Yield the numbers that exist, each with its key and its ball."""
    balls = dict(digits.members(exact))
    for key, number in digits.members(result):
        if number is not None and balls.get(key) is not None:
            yield key, number, balls[key]


def _is_enough(result: Result, exact: Result) -> bool:
    """Return whether a higher precision could not prove more digits, apart from one digit at a rounding boundary."""
    rights = (_right(number, ball) for _, number, ball in _pairs(result, exact))
    return all(right is None or _is_tight(right) for right in rights)


def _is_tight(right: Right) -> bool:
    return right.possible - right.proved <= 1


def _right(found: Any, exact: Any) -> Right | None:
    """Return the right digits of the worst element; None where an element has no value as written, such as 0/0."""
    from gradcli.arrays.flint.correct_digits import ALL, Right, correct_digits

    if not arrays.shape(exact) and not arrays.is_complex(exact):
        return correct_digits(float(found), exact.numbers)
    fewest = ALL
    for number, ball in _numbers(found, exact):
        right = correct_digits(number, ball)
        if right is None:
            return None
        fewest = Right(min(fewest.proved, right.proved), min(fewest.possible, right.possible))
    return fewest


def _numbers(found: Any, exact: Any) -> Iterator[tuple[float, Any]]:
    """Yield the real numbers of an array, both parts of complex ones, each with its ball."""
    elements = zip(found.ravel().tolist(), exact.numbers.ravel()) if arrays.shape(exact) else [(found, exact.numbers)]
    for number, ball in elements:
        if digits.is_complex_number(ball):
            # A float run may have a real number there.
            whole = complex(number)
            yield from zip((whole.real, whole.imag), ball.parts)
        else:
            yield number.real, ball


def _nested(result: Result, proved: Mapping[tuple[str, ...], int]) -> dict[str, Any]:
    """The numbers of right digits of each member of a result; None where nothing is proved."""
    found: dict[str, Any] = {"value": proved.get(("value",))}
    for part in PARTS:
        members = getattr(result, part)
        if members is not None:
            found[part] = {name: proved.get((part, name)) for name in members}
    if result.wirtinger is not None:
        found["wirtinger"] = {
            name: pair and {side: proved.get(("wirtinger", name, side)) for side in pair}
            for name, pair in result.wirtinger.items()
        }
    return found


def _unproved(request: EvaluationRequest, error: Exception) -> Warning:
    if isinstance(error, GradcliError):
        return _warning(request, error.span, f"no digits are proved: {error.message}")
    return _warning(request, None, f"no digits are proved: {error}")


def _no_digits_warning(request: EvaluationRequest, keys: Sequence[tuple[str, ...]], reason: str) -> Warning:
    """The warning that no digits of some results are proved."""
    names = " and ".join("the value" if len(key) == 1 else f"the derivative by {_by(key)}" for key in keys)
    return _warning(request, None, f"no digits of {names} are proved: {reason}")


def _by(key: tuple[str, ...]) -> str:
    return f"conj({key[1]})" if key[2:] == ("by_conjugate",) else key[1]


def _warning(request: EvaluationRequest, span: Span | None, message: str) -> Warning:
    place = request.program.body[-1].span if span is None else span
    return Warning(_CODE, "certify", operation_at(request.program, place) or "program", place, message)

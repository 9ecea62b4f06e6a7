"""`gradcli.named_tuples` makes the same classes as `typing.NamedTuple`, faster."""

import copy
import pickle
import typing
from collections.abc import Callable
from typing import Any

import pytest

from gradcli import named_tuples


class Segment(typing.NamedTuple):
    """A line."""

    left: float
    right: float
    cls: str = "solid"

    @property
    def length(self) -> float:
        return self.right - self.left


class Line(named_tuples.NamedTuple):
    """A line."""

    left: float
    right: float
    cls: str = "solid"

    @property
    def length(self) -> float:
        return self.right - self.left


class Other(named_tuples.NamedTuple):
    """Of the same size, with other names and no defaults."""

    first: int
    second: int
    third: int


USES: list[Callable[[Any], Any]] = [
    lambda kind: kind(1.0, 2.0)[:],
    lambda kind: kind(right=1.0, left=2.0, cls="dashed")[:],
    lambda kind: (kind(1.0, 2.0).left, kind(1.0, 2.0).right, kind(1.0, 2.0).cls, kind(1.0, 2.5).length),
    lambda kind: kind._make([1.0, 2.0, "dotted"])[:],
    lambda kind: kind(1.0, 2.0)._replace(right=3.0)[:],
    lambda kind: kind(1.0, 2.0)._asdict(),
    lambda kind: copy.deepcopy(kind(1.0, 2.0))[:],
    lambda kind: type(pickle.loads(pickle.dumps(kind(1.0, 2.0)))) is kind,
    lambda kind: repr(kind(1.0, 2.0)),
    lambda kind: (kind.__doc__, kind._fields, kind._field_defaults, kind.__match_args__, kind.__slots__),
    lambda kind: hasattr(kind(1.0, 2.0), "__dict__"),
    lambda kind: kind(1.0),
    lambda kind: kind(1.0, 2.0, "solid", 3),
    lambda kind: kind(1.0, 2.0, width=3),
    lambda kind: kind._make([1.0]),
    lambda kind: kind(1.0, 2.0)._replace(width=3),
    lambda kind: setattr(kind(1.0, 2.0), "left", 3.0),
]


def outcome(use: Callable[[Any], Any], kind: type) -> Any:
    try:
        found = use(kind)
    except Exception as error:
        found = type(error), str(error)
    return str(found).replace(kind.__name__, "Kind")


@pytest.mark.parametrize("use", USES)
def test_uses_give_what_those_of_typing_give(use: Callable[[Any], Any]) -> None:
    assert outcome(use, Line) == outcome(use, Segment)


def test_classes_of_one_size_have_their_own_names_of_fields() -> None:
    assert Other(third=3, second=2, first=1) == (1, 2, 3)
    assert repr(Other(1, 2, 3)) == "Other(first=1, second=2, third=3)"
    with pytest.raises(TypeError, match="third"):
        Other(1, 2)  # type: ignore[call-arg]

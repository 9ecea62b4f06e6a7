"""Tests shape computations without arrays against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gradcli
from gradcli import limits
from gradcli.arrays.shapes import broadcast
from gradcli.errors import ShapeError

SHAPES = [shape for rank in range(4) for shape in itertools.product((0, 1, 2, 3), repeat=rank)]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_broadcasting_is_that_of_numpy(count):
    for shapes in itertools.product(SHAPES, repeat=count):
        try:
            expected = np.broadcast_shapes(*shapes)
        except ValueError:
            with pytest.raises(ShapeError, match=r"^shapes \[.*\] and \[.*\] do not broadcast together$"):
                broadcast(shapes)
        else:
            assert broadcast(shapes) == expected


def test_three_shapes():
    assert broadcast([(3, 1), (), (1, 4)]) == (3, 4)
    with pytest.raises(ShapeError, match=r"^shapes \[2\] and \[1\] and \[3\] do not broadcast together$"):
        broadcast([(2,), (1,), (3,)])


def test_shapes_that_do_not_fit_are_an_error_of_their_own_whatever_the_limit():
    with limits.within(max_elements=10), pytest.raises(ShapeError, match="do not broadcast together in 'add'"):
        gradcli.add(np.ones(20), np.ones(30))

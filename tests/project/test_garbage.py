"""Tests that pauses of garbage collection end, and leave it as it was."""

from __future__ import annotations

import gc

import pytest

from gradcli import garbage


@pytest.fixture(autouse=True)
def _collection_as_before():
    enabled = gc.isenabled()
    yield
    (gc.enable if enabled else gc.disable)()


@garbage.collection_paused()
def _is_enabled_within(fails):
    if fails:
        raise ValueError("within")
    return gc.isenabled()


def test_collection_goes_on_behind_a_pause_and_behind_an_error():
    gc.enable()
    assert not _is_enabled_within(fails=False)
    assert gc.isenabled()
    with pytest.raises(ValueError, match="within"):
        _is_enabled_within(fails=True)
    assert gc.isenabled()


def test_collection_that_a_caller_disabled_stays_disabled():
    gc.disable()
    with garbage.collection_paused(), garbage.collection_paused():
        pass
    assert not gc.isenabled()


def _is_in(generation: int, thing: object) -> bool:
    return any(thing is other for other in gc.get_objects(generation))


@pytest.fixture
def _nothing_frozen():
    # The tests' configuration freezes what it has loaded.
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("_nothing_frozen")
def test_what_is_imported_is_in_the_oldest_generation():
    gc.enable()
    with garbage.imports_promoted():
        made = [[]]
    assert _is_in(2, made)
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("_nothing_frozen")
def test_what_a_caller_has_frozen_stays_frozen():
    kept = [[]]
    gc.freeze()
    with garbage.imports_promoted():
        made = [[]]
    assert not any(_is_in(generation, kept) for generation in range(3))
    assert not _is_in(2, made)

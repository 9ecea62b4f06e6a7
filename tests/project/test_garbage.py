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

"""Tests which cases of the tests are run by default: the rule in tests/conftest.py that CONTRIBUTING.md describes."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests import conftest

TESTS = """
    import pytest

    @pytest.mark.parametrize("i", range({many}))
    def test_many(i): pass

    @pytest.mark.parametrize("backend", ["torch", "jax"])
    @pytest.mark.parametrize("i", range(30))
    def test_on_backends(i, backend): pass

    @pytest.mark.cases(5, jax=2)
    @pytest.mark.parametrize("backend", ["torch", "jax"])
    @pytest.mark.parametrize("i", range(30))
    def test_fewer(i, backend): pass

    @pytest.mark.slow
    def test_slow(): pass

    @pytest.mark.all_cases
    class TestAll:
        @pytest.mark.parametrize("i", [*range(30), pytest.param(30, marks=pytest.mark.slow)])
        def test_each(self, i): pass

        @pytest.mark.cases(1)
        @pytest.mark.parametrize("i", range(30))
        def test_one(self, i): pass
"""


class Rule:
    """The hooks of tests/conftest.py, and the names of the cases that are chosen."""

    pytest_addoption = staticmethod(conftest.pytest_addoption)
    pytest_collection_modifyitems = staticmethod(conftest.pytest_collection_modifyitems)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.names = [item.name for item in session.items]


def chosen(folder: Path, *words: str, many: int = 30) -> list[str]:
    (folder / "test_it.py").write_text(textwrap.dedent(TESTS.format(many=many)))
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = cases\n slow\n all_cases\n")
    rule = Rule()
    # At its end, the plugin of unraisable exceptions collects the garbage of the whole process five times.
    plugins = ["-p", "no:cacheprovider", "-p", "no:unraisableexception"]
    options = ["--collect-only", "-q", *plugins, "--import-mode=importlib"]
    assert pytest.main([str(folder), *options, *words], plugins=[rule]) == 0
    return rule.names


def test_some_cases_are_run_by_default(tmp_path):
    names = chosen(tmp_path)

    def count(test: str, backend: str = "") -> int:
        return sum(name.startswith(f"{test}[") and backend in name for name in names)

    assert count("test_many") == 10
    assert (count("test_on_backends", "torch"), count("test_on_backends", "jax")) == (10, 10)
    assert (count("test_fewer", "torch"), count("test_fewer", "jax")) == (5, 2)
    assert "test_slow" not in names
    assert (count("test_each"), count("test_one")) == (30, 1)
    assert names == chosen(tmp_path)


def test_another_case_takes_the_place_of_at_most_one(tmp_path):
    found = []
    for count in (28, 29, 30):
        folder = tmp_path / str(count)
        folder.mkdir()
        found.append({*chosen(folder, many=count)})
    assert len(found[0] - found[1]) <= 1
    assert len(found[1] - found[2]) <= 1


@pytest.mark.parametrize("words", [["--all"], ["-k", "test"], ["test_it.py"]])
def test_all_are_run_where_they_are_asked_for(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    assert len(chosen(tmp_path, *words)) == 30 + 2 * 60 + 1 + 31 + 30

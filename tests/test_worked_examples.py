"""Tests the worked examples of docs/architecture.md: what they show is true, and their changes suffice.

Those of backends are in tests/backends.
"""

from __future__ import annotations

import re

import pytest

from tests.worked_examples import OF_BACKENDS, Copy, changed_copy, check_console, worked_examples

ALL = worked_examples()
EXAMPLES = {title: example for title, example in ALL.items() if title not in OF_BACKENDS}


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Copy]:
    """A modified copy for each example."""
    return {title: changed_copy(tmp_path_factory.mktemp("example"), example) for title, example in EXAMPLES.items()}


def test_the_examples() -> None:
    assert [*ALL] == [f"How to add {what}" for what in ("a function", "a command", "an output language", "a backend")]
    for example in ALL.values():
        assert {block.language for block in example} == {"diff", "console"}


@pytest.mark.parametrize("title", EXAMPLES)
def test_what_an_example_shows_is_printed_in_the_changed_copy(title: str, copies: dict[str, Copy]) -> None:
    check_console(EXAMPLES[title], copies[title])


def test_another_function_is_in_the_tests_that_walk_the_table(copies: dict[str, Copy]) -> None:
    copy = copies["How to add a function"]
    walking = {"primitives", "references", "batch", "taylor", "higher_orders", "ops"}
    files = [f"tests/test_{subject}.py" for subject in walking]
    report = copy.python("-m", "pytest", "-v", *files, "-k", "spence or dilog")
    (passed,) = re.findall(r"(\d+) passed", report)
    # One test for all samples of an entry.
    assert int(passed) > 60
    for name in ("spence", "dilog"):
        assert set(re.findall(rf"tests/test_(\w+)\.py::\w+\[[^]]*{name}[^]]*\] PASSED", report)) == walking


def test_another_function_is_put_on_the_page_of_functions(copies: dict[str, Copy]) -> None:
    copy = copies["How to add a function"]
    copy.python("-m", "tests.test_ops")
    page = (copy.root / "docs/functions.md").read_text(encoding="utf-8")
    assert "| `spence(x)` |" in page
    assert "| `dilog(x)` |" in page
    copy.python("-m", "pytest", "-q", "tests/test_ops.py", "-k", "page")


def test_another_command_is_put_on_the_page_of_commands(copies: dict[str, Copy]) -> None:
    copy = copies["How to add a command"]
    copy.python("-c", "from tests import test_docs; test_docs.add_commands()")
    assert "$ gradcli names --help" in (copy.root / "docs/commands.md").read_text(encoding="utf-8")
    copy.python("-m", "pytest", "-q", "tests/test_reference_pages.py", "-k", "command")


def test_another_language_is_found_by_the_tests(copies: dict[str, Copy]) -> None:
    copies["How to add an output language"].python("-m", "pytest", "-q", "tests/test_diff.py", "-k", "every_language")

"""Tests the worked examples of docs/architecture.md: what they show is true, and their changes suffice.

Those of backends are in tests/backends.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

import pytest

from tests.worked_examples import OF_BACKENDS, Copy, changed_copy, check_console, worked_examples

ALL = worked_examples()
# The tests that walk the table of functions.
WALKING = {
    "primitives/test_primitives",
    "primitives/test_references",
    "primitives/test_higher_orders",
    "kinds/test_batch",
    "kinds/test_taylor",
    "cli/test_ops",
}
EXAMPLES = {title: example for title, example in ALL.items() if title not in OF_BACKENDS}


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Copy]:
    """The modified copy for an example, which is made once."""
    return functools.cache(lambda title: changed_copy(tmp_path_factory.mktemp("example"), EXAMPLES[title]))


def test_the_examples() -> None:
    assert [*ALL] == [
        f"How to add {what}"
        for what in (
            "a function",
            "a function of tensors",
            "a command",
            "a command that computes",
            "a library's meaning of a name",
            "an output language",
            "a backend",
        )
    ]
    for example in ALL.values():
        assert {block.language for block in example} == {"diff", "console"}


@pytest.mark.slow
@pytest.mark.parametrize("title", EXAMPLES)
def test_what_an_example_shows_is_printed_in_the_changed_copy(title: str, copies: Callable[[str], Copy]) -> None:
    check_console(EXAMPLES[title], copies(title))


@pytest.mark.slow
def test_another_function_is_in_the_tests_that_walk_the_table(copies: Callable[[str], Copy]) -> None:
    copy = copies("How to add a function")
    files = [f"tests/{name}.py" for name in WALKING]
    report = copy.python("-m", "pytest", "-v", *files, "-k", "spence or dilog")
    (passed,) = re.findall(r"(\d+) passed", report)
    # One test for all samples of a few entries.
    assert int(passed) > 30
    for name in ("spence", "dilog"):
        assert set(re.findall(rf"tests/(\w+/\w+)\.py::\w+\[[^]]*{name}[^]]*\] PASSED", report)) == WALKING


def test_another_function_is_put_on_the_page_of_functions(copies: Callable[[str], Copy]) -> None:
    copy = copies("How to add a function")
    copy.python("-m", "tests.cli.test_ops")
    page = (copy.root / "docs/functions.md").read_text(encoding="utf-8")
    assert '| <a id="function-spence"></a>`spence(x)` |' in page
    assert '| <a id="function-dilog"></a>`dilog(x)` |' in page
    copy.python("-m", "pytest", "-q", "tests/cli/test_ops.py", "-k", "page")


def test_another_command_is_put_on_the_page_of_commands(copies: Callable[[str], Copy]) -> None:
    copy = copies("How to add a command")
    copy.python("-c", "from tests.project import test_docs; test_docs.add_commands()")
    assert "$ gradcli names --help" in (copy.root / "docs/commands.md").read_text(encoding="utf-8")
    copy.python("-m", "pytest", "-q", "tests/cli/test_reference_pages.py", "-k", "command")


@pytest.mark.slow
def test_a_function_of_tensors_is_in_the_tests_that_walk_the_table(copies: Callable[[str], Copy]) -> None:
    copy = copies("How to add a function of tensors")
    files = [f"tests/{name}.py" for name in WALKING]
    report = copy.python("-m", "pytest", "-v", *files, "-k", "fwht")
    assert set(re.findall(r"tests/(\w+/\w+)\.py::\w+\[[^]]*fwht[^]]*\] PASSED", report)) == WALKING


def test_another_model_has_its_test(copies: Callable[[str], Copy]) -> None:
    copies("How to add a command that computes").python("-m", "pytest", "-q", "tests/models/test_elasticities.py")


def test_another_meaning_is_found_without_loading_it(copies: Callable[[str], Copy]) -> None:
    files = "tests/primitives/test_primitives.py", "tests/language/test_pasted_code.py"
    report = copies("How to add a library's meaning of a name").python(
        "-m", "pytest", "-v", *files, "-k", "names_that_differ or round or lax"
    )
    assert all(f"{name}::" in report for name in files)


def test_another_language_is_found_by_the_tests(copies: Callable[[str], Copy]) -> None:
    copies("How to add an output language").python(
        "-m", "pytest", "-q", "tests/formulas/test_diff.py", "-k", "every_language"
    )

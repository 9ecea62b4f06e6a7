"""Tests endless files, and words, names and lines of any length: readable errors without delay."""

from __future__ import annotations

import json
import os
import threading
import tracemalloc

import pytest

from gradcli.io import json_numbers, text_lines, variables
from gradcli.language.syntax import lexer


@pytest.fixture
def short(monkeypatch):
    """Small limits of input sizes, so that the tests need little input to exceed them."""
    monkeypatch.setattr(json_numbers, "MAX_TEXT", 10_000)
    monkeypatch.setattr(text_lines, "MAX_LINE", 10_000)


def test_a_program_without_an_end(run):
    outcome = run("eval", "--file", "/dev/zero", "--json")
    assert outcome.status == 2
    assert outcome.error["message"] == "the program is longer than 1000000 characters"


def test_values_without_an_end(run):
    outcome = run("eval", "x", "--vars", "/dev/zero", "--json")
    assert outcome.status == 2
    assert "is no JSON object" in outcome.error["message"]


def test_standard_input_without_an_end(run):
    outcome = run("eval", "-", "x=1", "--json", stdin="x+" * 600_000 + "x")
    assert outcome.error["message"] == "the program is longer than 1000000 characters"


@pytest.mark.parametrize("words", [["x", "--vars", "big.json"], ["x", "x=@array.json"], ["x", "x=@line.csv"]])
def test_a_file_that_is_longer_than_may_be(run, short, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "array.json").write_text(f"[{'1,' * 6000}1]")
    (tmp_path / "big.json").write_text(f'{{"x": [{"1," * 6000}1]}}')
    (tmp_path / "line.csv").write_text("1," * 6000 + "1\n")
    outcome = run("eval", *words, "--json")
    assert outcome.status == 2
    assert "longer than 10,000 characters" in outcome.error["message"]


def test_a_pipe_is_read_as_a_file(run, tmp_path):
    path = tmp_path / "program"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=("x*x",))
    writer.start()
    outcome = run("eval", "--file", str(path), "x=3", "--json")
    writer.join()
    assert outcome.json["value"] == 9.0


@pytest.mark.parametrize("reference", ["a.csv" + ":" * 100_000, "a.csv:" * 16_000, "a" * 100_000])
def test_a_reference_of_any_length(run, tmp_path, monkeypatch, reference):
    monkeypatch.chdir(tmp_path)
    tracemalloc.start()
    outcome = run("eval", "x", f"x=@{reference}", "--json")
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()
    assert outcome.status == 2
    assert len(outcome.error["message"]) < 1100


def test_a_reference_whose_path_holds_colons(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a:b.csv").write_text("u,v\n1,2\n")
    assert run("eval", "x", "x=@a:b.csv:v", "--no-grad", "--json").json["value"] == [2.0]


@pytest.mark.parametrize("name", ["x" + "\u0316\u0301" * 50_000, "x" * 1001])
def test_a_name_is_as_long_as_in_a_program_at_most(run, tmp_path, name):
    path = tmp_path / "vars.json"
    path.write_text(json.dumps({name: 1}), encoding="utf-8")
    assert variables.MAX_NAME == lexer.MAX_NAME
    for words in (["--vars", str(path)], [f"{name}=1"]):
        outcome = run("eval", "1", *words, "--json")
        assert outcome.error["message"] == "the name is longer than 1,000 characters"


def test_a_message_has_an_end(run):
    for program in (f"einsum('{'a' * 100_000}', x)", f"norm(x, '{'a' * 100_000}')"):
        outcome = run("eval", program, "x=[1,2]")
        assert outcome.status == 1
        assert len(outcome.err) < 2000

"""Runs the code that `gradcli diff` prints in JavaScript, Rust, Julia, MATLAB and for spreadsheets, where a program that
runs it is installed."""

from __future__ import annotations

import csv
import itertools
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import pytest


class Call(NamedTuple):
    """A call of a function in a text: the number of the text, the function's name, its arguments, and how many results
    it has."""

    text: int
    function: str
    arguments: Sequence[Any]
    results: int


Results = list[list[float]]


def by_lines(command: Sequence[str], calls: Sequence[Call], folder: Path) -> Results:
    """The numbers that a command prints, one a line, by call."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    numbers = iter(done.stdout.split())
    found = [[float(number) for number in itertools.islice(numbers, call.results)] for call in calls]
    assert next(numbers, None) is None
    return found


def literal(value: Any, number: Callable[[float], str], brackets: str = "[]") -> str:
    if isinstance(value, list):
        return f"{brackets[0]}{', '.join(literal(v, number, brackets) for v in value)}{brackets[1]}"
    return number(float(value))


def named(value: float, inf: str, nan: str) -> str:
    """A number with the names that a language has for what is not finite."""
    return nan if value != value else repr(value).replace("inf", inf)


def in_javascript(texts: Sequence[str], calls: Sequence[Call], folder: Path) -> Results:
    lines = []
    for i, text in enumerate(texts):
        names = ", ".join(re.findall(r"^function (value\w*|derivative\w*)\(", text, re.MULTILINE))
        lines += [f"const p{i} = (() => {{", text, f"return {{{names}}};", "})();"]
    for call in calls:
        arguments = ", ".join(literal(a, lambda v: named(v, "Infinity", "NaN")) for a in call.arguments)
        lines.append(f"for (const y of [p{call.text}.{call.function}({arguments})].flat()) console.log(String(y));")
    (folder / "f.js").write_text('"use strict";\n' + "\n".join(lines), encoding="utf-8")
    return by_lines(["node", "f.js"], calls, folder)


def in_rust(texts: Sequence[str], calls: Sequence[Call], folder: Path) -> Results:
    parts = [f"mod p{i} {{\n{text}\n}}" for i, text in enumerate(texts)]
    shown = []
    for call in calls:
        arguments = ", ".join(
            ("&" if isinstance(a, list) else "") + literal(a, lambda v: named(v, "f64::INFINITY", "f64::NAN"))
            for a in call.arguments
        )
        made = f"p{call.text}::{call.function}({arguments})"
        shown.append(f"show(&{made});" if call.results > 1 else f"show(&[{made}]);")
    # Short functions, since the compiler takes long over a long one.
    groups = ["\n".join(shown[i : i + 50]) for i in range(0, len(shown), 50)]
    parts += [f"fn calls{i}() {{\n{group}\n}}" for i, group in enumerate(groups)]
    parts.append('fn show(ys: &[f64]) { for y in ys { println!("{:e}", y); } }')
    parts.append(f"fn main() {{ {' '.join(f'calls{i}();' for i in range(len(groups)))} }}")
    (folder / "f.rs").write_text(
        "#![deny(warnings)]\n#![allow(dead_code, uncommon_codepoints, confusable_idents)]\n" + "\n".join(parts),
        encoding="utf-8",
    )
    command = ["rustc", "--edition=2021", "-Copt-level=0", "-Cdebuginfo=0", "f.rs", "-o", "f"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    return by_lines(["./f"], calls, folder)


def in_julia(texts: Sequence[str], calls: Sequence[Call], folder: Path) -> Results:
    lines = [f"module P{i}\n{text}\nend" for i, text in enumerate(texts)]
    for call in calls:
        arguments = ", ".join(_in_julia(a) for a in call.arguments)
        lines.append(f"foreach(println, P{call.text}.{call.function}({arguments}))")
    (folder / "f.jl").write_text("\n".join(lines), encoding="utf-8")
    return by_lines(["julia", "--startup-file=no", "f.jl"], calls, folder)


def _in_julia(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], list):
        return _rows(value, "Inf", "NaN")
    return literal(value, lambda v: named(v, "Inf", "NaN"))


def _rows(value: list[Any], inf: str, nan: str) -> str:
    """A vector or a matrix with rows between semicolons."""
    rows = value if value and isinstance(value[0], list) else [value]
    return f"[{'; '.join(' '.join(named(float(v), inf, nan) for v in row) for row in rows)}]"


def in_matlab(texts: Sequence[str], calls: Sequence[Call], folder: Path) -> Results:
    """By GNU Octave."""
    definitions: dict[str, None] = {}
    for i, text in enumerate(texts):
        renamed = re.sub(r"^(function .* = )(value\w*|derivative\w*)\(", rf"\1p{i}_\2(", text, flags=re.MULTILINE)
        definitions |= dict.fromkeys(renamed.split("\n\n\n"))
    lines = ["1;", *definitions]
    for call in calls:
        arguments = ", ".join(
            _rows(a, "Inf", "NaN") if isinstance(a, list) else named(float(a), "Inf", "NaN") for a in call.arguments
        )
        results = ", ".join(f"r{i}" for i in range(call.results))
        lines.append(f"[{results}] = p{call.text}_{call.function}({arguments}); show({{{results}}});")
    lines.insert(1, "function show(ys)\nprintf('%.17g\\n', ys{:});\nend")
    (folder / "f.m").write_text("\n".join(lines), encoding="utf-8")
    return by_lines(["octave", "--quiet", "--no-init-file", "f.m"], calls, folder)


def in_spreadsheet(rows: Sequence[tuple[str, dict[str, float]]], folder: Path) -> Results:
    """The numbers of the formulas that `--to excel` prints, each text with the values of its names in a row of a
    workbook, where a name is that of a column. An error is nan."""
    columns: dict[str, int] = {}
    table = []
    for text, values in rows:
        cells = [line.split("\t") for line in text.splitlines()]
        spelled = {meant.removeprefix("stands for "): cell for cell, meant in cells if not meant.startswith("=")}
        given = {spelled.get(name, name): value for name, value in values.items()}
        for name in given:
            columns.setdefault(name, len(columns))
        table.append((given, [formula for _, formula in cells if formula.startswith("=")]))
    lines = [
        [
            *(f'<c r="{_cell(columns[name], i)}"><v>{value!r}</v></c>' for name, value in given.items()),
            *(f'<c r="{_cell(len(columns) + j, i)}"><f>{escape(_in_file(f))}</f></c>' for j, f in enumerate(formulas)),
        ]
        for i, (given, formulas) in enumerate(table, 1)
    ]
    _write_book(folder / "f.xlsx", lines, {name: f"Sheet1!${_cell(i, 1)}" for name, i in columns.items()})
    # The filter's options: a comma, quotes, UTF-8, from line 1, and numbers in full.
    command = ["soffice", f"-env:UserInstallation=file://{folder}/profile", "--headless", "--convert-to",
               "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,false,false", "f.xlsx"]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with (folder / "f.csv").open(encoding="utf-8") as file:
        results = [row[len(columns) :] for row in csv.reader(file)]
    return [[_number(text) for text in row[: len(f)]] for row, (_, f) in zip(results, table, strict=True)]


def _in_file(formula: str) -> str:
    """A formula as files have it, where functions that are newer than their format have a prefix."""
    return formula.removeprefix("=").replace("GAMMA(", "_xlfn.GAMMA(")


def _cell(column: int, row: int) -> str:
    return (chr(64 + column // 26) if column >= 26 else "") + chr(65 + column % 26) + str(row)


def _number(text: str) -> float:
    return float("nan") if text.startswith(("#", "Err:")) else float(text)


_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def _write_book(path: Path, rows: Sequence[Sequence[str]], names: dict[str, str]) -> None:
    """A workbook of one sheet with rows of cells, and names for places."""
    parts = {
        "[Content_Types].xml": f'''<Types xmlns="{_PACKAGE}/content-types">
            <Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
            <Override PartName="/xl/workbook.xml" ContentType="{_TYPES}.sheet.main+xml"/>
            <Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_TYPES}.worksheet+xml"/></Types>''',
        "_rels/.rels": f'''<Relationships xmlns="{_PACKAGE}/relationships">
            <Relationship Id="r1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>''',
        "xl/_rels/workbook.xml.rels": f'''<Relationships xmlns="{_PACKAGE}/relationships">
            <Relationship Id="r1" Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>''',
        "xl/workbook.xml": f'''<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}">
            <sheets><sheet name="Sheet1" sheetId="1" r:id="r1"/></sheets><definedNames>{
            "".join(f'<definedName name="{escape(name)}">{place}</definedName>' for name, place in names.items())
        }</definedNames></workbook>''',
        "xl/worksheets/sheet1.xml": f'''<worksheet xmlns="{_MAIN}"><sheetData>{
            "".join(f'<row r="{i}">{"".join(cells)}</row>' for i, cells in enumerate(rows, 1))
        }</sheetData></worksheet>''',
    }
    with zipfile.ZipFile(path, "w") as book:
        for name, text in parts.items():
            book.writestr(name, text)


def needs(command: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(command) is None, reason=f"{command} is not installed")


def _is_old(command: str, version: tuple[int, int]) -> bool:
    """Whether a compiler is installed in an earlier version."""
    if shutil.which(command) is None:
        return False
    found = re.search(r"(\d+)\.(\d+)", subprocess.run([command, "--version"], capture_output=True, text=True).stdout)
    return found is not None and (int(found[1]), int(found[2])) < version


RUNNERS = [
    pytest.param("javascript", in_javascript, marks=needs("node"), id="javascript"),
    pytest.param(
        "rust",
        in_rust,
        marks=[needs("rustc"), pytest.mark.skipif(_is_old("rustc", (1, 77)), reason="rustc is older than 1.77")],
        id="rust",
    ),
    pytest.param("julia", in_julia, marks=needs("julia"), id="julia"),
    pytest.param("matlab", in_matlab, marks=needs("octave"), id="matlab"),
]

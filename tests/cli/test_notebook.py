"""Tests gradcli in a Jupyter kernel: the magics, and how results are displayed."""

from __future__ import annotations

from typing import Any

import nbclient
import nbformat
import numpy as np
import pytest

import gradcli
from gradcli.models import solve

CELLS = [
    "%load_ext gradcli\nimport gradcli, numpy as np\nq, x, big = 3, 5.0, 10**400\nt = np.linspace(0, 3, 20)\ns = 2*np.exp(-t)",
    "%gradcli eval 'log(x**q)'",
    "%gradcli eval 'log(x**q)' x=1 --wrt x",
    "%%gradcli eval 'q=2'\ny = x**2\ny*q",
    "found = %gradcli eval 'sum(t)*x' --wrt x --json\nround(found['grad']['x'], 9)",
    "%gradcli diff 'log(x**q) + sum(t)*alpha_1' --wrt x,alpha_1",
    "%gradcli diff 'x**q' --wrt x --to c",
    "%gradcli plot 'sin(w)*x' w=0..1",
    "%gradcli graph 'log(x)*q'",
    "%gradcli fit 's ~ a*exp(-k*t)' a=1 k=0.5",
    "gradcli.compile('a*exp(-x**2/2)')",
    "gradcli.fit('s ~ a*exp(-k*t)', {'t': t, 's': s}, a=1.5, k=0.9)",
    "gradcli.plot('sin(x)', {'x': (0, 1)})",
    "gradcli.series('exp(x)', x=0, order=3)",
    "np.asarray(t).shape; w = gradcli.tensor([1.0, 2.0])\n%gradcli eval 'sum(w**2)' --no-grad",
    "%gradcli eval 'log(x' --max-seconds 5",
    "%gradcli nonsense",
    "%gradcli eval 'x/u'",
    "brief = %gradcli diff 'x**2' -j\nbrief['derivatives']",
    "import os, tempfile\npath = tempfile.mkdtemp() + '/line.svg'\n%gradcli plot 'u' u=0..1 -o {path}\nos.path.getsize(path) > 0",
    "%gradcli plot --help-all",
    "%gradcli solve 'y**2 = x' y~1",
    "%gradcli solve 'x**2 = 9' --json",
    "%gradcli ode \"y' = -x*y\" y=1 t=0..1 --points 2",
    "%gradcli serve --stdio",
]  # fmt: skip


def run_cells(cells: list[str], *, allow_errors: bool) -> list[list[Any]]:
    """The outputs of each cell, run in one kernel."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    nbclient.NotebookClient(notebook, timeout=60, allow_errors=allow_errors, kernel_name="python3").execute()
    return [cell.outputs for cell in notebook.cells]


@pytest.fixture(scope="module")
def outputs() -> list[list[Any]]:
    return run_cells(CELLS, allow_errors=True)


def of(outputs: Any, start: str, kind: str = "text/plain") -> str:
    """What a cell shows, of a kind of text."""
    found = outputs[next(i for i, text in enumerate(CELLS) if text.startswith(start))]
    if kind in ("stdout", "stderr"):
        return "".join(o.text for o in found if o.output_type == "stream" and o.name == kind)
    return next(o.data[kind] for o in found if "data" in o and kind in o.data)


def test_names_of_the_notebook_have_their_values(outputs):
    assert of(outputs, "%gradcli eval 'log(x**q)'", "stdout") == (
        "value  4.828313737302301\n\nby  gradient\nx   0.6\nq   1.6094379124341003\n"
    )
    assert of(outputs, "%gradcli eval 'log(x**q)' x=1", "stdout") == "value  0.0\n\nby  gradient\nx   3.0\n"
    assert of(outputs, "np.asarray", "stdout") == "value  5.0\n"


def test_a_cell_is_a_program(outputs):
    assert of(outputs, "%%gradcli", "stdout").startswith("value  50.0\n")


def test_json_is_returned(outputs):
    assert of(outputs, "found = ") == "30.0"


def test_formulas_are_displayed(outputs):
    assert of(outputs, "%gradcli diff 'log", "text/latex") == (
        "$$\\begin{aligned}\n\\frac{\\partial}{\\partial x} &= \\frac{q}{x} \\\\\n"
        "\\frac{\\partial}{\\partial \\alpha_{1}} &= \\operatorname{sum}\\left(t\\right)\n\\end{aligned}$$"
    )
    assert "double derivative_x(double x, double q)" in of(outputs, "%gradcli diff 'x**q'", "stdout")
    assert of(outputs, "gradcli.compile", "text/latex") == r"$\displaystyle a e^{-\frac{x^{2}}{2}}$"
    assert of(outputs, "gradcli.compile") == "<program 'a*exp(-x**2/2)'>"
    assert of(outputs, "gradcli.series", "text/latex").startswith(r"$\displaystyle 1 + x + \frac{x^{2}}{2}")


def test_pictures_are_displayed(outputs):
    for cell in ("%gradcli plot", "%gradcli graph", "gradcli.plot"):
        assert "<svg" in of(outputs, cell, "image/svg+xml")


def test_short_options_and_help_display_nothing_else(outputs):
    assert of(outputs, "brief = ") == "{'x': '2*x'}"
    assert of(outputs, "import os") == "True"
    assert of(outputs, "%gradcli plot --help-all", "stdout").startswith("gradcli plot PROGRAM")


def test_fits_are_displayed(outputs):
    assert of(outputs, "%gradcli fit", "stdout").startswith("parameter  estimate")
    assert of(outputs, "gradcli.fit").startswith("parameter  estimate")
    assert of(outputs, "gradcli.fit", "text/html").startswith("<table><thead><tr><th>parameter</th>")


def test_equations_have_the_values_of_the_notebook(outputs):
    assert of(outputs, "%gradcli solve 'y", "stdout").startswith("y  2.23606797749979\n")
    # The only name of an equation is its unknown.
    assert "'x': 3.0" in of(outputs, "%gradcli solve 'x")
    assert of(outputs, "%gradcli ode", "stdout").startswith("t,y\n0.0,1.0\n1.0,0.00673794699908")


def test_errors_are_told(outputs):
    for start, message in {
        "%gradcli eval 'log(x'": "error: ",
        "%gradcli nonsense": "error: there is no command 'nonsense'",
        "%gradcli eval 'x/u'": "error: unknown name 'u'",
        "%gradcli serve": "gradcli serve runs in a terminal",
    }.items():
        assert message in of(outputs, start, "stderr")
        assert "UsageError: gradcli" in of(outputs, start, "stderr")


def test_errors_stop_a_notebook():
    with pytest.raises(nbclient.exceptions.CellExecutionError):
        run_cells([CELLS[0], "%gradcli nonsense", "1 + 1"], allow_errors=False)


def test_a_fit_with_many_parameters_fits_a_screen():
    x = np.linspace(0, 1, 60)
    names = [f"a{i}" for i in range(15)]
    model = "y ~ " + " + ".join(f"{name}*cos({i}*x)" for i, name in enumerate(names))
    lines = str(gradcli.fit(model, {"x": x, "y": np.exp(x)}, dict.fromkeys(names, 1.0))).split("\n")
    assert len(lines) <= 24
    assert "3 more" in "".join(lines)


def test_results_are_texts_and_tables():
    assert str(gradcli.minimize("(x - 1)**2", {"x": 0})).startswith("value  0.0\nx      1.0\n")
    assert str(gradcli.propagate("x*y", {"x": "1±0.1", "y": 2})).startswith("value                 2.00 ± 0.20\n")
    assert str(solve("x**2 = 4", {}, start={"x": 1})).startswith("x  2.0")
    assert gradcli.minimize("(x - 1)**2", {"x": 0})._repr_html_().count("<table>") == 2


def test_a_program_without_a_formula_has_its_text():
    assert gradcli.compile("[x, y]")._repr_latex_() is None
    assert gradcli.compile("2 + 3")._repr_latex_() is None
    assert gradcli.compile("y = x; for i in range(n) { y = cos(y) }; y")._repr_latex_() is None

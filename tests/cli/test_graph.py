"""Tests `gradcli graph` in every format, also for large or hostile programs."""

from __future__ import annotations

import io
import itertools
import math
import random
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from gradcli.cli.main import main
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering.drawing.svg import BoxSize, layout
from gradcli.evaluation import graph_view as graphs
from gradcli.evaluation.outline import MANY, outline
from gradcli.language.syntax import parse

SVG = "{http://www.w3.org/2000/svg}"
SUM = "+".join(f"{k}*x" for k in range(3000))
LOOP = "y = x; for i in range(50000) { y = y*0.5 + x }; y"


def tree_of(outcome) -> str:
    """The tree only, without the value above it and the tables below."""
    assert outcome.status == 0, outcome.err
    return outcome.out.split("\n\n")[1].rstrip("\n")


def rows(outcome) -> list[str]:
    """The lines of the tree, with two spaces between columns."""
    return [re.sub(r"(?<=[^\s│])  +", "  ", line) for line in tree_of(outcome).splitlines()[1:]]


def sized(svg: str) -> tuple[list[tuple[float, ...]], tuple[float, float]]:
    """The boxes of a picture as left, top, right, bottom, and the size of the picture."""
    root = ElementTree.fromstring(svg)
    found = [[float(r.get(k)) for k in ("x", "y", "width", "height")] for r in root.iter(f"{SVG}rect") if r.get("x")]
    return [(x, y, x + w, y + h) for x, y, w, h in found], (float(root.get("width")), float(root.get("height")))


class TestTree:
    def test_values_and_gradients(self, run):
        outcome = run("graph", "y = x**q; z = log(y)", "x=5", "q=3", "--values")
        assert outcome.out == (
            "value  4.8283137373023015\n\n"
            "graph      program     value               gradient\n"
            "log        z = log(y)  4.8283137373023015  1.0\n"
            "└── pow    y = x**q    125.0               0.008\n"
            "    ├── x              5.0                 0.6\n"
            "    └── q              3.0                 1.6094379124341003\n"
        )
        assert outcome.err == ""

    def test_without_values(self, run):
        assert rows(run("graph", "sin(x)*2", "x=5")) == ["multiply  sin(x)*2", "└── sin  sin(x)", "    └── x"]

    def test_what_is_shared_is_written_once(self, run):
        assert rows(run("graph", "y = exp(x); (y + sin(y))*y", "x=1")) == [
            "multiply  (y + sin(y))*y",
            "├── add  (y + sin(y))",
            "│   ├── exp [1]  y = exp(x)",
            "│   │   └── x",
            "│   └── sin  sin(y)",
            "│       └── [1]  y = exp(x)",
            "└── [1]  y = exp(x)",
        ]

    def test_an_operand_twice(self, run):
        assert rows(run("graph", "x*x", "x=1")) == ["multiply  x*x", "└── x (2 times)"]

    def test_shapes(self, run):
        outcome = run("graph", "sum(A@x)", "A=[[1,2],[3,4]]", "x=[5,6]", "--values")
        assert rows(outcome) == [
            "sum  sum(A@x)  56.0  1.0",
            "└── matmul  A@x  [2]  [17, 39]  [1, 1]",
            "    ├── A  [2, 2]  [[1, 2], [3, 4]]  [[5, 6], [5, 6]]",
            "    └── x  [2]  [5, 6]  [4, 6]",
        ]

    def test_of_a_large_value_the_ends(self, run):
        assert "[1000]  0, 1, …, 999  2, 2, …, 2" in rows(run("graph", "sum(x)*2", "x=arange(1000)", "--values"))[-1]

    @pytest.mark.parametrize("form", ["tree", "dot", "mermaid", "svg", "json"])
    @pytest.mark.parametrize(
        ("program", "text"),
        [
            ("[[[]]]", "[]"), ("[[], []]", "[]"), ("zeros(0, 3)", "[]"), ("zeros(1, 0, 1)*x", "[]"), ("zeros(100000, 0)*x", "[]"),
            ("zeros(1, 1, 1)*x", "[[[0]]]"), ("zeros(1, 2, 1, 1) + x", "[[[[1]], [[1]]]]"), ("zeros(2, 2, 2) + x", "1, 1, …, 1"),
        ],
    )  # fmt: skip
    def test_of_few_elements_in_many_axes(self, run, program, text, form):
        outcome = run("graph", program, *["x=1"] * ("x" in program), "--values", "--no-grad", "--to", form)
        assert (outcome.status, outcome.err) == (0, "")
        written = {"tree": text, "mermaid": text.replace("[", "#91;").replace("]", "#93;"), "json": '"value":['}
        assert written.get(form, f"value {text}") in outcome.out

    def test_a_stable_form_is_what_is_drawn(self, run):
        outcome = run("graph", "log(base**n)", "base=5", "n=3")
        assert rows(outcome) == ["multiply  n*log(base)", "├── n", "└── log  n*log(base)", "    └── base"]
        assert outcome.out.endswith("rewritten  as\nlog(x**q)  q*log(x)\n")
        assert rows(run("graph", "log(base**n)", "base=5", "n=3", "--no-rewrite"))[1] == "└── pow  base**n"

    @pytest.mark.parametrize(
        ("program", "form"),
        [
            ("log((a + b)**(c*d))", "(c*d)*log((a + b))"),
            ("log(a**(b + c))", "(b + c)*log(a)"),
            ("log(1 - a*b)", "log1p(-(a*b))"),
            ("log(sum(exp(a - b), axis=0))", "logsumexp(a - b, axis=0)"),
        ],
    )
    def test_the_text_of_a_stable_form(self, run, program, form):
        names = [f"{n}=[0.25, 0.5]" for n in "abcd" if n in re.findall(r"\b\w\b", program)]
        assert form in tree_of(run("graph", program, *names))

    def test_a_leaf_is_the_value(self, run):
        assert run("graph", "x", "x=3", "--values").out == "value  3.0\n\ngraph  value  gradient\nx      3.0    1.0\n"

    def test_nothing_is_recorded(self, run):
        assert rows(run("graph", "2*x", "x=3", "--const", "x")) == ["constant"]
        assert rows(run("graph", "1 + 1", "--values")) == ["constant  2.0  -"]
        assert rows(run("graph", "y = detach(x)*2; y*x", "x=3", "--values")) == [
            "multiply  y*x  18.0  1.0",
            "└── x  3.0  6.0",
        ]

    def test_the_functions_have_the_names_that_the_program_calls_them_by(self, run):
        program = "einsum('i,i->', x, x) + clamp(x[0], 0, 9) + x[1]**2 + x.amax()"
        assert {"einsum", "clamp", "pow", "amax"} <= set(re.findall(r"\w+", tree_of(run("graph", program, "x=[1,2]"))))

    def test_deep_trees_go_on_further_down(self, run):
        lines = rows(run("graph", "sin(cos(" * 20 + "x" + "))" * 20, "x=1"))
        # 40 operations and x, two of them twice.
        assert len(lines) == 43
        assert [line.split()[1:3] for line in lines if " below " in line] == [["[1]", "below"], ["[2]", "below"]]
        assert [line.split()[1] for line in lines if line.startswith("sin [")] == ["[1]", "[2]"]
        assert max(map(len, lines)) < 130

    def test_on_a_terminal_the_lines_are_not_broken(self, monkeypatch):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        out = Terminal()
        program = "sin(cos(sin(cos(sin(cos(x))))))*one_long_name*another_long_name*yet_another_name"
        words = ["graph", program, "x=1", "one_long_name=1", "another_long_name=2", "yet_another_name=3"]
        monkeypatch.setenv("COLUMNS", "70")
        assert main(words, Environment(None, out, out, {})) == 0
        plain = re.sub(r"\x1b\[[\d;]*m", "", out.getvalue())
        deepest = "│   │   │           └── cos"
        assert [line for line in plain.splitlines() if deepest in line]


class TestCollapsing:
    def test_calls_of_the_programs_functions(self, run):
        program = "f(a) = a*sin(a); y = f(x); f(y) + f(x)"
        assert rows(run("graph", program, "x=2")) == [
            "add  f(y) + f(x)",
            "├── f (2 operations)  f(y)",
            "│   └── f (2 operations)  y = f(x)",
            "│       └── x",
            "└── f (2 operations)  f(x)",
            "    └── x",
        ]

    def test_a_box_has_the_value_and_the_gradient_of_its_result(self, run):
        lines = rows(run("graph", "f(a) = a*sin(a); y = f(x); y**2", "x=2", "--values"))
        y = 2 * math.sin(2)
        assert lines[1] == f"└── f (2 operations)  y = f(x)  {y}  {2 * y}"

    def test_expanded(self, run):
        lines = rows(run("graph", "f(a) = a*sin(a); f(x)", "x=2", "--expand"))
        assert lines == ["multiply  a*sin(a)", "├── x", "└── sin  sin(a)", "    └── x"]

    def test_a_recursion(self, run):
        program = "f(n) = 1 if n < 1 else n*f(n - 1); f(x)"
        assert rows(run("graph", program, "x=4.5")) == ["f (7 operations)  f(x)", "└── x"]
        assert len(run("graph", program, "x=4.5", "--json").json["groups"]) == 4

    def test_a_function_with_its_own_derivative(self, run):
        assert rows(run("graph", "cube(t) = t**3 backward(g) = 3*g*t**2; cube(2*x)", "x=1")) == [
            "cube  cube(2*x)",
            "└── multiply  2*x",
            "    └── x",
        ]

    def test_functions_of_several_steps(self, run):
        assert rows(run("graph", "std(x)", "x=[1,2]"))[0].startswith("std (6 operations)")
        assert rows(run("graph", "y = x**3*a; diff(y, x)*2", "x=2", "a=3")) == [
            "multiply  diff(y, x)*2",
            "└── diff (4 operations)  diff(y, x)",
            "    ├── a",
            "    └── x",
        ]

    def test_a_function_with_several_results(self, run):
        lines = rows(run("graph", "Q, R = qr(A); sum(Q) + R[0, 1]", "A=[[1,2],[3,4]]"))
        assert lines[2:] == [
            "│   └── qr (5 operations) [1]  Q, R = qr(A)",
            "│       └── A  [2, 2]",
            "└── index  R[0, 1]",
            "    └── [1]  Q, R = qr(A)",
        ]

    def test_a_short_loop_is_drawn_and_a_long_one_is_a_box(self, run):
        program = "y = x; for i in range({}) {{ y = y*x }}; y"
        assert len(rows(run("graph", program.format(3), "x=2"))) == 6
        assert rows(run("graph", program.format(500), "x=1")) == [
            "for × 500  for i in range(500)",
            "└── x",
        ]

    def test_a_while_loop_with_two_results(self, run):
        program = "a = x; b = x; while a < 1e6 { a = a*2; b = b + a }; a*b"
        lines = rows(run("graph", program, "x=1", "--values"))
        assert lines[1] == "└── while × 20 (40 operations) (2 times)  while a < 1e6"

    def test_along_a_tensor(self, run):
        record = run("graph", "s = 0; for v in x { s = s + v**2 }; s", "x=[1,2]", "--json").json
        assert [(n["name"], n["label"]) for n in record["nodes"] if n["operation"] == "index"] == [("v", "x")] * 2

    def test_a_sum_of_3000_terms(self, run):
        (first, leaf) = rows(run("graph", SUM, "x=2", "--values"))
        assert first.startswith("add × 2,999 (5,999 operations)  0*x+1*x+2*x+")
        assert first.endswith("…  8997000.0  1.0")
        assert leaf == "└── x  2.0  4498500.0"

    def test_a_run_stops_at_a_name(self, run):
        terms = "+".join(["y"] + [f"{k}*x" for k in range(30)])
        titles = [line.strip().split("  ")[0] for line in rows(run("graph", f"y = exp(x); {terms}", "x=1"))]
        assert titles == ["add × 30 (60 operations)", "├── x", "└── exp", "└── x"]

    def test_what_else_is_used_is_not_part_of_a_run(self, run):
        terms = "+".join(f"{k}*x" for k in range(30))
        assert len(rows(run("graph", f"s = {terms}; t = s + {terms}; s*t", "x=1"))) == 6

    def test_a_long_program_is_one_page(self, run):
        rng = random.Random(1)
        lines = [f"y{i + 1} = sin(y{rng.randint(max(0, i - 9), i)}*0.5 + y{i})" for i in range(1000)]
        outcome = run("graph", "\n".join(["y0 = x", *lines]), "x=1")
        assert re.search(r"earlier \(2,\d\d\d operations\)", outcome.out)
        assert len(rows(outcome)) < 2 * MANY

    def test_many_inputs(self, run):
        names = [f"x{k}" for k in range(300)]
        (line,) = rows(run("graph", "+".join(names), *(f"{n}=1" for n in names)))
        assert line.startswith("add × 299 (300 inputs)")


def random_program(rng: random.Random) -> str:
    lines = ["f(a, b) = a*sin(b) + a", "g(a, b) = f(a, b)/f(b, 2)", "v0 = x"]
    for i in range(rng.randint(5, 40)):
        a, b = (f"v{rng.randint(max(0, i - 6), i)}" for _ in "ab")
        lines.append(
            f"v{i + 1} = "
            + rng.choice(
                [
                    f"{a} + {b}",
                    f"f({a}, {b})",
                    f"g({a}, {b}) - {a}",
                    f"sigmoid({a}*{b})*softplus({b})",
                    "+".join([a, b] * 15),
                    f"tanh({a}); for i in range({rng.randint(1, 20)}) {{ v{i + 1} = v{i + 1}*0.5 + {b}; w = {a}*2 }}",
                ]
            )
        )
    return "\n".join([*lines, lines[-1].split()[0]])


@pytest.mark.parametrize("seed", range(20))
def test_boxes_come_after_what_they_use(seed):
    """Whatever is grouped, no box depends on itself, and every operation is in one box."""
    program = parse(random_program(random.Random(seed)))
    graph = graphs.run(graphs.GraphRequest(program, {"x": 0.5}, ["x"]))
    boxes = outline(graph, expand=False)
    assert all(o < i for i, box in enumerate(boxes) for o in box.operands)
    assert sum(box.size for box in boxes) == sum(v.operation is not None for v in graph.vertices)
    users = {o for box in boxes for o in box.operands}
    assert users == set(range(len(boxes) - 1))
    assert boxes[-1].results == (len(graph.vertices) - 1,)


class TestValues:
    def test_every_operation_has_a_value_and_a_gradient(self, run):
        program = "f(a) = std(a)*2; y = [x, x*q]; s = 0; for v in y { s = s + v**2 }; s + f(y) + norm(y)"
        nodes = run("graph", program, "x=5", "q=3", "--values", "--json").json["nodes"]
        assert len(nodes) > 20
        assert all(n["value"] is not None and n["grad"] is not None for n in nodes)

    def test_gradients_are_those_of_eval(self, run):
        program = "y = x**q; z = y*sin(y); z + x"
        known = run("eval", program, "x=2", "q=3", "--retain", "y,z", "--json").json
        nodes = run("graph", program, "x=2", "q=3", "--values", "--json").json["nodes"]
        found = {n["name"]: n["grad"] for n in nodes if n["name"]}
        assert found == known["grad"] | known["retained"]

    def test_a_value_that_is_no_scalar(self, run):
        outcome = run("graph", "y = x*2", "x=[1,2]", "--values")
        assert outcome.status == 1
        assert outcome.err == (
            "error: the value has 2 elements and a gradient is that of a single number (grad can be implicitly created only for scalar outputs)\n"
            "  | y = x*2\n  | ^^^^^^^\n"
            "hint: --grad-output EXPR weights the elements of the value, of shape [2]; --no-grad shows values alone\n"
        )
        assert run("graph", "y = x*2", "x=[1,2]").status == 0
        assert rows(run("graph", "x*2", "x=[1,2]", "--values", "--grad-output", "[1, 0]"))[1].endswith("[1, 2]  [2, 0]")
        assert rows(run("graph", "x*2", "x=[1,2]", "--values", "--no-grad"))[0] == "multiply  x*2  [2]  [2, 4]"

    def test_constants_are_no_part_of_it(self, run):
        assert rows(run("graph", "x*c", "x=2", "c=3", "--wrt", "x", "--values")) == [
            "multiply  x*c  6.0  1.0",
            "└── x  2.0  3.0",
        ]


class TestFormats:
    def test_json(self, run):
        record = run("graph", "f(a) = a*2; y = f(x) + x", "x=5", "--to", "json", "--values").json
        assert record == {
            "schema": "gradcli/1",
            "program": "f(a) = a*2; y = f(x) + x",
            "backend": "numpy",
            "device": "cpu",
            "shape": [],
            "value": 15.0,
            "root": 2,
            "nodes": [
                {
                    "id": 0, "operation": None, "grad_fn": None, "name": "x", "label": None,
                    "shape": [], "group": None, "value": 5.0, "grad": 3.0,
                },
                {
                    "id": 1, "operation": "multiply", "grad_fn": "MulBackward0", "name": None, "label": "a*2",
                    "shape": [], "group": 0, "value": 10.0, "grad": 1.0,
                },
                {
                    "id": 2, "operation": "add", "grad_fn": "AddBackward0", "name": "y", "label": "f(x) + x",
                    "shape": [], "group": None, "value": 15.0, "grad": 1.0,
                },
            ],
            "edges": [{"from": 0, "to": 1}, {"from": 1, "to": 2}, {"from": 0, "to": 2}],
            "groups": [{"id": 0, "kind": "function", "name": "f", "label": "f(x)", "times": 1, "parent": None}],
        }  # fmt: skip
        assert run("graph", "x", "x=5", "--json").out == run("graph", "x", "x=5", "--to=json").out

    def test_dot(self, run):
        assert run("graph", "f(a) = 2*a*a; f(x)*x", "x=5", "--to", "dot").out == (
            'digraph gradcli {\n  node [fontname="monospace", fontsize=11];\n'
            '  n0 [shape=ellipse, label="x"];\n'
            '  n1 [shape=box3d, label="f (2 operations)\\nf(x)"];\n'
            '  n2 [shape=box, label="multiply\\nf(x)*x"];\n'
            "  n0 -> n1;\n  n1 -> n2;\n  n0 -> n2;\n}\n"
        )

    def test_mermaid(self, run):
        assert run("graph", "f(a) = 2*a*a; f(x)*x", "x=5", "--to", "mermaid").out == (
            "flowchart TD\n"
            '  n0(["x"])\n  n1[["f (2 operations)<br/>f(x)"]]\n  n2["multiply<br/>f(x)#42;x"]\n'
            "  n0 --> n1\n  n1 --> n2\n  n0 --> n2\n"
        )

    @pytest.mark.parametrize("words", [["--values"], ["--values", "--expand"], []])
    def test_in_svg_nothing_overlaps(self, run, words):
        program = (
            "f(a) = a*sin(a) + 1; y = f(W@x); z = exp(y)*y + norm(x); σ = z/sum(z); "
            "-log(σ[1]) + std(y) + sum(tanh(W)**2) + sum(x)"
        )
        outcome = run("graph", program, "W=[[1,2],[3,4]]", "x=[0.5,0.6]", "--to", "svg", *words)
        boxes, (width, height) = sized(outcome.out)
        assert len(boxes) > 15
        for left, top, right, bottom in boxes:
            assert 0 < left < right < width
            assert 0 < top < bottom < height
        for a, b in itertools.combinations(boxes, 2):
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]

    def test_lines_pass_beside_the_boxes(self):
        rng = random.Random(3)
        operands = [[], [0], *(sorted({rng.randrange(max(0, i - 12), i) for _ in range(3)}) for i in range(2, 80))]
        sizes = [BoxSize(rng.uniform(20, 200), rng.uniform(20, 60)) for _ in operands]
        placed = layout(sizes, operands)
        ends = [(operand, user) for user, used in enumerate(operands) for operand in used]
        passed = 0
        for points, (start, end) in zip(placed.lines, ends, strict=True):
            assert points[1] == (placed.centres[start].x, placed.centres[start].y + sizes[start].height / 2)
            assert points[-2] == (placed.centres[end].x, placed.centres[end].y - sizes[end].height / 2)
            for above, below in zip(points[2:-2:2], points[3:-2:2]):
                for centre, size in zip(placed.centres, sizes):
                    if above.y <= centre.y <= below.y:
                        passed += 1
                        assert abs(centre.x - above.x) > size.width / 2
        assert passed > 100

    def test_arrows_lead_down(self, run):
        svg = run("graph", "y = exp(x); (y + sin(y))*y*x", "x=1", "--to", "svg").out
        paths = re.findall(r'<path d="M[\d.]+,([\d.]+)C.* [\d.]+,([\d.]+)"', svg)
        assert len(paths) == 8
        assert all(float(start) < float(end) for start, end in paths)

    @pytest.mark.slow
    def test_a_picture_of_too_many_boxes(self, run):
        outcome = run("graph", LOOP, "x=1", "--to", "svg", "--expand")
        assert (outcome.status, outcome.out) == (1, "")
        assert outcome.err.startswith("error: a picture of 100,001 boxes is too large\n")

    @pytest.mark.parametrize("form", ["tree", "dot", "mermaid", "svg", "json"])
    def test_what_is_drawn_is_charged(self, run, form):
        """A limit that suffices for the evaluation does not suffice for the drawing."""
        program, steps = LOOP.replace("50000", "1000"), ["--max-steps", "20000"]
        assert run("eval", program, "x=1", *steps).status == 0
        outcome = run("graph", program, "x=1", "--values", "--expand", "--to", form, *steps)
        assert (outcome.status, outcome.out) == (1, "")
        assert "the program takes more than 20,000 steps" in outcome.err
        if form != "json":
            assert "^" in outcome.err

    def test_lines_through_many_layers_are_charged(self, run):
        """Every edge crosses all layers between its ends."""
        names = ["x", *(f"a{i}" for i in range(60))]
        program = "".join(f"a{i} = sum([{', '.join(names[: i + 1])}]); " for i in range(60)) + "a59"
        words = ("graph", program, "x=1", "--expand", "--max-steps", "30000")
        assert run(*words, "--to", "dot").status == 0
        outcome = run(*words, "--to", "svg")
        assert (outcome.status, outcome.out) == (1, "")
        assert "more than 30,000 steps" in outcome.err


# Texts with a meaning in one of the formats.
HOSTILE = [
    'subgraph = einsum("i,i->", [x, x], [1, 2]); end = subgraph*2; end',
    "click = where(x > 1 and x < 5, x**2, 1); style = click - 1 - 2; style",
    "graph = (x\n\t*\r\n 3)*[1, 2][0]; node = graph + graph; node",
    "σ_1 = x*2; 変数 = σ_1*3; 変数 + [1, x][1]",
    "digraph = -x; strict = digraph - -x; -strict",
]


class TestUntrusted:
    @pytest.mark.parametrize("program", HOSTILE)
    def test_svg_is_well_formed(self, run, program):
        outcome = run("graph", program, "x=3", "--to", "svg")
        texts = [t.text for t in ElementTree.fromstring(outcome.out).iter(f"{SVG}text")]
        assert all(text.isprintable() for text in texts)
        assert texts.count("x") == 1

    def test_every_text_is_in_the_svg(self, run):
        svg = run("graph", HOSTILE[1], "x=3", "--to", "svg").out
        texts = {t.text for t in ElementTree.fromstring(svg).iter(f"{SVG}text")}
        assert "click = where(x > 1 and x < 5, x**2, 1)" in texts
        assert "x &lt; 5" in svg

    @pytest.mark.parametrize("program", HOSTILE)
    def test_dot_is_quoted(self, run, program):
        lines = run("graph", program, "x=3", "--to", "dot").out.splitlines()
        label = r'"(?:[^"\\\x00-\x1f]|\\n|\\\\|\\")*"'
        for line in lines[2:-1]:
            assert re.fullmatch(rf"  n\d+ \[shape=\w+, label={label}\];|  n\d+ -> n\d+;", line)

    @pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
    @pytest.mark.parametrize("program", HOSTILE)
    def test_graphviz_reads_it(self, run, program):
        text = run("graph", program, "x=3", "--values", "--to", "dot").out
        done = subprocess.run(["dot", "-Tplain"], input=text, capture_output=True, encoding="utf-8", timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        assert len(re.findall("^node ", done.stdout, re.MULTILINE)) == text.count("label=")

    @pytest.mark.parametrize("program", HOSTILE)
    def test_mermaid_has_nothing_that_could_be_syntax(self, run, program):
        lines = run("graph", program, "x=3", "--values", "--to", "mermaid").out.splitlines()
        label = r'"(?:[\w\s(),=/×…]|#\d+;|<br/>)*"'
        for line in lines[1:]:
            assert re.fullmatch(rf"  n\d+(\(\[{label}\]\)|\[{label}\]|\[\[{label}\]\])|  n\d+ --> n\d+", line)

    def test_backslashes_and_quotes_in_dot(self, run):
        text = run("graph", "einsum('i,i->', [x, x], [1, 2])*einsum(\"i->\", [x])", "x=3", "--to", "dot").out
        assert r"einsum(\"i->\", [x])" in text

    @pytest.mark.cases(2)
    @pytest.mark.parametrize("form", ["tree", "dot", "mermaid", "svg"])
    def test_a_sum_of_3000_terms(self, run, form):
        assert len(run("graph", SUM, "x=2", "--to", form).out.splitlines()) < 40

    @pytest.mark.slow
    def test_100_000_operations(self, run):
        assert rows(run("graph", LOOP, "x=2")) == ["for × 50,000 (100,000 operations)  for i in range(50000)", "└── x"]

    def test_all_operations_of_a_loop_are_in_the_json(self, run):
        assert len(run("graph", LOOP.replace("50000", "5000"), "x=2", "--json").json["nodes"]) == 10_001

    @pytest.mark.cases(1)
    @pytest.mark.parametrize("form", ["tree", "dot", "mermaid"])
    def test_expanded_operations(self, run, form):
        outcome = run("graph", LOOP.replace("50000", "5000"), "x=2", "--to", form, "--expand")
        assert outcome.status == 0
        assert len(outcome.out.splitlines()) > 10_000
        assert max(map(len, outcome.out.splitlines())) < 200

    def test_a_recursion_20_000_deep(self, run):
        program = "f(n, y) = y if n <= 0 else f(n - 1, y*1.0001); f(20000, x)"
        assert rows(run("graph", program, "x=1")) == ["f (20,000 operations)  f(20000, x)", "└── x"]

    def test_long_texts_are_cut(self, run):
        record = run("graph", "--json", "0" + "-" * 3000 + "x", "x=1").json
        assert max(len(n["label"] or "") for n in record["nodes"]) <= 48


class TestUsage:
    def test_help_has_examples(self, run):
        done = subprocess.run([sys.executable, "-m", "gradcli", "graph", "--help"], capture_output=True, text=True)
        assert "gradcli graph 'y = x**q; z = log(y) + sqrt(y)' x=5 q=3 --values" in done.stdout

    @pytest.mark.parametrize(
        ("words", "message", "hint"),
        [
            (["--to", "png"], "there is no format 'png'", "--to tree, dot, mermaid, svg or json"),
            (["--to", "mermade"], "there is no format 'mermade'", "did you mean 'mermaid'?"),
            (["--json", "--to", "svg"], "--json and --to svg contradict each other", "leave out one of them"),
            (["--no-grad"], "--no-grad says which values to show", "--values --no-grad"),
            (["--grad-output", "1"], "--grad-output says which values to show", "--values --grad-output"),
            (["--expnd"], "there is no option --expnd", "did you mean --expand?"),
            (["-e"], "there is no option -e", "did you mean --expand?"),
            (["-expand"], "there is no option -expand", "did you mean --expand?"),
            (["-z"], "there is no option -z", "gradcli graph --help lists the options"),
        ],
    )
    def test_wrong_options(self, run, words, message, hint):
        outcome = run("graph", "x*2", "x=1", *words)
        assert (outcome.status, outcome.out) == (2, "")
        if "--json" in words:
            assert (outcome.error["message"], outcome.error["hint"]) == (message, hint)
        else:
            assert outcome.err == f"error: {message}\nhint: {hint}\n"

    def test_errors_have_a_place(self, run):
        outcome = run("graph", "y = lgo(x)", "x=1")
        assert outcome.status == 2
        assert "  | y = lgo(x)\n  |     ^^^\n" in outcome.err
        assert run("graph", "y = lgo(x)", "x=1", "--to", "json").error["column"] == 5

    def test_a_program_from_a_file_and_values_from_json(self, run, tmp_path):
        (tmp_path / "p.grad").write_text("x*y\n")
        (tmp_path / "v.json").write_text('{"x": 2, "y": 3}')
        outcome = run("graph", "--file", str(tmp_path / "p.grad"), "--vars", str(tmp_path / "v.json"))
        assert rows(outcome) == ["multiply  x*y", "├── x", "└── y"]

    def test_the_step_limit_holds(self, run):
        outcome = run("graph", "y = x; while 1 { y = y*2 }; y", "x=1", "--max-steps", "1000")
        assert (outcome.status, "steps" in outcome.err) == (1, True)

    def test_a_drawing_of_numbers_needs_no_numpy(self):
        code = (
            "import io, sys\nfrom gradcli.cli.main import main\nfrom gradcli.cli.process.environment import Environment\n"
            "out = io.StringIO()\n"
            "main(['graph', 'log(x**q)', 'x=5', 'q=3', '--values'], Environment(None, out, out, {}))\n"
            "assert 'log' in out.getvalue()\nprint('numpy' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize("words", [["zeros(3)"], ["[]"], ["x.shape", "x=[1,2]"], ["2 + 3"]])
def test_a_value_that_nothing_recorded_is_drawn_alone(run, words):
    graph = run("graph", *words, "--json").json
    assert [(node["id"], node["operation"]) for node in graph["nodes"]] == [(0, None)]
    assert graph["edges"] == []
    assert "constant" in run("graph", *words).out

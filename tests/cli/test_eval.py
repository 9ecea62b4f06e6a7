"""Tests `gradcli eval` as a user sees it: results, inputs, options, warnings."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time

import numpy as np
import pytest

import gradcli
from gradcli import timing


def test_the_main_job_as_json(run):
    outcome = run("eval", "log(x**q)", "x=5", "q=3", "--json")
    assert outcome.status == 0
    assert outcome.err == ""
    record = outcome.json
    assert list(record) == ["schema", "program", "backend", "device", "dtype", "shape", "value", "grad"]
    assert record["schema"] == "gradcli/1"
    assert record["program"] == "log(x**q)"
    assert (record["backend"], record["device"], record["dtype"]) == ("numpy", "cpu", "float64")
    assert record["shape"] == []
    assert record["value"] == pytest.approx(4.828313737302301, rel=1e-15)
    assert record["grad"] == {"x": 0.6, "q": 1.6094379124341003}
    assert outcome.out.count("\n") == 1


def test_the_main_job_as_a_table(run):
    outcome = run("eval", "log(x**q)", "x=5", "q=3")
    lines = [line.split() for line in outcome.out.splitlines()]
    assert lines[0][0] == "value"
    assert ["x", "0.6"] in lines
    assert ["q", "1.6094379124341003"] in lines


@pytest.mark.parametrize(
    ("program", "value", "grad"),
    [
        ("-x**2", -9.0, -6.0),
        ("-x**2 + 1", -8.0, -6.0),
        ("-(x)", -3.0, -1.0),
        ("- x", -3.0, -1.0),
    ],
)
def test_a_program_may_start_with_a_minus(run, program, value, grad):
    record = run("eval", program, "x=3", "--json").json
    assert (record["value"], record["grad"]["x"]) == (value, grad)


def test_program_on_standard_input_and_from_a_file(run, tmp_path):
    path = tmp_path / "formula.grad"
    path.write_text("# the area\nr2 = r**2\npi*r2\n", encoding="utf-8")
    from_file = run("eval", "--file", str(path), "r=2", "--json").json
    from_stdin = run("eval", "-", "r=2", "--json", stdin=path.read_text()).json
    assert from_file == from_stdin
    assert from_file["grad"]["r"] == pytest.approx(4 * math.pi)


def test_values_are_expressions(run):
    record = run("eval", "sum(x)+y+sum(W)", "x=linspace(0,1,5)", "y=2*pi", "W=[[1,2],[3,4]]", "--json").json
    assert record["value"] == pytest.approx(2.5 + 2 * math.pi + 10)
    assert record["grad"]["W"] == [[1.0, 1.0], [1.0, 1.0]]


def test_random_values_have_a_seed(run):
    first = run("eval", "sum(x)", "x=randn(3,4,seed=0)", "--json").json
    assert first["value"] == pytest.approx(np.random.default_rng(0).standard_normal((3, 4)).sum())
    unseeded = run("eval", "sum(x)", "x=randn(3)")
    assert unseeded.status == 2
    assert "'seed'" in unseeded.err


def test_values_from_files(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.arange(3.0))
    np.savez("a.npz", key=np.ones(3), other=np.zeros(2))
    (tmp_path / "t.csv").write_text("time,temp\n0,1\n1,2\n2,4\n")
    (tmp_path / "w.json").write_text('[1, "NaN", 2]')
    record = run("eval", "x@k + sum(c)", "x=@x.npy", "k=@a.npz:key", "c=@t.csv:temp", "--json").json
    assert record["value"] == 3 + 7
    assert record["grad"] == {"x": [1, 1, 1], "k": [0, 1, 2], "c": [1, 1, 1]}
    assert run("eval", "w[1]", "w=@w.json", "--json").json["value"] == "NaN"


def test_variables_from_json(run, tmp_path):
    path = tmp_path / "vars.json"
    path.write_text('{"x": 2, "w": [1, 2], "unused": 3}')
    expected = {"x": 3.0, "w": [2.0, 2.0]}
    assert run("eval", "sum(x*w)", "--vars", str(path), "--json").json["grad"] == expected
    assert run("eval", "sum(x*w)", "--vars", "-", "--json", stdin=path.read_text()).json["grad"] == expected
    infinite = run("eval", "x", "--vars", "-", "--json", stdin='{"x": "-Infinity"}')
    assert infinite.json["value"] == "-Infinity"


def test_wrt_and_const(run):
    assert run("eval", "x*q", "x=2", "q=3", "--wrt", "q", "--json").json["grad"] == {"q": 2.0}
    assert run("eval", "x*q", "x=2", "q=3", "--const", "q", "--json").json["grad"] == {"x": 3.0}


def test_a_leaf_without_influence_is_null_and_a_flat_one_is_zero(run):
    grad = run("eval", "x if 1 > 0 else y", "x=2", "y=3", "--json").json["grad"]
    assert grad == {"x": 1.0, "y": None}
    assert run("eval", "floor(x)", "x=2.5", "--json").json["grad"] == {"x": 0.0}


def test_float32_numbers_are_printed_in_their_own_precision(run):
    outcome = run("eval", "x/3", "x=0.1", "--dtype", "float32", "--json")
    assert outcome.json["dtype"] == "float32"
    assert f'"value":{np.float32(0.1) / np.float32(3)!s}' in outcome.out
    assert '"x":0.33333334' in outcome.out


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("sum([0.1, x])", "0.2"),
        ("sum([x, x].shape*[x, x])", "0.4"),
        ("exp(1) + 0*x", "2.7182817"),
        ("0.1 + 0.2", "0.3"),
    ],
)
def test_everything_is_float32_where_that_was_asked_for(run, program, text):
    words = ["x=0.1"] if "x" in program.replace("exp", "") else []
    assert f'"value":{text}' in run("eval", program, *words, "--dtype", "float32", "--no-grad", "--json").out


def test_order(run):
    record = run("eval", "x**2*q**3", "x=2", "q=3", "--order", "3", "--json").json
    assert list(record["derivatives"]) == ["x,x", "x,q", "q,q", "x,x,x", "x,x,q", "x,q,q", "q,q,q"]
    assert record["derivatives"] == {
        "x,x": 54.0, "x,q": 108.0, "q,q": 72.0, "x,x,x": 0.0, "x,x,q": 54.0, "x,q,q": 72.0, "q,q,q": 24.0,
    }  # fmt: skip


def test_order_of_tensors_joins_their_shapes(run):
    record = run("eval", "sum(x**2)*sum(w)", "x=[1,2]", "w=[1,1,1]", "--order", "2", "--json").json
    assert np.shape(record["derivatives"]["x,w"]) == (2, 3)
    assert record["derivatives"]["x,x"] == [[6.0, 0.0], [0.0, 6.0]]
    assert record["derivatives"]["w,w"] == [[0.0] * 3] * 3


def test_the_gradient_of_a_jacobian_that_the_program_takes(run):
    words = ["y = [p[0]*cos(p[1]), p[0]*sin(p[1])]; det(jacobian(y, p))", "p=[2, 0.5]", "--json"]
    assert run("eval", *words).json["grad"]["p"] == pytest.approx([1.0, 0.0], abs=1e-12)


def test_a_jacobian_of_order_1_is_the_jacobian(run):
    asked = run("eval", "[x/3, x]", "x=1", "--jacobian", "--order", "1", "--json")
    assert asked.json == run("eval", "[x/3, x]", "x=1", "--jacobian", "--json").json
    assert "are of a single number" in run("eval", "[x/3, x]", "x=1", "--jacobian", "--order", "2").err


def test_jacobian(run):
    record = run("eval", "[x*y, x+y, y]", "x=2", "y=3", "--jacobian", "--json").json
    assert record["jacobian"] == {"x": [3.0, 1.0, 0.0], "y": [2.0, 1.0, 1.0]}
    assert "grad" not in record


def test_grad_output(run):
    record = run("eval", "x**2", "x=[1,2]", "--grad-output", "[1, 10]", "--json").json
    assert record["grad"] == {"x": [2.0, 40.0]}
    wrong = run("eval", "x**2", "x=[1,2]", "--grad-output", "[1, 10, 3]")
    assert wrong.status == 1
    assert "Mismatch in shape" in wrong.err


@pytest.mark.parametrize("words", [(), ("--digits", "20"), ("--certify",), ("--sparse",)])
def test_a_cotangent_weights_no_derivative_of_higher_order(run, words):
    """The gradient of 3*x**2 must not appear beside the second derivative of x**2."""
    outcome = run("eval", "x**2", "x=2", "--grad-output", "3", "--order", "2", *words, "--json")
    assert (outcome.status, outcome.out) == (2, "")
    assert "multiply the value" in outcome.error["hint"]
    assert (
        run("eval", "x**2", "x=2", "--grad-output", "3", "--order", "1", *words[:2]).status
        == int("--sparse" in words) * 2
    )


def test_retain_and_nodes(run):
    record = run("eval", "y=x**3; z=log(y)", "x=5", "--retain", "y,z", "--nodes", "--json").json
    assert record["retained"] == {"y": 0.008, "z": 1.0}
    assert [row["name"] for row in record["nodes"]] == ["x", "y", "z"]
    assert record["nodes"][0] == {
        "name": "x", "requires_grad": True, "is_leaf": True, "retains_grad": False, "grad_fn": None, "grad": 0.6,
    }  # fmt: skip
    assert record["nodes"][1]["grad_fn"] == "PowBackward0"
    assert record["nodes"][2]["grad_fn"] == "LogBackward0"


def test_nodes_without_retain_have_no_gradient(run):
    nodes = run("eval", "y=x**3; z=log(y)", "x=5", "--nodes", "--json").json["nodes"]
    assert [row["grad"] for row in nodes] == [0.6, None, None]


def test_retained_gradients_are_those_of_the_value_alone(run):
    words = ["y=sum(x@x)", "x=[1,2]", "--retain", "y", "--json"]
    assert run("eval", *words, "--jacobian", "--order", "2").json["retained"] == {"y": 1.0}
    assert run("eval", "y=x**2; y*2", "x=2", "--order", "3", "--retain", "y", "--json").json["retained"] == {"y": 2.0}


def test_no_grad(run):
    record = run("eval", "x*2", "x=[1,2]", "--no-grad", "--json").json
    assert record["value"] == [2.0, 4.0]
    assert "grad" not in record


def test_save(run, tmp_path):
    path = tmp_path / "out.npz"
    run("eval", "y=x/3; sum(y*q)", "x=[1,2]", "q=3", "--retain", "y", "--order", "2", "--save", str(path))
    with np.load(path) as saved:
        assert set(saved.files) == {
            "value", "grad/x", "grad/q", "derivatives/x,x", "derivatives/x,q", "derivatives/q,q", "retained/y",
        }  # fmt: skip
        assert saved["grad/q"] == 1 / 3 + 2 / 3
        assert saved["derivatives/x,q"].tolist() == [1 / 3, 1 / 3]


def test_a_constant_may_be_bound(run):
    assert run("eval", "e*2", "e=5", "--json").json["grad"] == {"e": 2.0}
    assert run("eval", "e*x", "x=1", "--json").json["value"] == math.e


def test_unicode_names(run):
    assert run("eval", "σ**2 + θ_1", "σ=3", "θ_1=1", "--json").json["grad"] == {"σ": 6.0, "θ_1": 1.0}


class TestWarnings:
    @pytest.mark.parametrize(
        ("program", "words", "start"),
        [
            ("sqrt(a**2 + b**2 - 2*a*b*cos(t))", ["a=1", "b=1", "t=1e-9"], "the derivative of 'sqrt' is inf for operand 0.0"),
            ("log(a**2 + b**2 - 2*a*b*cos(t))", ["a=1", "b=1", "t=1e-9"], "'log' gives -inf for operand 0.0"),
            ("1/(cos(k)**2 + sin(k)**2 - 1)", ["k=0.3"], "'divide' gives inf for operands 1.0 and 0.0"),
            ("log(x*(1/x) - 1)", ["x=3"], "'log' gives -inf for operand 0.0"),
            ("acos(cos(k)**2 + sin(k)**2)", ["k=0.3"], "the derivative of 'acos' is -inf for operand 1.0"),
        ],
    )  # fmt: skip
    def test_what_is_0_by_rounding_is_no_singularity(self, run, program, words, start):
        (warning,) = run("eval", program, *words, "--json").json["warnings"]
        assert warning["code"] == "nonfinite"
        assert warning["message"].startswith(f"digits are lost by rounding: {start}")
        assert warning["message"].endswith("; --digits gives more")

    @pytest.mark.parametrize(
        ("program", "words"),
        [
            ("log(2 - 2*cos(k))", ["k=0"]),
            ("1/(x - y)", ["x=0.1", "y=0.1"]),
            ("acos(2*x)", ["x=0.5"]),
            ("(x > 1)/x", ["x=0"]),
            ("exp(x)*1e308", ["x=3.3"]),
        ],
    )
    def test_what_is_singular_is_not_said_to_be_rounding(self, run, program, words):
        (warning,) = run("eval", program, *words, "--json").json["warnings"]
        assert "rounding" not in warning["message"]

    def test_nonfinite_forward(self, run):
        outcome = run("eval", "y = 2*x; log(y)", "x=0")
        assert outcome.status == 0
        assert outcome.err == "warning: 'log' gives -inf for operand 0.0\n  | y = 2*x; log(y)\n  |          ^^^^^^\n"

    def test_nonfinite_forward_in_json(self, run):
        outcome = run("eval", "log(x**q)", "x=-1.5", "q=2.5", "--json")
        assert outcome.err == ""
        assert outcome.json["value"] == "NaN"
        (warning,) = outcome.json["warnings"]
        assert {k: warning[k] for k in ("code", "phase", "operation", "line", "column")} == {
            "code": "nonfinite", "phase": "forward", "operation": "pow", "line": 1, "column": 5,
        }  # fmt: skip
        assert "-1.5 and 2.5" in warning["message"]

    def test_nonfinite_backward(self, run):
        (warning,) = run("eval", "a = 1\nsqrt(x) + a", "x=0", "--json").json["warnings"]
        assert (warning["phase"], warning["operation"]) == ("backward", "sqrt")
        assert (warning["line"], warning["column"]) == (2, 1)

    def test_the_place_in_an_array(self, run):
        (warning,) = run("eval", "sum(log(x))", "x=[1,2,-3]", "--json").json["warnings"]
        assert "nan at [2] for operand -3.0" in warning["message"]

    def test_what_comes_with_an_input(self, run):
        (warning,) = run("eval", "y = 2*x; y + 1", "x=inf", "--json").json["warnings"]
        assert (warning["operation"], warning["column"]) == ("multiply", 5)
        assert "2.0 and inf" in warning["message"]

    def test_a_branch_that_was_not_taken_is_not_blamed(self, run):
        warning, tie = run("eval", "where(x > 0, log(x), x) + sqrt(x)", "x=0", "--json").json["warnings"]
        assert (warning["phase"], warning["operation"]) == ("backward", "sqrt")
        assert (tie["code"], tie["operation"]) == ("nonsmooth", ">")

    def test_the_line_of_a_longer_program(self, run):
        assert "\n2 | log(y)\n  | ^^^^^^\n" in run("eval", "y = 2*x\nlog(y)", "x=0").err

    @pytest.mark.parametrize(
        ("program", "operation"),
        [
            ("abs(x)", "abs"), ("max([x, 0])", "max"), ("maximum(x, 0)", "maximum"), ("relu(x)", "relu"),
            ("clip(x, 0, 1)", "clip"), ("norm([x, 0])", "norm"), ("floor(x)", "floor"),
        ],
    )  # fmt: skip
    def test_nonsmooth(self, run, program, operation):
        (warning,) = run("eval", program, "x=0", "--json").json["warnings"]
        assert (warning["code"], warning["phase"]) == ("nonsmooth", "backward")
        assert warning["operation"] == operation
        assert "warnings" not in run("eval", program, "x=0.5", "--json").json

    def test_a_finite_result_has_no_warning(self, run):
        assert "warnings" not in run("eval", "where(x > 0, log(x), 0*x)", "x=-1", "--json").json

    def test_quiet(self, run):
        assert run("eval", "log(x)", "x=0", "--quiet").err == ""

    def test_fail_on_nonfinite(self, run):
        assert run("eval", "log(x)", "x=0", "--fail-on-nonfinite").status == 1
        assert run("eval", "sqrt(x)", "x=0", "--fail-on-nonfinite").status == 1
        assert run("eval", "log(x)", "x=1", "--fail-on-nonfinite").status == 0


class TestTiming:
    PHASES = ("import", "parse", "read", "record", "compile", "transfer", "run")

    @pytest.mark.parametrize("executor", [(), ("--executor", "eager"), ("--executor", "compiled")])
    def test_the_phases_fill_the_time_and_do_not_overlap(self, run, executor):
        began = time.perf_counter()
        seconds = run("eval", "sum(log(x**q))", "x=linspace(1,2,9)", "q=3", "--json", "--timing", *executor).json[
            "timing"
        ]
        took = time.perf_counter() - began
        assert tuple(seconds) == self.PHASES
        assert all(s >= 0 for s in seconds.values())
        assert sum(seconds.values()) <= took
        happened = {"parse", "read", "run", *(("record", "compile") if "compiled" in executor else ())}
        assert {name for name, s in seconds.items() if s > 0} - {"import"} == happened

    def test_what_a_loop_takes_is_in_run(self, run):
        seconds = run("eval", "for i in range(20000) { x = x + 1 }; x", "x=1", "--json", "--timing").json["timing"]
        assert max(seconds, key=seconds.__getitem__) == "run"

    def test_the_table_comes_after_the_results(self, run):
        tables = run("eval", "x**2", "x=3", "--timing").out.split("\n\n")
        assert "\n\n".join(tables[:-1]) + "\n" == run("eval", "x**2", "x=3").out
        header, *rows = (line.split() for line in tables[-1].splitlines())
        assert header == ["phase", "seconds"]
        assert tuple(name for name, _ in rows) == self.PHASES
        assert all(float(s) >= 0 for _, s in rows)

    def test_nothing_is_timed_unless_that_is_asked_for(self, run):
        assert "timing" not in run("eval", "x**2", "x=3", "--json").json
        assert "seconds" not in run("eval", "x**2", "x=3").out

    def test_a_program_that_cannot_be_evaluated_leaves_no_stopwatch_running(self, run, monkeypatch):
        assert run("eval", "x + [1, 2]", "x=[1,2,3]", "--timing").status == 1
        monkeypatch.setattr(timing, "perf_counter", pytest.fail)
        assert run("eval", "x**2", "x=3").status == 0

    def test_a_phase_waits_for_the_device(self):
        """Work that the device has not finished when a phase ends counts for that phase."""
        with timing.measured(True) as stopwatch:
            stopwatch.synchronise = lambda: time.sleep(0.01)
            with timing.phase("run"), timing.phase("transfer"):
                pass
        assert stopwatch.seconds["run"] >= 0.02
        assert stopwatch.seconds["transfer"] >= 0.01
        assert stopwatch.seconds["parse"] == 0


class TestHelp:
    def test_every_option_is_explained(self, run):
        shown = run("eval", "--help-all").out
        for option in ("--json", "--order", "--jacobian", "--retain", "--vars", "--max-elements"):
            assert option in shown
        assert "gradcli eval 'log(x**q)' x=5 q=3" in shown

    def test_without_a_command(self, run):
        assert "eval" in run().out

    def test_version(self, run):
        assert run("--version").out == f"gradcli {gradcli.__version__}\n"


def test_the_table_on_a_terminal_is_drawn(run, monkeypatch):
    monkeypatch.setattr("gradcli.cli.process.environment.Environment.for_terminal", True)
    outcome = run("eval", "log(x**q)", "x=5", "q=3")
    assert "0.6" in outcome.out
    assert "─" in outcome.out


def test_json_is_strict(run):
    outcome = run("eval", "[x, -x, 0*x]", "x=inf", "--no-grad", "--json")
    record = json.loads(outcome.out, parse_constant=pytest.fail)
    assert record["value"] == ["Infinity", "-Infinity", "NaN"]


NUMBERS = ["x=1e300", "x=[1e300,1]", "x=10**400", "x=@x.npy", "x=@x.json", "x=@x.csv", "x=[nan,inf]"]


@pytest.mark.cases(4)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", NUMBERS)
def test_no_warning_of_a_library_is_seen(run, tmp_path, monkeypatch, dtype, value):
    """Warnings are errors in the tests, and would appear as internal errors."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.array([1e300, 1.0]))
    (tmp_path / "x.json").write_text("[1e300, 1]")
    (tmp_path / "x.csv").write_text("1e300\n1\n")
    programs = ["sum(x)", "sum(x*1e300/0)", "sum(round(x))", "sum(where(x > 1, x, 1e300))", "sum(full([2], 1e300)*x)"]
    for program in programs:
        for words in ([], ["--order", "2"], ["--executor", "compiled"], ["--grad-output", "1e300"], ["--json"]):
            outcome = run("eval", program, value, "--dtype", dtype, *words)
            assert "internal" not in outcome.err
            assert "Warning" not in outcome.err


def test_a_missing_file_in_a_removed_directory(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    command = 'rmdir "$0" && exec "$@"'
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    for words in (["x", "x=@a.npy"], ["--file", "a"], ["x", "--vars", "a"]):
        shell = ["sh", "-c", command, str(gone), sys.executable, "-m", "gradcli", "eval", *words]
        gone.mkdir(exist_ok=True)
        done = subprocess.run(shell, capture_output=True, text=True, check=False, cwd=gone, env=environment)
        assert done.returncode == 2
        assert done.stderr.startswith("error: cannot read")


@pytest.mark.parametrize("function", ["arccos", "arcsin", "acosh", "atanh"])
def test_the_second_derivative_at_the_end_of_a_domain(run, function):
    done = run("eval", f"{function}(q)", "q=1", "--order", "2", "--json")
    assert done.status == 0
    assert done.json["derivatives"]["q,q"].lstrip("-") == "Infinity"


def test_a_jacobian_of_what_takes_no_part_is_not_taken(run):
    words = ["for i in v { logdet(outer(v, v)) }; A*sum(v)", "v=[0.5,0.5,0.5]", "A=[[1,2],[3,4]]", "--jacobian"]
    assert run("eval", *words, "--json").json["jacobian"]["v"] == [[[1.0] * 3, [2.0] * 3], [[3.0] * 3, [4.0] * 3]]


def test_a_jacobian_of_what_jumps_at_an_infinite_value(run):
    assert run("eval", "round(outer(inf, [x, x]))", "x=0.5", "--jacobian", "--json").json["jacobian"] == {"x": [[0, 0]]}


def test_a_sparse_hessian_of_a_truth_value(run):
    assert run("eval", "norm(logical_or(x, x))", "x=0.5", "--order=2", "--sparse", "--json").json["value"] == 1.0


def test_a_function_without_its_argument_beside_a_power(run):
    outcome = run("eval", "x^dawsn()", "x=1")
    assert (outcome.status, outcome.err.splitlines()[0]) == (2, "error: 'dawsn' needs 'x'")


class TestSeveralTensors:
    """Functions that return several tensors as the value of a program."""

    def test_json_lists_them(self, run):
        found = run("eval", "torch.sort(x)", "x=[1,4,2]", "--jacobian", "--json").json
        assert found["parts"] == ["values", "indices"]
        assert found["shape"] == [[3], [3]]
        assert found["value"] == [[1.0, 2.0, 4.0], [0.0, 2.0, 1.0]]
        assert found["jacobian"] == [{"x": [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]}, {"x": None}]

    def test_each_has_the_gradient_of_its_own(self, run):
        for program in ("torch.max(x, dim=0)", "y = torch.max(x, 0)", "def f(x): return torch.max(x, 0)"):
            found = run("eval", program, "x=[1,4,2]", "--json").json
            assert (found["value"], found["grad"]) == ([4.0, 1.0], [{"x": [0.0, 1.0, 0.0]}, {"x": None}])

    def test_without_names_they_have_numbers(self, run):
        found = run("eval", "qr(A)", "A=[[2,0],[0,3]]", "--no-grad", "--json").json
        assert (found["parts"], found["shape"]) == ([0, 1], [[2, 2], [2, 2]])

    def test_their_digits_are_proved(self, run):
        found = run("eval", "torch.var_mean(x)", "x=[1,4]", "--digits", "5", "--json").json
        assert (found["value"], found["digits"]) == (["4.5", "2.5"], 5)

    def test_without_json_they_are_an_error_that_names_them(self, run):
        outcome = run("eval", "torch.sort(x)", "x=[1,4,2]")
        assert outcome.status == 1
        assert "2 tensors: values, indices" in outcome.err
        assert "--json" in outcome.err

    def test_others_need_what_a_tensor_needs(self, run):
        assert "--no-grad" in run("eval", "torch.sort(x)", "x=[1,4]", "--json").error["hint"]
        assert "[a, b]" in run("eval", "x, 2*x", "x=1", "--json").error["hint"]
        assert "2 tensors" in run("eval", "if x[0] > 0 { torch.sort(x) }", "x=[1,4]", "--json").error["message"]


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("3**60 % 10", 1),
        ("3^60 % 10", 1),
        ("3⁶⁰ % 10", 1),
        ("-3**61 % 10", 7),
        ("25! % 29", math.factorial(25) % 29),
        ("10**17 + 1 - 10**17", 1),
        ("123456789012345678901 % 10", 1),
        ("9007199254740993 - 9007199254740992", 1),
        ("2**3000 % 7", 1),
        ("2**100 == 2**100 + 1", 0),
        ("10**16 < 10**16 + 1", 1),
        ("1e20 % 3", 1),
        ("2**100", 2.0**100),
        ("7**30 // 3", float(7**30 // 3)),
    ],
)
def test_constants_beyond_floats_are_whole_numbers(run, program, value):
    """Most of them were 0."""
    done = run("eval", program, "--json")
    assert (done.json["value"], done.err) == (value, "")


_CONGRUENTIAL = "s = {}\nfor k in range(5000): s = (1103515245*s + 12345) % 2**31\ns"


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("n = 10**17; n + 1 - n", 1),
        ("n = 3**60; n % 10", 1),
        ("n = 9007199254740993; n - 9007199254740992", 1),
        ("n = 10**17; -n + (n - 1)", -1),
        ("a = 10**17; a + 1 == a", 0),
        ("a = 10**17; a < a + 1", 1),
        ("sum([10**17, 1, -10**17])", 1),
        ("sum([2**53, 1, -2**53])", 1),
        ("sum(k**10 for k in range(100)) % 1000", sum(k**10 for k in range(100)) % 1000),
        ("prod([10**9, 10**9 + 1]) % 7", (10**9 * (10**9 + 1)) % 7),
        ("comb(100, 50) % 3", math.comb(100, 50) % 3),
        ("factorial(25) % 1000003", math.factorial(25) % 1000003),
        ("n = 25; n! % 1000003", math.factorial(25) % 1000003),
        ("fmod(-3**60, 10)", -1),
        ("n = 10**17; int(n) + 1 - n", 1),
        ("s = 1\nfor k in range(60): s *= 3\ns % 10", 1),
        ("a = 0; b = 1\nfor k in range(100): a, b = b, a + b\na % 1000", 75),
        ("f(n) = 1 if n < 2 else n*f(n - 1)\nf(25) % 1000003", math.factorial(25) % 1000003),
        # It is long enough to be one operation, in floats.
        (_CONGRUENTIAL.format(1), 1425481401),
        ("s = 0\nfor k in range(10**17, 10**17 + 3): s += k\ns - 3*10**17", 3),
        ("n = 10**17; n*0.5", 5e16),
        ("n = 10**17; sqrt(n) + [n, 1][1]", math.sqrt(1e17) + 1),
        ("n = 2**1023; 2*n", math.inf),
    ],
)
def test_whole_numbers_beyond_floats_are_exact(run, program, value):
    done = run("eval", program, "--no-grad", "--json")
    assert done.json["value"] == (value if math.isfinite(value) else "Infinity")
    assert done.err == "" or not math.isfinite(value)


@pytest.mark.parametrize(
    "program",
    [
        "x % 10", "x // 3e19", "mod(x, 7)", "y = x; y %= 10; y", "sum([x, 5] % 10)", "n = 1e17; n + 1 - n", "x + 1 > x",
        "x + 1 == x", _CONGRUENTIAL.format("x"),
    ],
)  # fmt: skip
def test_results_that_depend_on_digits_beyond_floats_are_reported(run, program):
    given = [] if "x" not in program else ["x=12345"] if "for" in program else ["x=12345678901234567891"]
    done = run("eval", program, *given, "--no-grad", "--json")
    warning = done.json["warnings"][-1]
    assert warning["code"] == "inaccurate"
    assert "depends on digits that floats beyond 2**53 do not have" in warning["message"]


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (("x=9007199254740993",), "9007199254740993 in 'x' is 9007199254740992 as a float"),
        (
            ("x=[1, 12_345_678_901_234_567_890]",),
            "12_345_678_901_234_567_890 in 'x' is 12345678901234567168 as a float",
        ),
        (("x=9007199254740994",), ""),
        (("x=0.12345678901234567",), ""),
        (("x=9007199254740993", "--digits", "20"), ""),
    ],
)
def test_whole_numbers_of_inputs_that_are_rounded_are_noted(run, words, note):
    err = run("eval", "x", *words, "--no-grad").err if "--digits" not in words else run("eval", "x", *words).err
    assert err == (f"note: {note}: whole numbers beyond 2**53 are rounded\n" if note else "")


@pytest.mark.parametrize(
    ("program", "words", "told"),
    [
        ("sum(x)", ["x=[1e16, 1, -1e16]"], "cannot be distinguished from 0"),
        ("sum(x)", ["x=[1e16, 3, -1e16]"], "no right digit"),
        ("x + y + z", ["x=1e16", "y=3", "z=-1e16"], "no right digit"),
        ("dot(x, y)", ["x=[1e8, 1, -1e8]", "y=[1e8, 1, 1e8]"], "cannot be distinguished from 0"),
        ("sum(x)", ["x=[1, 2, -3]"], ""),
        ("var(x)", ["x=[1, 2, 3]"], ""),
        ("sum(x)", ["x=[0.1, 0.2, -0.3]"], ""),
    ],
)
def test_sums_of_exact_inputs_that_cancel_are_reported(run, program, words, told):
    """They were 0, 4, 4 and 0 without a word, as if the inputs were known to 15 digits alone."""
    warnings = run("eval", program, *words, "--json").json.get("warnings", [])
    assert [w["code"] for w in warnings] == (["inaccurate"] if told else [])
    assert all(told in w["message"] for w in warnings)


@pytest.mark.parametrize("program", ["1e20*x", "x // 3", "(x + 1) % 7 if x < 10 else x", "2**100*x", "1e18 % 10 + x"])
def test_ordinary_large_numbers_are_not_reported(run, program):
    assert run("eval", program, "x=1e20").err == ""

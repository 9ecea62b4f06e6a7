"""Programs and commands on every backend: options, the kind of the results, what is given and comes back."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import arrays, tensor
from gradcli.arrays import backends
from gradcli.compiled import programs
from gradcli.errors import BackendError, EvaluationError, LimitError, ShapeError, UsageError
from gradcli.executors import executor_choice
from gradcli.rows import row_paths

PROGRAM = "sum(log(x**q)*sin(x) + exp(-x*x))"
X = "x=linspace(0.5, 2, 4)"
EXECUTORS = ("eager", "compiled")
# CuPy compiles its kernels one by one, and no program as a whole.
where_programs_are_compiled_whole = pytest.mark.parametrize("backend", ["torch", "jax"], indirect=True)


def worth(monkeypatch: pytest.MonkeyPatch, backend: str, *sizes: int) -> None:
    """Let programs be compiled from these sizes on."""
    other = backends.check_name(backend)._replace(worth=backends.CompileThresholds(*sizes), worth_on_gpu=None)
    monkeypatch.setitem(backends._BY_NAME, backend, other)


def alike(found: Any, expected: Any) -> None:
    """The same records, with numbers that agree."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            if key not in ("backend", "device"):
                alike(found[key], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for f, e in zip(found, expected):
            alike(f, e)
    elif isinstance(expected, float) and math.isfinite(expected):
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-7)
    else:
        assert found == expected


class TestEval:
    @pytest.mark.cases(12, jax=6)
    @pytest.mark.parametrize(
        "words",
        [
            (PROGRAM, X, "q=3"),
            (PROGRAM, X, "q=3", "--order", "2"),
            ("log(x**q)", "x=5", "q=3", "--order", "4", "--wrt", "x"),
            ("x**2*[1, 2, 3]", "x=[1,2,3]", "--jacobian"),
            ("x**2", "x=[1,2,3]", "--grad-output", "[1, 0, 2]"),
            ("y = x**2; w = sin(y); sum(w*x)", "x=[1,2,3]", "--retain", "y,w", "--nodes"),
            ("sum(x[::-1]*x[[0, 0, 2]]) + max(x) + median(x)", "x=[1,2,3]"),
            ("sum(randn(3, seed=1)@x) + sum(zeros(2)) + eye(2)[0, 1]", "x=[1,2,3]"),
            ("sum(sort(x)*[1, 2, 3])", "x=[3,1,2]"),
            ("sum(sort(x)*x**2)", "x=[3,1,2]", "--order", "3"),
            ("prod(x)*q**3", "x=[1,2]", "q=2", "--order", "4"),
            ("W@x", "W=[[1,2],[3,4]]", "x=[5,6]", "--jacobian"),
            ("if sum(x) > 2 { y = x*2 } else { y = x }; sum(y)", "x=[1,2,3]"),
            ("f(a) = a**3 backward(g) = 3*g*a**2; sum(f(x))", "x=[1,2]"),
            ("diff(sum(x**3), x)[0] if 0 else sum(hessian(sum(x**3), x))", "x=[1,2]"),
            ("sum(inv(A)) + det(A) + logdet(A) + sum(A@A)", "A=[[2,0.5],[1,3]]"),
            (
                "sum(matrix_exp(A)) + sum(solve(A, B))",
                "A=[[[0.2,0.5],[0.1,0.3]],[[0.1,0],[0.2,0.1]]]",
                "B=[[1,2],[3,4]]",
            ),
            ("sum(where(2 > 1, x//0.3, 0) + heaviside(x - 2, x))", "x=[1,2,3]"),
            ("2 + 3",),
            ("x", "x=[1,2]", "--no-grad"),
            ("3 > 2",),
        ],
    )
    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    def test_the_same_as_with_numpy(self, run, backend, words, dtype):
        expected = run("eval", *words, "--json", "--dtype", dtype)
        found = run("eval", *words, "--json", "--dtype", dtype, "--backend", backend)
        assert (found.status, found.err) == (expected.status, expected.err)
        assert (found.json["backend"], found.json["dtype"]) == (backend, dtype)
        alike(found.json, expected.json)

    def test_a_matrix_that_is_not_symmetric_is_told(self, run, backend):
        words = ("--backend", backend, "--executor", "eager")
        assert "is not symmetric" in run("eval", "eigvalsh(A)[0]", "A=[[4, 1], [2, 3]]", *words).err
        assert run("eval", "eigvalsh(A)[0]", "A=[[4, 1], [1, 3]]", *words).err == ""

    @pytest.mark.cases(8, jax=3)
    @pytest.mark.parametrize(
        "words",
        [
            ("log(x)", "x=-1"),
            ("sum(log(x))", "x=[1,-1,2]"),
            ("sum(sqrt(x))", "x=[0,1]"),
            ("sum(abs(x))", "x=[0,1]"),
            ("max(x)", "x=[1,1]"),
            ("sum(sort(x))", "x=[1,1]"),
            ("median(x)", "x=[1,1,2]"),
            ("det(A)", "A=[[1,2],[2,4]]"),
        ],
    )
    def test_the_same_warnings(self, run, backend, words):
        expected = run("eval", *words, "--json")
        alike(run("eval", *words, "--json", "--backend", backend).json, expected.json)

    @pytest.mark.parametrize(
        "words",
        [
            ("sum(x + [1, 2])", "x=[1,2,3]"),
            ("x[5]", "x=[1,2,3]"),
            ("x[[0, -4]]", "x=[1,2,3]"),
            ("x[0, 1]", "x=[1,2,3]"),
            ("inv(A)", "A=[[1,2],[2,4]]"),
            ("solve(A, A)", "A=[[0,0],[0,0]]"),
            ("cholesky(A)", "A=[[-1,0],[0,1]]"),
            ("x", "x=[1,2]"),
            ("zeros(100000)", "--max-elements", "10"),
        ],
    )
    def test_the_same_refusals(self, run, backend, words):
        expected = run("eval", *words, "--json").error
        outcome = run("eval", *words, "--json", "--backend", backend)
        assert (outcome.error["kind"], outcome.error["column"]) == (expected["kind"], expected["column"])
        assert outcome.status == 1

    def test_the_table(self, run, backend):
        assert run("eval", "x**2", "x=3", "--backend", backend).out == run("eval", "x**2", "x=3").out

    def test_the_graph(self, run, backend):
        words = ("graph", "sum(log(x**2)*W@x)", "x=[1,2]", "W=[[1,2],[3,4]]", "--values")
        assert run(*words, "--backend", backend).out == run(*words).out
        found, expected = run(*words, "--json", "--backend", backend).json, run(*words, "--json").json
        names = {"backend": backend, "device": found["device"]}
        assert found == expected | names

    @pytest.mark.cases(6, torch=3)
    @pytest.mark.parametrize(
        "words",
        [
            (PROGRAM, X, "q=3"),
            (PROGRAM, X, "q=3", "--dtype", "float32"),
            (PROGRAM, X, "q=3", "--no-grad"),
            ("x**2*y", "x=[1,2]", "y=3", "--grad-output", "[1, 0.5]"),
            ("sum(inv(A)@x) + logdet(A) + sum(cholesky(A)@x)", "A=[[2,1],[1,3]]", "x=[1,2]"),
            ("sum(sort(x)*x[[0, 0, 2]]) + max(x) + sum(cumsum(x)[::-1])", "x=[3,1,2]"),
            ("sum(randn(3, seed=1)*x) + sum(eye(3)@x) + 2*detach(y)", "x=[1,2,3]", "y=1"),
            ("h = tanh(X@w); mean((h - [1, 0])**2)", "X=[[1,2],[3,4]]", "w=[0.1,0.2]"),
            ("sum(log(x**2))", "x=[-1,2]"),
            ("2 + sum(zeros(2))",),
            ("s = x; for i in range(14) { s = sin(s)*q + x/(1 + s*s) }; s", "x=0.7", "q=0.9"),
        ],
    )
    def test_compiled_is_the_same_as_eager(self, run, backend, words):
        expected = run("eval", *words, "--json")
        found = run("eval", *words, "--json", "--backend", backend, "--executor", "compiled")
        assert (found.status, found.err) == (expected.status, expected.err)
        assert found.json["backend"] == backend
        alike(found.json, expected.json)

    @pytest.mark.cases(3, torch=1)
    @pytest.mark.parametrize(
        "words",
        [("sum(log(x))", "x=[1,-1]"), ("sum(abs(x))", "x=[0,1]"), ("sum(inv(A))", "A=[[1,2],[2,4]]")],
    )
    def test_what_there_is_to_say_is_said_when_compiled_too(self, run, backend, words):
        eager, compiled = (run("eval", *words, "--json", "--backend", backend, "--executor", e) for e in EXECUTORS)
        assert compiled == eager

    def test_what_cannot_be_compiled(self, run, backend):
        words = ("while sum(x) < 10 { x = 2*x }; sum(x)", "x=[1,2]", "--backend", backend, "--executor", "compiled")
        outcome = run("eval", *words)
        assert outcome.status == 1
        assert "--executor eager" in outcome.err

    @where_programs_are_compiled_whole
    def test_a_compiler_that_fails(self, run, backend, monkeypatch):
        def fail(*_):
            raise OSError("no compiler\nat all")

        monkeypatch.setattr(type(backends.namespace(backend)), "compiled", fail)
        words = ("eval", "sum(x**2)", "x=[1,2]", "--backend", backend)
        outcome = run(*words, "--executor", "compiled")
        assert outcome.status == 1
        assert f"error: the backend {backend} cannot compile this program: no compiler\n" in outcome.err
        assert "--executor eager" in outcome.err
        worth(monkeypatch, backend, 0, 0, 0)
        assert run(*words).status == 0

    def test_timing(self, run, backend):
        words = ("eval", PROGRAM, X, "q=3", "--backend", backend, "--json")
        assert "timing" not in run(*words).json
        seconds = run(*words, "--timing").json["timing"]
        always = {"parse", "read", "transfer", "run"}
        assert {name for name, s in seconds.items() if s > 0} - {"import"} == always
        seconds = run(*words, "--timing", "--executor", "compiled").json["timing"]
        assert {name for name, s in seconds.items() if s > 0} - {"import"} == always | {"record", "compile"}
        assert seconds["compile"] > seconds["record"]

    def test_saved_arrays(self, run, backend, tmp_path):
        path = tmp_path / "out.npz"
        assert run("eval", "sum(x**2)", "x=[1,2]", "--backend", backend, "--save", str(path)).status == 0
        with np.load(path) as saved:
            assert saved["grad/x"].tolist() == [2.0, 4.0]
            assert saved["grad/x"].dtype == np.float64

    def test_the_device_is_named_as_the_library_calls_it(self, run):
        names = {"numpy": "cpu", "torch": "cpu", "jax": "cpu:0", "cupy": "cuda:0"}
        for name, device in names.items():
            kind = device.partition(":")[0]
            for command in ("eval", "check", "graph"):
                outcome = run(command, "x", "x=1", "--json", "--backend", name, "--device", kind)
                if outcome.status == 0:
                    assert outcome.json["device"] == device

    def test_check(self, run, backend):
        words = ("check", "sum(sin(x)*y) + log(det(A))", "x=[1,2]", "y=2", "A=[[2,0.5],[1,3]]", "--order", "2")
        outcome = run(*words, "--backend", backend, "--json")
        assert outcome.status == 0, outcome.err
        assert outcome.json["agrees"]
        assert outcome.json["backend"] == backend

    def test_check_finds_a_wrong_derivative(self, run, backend):
        outcome = run("check", "f(t) = t**3 backward(g) = 2*g*t**2; sum(f(x))", "x=[1,2]", "--backend", backend)
        assert outcome.status == 1
        assert "'x'" in outcome.err


def is_computed(x: Any) -> bool:
    """Whether a library that computes later on has computed `x`."""
    if hasattr(x, "is_ready"):
        return bool(x.is_ready())
    library = arrays.backend_of(type(x))
    if library == "cupy":
        import cupy

        return bool(cupy.cuda.get_current_stream().done)
    if library == "torch" and x.is_cuda:
        import torch

        return bool(torch.cuda.current_stream().query())
    return True


def test_synchronise_waits_for_the_device(xp):
    x = xp.asarray(np.ones((1000, 1000)))
    for _ in range(5):
        x = xp.matmul(x, x) / 1000.0
    xp.synchronise()
    assert is_computed(x)
    assert arrays.on_host(x)[0, 0] == 1.0


class TestPython:
    def test_a_tensor_on_a_backend(self, backend):
        x = tensor([1.0, 2.0], requires_grad=True, backend=backend)
        y = (x**2 * [3.0, 4.0] + np.array([1.0, 1.0])).sum()
        y.backward()
        assert arrays.backend_of(type(x.grad.inner)) == backend
        assert x.grad.tolist() == [6.0, 16.0]
        assert y.item() == 21.0
        assert x.dtype == y.dtype == "float64"
        assert isinstance(y.detach().numpy(), np.ndarray)
        assert "21" in repr(y)

    def test_single_precision(self, backend):
        x = tensor([1.0, 2.0], requires_grad=True, backend=backend, dtype="float32")
        y = gradcli.sum(gradcli.exp(x) * 2.0 + 1.0)
        y.backward()
        assert x.dtype == y.dtype == x.grad.dtype == "float32"
        for result in (x // 0.3, x % 0.3, gradcli.heaviside(x, 0.5), gradcli.lgamma(x), gradcli.i0(x)):
            assert result.dtype == "float32"

    def test_whole_numbers(self, backend):
        x = tensor([1, 2], backend=backend)
        assert (x + x).dtype == "int64"
        for y in (x / 2, x * 0.5, gradcli.sqrt(x), x**0.5, gradcli.mean(x)):
            assert y.dtype == "float64"
        assert (x / 2).tolist() == [0.5, 1.0]

    def test_in_place(self, backend):
        x = tensor([1.0, 2.0], requires_grad=True, backend=backend)
        (x * x).sum().backward()
        with gradcli.no_grad():
            x -= 0.5 * x.grad
        assert x.tolist() == [0.0, 0.0]
        x.grad.zero_()
        assert x.grad.tolist() == [0.0, 0.0]

    def test_programs_take_arrays_and_give_them_back(self, xp):
        program = gradcli.compile("y = x*[1, 2] + w; sum(y**2) + k*sum(zeros(2))")
        values = {"x": xp.asarray([1.0, 2.0]), "w": np.array([1.0, 1.0]), "k": 3.0}
        value, found = program.value_and_grad(values)
        assert all(xp.owns(v) for v in (value, found["x"], found["w"]))
        assert float(value) == 29.0
        assert arrays.tolist(found["x"]) == [4.0, 20.0]
        assert xp.owns(program(**values))
        assert arrays.tolist(program.jacobian(values, ["x"])["x"]) == [4.0, 20.0]
        assert arrays.tolist(program.hessian(values, ["x"])["x,x"]) == [[2.0, 0.0], [0.0, 8.0]]

    def test_programs_that_are_called_again_are_compiled(self, backend, monkeypatch):
        worth(monkeypatch, backend, 0, 2**20, 0)
        program, xp = gradcli.compile("sum(log(x**q)*sin(x))"), backends.namespace(backend)
        values = {"x": xp.asarray([1.0, 2.0]), "q": 3.0}
        first = program.value_and_grad(values)
        monkeypatch.setattr(programs, "evaluate", None)
        again = program.value_and_grad(values)
        assert all(xp.owns(v) for v in (again[0], *again[1].values()))
        for one, other in zip((first[0], *first[1].values()), (again[0], *again[1].values())):
            np.testing.assert_allclose(arrays.on_host(other), arrays.on_host(one), rtol=1e-14)
        other = program.value_and_grad({"x": xp.asarray([3.0, 4.0]), "q": 2.0})
        assert float(other[0]) == pytest.approx(sum(math.log(x**2) * math.sin(x) for x in (3.0, 4.0)))

    def test_a_compiled_program_for_numbers_of_another_kind(self, backend, monkeypatch):
        worth(monkeypatch, backend, 0, 0, 0)
        program, xp = gradcli.compile("sum(log(x**2))"), backends.namespace(backend)
        for numbers in ([1.0, 2.0], [-1.0, 2.0], [-3.0, -4.0], [5.0, 6.0]):
            for _ in range(2):
                value, found = program.value_and_grad({"x": xp.asarray(numbers)})
                assert float(value) == pytest.approx(sum(2 * math.log(abs(x)) for x in numbers))
                np.testing.assert_allclose(arrays.on_host(found["x"]), 2 / np.array(numbers))

    @where_programs_are_compiled_whole
    def test_a_compiler_that_fails_is_asked_once(self, backend, monkeypatch):
        asked = []
        worth(monkeypatch, backend, 0, 0, 0)
        monkeypatch.setattr(type(backends.namespace(backend)), "compiled", lambda *_: asked.append(1) or 1 / 0)
        program, x = gradcli.compile("sum(x**2)"), backends.namespace(backend).asarray([1.0, 2.0])
        assert [float(program.value_and_grad({"x": x})[0]) for _ in range(3)] == [5.0, 5.0, 5.0]
        assert asked == [1]

    def test_a_compiled_program_for_arrays_with_other_strides(self, backend, monkeypatch):
        worth(monkeypatch, backend, 0, 0, 0)
        program, xp = gradcli.compile("sum(x**2*w) + sum(x[0])"), backends.namespace(backend)
        whole, w = xp.asarray(np.arange(36.0).reshape(6, 6)), np.array([[1.0, 2.0, 3.0]])
        for x in (whole[:3, :3], whole[:3, 1:4], whole[::2, ::2], xp.asarray(np.arange(9.0).reshape(3, 3)).T):
            value, found = program.value_and_grad({"x": x, "w": w})
            host = np.asarray(arrays.on_host(x))
            assert float(value) == (host**2 * w).sum() + host[0].sum()
            np.testing.assert_array_equal(arrays.on_host(found["x"]), 2 * host * w + np.eye(1, 3).T)

    def test_compiled_jacobians(self, backend, monkeypatch):
        worth(monkeypatch, backend, 0, 0, 0)
        program, xp = gradcli.compile("x**2*y"), backends.namespace(backend)
        values = {"x": xp.asarray([1.0, 2.0]), "y": xp.asarray(3.0)}
        for _ in range(3):
            found = program.jacobian(values)
            assert all(map(xp.owns, found.values()))
            assert arrays.tolist(found["x"]) == [[6.0, 0.0], [0.0, 12.0]]
            assert arrays.tolist(found["y"]) == [1.0, 4.0]

    def test_an_independent_input(self, xp):
        value, found = gradcli.compile("detach(x)*2 + 0*y").value_and_grad({"x": xp.asarray(1.0), "y": xp.asarray(2.0)})
        assert (float(value), found["x"], float(found["y"])) == (2.0, None, 0.0)

    def test_jacobian_hessian_and_gradcheck(self, backend):
        x = tensor([1.0, 2.0], backend=backend)
        for found in (gradcli.jacobian(lambda x: x**2, x), gradcli.hessian(lambda x: (x**3).sum() / 3, x)):
            assert found.tolist() == [[2.0, 0.0], [0.0, 4.0]]
            assert arrays.backend_of(type(found.inner)) == backend
        assert gradcli.jacobian(lambda x: tensor([1.0]), x).tolist() == [[0.0, 0.0]]
        assert gradcli.gradcheck(lambda x: (x**3).sum(), x.inner, order=2)

    def test_what_was_given_is_not_changed_by_later_writing(self):
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        given = torch.tensor([1.0, 2.0], dtype=torch.float64)
        x, weight = tensor(given, requires_grad=True), torch.tensor([3.0, 4.0], dtype=torch.float64)
        y = (x * weight).sum()
        given += 100
        weight += 100
        y.backward()
        assert (x.tolist(), x.grad.tolist()) == ([1.0, 2.0], [3.0, 4.0])

    def test_results_do_not_share_memory_with_what_was_given(self, xp):
        given = xp.asarray(np.array([1.0, 2.0]))
        result = gradcli.compile("x")(x=given)
        if xp.name == "torch":
            result += 1
        assert arrays.tolist(given) == [1.0, 2.0]

    def test_the_autograd_of_pytorch_is_off(self):
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
        value, found = gradcli.compile("sum(x**2*[1, 2])").value_and_grad({"x": x})
        assert not value.requires_grad
        assert not found["x"].requires_grad
        assert not gradcli.compile("x")(x=x).requires_grad
        assert not (tensor([1.0, 1.0], backend="torch", device="cpu") * x).inner.requires_grad

    def test_two_libraries_do_not_mix(self, backend):
        x = tensor([1.0], requires_grad=True, backend=backend)
        with pytest.raises(EvaluationError, match="a tensor of numpy that is differentiated by"):
            x * tensor([2.0], requires_grad=True)
        assert (x * tensor([2.0])).tolist() == [2.0]

    def test_torch_and_jax_do_not_mix(self):
        pytest.importorskip("torch", reason="PyTorch is not installed")
        pytest.importorskip("jax", reason="JAX is not installed")
        with pytest.raises(EvaluationError, match="arrays of torch and of jax meet"):
            tensor([1.0], backend="torch") + tensor([1.0], backend="jax")

    def test_an_index_beyond_the_end(self, backend):
        x = tensor([1.0, 2.0], backend=backend)
        for key in (2, -3, [0, 2], (0, 0)):
            with pytest.raises(ShapeError):
                x[key]

    def test_indices(self, xp):
        x = np.arange(24.0).reshape(2, 3, 4)
        given = gradcli.Tensor(xp.asarray(x)).requires_grad_()
        keys = [
            np.s_[::-1], np.s_[:, ::-2, 1:], np.s_[..., -1], np.s_[None, 0, ::-1], np.s_[1, [0, 2], ::-1],
            np.s_[[0, 1, 1], :, [0, 0, 3]], np.s_[x > 5], np.s_[:, [[0, 1], [2, 2]], None], np.s_[0:0], np.s_[-1:-5:-1],
        ]  # fmt: skip
        for key in keys:
            result = given[key]
            np.testing.assert_array_equal(arrays.on_host(result.inner), x[key])
            (found,) = gradcli.grad((result * result).sum(), given)
            expected = np.zeros_like(x)
            np.add.at(expected, key, 2 * x[key])
            np.testing.assert_array_equal(arrays.on_host(found.inner), expected)


class TestErrors:
    def test_devices_that_are_not_there(self):
        pytest.importorskip("torch", reason="PyTorch is not installed")
        with pytest.raises(BackendError, match="there is no device 'cuda:99'"):
            tensor([1.0], backend="torch", device="cuda:99")
        for device in ("gpu", "mps", "cpu:x"):
            with pytest.raises(UsageError, match=f"the backend torch has no device '{device}'"):
                tensor([1.0], backend="torch", device=device)

    def test_devices_that_are_not_there_in_jax(self):
        pytest.importorskip("jax", reason="JAX is not installed")
        with pytest.raises(BackendError, match="there is no device 'cpu:99'"):
            tensor([1.0], backend="jax", device="cpu:99")
        with pytest.raises(UsageError, match="the backend jax has no device 'tpu'"):
            tensor([1.0], backend="jax", device="tpu")

    def test_out_of_memory(self, backend):
        x = tensor([1.0], backend=backend)
        with pytest.raises(LimitError, match=r"out of memory: [\d,.]+ (bytes|[GT]iB) asked for, [\d,]+ bytes free"):
            (gradcli.broadcast_to(x, 10**7, 10**7) + 1.0).sum().item()

    def test_what_is_installed(self, run, backend):
        record = json.loads(run("backends", "--json").out)
        (found,) = (b for b in record["backends"] if b["name"] == backend)
        assert found["installed"]
        assert found["problem"] is None
        assert found["devices"][0]["memory"] > found["devices"][0]["free"] > 0


@pytest.mark.cases(8, jax=3)
@pytest.mark.parametrize(
    "text",
    [
        "sin(q*log(x))*exp(-x)",
        "x*q if q > 0 else x",
        "y = x\nwhile y > 0.3: y = y/2\ny*q",
        "solve(M, v)*x",
        "v@A@v",
        "x > 1",
        "[x, 1, q]",
        "x",
    ],
)
def test_rows_of_a_backend_are_those_of_numpy(text, backend, monkeypatch):
    # The second time they are compiled, for which PyTorch takes seconds.
    worth(monkeypatch, backend, 2**60, 2**60, 0 if backend != "torch" or text == "sin(q*log(x))*exp(-x)" else 2**60)
    draw, n = np.random.default_rng(0), 9
    given = {
        "x": draw.random(n) + 0.1,
        "q": draw.normal(size=n),
        "v": draw.normal(size=(n, 3)),
        "M": draw.normal(size=(n, 3, 3)),
        "A": draw.normal(size=(3, 3)),
    }
    program = gradcli.compile(text)
    values = {name: given[name] for name in program.inputs}
    rows = [name for name in program.inputs if name != "A"]
    expected, gradients = program.value_and_grad(values, rows=rows)
    xp = backends.namespace(backend)
    own = {name: xp.asarray(value) for name, value in values.items()}
    for _ in range(3):
        found, derivatives = program.value_and_grad(own, rows=rows)
        assert type(found) is type(own["x" if "x" in own else "v"])
        np.testing.assert_allclose(arrays.on_host(found), expected, rtol=1e-9)
        for name, gradient in gradients.items():
            if gradient is None:
                assert derivatives[name] is None
            else:
                assert type(derivatives[name]) is type(found)
                np.testing.assert_allclose(arrays.on_host(derivatives[name]), gradient, rtol=1e-9, atol=1e-12)


def test_rows_of_a_backend_are_compiled_when_they_are_run_again(backend, monkeypatch):
    worth(monkeypatch, backend, 2**60, 2**60, 0)
    compiled = []
    monkeypatch.setattr(
        row_paths, "executable", lambda *given: compiled.append(1) or executor_choice.executable(*given)
    )
    program, x = gradcli.compile("sin(x)*x"), backends.namespace(backend).asarray(np.arange(5.0))
    for count in (0, 1, 1):
        program.value_and_grad({"x": x}, rows=True)
        assert len(compiled) == count


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_a_loop_that_would_be_compiled_for_minutes(run, backend):
    words = ("eval", "f(n, s) = s if n < 1 else f(n - 1, s*x); f(300, 1)", "x=1.0001", "--backend", backend)
    outcome = run(*words, "--executor", "compiled")
    assert outcome.status == 1
    assert "compiles loops round by round, up to 5,000 operations" in outcome.err
    assert "--executor eager" in outcome.err
    assert run(*words, "--executor", "eager").status == 0


@where_programs_are_compiled_whole
def test_a_compiler_that_fails_for_rows_is_not_asked_again(backend, monkeypatch):
    asked = []

    def fail(*_):
        asked.append(1)
        raise OSError("no compiler")

    worth(monkeypatch, backend, 2**60, 2**60, 0)
    monkeypatch.setattr(type(backends.namespace(backend)), "compiled", fail)
    program, x = gradcli.compile("sin(x)*x"), backends.namespace(backend).asarray(np.arange(5.0))
    for _ in range(4):
        value, _ = program.value_and_grad({"x": x}, rows=True)
        np.testing.assert_allclose(arrays.on_host(value), np.sin(np.arange(5.0)) * np.arange(5.0))
    assert len(asked) == 1


def test_a_row_of_a_backend_that_fails_says_which_it_is(backend, monkeypatch):
    worth(monkeypatch, backend, 2**60, 2**60, 2**60 if backend == "torch" else 0)
    matrices = backends.namespace(backend).asarray(np.array([np.eye(2), np.ones((2, 2))]))
    program = gradcli.compile("inv(M)*x")
    for _ in range(3):
        with pytest.raises(EvaluationError, match=r"^row 1: 'inv' failed"):
            program.value_and_grad({"M": matrices, "x": 1.0}, rows=True)


class TestLibrariesOfResults:
    """What a program computes in the namespace of a backend must not decide how NumPy's arrays are computed with."""

    PROGRAM = "d = sum(c)\natan2(x, w)"

    def test_after_an_operation_in_the_namespace(self, backend):
        x, w = tensor(2.0, requires_grad=True), tensor([1.0] * 9)
        gradcli.compile(self.PROGRAM)(x=x, w=w, c=tensor([1.0, 1.0], backend=backend))
        gradcli.atan2(x, w).cosh()
        there = tensor([1.0] * 9, backend=backend, requires_grad=True)
        assert type(there.cosh().inner) is type(there.inner)

    def test_after_an_operation_outside_of_it(self, backend):
        x, w, c = tensor(2.0, requires_grad=True), tensor([1.0] * 10), tensor([1.0, 1.0], backend=backend)
        gradcli.atan2(x, w).cosh()
        found = gradcli.compile(self.PROGRAM)(x=x, w=w, c=c)
        assert type(found.cosh().inner) is type(c.inner)

    def test_a_leaf_of_numpy_beside_arrays_of_a_backend(self, backend):
        x, c = tensor([1.0, 2.0, 3.0], requires_grad=True), tensor([1.0, 1.0], backend=backend)
        gradcli.exp(x)
        with pytest.raises(EvaluationError, match=f"differentiated by meets one of {backend}"):
            gradcli.compile("exp(x)*sum(c)")(x=x, c=c)

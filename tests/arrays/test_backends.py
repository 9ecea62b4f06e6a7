"""Tests choosing a backend whose library is missing, broken or without the device; the libraries are simulated."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import types

import numpy as np
import pytest

import gradcli
from gradcli import arrays, install_command
from gradcli.arrays import backends, index_keys, numpy_arrays
from gradcli.arrays.definitions import common_definitions
from gradcli.arrays.protocol import Namespace
from gradcli.errors import BackendError, EvaluationError, UsageError
from tests.namespaces import lacking, lacking_functions

LIBRARIES = ("torch", "cupy", "jax")


@pytest.fixture(autouse=True)
def _forget():
    """Clear what was cached about a simulated library."""
    backends.backend_module.cache_clear()
    yield
    backends.backend_module.cache_clear()


@pytest.fixture
def none_installed(monkeypatch):
    for name in LIBRARIES:
        monkeypatch.setitem(sys.modules, name, None)


@pytest.fixture
def broken(monkeypatch):
    """A torch that is installed but cannot be imported."""
    library = types.ModuleType("torch")
    library.__version__ = "9.9"
    monkeypatch.setitem(sys.modules, "torch", library)
    monkeypatch.setitem(sys.modules, "gradcli.arrays.torch_arrays", None)
    monkeypatch.delitem(sys.modules, "array_api_compat.torch", raising=False)


class TestNotInstalled:
    @pytest.mark.usefixtures("none_installed")
    @pytest.mark.parametrize("name", LIBRARIES)
    @pytest.mark.parametrize("command", ["eval", "check"])
    def test_the_error_says_how_to_install_it(self, run, name, command):
        outcome = run(command, "x**2", "x=1", "--backend", name, "--json")
        assert (outcome.status, outcome.out) == (1, "")
        assert outcome.error["kind"] == "backend"
        assert outcome.error["message"] == f"the backend {name} is not installed"
        assert outcome.error["hint"] == install_command.install_command(name)

    @pytest.mark.usefixtures("none_installed")
    def test_in_python(self):
        with pytest.raises(BackendError, match="the backend torch is not installed"):
            gradcli.tensor([1.0], backend="torch")

    @pytest.mark.usefixtures("none_installed")
    def test_the_list(self, run):
        outcome = run("backends")
        assert outcome.status == 0
        for name in LIBRARIES:
            assert install_command.install_command(name) in outcome.out
        found = {b["name"]: b for b in run("backends", "--json").json["backends"]}
        assert [*found] == ["numpy", *LIBRARIES]
        assert not any(found[name]["installed"] for name in LIBRARIES)
        numpy = found["numpy"]
        assert numpy["version"] == np.__version__
        assert [d["name"] for d in numpy["devices"]] == ["cpu"]
        assert numpy["devices"][0]["memory"] >= numpy["devices"][0]["free"] > 0

    @pytest.mark.usefixtures("broken")
    def test_a_broken_library(self, run):
        outcome = run("eval", "x", "x=1", "--backend", "torch")
        assert outcome.status == 1
        assert "the backend torch is installed, but cannot be imported" in outcome.err
        found = {b["name"]: b for b in run("backends", "--json").json["backends"]}
        assert "cannot be imported" in found["torch"]["problem"]
        assert run("backends").status == 0

    def test_another_module_of_its_name(self, run, monkeypatch):
        monkeypatch.setitem(sys.modules, "torch", gradcli)
        monkeypatch.delitem(sys.modules, "gradcli.arrays.torch_arrays", raising=False)
        expected = "the backend torch cannot be imported: the module 'torch' of this process is gradcli"
        assert expected in run("eval", "x", "x=1", "--backend", "torch").err
        found = {b["name"]: b for b in run("backends", "--json").json["backends"]}
        assert found["torch"]["version"] is None
        assert found["torch"]["problem"] == expected

    def test_a_library_that_fails_when_it_is_asked_for_devices(self, run, monkeypatch):
        def devices():
            raise RuntimeError("driver too old\nsee the manual")

        fake = types.SimpleNamespace(version=lambda: "1.0", devices=devices)
        monkeypatch.setattr(backends, "backend_module", lambda name: numpy_arrays if name == "numpy" else fake)
        monkeypatch.setattr(backends, "is_installed", lambda name: True)
        found = {b["name"]: b for b in run("backends", "--json").json["backends"]}
        assert [found[name]["problem"] for name in LIBRARIES] == ["driver too old"] * 3

    def test_names_that_no_backend_has(self, run):
        outcome = run("eval", "x", "x=1", "--backend", "tensorflow")
        assert outcome.status == 2
        assert "there is no backend 'tensorflow'" in outcome.err
        assert "numpy, torch, cupy, jax" in outcome.err
        for device in ("cuda", "cpu:1", "gpu"):
            outcome = run("eval", "x", "x=1", "--device", device)
            assert outcome.status == 2
            assert f"the backend numpy has no device '{device}'" in outcome.err
        with pytest.raises(UsageError):
            gradcli.tensor(1.0, device="cuda")


class TestNothingIsImported:
    @pytest.mark.parametrize(
        "code",
        [
            "import gradcli; gradcli.compile('log(x**q)').value_and_grad({'x': 5.0, 'q': 3.0})",
            "from gradcli.cli.main import main; from gradcli.cli.process.environment import Environment; "
            "main(['eval', 'log(x**q)', 'x=5', 'q=3', '--backend', 'numpy', '--device', 'cpu'], Environment.of_process())",
        ],
    )
    def test_by_a_program_of_numbers(self, code):
        libraries = ("numpy", "scipy", "importlib.metadata", *LIBRARIES)
        code += f"; import sys; print([m for m in {libraries} if m in sys.modules], file=sys.stderr)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stderr == "[]\n"

    def test_the_first_gradient_of_a_loop_imports_nothing_for_the_next_ones(self):
        code = "import gradcli; p = gradcli.compile('s = x; for i in range(1000) { s = cos(s)*x }; s'); "
        code += "p.value_and_grad({'x': 0.5}); import sys; print([m for m in sys.modules if m in "
        later = ["evaluation.recordings", "calculus.higher_orders", "loops.loop_code", "executors.schedule"]
        code += f"{[f'gradcli.{name}' for name in later]}])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "[]\n"

    def test_an_array_does_not_import_other_libraries(self):
        code = "import gradcli, numpy; gradcli.tensor(numpy.ones(3), requires_grad=True).exp().sum().backward(); "
        code += f"import sys; print([m for m in {LIBRARIES} if m in sys.modules])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "[]\n"


class TestRecognition:
    @pytest.mark.parametrize("name", ["torch", "numpy", "jax", "cupy"])
    @pytest.mark.parametrize("other", [gradcli, types.ModuleType("nothing")], ids=["gradcli", "another"])
    def test_another_module_in_the_place_of_a_library(self, monkeypatch, name, other):
        x = gradcli.tensor([1.0, 2.0], requires_grad=True)
        monkeypatch.setitem(sys.modules, name, other)
        (slope,) = gradcli.autograd.grad((x**3).sum(), x, create_graph=True)
        slope.sum().backward()
        assert x.grad.tolist() == [6.0, 12.0]

    def test_by_the_names_of_classes(self):
        expected = {"torch.Tensor": "torch", "cupy.ndarray": "cupy", "jaxlib._jax.ArrayImpl": "jax"}
        for path, name in expected.items():
            module, _, class_name = path.rpartition(".")
            kind = type(class_name, (), {"__module__": module})
            assert arrays.backend_of(kind) == name
            assert arrays.backend_of(type("Sub", (kind,), {"__module__": "elsewhere"})) == name

    def test_what_is_no_array(self):
        assert arrays.backend_of(str) is None
        assert arrays.backend_of(list) is None
        assert not arrays.is_array("text")
        assert arrays.backend_of(np.float32) == "numpy"

    def test_two_libraries_in_one_operation(self):
        kinds = [type("Tensor", (), {"__module__": "torch"}), type("ndarray", (), {"__module__": "cupy"})]
        with pytest.raises(EvaluationError, match="arrays of torch and of cupy meet in one operation"):
            arrays.foreign_namespace([kind() for kind in kinds])


class TestNamespaces:
    """The NumPy namespace; see tests/backends for those of the other libraries."""

    def test_numpy_has_what_every_library_must_have(self):
        assert lacking(numpy_arrays, Namespace) == []
        assert lacking_functions(numpy_arrays) == []

    def test_what_is_lacking_is_found(self):
        class Other:
            def asarray(self, value): ...

        found = lacking(Other(), Namespace)
        assert {"name", "asarray", "einsum", "promoted"} <= {*found}
        assert "add" in lacking_functions(Other())

    def test_that_of_floats_is_none(self):
        assert {"asarray", "promoted", "quiet", "index"} <= {*lacking(arrays.floats, Namespace)}


class TestMemory:
    @pytest.mark.parametrize(
        ("text", "asked"),
        [
            ("Out of memory allocating 8,000,000,000 bytes (allocated so far: 512 bytes).", "8,000,000,000 bytes"),
            ("CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 1 GiB", "2.50 GiB"),
            ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 16000 bytes.", "16000 bytes"),
            (
                "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried "
                "to allocate 40000000000000 bytes. Error code 12",
                "40000000000000 bytes",
            ),
            ("Unable to allocate 1.00 MiB for an array with shape (2,)", "1.00 MiB"),
        ],
    )
    def test_the_bytes_asked_and_free(self, text, asked):
        error = backends.out_of_memory(text, 1234)
        assert error.message == f"out of memory: {asked} asked for, 1,234 bytes free"

    def test_where_the_library_does_not_tell(self):
        assert backends.out_of_memory("no memory", None).message == "out of memory"

    def test_numpy(self, run):
        outcome = run("eval", "sum(ones(1, 1000000) + ones(1000000, 1)*ones(1, 1000000))", "--max-elements", "9" * 15)
        assert outcome.status == 1
        assert "out of memory: 7.28 TiB asked for, " in outcome.err


class TestKeys:
    @pytest.mark.parametrize(
        "key",
        [np.s_[::-1], np.s_[::-2, 1:], np.s_[..., ::-1], np.s_[None, 4:0:-3, ::-1], np.s_[-2:-9:-1], np.s_[0:3:-1]],
    )
    def test_steps_below_zero(self, key):
        x = np.arange(30).reshape(5, 6)
        key = key if isinstance(key, tuple) else (key,)
        forwards, flipped = index_keys.without_negative_steps(key, x.shape)
        assert all(not isinstance(k, slice) or (k.step or 1) > 0 for k in forwards)
        np.testing.assert_array_equal(np.flip(x, flipped)[forwards], x[key])

    @pytest.mark.parametrize("key", [(5,), (-6,), (0, 6), (np.array([0, 5]),), (Ellipsis, -7), (0, 0, 0)])
    def test_positions_outside(self, key):
        with pytest.raises(IndexError):
            index_keys.check_key(key, (5, 6))

    @pytest.mark.parametrize("key", [(4,), (-5,), (0, 5), (np.array([], int),), (Ellipsis, -6), (None, 4, None, 5)])
    def test_positions_inside(self, key):
        index_keys.check_key(key, (5, 6))


class TestDefinitions:
    """The functions for libraries that lack them, tested on NumPy against SciPy and mpmath."""

    def test_beside_exact_numbers(self):
        from scipy import special

        x = np.array([0.3, 1.0, 2.5, 4.0, 7.25, 24.9, 25.1, 100.3, 3000.0, -2.5, -40.0])
        for n in (0, 1, 2, 3, 6):
            np.testing.assert_allclose(
                common_definitions.jv(numpy_arrays, n, x), special.jv(n, x), rtol=2e-12, atol=2e-15
            )
        for n in (2, 3, 6):
            near = x[np.abs(x) < 700]
            np.testing.assert_allclose(
                common_definitions.whole_iv(numpy_arrays, n, near), special.iv(n, near), rtol=2e-13
            )

    def test_lgamma_at_its_zeros(self):
        # From mpmath with 30 digits.
        x = np.array([0.9999999, 1 - 1e-16, 1.0, 2.0])
        expected = [5.77215746844419283e-08, 6.40838121348000724e-17, 0.0, 0.0]
        np.testing.assert_allclose(
            common_definitions.lgamma(numpy_arrays, x, numpy_arrays.lgamma), expected, rtol=1e-15
        )

    def test_betaln_of_large_operands(self):
        # log(1/(a*(a + 1))) for b = 2.
        a = np.array([20.0, 1e5, 1e9])
        np.testing.assert_allclose(
            common_definitions.betaln(numpy_arrays, a, 2.0), -np.log(a) - np.log1p(a), rtol=1e-14
        )

    @pytest.mark.parametrize("y", [0.3, -0.7, 2.0, -3.0, 0.0, -0.0, np.inf, -np.inf, np.nan])
    def test_floor_divide(self, y):
        x = np.array([0.0, -0.0, 1.0, -1.0, 2.0, 6.0, -6.0, 7.25, 1e6, -1e6, np.nan])
        with np.errstate(all="ignore"):
            found, expected = common_definitions.floor_divide(numpy_arrays, x, y), np.floor_divide(x, y)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(expected[expected == 0]))


def test_a_backend_names_an_extra_and_modules_that_are_there():
    import tomllib
    from pathlib import Path

    extras = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert {b.name for b in backends.BACKENDS} - {"numpy"} <= extras.keys()
    for backend in backends.BACKENDS:
        assert importlib.util.find_spec(backend.home) is not None
        assert importlib.util.find_spec(f"gradcli.executors.{backend.executor}") is not None


@pytest.mark.parametrize("columns", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_sums_of_a_few_columns_are_those_of_numpy(columns, dtype):
    """Sums agree bit for bit, including the signs of zeros, and in shape."""
    rng = np.random.default_rng(columns)
    x = (rng.normal(size=(4, 50, columns)) * 10.0 ** rng.integers(0, 9, (4, 50, columns))).astype(dtype)
    x[0, 0] = -0.0 if dtype != "int64" else 0
    for keepdims in (False, True):
        found, expected = arrays.numpy_namespace().sum(x, (2,), keepdims), np.sum(x, (2,), keepdims=keepdims)
        assert (found.dtype, found.shape, found.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())


def test_operations_are_quiet_and_leave_the_settings_of_numpy():
    with np.errstate(all="raise"):
        before = np.geterr()
        x = gradcli.tensor([0.0, 1e308], requires_grad=True)
        y = gradcli.log(x) * (x * 10.0)
        y.sum().backward()
        assert np.geterr() == before
    assert np.isnan(y.tolist()[0])
    assert np.isnan(x.grad.tolist()[0])


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2000, 3)])
@pytest.mark.parametrize("x", [2.5, np.float32([1.5, 2.5, 3.5]), np.array([[True, False, True]])])
def test_repeated_numbers_are_those_of_numpy(x, shape):
    if np.ndim(x) > len(shape):
        with pytest.raises(ValueError, match="more dimensions"):
            numpy_arrays.broadcast_to(x, shape)
        return
    found, expected = numpy_arrays.broadcast_to(x, shape), np.broadcast_to(x, shape)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (2, 3)])
def test_a_repeated_number_is_a_view_which_rows_are_multiplied_by_as_by_a_number(shape):
    found = numpy_arrays.broadcast_to(2.5, shape)
    assert found.shape == shape
    assert set(found.strides) <= {0}
    np.testing.assert_array_equal(found, np.full(shape, 2.5))

"""Tests the package as shipped: the wheel is built, installed and used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

import gradcli

ROOT = Path(__file__).parents[2]
PREPARED = ("gradcli/language/syntax/_lalr.py", "gradcli/primitives/_entry_files.py")


def run(*words: str, **options) -> str:
    done = subprocess.run([*words], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(source, out, *kinds: str) -> None:
    run(sys.executable, "-m", "build", *kinds, "--no-isolation", "--outdir", str(out), str(source))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy of the source like a fresh checkout."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    copied = ["pyproject.toml", "README.md", "LICENSE", "hatch_build.py", "gradcli", "grammar", "man"]
    subprocess.run(["cp", "-r", *(str(ROOT / name) for name in copied), str(source)], check=True)
    for prepared in PREPARED:
        (source / prepared).unlink(missing_ok=True)
    build(source, out, "--wheel")
    (built,) = out.glob("gradcli-*.whl")
    # Kept beside it for a second build.
    source.rename(out / "source")
    return built


@pytest.mark.slow
def test_a_second_build_is_the_same(wheel, tmp_path):
    source, again = wheel.parent / "source", tmp_path / "again"
    build(source, wheel.parent, "--sdist")
    for path in source.rglob("*"):
        os.utime(path)
    build(source, again, "--wheel", "--sdist")
    first, second = ({p.name: p.read_bytes() for p in folder.glob("gradcli-*")} for folder in (wheel.parent, again))
    assert wheel.name in first
    assert len(first) == 2
    assert first == second


def test_what_is_in_the_wheel(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"gradcli/grammar/gradcli.lark", "gradcli/py.typed", *PREPARED} <= names
    assert not any(name.startswith(("tests/", "benchmarks/", "docs/")) for name in names)
    assert not any("__pycache__" in name for name in names)
    assert {path.name for path in (ROOT / "man").iterdir()} == {Path(n).name for n in names if "/share/man/man1/" in n}


def test_the_installed_command(wheel, tmp_path):
    # The dependencies come from this interpreter; the package itself must come from the wheel.
    installed = tmp_path / "installed"
    options = ["--quiet", "--no-deps", "--no-compile", "--target", str(installed)]
    run(sys.executable, "-m", "pip", "install", *options, str(wheel))
    code = "import sys, gradcli; print(gradcli.__file__); from gradcli.__main__ import run; run()"
    environment = os.environ | {"PYTHONPATH": str(installed)}
    words = [sys.executable, "-c", code, "eval", "log(x**q)", "x=5", "q=3", "--json"]
    place, record = run(*words, cwd=tmp_path, env=environment).splitlines()
    assert Path(place).is_relative_to(installed)
    assert json.loads(record)["grad"] == {"x": 0.6, "q": 1.6094379124341003}
    assert (installed / "bin/gradcli").exists()


def test_the_prepared_tables_are_those_of_the_grammar(wheel, tmp_path):
    """Starting from the wheel does not import lark."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = "import sys, gradcli; gradcli.compile('x'); print('lark' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    assert run(sys.executable, "-c", code, cwd=tmp_path, env=environment) == "False\n"


def test_the_prepared_index_is_that_of_the_entries(wheel, tmp_path):
    """Looking up a function in the wheel imports its file, and not those of all functions."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = "import sys; from gradcli.primitives import table; table.known('conv2d'); print(*sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    loaded = run(sys.executable, "-c", code, cwd=tmp_path, env=environment).split()
    assert "gradcli.primitives.entries.layers.convolutions" in loaded
    assert "gradcli.primitives.entries.special_functions.orthogonal_polynomials" not in loaded


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2"), ({"OMP_NUM_THREADS": "2"}, "None")],
)
def test_linear_algebra_of_the_command_uses_one_core_unless_somebody_says_otherwise(given, expected):
    code = "import os\nfrom gradcli.__main__ import run\ntry: run()\nfinally: print(os.environ.get('OPENBLAS_NUM_THREADS'))"
    others = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    assert run(sys.executable, "-c", code, "--version", env=others | given).splitlines()[-1] == expected


def test_in_the_place_of_another_library_its_classes_are_those_of_the_package():
    code = """
        import sys, gradcli
        sys.modules["torch"] = gradcli
        from torch.nn.parameter import Parameter
        from torch.autograd.function import Function
        import torch, torch.nn.functional, torch.optim.optimizer, torch.utils.checkpoint, torch.autograd.forward_ad
        from torch.utils.data.dataset import Dataset
        from torch.distributions.distribution import Distribution

        class Line(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.slope = Parameter(torch.ones(2))

        print(
            [name for name, _ in Line().named_parameters()],
            Parameter is gradcli.nn.Parameter, Function is gradcli.autograd.Function,
            torch.optim.optimizer.Optimizer is gradcli.optim.Optimizer, Dataset is gradcli.utils.data.Dataset,
            Distribution is gradcli.distributions.Distribution, torch.nn is sys.modules["gradcli.nn"],
        )
        copies = {name for name in sys.modules if name.startswith("torch.")}
        print([name for name in copies if sys.modules[name] is not sys.modules[name.replace("torch", "gradcli")]])
    """
    shown = run(sys.executable, "-c", textwrap.dedent(code)).splitlines()
    assert shown == ["['slope'] True True True True True True", "[]"]


def test_a_function_is_looked_up_once() -> None:
    assert gradcli.erfinv(0.0) == 0.0
    assert vars(gradcli)["erfinv"] is gradcli.erfinv

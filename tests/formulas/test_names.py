"""Tests the names of a program in every output language: valid and distinct."""

from __future__ import annotations

import ctypes
import keyword
import math
import re
import shutil
import sqlite3
import types
import unicodedata

import numpy as np
import pytest

import gradcli
from gradcli.formulas import languages
from gradcli.formulas.symbolic import derivatives_as_formulas
from gradcli.formulas.writing.naming import Names, names_of
from gradcli.language.names import scope
from gradcli.language.syntax import parse
from gradcli.program.ir import Variable
from tests.printed_code import STRICT, in_c

# Words and macros of C and C++, of GNU C, and of headers that may be included.
OF_C = """M_PI M_E M_PIf M_PIl M_SQRT1_2 M_2_SQRTPIf64x linux unix asm typeof FP_NAN FP_FAST_FMA MATH_ERRNO
    math_errhandling _Bool _Complex _Imaginary _Atomic _Float64 _Thread_local _x __x __func__ __LINE__ __linux__ _X
    _Generic _Noreturn _Alignas I complex imaginary NULL INFINITY NAN HUGE_VAL HUGE_VALF HUGE_VAL_F128 MAXFLOAT SNAN
    SNANF SNANF64X j0 j1 jn y0 y1 yn gamma signgam isnan isfinite signbit fpclassify iszero main errno EOF EDOM
    ERANGE DOMAIN OVERFLOW INT_MAX DBL_EPSILON BUFSIZ RAND_MAX stdin assert setjmp CMPLX LITTLE_ENDIAN SIGINT
    auto break case char const continue default do double enum extern float goto inline int long register restrict
    return short signed sizeof static struct switch typedef union unsigned void volatile bool true false nullptr
    constexpr alignas alignof static_assert thread_local typeof_unqual class new delete this template operator
    private public virtual namespace and_eq bitand bitor compl not_eq or_eq xor xor_eq friend catch try throw
    explicit export mutable typeid typename using wchar_t char8_t concept requires co_await co_yield co_return
    exp log pow sqrt fabs fmin fmax sin cosh erf lgamma tgamma floor log1p expm1 printf exit malloc abs div index
    acosf drem exp10 ffs significand nexttoward lgamma_r u03c3 uu03c3 u0075 U0001d7d8""".split()  # noqa: SIM905
OF_SQL = """order select from group table X x value values user level current_date rowid limit check primary key index
    null N n Order ORDER dual sysdate rank sum count d_x D_x is_ between case when then end""".split()  # noqa: SIM905
OF_LATEX = """x_ _x x__ __x __ _ x_1 x1 x_1_2 x12 x_12 x1_2 sigma σ Sigma Σ Δx x_Δ é x̂ ẋ ñ é_1 pi_ e_ tau_ alpha_beta αβ
    speed 速度 переменная ß ss ο o Α ℘ ªb x‿y infty lim mathrm theta_1 θ_1 θ1 varepsilon 𐐷 ﬀi""".split()  # noqa: SIM905
OF_PYTHON = ["np", "special", "math", "numpy", "print", "None_", "self", "match", "type", *keyword.softkwlist]
OF_DOCUMENTS = [f"{stem}_{name}" for stem in ("derivative", "d") for name in ("x", "X", "x_", "a_b")]
PARTS = [f"v{n}" for n in range(1, 30)]


HEADERS = ["errno", "float", "limits", "setjmp", "signal", "stdint", "stdio", "stdlib", "string", "time"]
WORDS = {"if", "else", "for", "in", "while", "and", "or", "not", "True", "False", "None", "backward"}


def _names() -> list[str]:
    words = [*OF_C, *OF_SQL, *OF_LATEX, *OF_PYTHON, *OF_DOCUMENTS, *PARTS, *keyword.kwlist, "__debug__"]
    names = [*words, *(f"{word}_" for word in words), *(f"{word}__" for word in words[::3])]
    return list(
        dict.fromkeys(
            unicodedata.normalize("NFKC", name) for name in names if name not in {*WORDS, *scope.CONSTANTS, "z", "t"}
        )
    )


NAMES = _names()
# The derivative by z distinguishes every name from every other.
PROGRAM = "t = z; 0.5*t*(" + " + ".join(f"{i}*{name}" for i, name in enumerate(NAMES, 1)) + ")"
VALUES = {name: math.sin(i) for i, name in enumerate(NAMES)}
EXPECTED = sum(0.5 * i * VALUES[name] for i, name in enumerate(NAMES, 1))


@pytest.fixture(scope="module")
def formulas():
    return derivatives_as_formulas(parse(PROGRAM), {}, ["z"], 1)


def spelled(formulas, to: str) -> dict[str, str]:
    """The spellings of the names in a language."""
    return names_of(formulas.value, languages.find(to).naming).inputs


def test_there_are_several_hundred():
    assert len(NAMES) > 600


@pytest.mark.cases(3)
@pytest.mark.parametrize("to", languages.NAMES)
def test_no_two_are_alike(formulas, to):
    naming = languages.find(to).naming
    keys = [naming.key(name) for name in spelled(formulas, to).values()]
    assert len(set(keys)) == len(NAMES) + 1


@pytest.mark.parametrize("names", [["linux", "linux_"], ["sigma", "σ"], ["x", "X"], ["u03c3", "σ"], ["_x", "v_x", "x"]])
@pytest.mark.parametrize("to", languages.NAMES)
def test_names_are_the_same_in_any_order(to, names):
    naming = languages.find(to).naming
    found = [Names(naming, numbers_called(order)).inputs for order in (names, names[::-1])]
    assert all(len(set(map(naming.key, f.values()))) == len(names) for f in found)


def numbers_called(names):
    return [Variable((), "float64", name) for name in names]


def test_whoever_can_keep_his_name_does():
    naming = languages.find("c").naming
    assert Names(naming, numbers_called(["linux", "linux_", "x"])).inputs == {
        "linux": "linux__",
        "linux_": "linux_",
        "x": "x",
    }


def test_text_reads_back(formulas):
    text = languages.document("text", formulas).text
    assert gradcli.compile(text)(**VALUES) == pytest.approx(EXPECTED)


def test_python(formulas):
    module = types.ModuleType("printed")
    exec(compile(languages.document("python", formulas).text, "printed", "exec"), module.__dict__)
    names = spelled(formulas, "python")
    (function,) = (f for n, f in vars(module).items() if n.startswith("derivative_z"))
    assert function(**{names[n]: v for n, v in VALUES.items()}, z=1.0) == pytest.approx(EXPECTED)


@pytest.mark.cases(1)
@pytest.mark.parametrize("standard", ["c99", "gnu99", "c11", "gnu2x", "c++11", "gnu++20"])
def test_c(formulas, tmp_path, standard):
    plus = "++" in standard
    compiler, language = ("g++", "c++") if plus else ("gcc", "c")
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    text = languages.document("c", formulas).text
    header = re.search(r"double (derivative_z\w*)\(.*\)", text)
    assert header is not None
    before = "".join(f"#include <{name}.h>\n" for name in (HEADERS if plus else [*HEADERS, "complex", "tgmath"]))
    linkage = f'extern "C" {header[0]};\n' if plus else f"{header[0]};\n"
    flags = ["-x", language, *STRICT, "-Wshadow", "-O0"]
    found = in_c(before + linkage + text, tmp_path, *flags, compiler=compiler, standard=standard)(header[1])
    values = VALUES | {"z": 1.0}
    inputs = [values[name] for name in spelled(formulas, "c")]
    assert found(*map(ctypes.c_double, inputs)) == pytest.approx(EXPECTED)


def test_sql(formulas):
    names = spelled(formulas, "sql")
    values = {**VALUES, "z": 1.0}
    database = sqlite3.connect(":memory:")
    database.execute(f"CREATE TABLE rows ({', '.join(f'{names[name]} REAL' for name in values)})")
    database.execute(f"INSERT INTO rows VALUES ({', '.join('?' * len(values))})", [*values.values()])
    text = languages.document("sql", formulas).text
    (row,) = database.execute(f"{text} FROM rows").fetchall()
    assert row[1] == pytest.approx(EXPECTED)


def test_sql_says_which_name_stands_for_another(run):
    """To most databases X and x are one column, quoted or not."""
    text = run("diff", "x*X", "--to", "sql").out
    assert text.endswith('x AS "d_X_"\n/* "X_" stands for X */\n')
    assert "stands for" not in run("diff", "x*Y", "--to", "sql").out


def test_latex(formulas):
    names = spelled(formulas, "latex")
    assert {n: names[n] for n in ("x_", "_x", "σ", "sigma", "x_1", "x1", "x‿y", "ẋ", "速度", "Δx", "_", "e_")} == {
        "x_": r"\mathrm{x\_}",
        "_x": r"\mathrm{\_x}",
        "σ": r"\text{σ}",
        "sigma": r"\sigma",
        "x_1": "x_{1}",
        "x1": r"\mathrm{x1}",
        "x‿y": r"\text{x‿y}",
        "ẋ": r"\dot{x}",
        "速度": r"\text{速度}",
        "Δx": r"\text{Δx}",
        "_": r"\mathrm{\_}",
        "e_": r"\mathrm{e\_}",
    }
    for name in names.values():
        assert name.count("{") == name.count("}")
        assert not re.search(r"(?<!\\)_(?!\{)", name)


@pytest.mark.parametrize("name", ["e", "pi", "inf", "nan", "lambda", "pass", "sin", "diff", "np", "v1", "ｘ"])
@pytest.mark.parametrize("program", ["{0}*x", "x*{0}*exp(x*{0})*3.141592653589793", "x*{0}*inf - 0*inf", "-x*{0}*nan"])
def test_text_of_a_name_that_is_something_else_too(run, name, program):
    """The printed text is read back with the name bound, and is the same function of it."""
    program = program.format(name)
    inputs = {unicodedata.normalize("NFKC", name): 0.3, "x": 0.7}
    found = run("diff", program, "--wrt", ",".join(inputs), "--json").json["derivatives"]
    expected = gradcli.compile(program).value_and_grad(inputs)[1]
    for by, text in found.items():
        read = {n: v for n, v in inputs.items() if n in scope.free_names(parse(text))}
        assert gradcli.compile(text)(**read) == pytest.approx(expected[by], nan_ok=True)


def test_a_transposed_matrix_whose_name_is_that_of_a_library(run):
    text = run("diff", "sum(np@x)", "np=[[1,2],[3,4]]", "x=[5,6]", "--wrt", "x").out
    np.testing.assert_array_equal(gradcli.compile(text)(np=[[1.0, 2.0], [3.0, 4.0]]), [4, 6])

"""Code generation: programs as functions of C99."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.formulas.languages.scalar_spellings import (
    ScalarSyntax,
    float_number,
    no_array,
    scalar_functions,
    scalar_parts,
    square_or_call,
)
from gradcli.formulas.writing.documents import Code, Document, Formulas, functions
from gradcli.formulas.writing.naming import Names, Naming, elements_of_rows, in_ascii, with_underscores
from gradcli.formulas.writing.stability import stable
from gradcli.formulas.writing.text_writer import (
    COMPARE,
    CONDITIONAL,
    SUM,
    TIMES,
    UNARY,
    BooleanConversion,
    Fragment,
    Language,
    calls,
    expect_numbers,
    operators,
    template,
    write,
)
from gradcli.primitives import table
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Program, Variable

# Names that an identifier must not take: keywords of C, C++ and GNU C, predefined macros, macros and variables of the
# standard headers, and the functions that the spellings below call.
_RESERVED = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class
    co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype
    default delete do double dynamic_cast else enum explicit export extern false final float for friend goto if
    import inline int long module mutable namespace new noexcept not not_eq nullptr operator or or_eq override
    private protected public register reinterpret_cast requires restrict return short signed sizeof static
    static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename
    typeof typeof_unqual union unsigned using virtual void volatile wchar_t while xor xor_eq
    linux unix i386 arm mips mipsel sparc sun sgi vax hpux hppa m68k mc68000 powerpc ppc PPC pixel vector
    far near huge cdecl pascal fortran complex imaginary noreturn
    BIG_ENDIAN BUFSIZ BYTE_ORDER CMPLX CMPLXF CMPLXL DOMAIN EOF HUGE I INFINITY LITTLE_ENDIAN MAXFLOAT NAN NULL
    OVERFLOW PDP_ENDIAN PLOSS SING TLOSS UNDERFLOW X_TLOSS
    alloca assert environ errno fpclassify isfinite isgreater isgreaterequal isinf isless islessequal
    islessgreater isnan isnormal isunordered iszero main math_errhandling offsetof setjmp signbit stderr stdin stdout
    j0 j1 jn y0 y1 yn gamma signgam fmod rint remainder""".split()  # noqa: SIM905
).union(e.spelling["c"] for e in table.entries() if isinstance(e, Primitive) and "c" in e.spelling)
# Patterns of macros: M_PI, M_PIf, FP_NAN, INT_MAX; names that errno.h and signal.h reserve; HUGE_VALF.
_MACROS = re.compile(
    r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+(f|l|f\d+x?)?|E[A-Z0-9]{2,}|SIG[A-Z0-9]+|(HUGE_VAL|SNAN)(_?F\d+X?|[FL])?|NZERO|NSIG"
)
# Names with this beginning are reserved for the compiler; only lower-case parameters may begin with an underscore.
_COMPILERS = re.compile("_[A-Z_]")


def c(
    program: Program,
    names: Names,
    *,
    name: str,
    doc: str,
    short: int,
    complex_names: frozenset[str] | None = None,
) -> Code:
    """A program of scalars as a function of doubles, or of complex numbers where there are `complex_names`; with several
    outputs it fills an array parameter. Raises DifferentiationError for tensor inputs."""
    expect_numbers(program, "C")
    number = "double" if complex_names is None else "double complex"
    spelled = {names.owners.get(of, "") for of in complex_names or ()}
    parameters = [
        _parameter(parameter, shape, "double complex" if parameter in spelled else "double")
        for parameter, shape in names.parameters.items()
    ]
    results = names.new("results")
    written = write(program, LANGUAGE, names, short=short)
    read = names.read_by(program)
    body = [f"(void){parameter};" for parameter in names.parameters if parameter not in read]
    real = set() if complex_names is None else real_variables(program, complex_names)
    body += [f"const {'double' if written.variables.get(n) in real else number} {n} = {p};" for n, p in written.parts]
    if len(written.results) == 1:
        kind, body = number, [*body, f"return {written.result};"]
    else:
        kind, body = "void", [*body, *(f"{results}[{i}] = {text};" for i, text in enumerate(written.results))]
        parameters.append(f"{number} {results}[{len(written.results)}]")
    lines = [
        f"/* {doc.replace('*/', '* /').replace('/*', '/ *')} */",
        f"{kind} {name}({', '.join(parameters) or 'void'})",
        "{",
        *(f"    {line}" for line in body),
        "}",
    ]
    # The functions of tgmath.h are those of complex numbers where an argument is one.
    return Code(["#include <math.h>" if complex_names is None else "#include <tgmath.h>"], "\n".join(lines))


def real_variables(program: Program, complex_names: frozenset[str]) -> set[Variable]:
    """The variables of a program that are real where the inputs `complex_names` are complex."""
    real = {v for v in program.inputs if v.name not in complex_names}
    for equation in program.equations:
        operands = (a in real if isinstance(a, Variable) else not arrays.is_complex(a) for a in equation.inputs)
        if equation.primitive.name in _OF_COMPLEX or all(operands):
            real.add(equation.output)
    return real


def _parameter(name: str, shape: Shape, number: str) -> str:
    return f"{'const ' if shape else ''}{number} {name}{''.join(f'[{size}]' for size in shape)}"


def _spellings(name: str) -> Iterator[str]:
    name = in_ascii(name)
    return with_underscores(f"v{name}" if _COMPILERS.match(name) else name, _is_taken)


def _is_taken(name: str) -> bool:
    return name in _RESERVED or _MACROS.fullmatch(name) is not None


def of_complex(names: frozenset[str]) -> partial[Code]:
    """The writer of functions with complex numbers, of which the inputs `names` are complex."""
    return partial(c, complex_names=names)


def _document(formulas: Formulas) -> Document:
    if formulas.complex_names is not None:
        # Stable spellings are those of real numbers.
        return functions(formulas, of_complex(formulas.complex_names), _NAMING)
    return functions(stable(formulas, LANGUAGE), c, _NAMING)


_NAMING = Naming(_spellings, elements=elements_of_rows)
# The primitives with real values of complex numbers.
_OF_COMPLEX = frozenset(["abs", "real_part", "imaginary_part", "phase", "equal", "not_equal"])
_number = float_number("INFINITY", "NAN", "1", "0")
# Comparing with itself needs no macro that a C++ compiler has made a function.
_SYNTAX = ScalarSyntax(partial(re.sub, r"isnan\((.*?)\)", r"\1 != \1"), "{} ? {} : {}".format, CONDITIONAL)

LANGUAGE = Language(
    name="c",
    imaginary_unit="I",
    comment="//",
    functions={
        **operators("// % @ **"),
        **scalar_functions(_SYNTAX),
        "conjugate": template("conj({0})", inner=CONDITIONAL),
        "real_part": template("creal({0})", inner=CONDITIONAL),
        "imaginary_part": template("cimag({0})", inner=CONDITIONAL),
        "phase": template("carg({0})", inner=CONDITIONAL),
        "sign": template("{0} != {0} ? {0} : ({0} > 0.0) - ({0} < 0.0)", CONDITIONAL, inner=SUM),
        "whole_power": square_or_call("pow", _number),
    },
    others=calls("c", lambda primitive: primitive.spelling.get("c", "")),
    number=_number,
    array=no_array("C"),
    document=_document,
    with_parts=scalar_parts(_SYNTAX),
    truths=BooleanConversion(
        lambda truth: Fragment(f"1.0*{truth.at(UNARY)}", TIMES),
        lambda number: Fragment(f"{number.at(SUM)} != 0.0", COMPARE),
    ),
    naming=_NAMING,
    tensors=False,
)

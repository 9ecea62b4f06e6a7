"""The declarations of options that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, reduce
from types import GenericAlias, ModuleType, UnionType

from gradcli.arrays import DTYPES
from gradcli.arrays.backends import BACKENDS
from gradcli.errors import UsageError
from gradcli.io.file_formats import FORMS
from gradcli.limits import MAX_DIGITS, MAX_ELEMENTS, MAX_STEPS
from gradcli.type_hints import Annotated, Any, Literal, Self

# The headings of options that several commands share. The limits stand last.
INPUT, OUTPUT, COMPUTING, LIMITS = "Input", "Output", "Computing", "Limits"


class Option:
    """An option of the command line: `Annotated[int | None, Option("--order", help=…)]` is the type of its field.

    A field of type `bool` is a flag, and an option of type `list[str]` may be repeated. `min` and `max` are bounds of
    numbers. `metavar` stands for the value on the help page, where the options of one `group` stand together. Those
    with a `brief` explanation are on the page that fits a screen, with True in the words of `help`. `short` is the name
    of one letter.
    """

    __slots__ = ("brief", "group", "help", "max", "metavar", "min", "name", "short")

    def __init__(
        self,
        name: str,
        *,
        help: str,
        metavar: str | None = None,
        min: int | None = None,
        max: int | None = None,
        short: str | None = None,
        group: str = "Options",
        brief: str | Literal[True] | None = None,
    ) -> None:
        self.name, self.help, self.metavar, self.min, self.max = name, help, metavar, min, max
        self.short, self.group, self.brief = short, group, help if brief is True else brief


def output_path(help: str, brief: str | Literal[True] = True) -> Option:
    """The option `--output PATH`."""
    return Option("--output", short="-o", group=OUTPUT, brief=brief, metavar="PATH", help=help)


def wrt(help: str, brief: str) -> Option:
    """The option `--wrt NAMES`."""
    return Option("--wrt", short="-w", brief=brief, metavar="NAMES", help=help)


def const(help: str, brief: str | Literal[True] | None = None) -> Option:
    """The option `--const NAMES`."""
    return Option("--const", brief=brief, metavar="NAMES", help=help)


def order(help: str, brief: str | Literal[True] = True, metavar: str = "N", min: int | None = None) -> Option:
    """The option `--order N`."""
    return Option("--order", short="-n", brief=brief, metavar=metavar, min=min, help=help)


def quiet(help: str, brief: str) -> Option:
    """The option `--quiet`."""
    return Option("--quiet", short="-q", group=OUTPUT, brief=brief, help=help)


class Argument:
    """The words of the command line that are not options: one of type `str`, or all of type `list[str]`."""

    __slots__ = ("help", "metavar")

    def __init__(self, *, metavar: str, help: str) -> None:
        self.metavar, self.help = metavar, help


Words = Annotated[
    list[str] | None,
    Argument(
        metavar="PROGRAM [NAME=VALUE]...",
        help="The program, or - for standard input; then the values of its names: x=5, W=[[1,2],[3,4]], "
        "x=linspace(0,1,5), x=@data.csv:column, x=@- for standard input.",
    ),
]
File = Annotated[
    str | None,
    Option(
        "--file",
        short="-f",
        group=INPUT,
        brief=True,
        metavar="PATH",
        help="Read the program from a file.",
    ),
]
Vars = Annotated[
    str | None,
    Option(
        "--vars",
        group=INPUT,
        metavar="PATH|-",
        help="Read values from a JSON object of names to numbers or nested lists.",
    ),
]
From = Annotated[
    str | None,
    Option(
        "--from",
        group=INPUT,
        metavar="|".join(FORMS),
        help="What standard input holds, as in x=@-, or a file whose name does not say it; default: what it begins like.",
    ),
]
Wrt = Annotated[
    list[str] | None,
    wrt("Differentiate by these, as in x,q; default: every name with a value.", "Differentiate by these names alone."),
]
Const = Annotated[list[str] | None, const("Do not differentiate by these.")]
Dtype = Annotated[
    str, Option("--dtype", group=COMPUTING, metavar="|".join(DTYPES), help="The precision of every number.")
]
Backend = Annotated[
    str,
    Option(
        "--backend",
        group=COMPUTING,
        metavar="|".join(b.name for b in BACKENDS),
        help="The array library that computes.",
    ),
]
Device = Annotated[
    str | None,
    Option(
        "--device",
        group=COMPUTING,
        metavar="cpu|cuda|cuda:N",
        help="Where it computes; cuda is a GPU. Default: cpu, for cupy cuda.",
    ),
]
Digits = Annotated[
    int | None,
    Option(
        "--digits",
        brief="N digits of every number, each proved.",
        metavar="N",
        min=1,
        max=MAX_DIGITS,
        help="N digits of every number, each of them proved, of the decimals that were typed.",
    ),
]
MaxPrecision = Annotated[
    int,
    Option("--max-precision", group=LIMITS, metavar="N", min=1, help="The most digits to compute with for --digits."),
]
Json = Annotated[
    bool,
    Option(
        "--json", short="-j", group=OUTPUT, brief="Print JSON on one line.", help="Print one JSON object on one line."
    ),
]
Precision = Annotated[
    int | None,
    Option(
        "--precision",
        metavar="N",
        min=1,
        max=17,
        group=OUTPUT,
        brief="Show N significant digits.",
        help="Round the numbers of tables to N significant digits; JSON and files have all of them.",
    ),
]
Polar = Annotated[
    bool,
    Option(
        "--polar",
        group=OUTPUT,
        help="Write complex numbers as polar(modulus, angle in radians) in tables.",
    ),
]
Bare = Annotated[
    bool,
    Option(
        "--bare",
        group=OUTPUT,
        brief="The value alone, one number a line.",
        help="Print the value alone, one number a line, without derivatives.",
    ),
]
GradOutput = Annotated[
    str | None,
    Option(
        "--grad-output",
        metavar="EXPR",
        help="The gradient of a weighted sum of the elements of the value, with these weights: the cotangent.",
    ),
]
Wirtinger = Annotated[
    bool,
    Option(
        "--wirtinger",
        help="The derivatives by complex inputs and by their conjugates, which exist where the program is not "
        "holomorphic too.",
    ),
]
NoGrad = Annotated[bool, Option("--no-grad", help="The value alone.")]
NoRewrite = Annotated[
    bool,
    Option(
        "--no-rewrite", group=COMPUTING, help="Evaluate log(x**q) and its like as they stand, not in a stable form."
    ),
]
Quiet = Annotated[bool, quiet("No warnings on standard error.", "No warnings.")]
Traceback = Annotated[bool, Option("--traceback", group=LIMITS, help="Show where in gradcli an error was raised.")]
MaxSteps = Annotated[int, Option("--max-steps", group=LIMITS, metavar="N", min=1, help="Stop a program after N steps.")]
Expand = Annotated[bool, Option("--expand", brief=True, help="Every operation by itself.")]
Log = Annotated[
    str,
    Option(
        "--log", group=OUTPUT, metavar="x|y|x,y|z", help="The axes of the picture that are logarithmic; z: its colours."
    ),
]
Title = Annotated[str | None, Option("--title", group=OUTPUT, metavar="TEXT", help="The title of the picture.")]
XLabel = Annotated[
    str | None, Option("--xlabel", group=OUTPUT, metavar="TEXT", help="What runs across, with its unit.")
]
YLabel = Annotated[
    str | None, Option("--ylabel", group=OUTPUT, metavar="TEXT", help="What runs upwards, with its unit.")
]
XLim = Annotated[str | None, Option("--xlim", group=OUTPUT, metavar="LOW..HIGH", help="The ends of the axis across.")]
YLim = Annotated[str | None, Option("--ylim", group=OUTPUT, metavar="LOW..HIGH", help="The ends of the upright axis.")]
Size = Annotated[
    str | None,
    Option("--size", group=OUTPUT, metavar="WxH", help="Width and height of a saved picture in inches; default: 8x5."),
]
Dpi = Annotated[
    int | None,
    Option("--dpi", group=OUTPUT, metavar="N", min=10, max=2400, help="The dots of a .png in an inch; default: 150."),
]
MaxElements = Annotated[
    int,
    Option(
        "--max-elements", group=LIMITS, metavar="N", min=1, help="Stop a program that computes more array elements."
    ),
]
MaxSeconds = Annotated[
    float | None,
    Option("--max-seconds", group=LIMITS, metavar="S", help="Stop the command after S seconds, whatever it is doing."),
]
MaxMemory = Annotated[
    str | None,
    Option(
        "--max-memory", group=LIMITS, metavar="SIZE", help="Stop it when it needs more memory, as in 500MB or 2GiB."
    ),
]
Cluster = Annotated[
    str | None,
    Option(
        "--cluster",
        group=COMPUTING,
        metavar="tcp://HOST:PORT|local[:N]",
        help="Compute on a Dask cluster, or on N processes of this machine: parts of the tables into the directory "
        "--output.",
    ),
]
Resume = Annotated[
    bool, Option("--resume", group=COMPUTING, help="Go on with the run in the directory, where that was stopped.")
]


class Options:
    """The base class of the options of a command.

    A subclass has a field for each option in the order of the help page, annotated with its type and its `Option` or
    `Argument`, with its default. The argument comes first. Inherited fields come after those of the subclass.
    """

    traceback: Traceback = False

    def __init__(self, **given: Any) -> None:
        vars(self).update(given)

    def replaced(self, **given: Any) -> Self:
        """A copy with some options replaced."""
        return type(self)(**(vars(self) | given))


class Field:
    """A field of the options of a command: what is declared, and the type of a value, `list` for words.

    Without a default it is required.
    """

    __slots__ = ("declared", "default", "kind", "name", "required")

    def __init__(self, options: type, name: str) -> None:
        self.name = name
        self.default = getattr(options, name, None)
        self.required = not hasattr(options, name)
        annotation = _annotation(options, name)
        (self.declared,) = annotation.__metadata__
        # `int | None` is a union, `list[str]` a list with types of elements.
        kind = annotation.__origin__
        kind = kind.__args__[0] if isinstance(kind, UnionType) else kind
        self.kind = list if isinstance(kind, GenericAlias) else kind


def _annotation(options: type, name: str) -> Any:
    """The annotation of a field; one that is a string is evaluated, which `typing.get_type_hints` does for all."""
    kind = next(kind for kind in options.__mro__ if name in vars(kind).get("__annotations__", ()))
    annotation = kind.__annotations__[name]
    return _evaluated(annotation, sys.modules[kind.__module__]) if isinstance(annotation, str) else annotation


def _evaluated(annotation: str, module: ModuleType) -> Any:
    """The value of an annotation; of most, names with dots, without the compiler of Python, for the sake of the start."""
    names = annotation.split(".")
    if all(map(str.isidentifier, names)):
        return reduce(getattr, names, module)
    return eval(annotation, vars(module))


def _names(options: type) -> Iterable[str]:
    return dict.fromkeys(name for kind in options.__mro__ for name in vars(kind).get("__annotations__", ()))


@cache
def fields(options: type) -> Sequence[Field]:
    """The fields of the options of a command, in the order of the help page."""
    return [Field(options, name) for name in _names(options)]


def fields_called(options: type, names: Iterable[str]) -> Sequence[Field]:
    """The fields among the names."""
    known = {*_names(options)}
    return [Field(options, name) for name in names if name in known]


@cache
def argument(options: type) -> Field | None:
    """The field of the words that are not options, which comes first in a class that has one."""
    first = Field(options, next(iter(_names(options))))
    return first if isinstance(first.declared, Argument) else None


class ProgramRun(Options):
    """The options of a command that runs a program: the limits."""

    max_steps: MaxSteps = MAX_STEPS
    max_elements: MaxElements = MAX_ELEMENTS
    max_seconds: MaxSeconds = None
    max_memory: MaxMemory = None


class PictureRun(ProgramRun):
    """The options of a command that draws a picture: its looks, and the limits."""

    log: Log = ""
    title: Title = None
    xlabel: XLabel = None
    ylabel: YLabel = None
    xlim: XLim = None
    ylim: YLim = None
    size: Size = None
    dpi: Dpi = None


def is_on_cluster(cluster: str | None, given: Mapping[str, bool]) -> bool:
    """Return whether a cluster is requested. Raises UsageError for cluster options in `given` without --cluster."""
    for name, is_given in given.items():
        if is_given and cluster is None:
            raise UsageError(f"{name} is for many machines", hint="add --cluster tcp://HOST:PORT, or --cluster local")
    return cluster is not None

"""Reads a program and the values of its names from the words and options of a command line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from gradcli import arrays, limits
from gradcli.arrays import backends, mathematical_constants
from gradcli.cli.process.environment import Environment, input_of
from gradcli.errors import BindingError, MissingProgramError, Span, UnknownNameError, UsageError
from gradcli.evaluation.constant_expressions import constant
from gradcli.io import system, variables
from gradcli.language.names import scope
from gradcli.language.names.resolution import resolve
from gradcli.language.parsing import parse_charged as parsed
from gradcli.language.syntax.lexer import MAX_LENGTH
from gradcli.language.syntax.tree import Module
from gradcli.named_tuples import NamedTuple
from gradcli.timing import phase
from gradcli.type_hints import Any, BinaryIO, Protocol


class BindingOptions(Protocol):
    """The options of a command that takes a program and values."""

    @property
    def words(self) -> list[str] | None: ...
    @property
    def file(self) -> str | None: ...
    @property
    def vars(self) -> str | None: ...
    @property
    def max_steps(self) -> int: ...
    @property
    def max_elements(self) -> int: ...


class LeafOptions(BindingOptions, Protocol):
    """The options of a command that also differentiates by names that have values."""

    @property
    def wrt(self) -> list[str] | None: ...
    @property
    def const(self) -> list[str] | None: ...


class ProgramOptions(LeafOptions, Protocol):
    """The options of such a command that can choose the array library."""

    @property
    def backend(self) -> str: ...
    @property
    def device(self) -> str | None: ...


class Inputs(NamedTuple):
    """A program, the values of the names that it reads, and the names to differentiate by."""

    program: Module
    bindings: dict[str, Any]
    wrt: tuple[str, ...]


class Sources(NamedTuple):
    """A program, and functions that return the values of the names that it reads, as arrays of the default namespace;
    ball arithmetic calls them again at each precision."""

    program: Module
    values: dict[str, Callable[[], Any]]

    def bindings(self) -> dict[str, Any]:
        return {name: arrays.in_default_namespace(value()) for name, value in self.values.items()}


def check_digits(options: Any, others: Sequence[str] = ()) -> None:
    """Raise UsageError where `--digits` contradicts options, whose names are `others`, or exceeds --max-precision."""
    if options.digits is None:
        return
    if others:
        raise UsageError(f"--digits and {others[0]} contradict each other", hint="leave out one of them")
    if options.max_precision < options.digits:
        raise UsageError(
            f"--max-precision {options.max_precision} is less than --digits {options.digits}",
            hint="it is the most digits to compute with",
        )


def is_exact(options: Any) -> bool:
    """Return whether input numbers keep the exact decimals that were typed."""
    return getattr(options, "digits", None) is not None or getattr(options, "enclose", False)


@contextmanager
def computing(options: ProgramOptions) -> Iterator[Any]:
    """Within the block, use the requested array library and limits. Yields its namespace, None for NumPy."""
    if not is_exact(options):
        namespace = arrays.chosen(options.backend, options.device)
    else:
        namespace = backends.namespace(backends.DIGITS.name)
    with limits.within(options.max_steps, options.max_elements), arrays.using_namespace(namespace):
        yield namespace


def _program_text(options: BindingOptions, environment: Environment) -> tuple[str, Sequence[str]]:
    """The text of the program, and the remaining words, which bind names."""
    words = options.words or []
    if _reads_program(options):
        if options.vars == "-":
            raise UsageError("the program and --vars cannot both be standard input", hint="put one of them in a file")
        return environment.read_stdin("the program", MAX_LENGTH), words[1:]
    taken = options.vars == "-" or getattr(options, "data", None) == "-" or any(map(reads_input, words))
    if not taken and environment.has_unread_input():
        _check_input(options, environment)
    if options.file is not None:
        return read_program(options.file), words
    if not words:
        raise MissingProgramError("there is no program")
    _check_order(words)
    return words[0], words[1:]


# Regular expressions that few command lines need are compiled where they are used, which `re` does once.
_DEGREES = r"(?<![\w.])a?(?:sin|cos|tan)d(?=\s*\()"


def note_degree_functions(text: str, options: BindingOptions, environment: Environment) -> None:
    """Print a note if a program calls functions that compute in degrees, unless it defines them itself. With --json,
    errors alone are printed, as one line of JSON."""
    if getattr(options, "json", False) or not any(name in text for name in ("sind", "cosd", "tand")):
        return
    calls = re.findall(_DEGREES, text)
    defined = {n for n in calls if re.search(rf"\bdef\s+{n}\b", text)}
    defined |= {n for n in calls if calls.count(n) > 1 and re.search(rf"(?<![\w.]){n}\([\w, ]*\)\s*=(?!=)", text)}
    told = dict.fromkeys(n for n in calls if n not in defined)
    if told and not getattr(options, "quiet", False):
        environment.write_error(
            f"note: {', '.join(told)} computes in degrees, and the derivative by an angle is one by degrees"
        )


# A whole number of so many digits that a float may lack some.
_LONG_INTEGER = r"(?<![\w.])\d(?:_?\d){15,}(?![\w.])"


def _note_rounded_integers(name: str, text: str, options: BindingOptions, environment: Environment) -> None:
    """Print a note on the whole numbers in the text of a value that are rounded to floats."""
    if is_exact(options) or getattr(options, "json", False) or getattr(options, "quiet", False):
        return
    for digits in re.findall(_LONG_INTEGER, text):
        found = float(digits)
        if math.isfinite(found) and int(found) != int(digits):
            environment.write_error(
                f"note: {digits} in '{name}' is {int(found)} as a float: whole numbers beyond 2**53 are rounded"
            )
            return


def _reads_program(options: BindingOptions) -> bool:
    """Return whether the program is read from standard input."""
    return options.file is None and (options.words or [])[:1] == ["-"]


def _check_input(options: BindingOptions, environment: Environment) -> None:
    """Warn that standard input is not read. Raises UsageError if the program must have been meant to be there."""
    words = options.words or []
    if options.file is None and all(map(is_binding, words)):
        raise UsageError(
            "the program on standard input is not read", hint=f"'-' reads it: gradcli eval {' '.join(['-', *words])}"
        )
    if not getattr(options, "quiet", False):
        environment.write_error(
            "warning: standard input is not read: the program is given already; gradcli map computes it for each row"
        )


# These are compiled where a word needs them.
_BINDING = r"\s*[^\W\d]\w*\s*=[^=]"
_FROM_INPUT = r"\s*[^\W\d]\w*\s*=\s*@-(:|$)"
_NAME = r"[^\W\d]\w*"


def is_binding(word: str) -> bool:
    """Return whether a word has the form NAME=VALUE."""
    name, _, value = word.partition("=")
    if name.isascii() and name.isidentifier():
        return value[:1] not in ("", "=")
    return re.match(_BINDING, word) is not None


def reads_input(word: str) -> bool:
    """Return whether a word has the form NAME=@-."""
    return "@-" in word and re.match(_FROM_INPUT, word) is not None


def _check_order(words: Sequence[str]) -> None:
    """Raise UsageError if the program comes after values, or if there are spaces around the `=` of a value."""
    if is_binding(words[0]) and any(not is_binding(w) for w in words[1:]):
        # Imported here because only incorrect command lines need it.
        from shlex import quote

        program = next(w for w in words[1:] if not is_binding(w))
        values = " ".join(quote(w) for w in words if w is not program)
        raise UsageError(
            f"'{words[0]}' stands where the program should", hint=f"the program comes first: {quote(program)} {values}"
        )
    parts = ["", *words[1:], ""]
    for before, word, behind in zip(parts, parts[1:], parts[2:]):
        name, sign, value = (before, "=", behind) if word == "=" else ("", "", "")
        if word.endswith("=") and re.fullmatch(_NAME, word[:-1]):
            name, sign, value = word[:-1], "=", behind
        elif word.startswith("=") and len(word) > 1 and re.fullmatch(_NAME, before):
            name, sign, value = before, "=", word[1:]
        if sign and name and value:
            raise UsageError(f"there are spaces around '=' in a value for '{name}'", hint=f"write {name}={value}")


def read_program(path: str) -> str:
    """The text of a program file. Raises UsageError if it cannot be read."""
    try:
        return system.read_text(path, MAX_LENGTH)
    except UnicodeDecodeError:
        raise UsageError(f"the program {path} is not UTF-8 text", hint="save it as UTF-8") from None
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(f"cannot read the program {path}: {reason}", hint="check the path") from None


def names_of(texts: Sequence[str] | None) -> tuple[str, ...]:
    """The distinct names in lists such as `x,q`."""
    names = (n.strip() for text in texts or () for n in text.split(","))
    return tuple(dict.fromkeys(filter(None, names)))


def gather(options: ProgramOptions, environment: Environment, dtype: str) -> Inputs:
    """The program, the values of its names, and the names to differentiate by.

    Raises what `parse_charged` raises, and BindingError for a name to differentiate by that has no value.
    """
    program, bindings = read(options, environment, dtype)
    return Inputs(program, bindings, leaves(bindings, options))


def read(options: BindingOptions, environment: Environment, dtype: str) -> tuple[Module, dict[str, Any]]:
    """Parse the program and read the values of its names, as arrays of the default namespace.

    Raises what `sources` raises.
    """
    found = sources(options, environment, dtype)
    return found.program, found.bindings()


# Evaluates the value in a word, from its text, dtype, the whole word, and the offset of the text in it.
WordReader = Callable[[str, str, str, int], Any]


def sources(
    options: BindingOptions, environment: Environment, dtype: str, read_word: WordReader | None = None
) -> Sources:
    """Parse the program, and prepare the values of its names. `read_word` evaluates values in words; by default they
    are expressions, or intervals with --enclose.

    Raises UsageError if there is no program, ProgramSyntaxError for invalid text, and BindingError for a file that
    cannot be read, a name that is given twice or that the program does not read. A value that is invalid raises
    BindingError only when it is evaluated.
    """
    with phase("parse"):
        text, words = _program_text(options, environment)
        note_degree_functions(text, options, environment)
        program = parsed(text)
    reads = scope.free_names(program)
    values = bindings_of(words, dtype, options, environment, read_word)
    if read_word is None:
        # Names that are used as masks keep truth values that were written as such.
        for name in resolve(program).masks & values.keys():
            read = values[name]
            if isinstance(read, partial) and read.func is constant:
                values[name] = partial(read, truths=True)
    scope.check_names(program, values)
    for word, name in zip(words, tuple(values)):
        if name not in reads:
            error = scope.unread_name(name, reads, values, program)
            error.locate(_name_span(word), word)
            raise error
    for name, value in values_of_vars_option(options, environment, dtype, values).items():
        if name in reads:
            values[name] = value
    return Sources(program, values | values_of_caller(environment, reads, values, dtype))


def values_of_caller(
    environment: Environment, reads: Iterable[str], given: Container[str], dtype: str
) -> dict[str, Callable[[], Any]]:
    """The functions that return the values of the names of a notebook that the program reads and nothing else gives."""
    names = [name for name in reads if name in environment.names and name not in given]
    return {name: partial(_read_of_caller, environment.names[name], dtype) for name in names}


def names_mentioned(text: str) -> dict[str, None]:
    """The names in a text, which need not be a program, in their order; not those that are called."""
    return dict.fromkeys(re.findall(r"(?<![\w.])[^\W\d]\w*\b(?!\s*\()", text))


def _read_of_caller(value: Any, dtype: str) -> Any:
    """A value of a notebook, as lists of numbers where arithmetic is exact."""
    if mathematical_constants.is_exact():
        return value.tolist() if hasattr(value, "tolist") else value
    return _read(value, dtype)


def values_of_vars_option(
    options: BindingOptions, environment: Environment, dtype: str, bound: Container[str]
) -> dict[str, Callable[[], Any]]:
    """The functions that return the values of `--vars`, by name. Raises BindingError for a name that words have
    `bound`."""
    given = variables_of(options.vars, environment, is_exact(options), bound)
    return {name: partial(_read, number, dtype) for name, number in given.items()}


def check_unbound(name: str, bound: Container[str], word: str) -> None:
    """Raise BindingError if earlier words have `bound` the name that a word binds."""
    if name in bound:
        raise BindingError(
            f"'{name}' is given twice", hint="give each name one value", span=_name_span(word), source=word
        )


def _name_span(word: str) -> Span:
    """The span of the name in NAME=VALUE."""
    return Span(0, word.index("="))


def _read(number: Any, dtype: str) -> Any:
    """A value from a file; decimals that were kept exact become floats unless exact arithmetic is used."""
    if mathematical_constants.is_exact():
        return number
    return arrays.in_precision(float(number) if isinstance(number, float) else number, dtype)


def bindings_of(
    words: Sequence[str],
    dtype: str,
    options: BindingOptions,
    environment: Environment,
    read_word: WordReader | None = None,
) -> dict[str, Callable[[], Any]]:
    """The functions that return the values of the names bound in words. Raises BindingError for a file that cannot be
    read."""
    values: dict[str, Callable[[], Any]] = {}
    files: dict[str, tuple[str, str, int]] = {}
    read_word = read_word or (_interval if getattr(options, "enclose", False) else constant)
    for word in words:
        name, text, offset = variables.split_binding(word)
        text = _without_signs(name, text, options, environment)
        check_unbound(name, values, word)
        if text.startswith("@"):
            files[name] = (text[1:], word, offset)
        else:
            _note_rounded_integers(name, text, options, environment)
        # Keeps the order of the words; the values of files are inserted below.
        values[name] = partial(read_word, text, dtype, word, offset)
    form = getattr(options, "input_form", None)
    if files or form is not None:
        values |= {name: partial(_read, v, dtype) for name, v in _from_files(files, form, options, environment).items()}
    return values


# Without m and f, which may be meant as metres and femtoseconds, or as the suffix of a C float.
_PREFIXES = {"p": -12, "n": -9, "u": -6, "µ": -6, "μ": -6, "k": 3, "M": 6, "G": 9, "T": 12}
_LETTERS = "".join(_PREFIXES)
_PREFIXED = rf"(?<![\w.])(\d[\d_]*\.?\d*|\.\d+) ?([{_LETTERS}])(?![\w.])"
# A number, or several in a list or with an uncertainty; in expressions the letters may be names.
_NUMBERS = rf"[-+±/%\[\],.\s\d_eE{_LETTERS}]*"


# Angles in degrees: numbers of which the last has the sign may share it, as in 45±1° and 0..90°.
_DECIMAL = r"(?:\d+(?:\.(?!\.)\d*)?|(?<!\.)\.\d+)"
_ANGLES = r"(?:[-+±\[\],.\s\d%]|°(?!\s*\d))*"
_ANGLE = rf"(?<![\d])({_DECIMAL})\s*°"
_SHARED = rf"(?<![\d])({_DECIMAL})\s*(±|\.\.)\s*([-+]?{_DECIMAL})\s*°"
_IN_BRACKETS = r"\s*\(([^()]*)\)\s*(?=°\s*$)"
_PERCENTAGE = rf"\s*([-+]?{_DECIMAL})\s*%\s*"


def _without_signs(name: str, text: str, options: BindingOptions, environment: Environment) -> str:
    """Numbers with SI prefixes, as in 10k, 2.2u±5% and [1k, 2k], with degrees, as in 45±1°, and a percentage as numbers
    of the language; a note is printed."""
    written = text
    if not _PREFIXES.keys().isdisjoint(text) and re.fullmatch(_NUMBERS, text):
        written = re.sub(_PREFIXED, lambda found: f"{found[1]}e{_PREFIXES[found[2]]}", text).strip()
    elif "°" in text and re.fullmatch(_ANGLES, bare := re.sub(_IN_BRACKETS, r"\1", text)):
        written = re.sub(_ANGLE, r"deg2rad(\1)", re.sub(_SHARED, r"\1°\2\3°", bare)).strip()
    elif "%" in text and (share := re.fullmatch(_PERCENTAGE, text)):
        written = f"{share[1]}/100"
    if written == text.strip():
        return text
    if not getattr(options, "quiet", False):
        environment.write_error(f"note: {name}={text.strip()} is read as {written}")
    return written


def _from_files(
    asked: Mapping[str, tuple[str, str, int]], form: str | None, options: BindingOptions, environment: Environment
) -> dict[str, Any]:
    """The values of names that are read from files; `asked` maps names to (reference, word, offset)."""
    # Imported here because few commands read values from files.
    from gradcli.io import files

    def standard_input() -> BinaryIO:
        name = next(name for name, (text, *_) in asked.items() if files.is_standard_input(text))
        for is_taken, what in ((options.vars == "-", "--vars"), (_reads_program(options), "the program")):
            if is_taken:
                raise UsageError(
                    f"{what} and the value of '{name}' cannot both be standard input", hint="put one of them in a file"
                )
        return input_of(environment, f"'{name}'")

    reading = files.ValueReadOptions(options.max_elements, is_exact(options), form, standard_input)
    return dict(zip(asked, files.read_all([files.Reference(*place) for place in asked.values()], reading)))


def _interval(text: str, dtype: str, whole: str, offset: int) -> Any:
    """The value of an expression, or intervals."""
    # Imported here because intervals need FLINT.
    from gradcli.proofs import interval_inputs

    if not interval_inputs.is_interval(text):
        return constant(text, dtype, whole, offset)
    return interval_inputs.intervals(text, offset, whole, lambda part, at: constant(part, dtype, whole, at))


def cotangent(text: str | None, dtype: str) -> Any:
    """The value of `--grad-output`, or None if it is not given."""
    if text is None:
        return None
    try:
        return constant(text, dtype, text)
    except UnknownNameError as error:
        error.hint = "--grad-output is an expression without names, as in [1, 0]"
        raise


def variables_of(
    vars_from: str | None, environment: Environment, exact: bool, bound: Container[str] = ()
) -> dict[str, Any]:
    """The values of `--vars` by name. Raises BindingError if they cannot be read, and for a name that words have
    `bound`."""
    found = _variables(vars_from, environment, exact)
    for name in found:
        if name in bound:
            raise BindingError(f"'{name}' is given twice, by a word and by --vars", hint="give each name one value")
    return found


def _variables(vars_from: str | None, environment: Environment, exact: bool) -> dict[str, Any]:
    if vars_from is None:
        return {}
    # Imported here because few command lines have --vars.
    from gradcli.io.json_numbers import MAX_TEXT
    from gradcli.io.json_variables import read_variables

    if vars_from == "-":
        return read_variables(environment.read_stdin("--vars", MAX_TEXT), "standard input", exact)
    try:
        text = system.read_text(vars_from, MAX_TEXT)
    except UnicodeDecodeError:
        raise BindingError(f"the variables {vars_from} are not UTF-8 text", hint="save them as UTF-8") from None
    except OSError as error:
        reason = error.strerror or error
        raise BindingError(f"cannot read the variables {vars_from}: {reason}", hint="check the path") from None
    return read_variables(text, vars_from, exact)


def leaves(bindings: Mapping[str, Any], options: LeafOptions) -> tuple[str, ...]:
    """The names to differentiate by. Raises what `scope.chosen_leaves` raises."""
    wrt = None if options.wrt is None else names_of(options.wrt)
    return scope.chosen_leaves(bindings, wrt, names_of(options.const))

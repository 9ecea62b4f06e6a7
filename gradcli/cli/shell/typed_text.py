"""Divides what is typed: lines into inputs, and the rest of a `:` command into the words of a command line."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from textwrap import dedent

from gradcli.named_tuples import NamedTuple

# The name of the last value.
LAST = "_"
# The prompts of the first line of an input and of its further lines.
PROMPT, CONTINUED = "> ", ". "
# Strings, comments and brackets of a line; a long string that is not closed continues in the next.
_TOKEN = re.compile(r"\"{3}|'{3}|\"[^\"\n]*\"?|'[^'\n]*'?|#[^\n]*|[()\[\]{}]")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
# The first words of statements that have lines after a colon.
_COMPOUND = re.compile(r"\s*(?:if|for|while|def|elif|else)\b")
# The first words of lines that continue the statement above them.
_GOES_ON = re.compile(r"\s*(?:else|elif|backward)\b|\s*\{")


class _Layout:
    """The brackets and blocks that are open after the lines of a statement, updated line by line."""

    def __init__(self) -> None:
        # The brackets that would close those that are open, and the quotes of a long string.
        self.waiting: list[str] = []
        self.quotes = ""
        self._is_continued = self._is_compound = self._has_colon = self._ends_with_brace = False
        self._lines = 0

    def add(self, line: str) -> None:
        bare = self._without_strings(line)
        self._is_compound = _COMPOUND.match(line) is not None if self._lines == 0 else self._is_compound
        self._lines += 1
        self._is_continued = line.endswith("\\")
        self._has_colon = self._has_colon or ":" in bare
        self._ends_with_brace = bare.rstrip().endswith("}") if bare.strip() else self._ends_with_brace

    @property
    def is_open(self) -> bool:
        return bool(self.waiting or self.quotes or self._is_continued)

    @property
    def is_suite(self) -> bool:
        """True if the statement may continue with indented lines."""
        return self._is_compound and self._has_colon and not self._ends_with_brace

    @property
    def ends_with_brace(self) -> bool:
        return self._ends_with_brace

    def _without_strings(self, line: str) -> str:
        """The line without strings and comments; brackets are counted."""
        bare, at = "", 0
        while at < len(line):
            if self.quotes:
                end = line.find(self.quotes, at)
                if end < 0:
                    break
                at, self.quotes = end + 3, ""
                continue
            found = _TOKEN.search(line, at)
            bare += line[at : found.start() if found else len(line)]
            if found is None:
                break
            token, at = found[0], found.end()
            if len(token) == 3 and token in ('"""', "'''"):
                self.quotes = token
            elif token in _CLOSING:
                self.waiting.append(_CLOSING[token])
            elif self.waiting and token == self.waiting[-1]:
                self.waiting.pop()
            bare += token if len(token) == 1 else ""
        return bare


def _layout(text: str) -> _Layout:
    layout = _Layout()
    for line in text.split("\n"):
        layout.add(line)
    return layout


def closing_brackets(text: str) -> str:
    """The brackets that would close those that are open at the end of a text."""
    return "".join(reversed(_layout(text).waiting))


def is_command(text: str) -> bool:
    return text.lstrip().startswith(":")


def is_complete(text: str) -> bool:
    """Return whether a text that is typed can be run: nothing is open, and a blank line ends indented lines."""
    lines = text.split("\n")
    start = next((i for i in reversed(range(len(lines))) if lines[i][:1].strip() and not _GOES_ON.match(lines[i])), 0)
    if _layout(text).is_open:
        return False
    # The last statement may continue, until a blank line.
    is_suite = _layout("\n".join(lines[start:])).is_suite and not is_command(text)
    return not is_suite or (len(lines) > 1 and not lines[-1].strip())


class InputReader:
    """Puts lines together to inputs, each of which is run at once: statements, or one `:` command.

    `at_blank` says whether a blank line ends indented lines, as in what is typed; in a file they may be in between.
    """

    def __init__(self, *, at_blank: bool) -> None:
        self._at_blank = at_blank
        self._lines: list[str] = []
        self._layout = _Layout()

    @property
    def is_within(self) -> bool:
        """True if the next line may belong to the same input."""
        return bool(self._lines)

    def feed(self, line: str) -> Iterator[str]:
        """Take a line without its end; the inputs that are complete now."""
        if self._lines and not self._layout.is_open:
            if line.strip() and not line[0].isspace() and not _GOES_ON.match(line):
                yield from self.end()
            elif not line.strip() and (self._at_blank or not self._layout.is_suite):
                yield from self.end()
                return
        if self._lines or line.strip():
            self._lines.append(line)
            self._layout.add(line)
            if not self._layout.is_open and not self._may_go_on():
                yield from self.end()

    def end(self) -> Iterator[str]:
        """The lines that are left, as an input."""
        text = dedent("\n".join(self._lines)).strip("\n")
        self._lines, self._layout = [], _Layout()
        if text.strip():
            yield text

    def _may_go_on(self) -> bool:
        first = self._lines[0]
        if is_command(first):
            return False
        # In a file `else` may stand below the closing brace, and `backward` below a function.
        below = not self._at_blank and (self._layout.ends_with_brace or _FUNCTION.match(first) is not None)
        return self._layout.is_suite or below


_FUNCTION = re.compile(r"\s*[^\W\d]\w*\([^()]*\)\s*=(?!=)")


def inputs_of(text: str) -> Iterator[str]:
    """The inputs of a whole text, as of a file or of what is pasted."""
    reader = InputReader(at_blank=False)
    for line in dedent(text).splitlines():
        yield from reader.feed(line)
    yield from reader.end()


class Words(NamedTuple):
    """The words after a `:` command: the program, None where there is none; all others; and those of the others that
    are neither options nor values of names, such as files."""

    program: str | None
    rest: list[str]
    operands: list[str]


# A word that a value is bound by: NAME=VALUE, and NAME~START of an unknown.
BINDING = re.compile(r"([^\W\d]\w*)(?:=(?!=)|~)\S")
# Characters at the end or the beginning of a word with which an expression continues across a blank.
_LEFT_OPEN = re.compile(r"(?:[-+*/%@^=<>~|&,;:!·×÷≤≥≠]|\b(?:if|else|and|or|not|in|is|for|lambda|return))$")
_RIGHT_OPEN = re.compile(r"(?:[-+*/%@^=<>~|&,;:·×÷≤≥≠{)\]]|!=|(?:if|else|and|or|in|is|for)\b)")


def command_words(
    text: str, options: Mapping[str, bool], short: Mapping[str, str], names: Container[str], *, equations: bool
) -> Words:
    """Divide what follows the name of a command. `options` says which options take a value, and `short` has those
    with a short name by it. A short name without a value is not an option if it may be a minus before one of `names`.
    The text of a command for `equations` may be `y=a*x` or `y~a*x`, which elsewhere gives a name a value.

    The program needs no quotes: it continues where an operator stands beside a blank. Raises ValueError for an unclosed
    quote.
    """
    program: str | None = None
    rest: list[str] = []
    operands: list[str] = []
    joined = False
    takes_value = False
    separated = [*_blank_separated(text)]
    for (word, quoted), (behind, _) in zip(separated, [*separated[1:], ("", False)]):
        option = short.get(word)
        if (
            option is not None
            and not quoted
            and not takes_value
            and _ends_program(word, behind, options[option], names)
        ):
            word = option
        if takes_value:
            rest.append(word)
            takes_value = False
        elif not quoted and word.partition("=")[0] in options:
            rest.append(word)
            takes_value = "=" not in word and options[word]
            joined = False
        elif program is None and (equations or quoted or not BINDING.match(word) or word.endswith(";")):
            program, joined = word, not quoted
        elif joined and program is not None and not quoted and _goes_on(program, word):
            program += f" {word}"
        else:
            rest.append(word)
            operands += [] if BINDING.match(word) else [word]
            joined = False
    return Words(program, rest, operands)


# A path from the root or from the home directory, which is not a division.
_PATH = re.compile(r"~?/[^\W\d][\w-]*[/.]\w")
# NAME='VALUE' or --option='VALUE'.
_QUOTED_VALUE = re.compile(r"^([\w-]+=)(['\"])(.*)\2$", re.DOTALL)


def _ends_program(word: str, behind: str, takes_value: bool, names: Container[str]) -> bool:
    """Return whether a word is the short name of an option, and not an operand with a minus, which is followed by an
    operator or by nothing."""
    if behind and _RIGHT_OPEN.match(behind) is not None and not _PATH.match(behind):
        return False
    return bool(behind) if takes_value else word[1:] not in names


def _goes_on(program: str, word: str) -> bool:
    """Return whether a word after a blank belongs to the program before it."""
    if _LEFT_OPEN.search(program):
        return True
    return _RIGHT_OPEN.match(word) is not None and not word.startswith("--") and not _PATH.match(word)


def _blank_separated(text: str) -> Iterator[tuple[str, bool]]:
    """The words of a text, and whether each was quoted as a whole; blanks in brackets separate nothing."""
    at = 0
    while (start := _start_of_word(text, at)) is not None:
        if text[start] in "'\"":
            end = text.find(text[start], start + 1)
            if end < 0:
                raise ValueError(f"a quote is not closed: {text[start:]}")
            yield text[start + 1 : end], True
            at = end + 1
            continue
        depth, at = 0, start
        while at < len(text) and (depth > 0 or not text[at].isspace()):
            depth += (text[at] in "([{") - (text[at] in ")]}")
            # The value in NAME='two words'.
            closing = text.find(text[at], at + 1) if text[at] in "'\"" and text[at - 1] == "=" else -1
            at = max(at, closing) + 1
        yield _QUOTED_VALUE.sub(r"\1\3", text[start:at]), False


def _start_of_word(text: str, at: int) -> int | None:
    return next((i for i in range(at, len(text)) if not text[i].isspace()), None)

"""The line editor of the shell, on prompt_toolkit: completion, history, several lines, carets under mistakes, and a
bottom line about the function at the cursor."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from textwrap import fill

import typer
from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer
from prompt_toolkit.completion import Completion as MenuItem
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, completion_is_selected, has_focus, is_done
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import (
    BufferControl,
    CompletionsMenu,
    ConditionalContainer,
    Dimension,
    Float,
    FloatContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments
from prompt_toolkit.output import ColorDepth, Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_cwidth
from prompt_toolkit.widgets import SearchToolbar

from gradcli.cli.shell.typed_text import CONTINUED, PROMPT, inputs_of, is_complete
from gradcli.type_hints import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from gradcli.cli.shell.live_checks import FunctionDescriptions, Mistake
    from gradcli.cli.shell.shell_session import Session

# The size in bytes from which the file is cut, and the number of inputs that are kept then.
_MAX_BYTES, _KEPT_INPUTS = 2_000_000, 5_000
_OWNER_ALONE, _FOLDER_OF_OWNER = 0o600, 0o700


def default_path() -> str:
    """The path of the file, in the folder that the system has for the settings of a program."""
    return os.path.join(typer.get_app_dir("gradcli"), "shell-history")


class HistoryFile:
    """The inputs of former sessions. Errors of reading or writing the file are ignored."""

    def __init__(self, path: str) -> None:
        self._path = path
        with suppress(OSError):
            os.makedirs(os.path.dirname(path), mode=_FOLDER_OF_OWNER, exist_ok=True)
            self._shorten()

    def entries(self) -> list[str]:
        """The inputs, the oldest first."""
        with suppress(OSError), open(self._path, encoding="utf-8", errors="replace") as file:
            return [*_texts(file)]
        return []

    def append(self, text: str) -> None:
        with suppress(OSError):
            self._write(self._path, os.O_APPEND, _line(text))

    def _shorten(self) -> None:
        """Drop the oldest inputs of a file that is too large."""
        if not os.path.exists(self._path) or os.path.getsize(self._path) < _MAX_BYTES:
            return
        beside = f"{self._path}.{os.getpid()}"
        self._write(beside, os.O_TRUNC, "".join(map(_line, self.entries()[-_KEPT_INPUTS:])))
        os.replace(beside, self._path)

    @staticmethod
    def _write(path: str, flag: int, text: str) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | flag, _OWNER_ALONE)
        try:
            # The file may have been made by another program.
            if hasattr(os, "fchmod"):
                os.fchmod(descriptor, _OWNER_ALONE)
            os.write(descriptor, text.encode("ascii"))
        finally:
            os.close(descriptor)


def _line(text: str) -> str:
    return json.dumps(text) + "\n"


def _texts(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        with suppress(ValueError):
            text = json.loads(line)
            if isinstance(text, str):
                yield text


_INDENT = "    "
# Rows for the menu of completions.
_MENU_ROWS = 8
_STYLE = Style.from_dict(
    {
        "prompt": "bold",
        "mistake": "underline",
        "carets": "ansired",
        "bottom": "reverse",
        "completion-menu": "noreverse bg:default fg:default",
        "completion-menu.completion.current": "reverse",
        "completion-menu.meta.completion": "bg:default fg:default",
        "completion-menu.meta.completion.current": "reverse",
    }
)


class Editor:
    """Reads inputs at a terminal."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._descriptions: FunctionDescriptions | None = None
        # The text and cursor that were checked last, and the mistake in it.
        self._checked: tuple[str, int, bool] | None = None
        self._mistake: Mistake | None = None
        environment = session.environment
        self._buffer = Buffer(
            completer=_Completer(session),
            history=_History(HistoryFile(default_path())),
            multiline=True,
            enable_history_search=True,
        )
        self._application: Application[str] = Application(
            layout=self._layout(),
            key_bindings=self._key_bindings(),
            style=_STYLE,
            color_depth=ColorDepth.DEPTH_1_BIT if environment.variables.get("NO_COLOR") else None,
            include_default_pygments_style=False,
            input=create_input(environment.stdin),
            output=_output(environment.stdout),
        )
        self._application.after_render += self._load_once

    def inputs(self) -> Iterator[str]:
        """The inputs that are typed, until the end of input."""
        while True:
            self._buffer.reset()
            try:
                text = self._application.run()
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            yield from inputs_of(text)

    def _load_once(self, application: Application[str]) -> None:
        """Load the modules that compute, while the user reads the first prompt."""
        application.after_render -= self._load_once
        self._session.load_in_background(self._redraw)

    def _redraw(self) -> None:
        """Draw the screen again, asked for by another thread; between two prompts there is nothing to draw."""
        loop = self._application.loop
        with suppress(RuntimeError):
            if loop is not None:
                loop.call_soon_threadsafe(self._application.invalidate)

    # --- what is on the screen

    def _layout(self) -> Layout:
        search = SearchToolbar()
        text = Window(
            BufferControl(
                self._buffer,
                input_processors=[_Underlining(self)],
                search_buffer_control=search.control,
                preview_search=True,
            ),
            get_line_prefix=_prefix,
            wrap_lines=True,
            dont_extend_height=True,
        )
        carets = Window(FormattedTextControl(self._carets), wrap_lines=True, dont_extend_height=True)
        space = Window(height=self._height_of_space)
        bottom = Window(
            FormattedTextControl(self._bottom), wrap_lines=True, dont_extend_height=True, style="class:bottom"
        )
        menu = Float(CompletionsMenu(max_height=_MENU_ROWS, scroll_offset=1), xcursor=True, ycursor=True)
        rows = HSplit(
            [
                text,
                ConditionalContainer(carets, ~is_done & Condition(lambda: self.mistake() is not None)),
                ConditionalContainer(space, ~is_done),
            ]
        )
        with_bottom = ConditionalContainer(bottom, ~is_done & Condition(lambda: bool(self._bottom())))
        return Layout(HSplit([FloatContainer(rows, [menu]), search, with_bottom]), focused_element=text)

    def _height_of_space(self) -> Dimension:
        return Dimension(min=_MENU_ROWS if self._buffer.complete_state is not None else 0)

    def mistake(self) -> Mistake | None:
        """The mistake in the text as it is now."""
        workspace = self._session.loaded_workspace
        state = (self._buffer.text, self._buffer.cursor_position, workspace is not None)
        if state != self._checked:
            self._checked = state
            self._mistake = None
            if workspace is not None:
                from gradcli.cli.shell.live_checks import mistake

                self._mistake = mistake(state[0], state[1], workspace)
        return self._mistake

    def _carets(self) -> StyleAndTextTuples:
        found = self.mistake()
        if found is None:
            return []
        carets = self._row_of_carets(found)
        columns = self._application.output.get_size().columns
        # The message stands beside the carets, or where it is too long, below.
        beside = get_cwidth(carets) + 1 + get_cwidth(found.message) <= columns
        between = "" if not carets else " " if beside else "\n"
        return [("class:carets", carets + between), ("", fill(found.message, columns))]

    def _row_of_carets(self, found: Mistake) -> str:
        """Carets under the last row of the text; empty if the mistake is in another row."""
        text = self._buffer.text
        columns = self._application.output.get_size().columns
        line = text.rfind("\n") + 1
        if found.span.start < line:
            return ""
        before = get_cwidth(PROMPT) + get_cwidth(text[line : found.span.start])
        whole = get_cwidth(PROMPT) + get_cwidth(text[line:])
        if before // columns != whole // columns:
            return ""
        marked = max(1, get_cwidth(text[found.span.start : found.span.end]))
        at = before % columns
        return " " * at + "^" * min(marked, columns - at)

    def _bottom(self) -> str:
        workspace = self._session.loaded_workspace
        if workspace is None:
            return ""
        from gradcli.cli.shell.live_checks import FunctionDescriptions, function_at

        if self._descriptions is None:
            self._descriptions = FunctionDescriptions(workspace, self._redraw)
        name = function_at(self._buffer.text, self._buffer.cursor_position, self._descriptions.is_function)
        columns = self._application.output.get_size().columns
        return "" if name is None else fill(self._descriptions.of(name), columns)

    # --- what keys do

    def _key_bindings(self) -> KeyBindings:
        keys = KeyBindings()
        typing = has_focus(self._buffer)

        @keys.add("enter", filter=typing & completion_is_selected)
        def _(_event: KeyPressEvent) -> None:
            self._buffer.complete_state = None

        @keys.add("enter", filter=typing & ~completion_is_selected)
        def _(event: KeyPressEvent) -> None:
            if is_complete(self._buffer.text) and self._is_at_end():
                self._buffer.append_to_history()
                event.app.exit(result=self._buffer.text)
            else:
                self._new_line()

        @keys.add("escape", "enter", filter=typing)
        def _(_event: KeyPressEvent) -> None:
            self._new_line()

        @keys.add("tab", filter=typing & Condition(self._is_in_indent))
        def _(_event: KeyPressEvent) -> None:
            self._buffer.insert_text(_INDENT)

        @keys.add("c-c")
        @keys.add("<sigint>")
        def _(event: KeyPressEvent) -> None:
            # The history keeps what was typed.
            if self._buffer.text.strip():
                self._buffer.append_to_history()
            event.app.exit(exception=KeyboardInterrupt)

        @keys.add("c-d", filter=typing & Condition(lambda: not self._buffer.text))
        def _(event: KeyPressEvent) -> None:
            event.app.exit(exception=EOFError)

        return keys

    def _is_at_end(self) -> bool:
        """Return whether the text is one line, or the cursor is at its end."""
        text = self._buffer.text
        return "\n" not in text or not text[self._buffer.cursor_position :].strip()

    def _is_in_indent(self) -> bool:
        before = self._buffer.document.current_line_before_cursor
        return "\n" in self._buffer.text and not before.strip()

    def _new_line(self) -> None:
        line = self._buffer.document.current_line_before_cursor
        indent = line[: len(line) - len(line.lstrip())]
        self._buffer.insert_text("\n" + indent + (_INDENT if line.rstrip().endswith((":", "{")) else ""))


def _output(stdout: TextIO | None) -> Output:
    """The terminal. It is not asked for the position of the cursor: one that does not answer would be waited for, and
    the rows below the text need not be at the bottom of the screen."""
    output = create_output(stdout)
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False
    return output


def _prefix(line: int, wraps: int) -> StyleAndTextTuples:
    return [] if wraps else [("class:prompt", CONTINUED if line else PROMPT)]


class _Underlining(Processor):
    """Underlines the mistake in the text."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        fragments = transformation_input.fragments
        found = self._editor.mistake()
        if found is None:
            return Transformation(fragments)
        start = transformation_input.document.translate_row_col_to_index(transformation_input.lineno, 0)
        letters = explode_text_fragments(fragments)
        for i in range(max(0, found.span.start - start), min(found.span.end - start, len(letters))):
            letters[i] = (f"{letters[i][0]} class:mistake", letters[i][1])
        return Transformation(letters)


class _Completer(Completer):
    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[MenuItem]:
        from gradcli.cli.shell.completions import completions

        for found in completions(document.text_before_cursor, self._session.workspace):
            yield MenuItem(found.text, start_position=-found.replaced, display_meta=found.about)


class _History(History):
    def __init__(self, file: HistoryFile) -> None:
        super().__init__()
        self._file = file

    def load_history_strings(self) -> Iterable[str]:
        return reversed(self._file.entries())

    def store_string(self, string: str) -> None:
        self._file.append(string)

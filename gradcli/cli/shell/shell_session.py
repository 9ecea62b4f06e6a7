"""The state of a session: its streams, its names, its transcript, and whether it has ended."""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from types import SimpleNamespace

from gradcli.cli import main
from gradcli.cli.process.environment import Environment
from gradcli.errors import ExitStatus, GradcliError
from gradcli.type_hints import TYPE_CHECKING

if TYPE_CHECKING:
    from gradcli.cli.shell.workspace import Workspace

# An option in a hint.
_OPTION = re.compile(r"(?<![\w-])--[a-z]")


class Session(ABC):
    """A session: its names, its transcript, and how it ended. With `traceback`, errors say where in gradcli they were
    raised."""

    def __init__(self, environment: Environment, *, interactive: bool = False, traceback: bool = False) -> None:
        self.environment = environment
        self.interactive = interactive
        self.traceback = traceback
        self.transcript: list[str] = []
        self.is_over = False
        # That of the first input that failed.
        self.status = ExitStatus.SUCCESS
        self._loading = threading.Lock()

    @property
    def workspace(self) -> Workspace:
        with self._loading:
            return self._workspace

    @cached_property
    def _workspace(self) -> Workspace:
        # Imported here because it needs everything that computes: the prompt comes first.
        from gradcli.cli.shell.workspace import Workspace

        return Workspace(self.environment, self.environment.write_error, check_hint)

    @property
    def loaded_workspace(self) -> Workspace | None:
        """The workspace, where everything is loaded already."""
        return None if self._loading.locked() else vars(self).get("_workspace")

    def load_in_background(self, loaded: Callable[[], None]) -> None:
        """Load what computes while the user reads the prompt, then call `loaded`."""

        def load() -> None:
            # Two threads do not import at once: libraries whose modules import each other are not made for that.
            with self._loading:
                from gradcli.cli import command
                from gradcli.language.names import reference

                self._workspace  # noqa: B018
                reference.entries()
                for name in main.COMMANDS:
                    command.parameters_of(name)
            loaded()

        threading.Thread(target=load, daemon=True).start()

    @abstractmethod
    def run_file(self, path: str) -> None:
        """Run the inputs of a file."""


def check_hint(error: GradcliError, words: Sequence[str]) -> None:
    """Remove from the hint of an error what does not help; `words` are those of a command line that raises it."""
    # Imported here because only errors need it.
    from gradcli.cli import command, hints

    def options_of(name: str) -> Collection[str]:
        return command.parameters_of(name).options if name in main.COMMANDS else ()

    hints.check(error, "eval", SimpleNamespace(words=words), options_of)
    if error.hint is not None and _OPTION.search(error.hint) and "gradcli" not in error.hint:
        error.hint = f"{error.hint}; :eval PROGRAM takes options"

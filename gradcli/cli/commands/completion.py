"""The command `gradcli completion`: completion by the Tab key in shells."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from gradcli.cli import options as opt
from gradcli.cli.command import Command
from gradcli.cli.completion_scripts import SCRIPTS, completed_commands
from gradcli.cli.main import COMMANDS
from gradcli.cli.process.environment import Environment
from gradcli.errors import ExitStatus, UsageError, did_you_mean
from gradcli.language.names import reference

_HELP = """\
Prints the script that completes commands, options, their values, functions after ops, and files after @.

Examples:

  gradcli completion bash --install

  gradcli completion zsh > ~/.zfunc/_gradcli

  gradcli completion fish --install
"""


class CompletionOptions(opt.Options):
    """The options of `gradcli completion`."""

    shell: Annotated[str, opt.Argument(metavar="|".join(SCRIPTS), help="The shell.")]
    install: Annotated[
        bool,
        opt.Option(
            "--install",
            brief="Write it where the shell looks.",
            help="Write it where the shell looks, and say what is left to do.",
        ),
    ] = False


def run(options: CompletionOptions, environment: Environment) -> ExitStatus:
    """Print or install the script of a shell; see `gradcli completion --help`."""
    shell = options.shell
    if shell not in SCRIPTS:
        hint = did_you_mean(shell, SCRIPTS, f"the shells are {', '.join(SCRIPTS)}")
        raise UsageError(f"there is no completion for {shell!r}", hint=hint)
    names = [entry.operation.name for entry in reference.entries()]
    words = {"ops": names, "help": [*COMMANDS, *names], "completion": [*SCRIPTS]}
    script = SCRIPTS[shell](completed_commands(COMMANDS, words))
    if not options.install:
        environment.write(script)
        return ExitStatus.SUCCESS
    path, left = _place(shell, environment.variables)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script, encoding="utf-8")
    except OSError as error:
        hint = f"gradcli completion {shell} > FILE writes it elsewhere"
        raise UsageError(f"cannot write {path}: {error.strerror or error}", hint=hint) from None
    environment.write(f"{path}\n{left}\n")
    return ExitStatus.SUCCESS


def _place(shell: str, variables: Mapping[str, str]) -> tuple[Path, str]:
    """The file in which a shell looks for the completion of gradcli, and what the user has yet to do."""
    home = Path(variables.get("HOME") or Path.home())
    data = Path(variables.get("XDG_DATA_HOME") or home / ".local" / "share")
    configuration = Path(variables.get("XDG_CONFIG_HOME") or home / ".config")
    if shell == "bash":
        user = variables.get("BASH_COMPLETION_USER_DIR")
        path = (Path(user) if user else data / "bash-completion") / "completions" / "gradcli"
        return path, f"New shells have it where bash-completion is installed; elsewhere add to ~/.bashrc: . '{path}'"
    if shell == "zsh":
        path = Path(variables.get("ZDOTDIR") or home) / ".zfunc" / "_gradcli"
        left = f"Add to ~/.zshrc, if it is not there: fpath+=('{path.parent}'); autoload -Uz compinit; compinit"
        return path, left
    if shell == "fish":
        return configuration / "fish" / "completions" / "gradcli.fish", "New shells have it."
    path = configuration / "powershell" / "gradcli-completion.ps1"
    return path, f"Add to the file $PROFILE: . '{path}'"


COMMAND = Command(CompletionOptions, run, _HELP)

"""The command `gradcli completion`: completion by the Tab key in shells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote

from gradcli.cli import options as opt
from gradcli.cli.command import Command, command_named
from gradcli.cli.main import COMMANDS
from gradcli.cli.options import Field, Option, argument, fields
from gradcli.cli.process.environment import Environment
from gradcli.errors import ExitStatus, UsageError, did_you_mean
from gradcli.language.names import reference
from gradcli.named_tuples import NamedTuple
from gradcli.type_hints import Annotated

# The prefix of the path in x=@data.csv.
_FILE_SIGN = "@"
# The values of options that are paths, and the words that are files, as help pages name them.
_PATHS, _FILES = ("PATH", "DIR", "FILE"), ("[DATA]", "FILE", "PATH")
_HELP_OPTIONS = {"--help": "Explain the command on one screen.", "--help-all": "Explain all of its options."}


def bash(commands: Sequence[CompletedCommand]) -> str:
    cases = "\n".join(_bash_case(command) for command in commands)
    names = " ".join(command.name for command in commands)
    return f"""\
# Completion of gradcli for bash: source this file, or put it where bash-completion looks.
_gradcli() {{
    local before=${{COMP_LINE:0:COMP_POINT}} word rest previous command= i=1
    word=${{before##*[[:space:]]}}
    rest=$word
    # bash replaces what stands behind the last of the characters at which it divides words.
    while [[ $rest == *[$COMP_WORDBREAKS]* ]]; do
        rest=${{rest#*[$COMP_WORDBREAKS]}}
    done
    local kept=${{word%"$rest"}}
    # An @ divides words and begins the next.
    kept=${{kept%@}}
    before=${{before%"$word"}}
    previous=${{before%"${{before##*[![:space:]]}}"}}
    previous=${{previous##*[[:space:]]}}
    for (( ; i < COMP_CWORD; i++ )); do
        if [[ ${{COMP_WORDS[i]}} != -* ]]; then
            command=${{COMP_WORDS[i]}}
            break
        fi
    done
    local options= values= words={quote(names)} files= start=
    case $command in
    "") options='--version --help' ;;
{cases}
    *) words= ;;
    esac
    if [[ $word == --*=* ]]; then
        previous=${{word%%=*}}
        start=$previous=
    elif [[ $word == *{_FILE_SIGN}* ]]; then
        start=${{word%{_FILE_SIGN}*}}{_FILE_SIGN}
        files=1
        previous=
    fi
    case $command:$previous in
{_bash_values(commands)}
    esac
    local IFS=$'\\n' reply replies
    if [[ -n $values ]]; then
        words=$values
    elif [[ $word == -* ]]; then
        words=$options
        files=
    fi
    if [[ -n $files ]]; then
        replies=($(compgen -f -- "${{word#"$start"}}"))
        compopt -o filenames 2>/dev/null
    else
        replies=($(IFS=' '; compgen -W "$words" -- "${{word#"$start"}}"))
    fi
    COMPREPLY=()
    for reply in "${{replies[@]}}"; do
        reply=$start$reply
        COMPREPLY+=("${{reply#"$kept"}}")
    done
}}

complete -F _gradcli gradcli
"""


def _bash_case(command: CompletedCommand) -> str:
    options = " ".join(name for option in command.options for name in _names(option))
    files = " files=1" if command.takes_files else ""
    return f"    {command.name}) options={quote(options)} words={quote(' '.join(command.words))}{files} ;;"


def _bash_values(commands: Sequence[CompletedCommand]) -> str:
    lines = []
    for command in commands:
        for option in command.options:
            if option.values is None:
                continue
            pattern = "|".join(f"{command.name}:{name}" for name in _names(option))
            # Where anything may stand nothing is proposed.
            found = "files=1" if option.takes_file else f"values={quote(' '.join(option.values) or ' ')} files="
            lines.append(f"        {pattern}) {found} ;;")
    return "\n".join(lines)


def _names(option: Completed) -> Iterator[str]:
    yield option.name
    if option.short:
        yield option.short


def zsh(commands: Sequence[CompletedCommand]) -> str:
    listed = "\n".join(f"        {quote(f'{c.name}:{c.summary}')}" for c in commands)
    cases = "\n".join(_zsh_case(command) for command in commands)
    return f"""\
#compdef gradcli
# Completion of gradcli for zsh: put it as _gradcli into a directory of $fpath.
_gradcli() {{
    local command= previous=${{words[CURRENT-1]}}
    local -a commands options values names
    local files=
    local -i i
    for (( i = 2; i < CURRENT; i++ )); do
        if [[ ${{words[i]}} != -* ]]; then
            command=${{words[i]}}
            break
        fi
    done
    if [[ -z $command ]]; then
        if [[ $PREFIX == -* ]]; then
            compadd -- --version --help
            return
        fi
        commands=(
{listed}
        )
        _describe command commands
        return
    fi
    if [[ $PREFIX == --*=* ]]; then
        previous=${{PREFIX%%=*}}
        compset -P '*='
    elif [[ $PREFIX == *{_FILE_SIGN}* ]]; then
        compset -P '*{_FILE_SIGN}'
        _files
        return
    fi
    case $command in
{cases}
    esac
    if [[ $PREFIX == -* ]]; then
        _describe option options
    elif (( $#values )); then
        [[ $values[1] == ' ' ]] || compadd -- $values
    elif [[ -n $files ]]; then
        _files
    else
        compadd -- $names
    fi
}}

# Loaded by compinit it is the function itself; sourced it declares it.
if [[ $funcstack[1] == _gradcli ]]; then
    _gradcli "$@"
else
    compdef _gradcli gradcli
fi
"""


def _zsh_case(command: CompletedCommand) -> str:
    options = " ".join(quote(f"{name}:{option.text}") for option in command.options for name in _names(option))
    lines = [
        f"    {command.name})",
        f"        options=({options})",
        f"        names=({' '.join(map(quote, command.words))})",
    ]
    if command.takes_files:
        lines.append("        files=1")
    lines.append("        case $previous in")
    for option in command.options:
        if option.values is None:
            continue
        values = " ".join(map(quote, option.values)) or "' '"
        found = "files=1" if option.takes_file else f"values=({values})"
        lines.append(f"        {'|'.join(_names(option))}) {found} ;;")
    return "\n".join([*lines, "        esac", "        ;;"])


def fish(commands: Sequence[CompletedCommand]) -> str:
    lines = [
        "# Completion of gradcli for fish: put it as gradcli.fish into its directory of completions.",
        "function __gradcli_files",
        f"    set -l word (commandline -ct); set -l parts (string split -rm1 {_FILE_SIGN} -- $word)",
        "    test (count $parts) -eq 2; or return",
        f"    for file in $parts[2]*; test -d $file; and set file $file/; echo $parts[1]{_FILE_SIGN}$file; end",
        "end",
        "function __gradcli_in",
        "    set -l words (commandline -opc)[2..]; set -l given (string match -v -- '-*' $words)",
        '    test "$given[1]" = "$argv[1]"',
        "end",
        "function __gradcli_at",
        f"    string match -q -- '*{_FILE_SIGN}*' (commandline -ct)",
        "end",
        "complete -c gradcli -f",
        "complete -c gradcli -n __gradcli_at -a '(__gradcli_files)'",
        "complete -c gradcli -n '__gradcli_in \"\"' -l version -s V -d 'Show the version and exit.'",
    ]
    for command in commands:
        lines.append(f"complete -c gradcli -n '__gradcli_in \"\"' -a {command.name} -d {_fish(command.summary)}")
        inside = f"complete -c gradcli -n '__gradcli_in {command.name}'"
        if command.words:
            lines.append(f"{inside} -a {_fish(' '.join(command.words))}")
        if command.takes_files:
            lines.append(f"{inside} -F")
        for option in command.options:
            short = f" -s {option.short[1:]}" if option.short else ""
            values = (
                ""
                if option.values is None
                else " -rF"
                if option.takes_file
                else f" -x -a {_fish(' '.join(option.values))}"
            )
            lines.append(f"{inside} -l {option.name[2:]}{short}{values} -d {_fish(option.text)}")
    return "\n".join([*lines, ""])


def _fish(text: str) -> str:
    """A text in the quotes of fish, in which only the quote and the backslash are special."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def powershell(commands: Sequence[CompletedCommand]) -> str:
    def listed(words: Sequence[str]) -> str:
        return f"@({', '.join(map(_powershell, words))})"

    tables = []
    for command in commands:
        options = [name for option in command.options for name in _names(option)]
        values = "; ".join(
            f"{_powershell(name)} = {listed(option.values)}"
            for option in command.options
            if option.values
            for name in _names(option)
        )
        tables.append(
            f"    {_powershell(command.name)} = @{{ options = {listed(options)}; words = {listed(command.words)}; values = @{{ {values} }} }}"
        )
    return f"""\
# Completion of gradcli for PowerShell: put this into the file $PROFILE, or a line that runs it: . PATH
Register-ArgumentCompleter -Native -CommandName gradcli -ScriptBlock {{
    param($word, $ast, $position)
    $commands = [ordered]@{{
{chr(10).join(tables)}
    }}
    $given = @($ast.CommandElements | Select-Object -Skip 1 | Where-Object {{ $_.Extent.EndOffset -lt $position }} | ForEach-Object {{ $_.ToString() }})
    $command = $given | Where-Object {{ -not $_.StartsWith('-') }} | Select-Object -First 1
    if (-not $command) {{ $found = @($commands.Keys) }}
    elseif (-not $commands.Contains($command)) {{ $found = @() }}
    elseif ($commands[$command].values.ContainsKey($given[-1])) {{ $found = $commands[$command].values[$given[-1]] }}
    elseif ($word.StartsWith('-')) {{ $found = $commands[$command].options }}
    else {{ $found = $commands[$command].words }}
    $found | Where-Object {{ $_.StartsWith($word) }} | ForEach-Object {{
        [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
    }}
}}
"""


def _powershell(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


SCRIPTS: dict[str, Callable[[Sequence[CompletedCommand]], str]] = {
    "bash": bash,
    "zsh": zsh,
    "fish": fish,
    "powershell": powershell,
}


class Completed(NamedTuple):
    """An option with its short name, what it explains, and the `values` it may have: None for a flag, an empty list
    where anything may stand. `takes_file` is whether its value is the path of a file."""

    name: str
    short: str | None
    text: str
    values: Sequence[str] | None
    takes_file: bool


class CompletedCommand(NamedTuple):
    """A command with its options, the `words` that may follow it, and whether files may."""

    name: str
    summary: str
    options: Sequence[Completed]
    words: Sequence[str]
    takes_files: bool


def completed_commands(commands: Mapping[str, str], words: Mapping[str, Sequence[str]]) -> list[CompletedCommand]:
    """The commands by their summaries; `words` has what may follow some of them."""
    return [_command(name, summary, words.get(name, ())) for name, summary in commands.items()]


def _command(name: str, summary: str, words: Sequence[str]) -> CompletedCommand:
    options: type = command_named(name).options
    found = [_option(field) for field in fields(options) if isinstance(field.declared, Option)]
    found += [Completed(option, None, text, None, False) for option, text in _HELP_OPTIONS.items()]
    expected = argument(options)
    takes_files = expected is not None and any(word in expected.declared.metavar for word in _FILES)
    return CompletedCommand(name, summary, found, words, takes_files)


def _option(field: Field) -> Completed:
    declared = field.declared
    text = declared.brief or declared.help
    if field.kind is bool:
        return Completed(declared.name, declared.short, text, None, False)
    metavar = declared.metavar or ""
    values = [value for value in metavar.split("|") if value.replace(":", "").replace("-", "_").isidentifier()]
    fixed = [value for value in values if value == value.lower()] if "|" in metavar else []
    takes_file = any(metavar.startswith(path) for path in _PATHS)
    return Completed(declared.name, declared.short, text, [] if takes_file else fixed, takes_file)


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

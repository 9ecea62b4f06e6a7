"""Tests the completion by the Tab key in real shells, at a pseudo-terminal; shells that are not installed are left out."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pexpect
import pytest

from gradcli.cli.main import COMMANDS

_START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
_LOAD = {
    "bash": ["bind 'set bell-style none'", "bind 'set enable-bracketed-paste off'", "source gradcli.bash"],
    "zsh": ["autoload -Uz compinit; compinit -u -D; source gradcli.zsh"],
    "fish": ["source gradcli.fish"],
}
# The program that stands for gradcli and prints its arguments.
_ECHO = "#!/bin/sh\nprintf 'ARGS:'; printf '<%s>' \"$@\"; echo ':END'\n"


class Terminal:
    """A shell at a pseudo-terminal that has the completion."""

    def __init__(self, shell: str, directory: Path, script: str) -> None:
        directory.mkdir()
        (directory / f"gradcli.{shell}").write_text(script, encoding="utf-8")
        (directory / "gradcli").write_text(_ECHO, encoding="utf-8")
        (directory / "gradcli").chmod(0o755)
        (directory / "data.csv").write_text("x\n1\n", encoding="utf-8")
        environment = {"PATH": f"{directory}:/usr/local/bin:/usr/bin:/bin", "HOME": str(directory), "TERM": "dumb"}
        environment |= {"LC_ALL": "C.UTF-8", "PS1": "$ "}
        words = _START[shell]
        self.child = pexpect.spawn(
            words[0], words[1:], env=environment, cwd=str(directory), encoding="utf-8", timeout=20, dimensions=(24, 200)
        )
        for line in _LOAD[shell]:
            self.child.sendline(line)
        self.child.sendline("printf 'REA%s\\n' DY")
        self.child.expect_exact("READY")

    def arguments(self) -> str:
        """The arguments that the program is called with next."""
        self.child.expect("ARGS:(.*):END")
        return self.child.match[1]

    def close(self) -> None:
        self.child.close(force=True)


@pytest.fixture
def terminals(run, tmp_path):
    """A terminal for each shell that is installed, by the name of the shell."""
    opened = {
        shell: Terminal(shell, tmp_path / shell, run("completion", shell).out)
        for shell in _START
        if shutil.which(shell)
    }
    if not opened:
        pytest.skip("no shell is installed")
    yield opened
    for each in opened.values():
        each.close()


def test_what_is_completed(terminals):
    """Tab is pressed after what is typed, in all shells at once."""
    # Bash completes as it reads, and leaves what is typed meanwhile for later; zsh and fish need time to show it.
    patience = 1.0 if terminals.keys() - {"bash"} else 0.0

    def send(text, seconds):
        for each in terminals.values():
            each.child.send(text)
        time.sleep(patience * seconds)

    for typed, arguments in (
        ("gradcli ev", "<eval>"),
        ("gradcli eval x --jac", "<eval><x><--jacobian>"),
        ("gradcli eval x --backend tor", "<eval><x><--backend><torch>"),
        ("gradcli diff x --to lat", "<diff><x><--to><latex>"),
        ("gradcli ops logadd", "<ops><logaddexp>"),
        ("gradcli eval x x=@dat", "<eval><x><x=@data.csv>"),
        ("gradcli eval -f dat", "<eval><-f><data.csv>"),
        ("gradcli fit y dat", "<fit><y><data.csv>"),
    ):
        send(typed, 0.3)
        send("\t", 0.5)
        send("\r", 0)
        for shell, each in terminals.items():
            assert each.arguments().replace("<>", "") == arguments, (shell, typed)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_a_key_starts_no_process(run, tmp_path):
    (tmp_path / "script").write_text(run("completion", "bash").out)
    code = (
        "source ./script; COMP_LINE='gradcli ops log'; COMP_POINT=${#COMP_LINE}; COMP_WORDS=(gradcli ops log); COMP_CWORD=2\n"
        "_gradcli; echo ${#COMPREPLY[@]}"
    )
    bash = shutil.which("bash")
    nowhere = {"PATH": str(tmp_path / "nothing")}
    done = subprocess.run([bash, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True, env=nowhere)
    assert int(done.stdout) > 5
    assert done.stderr == ""


def test_the_script_of_powershell_has_every_command(run):
    script = run("completion", "powershell").out
    assert all(f"'{name}' = @{{" in script for name in COMMANDS)


@pytest.mark.parametrize(
    ("shell", "path"),
    [
        ("bash", ".local/share/bash-completion/completions/gradcli"), ("zsh", ".zfunc/_gradcli"),
        ("fish", ".config/fish/completions/gradcli.fish"), ("powershell", ".config/powershell/gradcli-completion.ps1"),
    ],
)  # fmt: skip
def test_installing(run, tmp_path, shell, path):
    done = run("completion", shell, "--install", variables={"HOME": str(tmp_path)})
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"{tmp_path / path}\n")
    assert (tmp_path / path).read_text(encoding="utf-8") == run("completion", shell).out


def test_wrong_use(run, tmp_path):
    assert "did you mean 'bash'?" in run("completion", "bahs").err
    (tmp_path / ".config").write_text("")
    done = run("completion", "fish", "--install", variables={"HOME": str(tmp_path)})
    assert (done.status, "cannot write" in done.err) == (2, True)
    assert run("completion").status == 2

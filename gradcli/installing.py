"""The command that installs what an extra brings, as it is typed where the user is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any


def command(extra: str = "") -> str:
    """The command that installs gradcli anew, with an extra of it: from where it is, where that is known."""
    # Only a message has use for them.
    from shlex import quote

    requirements = _requirements(extra)
    return f"{_installer(requirements == [*_packages(extra)])} {' '.join(map(quote, requirements))}"


# What tools that give a command an environment of its own leave in that, and how they install the command anew, and
# packages beside it.
_TOOLS = {
    "pipx_metadata.json": ("pipx install --force", "pipx inject gradcli"),
    "uv-receipt.toml": ("uv tool install --force", None),
}


def _installer(beside: bool) -> str:
    """What installed gradcli, as a command that installs requirements, or packages `beside` it."""
    for noted, (anew, added) in _TOOLS.items():
        if os.path.isfile(os.path.join(sys.prefix, noted)):
            return (added or f"uv pip install --python {_python()}") if beside else anew
    if not _has_pip() and _is_of_uv():
        return f"uv pip install --python {_python()}"
    return f"{_pip()} install"


def _has_pip() -> bool:
    from importlib.machinery import PathFinder

    # Other finders take the question for an import: that of setuptools then gives up its own distutils.
    return PathFinder.find_spec("pip") is not None


def _is_of_uv() -> bool:
    """Whether uv made the virtual environment."""
    try:
        with open(os.path.join(sys.prefix, "pyvenv.cfg"), encoding="utf-8") as noted:
            return any(line.startswith("uv = ") for line in noted)
    except OSError:
        return False


def _pip() -> str:
    """What installs for the Python that runs, which need not be the first one that is found."""
    from shutil import which

    found = which("pip")
    if found is not None and os.path.dirname(found) == os.path.dirname(sys.executable):
        return "pip"
    return f"{_python()} -m pip"


def _python() -> str:
    """The Python that runs, as it is typed here."""
    from shlex import quote

    inside = os.path.relpath(sys.executable)
    return quote(sys.executable if inside.startswith(os.pardir) else inside)


def _requirements(extra: str) -> list[str]:
    suffix = f"[{extra}]" if extra else ""
    checkout = _checkout()
    if checkout is not None:
        return [f"{_here(checkout)}{suffix}"]
    origin = _origin()
    if origin is None:
        # An index had it.
        return [f"gradcli{suffix}"]
    place = origin["url"].removeprefix("file://")
    if "dir_info" in origin and os.path.isdir(place):
        return [*(["-e"] if origin["dir_info"].get("editable") else []), f"{_here(place)}{suffix}"]
    version_control = origin.get("vcs_info", {})
    if version_control:
        return [f"gradcli{suffix} @ {version_control['vcs']}+{origin['url']}@{version_control['commit_id']}"]
    if place == origin["url"] or os.path.isfile(place):
        return [f"gradcli{suffix} @ {origin['url']}"]
    # What it was installed from is gone.
    return [*_packages(extra)] or ["gradcli"]


def _here(directory: str) -> str:
    """A directory as it is said in the current one."""
    try:
        return "." if os.path.samefile(directory, os.curdir) else directory
    except OSError:
        return directory


def _checkout() -> str | None:
    """The checkout that this file lies in, None where it has been installed elsewhere."""
    parent = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return parent if os.path.isfile(os.path.join(parent, "pyproject.toml")) else None


def _origin() -> dict[str, Any] | None:
    """What the installer noted of a direct origin (PEP 610)."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        noted = distribution("gradcli").read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    return json.loads(noted) if noted else None


def _packages(extra: str) -> Iterator[str]:
    """Those that an extra asks for."""
    from importlib.metadata import requires

    for requirement in requires("gradcli") or ():
        package, _, condition = requirement.partition(";")
        if condition.replace("'", '"').strip() == f'extra == "{extra}"':
            yield package.strip()

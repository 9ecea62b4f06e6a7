"""Finds the shell command that installs an optional extra in the running environment, for hints of errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any


def install_command(extra: str = "") -> str:
    """The command that reinstalls gradcli with an extra, from its original source where that is known."""
    # Imported here as only error messages need it.
    from shlex import quote

    requirements = _requirements(extra, _other_extras(extra) if extra and _tool() else ())
    return f"{_installer(requirements == [*_packages(extra)])} {' '.join(map(quote, requirements))}"


# Tools that install a command in an environment of its own. Each has the file that marks such an environment, the
# command that reinstalls gradcli, and the command that adds packages to it.
_TOOLS = {
    "pipx_metadata.json": ("pipx install --force", "pipx inject gradcli"),
    "uv-receipt.toml": ("uv tool install --force", None),
}


def _tool() -> tuple[str, str | None] | None:
    """The commands of the tool that installed gradcli in an environment of its own, if one did."""
    return next((found for noted, found in _TOOLS.items() if os.path.isfile(os.path.join(sys.prefix, noted))), None)


def _installer(beside: bool) -> str:
    """The tool that installed gradcli, as the start of a command; `beside` where only packages are to be added."""
    if (tool := _tool()) is not None:
        anew, added = tool
        return (added or f"uv pip install --python {_python()}") if beside else anew
    if not _has_pip() and _is_of_uv():
        return f"uv pip install --python {_python()}"
    return f"{_pip()} install"


def _has_pip() -> bool:
    from importlib.machinery import PathFinder

    # Query this finder alone: the one of setuptools would treat the query as an import and disable its distutils.
    return PathFinder.find_spec("pip") is not None


def _is_of_uv() -> bool:
    """Return whether the virtual environment was created by uv."""
    try:
        with open(os.path.join(sys.prefix, "pyvenv.cfg"), encoding="utf-8") as noted:
            return any(line.startswith("uv = ") for line in noted)
    except OSError:
        return False


def _pip() -> str:
    """The pip command of the running Python, which need not be the first one in PATH."""
    from shutil import which

    found = which("pip")
    if found is not None and os.path.dirname(found) == os.path.dirname(sys.executable):
        return "pip"
    return f"{_python()} -m pip"


def _python() -> str:
    """The path of the running Python, relative to the current directory where it is inside of it."""
    from shlex import quote

    inside = os.path.relpath(sys.executable)
    return quote(sys.executable if inside.startswith(os.pardir) else inside)


def _requirements(extra: str, others: Sequence[str] = ()) -> list[str]:
    """The requirements that install an extra. A tool that rebuilds its environment must also be given the `others`, the
    extras that are installed already."""
    suffix = f"[{','.join([*others, extra])}]" if extra else ""
    checkout = _checkout()
    if checkout is not None:
        return [f"{_here(checkout)}{suffix}"]
    origin = _origin()
    if origin is None:
        # It was installed from a package index.
        return [f"gradcli{suffix}"]
    place = origin["url"].removeprefix("file://")
    if "dir_info" in origin and os.path.isdir(place):
        return [*(["-e"] if origin["dir_info"].get("editable") else []), f"{_here(place)}{suffix}"]
    version_control = origin.get("vcs_info", {})
    if version_control:
        return [f"gradcli{suffix} @ {version_control['vcs']}+{origin['url']}@{version_control['commit_id']}"]
    if place == origin["url"] or os.path.isfile(place):
        return [f"gradcli{suffix} @ {origin['url']}"]
    # The source that it was installed from no longer exists.
    return [*_packages(extra)] or ["gradcli"]


def _here(directory: str) -> str:
    """A directory, or "." for the current one."""
    try:
        return "." if os.path.samefile(directory, os.curdir) else directory
    except OSError:
        return directory


def _checkout() -> str | None:
    """The root of the checkout that contains this file, or None where it is installed elsewhere."""
    parent = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return parent if os.path.isfile(os.path.join(parent, "pyproject.toml")) else None


def _origin() -> dict[str, Any] | None:
    """The direct origin that the installer recorded (PEP 610), or None."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        noted = distribution("gradcli").read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    return json.loads(noted) if noted else None


def _other_extras(extra: str) -> list[str]:
    """The extras whose packages are installed, beside this one."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        names = metadata("gradcli").get_all("Provides-Extra") or ()
    except PackageNotFoundError:
        return []
    return [name for name in names if name != extra and (needed := [*_packages(name)]) and all(map(_installed, needed))]


def _installed(requirement: str) -> bool:
    """Return whether the package of a requirement, as `polars>=1.34`, is installed; never for gradcli with extras."""
    from importlib.metadata import PackageNotFoundError, distribution

    name = requirement[: next((i for i, c in enumerate(requirement) if not (c.isalnum() or c in "._-")), None)]
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return name != "gradcli"


def _packages(extra: str) -> Iterator[str]:
    """The packages that an extra requires."""
    from importlib.metadata import requires

    for requirement in requires("gradcli") or ():
        package, _, condition = requirement.partition(";")
        if condition.replace("'", '"').strip() == f'extra == "{extra}"':
            yield package.strip()

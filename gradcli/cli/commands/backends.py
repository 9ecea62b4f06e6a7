"""The command `gradcli backends`: lists the array libraries that are available, with their devices."""

from __future__ import annotations

from gradcli.arrays import backends
from gradcli.arrays.backends import BackendStatus, Device
from gradcli.cli import options as opt
from gradcli.cli.command import Command
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering.render import show, show_json
from gradcli.errors import ExitStatus
from gradcli.io.text_tables import Table
from gradcli.type_hints import Any

_HEADER = ("backend", "version", "device", "what it is", "memory", "free")

_HELP = """\
Examples:

  gradcli backends

  gradcli backends --json

  gradcli eval 'log(x**q)' x=5 q=3 --backend torch
"""


class BackendsOptions(opt.Options):
    """The options of `gradcli backends`."""

    json: opt.Json = False


def run(options: BackendsOptions, environment: Environment) -> ExitStatus:
    """List the backends; see `gradcli backends --help`."""
    found = [*backends.backend_statuses()]
    if options.json:
        show_json({"backends": [_json(f) for f in found]}, environment)
    else:
        show([Table(_HEADER, [row for f in found for row in _rows(f)])], environment)
    return ExitStatus.SUCCESS


def _json(found: BackendStatus) -> dict[str, Any]:
    return {
        "name": found.backend.name,
        "installed": found.version is not None,
        "version": found.version,
        "devices": [d._asdict() for d in found.devices],
        "problem": found.problem,
        "install": found.backend.install,
    }


def _rows(found: BackendStatus) -> list[tuple[str, ...]]:
    name = found.backend.name
    if not found.devices:
        return [(name, found.version or "-", "-", found.problem or found.backend.install, "-", "-")]
    return [(name, found.version or "-", *_cells(device)) for device in found.devices]


def _cells(device: Device) -> tuple[str, ...]:
    return device.name, device.kind, _size(device.memory), _size(device.free)


def _size(count: int | None) -> str:
    return "-" if count is None else f"{count / 2**30:.1f} GiB"


COMMAND = Command(BackendsOptions, run, _HELP)

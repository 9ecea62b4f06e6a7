"""What is done to some tables, wherever that is: plain data, which can be sent and written down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.rows.pipeline import Policy
from gradcli.rows.plan import Asked
from gradcli.rows.reading import Reading


class Job(NamedTuple):
    """What is asked of each row, how the tables are read, what becomes of rows that fail, and the format of what is
    written, None for that of the input."""

    asked: Asked
    reading: Reading
    policy: Policy
    to: str | None

    def as_json(self) -> dict[str, Any]:
        """The same as what `json` writes."""
        options = self.asked.as_json()
        program, bindings = options.pop("program"), {name: options.pop(name) for name in ("columns", "shared")}
        options |= {"reading": self.reading._asdict(), "policy": self.policy._asdict(), "to": self.to}
        return {"program": program, "bindings": bindings, "options": options}

    @classmethod
    def of_json(cls, written: Mapping[str, Any]) -> Job:
        """What `as_json` was made of."""
        options = dict(written["options"])
        reading, policy, to = (options.pop(part) for part in ("reading", "policy", "to"))
        asked = Asked.of_json({"program": written["program"], **written["bindings"], **options})
        return cls(asked, Reading(**reading), Policy(**policy), to)


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers and arrays as `json` writes them."""
    found = {name: arrays.on_host(value) for name, value in values.items()}
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in found.items()}

"""The computation for some tables, as plain data that can be sent to workers and stored in a manifest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradcli.named_tuples import NamedTuple
from gradcli.rows.formats.reading import TableReadOptions
from gradcli.rows.pipeline import FailurePolicy
from gradcli.rows.plan import RowRequest


class Job(NamedTuple):
    """The computation for each row, the options for reading tables, the treatment of rows that fail, and the format of
    the output, None for that of the input."""

    asked: RowRequest
    reading: TableReadOptions
    policy: FailurePolicy
    to: str | None

    def as_json(self) -> dict[str, Any]:
        """The same as data for `json`."""
        options = self.asked.as_json()
        program, bindings = options.pop("program"), {name: options.pop(name) for name in ("columns", "shared")}
        options |= {"reading": self.reading._asdict(), "to": self.to}
        options |= {"on_error": "skip" if self.policy.skip else "null", "max_errors": self.policy.max_failures}
        return {"program": program, "bindings": bindings, "options": options}

    @classmethod
    def of_json(cls, written: Mapping[str, Any]) -> Job:
        """The inverse of `as_json`."""
        options = dict(written["options"])
        reading, to = options.pop("reading"), options.pop("to")
        policy = FailurePolicy(options.pop("on_error") == "skip", options.pop("max_errors"))
        asked = RowRequest.of_json({"program": written["program"], **written["bindings"], **options})
        return cls(asked, TableReadOptions(**reading), policy, to)

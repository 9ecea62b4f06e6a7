"""An open data file, the member that was asked for, and errors that name the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

from gradcli.errors import BindingError, closest_word
from gradcli.named_tuples import NamedTuple

# The number of names that an error message lists.
_NAMES_SHOWN = 20
# Stands for standard input in place of a path.
STANDARD_INPUT = "-"


class FileError(BindingError):
    """An error about a file, with the `member` that it concerns, None where it concerns the whole file."""

    member: str | None = None


class Source(NamedTuple):
    """An open file. `member` is the text after `PATH:`, None where there is none; `size` is in bytes. With `exact`,
    decimals are kept as written."""

    path: str
    member: str | None
    stream: BinaryIO
    size: int
    max_elements: int | None
    exact: bool = False

    @property
    def name(self) -> str:
        """The name of the file in messages."""
        return display_name(self.path)

    def error(self, reason: str, hint: str) -> FileError:
        error = FileError(f"cannot read {self.name}: {reason}", hint=hint)
        error.member = self.member
        return error

    def check_elements(self, count: int) -> None:
        """Raise BindingError where `count` array elements exceed the limit."""
        if self.max_elements is not None and count > self.max_elements:
            raise self.error(
                f"it holds {count} elements, more than the limit of {self.max_elements}",
                "raise the limit with --max-elements, or give a smaller file",
            )

    def refuse_member(self) -> None:
        """Raise BindingError where a member was asked for in a file with a single value."""
        if self.member is not None:
            raise self.error(
                f"it holds one value, so ':{self.member}' means nothing",
                f"write {'@' + self.path!r} without ':{self.member}'",
            )

    def choose(self, kind: str, names: Sequence[str]) -> str:
        """The name that was asked for, or the only one of `names`.

        Raises BindingError, with the names in its hint, where there are several and none was asked for, or the name
        does not exist.
        """
        if self.member is None:
            if len(names) == 1:
                return names[0]
            if not names:
                raise self.error(f"it holds no {kind}s", f"give a file with at least one {kind}")
            raise self.error(
                f"it holds {len(names)} {kind}s, and none was chosen",
                f"write '@{self.path}:NAME' with one of {listed(names)}",
            )
        if self.member not in names:
            raise self.no_such_member(kind, self.member, names)
        return self.member

    def no_such_member(self, kind: str, member: str, names: Sequence[str]) -> BindingError:
        close = closest_word(member, names)
        guess = f"did you mean {close!r}? " if close else ""
        return self.error(f"it has no {kind} {member!r}", f"{guess}it has {listed(names)}")


def display_name(path: str) -> str:
    return "standard input" if path == STANDARD_INPUT else repr(path)


def listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:_NAMES_SHOWN]))
    rest = len(names) - _NAMES_SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown or "none"

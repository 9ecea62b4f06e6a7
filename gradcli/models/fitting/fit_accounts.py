"""What is to be said of several fits together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gradcli.models.fitting.fitted import Fit


class Unfitted(NamedTuple):
    """A fit that did not converge: its group, None for that of all rows, and why."""

    group: str | None
    message: str


class Account(NamedTuple):
    """How many fits there are and how many of them are open, as they did not converge, the first of these, and how often
    there is each warning."""

    fits: int = 0
    open: int = 0
    first: Unfitted | None = None
    warnings: Mapping[str, int] = {}

    def plus(self, later: Account) -> Account:
        """That of both."""
        return Account(
            self.fits + later.fits,
            self.open + later.open,
            self.first or later.first,
            Counter(self.warnings) + Counter(later.warnings),
        )


def account_of(fits: Sequence[Fit]) -> Account:
    """What is to be said of these."""
    unfitted = [Unfitted(fit.group, fit.message) for fit in fits if not fit.converged]
    warnings = Counter(warning for fit in fits for warning in fit.warnings)
    return Account(len(fits), len(unfitted), unfitted[0] if unfitted else None, warnings)

"""Handles Ctrl-C and termination signals, so that a command ends with the right exit status and without a traceback.

SIGTERM and SIGHUP remove unfinished output files and then end the process with the default action.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

# Seconds after which an interrupt is raised again if it came while Python discards exceptions.
_RETRY_DELAY = 0.001


class Interrupts:
    """The interrupts of this process: each raises KeyboardInterrupt, until `over` is set.

    `seen` records that there was one, because libraries may turn it into another error (usually ImportError) or drop
    it.
    """

    def __init__(self) -> None:
        self.seen = False
        self.over = False

    def listen(self) -> None:
        """Install the signal handlers."""
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _end)
        self._listen_to_interrupts()

    def _listen_to_interrupts(self) -> None:
        """Install the handler of interrupts, unless the parent process set them to be ignored."""
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            return
        signal.signal(signal.SIGINT, self._raise)
        if sys.platform != "win32":
            signal.signal(signal.SIGALRM, self._raise)
        sys.unraisablehook = self._unraisable(sys.unraisablehook)

    def stop_listening(self) -> None:
        """Ignore interrupts while the interpreter exits."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if self.seen:
            # After an interrupt within `exec`, which libraries call, the interpreter ends by the signal instead of with
            # the exit status, unless `exec` is called again.
            exec("")

    def _raise(self, *_signal: object) -> None:
        if not self.over:
            self.seen = True
            raise KeyboardInterrupt

    def _unraisable(self, report: Callable[..., object]) -> Callable[..., None]:
        def hook(unraisable: sys.UnraisableHookArgs) -> None:
            if not issubclass(unraisable.exc_type, KeyboardInterrupt):
                report(unraisable)
            elif sys.platform != "win32":
                # It was raised in a finalizer, or in a lock of the import system.
                signal.setitimer(signal.ITIMER_REAL, _RETRY_DELAY)

        return hook


def _end(number: int, _frame: object) -> None:
    """Remove unfinished output and end the process by the default action of a signal."""
    written = sys.modules.get("gradcli.io.output")
    if written is not None:
        written.remove_unfinished()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)

"""Ctrl-C: whatever is running, the command ends with the exit status of an interrupt and without a traceback.

What else asks a process to end removes the files that are not whole, and ends it as it does other processes.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

# Seconds until an interrupt comes again that fell where nothing can be raised.
_AGAIN = 0.001


class Interrupts:
    """The interrupts of this process: each is a KeyboardInterrupt until `over`, and nothing from then on.

    `seen` says that there was one. Libraries make other errors of it, an ImportError as a rule, or drop it.
    """

    def __init__(self) -> None:
        self.seen = False
        self.over = False

    def listen(self) -> None:
        """Begin."""
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _end)
        self._listen_to_interrupts()

    def _listen_to_interrupts(self) -> None:
        """Begin, unless whoever started this process has interrupts ignored."""
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            return
        signal.signal(signal.SIGINT, self._raise)
        if sys.platform != "win32":
            signal.signal(signal.SIGALRM, self._raise)
        sys.unraisablehook = self._unraisable(sys.unraisablehook)

    def stop_listening(self) -> None:
        """Let the interpreter end without being interrupted."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _raise(self, *_signal: object) -> None:
        if not self.over:
            self.seen = True
            raise KeyboardInterrupt

    def _unraisable(self, report: Callable[..., object]) -> Callable[..., None]:
        def hook(unraisable: sys.UnraisableHookArgs) -> None:
            if not issubclass(unraisable.exc_type, KeyboardInterrupt):
                report(unraisable)
            elif sys.platform != "win32":
                # In a finalizer, or in a lock of the import system.
                signal.setitimer(signal.ITIMER_REAL, _AGAIN)

        return hook


def _end(number: int, _frame: object) -> None:
    """End the process by a signal, as it does where nobody listens."""
    written = sys.modules.get("gradcli.io.output")
    if written is not None:
        written.remove_unfinished()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)

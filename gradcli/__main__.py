"""The entry point of `gradcli` and `python -m gradcli`: handles interrupts early, and tunes the process."""

import gc
import os
import sys


def _leave(*_signal: object) -> None:
    """Exit at once. Nothing is written yet, and an exception could be caught by a module that is being imported."""
    # Not contextlib.suppress: importing contextlib would leave interrupts unhandled in the meantime.
    try:  # noqa: SIM105
        os.write(2, b"interrupted\n")
    except OSError:
        pass
    os._exit(130)


def run() -> None:
    """Run the command."""
    try:
        import signal

        # Keeps an ignored SIGINT ignored, as `nohup` and `&` in a shell set it.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _leave)
    except KeyboardInterrupt:
        _leave()
    # Modules, and a long program, make millions of objects that live to the end. With the default threshold of 700,
    # garbage collection takes a third of the run time; two collections of Polars' objects alone take a tenth of a
    # short run over rows.
    gc.set_threshold(200_000, 20, 20)
    # Threads of OpenBLAS spin while they wait for each other. While other processes run, 500 decompositions of matrices
    # with 300 rows take 34 s on two cores and 3 s on one. The largest products within the limits take one core 2 s.
    if "OMP_NUM_THREADS" not in os.environ:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from gradcli.cli.main import run

    try:
        run()
    finally:
        # At exit, Python would collect garbage among all objects twice, which takes a tenth of a short run.
        gc.freeze()


def main() -> None:
    """Run the command as all that this process does: the entry point of the script and of `python -m`."""
    try:
        run()
    except SystemExit as ended:
        # The streams are flushed. Python would only free all objects one by one, which takes a twentieth of a short run.
        if isinstance(ended.code, int) and _nothing_is_left():
            os._exit(ended.code)
        raise


def _nothing_is_left() -> bool:
    """Return whether no library has threads or functions to be ended, and no tool watches this process."""
    watched = sys.gettrace() is not None or sys.getprofile() is not None or sys.flags.inspect
    return not watched and {"threading", "atexit"}.isdisjoint(sys.modules)


if __name__ == "__main__":
    main()

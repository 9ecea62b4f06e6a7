"""The command `gradcli`, and `python -m gradcli`: quiet when interrupted, from here on to the end."""

import gc
import os


def _leave(*_signal: object) -> None:
    """End at once: nothing is written yet, and an exception would be at the mercy of what is being imported."""
    # contextlib would have to be imported where an interrupt is not handled yet.
    try:  # noqa: SIM105
        os.write(2, b"interrupted\n")
    except OSError:
        pass
    os._exit(130)


def run() -> None:
    """The entry point of the command."""
    try:
        import signal

        # Ignored where whoever started the command wants it so, as `nohup` and a shell's `&` do.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _leave)
    except KeyboardInterrupt:
        _leave()
    # Modules, and a long program, make millions of objects that last: to look for cycles among them at every 700 takes
    # a third of the time, and among those of Polars alone, twice, a tenth of a short run over rows.
    gc.set_threshold(200_000, 20, 20)
    # OpenBLAS's threads turn while they wait for each other: where other processes run, 500 decompositions of 300 rows
    # take 34 s on two cores and 3 s on one. What the limits allow of products of matrices takes one core 2 s.
    if "OMP_NUM_THREADS" not in os.environ:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from gradcli.cli.main import run

    try:
        run()
    finally:
        # At the end Python would look for cycles among all of them, twice, which takes a tenth of a short run.
        gc.freeze()


if __name__ == "__main__":
    run()

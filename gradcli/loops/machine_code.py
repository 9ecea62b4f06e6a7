"""A rolled loop as machine code, where `llvmlite` is installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from gradcli import arrays
from gradcli.loops.stretch import Stretch
from gradcli.timing import phase

if TYPE_CHECKING:
    from gradcli.executors.llvm_ufuncs import Loop
    from gradcli.loops.rolled_loop import RolledLoop

# Operations that a loop of few equations has to compute before it is compiled: Python computes as many in the time of
# compiling, which is 50 ms, most of it for loading the compiler. A round of `_LIKE_LOADING` equations takes twice as
# long to compile.
_WORTH_COMPILING, _LIKE_LOADING = 1_500_000, 300


class _State:
    """The operations that a loop has computed without machine code, and its code, if it was compiled.

    `single` is the function for arrays of one loop, without an axis of loops.
    """

    __slots__ = ("computed", "function", "kept", "single", "tried")

    def __init__(self) -> None:
        self.computed = 0
        self.tried = False
        # Keeps the machine code of the functions alive.
        self.kept: Sequence[Loop] = ()
        self.function: Callable[..., Any] | None = None
        self.single: Callable[..., Any] | None = None


_states: WeakKeyDictionary[RolledLoop, _State] = WeakKeyDictionary()
_lock = Lock()


def run(loop: RolledLoop, starts: Any, sequences: Sequence[Any], found: Any, stretch: Stretch, *, last: bool) -> bool:
    """Compute the carries of some rounds of independent loops by machine code; returns False where there is none.

    `starts` has the carries and reads of each loop, of shape [loops, carries + reads], `sequences` are of shape [rows,
    loops or 1, width], and `found`, of shape [rounds + 1, loops, carries], or [1, loops, carries] for the `last`
    carries, receives the results. All are contiguous. For a single loop the axis of loops may be absent from all of them.
    """
    state = _states.get(loop)
    if state is None:
        state = _states.setdefault(loop, _State())
    if state.function is None:
        count = len(starts) if starts.ndim > 1 else 1
        state.computed += loop.cost_of_round * (stretch.end - stretch.begin) * count
        if state.tried or state.computed < _WORTH_COMPILING * (1 + len(loop.program.equations) / _LIKE_LOADING):
            return False
        with _lock:
            if not state.tried:
                _compile(loop, state)
                state.tried = True
        if state.function is None:
            return False
    bounds = _bounds(stretch, last=last)
    function = state.function if starts.ndim > 1 else state.single
    assert function is not None
    if stretch is loop.all_rounds and starts.ndim == 1:
        loop.compiled[last] = partial(function, bounds)
    function(bounds, starts, *sequences, found)
    return True


def _bounds(stretch: Stretch, *, last: bool) -> Any:
    """The whole numbers that machine code reads first, as an array of floats like its others."""
    # With a factor of 0 each row of the results is written over the one before.
    numbers = (stretch.begin, stretch.end, 0 if last else 1, stretch.result, *stretch.sequences)
    return arrays.numpy_namespace().array(numbers, "float64")


@phase("compile")
def _compile(loop: RolledLoop, state: _State) -> None:
    # Loaded on demand: most loops end before compiling them pays.
    from gradcli.executors.llvm_ufuncs import as_ufunc, compile_loop
    from gradcli.loops.loop_code import loop_code, single_loop

    written = loop_code(loop, "loop")
    if written is None:
        return
    text = "\n".join([*sorted(written.declared), written.text, single_loop(loop)])
    code = compile_loop("loop", text, sorted(written.called))
    if code is None:
        return
    single = code._replace(name="single", address=code.engine.get_function_address("single"))
    places, dtypes = range(len(loop.widths)), ["float64"] * (2 + len(loop.widths))
    many = "(b),(l,g)" + "".join(f",(r{j},l{j},w{j})" for j in places) + "->(r,l,c)"
    one = "(b),(g)" + "".join(f",(r{j},w{j})" for j in places) + "->(r,c)"
    made = [as_ufunc(code, dtypes, ["float64"], many), as_ufunc(single, dtypes, ["float64"], one)]
    if made[0] is not None and made[1] is not None:
        state.kept = [made[0], made[1]]
        state.function, state.single = made[0].ufunc, made[1].ufunc


def bounds_and_sizes(loop: RolledLoop, *, last: bool) -> tuple[Any, Any]:
    """The bounds of all rounds and the lengths of axes with which the function of `loop_code` computes one loop."""
    sizes = arrays.numpy_namespace().ones(6 + 3 * len(loop.widths), "int64")
    return _bounds(loop.all_rounds, last=last), sizes

"""Programs for Python, in this process."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gradcli import arrays, limits
from gradcli.errors import BindingError, UsageError, did_you_mean, expect, flag
from gradcli.language import scope
from gradcli.language.interpreter import evaluate
from gradcli.language.reading import read
from gradcli.language.syntax.tree import Module
from gradcli.limits import MAX_ELEMENTS, MAX_PRECISION, MAX_STEPS
from gradcli.primitives.bind import concrete
from gradcli.primitives.operators import operand
from gradcli.run import converted
from gradcli.run.compiled import Compiled
from gradcli.run.session import EvaluationRequest

if TYPE_CHECKING:
    from gradcli.run.certify import Certified
    from gradcli.run.enclosed import Enclosure
    from gradcli.run.evaluated import Evaluated
    from gradcli.run.proved_recordings import ProvedRecordings


class CompiledProgram(Compiled):
    """A parsed program."""

    def __init__(self, program: Module, max_steps: int = MAX_STEPS, max_elements: int = MAX_ELEMENTS) -> None:
        expect(program, Module, "gradcli.compile makes a program of a text, and this takes what it was parsed to")
        self.program = program
        reads = scope.outer_reads(program).values()
        # A constant such as `pi` may be given another value, and needs none.
        inputs = tuple(r.name for r in reads if not r.maybe_assigned and r.name not in scope.CONSTANTS)
        masks = scope.masks(program)
        super().__init__(program, inputs, (r.name for r in reads), max_steps, max_elements, masks)

    def __repr__(self) -> str:
        return f"<program {self.program.source!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """How it is copied and pickled: as its text and its limits; what was recorded for it is recorded anew."""
        return parsed, (self.program.source, *self._limits)

    def __call__(self, /, **values: Any) -> Any:
        """The value of the program, its inputs given by name."""
        return self._called(values)

    def certify(
        self,
        values: Mapping[str, Any],
        wrt: Sequence[str] | None = None,
        *,
        order: int | None = None,
        jacobian: bool = False,
        grad_output: Any = None,
        max_precision: int = MAX_PRECISION,
    ) -> Certified:
        """What `gradcli eval --certify` gives: the value, its gradients, with `order` all derivatives up to it and with
        `jacobian` the Jacobians, and of each the digits that are right, which is proved in ball arithmetic. That computes
        with at most `max_precision` digits.

        Raises BackendError where python-flint is not installed, and as `value_and_grad` and `derivatives` do.
        """
        from gradcli.run import certify
        from gradcli.run.evaluated import check_order, check_precision

        check_order(order)
        check_precision(max_precision)
        with limits.within(*self._limits):
            bindings, names = self._leaves(values, wrt)
            given = {name: concrete(value) for name, value in bindings.items()}
            request = EvaluationRequest(
                self.program,
                given,
                names,
                grad_output=None if grad_output is None else concrete(operand(grad_output)),
                jacobian=flag(jacobian, "jacobian"),
                order=order,
            )
            with (
                arrays.using_dtype(converted.dtype(given)),
                arrays.using_namespace(arrays.foreign_namespace(given.values())),
            ):
                return certify.run(request, max_precision)

    def evaluate(
        self,
        values: Mapping[str, Any],
        wrt: Sequence[str] | None = None,
        *,
        digits: int,
        order: int | None = None,
        jacobian: bool = False,
        gradient: bool = True,
        grad_output: Any = None,
        max_precision: int = MAX_PRECISION,
        balls: bool = False,
    ) -> Evaluated:
        """The value and its derivatives by `wrt` (all inputs, where that is None), each number in so many digits that are
        proved, by ball arithmetic: see `Evaluated`. An input that is a text is that decimal, a float the binary number
        that it is.

        With `order` all derivatives up to it, with `jacobian` those of each element of the value; `gradient=False` gives
        the value alone. At most `max_precision` digits are computed with. Raises UndecidedError where a comparison is
        open then, and BackendError where python-flint is not installed or has no such function.
        """
        from gradcli.run.evaluated import Options, evaluated

        jacobian, gradient, balls = flag(jacobian, "jacobian"), flag(gradient, "gradient"), flag(balls, "balls")
        options = Options(digits, order, jacobian, gradient, grad_output, max_precision, balls)
        names = self._names(values, wrt)
        self._expect_known(values)
        with limits.within(*self._limits):
            return evaluated(self.program, values, names if gradient else (), options, self._proved)

    def enclose(
        self,
        values: Mapping[str, Any],
        wrt: Sequence[str] | None = None,
        *,
        order: int = 1,
        jacobian: bool = False,
        digits: int | None = None,
    ) -> Enclosure:
        """Bounds of the value, and of its derivatives by `wrt` (all inputs, where that is None) up to an order, over all
        inputs in a box, which are proved: see `Enclosure`.

        An input is an interval as a tuple of its ends, `{"x": (0.9, 1.1)}`, which may be texts of decimals, or as a text,
        "0.9..1.1" or "1±0.1"; or numbers. Bounds are decimals of so many digits. Raises UnboundedError where the value
        has no bounds, and BackendError where python-flint is not installed.
        """
        from gradcli.run import digits as proved
        from gradcli.run.evaluated import check_precision

        if type(order) is not int or order < 0:
            raise UsageError("'order' must be a whole number from 0 on")
        if digits is not None:
            check_precision(digits, "digits")
        names = self._names(values, wrt)
        self._expect_known(values)
        with limits.within(*self._limits), proved.computing():
            from gradcli.run.enclosed import enclose
            from gradcli.run.interval_inputs import given

            inputs = {name: given(value, name) for name, value in values.items()}
            return enclose(
                self.program,
                inputs,
                names,
                order=order,
                jacobian=flag(jacobian, "jacobian"),
                digits=digits,
                number=Decimal,
            )

    def map(
        self,
        table: Any,
        /,
        *,
        wrt: str | Sequence[str] | None = None,
        order: int = 1,
        on_error: str = "null",
        propagate: bool = False,
        **values: Any,
    ) -> Any:
        """The table with the value of each row, as the column `value`, and its derivatives by `wrt` up to an order, as
        `d_x`, `d2_x_q` and so on: all inputs, columns first, where that is None, and none where `order` is 0.

        A table is a data frame of Polars or pandas, an Arrow table, or a mapping of columns to arrays of n rows; what comes
        back is of the same kind. Columns are the inputs that are called as they are, `values` are those that all rows
        share; `x="column:Time (s)"` takes another column. Rows with a missing number have no results: null, in pandas and
        in arrays nan. So have those that fail, of which a RowWarning tells; `on_error="fail"` raises RowError instead.
        With `propagate` there is a column `u`: the standard uncertainty of the value by those of the inputs, `u_x` of `x`,
        which are columns or `values`.

        Raises BindingError for an input without a value, or with two, and for results that are called as a column is.
        """
        # Few programs are mapped over tables.
        from gradcli.rows.frames import mapped

        names = None if wrt is None else converted.listed(wrt)
        propagate = flag(propagate, "propagate")
        return mapped(self.program.source, table, values, self._limits, names, order, on_error, propagate)

    @cached_property
    def _proved(self) -> ProvedRecordings:
        from gradcli.run.proved_recordings import ProvedRecordings

        return ProvedRecordings()

    def _evaluated(self, bindings: Mapping[str, Any]) -> Any:
        return evaluate(self.program, bindings).value

    def _unknown(self, name: str) -> BindingError:
        hint = did_you_mean(name, self._accepted, f"it reads {', '.join(self.inputs) or 'no names'}")
        return BindingError(f"the program does not read '{name}'", hint=hint)

    def _expect_all(self, names: Collection[str]) -> None:
        for name in self.inputs:
            if name not in names:
                raise BindingError(f"the program reads '{name}', which is not among the inputs")


def parsed(program: str, max_steps: int, max_elements: int) -> CompiledProgram:
    """The program of a text, with limits that hold for reading it too."""
    with limits.within(max_steps, max_elements):
        return CompiledProgram(read(program), max_steps, max_elements)

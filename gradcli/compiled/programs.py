"""Compiled programs that run in the calling process: evaluation, certification, enclosure and mapping over tables."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gradcli import arrays, limits
from gradcli.compiled.computation import Compiled
from gradcli.errors import BindingError, GradcliError, UsageError, as_bool, did_you_mean, expect
from gradcli.evaluation import python_values
from gradcli.evaluation.recording_cache import BoundedCache
from gradcli.language.interpreter.run import evaluate
from gradcli.language.names import scope
from gradcli.language.names.resolution import resolve
from gradcli.language.parsing import parse_charged
from gradcli.language.syntax.tree import Module
from gradcli.limits import MAX_ELEMENTS, MAX_PRECISION, MAX_STEPS
from gradcli.primitives.bind import concrete
from gradcli.primitives.operators import operand

if TYPE_CHECKING:
    from gradcli.compiled.evaluated import Evaluated
    from gradcli.proofs.certify import Certified
    from gradcli.proofs.enclosed import Enclosure
    from gradcli.proofs.proved_recordings import ProvedRecordings
    from gradcli.rows.row_programs import RowProgram


# Bound on the number of row programs that are kept, one for each choice of derivatives.
_MOST_ROW_PROGRAMS = 8
# The steps after which a notebook shows the text of a program, not its formula: about a tenth of a second.
_FORMULA_STEPS = 100_000


class CompiledProgram(Compiled):
    """A parsed program. It is called with its inputs by name."""

    def __init__(self, program: Module, max_steps: int = MAX_STEPS, max_elements: int = MAX_ELEMENTS) -> None:
        expect(program, Module, "gradcli.compile makes a program of a text, and this takes what it was parsed to")
        self.program = program
        reads = scope.free_names(program).values()
        # Constants such as `pi` may be overridden, but need no value.
        inputs = tuple(r.name for r in reads if not r.maybe_assigned and r.name not in scope.CONSTANTS)
        masks = resolve(program).masks
        super().__init__(program, inputs, (r.name for r in reads), max_steps, max_elements, masks)

    def __repr__(self) -> str:
        return f"<program {self.program.source!r}>"

    def _repr_latex_(self) -> str | None:
        """The program as a formula for notebooks; None where it has none, or where simplifying takes too many steps."""
        from gradcli.formulas.languages.latex import latex
        from gradcli.formulas.symbolic import derivatives_as_formulas
        from gradcli.formulas.writing.documents import with_squares

        if not self.inputs:
            return None
        try:
            with limits.within(_FORMULA_STEPS, MAX_ELEMENTS):
                formulas = derivatives_as_formulas(self.program, {}, self.inputs[:1])
                written = latex(formulas._replace(derivatives={"value": with_squares(formulas.value)}))
                return f"$\\displaystyle {written.text}$"
        except GradcliError:
            return None

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by source text and limits; recordings are made anew."""
        return parsed, (self.program.source, *self._limits)

    def __call__(self, /, **values: Any) -> Any:
        """Return the value of the program for inputs by name."""
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
        """Return the value and its derivatives, with the numbers of digits proved to be right, as `gradcli eval
        --certify` does.

        With `order`, all derivatives up to that order are included; with `jacobian`, the Jacobians. Ball arithmetic
        uses at most `max_precision` digits. Raises BackendError where python-flint is not installed, and what
        `value_and_grad` and `derivatives` raise.
        """
        from gradcli.compiled.evaluated import check_order, check_precision
        from gradcli.evaluation.session import EvaluationRequest
        from gradcli.proofs import certify

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
                jacobian=as_bool(jacobian, "jacobian"),
                order=order,
            )
            with (
                arrays.using_dtype(python_values.dtype(given)),
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
        """Return the value and its derivatives by `wrt` (None: all inputs) to `digits` proved digits: see `Evaluated`.

        Inputs given as texts are decimals; floats are taken exactly. With `order`, all derivatives up to that order are
        included; with `jacobian`, those of each element of the value; `gradient=False` leaves out derivatives. At most
        `max_precision` digits are computed with. Raises UndecidedError where a comparison remains undecided at that
        precision, and BackendError where python-flint is not installed or lacks a function.
        """
        from gradcli.compiled.evaluated import EvaluationOptions, evaluated

        jacobian, gradient, balls = (
            as_bool(jacobian, "jacobian"),
            as_bool(gradient, "gradient"),
            as_bool(balls, "balls"),
        )
        options = EvaluationOptions(digits, order, jacobian, gradient, grad_output, max_precision, balls)
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
        """Return proved bounds of the value, and of its derivatives by `wrt` (None: all inputs) up to `order`, over a
        box of inputs: see `Enclosure`.

        An input is an interval, as a tuple of its ends such as `{"x": (0.9, 1.1)}`, which may be decimal texts, or as a
        text, "0.9..1.1" or "1±0.1"; or it is a number or an array. Bounds are decimals of `digits` digits. Raises
        UnboundedError where the value has no bounds, and BackendError where python-flint is not installed.
        """
        from gradcli.compiled.evaluated import check_precision
        from gradcli.proofs import digits as proved

        if type(order) is not int or order < 0:
            raise UsageError("'order' must be a whole number from 0 on")
        if digits is not None:
            check_precision(digits, "digits")
        names = self._names(values, wrt)
        self._expect_known(values)
        with limits.within(*self._limits), proved.computing():
            from decimal import Decimal

            from gradcli.proofs.complex_enclosures import enclose
            from gradcli.proofs.interval_inputs import given

            inputs = {name: given(value, name) for name, value in values.items()}
            return enclose(
                self.program,
                inputs,
                names,
                order=order,
                jacobian=as_bool(jacobian, "jacobian"),
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
        """Return the table with the value of each row in the column `value`, and derivatives in the columns `d_x`,
        `d2_x_q`, ….

        `wrt` names the inputs to differentiate by (None: all, columns first); `order` 0 leaves out derivatives. A table
        is a data frame of Polars or pandas, an Arrow table, or a mapping of columns to arrays of n rows; the result is
        of the same kind. Columns are the inputs of the same name; `values` are shared by all rows, and `x="column:Time
        (s)"` takes another column. Rows with a missing number have null results (nan in pandas and arrays). So have
        rows that fail, which issues a RowWarning; `on_error="fail"` raises RowError instead. With `propagate` the
        column `u` has the standard uncertainty of the value, from those of the inputs: `u_x` for `x`, a column or one
        of `values`.

        Raises BindingError for an input without a value or with two, and for a result whose name is that of a column.
        """
        # Loaded on demand: few programs are mapped over tables.
        from gradcli.rows.frames import mapped

        names = None if wrt is None else python_values.names_tuple(wrt)
        propagate = as_bool(propagate, "propagate")
        return mapped(
            self.program.source, table, values, self._limits, names, order, on_error, propagate, self._row_programs
        )

    @cached_property
    def _row_programs(self) -> BoundedCache[Hashable, RowProgram]:
        return BoundedCache(_MOST_ROW_PROGRAMS)

    @cached_property
    def _proved(self) -> ProvedRecordings:
        from gradcli.proofs.proved_recordings import ProvedRecordings

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
    """Parse and compile source text; the limits hold for parsing too."""
    with limits.within(max_steps, max_elements):
        return CompiledProgram(parse_charged(program), max_steps, max_elements)

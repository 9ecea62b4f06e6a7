"""Run programs on arrays as generated straight-line Python: large arrays block by block, other arrays whole."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.executors import joined_operations, schedule, ufuncs
from gradcli.executors.kernel import Kernel
from gradcli.executors.loop_fusion import CompilePolicy, FusedLoop, Step, fused
from gradcli.executors.reused_memory import Buffers, NumpyCode
from gradcli.executors.schedule import Segment
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import assume, bind
from gradcli.primitives.entries import reductions
from gradcli.primitives.entries.linear import matmul
from gradcli.program.ir import Equation, Program, Variable, elements, last_uses
from gradcli.timing import phase

# Rows with fewer elements are reduced by the `sum` of NumPy's namespace, which adds short rows column by column.
_ROW = 8
# Up to this number of elements, the checks of `bind` take a considerable part of the time of an operation: some 8 µs, in
# which a product of matrices computes 10,000 to 50,000.
_FEW = 50_000


class _BufferLines(NamedTuple):
    """The lines that take the buffers of a run, and the one that gives them back."""

    taken: Sequence[str]
    given: str


class Blocks:
    """A compiled program, which any number of threads may run at the same time.

    The results for the same inputs may change by rounding after many runs, because functions are compiled then; not if
    it is `reproducible`.
    """

    def __init__(self, program: Program, *, reproducible: bool = False) -> None:
        self.program = program = program if reproducible else joined_operations.joined(program)
        self.reproducible = reproducible
        self.steps = schedule.schedule(program).steps
        self.demand = CompilePolicy([e for e in self.steps if isinstance(e, Equation)], reproducible=reproducible)
        self.function = self.written()

    def run(self, inputs: Sequence[Any]) -> list[Any] | None:
        """The outputs for `inputs`, or None if a guard does not hold. Raises what its primitives raise."""
        if self.demand.counts and self.demand.count_run():
            with phase("compile"):
                self.function = self.written()
        outputs: list[Any] | None = self.function(*inputs)
        return outputs

    def written(self) -> Callable[..., Any]:
        """The generated function of the inputs."""
        return ProgramWriter(self).compiled()


class ProgramWriter:
    """Writes the source text of the function that runs a program."""

    def __init__(self, blocks: Blocks) -> None:
        self.program, demand = blocks.program, blocks.demand
        self.steps: Sequence[Step] = blocks.steps
        self.reproducible = blocks.reproducible
        self.guards = set(self.program.guards)
        # Equations that are computed by `bind` are charged there.
        self.elements = elements(e for step in blocks.steps for e in _charged(step))
        equations = [s for s in blocks.steps if isinstance(s, Equation) and _is_direct(s)]
        if demand.merged:
            read = {a for a in (*self.program.outputs, *self.guards) if isinstance(a, Variable)}
            self.steps = fused(blocks.steps, read, _is_direct)
        self.freed = last_uses(self.steps, self.program.outputs)
        self.own = schedule.exclusive(self.program)
        self.lines = NumpyCode(equations, self.freed, self._place, demand.together)

    def compiled(self) -> Callable[..., Any]:
        inputs, outputs = self.computed()
        numbers = [n for n, v in zip(inputs, self.program.inputs) if v.shape == () and v.dtype == "float64"]
        buffers = self.buffers()
        return self.lines.function(
            [
                f"def program({', '.join(inputs)}):",
                *(f"    if type({n}) is not float: {n} = tidy({n})" for n in numbers),
                "    budget = current()",
                f"    if budget is not None: budget.charge({self.elements})",
                *(f"    {line}" for line in buffers.taken),
                "    with quiet():",
                *(f"        {line}" for line in [*self.lines.body, "pass"]),
                f"    {buffers.given}",
                f"    return [{', '.join(outputs)}]",
            ]
        )

    def computed(self) -> tuple[list[str], list[str]]:
        """Write the lines that compute the program; returns the names of the inputs, and the texts of the outputs."""
        inputs = [self.lines.new_name(v) for v in self.program.inputs]
        for variable in self.program.inputs:
            self._check(variable)
        for number, step in enumerate(self.steps):
            self._step(number, step)
        return inputs, [self.lines.operand(a) for a in self.program.outputs]

    def buffers(self) -> _BufferLines:
        """Make the pool of the buffers and what else the lines read known, and return the lines around them."""
        lines, numpy = self.lines, arrays.numpy_namespace()
        buffers = Buffers(lines.buffers)
        lines.known.update(
            tidy=arrays.tidy,
            assume=assume,
            quiet=numpy.quiet,
            empty=numpy.empty,
            current=limits.budget,
            take=buffers.unused.pop,
            make=buffers.made,
            give=buffers.unused.append,
        )
        names = "".join(f"b{i}, " for i in range(len(lines.buffers)))
        taken = [f"try: {names}= taken = take()", f"except IndexError: {names}= taken = make()"] if names else []
        return _BufferLines(taken, "give(taken)" if names and buffers.are_kept else "pass")

    def _step(self, number: int, step: Step) -> None:
        body = self.lines.body
        if isinstance(step, Segment):
            self._segment(step, self.own.intersection(self.freed.get(number, ())))
        elif isinstance(step, FusedLoop):
            self.lines.compute_merged(number, step)
            for variable in step.outputs:
                self._check(variable)
        elif _is_direct(step) and step.primitive.elementwise:
            self.lines.compute(number, step)
        elif _is_matrix_by_vector(step):
            self.lines.compute_product(step)
        else:
            operands = ", ".join(self.lines.operand(a) for a in step.inputs)
            text = _call(step, self.lines).format(operands)
            body.append(f"{self.lines.new_name(step.output)} = {text}")
        if isinstance(step, Equation):
            self._check(step.output)
        others = self.lines.release(self.freed.get(number, ()))
        if others:
            body.append(f"del {', '.join(others)}")

    def _check(self, variable: Variable) -> None:
        if variable in self.guards:
            name = self.lines.names[variable]
            if self.lines.is_buffer(variable):
                fails = f"0 in {name}.base"
            else:
                fails = f"not assume({name})" if variable.shape else f"not {name}"
            self.lines.body.append(f"if {fails}: return None")

    def _segment(self, segment: Segment, overwritable: frozenset[Variable]) -> None:
        kernel, lines = Kernel(segment, overwritable, reproducible=self.reproducible), self.lines
        operands = ", ".join(map(lines.operand, kernel.reads))
        results = "".join(f"{lines.new_name(v)}, " for v in kernel.results)
        lines.body.append(f"found = {lines.constant(kernel.run)}({operands})")
        lines.body.append("if found is None: return None")
        if results:
            lines.body.append(f"{results}= found; del found")

    def _place(self, variable: Variable) -> str | None:
        """The name of a new array for a variable that is visible outside of the program; None for a buffer."""
        if variable in self.own:
            return None
        name = self.lines.new_name(variable)
        dtype = self.lines.constant(arrays.numpy_namespace().dtype(variable.dtype))
        self.lines.body.append(f"{name} = empty({variable.shape!r}, {dtype})")
        return name


def _charged(step: Segment | Equation) -> Iterable[Equation]:
    """The equations of a step that are charged together, before the program runs."""
    if isinstance(step, Segment):
        return step.equations.values()
    return (step,) if _is_direct(step) or _is_small(step) else ()


def _is_direct(equation: Equation) -> bool:
    """Return whether the generated text calls NumPy directly instead of `bind`."""
    if not equation.primitive.elementwise:
        return _is_reduction(equation)
    return equation.output.shape != () and ufuncs.of(equation) is not None


def _is_small(equation: Equation) -> bool:
    """Return whether an equation on few numbers is computed without the checks of `bind`, which would take longer."""
    primitive = equation.primitive
    if primitive.elementwise or primitive.surcharge is not None or equation.output.dtype != "float64":
        return False
    if any(arrays.dtype_name(a) != "float64" for a in equation.inputs):
        return False
    return "loop" in equation.params or elements((equation,)) <= _FEW


def _is_matrix_by_vector(equation: Equation) -> bool:
    """Return whether it is a product of a matrix and a vector, which writes into an array that is there in two thirds of
    the time."""
    ranks = sorted(len(arrays.shape(a)) for a in equation.inputs)
    return equation.primitive is matmul and ranks == [1, 2] and _is_small(equation)


def _is_reduction(equation: Equation) -> bool:
    """Return whether it is a reduction that is computed by one call of NumPy."""
    x = equation.inputs[0]
    return (
        schedule.is_reduction(equation.primitive)
        and isinstance(x, Variable)
        and x.dtype in arrays.DTYPES
        and min(x.shape, default=0) > 0
        and (x.shape[-1] >= _ROW or len(equation.params["axis"]) == len(x.shape) == 1)
        and (equation.primitive is not reductions.mean or _is_float(equation.output))
    )


def _is_float(variable: Variable) -> bool:
    return variable.shape == () and variable.dtype == "float64"


def _call(equation: Equation, lines: NumpyCode) -> str:
    """The text of a call, with a format field for the operands."""
    if _is_direct(equation):
        axis, keep = equation.params["axis"], equation.params["keepdims"]
        reduce = lines.constant(ufuncs.reduction_ufunc(equation.primitive).reduce)
        text = f"{reduce}({{}})" if axis == (0,) and not keep else f"{reduce}({{}}, {axis!r}, None, None, {keep})"
        if not _is_float(equation.output):
            return text
        count = math.prod(arrays.shape(equation.inputs[0]))
        return f"float({text})" + (f" / {float(count)!r}" if equation.primitive is reductions.mean else "")
    small = _is_small(equation)
    written = _written(equation, lines) if small else None
    if written is not None:
        return written
    function = _small(equation) if small else _of_numbers(equation)
    if function is not None:
        return f"{lines.constant(function)}({{}})"
    return f"{lines.constant(bind)}({lines.constant(equation.primitive)}, ({{}},), {lines.constant(equation.params)})"


def _written(equation: Equation, lines: NumpyCode) -> str | None:
    """The text of a product of matrices, and of what joins, rearranges or takes elements; None for other equations."""
    name, params, output = equation.primitive.name, equation.params, equation.output
    shapes = [arrays.shape(a) for a in equation.inputs]
    if not all(isinstance(a, Variable) or type(a) is float or shape for a, shape in zip(equation.inputs, shapes)):
        return None
    numpy = arrays.numpy_namespace()
    if name == "stack" and not any(shapes):
        return f"{lines.constant(numpy.array)}([{{}}])"
    if name == "concat" and all(len(shape) == 1 for shape in shapes):
        return f"{lines.constant(numpy.concatenate)}(({{}},))"
    if name == "part" or (name == "index" and all(type(k) is int for k in params["key"])):
        if all(type(k) is int for k in params["key"]) and not output.shape:
            return f"{{}}.item{params['key']}"
        return f"{{}}[{lines.constant(params['key'])}]" + (".item()" if not output.shape else "")
    if name == "matmul" and output.shape:
        # For vectors and matrices `dot` computes the same, and its call takes two thirds of the time.
        function = numpy.matmul if max(map(len, shapes)) > 2 else numpy.dot
        return f"{lines.constant(function)}({{}})"
    if name == "permute" and shapes[0] != ():
        return f"{{}}.transpose({params['axes']})"
    if name == "reshape" and shapes[0] != ():
        return f"{{}}.reshape({output.shape})" if output.shape else "{}.item()"
    return None


def _small(equation: Equation) -> Callable[..., Any]:
    """The function of arrays of an equation on few numbers."""
    primitive, params = equation.primitive, equation.params
    namespace = arrays.numpy_namespace()
    # A loop gives an array; other results may have to be made numbers.
    loop = functools.partial(primitive.forward, namespace, **params) if "loop" in params else None
    run = namespace.runner(primitive)

    def compute(*operands: Any) -> Any:
        try:
            return run(operands, params) if loop is None else loop(*operands)
        except Exception:
            # `bind` raises the error with its explanation.
            return bind(primitive, operands, params)

    return compute


def _of_numbers(equation: Equation) -> Callable[..., Any] | None:
    """The function for Python numbers, if all operands are numbers; else None."""
    primitive = equation.primitive
    kinds = ("float64", "bool") if primitive.truths else ("float64",)
    plain = all(
        a.shape == () and a.dtype in kinds if isinstance(a, Variable) else type(a) is float for a in equation.inputs
    )
    if not primitive.elementwise or not plain or equation.params:
        return None
    return primitive.of_floats

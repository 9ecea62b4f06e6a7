"""The text of a rolled loop whose rounds compute with arrays, in LLVM IR.

`array_plan` decides which results of a round are stored, `nest_code` writes a nest of loops for each of them, in which all
other results that it depends on are computed element by element, and `product_code` writes products of matrices. Here
stands what is around them: the rounds, and the memory of carries and results.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.arrays.shapes import Shape
from gradcli.loops.array_code.array_plan import REDUCTIONS, ArrayProgram, Labels, is_lazy, labels_of
from gradcli.loops.array_code.array_views import Box, Index, NotWrittenError, Place
from gradcli.loops.array_code.nest_code import PRODUCT, SUM, Access, Memory, Nest, Reduction, from_zero, whole_index
from gradcli.loops.array_code.product_code import Grid, ProductCode, Sizes, can_multiply
from gradcli.loops.loop_code import NamedCode
from gradcli.loops.rolled_loop import columns_of
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.entries import arithmetic, indexing, linear, reductions, scans
from gradcli.program.ir import Atom, Equation, Variable

if TYPE_CHECKING:
    from gradcli.loops.rolled_loop import RolledLoop

# Bounds on the equations of a round, and on the bytes of its intermediate results and of its constants.
_MOST_EQUATIONS = 1_000
_MOST_BYTES = 256 * 1024
_BYTES = 8
# The size of the last axis of a sum over other axes from which its elements are added row by row.
_LONG_ROW = 4
# The number of multiplications up to which a product is written as a nest of loops.
_FEW_MULTIPLICATIONS = 64
# The number of rounds whose products of a column and a row are added to a matrix at once, and its size from which that
# is worthwhile.
_DEFERRED, _WORTH_DEFERRING = 16, 256
_REDUCTIONS = {
    reductions.sum_: Reduction("fadd reassoc", 0.0),
    reductions.prod: Reduction("fmul reassoc", 1.0),
    reductions.max_: Reduction("maximum", -math.inf),
    reductions.min_: Reduction("minimum", math.inf),
    reductions.any_: Reduction("or", 0.0, "i1"),
    reductions.all_: Reduction("and", 1.0, "i1"),
}
_SUM_OF_PRODUCTS = Reduction("fadd reassoc contract", 0.0)


def array_loop_code(loop: RolledLoop, name: str) -> NamedCode | None:
    """The function `name` that computes a loop of arrays, with the operands of the function of `loop_code.single_loop`;
    None where an operation is not written."""
    if len(loop.program.equations) > _MOST_EQUATIONS:
        return None
    try:
        writer = _ArrayLoopCode(loop, ArrayProgram(loop.program), name)
        text = writer.text()
    except (NotWrittenError, KeyError):
        return None
    return NamedCode(text, writer.called, writer.declared)


class _Task(NamedTuple):
    """A nest of loops: it computes `atom` for a carry of this number, or else stores it for others.

    It reads the variables in `read`.
    """

    atom: Atom
    carry: int | None
    read: frozenset[Variable]


class _Deferred(NamedTuple):
    """The columns and rows whose products are added to a carry, and the memory where those of some rounds are kept."""

    factors: Sequence[tuple[Variable, Variable]]
    left: Memory
    right: Memory


class _ArrayLoopCode(ProductCode):
    """The text of a loop in LLVM IR. Elementwise operations round as those of Python: none are fused or reordered."""

    def __init__(self, loop: RolledLoop, program: ArrayProgram, name: str) -> None:
        super().__init__(program)
        self.loop, self.function = loop, name
        layout = loop.layout
        inputs = iter(program.inputs[1:])
        self.carries = [*itertools.islice(inputs, len(layout.carries))]
        self.reads = [*itertools.islice(inputs, len(layout.reads))]
        self.memory: dict[Variable, Memory] = {}
        self._place_inputs("%before", self.carries)
        self._place_inputs("%reads", self.reads)
        for j, shapes in enumerate(layout.rows):
            self._place_inputs(f"%row.{j}", [*itertools.islice(inputs, len(shapes))])
        self.offsets = [self.memory[c].offset for c in self.carries]
        self.globals: list[str] = []
        self.numbers = {program.inputs[0]: "%counter"}
        self._place_constants()
        self.buffers: list[str] = []
        self.free: dict[int, list[str]] = {}
        # The bytes of all buffers, and the numbers of those that are written before the rounds.
        self.bytes = self.fixed = 0
        # The buffers in use, with their sizes, and what is read where each result is computed.
        self.in_use: dict[Atom, tuple[Memory, int]] = {}
        self._read: dict[Variable, frozenset[Variable]] = {}
        self.deferred: dict[int, _Deferred] = {}

    def _place_inputs(self, pointer: str, variables: Sequence[Variable]) -> None:
        offset = 0
        for variable in variables:
            self.memory[variable] = Memory(pointer, offset)
            offset += math.prod(variable.shape)

    def _place_constants(self) -> None:
        total = 0
        for variable, array in self.program.constants.items():
            numbers = array.ravel().tolist()
            if len({*array.view("int64").ravel().tolist()}) == 1:
                self.numbers[variable] = self.literal(numbers[0])
                continue
            total += _BYTES * len(numbers)
            if total > _MOST_BYTES:
                raise NotWrittenError
            name = f"@{self.function}.constant.{len(self.globals)}"
            elements = ", ".join(f"double {self.literal(x)}" for x in numbers)
            self.globals.append(f"{name} = private constant [{len(numbers)} x double] [{elements}], align 64")
            self.memory[variable] = Memory(name)

    def name_of(self, variable: Variable) -> str | None:
        return self.numbers.get(variable)

    def memory_of(self, variable: Variable) -> Memory | None:
        return self.memory.get(self.program.base(variable))

    def text(self) -> str:
        tasks = self._tasks()
        self._defer(tasks)
        self.lines = []
        before_rounds = self._before_rounds(tasks)
        self._run(before_rounds, fixed=True)
        prepared, block = self.lines, self.block
        functions = [*self.globals, self._round([task for task in tasks if task not in before_rounds])]
        if self.deferred:
            functions.append(self._addition())
        return "\n".join([*functions, self._rounds(prepared, block)])

    def _round(self, tasks: Sequence[_Task]) -> str:
        """The function that computes a round."""
        self.lines, self.block = [], "entry"
        self._run(tasks)
        unchanged = [k for k, carry in enumerate(self.carries) if self.program.outputs[k] is carry]
        self._copy_if("true", [(k, self.moved("%before", self.offsets[k])) for k in unchanged])
        if self.deferred:
            self._add_if_due()
        return f"""
define internal void @{self.function}.round({self._given()}) noinline {{
entry:
{_joined(self.buffers)}
{_joined(self.lines)}
  ret void
}}"""

    def _given(self) -> str:
        """The parameters of the function of a round: the counter, whether the next row is another one, and the memory
        that it reads and writes."""
        pointers = ["%before", "%after", "%reads", "%fixed", "%pending"]
        pointers += [f"%row.{j}" for j in range(len(self.loop.widths))]
        return ", ".join(["double %counter", "i1 %keeps", *(f"ptr {p}" for p in pointers)])

    def _rounds(self, prepared: Sequence[str], block: str) -> str:
        """The function that runs the rounds, with what is computed before them."""
        loop = self.loop
        self.lines = entry = list[str]()
        begin, end, factor, result, *skipped = [
            self.put(f"fptosi double {self.loaded(self.moved('%bounds', k))} to i64")
            for k in range(4 + len(loop.widths))
        ]
        width = self.put(f"mul i64 {factor}, {loop.carries}")
        first, last = begin, self.put(f"sub i64 {end}, 1")
        if loop.reverse:
            first, last = last, first
        start = self._row("%found", self.put(f"sub i64 {end if loop.reverse else begin}, {result}"), width)
        self._copy(start, "%starts", loop.carries)
        self.lines = top = list[str]()
        for j, (offset, skip, columns) in enumerate(zip(loop.offsets, skipped, loop.widths)):
            number = self.put(f"sub i64 {self.put(f'add i64 %i, {offset}')}, {skip}")
            self._name(f"%row.{j}", f"%sequence.{j}", self.put(f"mul i64 {number}, {columns}"))
        number = self.put(f"sub i64 %i, {result}")
        numbers = [number, self.put(f"add i64 {number}, 1")]
        for row, own in zip(("%before", "%after"), numbers[::-1] if loop.reverse else numbers):
            self._name(row, "%found", self.put(f"mul i64 {own}, {width}"))
        idle = self._idle()
        arguments = ["%bounds", "%starts", *(f"%sequence.{j}" for j in range(len(loop.widths))), "%found"]
        return f"""
define void @{self.function}(ptr %arguments, ptr %sizes, ptr %steps, ptr %data) {{
entry:
  %pending = alloca i64
  store i64 0, ptr %pending
  %fixed = alloca [{max(1, self.fixed)} x double], align 64
{_joined(f"  %argument.{j} = getelementptr ptr, ptr %arguments, i64 {j}" for j in range(len(arguments)))}
{_joined(f"  {a} = load ptr, ptr %argument.{j}" for j, a in enumerate(arguments))}
  %reads = getelementptr double, ptr %starts, i64 {loop.carries}
{_joined(entry)}
  %keeps = icmp ne i64 {factor}, 0
{_joined(prepared)}
  br label %round
round:
  %i = phi i64 [ {first}, %{block} ], [ %i.next, %next ]
  %place = sitofp i64 %i to double
  %scaled = fmul double %place, {self.literal(loop.step)}
  %counter = fadd double %scaled, {self.literal(loop.first)}
{_joined(top)}
  %i.next = add i64 %i, {-1 if loop.reverse else 1}
  %works = fcmp une double {idle}, {self.literal(0.0)}
  br i1 %works, label %body, label %idle
idle:
{self._whole_copy("%after", "%before")}
  br label %next
body:
  call void @{self.function}.round({self._given()})
  br label %next
next:
{self._done(last)}
  br i1 %done, label %ended, label %round
ended:
{self._last_addition()}
{self._rest(end, factor, result, width)}
}}
"""

    def _name(self, name: str, pointer: str, count: str) -> None:
        """Give a name to the place some numbers after a pointer."""
        self.lines.append(f"  {name} = getelementptr double, ptr {pointer}, i64 {count}")

    def _defer(self, tasks: Sequence[_Task]) -> None:
        """Find the carries to which a round adds products of a column and a row, and which it does not read otherwise.

        Their factors are kept for some rounds, and then added together as a product of matrices, which reads and writes
        the carries once.
        """
        for task in tasks:
            if task.carry is None:
                continue
            carry = self.carries[task.carry]
            factors = self._factors(carry, task.atom)
            others = (t for t in tasks if t is not task)
            count = _DEFERRED * len(factors)
            # Half of the memory remains for what has to be stored.
            fits = self.bytes + _BYTES * count * sum(carry.shape) <= _MOST_BYTES // 2
            if factors and fits and not any(carry in t.read for t in others):
                left, right = (self._buffer(count * size, fixed=True) for size in carry.shape)
                self.deferred[task.carry] = _Deferred(factors, left, right)

    def _factors(self, carry: Variable, atom: Atom) -> Sequence[tuple[Variable, Variable]]:
        """The columns and rows whose products are added to a carry; none if it is computed otherwise."""
        if len(carry.shape) != 2 or math.prod(carry.shape) < _WORTH_DEFERRING or min(carry.shape) == 1:
            return ()
        found, waiting, carries = list[tuple[Variable, Variable]](), [atom], 0
        while waiting:
            term = waiting.pop()
            equation = None if term in self.program.stored else self.program.defined.get(term)
            if term is carry:
                carries += 1
            elif equation is None or equation.output.shape != carry.shape:
                return ()
            elif equation.primitive is arithmetic.add:
                waiting += equation.inputs[::-1]
            elif (pair := _column_and_row(equation)) is not None:
                found.append(pair)
            else:
                return ()
        return found if carries == 1 else ()

    def _keep_factors(self, deferred: _Deferred) -> None:
        """Write the factors of products to be added to a carry."""
        count = len(deferred.factors)
        pending = self.put(f"mul i64 {self.put('load i64, ptr %pending')}, {count}")
        for number, pair in enumerate(deferred.factors):
            for factor, memory in zip(pair, (deferred.left, deferred.right)):
                size = math.prod(factor.shape)
                place = self.moved(self.moved(*memory), pending, size)
                self.store_map(self.map_parts(factor.shape, factor), factor.shape, Memory(place, number * size))

    def _add_if_due(self) -> None:
        """Add the products that are pending if the row is kept or if there is no memory for more."""
        pending = self.put(f"add i64 {self.put('load i64, ptr %pending')}, 1")
        full = self.put(f"icmp eq i64 {pending}, {_DEFERRED}")
        due = self.put(f"or i1 {full}, %keeps")
        adding, after = self.label("adding"), self.label("added")
        self.lines.append(f"  store i64 {pending}, ptr %pending\n  br i1 {due}, label %{adding}, label %{after}")
        self.begin_block(adding)
        self.lines.append(f"  call void @{self.function}.addition(ptr %before, ptr %after, ptr %fixed, ptr %pending)")
        self.lines.append(f"  br label %{after}")
        self.begin_block(after)

    def _last_addition(self) -> str:
        """Add the products that are pending after the last round."""
        if not self.deferred:
            return ""
        return f"""  %left = load i64, ptr %pending
  %complete = icmp eq i64 %left, 0
  br i1 %complete, label %all.added, label %adding
adding:
  call void @{self.function}.addition(ptr %after, ptr %after, ptr %fixed, ptr %pending)
  br label %all.added
all.added:"""

    def _addition(self) -> str:
        """The function that adds the products that are pending."""
        self.lines, self.block = [], "entry"
        pending = self.put("load i64, ptr %pending")
        for k, deferred in self.deferred.items():
            rows, columns = self.carries[k].shape
            terms = self.put(f"mul i64 {pending}, {len(deferred.factors)}")
            left, right = Grid(self.moved(*deferred.left), 1, rows), Grid(self.moved(*deferred.right), columns, 1)
            out = Grid(self.moved("%after", self.offsets[k]), columns, 1)
            before = self.moved("%before", self.offsets[k])
            self.add_product(left, right, out, Sizes(rows, columns, terms), before)
        return f"""
define internal void @{self.function}.addition(ptr %before, ptr %after, ptr %fixed, ptr %pending) noinline {{
entry:
{_joined(self.lines)}
  store i64 0, ptr %pending
  ret void
}}"""

    def _row(self, pointer: str, number: str, width: str) -> str:
        return self.put(f"getelementptr double, ptr {pointer}, i64 {self.put(f'mul i64 {number}, {width}')}")

    def _idle(self) -> str:
        """The element of the rows that is 0 in a round which changes nothing; else 1."""
        loop = self.loop
        if loop.idle is None:
            return self.literal(1.0)
        number, part = loop.row_of_part(loop.idle)
        column = columns_of(loop.layout.rows[number][:part])
        return self.loaded(self.put(f"getelementptr double, ptr %row.{number}, i64 {column}"))

    def _done(self, last: str) -> str:
        """The instructions for `%done`, whether a round is the last one."""
        lines = [f"  %last = icmp eq i64 %i, {last}"]
        if self.loop.active is None:
            return "\n".join([*lines, "  %done = or i1 %last, false"])
        lines += [
            f"  %active = getelementptr double, ptr %after, i64 {self.offsets[self.loop.active]}",
            "  %going = load double, ptr %active",
            f"  %stopped = fcmp oeq double %going, {self.literal(0.0)}",
            "  %done = or i1 %last, %stopped",
        ]
        return "\n".join(lines)

    def _rest(self, end: str, factor: str, result: str, width: str) -> str:
        """The blocks after the last round, which repeat its row where a loop may end before."""
        if self.loop.active is None:
            return "  ret void"
        before = "all.added" if self.deferred else "ended"
        return f"""  %rows.end = mul i64 {end}, {factor}
  br label %rest.test
rest.test:
  %rest = phi i64 [ %i.next, %{before} ], [ %rest.next, %rest.round ]
  %rest.more = icmp slt i64 %rest, %rows.end
  br i1 %rest.more, label %rest.round, label %end
rest.round:
  %rest.next = add i64 %rest, 1
  %rest.number = sub i64 %rest.next, {result}
  %rest.place = mul i64 %rest.number, {width}
  %rest.row = getelementptr double, ptr %found, i64 %rest.place
{self._whole_copy("%rest.row", "%after")}
  br label %rest.test
end:
  ret void"""

    def _whole_copy(self, target: str, source: str) -> str:
        kept, self.lines = self.lines, []
        self._copy(target, source, self.loop.carries)
        lines, self.lines = self.lines, kept
        return "\n".join(lines)

    def _copy(self, target: str, source: str, count: int) -> None:
        """Copy numbers that may be copied to their own place."""
        self.declared.add("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
        self.lines.append(
            f"  call void @llvm.memmove.p0.p0.i64(ptr align 8 {target}, ptr align 8 {source}, i64 {_BYTES * count}, i1 false)"
        )

    def _pointers(self) -> list[str]:
        """The memory that a round reads and writes."""
        return ["%before", "%after", "%reads", "%fixed", *(f"%row.{j}" for j in range(len(self.loop.widths)))]

    def _copy_if(self, keeps: str, copies: Sequence[tuple[int, str]]) -> None:
        """Copy numbers to the row of carries, if all rows are kept or if they are not."""
        if not copies:
            return
        copying, after = self.label("copy"), self.label("copied")
        condition = self.put(f"icmp eq i1 %keeps, {keeps}")
        self.lines.append(f"  br i1 {condition}, label %{copying}, label %{after}")
        self.begin_block(copying)
        for k, source in copies:
            self._copy(self.moved("%after", self.offsets[k]), source, math.prod(self.carries[k].shape))
        self.lines.append(f"  br label %{after}")
        self.begin_block(after)

    def _tasks(self) -> list[_Task]:
        """The nests of loops of a round, in an order in which few carries are overwritten before they are read."""
        program = self.program
        waiting, first = list[_Task](), dict[Variable, int]()
        for k, atom in enumerate(program.outputs):
            own = program.base(atom) if isinstance(atom, Variable) else None
            if own in program.stored and own not in first:
                first[own] = k
            elif atom is not self.carries[k]:
                waiting.append(_Task(atom, k, self._sources(atom)))
        stored = [v for v in program.defined if v in program.stored]
        read = frozenset[Variable]().union(*(self._operands_of(v) for v in stored), *(t.read for t in waiting))
        found = [_Task(v, first.get(v), self._operands_of(v)) for v in stored if v in read or v not in first]
        waiting += [_Task(v, first[v], self._operands_of(v)) for v in stored if v not in read and v in first]
        while waiting:
            free = (t for t in waiting if not any(self.carries[t.carry or 0] in o.read for o in waiting if o is not t))
            task = next(free, waiting[0])
            waiting.remove(task)
            found.append(task)
        return found

    def _sources(self, atom: Atom) -> frozenset[Variable]:
        """The inputs and the stored results that are read where an atom is."""
        if not isinstance(atom, Variable) or atom in self.program.constants:
            return frozenset()
        variable = self.program.base(atom)
        if variable in self.program.stored or variable not in self.program.defined:
            return frozenset([variable])
        return self._operands_of(variable)

    def _operands_of(self, variable: Variable) -> frozenset[Variable]:
        """The inputs and the stored results that are read where a result is computed."""
        found = self._read.get(variable)
        if found is None:
            inputs = self.program.defined[variable].inputs
            found = self._read[variable] = frozenset[Variable]().union(*map(self._sources, inputs))
        return found

    def _before_rounds(self, tasks: Sequence[_Task]) -> list[_Task]:
        """The nests of loops that give the same in each round."""
        fixed, found = {*self.reads}, []
        for task in tasks:
            if task.carry is None and task.read <= fixed:
                fixed.add(task.atom)
                found.append(task)
        return found

    def _run(self, tasks: Sequence[_Task], *, fixed: bool = False) -> None:
        """Write nests of loops, and the copies of what could not be written to its place."""
        copies = []
        for number, task in enumerate(tasks):
            later = frozenset[Variable]().union(*(t.read for t in tasks[number + 1 :]))
            if task.carry in self.deferred:
                self._keep_factors(self.deferred[task.carry])
                self._free_buffers(later)
                continue
            shape = self._shape_of(task)
            target = self._written_in_place(task, shape, later)
            kept = fixed
            if target is None:
                target = buffer = self._buffer(math.prod(shape), fixed=fixed)
                if task.carry is not None:
                    copies.append((task.carry, buffer))
                    target = self._row_or(buffer, task.carry)
                    kept = True
                self._write(task.atom, shape, target)
            if task.atom in self.program.stored:
                self.memory[task.atom] = target
            if not kept:
                self.in_use[task.atom] = (target, math.prod(shape))
            self._free_buffers(later)
        self._copy_if("false", [(k, self.moved(*buffer)) for k, buffer in copies])

    def _shape_of(self, task: _Task) -> Shape:
        if task.carry is None or task.atom in self.program.stored:
            found: Shape = task.atom.shape
            return found
        return self.carries[task.carry].shape

    def _free_buffers(self, later: frozenset[Variable]) -> None:
        """Let other results be written to the buffers of those that are not read later."""
        for atom in [a for a in self.in_use if a not in later]:
            memory, size = self.in_use.pop(atom)
            if memory.pointer != "%after":
                self.free.setdefault(size, []).append(memory.pointer)

    def _row_or(self, buffer: Memory, k: int) -> Memory:
        """The memory for a carry which other nests of loops of the round still read: its row, if that is not the row
        before, else a buffer."""
        row = self.moved("%after", self.offsets[k])
        return Memory(self.put(f"select i1 %keeps, ptr {row}, ptr {buffer.pointer}"))

    def _written_in_place(self, task: _Task, shape: Shape, later: frozenset[Variable]) -> Memory | None:
        """Write a carry to its row if nothing that is read later is overwritten; returns the place."""
        if task.carry is None or self.carries[task.carry] in later:
            return None
        target = Memory("%after", self.offsets[task.carry])
        if self.carries[task.carry] not in task.read:
            self._write(task.atom, shape, target)
            return target
        if not self._is_map(task.atom):
            return None
        parts = self.map_parts(shape, task.atom)
        if not all(self._reads_what_it_writes(nest, shape, target) for nest, _ in parts):
            return None
        self.store_map(parts, shape, target)
        return target

    def _reads_what_it_writes(self, nest: Nest, shape: Shape, target: Memory) -> bool:
        """Return whether a nest of loops reads, of the carry that it writes, only the element that it writes next."""
        begin, end = target.offset, target.offset + math.prod(shape)
        place = from_zero(nest.access(target, shape, whole_index(range(len(shape)))), nest.box)
        read = [from_zero(node.access, nest.box) for node in nest.nodes if node.access is not None]
        own = [access for access in read if access.pointer == "%before" and begin <= access.constant < end]
        return all((access.constant, access.steps) == (place.constant, place.steps) for access in own)

    def _buffer(self, size: int, *, fixed: bool) -> Memory:
        """Memory for some numbers of a round, or for all rounds."""
        unused = self.free.get(size)
        if unused:
            return Memory(unused.pop())
        self.bytes += _BYTES * size
        if self.bytes > _MOST_BYTES:
            raise NotWrittenError
        if fixed:
            self.fixed += size
            return Memory("%fixed", self.fixed - size)
        name = f"%buffer.{len(self.buffers)}"
        self.buffers.append(f"  {name} = alloca [{size} x double], align 64")
        return Memory(name)

    def _is_map(self, atom: Atom) -> bool:
        equation = self.program.defined.get(atom) if isinstance(atom, Variable) else None
        return equation is None or self.memory_of(atom) is not None or is_lazy(equation)

    def _write(self, atom: Atom, shape: Shape, target: Memory) -> None:
        """Write the elements of an atom to memory."""
        if self._is_map(atom):
            self.store_map(self.map_parts(shape, atom), shape, target)
            return
        equation = self.program.defined[atom]
        if equation.primitive in REDUCTIONS:
            self._reduce(equation, target)
        elif equation.primitive in (scans.cumsum, scans.cumprod):
            reduction = SUM if equation.primitive is scans.cumsum else PRODUCT
            self.store_cumulative(reduction, equation.inputs[0], equation.params["axis"], target)
        elif equation.primitive is indexing.scatter:
            self.store_scattered(equation, target)
        else:
            self._multiply(equation, target)

    def _reduce(self, equation: Equation, target: Memory) -> None:
        x, reduced = equation.inputs[0], equation.params["axis"]
        kept = [axis for axis in range(len(x.shape)) if axis not in reduced]

        def element(nest: Nest, of_result: Index, along: Index) -> int:
            places = dict(zip([*kept, *reduced], [*of_result, *along]))
            return nest.element(x, tuple(places[axis] for axis in range(len(x.shape))))

        sizes, others = [tuple(x.shape[axis] for axis in axes) for axes in (kept, reduced)]
        rows = kept and kept[-1] == len(x.shape) - 1 and sizes[-1] >= _LONG_ROW and math.prod(others) > 1
        reduction = _REDUCTIONS[equation.primitive]
        by_rows = bool(rows) and reduction.kind == "double"
        self.store_reduction(sizes, others, reduction, element, target, by_rows=by_rows)

    def _multiply(self, equation: Equation, target: Memory) -> None:
        labels = labels_of(equation)
        assert labels is not None
        sizes, summed = labels.sizes(equation), labels.summed()
        if self._multiplied_by_blocks(equation, labels, sizes, target):
            return

        def element(nest: Nest, of_result: Index, along: Index) -> int:
            return nest.product(equation, dict(zip([*labels.result, *summed], [*of_result, *along])))

        kept, others = [tuple(sizes[label] for label in own) for own in (labels.result, summed)]
        self.store_reduction(kept, others, _SUM_OF_PRODUCTS, element, target, by_rows=False)

    def _multiplied_by_blocks(self, equation: Equation, labels: Labels, sizes: dict[Any, int], target: Memory) -> bool:
        """Write a product of matrices by blocks of vectors; returns False where it is none, or small."""
        summed = [label for label in labels.summed() if sizes[label] > 1]
        if len(summed) != 1 or math.prod(sizes.values()) <= _FEW_MULTIPLICATIONS:
            return False
        axes = {label: number for number, label in enumerate(sizes)}
        nest = Nest(self, Box((0, size) for size in sizes.values()))
        places = {label: Place(0, 1, axis) for label, axis in axes.items()}
        found = nest.nodes[nest.product(equation, places)]
        left, right = (nest.nodes[o] for o in found.operands)
        if left.access is None or right.access is None or left.truth or right.truth:
            return False
        out = nest.access(
            target, tuple(sizes[label] for label in labels.result), tuple(places[a] for a in labels.result)
        )
        row = [a for a in labels.result if left.access.steps[axes[a]] and not right.access.steps[axes[a]]][-1:]
        column = [a for a in labels.result if right.access.steps[axes[a]] and not left.access.steps[axes[a]]][-1:]
        own = [[axes[a] for a in kind] for kind in (row, column, summed)]
        others = [axes[a] for a in labels.result if a not in (*row, *column) and sizes[a] > 1]
        return self._write_blocks((left.access, right.access, out), own, others, [*sizes.values()])

    def _write_blocks(
        self, accesses: Sequence[Access], own: Sequence[Sequence[int]], others: Sequence[int], sizes: Sequence[int]
    ) -> bool:
        """Write a product of matrices for all indices along the other axes."""
        row, column, summed = own
        left, right, out = [
            Grid("", *(sum(access.steps[a] for a in axes) for axes in pair))
            for access, pair in zip(accesses, [(row, summed), (summed, column), (row, column)])
        ]
        counts = Sizes(*(math.prod(sizes[a] for a in axes) for axes in (row, column, summed)))
        if not can_multiply(left, right, out, counts):
            return False
        pointers = [self.moved(access.pointer, access.constant) for access in accesses]
        loops = []
        for axis in others:
            loop = self.open(sizes[axis])
            loops.append(loop)
            pointers = [
                self.moved(p, loop.index, a.steps[axis]) if a.steps[axis] else p for p, a in zip(pointers, accesses)
            ]
        left, right, out = (g._replace(pointer=pointer) for g, pointer in zip((left, right, out), pointers))
        self.multiplied(left, right, out, counts)
        for loop in reversed(loops):
            self.close(loop)
        return True


def _column_and_row(equation: Equation) -> tuple[Variable, Variable] | None:
    """The operands of a product of a column and a row; None for another equation."""
    if equation.primitive not in (arithmetic.multiply, linear.matmul):
        return None
    rows, columns = equation.output.shape
    for left, right in itertools.permutations(equation.inputs):
        if getattr(left, "shape", ()) == (rows, 1) and getattr(right, "shape", ()) == (1, columns):
            return left, right
    return None


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(lines)

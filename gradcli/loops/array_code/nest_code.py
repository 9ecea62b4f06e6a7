"""Nests of loops over the elements of arrays, in LLVM IR."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.executors.llvm_equations import VectorCode
from gradcli.loops.array_code.array_plan import ArrayProgram, labels_of
from gradcli.loops.array_code.array_views import (
    Box,
    Index,
    NotWrittenError,
    Place,
    aligned,
    indexed,
    is_movement,
    origin,
)
from gradcli.loops.array_code.element_code import ElementCode, calls_library
from gradcli.named_tuples import NamedTuple
from gradcli.program.ir import Atom, Equation, Variable

# The number of parts at most into which one nest of loops is split.
_MOST_PARTS = 40
# The numbers of a vector of elementwise operations and of sums: several registers of most processors, whose operations do
# not wait for each other.
_WIDTH, _WIDTH_OF_SUM = 8, 16
# The number of nodes from which the elements that do not fill a vector are computed one by one, by less code.
_MANY_NODES = 10


class Memory(NamedTuple):
    """Consecutive numbers in memory, from the one at `pointer` + `offset`."""

    pointer: str
    offset: int = 0


class Access(NamedTuple):
    """The number at `constant` + the sum of `steps` times the indices of the loops in memory."""

    pointer: str
    constant: int
    steps: tuple[int, ...]


class Node(NamedTuple):
    """An element in a nest of loops: an access to memory, the result of an equation from other nodes, or a name.

    `truth` says whether it is a truth value, `axes` has the loops on which it depends.
    """

    truth: bool
    axes: frozenset[int]
    access: Access | None = None
    equation: Equation | None = None
    operands: tuple[int, ...] = ()
    name: str = ""


class Nest:
    """The elements that are computed in a nest of loops over a box, each of them once."""

    def __init__(self, code: NestCode, box: Box) -> None:
        self.code, self.box = code, box
        self.nodes: list[Node] = []
        self._known: dict[tuple[Atom, Index], int] = {}

    def element(self, atom: Atom, index: Index) -> int:
        """The number of the node of an element; the box is split where elements have different origins."""
        key = (atom, index) if isinstance(atom, Variable) else (repr(atom), ())
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = self._made(atom, index)
        return number

    def _made(self, atom: Atom, index: Index) -> int:
        code = self.code
        if not isinstance(atom, Variable):
            return self._add(Node(False, frozenset(), name=scalar_literal(float(atom))))
        name = code.name_of(atom)
        if name is not None:
            return self._add(Node(False, frozenset(), name=name))
        memory = code.memory_of(atom)
        if memory is not None:
            access = self.access(memory, atom.shape, index)
            axes = frozenset(a for a, step in enumerate(access.steps) if step)
            return self._add(Node(atom.dtype == "bool", axes, access))
        return self.result(code.program.defined[atom], index)

    def access(self, memory: Memory, shape: Shape, index: Index) -> Access:
        """The place in memory of an element of an array."""
        constant, steps = memory.offset, [0] * len(self.box)
        for place, distance in zip(index, distances(shape)):
            constant += place.constant * distance
            if place.factor:
                steps[place.axis] += place.factor * distance
        return Access(memory.pointer, constant, tuple(steps))

    def result(self, equation: Equation, index: Index) -> int:
        """The node of an element of the result of a lazy equation."""
        truth = equation.output.dtype == "bool"
        if is_movement(equation):
            found = origin(equation, index, self.box)
            if found is None:
                return self._add(Node(truth, frozenset(), name="false" if truth else scalar_literal(0.0)))
            return self.element(*found)
        labels = labels_of(equation)
        if labels is not None:
            return self.product(equation, dict(zip(labels.result, index)))
        operands = [self.element(a, aligned(index, getattr(a, "shape", ()))) for a in equation.inputs]
        return self._computed(equation, operands, truth=truth)

    def product(self, equation: Equation, places: Mapping[object, Place]) -> int:
        """The node of one term of a product, with a place for each label."""
        labels = labels_of(equation)
        assert labels is not None
        operands = []
        for atom, own in zip(equation.inputs, (labels.left, labels.right)):
            index = tuple(places.get(label, Place(0)) for label in own)
            operands.append(self.element(atom, aligned(index, atom.shape)))
        return self._computed(equation, operands, truth=False)

    def _computed(self, equation: Equation, operands: Sequence[int], *, truth: bool) -> int:
        axes = frozenset[int]().union(*(self.nodes[o].axes for o in operands))
        return self._add(Node(truth, axes, equation=equation, operands=tuple(operands)))

    def _add(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1


class LoopCode:
    """A loop that is being written, with the values that it carries from each pass to the next."""

    def __init__(self, name: str, before: str, count: int | str, place: int) -> None:
        self.name, self.before, self.count, self.place = name, before, count, place
        self.index = f"%{name}.i"
        self._carried: dict[str, list[str]] = {}

    def carried(self, kind: str, first: str) -> str:
        """A value of a type that begins with `first`; `next` gives what it is in the next pass."""
        name = f"%{self.name}.c{len(self._carried)}"
        self._carried[name] = [kind, first]
        return name

    def next(self, name: str, value: str) -> None:
        self._carried[name].append(value)

    def beginning(self) -> str:
        """The first lines of the loop."""
        index = f"  {self.index} = phi i64 [ 0, %{self.before} ], [ {self.index}.next, %{self.name}.end ]"
        others = (
            f"  {name} = phi {kind} [ {first}, %{self.before} ], [ {after}, %{self.name}.end ]"
            for name, (kind, first, after) in self._carried.items()
        )
        return "\n".join([f"  br label %{self.name}", f"{self.name}:", index, *others])


class NestCode(ElementCode):
    """The instructions of nests of loops. `block` is the label of the block that is being written."""

    def __init__(self, program: ArrayProgram) -> None:
        super().__init__()
        self.program = program
        self.block = "entry"
        self._labels = itertools.count()

    def name_of(self, variable: Variable) -> str | None:
        """The name of a variable that is a number on its own; None for others."""
        raise NotImplementedError

    def memory_of(self, variable: Variable) -> Memory | None:
        """The memory that has the elements of a variable; None if they are computed where they are read."""
        raise NotImplementedError

    def label(self, name: str) -> str:
        return f"{name}.{next(self._labels)}"

    def begin_block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def open(self, count: int | str) -> LoopCode:
        """Begin a loop of some passes, at least one."""
        loop = LoopCode(self.label("loop"), self.block, count, len(self.lines))
        self.lines.append("")
        self.block = loop.name
        return loop

    def close(self, loop: LoopCode) -> None:
        """End a loop."""
        self.lines[loop.place] = loop.beginning()
        name, index = loop.name, loop.index
        self.lines.append(f"""  br label %{name}.end
{name}.end:
  {index}.next = add nuw nsw i64 {index}, 1
  {index}.more = icmp ult i64 {index}.next, {loop.count}
  br i1 {index}.more, label %{name}, label %{name}.exit""")
        self.begin_block(f"{name}.exit")

    def moved(self, pointer: str, count: int | str, distance: int = 1) -> str:
        """A pointer to numbers, moved `count` times by a distance."""
        if not distance:
            return pointer
        if isinstance(count, int):
            if not count * distance:
                return pointer
            return self.put(f"getelementptr inbounds double, ptr {pointer}, i64 {count * distance}")
        if distance != 1:
            count = self.put(f"mul nsw i64 {count}, {distance}")
        return self.put(f"getelementptr inbounds double, ptr {pointer}, i64 {count}")

    def loaded(self, pointer: str) -> str:
        """The numbers at a pointer, as many as a vector has."""
        return self.put(f"load {self.kind}, ptr {pointer}, align 8")

    def store(self, value: str, pointer: str) -> None:
        self.lines.append(f"  store {self.kind} {value}, ptr {pointer}, align 8")

    def loaded_at_distances(self, pointer: str, distance: int) -> str:
        """Numbers at regular distances, as many as a vector has."""
        if self.width is None or distance == 1:
            return self.loaded(pointer)
        kind, last = self.kind, self.width - 1
        if distance == -1:
            turned = ", ".join(f"i32 {i}" for i in range(last, -1, -1))
            found = self.loaded(self.moved(pointer, -last))
            return self.put(f"shufflevector {kind} {found}, {kind} poison, <{self.width} x i32> <{turned}>")
        found = "poison"
        for i in range(self.width):
            number = self.put(f"load double, ptr {self.moved(pointer, i * distance)}, align 8")
            found = self.put(f"insertelement {kind} {found}, double {number}, i64 {i}")
        return found

    def vectors(self, count: int, most: int, *, short: bool) -> Iterator[int | str]:
        """Write loops over `count` numbers by vectors, of at most this width: the beginning of each. Its width is in use
        for the code that the caller writes for it. If that is `short`, the rest is written as shorter vectors."""
        begin, width = 0, most
        while begin < count:
            whole = (count - begin) // width
            if whole > 1:
                loop = self.open(whole)
                self.use_width(width)
                yield self.moved_index(loop.index, width, begin)
                self.use_width(1)
                self.close(loop)
            elif whole:
                self.use_width(width)
                yield begin
                self.use_width(1)
            begin += whole * width
            width = max(1, width // 2) if short else 1

    def blocks(self, count: int, size: int) -> Iterator[tuple[int | str, int]]:
        """Write a loop over blocks of a size, then the rest: the beginning and the size of each. The code that the caller
        writes for each of them stands in the loop."""
        whole = count // size
        if whole == 1:
            yield 0, size
        elif whole:
            loop = self.open(whole)
            yield self.put(f"mul nuw nsw i64 {loop.index}, {size}"), size
            self.close(loop)
        if count % size:
            yield whole * size, count % size

    def moved_index(self, index: str, width: int, begin: int) -> str:
        """The beginning of a vector, after `index` others of the same width."""
        place = self.put(f"mul nuw nsw i64 {index}, {width}")
        return self.put(f"add nuw nsw i64 {place}, {begin}") if begin else place

    def map_parts(self, shape: Shape, atom: Atom) -> list[tuple[Nest, int]]:
        """The nests over parts of a shape that compute the elements of an atom, with the number of their node."""
        own = aligned(whole_index(range(len(shape))), getattr(atom, "shape", ()))
        return self._parts(Box((0, size) for size in shape), lambda nest: nest.element(atom, own))

    def _parts(self, box: Box, element: Callable[[Nest], int], first: int = 0) -> list[tuple[Nest, int]]:
        """The nests over parts of a box in which all elements have one origin, as far as loops from `first` on matter."""
        found, pending = [], [box]
        while pending:
            nest = Nest(self, pending.pop())
            root = element(nest)
            parts = nest.box.parts(range(first, len(box)))
            box.splits.update(nest.box.splits)
            if len(parts) == 1:
                found.append((nest, root))
            else:
                pending += parts[::-1]
            if len(found) + len(pending) > _MOST_PARTS:
                raise NotWrittenError
        return found

    def store_map(self, parts: Iterable[tuple[Nest, int]], shape: Shape, target: Memory) -> None:
        """Write the elements of an array to memory."""
        for nest, root in parts:
            place = nest.access(target, shape, whole_index(range(len(shape))))
            self._store_part(nest, root, place, None, range(len(shape)))

    def _store_part(
        self, nest: Nest, root: int, place: Access, combine: Reduction | None, order: Iterable[int]
    ) -> None:
        """Store an element for each index in a box, or add it to what is there."""
        axes, nodes, (place,) = _merged(nest, [place], [*order])
        emitter = _Emitter(self, nodes, root, axes)
        emitter.prepare(place)
        loops = [emitter.enter(axis, count) for axis, count in axes[:-1]]
        axis, count = axes[-1] if axes else (0, 1)
        consecutive = bool(axes) and place.steps[axis] == 1
        most = emitter.most(_WIDTH) if consecutive else 1
        for begin in self.vectors(count, most, short=len(nodes) < _MANY_NODES):
            emitter.begin_vector(axis, begin)
            value, pointer = emitter.number(), emitter.pointer(place)
            if combine is not None:
                value = combine.joined(self, self.loaded(pointer), value)
            self.store(value, pointer)
        for loop in reversed(loops):
            self.close(loop)

    def store_reduction(
        self,
        kept: Shape,
        reduced: Shape,
        reduction: Reduction,
        element: Callable[[Nest, Index, Index], int],
        target: Memory,
        *,
        by_rows: bool,
    ) -> None:
        """Write the reduction of elements, which are functions of the index of the result and that along the reduced
        axes. If `by_rows`, the elements of results follow each other in memory more closely than those of a sum."""
        rank = len(kept)
        whole = whole_index(range(rank + len(reduced)))
        box = Box((0, size) for size in (*kept, *reduced))
        if by_rows:
            self._fill(kept, reduction.first, target)
            order = [*range(rank - 1), *range(rank, len(whole)), rank - 1]
            for nest, root in self._parts(box, lambda nest: element(nest, whole[:rank], whole[rank:])):
                self._store_part(nest, root, nest.access(target, kept, whole[:rank]), reduction, order)
            return
        pending = [box]
        while pending:
            own = pending.pop()
            parts = self._parts(own, lambda nest: element(nest, whole[:rank], whole[rank:]), rank)
            split = own.parts(range(rank))
            if len(split) == 1:
                self._store_sums(Box(own[:rank]), parts, kept, reduction, target)
            else:
                pending += split
            if len(pending) > _MOST_PARTS:
                raise NotWrittenError

    def _store_sums(
        self, box: Box, parts: Sequence[tuple[Nest, int]], kept: Shape, reduction: Reduction, target: Memory
    ) -> None:
        rank = len(box)
        loops = [self.open(end - begin) for begin, end in box]
        total = reduction.first_name()
        for nest, root in parts:
            axes, nodes, _ = _merged(nest, [], [*range(rank, len(nest.box))])
            emitter = _Emitter(self, nodes, root, axes, [loop.index for loop in loops])
            emitter.prepare()
            inner = []
            for axis, count in axes[:-1]:
                loop = emitter.enter(axis, count)
                total = loop.carried(reduction.kind, total)
                inner.append((loop, total))
            total = self._reduced(emitter, axes[-1] if axes else (0, 1), reduction, total)
            for loop, name in reversed(inner):
                loop.next(name, total)
                self.close(loop)
        pointer = self.moved(target.pointer, target.offset)
        for (begin, _), loop, distance in zip(box, loops, distances(kept)):
            pointer = self.moved(self.moved(pointer, loop.index, distance), begin * distance)
        if reduction.kind == "i1":
            total = self.put(f"uitofp i1 {total} to double")
        self.store(total, pointer)
        for loop in reversed(loops):
            self.close(loop)

    def _reduced(self, emitter: _Emitter, last: tuple[int, int], reduction: Reduction, total: str) -> str:
        """The reduction of a total and of the elements along the last axis."""
        axis, count = last
        begin, width = 0, emitter.most(_WIDTH_OF_SUM)
        while begin < count:
            whole = (count - begin) // width
            if whole:
                self.use_width(width)
                found = reduction.of_vector(self, self._reduced_vectors(emitter, axis, begin, whole, reduction))
                self.use_width(1)
                total = reduction.joined(self, total, found)
            begin += whole * width
            width = max(1, width // 2)
        return total

    def _reduced_vectors(self, emitter: _Emitter, axis: int, begin: int, count: int, reduction: Reduction) -> str:
        """The reduction of some vectors of the width in use, from an index along an axis on, to one of them."""
        if count == 1:
            emitter.begin_vector(axis, begin)
            return emitter.value(reduction.kind)
        loop = self.open(count)
        first = self.repeated(reduction.first_name(), reduction.kind)
        before = loop.carried(self.vector(reduction.kind), first)
        emitter.begin_vector(axis, self.moved_index(loop.index, self.width or 1, begin))
        found = reduction.joined(self, before, emitter.value(reduction.kind))
        loop.next(before, found)
        self.close(loop)
        return found

    def store_cumulative(self, reduction: Reduction, atom: Atom, axis: int, target: Memory) -> None:
        """Write the reductions of the elements up to each place along an axis."""
        shape = atom.shape
        order = [*(a for a in range(len(shape)) if a != axis), axis]
        index = whole_index(range(len(shape)))
        parts = self._parts(Box((0, size) for size in shape), lambda nest: nest.element(atom, index))
        distance = distances(shape)[axis]
        for nest, root in parts:
            place = nest.access(target, shape, index)
            begin, end = nest.box[axis]
            axes, nodes, (place,) = _merged(nest, [place], order, merging=False)
            emitter = _Emitter(self, nodes, root, axes)
            emitter.prepare(place)
            loops = [emitter.enter(a, count) for a, count in axes if a != axis]
            total = reduction.first_name()
            if begin:
                total = self.loaded(self.moved(emitter.pointer(place), -distance))
            last = self.open(end - begin)
            emitter.begin_vector(axis, last.index)
            before = last.carried("double", total)
            total = reduction.joined(self, before, emitter.number())
            last.next(before, total)
            self.store(total, emitter.pointer(place))
            self.close(last)
            for loop in reversed(loops):
                self.close(loop)

    def store_scattered(self, equation: Equation, target: Memory) -> None:
        """Write zeros, to which elements are added at the places of a key."""
        x, key, shape = equation.inputs[0], equation.params["key"], equation.params["shape"]
        self._fill(shape, 0.0, target)
        sizes = arrays.shape(arrays.numpy_namespace().broadcast_to(0.0, shape)[key])
        index = whole_index(range(len(sizes)))
        places: dict[Nest, Access] = {}

        def element(nest: Nest) -> int:
            places[nest] = nest.access(target, shape, indexed(key, shape, index, nest.box))
            return nest.element(x, aligned(index, getattr(x, "shape", ())))

        for nest, root in self._parts(Box((0, size) for size in sizes), element):
            self._store_part(nest, root, places[nest], SUM, range(len(sizes)))

    def _fill(self, shape: Shape, number: float, target: Memory) -> None:
        self.store_map(self.map_parts((math.prod(shape),), number), (math.prod(shape),), target)


# The names of reductions of vectors, where they are not those of the instructions.
_OF_VECTORS = {"maximum": "fmaximum", "minimum": "fminimum"}


class Reduction(NamedTuple):
    """How two elements become one: by an instruction on values of type `kind`, beginning with the number `first`."""

    instruction: str
    first: float
    kind: str = "double"

    def first_name(self) -> str:
        return scalar_literal(self.first) if self.kind == "double" else str(bool(self.first)).lower()

    def joined(self, code: NestCode, x: str, y: str) -> str:
        if self.instruction in ("maximum", "minimum"):
            return code.intrinsic(self.instruction, x, y)
        return code.put(f"{self.instruction} {code.vector(self.kind)} {x}, {y}")

    def of_vector(self, code: NestCode, x: str) -> str:
        """The reduction of the elements of a vector."""
        if code.width is None:
            return x
        name, *flags = self.instruction.split()
        kind = code.vector(self.kind)
        called = (
            f"@llvm.vector.reduce.{_OF_VECTORS.get(name, name)}.v{code.width}{'i1' if self.kind == 'i1' else 'f64'}"
        )
        first = f"double {scalar_literal(self.first)}, " if name in ("fadd", "fmul") else ""
        code.declared.add(f"declare {self.kind} {called}({'double, ' if first else ''}{kind})")
        return code.put(f"call {' '.join(flags)} {self.kind} {called}({first}{kind} {x})")


SUM, PRODUCT = Reduction("fadd", 0.0), Reduction("fmul", 1.0)


class _Emitter:
    """Writes the nodes of a nest, each in the outermost loop on which nothing that it reads depends further inside.

    The innermost loop is over vectors: what does not depend on it are numbers.
    """

    def __init__(
        self,
        code: NestCode,
        nodes: Sequence[Node],
        root: int,
        axes: Sequence[tuple[int, int]],
        outer: Sequence[str] = (),
    ) -> None:
        self.code, self.nodes, self._root = code, nodes, root
        self.axes = [axis for axis, _ in axes]
        self._outer = outer
        self._pointers: dict[Access, str] = {}
        self._vector_pointers: dict[Access, str] = {}
        self._names: dict[int, str] = {}
        self._vectors: dict[int, str] = {}
        self._entered = 0

    def most(self, width: int) -> int:
        """The width of vectors: 1 where functions of the C library are called."""
        equations = (node.equation for node in self.nodes)
        return 1 if any(e is not None and calls_library(e) for e in equations) else width

    def prepare(self, *places: Access) -> None:
        """Write what does not depend on the loops."""
        accesses = [*places, *(node.access for node in self.nodes if node.access is not None)]
        for access in dict.fromkeys(accesses):
            pointer = self.code.moved(access.pointer, access.constant)
            for axis, index in enumerate(self._outer):
                if access.steps[axis]:
                    pointer = self.code.moved(pointer, index, access.steps[axis])
            self._pointers[access] = pointer
        self._write()

    def enter(self, axis: int, count: int) -> LoopCode:
        """Open the next loop, and write what depends on it but not on the loops inside it."""
        loop = self.code.open(count)
        self._entered += 1
        for access, pointer in self._pointers.items():
            if access.steps[axis]:
                self._pointers[access] = self.code.moved(pointer, loop.index, access.steps[axis])
        self._write()
        return loop

    def _write(self) -> None:
        inside = {*self.axes[self._entered :]}
        for number, node in enumerate(self.nodes):
            if number not in self._names and inside.isdisjoint(node.axes):
                self._names[number] = self._written(node, self._names, self._pointers, 1)

    def begin_vector(self, axis: int, begin: int | str) -> None:
        """Write what depends on the innermost loop, for the vector that begins at an index along its axis."""
        code = self.code
        self._vectors = {}
        self._vector_pointers = {
            access: code.moved(pointer, begin, access.steps[axis]) if access.steps else pointer
            for access, pointer in self._pointers.items()
        }
        read = {o for n, node in enumerate(self.nodes) if n not in self._names for o in node.operands} | {self._root}
        for number, node in enumerate(self.nodes):
            if number not in self._names:
                distance = node.access.steps[axis] if node.access is not None else 1
                self._vectors[number] = self._written(node, self._vectors, self._vector_pointers, distance)
            elif number in read:
                self._vectors[number] = code.repeated(self._names[number], "i1" if node.truth else "double")

    def _written(self, node: Node, names: Mapping[int, str], pointers: Mapping[Access, str], distance: int) -> str:
        code = self.code
        if node.access is not None:
            found = code.loaded_at_distances(pointers[node.access], distance)
            return code.compared("une", found, code.literal(0.0)) if node.truth else found
        if node.equation is None:
            return node.name
        inputs = [Variable((), "bool" if self.nodes[o].truth else "float64") for o in node.operands]
        code.names.update(zip(inputs, (names[o] for o in node.operands)))
        found = code.computed(node.equation._replace(inputs=tuple(inputs)))
        for variable in inputs:
            del code.names[variable]
        return found

    def pointer(self, place: Access) -> str:
        """A place in memory: that of the current vector, or that which does not depend on the innermost loop."""
        return self._vector_pointers.get(place) or self._pointers[place]

    def number(self) -> str:
        """The element of the root in the current vector, as a number."""
        code, name = self.code, self._vectors[self._root]
        return code.put(f"uitofp {code.truths} {name} to {code.kind}") if self.nodes[self._root].truth else name

    def value(self, kind: str) -> str:
        """The element of the root in the current vector, as a number or as a truth value."""
        if kind != "i1":
            return self.number()
        name = self._vectors[self._root]
        return name if self.nodes[self._root].truth else self.code.compared("une", name, self.code.literal(0.0))


def scalar_literal(number: float) -> str:
    """A number in LLVM IR."""
    return VectorCode("", None).literal(number)


def distances(shape: Shape) -> list[int]:
    """The distances in memory of elements along each axis."""
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def whole_index(axes: Iterable[int]) -> Index:
    return tuple(Place(0, 1, axis) for axis in axes)


def _merged(
    nest: Nest, places: Sequence[Access], order: list[int], *, merging: bool = True
) -> tuple[list[tuple[int, int]], list[Node], list[Access]]:
    """The loops of a nest in some order, by axis and count, its nodes, and some places, where all indices begin at 0.

    Neighbouring loops become one where all accesses proceed in them at equal distances.
    """
    nodes = [n if n.access is None else n._replace(access=from_zero(n.access, nest.box)) for n in nest.nodes]
    places = [from_zero(place, nest.box) for place in places]
    accesses = [*places, *(n.access for n in nodes if n.access is not None)]
    found: list[tuple[int, int]] = []
    inner: dict[int, int] = {}
    for axis in reversed(order):
        count = nest.box[axis][1] - nest.box[axis][0]
        if count == 1:
            continue
        if merging and found:
            below, size = found[-1]
            if all(a.steps[axis] == a.steps[below] * size for a in accesses):
                found[-1] = (below, size * count)
                inner[axis] = below
                continue
        found.append((axis, count))
    kept = {axis for axis, _ in found}
    nodes = [n._replace(axes=frozenset(inner.get(a, a) for a in n.axes) & kept) for n in nodes]
    return found[::-1], nodes, places


def from_zero(access: Access, box: Box) -> Access:
    """An access with indices that count from the beginning of a box."""
    return access._replace(constant=access.constant + sum(s * b for s, (b, _) in zip(access.steps, box)))

"""Encloses the value of a program and its derivatives over a box of its inputs, through loops iteration by iteration:
proved lower and upper bounds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from math import factorial, prod
from typing import Any

from flint import arb, fmpq

from gradcli.arrays.flint import intervals
from gradcli.arrays.flint.balls import Number, UndecidedError, from_text, precise
from gradcli.arrays.flint.intervals import ALL, NOTHING, Bounds
from gradcli.errors import DifferentiationError, EvaluationError, GradcliError, LimitError, Span
from gradcli.language.names import scope
from gradcli.language.operations import error_span
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple
from gradcli.proofs.interval_evaluation import Box, ContinuousEnclosures, Enclosures, Entry, IntervalProgram

# Working precision in bits, before the bits of the requested digits.
_BITS = 128
# The numbers of runs of the program after which the box is no longer divided for bounds of the value, and after which
# it is no longer divided for any bound. For programs of 10 to 15 operations and 2 to 4 inputs that is 2 s of CPU; twice as
# many runs narrow their bounds by at most 5 % (`gradcli eval 'x*y-sin(x*y)+exp(-x**2-y**2)*cos(3*x)' x=-1..2 y=0..2
# --enclose`).
_MOST_FOR_VALUE, _MOST_READINGS = 800, 1_200
# The same bound for one iteration of a loop, and the number of runs of an iteration that count as one run of the
# program.
_MOST_FOR_ROUND, _ROUNDS_IN_READING = 60, 10
# Derivatives of one order more than requested are computed only where there are at most this many of them.
_MOST_FURTHER = 36
# Up to this number of input elements, second derivatives are always computed.
_FEW_INPUTS = 3
# Bound on the number of faces of one box that are evaluated.
_MOST_FACES = 8
# A piece that is smaller than this share of the box in every input is not divided.
_SMALLEST = fmpq(1, 2**48)
# The series at a removable singularity is used for boxes whose distance from it is at most this many times their width.
# Farther away, other bounds suffice.
_NEAR = 8
# A bound that stays the same in this many divisions is no longer pursued.
_MOST_DIVISIONS = 20
# Returns bounds of the value of a program over its whole box. Raises GradcliError where there are none.
_Search = Callable[[IntervalProgram], Sequence[Bounds]]

# Bound on the number of iterations; longer loops are run without these bounds.
_MOST_ROUNDS = 1_000
# Significant digits to which bounds are rounded between iterations, so that their fractions stay short.
_DIGITS = 30


# Bounds of the result of an operation in each iteration, by source span.
_Rounds = Mapping[Span, Sequence[Bounds]]


class Enclosed(NamedTuple):
    """Enclosures of the elements of a value and of its derivatives, up to one order more than requested where that is
    cheap.

    `continuous` says whether the value and its first derivatives are proved to be continuous; the derivatives are then
    those of the value. `reached` has a range for each entry, which is known to take a number at most as large as its
    low end and one at least as large as its high end.
    """

    found: Enclosures
    continuous: tuple[bool, bool]
    reached: Enclosures


class UnboundedError(EvaluationError):
    """A value has no bounds over a box, or none that can be found."""


class _Piece(NamedTuple):
    """A piece of the box: its enclosures, the continuity for each order, and the error that stopped at a higher
    order."""

    box: Box
    found: Enclosures
    continuous: Sequence[bool]
    why: UndecidedError | None


class _Loose(NamedTuple):
    """A bound that can be improved: its relative distance from the reached numbers, and the piece that determines
    it."""

    distance: Number
    key: tuple[Entry, int]
    number: Number
    piece: _Piece


def enclosures(boxed: IntervalProgram, order: int, digits: int, *, jacobian: bool = False) -> Enclosed:
    """Enclose the value and all derivatives up to `order`, to about `digits` digits where that is possible.

    Raises what the program raises, DifferentiationError for derivatives of a non-scalar value without `jacobian`, and
    UnboundedError where the value has no bounds.
    """
    with precise(_BITS + 4 * digits):
        return _EnclosureSearch(boxed, order, digits, jacobian).run()


class _EnclosureSearch:
    def __init__(
        self, boxed: IntervalProgram, order: int, digits: int, jacobian: bool, most: int | None = None
    ) -> None:
        self.boxed = boxed
        self.order = order
        self.jacobian = jacobian
        self.digits = digits
        self.most = _MOST_READINGS if most is None else most
        # Source spans whose operands have been enclosed, or tried to be.
        self.asked: set[Span] = set()
        self.tolerance = fmpq(1, 10 ** (digits + 1))
        self.wide = [i for i, part in enumerate(boxed.whole) if part.low < part.high]
        wide = frozenset(name for name, places in boxed.inputs.items() if not set(places).isdisjoint(self.wide))
        # The leaves to differentiate by: all of them, or, where derivatives by constant inputs do not exist, only those
        # that range over intervals.
        self._differentiable = (None,) if wide == frozenset(boxed.inputs) else (None, wide)
        self.readings = 0
        # The order for which the box is being divided; faces are evaluated only up to this order.
        self.level = order
        # See `Enclosed.reached`.
        self.reached: Enclosures = {}
        self.entries: dict[Entry, None] = {}
        # Points of removable singularities, by input name.
        self.centers: dict[str, dict[fmpq, None]] = {}
        # By bound: its value when a piece was last divided for it, and the number of divisions without improvement.
        self.tried: dict[tuple[Entry, int], tuple[Number, int]] = {}

    def run(self) -> Enclosed:
        self._learn_the_shape()
        if self.wide:
            self.boxed.known_in_rounds = _loop_bounds(self.boxed, self._bounds_of_round)
        pieces = [self._piece(self.boxed.whole, {})]
        while self.readings < self.most and (worst := self._worst(pieces)) is not None:
            try:
                halves = [self._piece(box, worst.found) for box in self._halves(worst)]
            except LimitError:
                # The enclosures found so far are valid.
                break
            pieces.remove(worst)
            pieces += halves
        return self._joined(pieces)

    def _learn_the_shape(self) -> None:
        """Determine the shape of the value. Raises DifferentiationError for gradients of a non-scalar value."""
        middle = tuple(_point(_middle(part)) for part in self.boxed.whole)
        for box in (self.boxed.whole, middle):
            with suppress(UndecidedError):
                self._read(box, 0)
                break
        if self.order and self.boxed.shape and not self.jacobian:
            raise DifferentiationError(
                "there are gradients of scalars alone",
                hint=f"the value has shape {list(self.boxed.shape)}: --jacobian encloses the derivatives of each element, "
                "--no-grad gives the value alone",
            )

    def _bounds_of_round(self, boxed: IntervalProgram) -> Sequence[Bounds]:
        """Enclose each element of the value of a loop iteration, with at most `_MOST_FOR_ROUND` runs.

        Raises UndecidedError once the iterations have used half of the runs for the value.
        """
        search = _EnclosureSearch(boxed, 0, self.digits, jacobian=False, most=_MOST_FOR_ROUND)
        if self.readings > _MOST_FOR_VALUE // 2:
            raise UndecidedError("the bounds of many rounds are wanted")
        found = search.run().found
        # An iteration is a small part of the program.
        self.readings += search.readings // _ROUNDS_IN_READING
        return [found[k, ()] for k in range(prod(boxed.shape))]

    def _joined(self, pieces: Sequence[_Piece]) -> Enclosed:
        """The enclosures over all pieces together. Raises UnboundedError where a piece has no bounds of the value."""
        for piece in pieces:
            values = [bounds for entry, bounds in piece.found.items() if not entry[1]]
            if not values or not all(bounds.is_finite for bounds in values):
                raise self._unbounded(piece)
        found = dict.fromkeys(entry for piece in pieces for entry in piece.found)
        joined: Enclosures = {}
        for entry in found:
            joined[entry] = reduce(Bounds.joined, (piece.found.get(entry, ALL) for piece in pieces))
        value, first = (
            self.boxed.honest and all(len(p.continuous) > n and p.continuous[n] for p in pieces) for n in range(2)
        )
        return Enclosed(joined, (value, first), self.reached)

    def _unbounded(self, piece: _Piece) -> UnboundedError:
        place = self.boxed.box_text(piece.box)
        last = self.boxed.program.body[-1]
        source, span = self.boxed.program.source, last.span
        if piece.why is not None and piece.why.span is not None:
            span = piece.why.span
        return UnboundedError(
            f"there is no bound, or no value, at some point{place}",
            hint="give a narrower interval: this may be a pole, the end of a domain, or a condition that is open there",
            span=span,
            source=source,
        )

    # --- one box

    def _piece(self, box: Box, around: Enclosures) -> _Piece:
        """Enclose everything over a box, up to one order more than requested as far as bounds exist. `around` are
        enclosures over a larger box."""
        readings, why = self._readings(box)
        if self.boxed.honest and not self.boxed.shape and (why is not None or self.centers):
            series = self._around_a_center(box)
            both = [*map(ContinuousEnclosures.narrowed, readings, series)]
            readings = both + readings[len(both) :] + series[len(both) :]
        found: Enclosures = {**around}
        for entry, bounds in (pair for reading in readings for pair in reading.found.items()):
            known = found.get(entry)
            found[entry] = bounds if known is None else bounds.narrowed(known)
            if len(entry[1]) <= self.order:
                self.entries.setdefault(entry)
        continuous = [reading.continuous for reading in readings]
        piece = _Piece(box, found, continuous, why)
        if self.wide and self.boxed.honest:
            self._narrow(piece)
        return piece

    def _readings(self, box: Box) -> tuple[list[ContinuousEnclosures], UndecidedError | None]:
        """Return one reading for each order, and the error that prevents higher orders."""
        highest = self.order
        if self._goes_further():
            # Second derivatives pay off even when only the value is requested.
            few = not self.boxed.shape and len(self.boxed.whole) <= _FEW_INPUTS
            highest = max(self.order + 1, 2) if few else self.order + 1
        for names in self._differentiable:
            try:
                reading = self._read(box, highest, names)
                if reading.continuous:
                    # Lower orders are continuous as well, and part of the same reading.
                    return [reading] * (highest + 1), None
                break
            except UndecidedError:
                pass
        readings: list[ContinuousEnclosures] = []
        for order in range(highest + 1):
            try:
                readings.append(self._read_by_leaves(box, order))
            except UndecidedError as error:
                if not order and self._learn_operands(error):
                    return self._readings(box)
                return readings, error
        return readings, None

    def _around_a_center(self, box: Box) -> list[ContinuousEnclosures]:
        """Return one reading for each order from the series at a removable singularity of a scalar input; empty where
        none is near."""
        for name, places in self.boxed.inputs.items():
            i = places.start
            if self.boxed.leaves[name] or i not in self.wide:
                continue
            part, highest = box[i], self.order + 1
            near = [c for c in self.centers.get(name, ()) if _is_near(c, part)]
            for center in near or [intervals.simplest(part)]:
                self.readings += 1
                coefficients = self.boxed.enclose_taylor_coefficients(box, name, center, highest)
                if coefficients:
                    self.centers.setdefault(name, {})[center] = None
                    found = {(0, (i,) * n): _times(b, factorial(n)) for n, b in enumerate(coefficients)}
                    return [ContinuousEnclosures(found, True)] * (highest + 1)
        return []

    def _learn_operands(self, error: UndecidedError) -> bool:
        """Enclose the operands of the operation that failed, over the whole box. Return whether new bounds were
        found."""
        if error.span is None or error.span in self.asked or not self.wide:
            return False
        self.asked.add(error.span)
        before = len(self.boxed.known)
        for span, program in operands_at(self.boxed.program, error.span):
            boxed = IntervalProgram(program, self.boxed.fixed, self.boxed.leaves, self.boxed.whole)
            search = _EnclosureSearch(boxed, 0, self.digits, jacobian=False)
            boxed.known, search.asked = self.boxed.known, self.asked
            with suppress(GradcliError):
                found = search.run().found
                if not boxed.shape:
                    self.boxed.known[span] = found[0, ()]
        return len(self.boxed.known) > before

    def _goes_further(self) -> bool:
        """Return whether derivatives of one order more than requested are computed."""
        if not self.wide or not self.boxed.honest:
            return False
        return self.order == 0 or (not self.boxed.shape and len(self.boxed.whole) ** (self.order + 1) <= _MOST_FURTHER)

    def _narrow(self, piece: _Piece) -> None:
        """Narrow the enclosures of every order by those of the next order."""
        known = len(piece.continuous) - 1
        if known < 0:
            return
        faces: dict[Box, Enclosures] = {}

        def at(box: Box) -> Enclosures:
            if box not in faces and len(faces) <= _MOST_FACES:
                faces[box] = self._read_at(box, max(known - 1, 0))
            return faces.get(box, {})

        middle = at(tuple(_point(_middle(part)) for part in piece.box))
        for level in reversed(range(known)):
            if not piece.continuous[level]:
                continue
            for entry in [e for e in piece.found if len(e[1]) == level]:
                slopes = {i: piece.found.get(_derivative_entry(entry, i), ALL) for i in self.wide}
                narrowed = piece.found[entry]
                if entry in middle:
                    narrowed = narrowed.narrowed(_mean_value(middle[entry], slopes, piece.box))
                if level + 2 <= known and piece.continuous[level + 1]:
                    narrowed = narrowed.narrowed(self._second_order(entry, middle, piece))
                if level <= self.level and any(_sign(slope) for slope in slopes.values()):
                    low, high = (at(_face(piece.box, slopes, side)).get(entry, ALL) for side in (-1, 1))
                    narrowed = narrowed.narrowed(Bounds(low.low, high.high))
                piece.found[entry] = narrowed

    def _second_order(self, entry: Entry, middle: Enclosures, piece: _Piece) -> Bounds:
        """Enclose a number by its Taylor polynomial of degree 1 at the centre of a box and its second derivatives over
        the box."""
        slopes = {i: middle.get(_derivative_entry(entry, i), ALL) for i in self.wide}
        bends = {
            (i, j): piece.found.get(_derivative_entry(_derivative_entry(entry, i), j), ALL)
            for i in self.wide
            for j in self.wide
            if i <= j
        }
        if not all(bounds.is_finite for bounds in (middle.get(entry, ALL), *slopes.values(), *bends.values())):
            return ALL
        low, high = middle[entry]
        radii = {i: tuple(end - _middle(piece.box[i]) for end in piece.box[i]) for i in self.wide}
        for i, slope in slopes.items():
            bend = bends[i, i]
            low += min(_lowest(g, bend.low / 2, radii[i]) for g in slope)
            high -= min(_lowest(-g, -bend.high / 2, radii[i]) for g in slope)
        for (i, j), bend in bends.items():
            if i < j:
                products = [b * di * dj for b in bend for di in radii[i] for dj in radii[j]]
                low, high = low + min(products), high + max(products)
        # Exact fractions with many digits are rounded outward.
        return Bounds(intervals.bounds(arb(low)).low, intervals.bounds(arb(high)).high)

    def _read_by_leaves(self, box: Box, order: int) -> ContinuousEnclosures:
        """Read with derivatives by all leaves, or, where that fails, by those that range over intervals."""
        first, *others = self._differentiable
        try:
            return self._read(box, order, first)
        except UndecidedError:
            if not (order and others):
                raise
        return self._read(box, order, others[0])

    def _read(self, box: Box, order: int, names: Collection[str] | None = None) -> ContinuousEnclosures:
        self.readings += 1
        return self.boxed.read(box, order, names)

    def _read_at(self, box: Box, order: int) -> Enclosures:
        """Enclosures over a face or at a point, which are noted in `reached`; empty where there are no bounds."""
        try:
            found = self._read(box, order).found
        except UndecidedError:
            return {}
        if all(part.low == part.high for part in box):
            for entry, bounds in found.items():
                if bounds.is_finite:
                    # The number lies between these bounds, so it is at most `high` and at least `low`.
                    inner = Bounds(bounds.high, bounds.low)
                    self.reached[entry] = self.reached.get(entry, inner).joined(inner)
        return found

    # --- choosing what to divide

    def _worst(self, pieces: Sequence[_Piece]) -> _Piece | None:
        """Return the piece to divide next: the one that determines the loosest bound, of the lowest order that has
        loose bounds. Sets `level` to that order, and counts the attempt in `tried`."""
        if not self.entries:
            return self._widest(pieces)
        for level in range(self.order + 1):
            if not level and self.order and self.readings >= _MOST_FOR_VALUE:
                continue
            self.level = level
            loose = max(self._loose(pieces, level), key=lambda bound: bound.distance, default=None)
            if loose is not None:
                number, count = self.tried.get(loose.key, (loose.number, 0))
                self.tried[loose.key] = loose.number, count + 1 if number == loose.number else 0
                return loose.piece
        return None

    def _loose(self, pieces: Sequence[_Piece], level: int) -> Iterator[_Loose]:
        """Yield the bounds of one order that may still improve."""
        for entry in self.entries:
            if len(entry[1]) != level:
                continue
            found = [p.found.get(entry, ALL) for p in pieces]
            both = reduce(Bounds.joined, found)
            reached = self.reached.get(entry, NOTHING)
            size = max(abs(both.low), abs(both.high)) if both.is_finite and reached is not NOTHING else 1
            for side, gap in ((0, reached.low - both.low), (1, both.high - reached.high)):
                key = entry, side
                if gap > self.tolerance * size and self.tried.get(key, (None, 0))[1] < _MOST_DIVISIONS:
                    piece = next(p for p, bounds in zip(pieces, found) if bounds[side] == both[side])
                    if self._can_be_halved(piece):
                        yield _Loose(gap / size, key, both[side], piece)

    def _widest(self, pieces: Sequence[_Piece]) -> _Piece | None:
        """Return the widest piece, to divide while no piece has any bounds."""
        return max(filter(self._can_be_halved, pieces), key=lambda p: max(map(_width, p.box)), default=None)

    def _can_be_halved(self, piece: _Piece) -> bool:
        return any(_width(piece.box[i]) > _SMALLEST * _width(self.boxed.whole[i]) for i in self.wide)

    def _halves(self, piece: _Piece) -> Iterator[Box]:
        """Bisect a box across the input with the largest influence on its value, estimated by slope times width."""
        slopes = [piece.found.get((0, (i,)), ALL) for i in self.wide]
        if all(slope.is_finite for slope in slopes):
            influence = [_width(piece.box[i]) * max(abs(s.low), abs(s.high)) for i, s in zip(self.wide, slopes)]
        else:
            influence = [_width(piece.box[i]) / _width(self.boxed.whole[i]) for i in self.wide]
        across = self.wide[max(range(len(influence)), key=influence.__getitem__)]
        low, high = piece.box[across]
        cut = _middle(piece.box[across])
        for part in (Bounds(low, cut), Bounds(cut, high)):
            yield (*piece.box[:across], part, *piece.box[across + 1 :])


def _derivative_entry(entry: Entry, i: int) -> Entry:
    """The derivative of an entry by input `i`."""
    return entry[0], tuple(sorted((*entry[1], i)))


def _point(number: Number) -> Bounds:
    return Bounds(number, number)


def _times(part: Bounds, factor: int) -> Bounds:
    return Bounds(part.low * factor, part.high * factor)


def _is_near(point: fmpq, part: Bounds) -> bool:
    """Return whether a point is in an interval, or within a few widths of it."""
    return bool(max(part.low - point, point - part.high) <= _NEAR * _width(part))


def _width(part: Bounds) -> Number:
    return part.high - part.low


def _middle(part: Bounds) -> fmpq:
    """A dyadic number with few bits near the middle of an interval."""
    width = _width(part)
    if not width:
        return part.low
    # A power of 2 between 1/16 and 1/64 of the width.
    exponent = int(width.p).bit_length() - int(width.q).bit_length() - 5
    step = fmpq(2) ** exponent
    return ((part.low + width / 2) / step).floor() * step


def _sign(slope: Bounds) -> int:
    return 1 if slope.low >= 0 else -1 if slope.high <= 0 else 0


def _face(box: Box, slopes: Mapping[int, Bounds], side: int) -> Box:
    """The face on which a number with these slopes is lowest (side -1) or highest (side 1)."""
    face = list(box)
    for i, slope in slopes.items():
        if sign := _sign(slope):
            face[i] = _point(box[i].low if sign * side < 0 else box[i].high)
    return tuple(face)


def _lowest(slope: fmpq, bend: fmpq, ends: tuple[fmpq, ...]) -> fmpq:
    """The minimum of slope*d + bend*d**2 for d between two ends."""
    found = [d * (slope + bend * d) for d in ends]
    if bend > 0 and ends[0] < (vertex := -slope / (2 * bend)) < ends[1]:
        found.append(vertex * (slope + bend * vertex))
    return min(found)


def _mean_value(middle: Bounds, slopes: Mapping[int, Bounds], box: Box) -> Bounds:
    """The mean value form: enclose a number by that at the centre of a box and its slopes over the box.

    Sums are rounded outward, since their exact fractions may be too large.
    """
    low, high = middle
    for i, slope in slopes.items():
        if not (slope.is_finite and middle.is_finite):
            return ALL
        centre = _middle(box[i])
        products = [s * (end - centre) for s in slope for end in box[i]]
        low, high = low + min(products), high + max(products)
    return Bounds(intervals.bounds(low).low, intervals.bounds(high).high)


# --- operands as programs of their own, which are enclosed like any value


def operands_at(program: tree.Module, span: Span) -> Iterator[tuple[Span, tree.Module]]:
    """Yield (span, program) for each operand of the operation at `span` that is an operation itself, or a name of one.

    The program has the operand as its value. Operations within loops and functions are skipped.
    """
    for number, statement in enumerate(program.body):
        if not isinstance(statement, (tree.Evaluate, tree.Assign, tree.Augment)):
            continue
        for node in _evaluated_once(statement):
            if error_span(node) == span:
                for operand in tree.children(node):
                    known, before = _meaning(operand, program.body[:number])
                    if isinstance(known, (tree.Binary, tree.Unary, tree.Call)):
                        value = tree.Evaluate(known.span, known)
                        yield error_span(known), tree.Module(program.span, program.source, (*before, value))


def _evaluated_once(statement: tree.Statement) -> Iterator[tree.Expression]:
    stack: list[tree.SyntaxNode] = [statement]
    while stack:
        node = stack.pop()
        if isinstance(node, (tree.Lambda, tree.Comprehension)):
            continue
        if isinstance(node, tree.Expression):
            yield node
        stack += tree.children(node)


def _meaning(
    node: tree.SyntaxNode, before: Sequence[tree.Statement]
) -> tuple[tree.SyntaxNode, Sequence[tree.Statement]]:
    """Resolve a name to the expression assigned to it, and return that with the statements before the assignment.

    Any other node is returned as it is.
    """
    for number in reversed(range(len(before))):
        statement = before[number]
        if isinstance(node, tree.Name) and isinstance(statement, tree.Assign):
            names = [n.name if isinstance(n, tree.BoundName) else None for n in statement.targets]
            if names == [node.id]:
                node, before = statement.value, before[:number]
    return node, before


def _loop_bounds(boxed: IntervalProgram, search: _Search) -> _Rounds:
    """Enclose what the loops of a program assign, over the whole box. Only loops over a `range` without branches are
    treated."""
    found: dict[Span, Sequence[Bounds]] = {}
    for number, statement in enumerate(boxed.program.body):
        if isinstance(statement, tree.For) and _is_plain(statement):
            with suppress(UndecidedError, GradcliError):
                found |= _Loop(boxed, number, statement, search).rounds()
    return found


def _is_plain(loop: tree.For) -> bool:
    over_range = isinstance(loop.iterable, tree.Call) and loop.iterable.name == "range" and not loop.iterable.keywords
    simple = all(
        isinstance(s, tree.Augment | tree.Assign)
        and all(isinstance(t, tree.BoundName | tree.Name) for t in _targets(s))
        for s in loop.body
    )
    return over_range and simple and isinstance(loop.target, tree.BoundName)


def _targets(statement: tree.Assign | tree.Augment) -> Sequence[tree.SyntaxNode]:
    return statement.targets if isinstance(statement, tree.Assign) else (statement.target,)


def _name(target: Any) -> str:
    return target.name if isinstance(target, tree.BoundName) else target.id


class _Loop:
    def __init__(self, boxed: IntervalProgram, number: int, loop: tree.For, search: _Search) -> None:
        self.boxed = boxed
        self.loop = loop
        self.search = search
        self.before = boxed.program.body[:number]
        # The last assignment to each name.
        assigning = [s for s in loop.body if isinstance(s, tree.Assign | tree.Augment)]
        self.assigned = {_name(t): s for s in assigning for t in _targets(s)}

    def rounds(self) -> _Rounds:
        """Return the bounds after each iteration, by the source span of the last assignment to each name. Raises
        UndecidedError or GradcliError where there are none."""
        names = [*self.assigned]
        program = self._program(self.loop.body, names)
        reads = scope.free_names(program)
        counter = _name(self.loop.target)
        box = {n: self._at_the_start(n) for n in reads if n not in self.boxed.fixed and n != counter}
        fixed = {n: v for n, v in self.boxed.fixed.items() if n in reads}
        known: dict[Any, Sequence[Bounds]] = {}
        found: dict[str, list[Bounds]] = {name: [] for name in names}
        for value in self._numbers():
            given = fixed | ({counter: float(value)} if counter in reads else {})
            key = tuple(box.values()), given.get(counter)
            if key not in known:
                whole = IntervalProgram(program, given, dict.fromkeys(box, ()), tuple(box.values()))
                known[key] = [_shortened(bounds) for bounds in self.search(whole)]
            for name, bounds in zip(names, known[key]):
                if name in box:
                    box[name] = bounds
                found[name].append(bounds)
        return {self._operation(self.assigned[name]): bounds for name, bounds in found.items()}

    def _program(self, body: Sequence[tree.Statement], names: Sequence[str]) -> tree.Module:
        """Return a program of some statements whose value is a list of names, with the functions defined before the
        loop."""
        span = self.loop.span
        listed = tuple(tree.Name(span, name, "") for name in names)
        value = listed[0] if len(listed) == 1 else tree.List(span, listed)
        defined = [s for s in self.before if isinstance(s, tree.Define | tree.Import)]
        source = self.boxed.program.source
        return tree.Module(self.boxed.program.span, source, (*defined, *body, tree.Evaluate(span, value)))

    def _operation(self, statement: tree.Assign | tree.Augment) -> Span:
        """The source span of the operation whose result is assigned; it may be in the body of a function."""
        if isinstance(statement, tree.Augment):
            return error_span(statement)
        value = statement.value
        called = value.name if isinstance(value, tree.Call) else None
        for defined in self.before:
            if (
                isinstance(defined, tree.Define)
                and defined.name == called
                and isinstance(defined.body, tree.Expression)
            ):
                value = defined.body
        return error_span(value)

    def _at_the_start(self, name: str) -> Bounds:
        """Return the bounds of a name before the loop."""
        program = tree.Module(
            self.boxed.program.span,
            self.boxed.program.source,
            (*self.before, tree.Evaluate(self.loop.span, tree.Name(self.loop.span, name, ""))),
        )
        return _shortened(self.search(_over(self.boxed, program))[0])

    def _numbers(self) -> range:
        """Return the range of the loop. Raises UndecidedError where it varies over the box or is too long."""
        ends = []
        for argument in tree.positional(self.loop.iterable):  # type: ignore[arg-type]
            program = tree.Module(
                self.boxed.program.span,
                self.boxed.program.source,
                (*self.before, tree.Evaluate(argument.span, argument)),
            )
            bounds = self.search(_over(self.boxed, program))[0]
            if bounds.low != bounds.high:
                raise UndecidedError("the number of rounds of a loop is not the same over the box")
            ends.append(int(bounds.low))
        found = range(*ends)
        if len(found) > _MOST_ROUNDS:
            raise UndecidedError("a loop has many rounds")
        return found


def _over(boxed: IntervalProgram, program: tree.Module) -> IntervalProgram:
    """A program over the same box, restricted to the inputs that it reads."""
    reads = scope.free_names(program)
    leaves: Mapping[str, Any] = {n: s for n, s in boxed.leaves.items() if n in reads}
    whole = tuple(boxed.whole[i] for n in leaves for i in boxed.inputs[n])
    return IntervalProgram(program, {n: v for n, v in boxed.fixed.items() if n in reads}, leaves, whole)


def _shortened(bounds: Bounds) -> Bounds:
    """Round bounds outward to `_DIGITS` digits. Raises UndecidedError for infinite bounds."""
    if not bounds.is_finite:
        raise UndecidedError("it cannot be told whether a number is finite")
    low, high = (from_text(intervals.text(n, _DIGITS, upward=up)) for n, up in zip(bounds, (False, True)))
    return Bounds(low, high)

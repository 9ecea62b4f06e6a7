"""Matrix products in LLVM IR, by blocks of vectors that stay in registers."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.loops.array_code.nest_code import NestCode
from gradcli.named_tuples import NamedTuple

# The numbers of a vector: 256 bits. Processors with shorter ones take two at a time.
_WIDTH = 4
# The vectors of sums that are computed together: processors with AVX2 have 16 registers, and as many additions have to be
# under way at a time.
_TOGETHER = 8


class Grid(NamedTuple):
    """A matrix in memory, whose element (r, c) is `r*down + c*across` numbers after the one at `pointer`."""

    pointer: str
    down: int
    across: int

    @property
    def transposed(self) -> Grid:
        return Grid(self.pointer, self.across, self.down)


class Sizes(NamedTuple):
    """The number of rows and columns of a product, and of terms of each of its sums, which may be a name."""

    rows: int
    columns: int
    terms: int | str


def can_multiply(left: Grid, right: Grid, out: Grid, sizes: Sizes) -> bool:
    """Return whether the elements of two matrices follow each other in memory as `ProductCode` needs it."""
    return (
        _has_rows(right, out, sizes.columns)
        or _has_rows(left.transposed, out.transposed, sizes.rows)
        or (left.across == 1 and right.down == 1)
    )


def _has_rows(factor: Grid, out: Grid, columns: int) -> bool:
    """Return whether the columns of a factor, and those of a product, follow each other in memory."""
    return columns > 1 and factor.across == 1 and out.across == 1


class ProductCode(NestCode):
    """The instructions of matrix products. Sums are of several parts, and each product is added with one rounding."""

    def multiplied(self, left: Grid, right: Grid, out: Grid, sizes: Sizes) -> None:
        """Write the product of two matrices for which `can_multiply`."""
        if _has_rows(right, out, sizes.columns):
            self._by_columns(left, right, out, sizes)
        elif _has_rows(left.transposed, out.transposed, sizes.rows):
            turned = Sizes(sizes.columns, sizes.rows, sizes.terms)
            self._by_columns(right.transposed, left.transposed, out.transposed, turned)
        else:
            assert isinstance(sizes.terms, int)
            self._by_sums(left, right, out, sizes, sizes.terms)

    def add_product(self, left: Grid, right: Grid, out: Grid, sizes: Sizes, added: str) -> None:
        """Write the sum of a matrix and of the product of two matrices whose rows follow each other in memory."""
        self._by_columns(left, right, out, sizes, added)

    def _by_columns(self, left: Grid, right: Grid, out: Grid, sizes: Sizes, added: str | None = None) -> None:
        """Compute vectors of consecutive elements of a row, in blocks of several rows, and add them to the matrix that
        stands at `added`, in the order of `out`."""
        rows = 4 if sizes.rows >= 4 else sizes.rows
        vectors = max(1, _TOGETHER // rows)
        for column, columns in self.blocks(sizes.columns, vectors * _WIDTH):
            own, below = self.moved(right.pointer, column), self.moved(out.pointer, column)
            first = None if added is None else self.moved(added, column)
            for row, count in self.blocks(sizes.rows, rows):
                self._block(
                    left._replace(pointer=self.moved(left.pointer, row, left.down)),
                    right._replace(pointer=own),
                    out._replace(pointer=self.moved(below, row, out.down)),
                    Sizes(count, columns, sizes.terms),
                    None if first is None else self.moved(first, row, out.down),
                )

    def _block(self, left: Grid, right: Grid, out: Grid, sizes: Sizes, added: str | None) -> None:
        parts = _parts(sizes.columns)
        keys = [(r, begin, width) for r in range(sizes.rows) for begin, width in parts]
        start = dict.fromkeys(keys, "zeroinitializer")
        if added is not None:
            start = {(r, begin, w): self._vector_at(added, r * out.down + begin, w) for r, begin, w in keys}
        loop = self.open(sizes.terms)
        sums = {key: loop.carried(_vector(key[2]), start[key]) for key in keys}
        own = self.moved(right.pointer, loop.index, right.down)
        vectors = {begin: self._vector_at(own, begin, width) for begin, width in parts}
        column = self.moved(left.pointer, loop.index, left.across)
        factors = [self.loaded(self.moved(column, r * left.down)) for r in range(sizes.rows)]
        found = {}
        for key in keys:
            r, begin, width = key
            found[key] = self._added_product(width, self._repeated(factors[r], width), vectors[begin], sums[key])
            loop.next(sums[key], found[key])
        self.close(loop)
        for r, begin, width in keys:
            place = self.moved(out.pointer, r * out.down + begin)
            self.lines.append(f"  store {_vector(width)} {found[r, begin, width]}, ptr {place}, align 8")

    def _by_sums(self, left: Grid, right: Grid, out: Grid, sizes: Sizes, terms: int) -> None:
        """Compute vectors of parts of the sums, in blocks of several rows."""
        for column, _ in self.blocks(sizes.columns, 1):
            own = self.moved(right.pointer, column, right.across)
            below = self.moved(out.pointer, column, out.across)
            for row, count in self.blocks(sizes.rows, _TOGETHER):
                first = self.moved(left.pointer, row, left.down)
                vectors = self._sums(left._replace(pointer=first), own, count, terms)
                place = self.moved(below, row, out.down)
                self._store_totals(vectors, out._replace(pointer=place))

    def _store_totals(self, vectors: Sequence[str], out: Grid) -> None:
        """Store the sums of the numbers of vectors, one below the other."""
        together = len(vectors) // _WIDTH * _WIDTH if out.down == 1 else 0
        for r in range(0, together, _WIDTH):
            totals = [*vectors[r : r + _WIDTH]]
            while len(totals) > 1:
                totals = [self._sums_of_pairs(x, y) for x, y in zip(totals[::2], totals[1::2])]
            place = self.moved(out.pointer, r)
            self.lines.append(f"  store {_vector(_WIDTH)} {totals[0]}, ptr {place}, align 8")
        for r, vector in enumerate(vectors[together:], together):
            place = self.moved(out.pointer, r * out.down)
            self.lines.append(f"  store double {self._total(vector)}, ptr {place}, align 8")

    def _sums_of_pairs(self, x: str, y: str) -> str:
        """The sums of neighbouring numbers of two vectors, one vector after the other."""
        kind = _vector(_WIDTH)
        halves = []
        for first in (0, 1):
            places = ", ".join(f"i32 {i}" for i in range(first, 2 * _WIDTH, 2))
            halves.append(self.put(f"shufflevector {kind} {x}, {kind} {y}, <{_WIDTH} x i32> <{places}>"))
        return self.put(f"fadd {kind} {halves[0]}, {halves[1]}")

    def _sums(self, left: Grid, right: str, rows: int, terms: int) -> list[str]:
        """The scalar products of some rows of a matrix and a vector, each as a vector whose numbers have to be added."""
        parts = max(1, _TOGETHER // rows) if terms >= _TOGETHER * _WIDTH else 1
        keys = [(r, p) for r in range(rows) for p in range(parts)]
        sums = dict.fromkeys(keys, "zeroinitializer")
        count = terms // (parts * _WIDTH)
        if count:
            loop = self.open(count)
            carried = {key: loop.carried(_vector(_WIDTH), "zeroinitializer") for key in keys}
            begin = self.put(f"mul i64 {loop.index}, {parts * _WIDTH}")
            sums = self._further_terms(left, right, begin, carried)
            for key in keys:
                loop.next(carried[key], sums[key])
            self.close(loop)
        for first in range(count * parts * _WIDTH, terms, _WIDTH):
            width = min(_WIDTH, terms - first)
            vector = self._padded(self._vector_at(right, first, width), width)
            for r in range(rows):
                other = self._padded(self._vector_at(left.pointer, r * left.down + first, width), width)
                sums[r, 0] = self._added_product(_WIDTH, other, vector, sums[r, 0])
        return [self._added([sums[r, p] for p in range(parts)]) for r in range(rows)]

    def _further_terms(
        self, left: Grid, right: str, begin: str, sums: dict[tuple[int, int], str]
    ) -> dict[tuple[int, int], str]:
        place, own = self.moved(right, begin), self.moved(left.pointer, begin)
        vectors = {p: self._vector_at(place, p * _WIDTH, _WIDTH) for p in {p for _, p in sums}}
        return {
            (r, p): self._added_product(
                _WIDTH, self._vector_at(own, r * left.down + p * _WIDTH, _WIDTH), vectors[p], total
            )
            for (r, p), total in sums.items()
        }

    def _added(self, vectors: Sequence[str]) -> str:
        """The sum of vectors."""
        total = vectors[0]
        for vector in vectors[1:]:
            total = self.put(f"fadd {_vector(_WIDTH)} {total}, {vector}")
        return total

    def _total(self, vector: str) -> str:
        """The sum of all numbers of a vector."""
        kind = _vector(_WIDTH)
        self.declared.add(f"declare double @llvm.vector.reduce.fadd.v{_WIDTH}f64(double, {kind})")
        return self.put(f"call reassoc double @llvm.vector.reduce.fadd.v{_WIDTH}f64(double -0.0, {kind} {vector})")

    def _added_product(self, width: int, x: str, y: str, total: str) -> str:
        kind = _vector(width)
        function = f"@llvm.fmuladd.v{width}f64"
        self.declared.add(f"declare {kind} {function}({kind}, {kind}, {kind})")
        return self.put(f"call {kind} {function}({kind} {x}, {kind} {y}, {kind} {total})")

    def _vector_at(self, pointer: str, offset: int, width: int) -> str:
        return self.put(f"load {_vector(width)}, ptr {self.moved(pointer, offset)}, align 8")

    def _padded(self, vector: str, width: int) -> str:
        """A vector with zeros behind its numbers."""
        if width == _WIDTH:
            return vector
        kind, places = _vector(width), ", ".join(f"i32 {min(i, width)}" for i in range(_WIDTH))
        return self.put(f"shufflevector {kind} {vector}, {kind} zeroinitializer, <{_WIDTH} x i32> <{places}>")

    def _repeated(self, number: str, width: int) -> str:
        kind = _vector(width)
        one = self.put(f"insertelement {kind} poison, double {number}, i64 0")
        return self.put(f"shufflevector {kind} {one}, {kind} poison, <{width} x i32> zeroinitializer")


def _vector(width: int) -> str:
    return f"<{width} x double>"


def _parts(count: int) -> list[tuple[int, int]]:
    """The beginning and length of the vectors that together have `count` numbers: full ones, then shorter ones."""
    found, begin = [], 0
    for width in (_WIDTH, 2, 1):
        while count - begin >= width:
            found.append((begin, width))
            begin += width
    return found

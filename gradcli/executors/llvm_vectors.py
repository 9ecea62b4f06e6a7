"""Write instructions in LLVM IR on float64 numbers, or on vectors of them."""

from __future__ import annotations

import struct


class VectorCode:
    """Instructions on vectors of `width` elements, or on single numbers if it is None, with a name for every result.

    `name` is the beginning of these names. `kind` and `truths` are the types of numbers and truth values, `lines` the
    instructions, and `declared` the declarations of the functions that they call.
    """

    def __init__(self, name: str, width: int | None) -> None:
        self.name = name
        self.width = width
        self.kind = self.vector("double")
        self.truths = self.vector("i1")
        self.declared: set[str] = set()
        self.lines: list[str] = []
        self._count = 0

    def put(self, instruction: str) -> str:
        """Write an instruction, and return the name of its result."""
        self._count += 1
        name = f"%{self.name}.v{self._count}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def operation(self, name: str, *operands: str) -> str:
        return self.put(f"{name} {self.kind} {', '.join(operands)}")

    def compared(self, order: str, x: str, y: str) -> str:
        return self.operation(f"fcmp {order}", x, y)

    def intrinsic(self, function: str, *operands: str) -> str:
        """Call a function of LLVM whose operands and result are numbers."""
        called = f"@llvm.{function}.{'' if self.width is None else f'v{self.width}'}f64"
        self.declared.add(f"declare {self.kind} {called}({', '.join([self.kind] * len(operands))})")
        return self.put(f"call {self.kind} {called}({', '.join(f'{self.kind} {o}' for o in operands)})")

    def chosen(self, condition: str, x: str, y: str, kind: str | None = None) -> str:
        """`x` where `condition` is true, else `y`, which are numbers or of type `kind`."""
        kind = kind or self.kind
        return self.put(f"select {self.truths} {condition}, {kind} {x}, {kind} {y}")

    def literal(self, number: float) -> str:
        bits = struct.unpack("<Q", struct.pack("<d", number))[0]
        return self.filled(f"double 0x{bits:016X}")

    def filled(self, element: str) -> str:
        """A constant vector of equal elements, which are given with their type; the number if there are no vectors."""
        return element.split()[1] if self.width is None else f"<{', '.join([element] * self.width)}>"

    def vector(self, element: str) -> str:
        """The type of a vector of elements of a type; that type if there are no vectors."""
        return element if self.width is None else f"<{self.width} x {element}>"

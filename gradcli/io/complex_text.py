"""Complex numbers whose parts are written already: the proved digits of both."""

from __future__ import annotations


class ComplexText:
    """The parts of a complex number, texts of decimals or of bounds, or floats that are not finite."""

    __slots__ = ("imag", "real")

    def __init__(self, real: str | float, imag: str | float) -> None:
        self.real, self.imag = real, imag

    def __str__(self) -> str:
        """As a Python number, `1.5-2.0j`; a bound of a magnitude is in parentheses."""
        real, imag = (f"({part})" if str(part).startswith("|") else str(part) for part in (self.real, self.imag))
        return f"{real}{'' if imag.startswith('-') else '+'}{imag}j"

    __repr__ = __str__


def has_complex_texts(value: object) -> bool:
    """Whether a value is such a number, or an object array of them."""
    if isinstance(value, ComplexText):
        return True
    return getattr(getattr(value, "dtype", None), "kind", "") == "O" and any(
        isinstance(item, ComplexText)
        for item in value.flat  # type: ignore[attr-defined]
    )

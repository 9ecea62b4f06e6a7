"""Functions of arrays of numbers of flint: object arrays of NumPy in, and out; truth values and whole numbers plain."""

from __future__ import annotations

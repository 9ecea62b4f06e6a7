"""Programs at random, and what must hold for every one of them: see `python -m tests.fuzz --help`.

`writer` writes programs that mostly have a value, `derivations` texts that the grammar accepts, and `mutations`
spoils both and a corpus. `checks` runs one and says what is wrong, by `disagreement` (every way to a number gives the same
number: `readings` are the ways, `comparison` tells a wrong one from what floats lose, `proofs` judge where they lose too
much) and `commands` (every command prints what it should). `minimise` makes a finding short.
"""

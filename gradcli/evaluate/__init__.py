"""Running programs: from a syntax tree and bindings to a value and its graph."""

"""How is one program evaluated? From its bindings to its value, derivatives and warnings.

Begin with `session`, which evaluates a program and differentiates it; `derivative_traces` and `recordings` record it to be run again,
`diagnose` finds where a nan or a kink came from, `graph_view` is what `gradcli graph` draws, and `explanation` what
`gradcli explain` says.
"""

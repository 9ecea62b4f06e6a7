#!/bin/sh
# An enzyme by Michaelis and Menten that begins to work after a lag: its largest velocity, the concentration of half of it,
# the lag, and the substrate at the beginning. Then when a tenth of the substrate is left, and by what that moves.
# Run: sh examples/enzyme_lag.sh
set -eu

gradcli fit "v = where(t < lag, 0, vmax); s' = -v*s/(km + s); substrate ~ s" examples/data/substrate.csv \
    t=column:minute vmax=1 km=1 lag=1 --quiet | head -n 5

gradcli ode "v = where(t < lag, 0, vmax); s' = -v*s/(km + s)" s=5 vmax=1.2 km=0.8 lag=1.5 t=0..20 \
    --stop 's = 0.5' --wrt vmax,km,lag --json | sed 's/.*"stop":\({[^}]*}\).*/\1/'

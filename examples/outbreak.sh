#!/bin/sh
# An outbreak in a school of 763: how fast it spreads, and how long one is in bed, from the number in bed each day.
# Then the largest number in bed, which is where I' = 0, and how it changes with both rates.
# Run: sh examples/outbreak.sh
set -eu

gradcli fit "N = 763; S' = -beta*S*I/N; I' = beta*S*I/N - gamma*I; in_bed ~ I" examples/data/outbreak.csv \
    t=column:day S=760 beta=2 gamma=0.5 --quiet | head -n 4

gradcli ode "N = 763; S' = -beta*S*I/N; I' = beta*S*I/N - gamma*I" S=760 I=3 beta=1.7 gamma=0.45 t=0..14 --points 2 \
    --stop "I' = 0" --wrt beta,gamma

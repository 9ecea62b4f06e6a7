#!/bin/sh
# A loop over one parameter: how far a ball flies that is thrown at 12 m/s from a height of 2 m,
# by the angle, and what one degree more would add. The best angle is where that changes sign.
# Needs jq.
# Run: sh examples/sweep.sh
set -eu
export LC_ALL=C

flight='
    up = v*sin(deg2rad(angle))
    v*cos(deg2rad(angle)) * (up + sqrt(up**2 + 2*g*height)) / g
'

printf '%7s %9s %9s\n' degrees metres per_degree
for angle in 20 30 40 50 60; do
    gradcli eval "$flight" angle=$angle v=12 height=2 g=9.81 --wrt angle --json |
        jq -r '[.value, .grad.angle] | @tsv' |
        while read -r distance slope; do
            printf '%7d %9.3f %9.3f\n' "$angle" "$distance" "$slope"
        done
done

#!/bin/sh
# Where a planet is: Kepler's equation has no solution as a formula. Its root, the derivatives of it
# to order 2, and the start of its series in the eccentricity, by Lagrange.
# Needs jq.
# Run: sh examples/kepler.sh
set -eu
export LC_ALL=C

gradcli solve 'E - e*sin(E) = M' E~1 e=0.3 M=0.8 --order 2 --json |
    jq -r '.roots[0] | ("E", .point.E), (.derivatives.E | to_entries[] | .key, .value)' |
    while read -r name && read -r value; do
        printf '%-4s %10.6f\n' "$name" "$value"
    done

gradcli check 'E = M
for i in range(8): E = E - (E - e*sin(E) - M)/(1 - e*cos(E))
E' e=0.3 M=0.8 --order 2 --json | jq -r '"agrees with differences: \(.agrees)"'

gradcli series 'E = M
for i in range(6): E = E - (E - e*sin(E) - M)/(1 - e*cos(E))
E' M=0 e=1/2 --wrt M --order 5

#!/bin/sh
# The volatility that the price of an option implies, and how it changes with everything that the
# price depends on: derivatives of a root, which no formula gives. Then the same derivatives through
# Newton's method as a program, compared with central differences by gradcli check.
# Needs jq.
# Run: sh examples/implied_volatility.sh
set -eu
export LC_ALL=C

inputs='{"S": 100, "K": 110, "r": 0.02, "T": 0.5, "price": 4}'
price='d = (log(S/K) + (r + v**2/2)*T)/(v*sqrt(T))
       S*ndtr(d) - K*exp(-r*T)*ndtr(d - v*sqrt(T))'

echo "$inputs" | gradcli solve "$price = price" v~0.3 --vars - --order 2 --json |
    jq -r '.roots[0] | ("volatility", .point.v), (.derivatives.v | to_entries[] | .key, .value)' |
    while read -r name && read -r value; do
        printf '%-12s %12.6f\n' "$name" "$value"
    done

newton='value(v) = S*ndtr(d1(v)) - K*exp(-r*T)*ndtr(d1(v) - v*sqrt(T))
d1(v) = (log(S/K) + (r + v**2/2)*T)/(v*sqrt(T))
v = 0.3
for i in range(6): v = v - (value(v) - price)/(S*sqrt(T)*norm_pdf(d1(v)))
v'
echo "$inputs" | gradcli check "$newton" --vars - --json | jq -r '"agrees with differences: \(.agrees)"'

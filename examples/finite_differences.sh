#!/bin/sh
# The exact derivative beside central differences, whose error falls with the square of the step.
# Reads the output for people with awk; no jq.
# Run: sh examples/finite_differences.sh
set -eu
export LC_ALL=C

formula='exp(x)*sin(3*x)/x'
at=1.5

value_at() { gradcli eval "$formula" "x=$1" --no-grad | awk '{ print $2 }'; }

exact=$(gradcli eval "$formula" "x=$at" | awk '$1 == "x" { print $2 }')
printf 'exact       %.10f\n' "$exact"
for step in 0.1 0.01 0.001; do
    above=$(value_at "$at + $step")
    below=$(value_at "$at - $step")
    awk -v step="$step" -v above="$above" -v below="$below" -v exact="$exact" 'BEGIN {
        difference = (above - below) / (2*step)
        printf "step %-6s %.10f  error %.1e\n", step, difference, difference - exact
    }'
done

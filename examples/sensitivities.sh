#!/bin/sh
# Which input of a formula matters most? The monthly payment of a loan, its derivative by each
# input, and the elasticity: the change of the payment in percent for 1 % more of the input.
# Needs jq.
# Run: sh examples/sensitivities.sh
set -eu
export LC_ALL=C

inputs='{"principal": 200000, "rate": 0.0035, "months": 300}'

printf '%-10s %12s %12s\n' input derivative elasticity
echo "$inputs" |
    gradcli eval 'principal*rate / (1 - (1 + rate)**-months)' --vars - --json |
    jq -r --argjson inputs "$inputs" \
        '. as $result | .grad | to_entries[] | [.key, .value, .value * $inputs[.key] / $result.value] | @tsv' |
    while read -r name derivative elasticity; do
        printf '%-10s %12.4f %12.4f\n' "$name" "$derivative" "$elasticity"
    done

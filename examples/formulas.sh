#!/bin/sh
# The price of a bond-like payment and how it changes with the rate, as a formula: to read, to print
# in a paper, and to compute with where there is no gradcli.
# Run: sh examples/formulas.sh
set -eu

price='face*exp(-rate*years) + coupon*(1 - exp(-rate*years))/rate'

for language in text latex python c sql; do
    printf '== %s\n' "$language"
    gradcli diff "$price" --wrt rate --to "$language"
done

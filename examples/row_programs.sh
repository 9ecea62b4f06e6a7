#!/bin/sh
# Three models of the same cooling, each a row with its own program: its temperature after 10 minutes, and how fast that
# falls then.
# Run: sh examples/row_programs.sh
set -eu

printf '%s\n' 'name,model' 'exponential,21 + 62*exp(-0.045*t)' 'linear,83 - 2*t' 'Newton twice,21 + 31*(exp(-0.03*t) + exp(-0.06*t))' |
    gradcli map --program-column model t=10 --wrt t --value celsius --keep name

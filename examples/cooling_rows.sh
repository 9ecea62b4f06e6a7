#!/bin/sh
# How much does each reading tell of each parameter? A cup of tea cools as room + c*exp(-k*t): row by row what the model
# says, how it changes with c and with k, and the misfit in degrees.
# Run: sh examples/cooling_rows.sh
set -eu

gradcli map 'room + c*exp(-k*t)' examples/data/cooling.csv t=column:minutes room=21 c=62 k=0.045 \
    --wrt c,k --value model |
    gradcli map 'celsius - model' --no-grad --value misfit

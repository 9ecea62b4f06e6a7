#!/bin/sh
# A drug in blood and tissue: the clearance and the volumes of six subjects, each of whom got two doses.
# Run: sh examples/two_compartments.sh
set -eu

gradcli fit "A1' = -(cl + q)/v1*A1 + q/v2*A2; A2' = q/v1*A1 - q/v2*A2; log(conc) ~ log(A1/v1)" \
    examples/data/two_compartments.csv --events examples/data/two_compartments_doses.csv --by subject \
    t=column:time A1=0 A2=0 v1=8 cl=1.5 v2=15 q=2 --quiet | cut -d , -f 1-5,13-14

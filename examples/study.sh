#!/bin/sh
# A drug that is swallowed three times: its absorption, clearance and volume in 30 subjects, one fit for each.
# Run: sh examples/study.sh
set -eu

gradcli fit "gut' = -ka*gut; blood' = ka*gut - cl/v*blood; log(conc) ~ log(blood/v)" examples/data/study.csv \
    --events examples/data/study_doses.csv --by subject t=column:time gut=0 blood=0 ka=1 cl=4 v=20 --quiet |
    awk -F , -v OFS=, 'NR == 1 {print $1, $3, $5, $7} NR > 1 {printf "%s,%.7g,%.7g,%.7g\n", $1, $3, $5, $7}'

#!/bin/sh
# A network of two layers, trained from the command line by steps of Adam on batches of 25 rows: it learns sin(x) from a
# table. The loss of each batch is in the trace, whose mean over each fifth of the steps is the loss curve.
# Run: sh examples/network.sh
set -eu
export LC_ALL=C
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT

awk 'BEGIN { print "x,y"; for (i = 0; i < 200; i++) { x = -3 + 6*i/199; printf "%.6f,%.6f\n", x, sin(x) } }' > "$folder/sine.csv"

gradcli minimize 'hidden = tanh(outer(x, a) + b); mean((hidden@c + d - y)**2)' "$folder/sine.csv" \
    a='linspace(0.5, 1.5, 8)' b='linspace(-2, 2, 8)' c='zeros(8)' d=0 \
    --method adam --lr 0.02 --batch 25 --epochs 100 --schedule cosine --trace "$folder/steps.csv" > "$folder/result"

awk -F, 'NR > 1 { sum[int($1/160)] += $2/160 } END { for (i = 0; i < 5; i++) printf "steps to %3d  loss %.1e\n", 160*(i + 1), sum[i] }' \
    "$folder/steps.csv"
grep '^ended' "$folder/result"

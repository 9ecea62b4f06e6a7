#!/bin/sh
# Newton's method for a cube root: its steps, with the gradient that flows back through each, and
# how many operations of each kind they come to.
# Needs jq.
# Run: sh examples/graph.sh
set -eu
export LC_ALL=C

program='
    step(y) = y - (y**3 - a)/(3*y**2)
    y = a
    for i in range(3) { y = step(y) }
    y
'

gradcli graph "$program" a=2 --values
echo
gradcli graph "$program" a=2 --json |
    jq -r '[.nodes[].operation // empty] | group_by(.) | map([length, .[0]]) | sort | reverse | .[] | @tsv'

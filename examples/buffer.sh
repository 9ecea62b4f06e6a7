#!/bin/sh
# The pH of a buffer: four equations for the logarithms of four concentrations in water, those of
# hydrogen ions, hydroxide, acetate and acetic acid, and how it changes with what is poured together.
# Needs jq.
# Run: sh examples/buffer.sh
set -eu
export LC_ALL=C

equations='
H = exp(h); OH = exp(o); A = exp(a); HA = exp(b)
H + sodium = OH + A       # charge
A + HA = acid             # mass
h + a - b = log(Ka)       # dissociation of the acid
h + o = log(Kw)           # and of water
'
gradcli solve "$equations" h~-10 o~-20 a~-3 b~-3 sodium=0.05 acid=0.1 Ka=1.8e-5 Kw=1e-14 --json |
    jq -r '.roots[0] | (2.302585092994046 as $ln10 | ("pH", -.point.h/$ln10),
        (.derivatives.h | to_entries[] | "by \(.key)", -.value/$ln10))' |
    while read -r name && read -r value; do
        printf '%-10s %14.6g\n' "$name" "$value"
    done

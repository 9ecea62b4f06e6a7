#!/bin/sh
# How fast do hares multiply, and how many does a lynx eat? Lotka's and Volterra's equations for the furs that the Hudson
# Bay Company bought from 1900 to 1920, in thousands; then how many hares the next ten years would have had.
# Run: sh examples/lynx_and_hare.sh
set -eu

gradcli fit 'dH/dt = a*H - b*H*L; dL/dt = -c*L + d*H*L; log(Hare) ~ log(H); log(Lynx) ~ log(L)' \
    examples/data/hudson.csv t=column:Year a=0.5 b=0.03 c=0.8 d=0.02 --quiet | head -n 7

gradcli ode 'dH/dt = a*H - b*H*L; dL/dt = -c*L + d*H*L' H=34.6 L=5.84 a=0.54 b=0.0272 c=0.796 d=0.0237 \
    t=1900..1930 --points 4

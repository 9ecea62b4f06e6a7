#!/bin/sh
# The impedance spectrum of an electrode: a Randles circuit, which is a resistor before a capacitor beside a resistor and a
# Warburg element. Its elements by a fit of both parts of the impedance, with errors relative to its modulus. Then the
# impedance at 50 Hz with what the errors of the elements make uncertain in it, and its derivatives by the elements.
# Run: sh examples/impedance.sh
set -eu

circuit='w = 2*pi*f; Z = R0 + 1/(1/(R1 + A*(1 - 1j)/sqrt(w)) + 1j*w*C1)'

gradcli fit "$circuit; complex(re, im) ~ Z" examples/data/randles.csv --sigma modulus --quiet | head -n 5

gradcli propagate "$circuit; Z" f=50 R0=19.98±0.022 R1=150.01±0.22 A=39.80±0.33 C1=1.9974e-5±3.9e-8 \
    --correlation R0,C1=0.15,R1,A=-0.53 --quiet | grep -E '^(real|imag|abs|angle) .*±'

gradcli eval "$circuit; Z" f=50 R0=19.98 R1=150.01 A=39.80 C1=1.9974e-5 --wrt R0,R1,A,C1 --precision 5

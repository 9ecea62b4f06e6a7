#!/bin/sh
# A PI controller before a plant of three time constants: where the loop gain is 1, the phase margin there, the gain margin
# where the phase is -180 degrees, and the poles of the closed loop, all with their derivatives by the controller. Then its
# Bode plot.
# Run: sh examples/control_loop.sh
set -eu

loop='L(s) = (Kp + Ki/s)/((1 + s)*(1 + 0.2*s)*(1 + 0.05*s))'

echo 'crossover'
gradcli solve "$loop; abs(L(1j*w)) = 1" w~1 Kp=4 Ki=2 | grep -E '^ *w'
echo 'phase margin in degrees'
gradcli eval "$loop; w = root(lambda w: abs(L(1j*w)) - 1, 1); 180 + degrees(angle(L(1j*w)))" Kp=4 Ki=2 --precision 8
echo 'gain margin'
gradcli eval "$loop; w = brentq(lambda w: imag(L(1j*w)), 2, 100); 1/abs(L(1j*w))" Kp=4 Ki=2 --precision 8
echo 'poles'
gradcli eval 'roots(polyadd(polymul([1, 1, 0], polymul([0.2, 1], [0.05, 1])), [Kp, Ki]))' Kp=4 Ki=2 --jacobian --precision 6

gradcli plot "$loop; L(1j*w)" w=0.1..100 Kp=4 Ki=2 --log x,y

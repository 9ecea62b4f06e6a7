# Misra1a with gnuplot, for benchmarks/fits.py: the path of its data is `data`.
set datafile separator ","
set fit nolog
b1 = 500
b2 = 0.0001
fit b1*(1 - exp(-b2*x)) data skip 1 using 1:2 via b1, b2

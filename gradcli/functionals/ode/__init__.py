"""Initial value problems of ordinary differential equations, as one operation on a traced right side.

`ode_system` has the equations, with their derivatives as further systems; `trajectory` is the primitive; `taylor` and its
neighbours compute the numbers.
"""

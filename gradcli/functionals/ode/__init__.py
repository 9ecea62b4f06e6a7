"""What is the solution of an initial value problem? It is one operation on a traced right side, with its derivatives.

Begin with `ode_system`, the equations, with their derivatives as further systems; `trajectory` is the primitive;
`taylor` and its neighbours compute the numbers.
"""

# A filter of 20 nodes for alternating current, a grid of lines with a resistance and an inductance each, and from each node
# a capacitor and a leak to the ground. The voltages are the solution of complex equations, and the voltage at the far
# corner is differentiated by all 102 components. Which of them move it most?
# Run: python examples/ac_network.py
import math

import gradcli

COLUMNS, NODES = 5, 20
LINES = [(k, k + 1) for k in range(NODES) if k % COLUMNS < COLUMNS - 1]
LINES += [(k, k + COLUMNS) for k in range(NODES - COLUMNS)]

# The lines that leave a node, and those that arrive.
incidence = [[(node == first) - (node == last) for first, last in LINES] for node in range(NODES)]
components = {
    "R": gradcli.tensor([1 + 0.3 * (k % 7) for k in range(len(LINES))]),
    "L": gradcli.tensor([1e-4 * (1 + k % 5) for k in range(len(LINES))]),
    "C": gradcli.tensor([1e-6 * (1 + k % 3) for k in range(NODES)]),
    "G": gradcli.tensor([1e-3] * NODES),
}
for component in components.values():
    component.requires_grad_()


def gain(frequency):
    """The modulus of the voltage at the last node for 1 A into the first."""
    w = 2j * math.pi * frequency
    lines = gradcli.tensor(incidence, dtype=gradcli.complex128)
    line = 1 / (components["R"] + w * components["L"])
    admittance = lines @ gradcli.diag(line) @ lines.T + gradcli.diag(components["G"] + w * components["C"])
    current = gradcli.tensor([1 + 0j] + [0j] * (NODES - 1))
    return gradcli.linalg.solve(admittance, current)[-1].abs()


for frequency in (100, 1000, 5000):
    voltage = gain(frequency)
    gradients = gradcli.autograd.grad(voltage, list(components.values()))
    print(f"{frequency} Hz: {voltage.item():.6f} V")
    for (name, values), gradient in zip(components.items(), gradients):
        elasticity = (gradient * values / voltage).tolist()
        most = max(range(len(elasticity)), key=lambda k: abs(elasticity[k]))
        print(
            f"  {name}: 1 % more of all changes it by {sum(elasticity):+.4f} %, of {name}{most} by {elasticity[most]:+.4f} %"
        )

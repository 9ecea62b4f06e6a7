def energy(positions, k, rest):
    stretch = positions[1:] - positions[:-1] - rest
    return 0.5 * k * (stretch ** 2).sum()

E = energy(positions, k, rest)
force = -torch.autograd.grad(E, positions, create_graph=True)[0]
(force ** 2).sum()

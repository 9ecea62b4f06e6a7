def planar(z, w, u, b):
    lin = z @ w + b
    f = z + u * torch.tanh(lin).unsqueeze(-1)
    phi = (1 - torch.tanh(lin) ** 2).unsqueeze(-1) * w
    log_det = torch.log(torch.abs(1 + phi @ u) + 1e-8)
    log_pz = -0.5 * (f ** 2).sum(dim=1) - math.log(2 * math.pi)
    return -(log_pz + log_det).mean()

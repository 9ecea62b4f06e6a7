running = torch.cummax(x, dim=0).values
(running.repeat(2, 1) * w).sum()

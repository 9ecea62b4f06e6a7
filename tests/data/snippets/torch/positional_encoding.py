def encode(x, num_freqs):
    out = [x]
    for i in range(num_freqs):
        for fn in [torch.sin, torch.cos]:
            out.append(fn(2.0 ** i * x))
    return torch.cat(out, dim=-1)

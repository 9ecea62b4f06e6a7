def gaussian_kernel(a, b, sigma):
    return torch.exp(-torch.cdist(a, b) ** 2 / (2 * sigma ** 2))

def mmd(x, y, sigma):
    xy = gaussian_kernel(x, y, sigma).mean()
    yy = gaussian_kernel(y, y + 0.01, sigma).mean()
    xx = gaussian_kernel(x, x + 0.01, sigma).mean()
    return xx + yy - 2 * xy

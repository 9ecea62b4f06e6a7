import torch

def softmin(a, b, c, gamma):
    z = torch.stack([a, b, c])
    return -gamma * torch.logsumexp(-z / gamma, dim=0)

def soft_dtw(x, y, gamma):
    n, m = len(x), len(y)
    inf = torch.tensor(1e6)
    R = [[inf] * (m + 1) for _ in range(n + 1)]
    R[0][0] = torch.tensor(0.0)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = (x[i - 1] - y[j - 1]) ** 2
            R[i][j] = cost + softmin(R[i - 1][j], R[i][j - 1], R[i - 1][j - 1], gamma)
    return R[n][m]

import torch

torch.manual_seed(9)
F = torch.tensor([[1.0, 0.1], [0.0, 1.0]])
H = torch.tensor([[1.0, 0.0]])
log_q = torch.tensor(-3.0, requires_grad=True)
log_r = torch.tensor(-1.0, requires_grad=True)
z = torch.cumsum(0.1 * torch.ones(25), dim=0) + 0.3 * torch.randn(25)

def likelihood():
    Q = log_q.exp() * torch.eye(2)
    R = log_r.exp().view(1, 1)
    m, P = torch.zeros(2, 1), torch.eye(2)
    total = torch.zeros(())
    for k in range(z.shape[0]):
        m = F @ m
        P = F @ P @ F.T + Q
        S = H @ P @ H.mT + R
        K = P @ H.T @ torch.inverse(S)
        residual = z[k].reshape(1, 1) - H @ m
        m = m + K @ residual
        P = (torch.eye(2) - K @ H) @ P
        total = total - 0.5 * (residual.T @ torch.linalg.inv(S) @ residual + torch.logdet(S)).squeeze()
    return total

for i in range(5):
    loss = -likelihood()
    grads = torch.autograd.grad(loss, [log_q, log_r])
    with torch.no_grad():
        log_q.sub_(grads[0], alpha=0.05)
        log_r.sub_(grads[1], alpha=0.05)
    print(i, loss.item(), log_q.item(), log_r.item())

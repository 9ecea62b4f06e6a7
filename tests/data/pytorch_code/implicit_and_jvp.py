# fixed points, hypergradients and products with Hessians
import torch
from torch.autograd.functional import jvp, hvp, jacobian

torch.manual_seed(0)
A = 0.3 * torch.randn(4, 4)
A = A / torch.linalg.matrix_norm(A, ord=2) * 0.5
b = torch.randn(4, requires_grad=True)

class FixedPoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, b):
        z = torch.zeros_like(b)
        for _ in range(60):
            z = torch.tanh(A @ z + b)
        ctx.save_for_backward(z, b)
        return z

    @staticmethod
    def backward(ctx, grad_output):
        z, b = ctx.saved_tensors
        d = 1 - z ** 2
        J = d[:, None] * A
        u = torch.linalg.solve((torch.eye(4) - J).t(), grad_output)
        return u * d

z = FixedPoint.apply(b)
z.sum().backward()
J = jacobian(FixedPoint.apply, b)
out, tangent = jvp(lambda b: torch.tanh(A @ b), b, torch.ones(4))
value, product = hvp(lambda b: (torch.tanh(A @ b) ** 2).sum(), b, torch.arange(4.0))

# conjugate gradients on a Hessian that is never formed
def f(x):
    return 0.5 * (x ** 2 * torch.arange(1.0, 6.0)).sum() + torch.cos(x).sum()
x = torch.linspace(-1, 1, 5)
r = g = torch.func.grad(f)(x)
s, p = torch.zeros(5), r.clone()
for _ in range(4):
    Hp = torch.func.jvp(torch.func.grad(f), (x,), (p,))[1]
    alpha = r.dot(r) / p.dot(Hp)
    s = s + alpha * p
    r_new = r - alpha * Hp
    p = r_new + r_new.dot(r_new) / r.dot(r) * p
    r = r_new
print(r.norm().item())

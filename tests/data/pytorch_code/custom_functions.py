import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable
class Swish(Function):
    @staticmethod
    def forward(ctx, i):
        result = i * torch.sigmoid(i)
        ctx.save_for_backward(i)
        return result
    @staticmethod
    def backward(ctx, grad_output):
        i, = ctx.saved_tensors
        s = torch.sigmoid(i)
        return grad_output * (s * (1 + i * (1 - s)))
class STE(Function):
    @staticmethod
    def forward(ctx, x):
        return x.sign()
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g.clamp(-1, 1)
class GradReverse(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)
    @staticmethod
    def backward(ctx, grad):
        return grad.neg() * ctx.alpha, None
x = torch.randn(4, requires_grad=True)
y = Swish.apply(x) + STE.apply(x) + GradReverse.apply(x, 0.5)
y.sum().backward()
ok = torch.autograd.gradcheck(Swish.apply, torch.randn(3, dtype=torch.double, requires_grad=True))
ck = torch.utils.checkpoint.checkpoint(lambda a: Swish.apply(a) ** 2, x, use_reentrant=False)
ck.sum().backward()

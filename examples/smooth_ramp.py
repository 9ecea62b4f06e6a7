# The function of smooth_ramp.grad in Python: a subclass of gradcli.Function.
# Run: python examples/smooth_ramp.py
import gradcli


class Ramp(gradcli.Function):
    """log(1 + exp(t)), without overflow and without kinks."""

    @staticmethod
    def forward(ctx, t):
        ctx.save_for_backward(t)
        return gradcli.maximum(t, 0) + gradcli.log1p(gradcli.exp(-abs(t)))

    @staticmethod
    def backward(ctx, g):
        (t,) = ctx.saved_tensors
        return g * gradcli.sigmoid(t)


for start in (-1000.0, 0.0, 1000.0):
    x = gradcli.tensor(start, requires_grad=True)
    y = Ramp.apply(x)
    (slope,) = gradcli.grad(y, x, create_graph=True)
    (curvature,) = gradcli.grad(slope, x)
    print(f"x = {start:6}: {y.item():9.4f} {slope.item():7.4f} {curvature.item():7.4f}  {y.grad_fn}")

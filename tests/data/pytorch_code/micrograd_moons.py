# a small network on values of its own, trained by the hinge loss, as micrograd's demo, with tensors for values
import random
import torch

random.seed(1337)
torch.manual_seed(1337)

n = 40
t = torch.linspace(0, torch.pi, n // 2)
outer = torch.stack([torch.cos(t), torch.sin(t)], dim=1)
inner = torch.stack([1 - torch.cos(t), 0.5 - torch.sin(t)], dim=1)
X = torch.cat([outer, inner]) + 0.1 * torch.randn(n, 2)
y = torch.cat([torch.ones(n // 2), -torch.ones(n // 2)])

class Neuron:
    def __init__(self, nin, nonlin=True):
        self.w = torch.tensor([random.uniform(-1, 1) for _ in range(nin)], requires_grad=True)
        self.b = torch.tensor(0.0, requires_grad=True)
        self.nonlin = nonlin

    def __call__(self, x):
        act = sum((wi * xi for wi, xi in zip(self.w, x)), self.b)
        return act.relu() if self.nonlin else act

    def parameters(self):
        return [self.w, self.b]

class Layer:
    def __init__(self, nin, nout, **kwargs):
        self.neurons = [Neuron(nin, **kwargs) for _ in range(nout)]

    def __call__(self, x):
        out = [n(x) for n in self.neurons]
        return out[0] if len(out) == 1 else out

    def parameters(self):
        return [p for n in self.neurons for p in n.parameters()]

class MLP:
    def __init__(self, nin, nouts):
        sz = [nin] + nouts
        self.layers = [Layer(sz[i], sz[i+1], nonlin=i != len(nouts) - 1) for i in range(len(nouts))]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def parameters(self):
        return [p for layer in self.layers for p in layer.parameters()]

model = MLP(2, [4, 1])
for k in range(5):
    scores = [model(list(row)) for row in X]
    losses = [(1 + -yi * scorei).relu() for yi, scorei in zip(y, scores)]
    data_loss = sum(losses) * (1.0 / len(losses))
    reg_loss = 1e-4 * sum((p * p).sum() for p in model.parameters())
    total_loss = data_loss + reg_loss
    accuracy = sum((yi > 0) == (scorei > 0) for yi, scorei in zip(y, scores)) / len(y)
    for p in model.parameters():
        p.grad = None
    total_loss.backward()
    learning_rate = 1.0 - 0.9 * k / 100
    for p in model.parameters():
        p.data -= learning_rate * p.grad
    print(f"step {k} loss {total_loss.item()}, accuracy {accuracy.item() * 100}%")

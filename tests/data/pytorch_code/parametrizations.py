import torch
import torch.nn as nn
import torch.nn.utils.parametrize as parametrize


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)


layer = nn.Linear(3, 3)
parametrize.register_parametrization(layer, "weight", Symmetric())
A = layer.weight
assert torch.allclose(A, A.T)
print(A)


class Skew(nn.Module):
    def forward(self, X):
        A = X.triu(1)
        return A - A.transpose(-1, -2)


cnn = nn.Conv2d(in_channels=5, out_channels=8, kernel_size=3)
parametrize.register_parametrization(cnn, "weight", Skew())
print(torch.allclose(cnn.weight, -cnn.weight.transpose(2, 3)))
layer = nn.Linear(3, 3)
print(f"Unparametrized:\n{layer}")
parametrize.register_parametrization(layer, "weight", Symmetric())
print(f"\nParametrized:\n{layer}")


class CayleyMap(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("Id", torch.eye(n))

    def forward(self, X):
        return torch.linalg.solve(self.Id - X, self.Id + X)


layer = nn.Linear(3, 3)
parametrize.register_parametrization(layer, "weight", Skew())
parametrize.register_parametrization(layer, "weight", CayleyMap(3))
X = layer.weight
print(torch.dist(X.T @ X, torch.eye(3)).item() < 1e-6)


class MatrixExponential(nn.Module):
    def forward(self, X):
        return torch.matrix_exp(X)

    def right_inverse(self, A):
        return A.triu(1)


layer_orthogonal = nn.Linear(3, 3)
parametrize.register_parametrization(layer_orthogonal, "weight", Skew())
parametrize.register_parametrization(layer_orthogonal, "weight", MatrixExponential())
X = layer_orthogonal.weight
print(torch.dist(X.T @ X, torch.eye(3)).item() < 1e-5)
print(parametrize.is_parametrized(layer_orthogonal, "weight"))
layer.weight.sum().backward()
print(layer.parametrizations.weight.original.grad)
with parametrize.cached():
    print(layer.weight is layer.weight)
parametrize.remove_parametrizations(layer, "weight", leave_parametrized=True)
print(layer)
m = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3), name="weight")

out = m(torch.randn(2, 4)).pow(2).sum()
out.backward()
g0, g1 = m.parametrizations.weight.original0.grad, m.parametrizations.weight.original1.grad
snm = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 6))
sigma = torch.linalg.matrix_norm(snm.weight, 2)
old = nn.utils.weight_norm(nn.Linear(3, 2), name="weight")
size, directions = old.weight_g, old.weight_v
nn.utils.remove_weight_norm(old)

sn = nn.utils.spectral_norm(nn.Linear(3, 2))
left, right = sn.weight_u, sn(torch.ones(1, 3))
v = nn.utils.parameters_to_vector(old.parameters())
nn.utils.vector_to_parameters(v * 2, old.parameters())
total = nn.utils.clip_grad_norm_(m.parameters(), 1.0)
nn.utils.clip_grad_value_(m.parameters(), 0.1)
critic = nn.Sequential(nn.utils.spectral_norm(nn.Conv2d(1, 2, 3)), nn.LeakyReLU(0.2), nn.Flatten(),
                       nn.utils.parametrizations.spectral_norm(nn.Linear(8, 1), n_power_iterations=2))
real, fake = torch.randn(3, 1, 4, 4), torch.randn(3, 1, 4, 4)
loss = critic(fake).mean() - critic(real).mean()
loss.backward()
slope = critic[0].weight_orig.grad
state = critic.state_dict()
print(sorted(state))
critic.eval()
value = critic(real)
nn.utils.remove_spectral_norm(critic[0])
same = torch.allclose(critic(real), value)
print(same, critic)
wn = nn.utils.parametrizations.weight_norm(nn.Conv1d(2, 3, 2))
wn.weight = torch.ones(3, 2, 2)
g = wn.parametrizations.weight.original0
parametrize.remove_parametrizations(wn, "weight")
print(wn, parametrize.is_parametrized(wn), [name for name, _ in wn.named_parameters()])

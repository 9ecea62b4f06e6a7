import torch

torch.manual_seed(0)
D, H, Z = 6, 10, 2
def linear(i, o):
    bound = 1 / i ** 0.5
    w = torch.empty(o, i).uniform_(-bound, bound).requires_grad_()
    b = torch.empty(o).uniform_(-bound, bound).requires_grad_()
    return w, b

fc1, fc21, fc22, fc3, fc4 = linear(D, H), linear(H, Z), linear(H, Z), linear(Z, H), linear(H, D)
params = [p for layer in (fc1, fc21, fc22, fc3, fc4) for p in layer]

def apply(layer, x):
    return torch.nn.functional.linear(x, *layer)

def encode(x):
    h1 = torch.relu(apply(fc1, x))
    return apply(fc21, h1), apply(fc22, h1)

def reparameterize(mu, logvar):
    std = torch.exp(0.5*logvar)
    eps = torch.randn_like(std)
    return mu + eps*std

def decode(z):
    h3 = torch.relu(apply(fc3, z))
    return torch.sigmoid(apply(fc4, h3))

def loss_function(recon_x, x, mu, logvar):
    BCE = torch.nn.functional.binary_cross_entropy(recon_x, x.view(-1, D), reduction='sum')
    # see Appendix B from VAE paper
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD

data = (torch.rand(24, 2, 3) > 0.6).to(torch.get_default_dtype())
train_loss = 0
for epoch in range(4):
    for batch_idx in range(3):
        x = data[batch_idx * 8:(batch_idx + 1) * 8]
        mu, logvar = encode(x.view(-1, D))
        recon_batch = decode(reparameterize(mu, logvar))
        loss = loss_function(recon_batch, x, mu, logvar)
        grads = torch.autograd.grad(loss, params)
        train_loss += loss.item()
        with torch.no_grad():
            for p, g in zip(params, grads):
                p -= 0.01 * g
print('====> Average loss: {:.4f}'.format(train_loss / len(data)))
with torch.no_grad():
    sample = decode(torch.randn(4, Z)).view(4, 1, 2, 3)

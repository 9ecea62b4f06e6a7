import torch

torch.manual_seed(0)
data = "hello gradient hello tensor"
chars = sorted(set(data))
vocab_size = len(chars)
char_to_ix = {ch: i for i, ch in enumerate(chars)}
hidden_size, seq_length, learning_rate = 12, 8, 1e-1

Wxh = (torch.randn(hidden_size, vocab_size) * 0.01).requires_grad_(True)
Whh = (torch.randn(hidden_size, hidden_size) * 0.01).requires_grad_(True)
Why = (torch.randn(vocab_size, hidden_size) * 0.01).requires_grad_(True)
bh = torch.zeros(hidden_size, 1, requires_grad=True)
by = torch.zeros(vocab_size, 1, requires_grad=True)
params = [Wxh, Whh, Why, bh, by]
mem = [torch.zeros_like(p) for p in params]
smooth_loss = -torch.log(torch.tensor(1.0 / vocab_size)).item() * seq_length

p, hprev = 0, torch.zeros(hidden_size, 1)
for n in range(6):
    if p + seq_length + 1 >= len(data) or n == 0:
        hprev = torch.zeros(hidden_size, 1)
        p = 0
    inputs = torch.tensor([char_to_ix[ch] for ch in data[p:p+seq_length]], dtype=torch.long)
    targets = torch.tensor([char_to_ix[ch] for ch in data[p+1:p+seq_length+1]], dtype=torch.long)
    loss = 0
    h = hprev
    for t in range(len(inputs)):
        x = torch.zeros(vocab_size, 1)
        x[inputs[t]] = 1
        h = torch.tanh(Wxh @ x + Whh @ h + bh)
        y = Why @ h + by
        probs = torch.exp(y) / torch.sum(torch.exp(y))
        loss += -torch.log(probs[targets[t], 0])
    for q in params:
        q.grad = None
    loss.backward()
    hprev = h.detach()
    with torch.no_grad():
        for param, m in zip(params, mem):
            g = param.grad.clamp_(-5, 5)
            m += g * g
            param += -learning_rate * g / torch.sqrt(m + 1e-8)
    smooth_loss = smooth_loss * 0.999 + loss.item() * 0.001
    p += seq_length
print(smooth_loss)

x = torch.zeros((vocab_size, 1))
x[char_to_ix['h']] = 1
h = torch.zeros(hidden_size, 1)
ixes = []
for t in range(5):
    h = torch.tanh(torch.mm(Wxh, x) + torch.mm(Whh, h) + bh)
    y = torch.mm(Why, h) + by
    pr = torch.softmax(y.squeeze(), dim=0)
    ix = torch.multinomial(pr, 1).item()
    x = torch.zeros(vocab_size, 1)
    x[ix] = 1
    ixes.append(ix)
print(ixes)

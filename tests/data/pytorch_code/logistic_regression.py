import torch

torch.manual_seed(0)
n, d, classes = 60, 4, 3
X = torch.randn(n, d)
true = torch.randn(d, classes)
y = (X @ true + 0.1 * torch.randn(n, classes)).argmax(dim=1)
perm = torch.randperm(n)
train, test = perm[:40], perm[40:]
W = torch.zeros(d, classes, requires_grad=True)
b = torch.zeros(classes, requires_grad=True)
history = []
for epoch in range(15):
    idx = torch.randperm(len(train))
    correct, running = 0, 0.0
    for start in range(0, len(train), 10):
        batch = train[idx[start:start + 10]]
        logits = X[batch] @ W + b
        logp = torch.log_softmax(logits, dim=1)
        loss = -logp[torch.arange(len(batch)), y[batch]].mean()
        loss.backward()
        with torch.no_grad():
            for p in (W, b):
                p -= 0.5 * p.grad
                p.grad.zero_()
        running += loss.item() * batch.size(0)
        _, pred = torch.max(logits, 1)
        correct += (pred == y[batch]).sum().item()
    history.append((running / len(train), correct / len(train)))
with torch.no_grad():
    pred = (X[test] @ W + b).argmax(1)
    accuracy = (pred == y[test]).float().mean().item()
    confusion = torch.zeros(classes, classes, dtype=torch.int64)
    for t, p in zip(y[test], pred):
        confusion[t.long(), p.long()] += 1
    per_class = confusion.diag() / confusion.sum(1).clamp(min=1)
print(f"Accuracy: {100 * accuracy:>0.1f}%")

import torch

torch.manual_seed(4)
true_means = torch.tensor([0.2, 0.8, 0.5])
logits = torch.zeros(3, requires_grad=True)
baseline, lr = 0.0, 0.3
rewards = []
for step in range(30):
    probs = logits.softmax(-1)
    action = torch.multinomial(probs, num_samples=1)
    reward = true_means[action] + 0.1 * torch.randn(1)
    log_prob = probs.log().gather(0, action)
    loss = -(log_prob * (reward - baseline)).sum()
    loss.backward()
    with torch.no_grad():
        logits -= lr * logits.grad
    logits.grad.zero_()
    baseline += 0.1 * (reward.item() - baseline)
    rewards.append(reward.item())
best = logits.argmax().item()
entropy = -(logits.softmax(0) * logits.log_softmax(0)).sum()
print(best, torch.tensor(rewards).mean())

gamma = 0.9
R, returns = 0, []
for r in rewards[::-1]:
    R = r + gamma * R
    returns.insert(0, R)
returns = torch.tensor(returns)
returns = (returns - returns.mean()) / (returns.std(correction=1) + torch.finfo(torch.float32).eps)

def compute_gae(rewards, values, gamma=0.99, lam=0.95):
    gae = 0
    returns = []
    for step in reversed(range(len(rewards))):
        delta = rewards[step] + gamma * values[step + 1] - values[step]
        gae = delta + gamma * lam * gae
        returns.append(gae + values[step])
    return torch.stack(returns[::-1])

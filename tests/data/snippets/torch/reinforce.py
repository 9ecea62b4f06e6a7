import torch
import torch.nn.functional as F

log_probs = F.log_softmax(logits, dim=-1)
selected = log_probs.gather(1, actions.unsqueeze(-1)).squeeze(-1)

R = 0
returns = []
for r in reversed(rewards):
    R = r + gamma * R
    returns.append(R)
returns = torch.stack(returns[::-1])
returns = (returns - returns.mean()) / (returns.std() + 1e-9)

policy_loss = -(selected * returns).sum()
policy_loss

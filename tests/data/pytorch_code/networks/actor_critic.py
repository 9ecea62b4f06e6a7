import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical, Normal
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 8)
        self.action_head = nn.Linear(8, 2)
        self.value_head = nn.Linear(8, 1)
        self.saved_actions, self.rewards = [], []
    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)
model = Policy()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
eps = np.finfo(np.float32).eps.item()
rng = np.random.default_rng(0)
for t in range(6):
    state = torch.from_numpy(rng.normal(size=4)).to(torch.get_default_dtype())
    probs, value = model(state)
    m = Categorical(probs)
    action = m.sample()
    model.saved_actions.append((m.log_prob(action), value))
    model.rewards.append(rng.random())
R, returns = 0, []
for r in model.rewards[::-1]:
    R = r + 0.99 * R
    returns.insert(0, R)
returns = torch.tensor(returns)
returns = (returns - returns.mean()) / (returns.std(correction=1) + eps)
policy_losses, value_losses = [], []
for (log_prob, value), R in zip(model.saved_actions, returns):
    advantage = R - value.item()
    policy_losses.append(-log_prob * advantage)
    value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
optimizer.zero_grad()
loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
loss.backward()
optimizer.step()
ratio = torch.exp(torch.tensor([0.1, -0.3], requires_grad=True))
adv = torch.tensor([1.0, -2.0])
ppo = -torch.min(ratio * adv, torch.clamp(ratio, 0.8, 1.2) * adv).mean()
sac = Normal(torch.zeros(2), torch.ones(2)); a = torch.tensor([0.2, 0.4]); lp = sac.log_prob(a) - torch.log(1 - torch.tanh(a).pow(2) + 1e-6)

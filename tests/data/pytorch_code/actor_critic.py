from collections import namedtuple
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical, Normal, kl_divergence

SavedAction = namedtuple("SavedAction", ["log_prob", "value"])
eps = 1e-8


class Policy(nn.Module):
    def __init__(self):
        super(Policy, self).__init__()
        self.affine1 = nn.Linear(4, 16)
        self.action_head = nn.Linear(16, 2)
        self.value_head = nn.Linear(16, 1)
        self.saved_actions = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        action_prob = F.softmax(self.action_head(x), dim=-1)
        state_values = self.value_head(x)
        return action_prob, state_values


model = Policy()
optimizer = optim.Adam(model.parameters(), lr=3e-2)


def select_action(state):
    probs, state_value = model(state)
    m = Categorical(probs)
    action = m.sample()
    model.saved_actions.append(SavedAction(m.log_prob(action), state_value))
    return action.item()


def finish_episode():
    R = 0
    saved_actions = model.saved_actions
    policy_losses = []
    value_losses = []
    returns = []
    for r in model.rewards[::-1]:
        R = r + 0.99 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std(unbiased=True) + eps)
    for (log_prob, value), R in zip(saved_actions, returns):
        advantage = R - value.item()
        policy_losses.append(-log_prob * advantage)
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    del model.rewards[:]
    del model.saved_actions[:]
    return loss.item()


losses = []
for episode in range(2):
    state = torch.randn(4)
    for t in range(6):
        action = select_action(state)
        state = 0.9 * state + 0.1 * (action - 0.5)
        model.rewards.append(float(state.sum()))
    losses.append(finish_episode())
print(losses)
mu, std = torch.zeros(3, requires_grad=True), torch.ones(3, requires_grad=True)
d = Normal(mu, std)
old = Normal(mu.detach() + 0.1, std.detach())
a = d.rsample()
ratio = (d.log_prob(a.detach()).sum() - old.log_prob(a.detach()).sum()).exp()
surr = torch.min(ratio * 2.0, torch.clamp(ratio, 0.8, 1.2) * 2.0)
total = -surr + 0.01 * kl_divergence(old, d).sum() - 0.01 * d.entropy().mean()
total.backward()
for target_param, param in zip(Policy().parameters(), model.parameters()):
    target_param.data.copy_(0.995 * target_param.data + (1.0 - 0.995) * param.data)

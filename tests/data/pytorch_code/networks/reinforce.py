import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical, Normal

gamma = 0.99
eps = 1e-8


class Policy(nn.Module):
    def __init__(self):
        super(Policy, self).__init__()
        self.affine1 = nn.Linear(4, 16)
        self.dropout = nn.Dropout(p=0.0)
        self.affine2 = nn.Linear(16, 2)
        self.value = nn.Linear(16, 1)

        self.saved_log_probs = []
        self.saved_values = []
        self.rewards = []

    def forward(self, x):
        x = self.affine1(x)
        x = self.dropout(x)
        x = F.relu(x)
        action_scores = self.affine2(x)
        return F.softmax(action_scores, dim=1), self.value(x)


policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
entropies = []


def select_action(state, chosen):
    probs, value = policy(state.unsqueeze(0))
    m = Categorical(probs)
    action = torch.tensor([chosen])
    policy.saved_log_probs.append(m.log_prob(action))
    policy.saved_values.append(value)
    entropies.append(m.entropy())
    return action.item()


def finish_episode():
    R = 0
    policy_loss = []
    value_losses = []
    returns = []
    for r in policy.rewards[::-1]:
        R = r + gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std(unbiased=True) + eps)
    for log_prob, value, R in zip(policy.saved_log_probs, policy.saved_values, returns):
        advantage = R - value.item()
        policy_loss.append(-log_prob * advantage)
        value_losses.append(F.smooth_l1_loss(value.squeeze(), R))
    optimizer.zero_grad()
    loss = torch.cat(policy_loss).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]
    return loss


state = torch.randn(4)
for t in range(6):
    action = select_action(state, t % 2)
    state = 0.9 * state + 0.1 * torch.randn(4) + (2 * action - 1) * 0.05
    policy.rewards.append(float(state.pow(2).sum()))
episode_loss = finish_episode()

# A policy of a real action, whose gradient goes through the sample.
actor = nn.Linear(4, 2)
mean, log_std = actor(state).chunk(2)
dist = Normal(mean, log_std.clamp(-5, 2).exp())
x_t = dist.rsample()
squashed = torch.tanh(x_t)
log_prob = dist.log_prob(x_t) - torch.log(1 - squashed.pow(2) + 1e-6)
actor_loss = (0.2 * log_prob - squashed).mean()
actor_loss.backward()
actor_grad = actor.weight.grad

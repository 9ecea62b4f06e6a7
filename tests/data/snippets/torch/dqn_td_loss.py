import torch
import torch.nn.functional as F

GAMMA = 0.99

state_action_values = q.gather(1, actions.view(-1, 1)).squeeze(1)
next_state_values = q_next.max(1)[0].detach()
expected = rewards + GAMMA * next_state_values * (1 - dones)
F.smooth_l1_loss(state_action_values, expected)

import torch
from torch import nn
T, C, N, S = 8, 5, 2, 3
logits = torch.randn(T, N, C, requires_grad=True)
log_probs = logits.log_softmax(2)
targets = torch.tensor([[1, 2, 2], [3, 1, 4]])
loss = nn.CTCLoss()(log_probs, targets, torch.tensor([8, 7]), torch.tensor([3, 2]))
loss.backward()
l2 = nn.functional.ctc_loss(log_probs.detach(), targets, torch.tensor([8, 7]), torch.tensor([3, 2]), reduction="none")
l3 = nn.functional.ctc_loss(log_probs.detach(), torch.tensor([1, 2, 2, 3, 1]), torch.tensor([8, 7]), torch.tensor([3, 2]), reduction="sum", zero_infinity=True)
impossible = nn.functional.ctc_loss(log_probs.detach(), torch.tensor([[1, 1, 1], [2, 2, 2]]), [3, 8], [3, 3], reduction="none")
zeros = nn.functional.ctc_loss(log_probs.detach(), torch.tensor([[1, 1, 1], [2, 2, 2]]), [3, 8], [3, 3], reduction="none", zero_infinity=True)
one = nn.CTCLoss(blank=4, reduction="sum")(log_probs.detach()[:, 0], torch.tensor([1, 0]), torch.tensor(8), torch.tensor(2))

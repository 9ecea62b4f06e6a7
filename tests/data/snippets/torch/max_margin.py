correct = scores[torch.arange(len(target)), target]
margins = torch.clamp(scores - correct[:, None] + 1.0, min=0)
mask = 1 - F.one_hot(target, 3).float()
(margins * mask).sum() / len(target)

import torch

def ranknet(scores, rel):
    diff = scores[:, None] - scores[None, :]
    better = (rel[:, None] > rel[None, :]).float()
    return (better * torch.nn.functional.softplus(-diff)).sum() / better.sum()

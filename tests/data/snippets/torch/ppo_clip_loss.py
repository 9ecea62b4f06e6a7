import torch

def compute_loss_pi(logp, old_logp, adv, clip_ratio):
    ratio = torch.exp(logp - old_logp)
    clip_adv = torch.clamp(ratio, 1 - clip_ratio, 1 + clip_ratio) * adv
    loss_pi = -(torch.min(ratio * adv, clip_adv)).mean()
    return loss_pi

def triplet_loss(anchor, positive, negative, margin=1.0):
    d_pos = (anchor - positive).pow(2).sum(1)
    d_neg = (anchor - negative).pow(2).sum(1)
    losses = F.relu(d_pos - d_neg + margin)
    return losses.mean()

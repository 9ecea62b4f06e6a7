import torch
import torch.nn as nn
import torch.nn.functional as F


class FocalLoss(nn.Module):
    def __init__(self, gamma=0, alpha=None, size_average=True):
        super(FocalLoss, self).__init__()
        self.gamma = gamma
        self.alpha = alpha
        if isinstance(alpha, (float, int)):
            self.alpha = torch.Tensor([alpha, 1 - alpha])
        if isinstance(alpha, list):
            self.alpha = torch.Tensor(alpha)
        self.size_average = size_average

    def forward(self, input, target):
        if input.dim() > 2:
            input = input.view(input.size(0), input.size(1), -1)
            input = input.transpose(1, 2)
            input = input.contiguous().view(-1, input.size(2))
        target = target.view(-1, 1)
        logpt = F.log_softmax(input, dim=-1)
        logpt = logpt.gather(1, target)
        logpt = logpt.view(-1)
        pt = logpt.data.exp()
        if self.alpha is not None:
            if self.alpha.type() != input.data.type():
                self.alpha = self.alpha.type_as(input.data)
            at = self.alpha.gather(0, target.data.view(-1))
            logpt = logpt * at
        loss = -1 * (1 - pt) ** self.gamma * logpt
        return loss.mean() if self.size_average else loss.sum()


class LabelSmoothingCrossEntropy(nn.Module):
    def __init__(self, smoothing=0.1):
        super().__init__()
        self.smoothing = smoothing
        self.confidence = 1.0 - smoothing

    def forward(self, x, target):
        logprobs = F.log_softmax(x, dim=-1)
        nll_loss = -logprobs.gather(dim=-1, index=target.unsqueeze(1))
        nll_loss = nll_loss.squeeze(1)
        smooth_loss = -logprobs.mean(dim=-1)
        return (self.confidence * nll_loss + self.smoothing * smooth_loss).mean()


def dice_loss(pred, target, smooth=1.0):
    pred, target = pred.contiguous(), target.contiguous()
    intersection = (pred * target).sum(dim=2).sum(dim=2)
    loss = 1 - ((2.0 * intersection + smooth) / (pred.sum(dim=2).sum(dim=2) + target.sum(dim=2).sum(dim=2) + smooth))
    return loss.mean()


class SupConLoss(nn.Module):
    def __init__(self, temperature=0.07, base_temperature=0.07):
        super().__init__()
        self.temperature, self.base_temperature = temperature, base_temperature

    def forward(self, features, labels=None):
        device = torch.device("cuda") if features.is_cuda else torch.device("cpu")
        batch_size = features.shape[0]
        if labels is None:
            mask = torch.eye(batch_size, dtype=torch.float64).to(device)
        else:
            labels = labels.contiguous().view(-1, 1)
            mask = torch.eq(labels, labels.T).double().to(device)
        contrast_count = features.shape[1]
        contrast_feature = torch.cat(torch.unbind(features, dim=1), dim=0)
        anchor_dot_contrast = torch.div(torch.matmul(contrast_feature, contrast_feature.T), self.temperature)
        logits_max, _ = torch.max(anchor_dot_contrast, dim=1, keepdim=True)
        logits = anchor_dot_contrast - logits_max.detach()
        mask = mask.repeat(contrast_count, contrast_count)
        logits_mask = torch.scatter(
            torch.ones_like(mask), 1, torch.arange(batch_size * contrast_count).view(-1, 1).to(device), 0
        )
        mask = mask * logits_mask
        exp_logits = torch.exp(logits) * logits_mask
        log_prob = logits - torch.log(exp_logits.sum(1, keepdim=True))
        mask_pos_pairs = mask.sum(1)
        mask_pos_pairs = torch.where(mask_pos_pairs < 1e-6, 1, mask_pos_pairs)
        mean_log_prob_pos = (mask * log_prob).sum(1) / mask_pos_pairs
        loss = -(self.temperature / self.base_temperature) * mean_log_prob_pos
        return loss.view(contrast_count, batch_size).mean()


def info_nce_loss(features, n_views=2, temperature=0.07):
    labels = torch.cat([torch.arange(features.shape[0] // 2) for i in range(n_views)], dim=0)
    labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
    features = F.normalize(features, dim=1)
    similarity_matrix = torch.matmul(features, features.T)
    mask = torch.eye(labels.shape[0], dtype=torch.bool)
    labels = labels[~mask].view(labels.shape[0], -1)
    similarity_matrix = similarity_matrix[~mask].view(similarity_matrix.shape[0], -1)
    positives = similarity_matrix[labels.bool()].view(labels.shape[0], -1)
    negatives = similarity_matrix[~labels.bool()].view(similarity_matrix.shape[0], -1)
    logits = torch.cat([positives, negatives], dim=1)
    labels = torch.zeros(logits.shape[0], dtype=torch.long)
    return F.cross_entropy(logits / temperature, labels)


def off_diagonal(x):
    n, m = x.shape
    assert n == m
    return x.flatten()[:-1].view(n - 1, n + 1)[:, 1:].flatten()


def barlow(z1, z2, lambd=0.005):
    bn = nn.BatchNorm1d(z1.shape[1], affine=False)
    c = bn(z1).T @ bn(z2)
    c.div_(z1.shape[0])
    on_diag = torch.diagonal(c).add_(-1).pow_(2).sum()
    off_diag = off_diagonal(c).pow_(2).sum()
    return on_diag + lambd * off_diag


def vicreg(x, y):
    repr_loss = F.mse_loss(x, y)
    x = x - x.mean(dim=0)
    y = y - y.mean(dim=0)
    std_x = torch.sqrt(x.var(dim=0, unbiased=True) + 0.0001)
    std_y = torch.sqrt(y.var(dim=0, unbiased=True) + 0.0001)
    std_loss = torch.mean(F.relu(1 - std_x)) / 2 + torch.mean(F.relu(1 - std_y)) / 2
    cov_x = (x.T @ x) / (x.shape[0] - 1)
    cov_loss = off_diagonal(cov_x).pow_(2).sum().div(x.shape[1])
    return 25 * repr_loss + 25 * std_loss + cov_loss


def clip_loss(a, b, logit_scale):
    a = a / a.norm(dim=1, keepdim=True)
    b = b / b.norm(dim=-1, keepdim=True)
    l = logit_scale.exp() * a @ b.t()
    labels = torch.arange(l.shape[0], device=l.device, dtype=torch.long)
    return (F.cross_entropy(l, labels) + F.cross_entropy(l.t(), labels)) / 2


class ContrastiveLoss(torch.nn.Module):
    def __init__(self, margin=2.0):
        super().__init__()
        self.margin = margin

    def forward(self, o1, o2, label):
        d = F.pairwise_distance(o1, o2, keepdim=True)
        return torch.mean((1 - label) * torch.pow(d, 2) + label * torch.pow(torch.clamp(self.margin - d, min=0.0), 2))


def _pairwise_distances(embeddings, squared=False):
    dot_product = torch.matmul(embeddings, embeddings.t())
    square_norm = torch.diag(dot_product)
    distances = square_norm.unsqueeze(0) - 2.0 * dot_product + square_norm.unsqueeze(1)
    distances[distances < 0] = 0
    if not squared:
        mask = distances.eq(0).double()
        distances = distances + mask * 1e-16
        distances = (1.0 - mask) * torch.sqrt(distances)
    return distances


def _get_triplet_mask(labels):
    indices_equal = torch.eye(labels.size(0)).bool()
    indices_not_equal = ~indices_equal
    i_not_equal_j = indices_not_equal.unsqueeze(2)
    i_not_equal_k = indices_not_equal.unsqueeze(1)
    j_not_equal_k = indices_not_equal.unsqueeze(0)
    distinct_indices = (i_not_equal_j & i_not_equal_k) & j_not_equal_k
    label_equal = labels.unsqueeze(0) == labels.unsqueeze(1)
    i_equal_j = label_equal.unsqueeze(2)
    i_equal_k = label_equal.unsqueeze(1)
    valid_labels = ~i_equal_k & i_equal_j
    return valid_labels & distinct_indices


def batch_all_triplet_loss(labels, embeddings, margin):
    pd = _pairwise_distances(embeddings)
    triplet_loss = pd.unsqueeze(2) - pd.unsqueeze(1) + margin
    mask = _get_triplet_mask(labels)
    triplet_loss = mask.double() * triplet_loss
    triplet_loss[triplet_loss < 0] = 0
    num_positive = triplet_loss[triplet_loss > 1e-16].size(0)
    return triplet_loss.sum() / (num_positive + 1e-16)


class CenterLoss(nn.Module):
    def __init__(self, num_classes=4, feat_dim=6):
        super().__init__()
        self.num_classes = num_classes
        self.centers = nn.Parameter(torch.randn(num_classes, feat_dim))

    def forward(self, x, labels):
        batch_size = x.size(0)
        distmat = (
            torch.pow(x, 2).sum(dim=1, keepdim=True).expand(batch_size, self.num_classes)
            + torch.pow(self.centers, 2).sum(dim=1, keepdim=True).expand(self.num_classes, batch_size).t()
        )
        distmat.addmm_(x, self.centers.t(), beta=1, alpha=-2)
        classes = torch.arange(self.num_classes).long()
        labels = labels.unsqueeze(1).expand(batch_size, self.num_classes)
        mask = labels.eq(classes.expand(batch_size, self.num_classes))
        dist = distmat * mask.double()
        return dist.clamp(min=1e-12, max=1e12).sum() / batch_size


class ArcMarginProduct(nn.Module):
    def __init__(self, i, o, s=30.0, m=0.50):
        super().__init__()
        self.s, self.m = s, m
        self.weight = nn.Parameter(torch.FloatTensor(o, i).double())
        nn.init.xavier_uniform_(self.weight)

    def forward(self, input, label):
        cosine = F.linear(F.normalize(input), F.normalize(self.weight))
        sine = torch.sqrt((1.0 - torch.pow(cosine, 2)).clamp(0, 1))
        phi = cosine * torch.tensor(self.m).cos() - sine * torch.tensor(self.m).sin()
        phi = torch.where(cosine > 0, phi, cosine)
        one_hot = torch.zeros(cosine.size(), device="cpu")
        one_hot.scatter_(1, label.view(-1, 1).long(), 1)
        return ((one_hot * phi) + ((1.0 - one_hot) * cosine)) * self.s


x = torch.randn(8, 4, requires_grad=True)
e = torch.randn(8, 6, requires_grad=True)
e2 = torch.randn(8, 6, requires_grad=True)
t = torch.randint(0, 4, (8,))
img = torch.rand(2, 3, 4, 4, requires_grad=True)
imt = torch.randint(0, 3, (2, 4, 4))
vals = [
    FocalLoss(2, [0.1, 0.2, 0.3, 0.4])(x, t),
    FocalLoss(1.5)(img, imt),
    LabelSmoothingCrossEntropy()(x, t),
    F.cross_entropy(x, t, label_smoothing=0.1),
    dice_loss(torch.sigmoid(img), F.one_hot(imt, 3).permute(0, 3, 1, 2).double()),
    SupConLoss()(F.normalize(torch.stack([e, e2], 1), dim=-1), t),
    SupConLoss()(F.normalize(torch.stack([e, e2], 1), dim=-1)),
    info_nce_loss(e),
    barlow(e, e2),
    vicreg(e, e2),
    clip_loss(e, e2, torch.tensor(2.0)),
    ContrastiveLoss()(e, e2, (t > 1).double().unsqueeze(1)),
    batch_all_triplet_loss(t, e, 1.0),
    CenterLoss()(e, t),
    F.cross_entropy(ArcMarginProduct(6, 4)(e, t), t),
    nn.MultiLabelSoftMarginLoss()(x, (x > 0).double()),
    nn.MultiMarginLoss()(x, t),
    nn.HingeEmbeddingLoss()(e, torch.sign(e2).detach()),
    nn.SoftMarginLoss()(e, torch.sign(e2).detach()),
    nn.MultiLabelMarginLoss()(x, torch.tensor([[3, 0, -1, 1]] * 8)),
    nn.MarginRankingLoss(margin=0.1)(x[:, 0], x[:, 1], torch.sign(x[:, 2]).detach()),
    nn.BCEWithLogitsLoss(pos_weight=torch.ones(4) * 2)(x, (x > 0).double()),
    nn.KLDivLoss(reduction="batchmean", log_target=True)(F.log_softmax(x, 1), F.log_softmax(x * 2, 1)),
    F.nll_loss(F.log_softmax(img, 1), imt, weight=torch.tensor([1.0, 2.0, 3.0]), ignore_index=1),
    nn.HuberLoss(delta=0.5)(e, e2),
    nn.PoissonNLLLoss(full=True)(x, t.unsqueeze(1).expand(8, 4).double()),
    F.cosine_embedding_loss(e, e2, torch.sign(x[:, 0]).detach(), margin=0.2),
    F.triplet_margin_loss(e, e2, e2.flip(0), swap=True),
    nn.GaussianNLLLoss(full=True)(e, e2, torch.ones(8, 6)),
    F.cross_entropy(x, F.softmax(x.detach() * 2, 1)),
]
grads = [torch.autograd.grad(v, [w for w in (x, e, e2, img)], retain_graph=True, allow_unused=True) for v in vals]
gr = [[torch.zeros(1) if a is None else a for a in g] for g in grads]

"""Loss functions as modules; `reduction` is "mean", "sum" or "none", that of KLDivLoss also "batchmean"."""

from __future__ import annotations

from typing import Any

from gradcli.nn.function_modules import FunctionModule, defaults


class _LossLayer(FunctionModule):
    """The base class of losses, whose repr shows no settings, as in PyTorch."""

    shown = ()


class _WeightedLoss(_LossLayer):
    """A loss with tensors among its settings, which are registered as buffers so that they move with the module."""

    buffers_among: tuple[str, ...] = ("weight",)

    def set(self, name: str, value: Any) -> None:
        if name in self.buffers_among:
            self.register_buffer(name, value)
        else:
            super().set(name, value)


class MSELoss(_LossLayer):
    """The mean of squared differences; with `reduction` "sum" their sum, with "none" one for each element."""

    function = "mse_loss"
    settings = defaults(reduction="mean")


class L1Loss(_LossLayer):
    """The mean of absolute differences."""

    function = "l1_loss"
    settings = defaults(reduction="mean")


class SmoothL1Loss(_LossLayer):
    """The mean over elements of d - beta/2 where d = abs(input - target) >= beta, else d**2/(2*beta)."""

    function = "smooth_l1_loss"
    settings = defaults(reduction="mean", beta=1.0)


class HuberLoss(_LossLayer):
    """`SmoothL1Loss` times delta, with delta for beta."""

    function = "huber_loss"
    settings = defaults(reduction="mean", delta=1.0)


class CrossEntropyLoss(_WeightedLoss):
    """The mean of -log_softmax(input) at the labels, or weighted by the class probabilities of the target."""

    function = "cross_entropy"
    settings = defaults(weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0)


class NLLLoss(_WeightedLoss):
    """The mean of -input at the labels."""

    function = "nll_loss"
    settings = defaults(weight=None, ignore_index=-100, reduction="mean")


class BCELoss(_WeightedLoss):
    """The mean of -target*log(input) - (1 - target)*log(1 - input)."""

    function = "binary_cross_entropy"
    settings = defaults(weight=None, reduction="mean")


class BCEWithLogitsLoss(_WeightedLoss):
    """`BCELoss` of the sigmoid of the input."""

    function = "binary_cross_entropy_with_logits"
    settings = defaults(weight=None, reduction="mean", pos_weight=None)
    buffers_among = ("weight", "pos_weight")


class KLDivLoss(_LossLayer):
    """The mean over all elements of target*(log(target) - input); with reduction="batchmean" the sum over the size of the
    batch, which is the divergence."""

    function = "kl_div"
    settings = defaults(reduction="mean", log_target=False)


class GaussianNLLLoss(_LossLayer):
    """The mean of (log(var) + (input - target)**2/var)/2."""

    function = "gaussian_nll_loss"
    settings = defaults(full=False, eps=1e-6, reduction="mean")


class PoissonNLLLoss(_LossLayer):
    """The mean of exp(input) - target*input."""

    function = "poisson_nll_loss"
    settings = defaults(log_input=True, full=False, eps=1e-8, reduction="mean")


class CosineEmbeddingLoss(_LossLayer):
    """The mean of 1 - cos where the target is 1, else of max(0, cos - margin), with the cosine of both inputs."""

    function = "cosine_embedding_loss"
    settings = defaults(margin=0.0, reduction="mean")


class HingeEmbeddingLoss(_LossLayer):
    """The mean of the input where the target is 1, else of max(0, margin - input)."""

    function = "hinge_embedding_loss"
    settings = defaults(margin=1.0, reduction="mean")


class MarginRankingLoss(_LossLayer):
    """The mean of max(0, -target*(input1 - input2) + margin)."""

    function = "margin_ranking_loss"
    settings = defaults(margin=0.0, reduction="mean")


class SoftMarginLoss(_LossLayer):
    """The mean of log(1 + exp(-target*input))."""

    function = "soft_margin_loss"
    settings = defaults(reduction="mean")


class MultiMarginLoss(_WeightedLoss):
    """The mean over rows of the sum of max(0, margin - input[target] + input[k])**p over the other classes k, divided by
    the number of classes."""

    function = "multi_margin_loss"
    settings = defaults(p=1, margin=1.0, weight=None, reduction="mean")


class MultiLabelMarginLoss(_LossLayer):
    """The hinge loss between the labels of each row and the other classes; see `functional.multilabel_margin_loss`."""

    function = "multilabel_margin_loss"
    settings = defaults(reduction="mean")


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean over the classes of the binary cross entropies of the sigmoid of the input."""

    function = "multilabel_soft_margin_loss"
    settings = defaults(weight=None, reduction="mean")


class TripletMarginLoss(_LossLayer):
    """The mean of max(0, d(anchor, positive) - d(anchor, negative) + margin)."""

    function = "triplet_margin_loss"
    settings = defaults(margin=1.0, p=2.0, eps=1e-6, swap=False, reduction="mean")


class TripletMarginWithDistanceLoss(_LossLayer):
    """`TripletMarginLoss` with the distances that a function or a module gives."""

    function = "triplet_margin_with_distance_loss"
    settings = defaults(distance_function=None, margin=1.0, swap=False, reduction="mean")

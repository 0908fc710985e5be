"""The training losses of section 4.2 and of the appendix, in log space.

Predictions come in as log probabilities (`soft_nearest_neighbor_log_probs`), never as probabilities that could be
mistaken for logits. Every loss of an empty batch is 0 and still has a gradient, which is 0.
"""

import torch
from torch import Tensor

WARMUP_SHARE = 0.15
"""Of the epochs, in which the target's temperature falls: SimGCD's 30 of 200."""


def self_supervised_contrastive(z_anchor: Tensor, z_target: Tensor, *, tau: float = 0.07) -> Tensor:
    """L_SelfCon of the appendix: two views of an image attract, all else repels. (n, d), (n, d) -> ().

    Projections are L2-normalised; row i of both is the same image. As in SimCLR every view is an anchor, compared with
    every other view in the batch; the paper leaves the index of the denominator unbound.
    """
    image = torch.arange(len(z_anchor), device=z_anchor.device)
    logits, not_self = _all_views(z_anchor, z_target, tau)
    image = image.repeat(2)
    return _contrastive(logits, (image[:, None] == image) & not_self, not_self)


def supervised_contrastive(z_anchor: Tensor, z_target: Tensor, categories: Tensor, *, tau: float = 0.1) -> Tensor:
    """L_SupCon of the appendix: images of one category attract. (n, d), (n, d), (n,) -> ().

    Projections are L2-normalised. An anchor without a positive contributes 0, and is counted in the mean.
    """
    logits, not_self = _all_views(z_anchor, z_target, tau)
    categories = categories.repeat(2)
    return _contrastive(logits, (categories[:, None] == categories) & not_self, not_self)


def labeled_loss(log_probs: Tensor, categories: Tensor) -> Tensor:
    """L_l, eq. 3: cross entropy of the true category. (n, c), (n,) -> ()."""
    if len(log_probs) == 0:
        return log_probs.sum()
    return -log_probs.gather(1, categories[:, None]).mean()


def distillation_loss(target_log_probs: Tensor, anchor_log_probs: Tensor) -> Tensor:
    """First term of L_u, eq. 4: cross entropy of one view with the sharper other one as truth. (n, c), (n, c) -> ().

    No gradient goes to the target.
    """
    if len(anchor_log_probs) == 0:
        return anchor_log_probs.sum()
    return -(target_log_probs.detach().exp() * anchor_log_probs).sum(dim=1).mean()


def mean_prediction_entropy(target_log_probs: Tensor, anchor_log_probs: Tensor) -> Tensor:
    """H of the mean prediction over a batch and both its views, eq. 6. (n, c), (n, c) -> (), at most log c.

    The mean is taken of probabilities, in log space. No gradient goes to the target.
    """
    if len(anchor_log_probs) == 0:
        return anchor_log_probs.sum()
    both = torch.cat([target_log_probs.detach(), anchor_log_probs])
    log_mean = both.logsumexp(dim=0).log_softmax(dim=0)
    return -(log_mean.exp() * log_mean).sum()


def unlabeled_loss(target_log_probs: Tensor, anchor_log_probs: Tensor, *, entropy_weight: float = 2.0) -> Tensor:
    """L_u, eq. 4, with ε as `entropy_weight`. (n, c), (n, c) -> ().

    The target is the other view at a sharper temperature (`target_temperature`). Call it twice with the views swapped,
    and average, for both to learn.
    """
    distillation = distillation_loss(target_log_probs, anchor_log_probs)
    return distillation - entropy_weight * mean_prediction_entropy(target_log_probs, anchor_log_probs)


def representation_loss(supervised: Tensor, self_supervised: Tensor, *, supervised_weight: float = 0.35) -> Tensor:
    """L_rep, eq. 1, with λ_rep as `supervised_weight`."""
    return supervised_weight * supervised + (1 - supervised_weight) * self_supervised


def classifier_loss(labeled: Tensor, unlabeled: Tensor, *, labeled_weight: float = 0.35) -> Tensor:
    """L_cls, eq. 5, with λ_cls as `labeled_weight`."""
    return labeled_weight * labeled + (1 - labeled_weight) * unlabeled


def total_loss(representation: Tensor, classifier: Tensor) -> Tensor:
    """L, eq. 7."""
    return representation + classifier


def target_temperature(
    progress: float, *, start: float = 0.07, end: float = 0.04, warmup_share: float = WARMUP_SHARE
) -> float:
    """Temperature of the target view when a share of the training is done: falls along the warm-up, then stays.

    >>> [round(target_temperature(progress), 3) for progress in (0, 0.075, 0.15, 0.9)]
    [0.07, 0.055, 0.04, 0.04]
    """
    warmed_up = 1.0 if warmup_share <= 0 else min(progress / warmup_share, 1.0)
    return start + (end - start) * warmed_up


def _all_views(z_anchor: Tensor, z_target: Tensor, tau: float) -> tuple[Tensor, Tensor]:
    """Similarities of all views with all, over τ, and which are not of a view with itself. -> (2n, 2n), (2n, 2n)."""
    z = torch.cat([z_anchor, z_target])
    return z @ z.T / tau, ~torch.eye(len(z), dtype=torch.bool, device=z.device)


def _contrastive(logits: Tensor, positive: Tensor, compared: Tensor) -> Tensor:
    """Mean over anchors of the mean over positives of −log(exp(logit) / sum of exp over what is compared). -> ()."""
    if logits.numel() == 0:
        return logits.sum()
    positive = positive & compared.any(dim=1, keepdim=True)  # an anchor compared with nothing has no loss
    log_denominator = logits.masked_fill(~compared, -torch.inf).logsumexp(dim=1, keepdim=True)
    minus_log_ratio = (log_denominator - logits).masked_fill(~positive, 0.0)
    return (minus_log_ratio.sum(dim=1) / positive.sum(dim=1).clamp(min=1)).mean()

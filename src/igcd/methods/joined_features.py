"""The pretrained feature, the trained one, or both joined: `features: frozen | tuned | dual`.

Training on known categories pulls the novel ones into them, so that their images form no clusters of their own any
more; in the space that was not trained they still do (docs/methods/snn_density.md).
"""

from typing import Literal

import torch
from torch import Tensor

FeatureSpace = Literal["tuned", "frozen", "dual"]


def join_features(frozen: Tensor, tuned: Tensor, *, frozen_weight: float) -> Tensor:
    """Both with one cosine, the weighted mean of theirs. (n, c), (n, d), rows of length 1 -> (n, c + d), the same.

    >>> here, there = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.6, 0.8]])
    >>> joined = [join_features(frozen, tuned, frozen_weight=0.25) for frozen, tuned in ((here, here), (there, here))]
    >>> (joined[0] * joined[1]).sum()  # 0.25 · 0.6 + 0.75 · 1
    tensor(0.9000)
    """
    return torch.cat([frozen_weight**0.5 * frozen, (1 - frozen_weight) ** 0.5 * tuned], dim=1)


def frozen_part(joined: Tensor, n_frozen: int, *, frozen_weight: float) -> Tensor:
    """The frozen feature out of what `join_features` made, or out of means of it. (n, c + d) -> (n, c)."""
    return joined[:, :n_frozen].div(frozen_weight**0.5)

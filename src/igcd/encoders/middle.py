"""An image seen twice: as a whole, and its middle enlarged.

Who takes a photo mostly points at what it is of, so the middle shows it larger. The feature points half-way between
those of both looks: what they agree on counts, and what only one of them sees counts for less.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate, normalize

from igcd.types import Pixels

SHARE = 0.75
"""Of each side of the image that the middle has."""


def side_with_middle(size: int) -> int:
    """The side of images whose middle has this side: it needs no enlarging then, and the whole is made smaller.

    >>> side_with_middle(112), side_with_middle(224)
    (149, 299)
    """
    return round(size / SHARE)


def smaller(pixels: Pixels, size: int) -> Pixels:
    """All of each image. (n, s, s, 3) -> (n, size, size, 3).

    >>> smaller(np.array([0, 100, 100, 0], dtype=np.uint8).reshape(1, 2, 2, 1), 1).tolist()
    [[[[50]]]]
    """
    channels_first = torch.from_numpy(pixels).permute(0, 3, 1, 2)
    shrunk = interpolate(channels_first, size=(size, size), mode="bilinear", antialias=True)
    return np.ascontiguousarray(shrunk.permute(0, 2, 3, 1).numpy())


def cut(pixels: Pixels, size: int) -> Pixels:
    """The middle of each image. (n, s, s, 3) -> (n, size, size, 3).

    >>> cut(np.arange(16, dtype=np.uint8).reshape(1, 4, 4, 1), 2)[..., 0].tolist()
    [[[5, 6], [9, 10]]]
    """
    margin = (pixels.shape[1] - size) // 2
    return np.ascontiguousarray(pixels[:, margin : margin + size, margin : margin + size])


def half_way(looks: Sequence[Tensor]) -> Tensor:
    """The direction half-way between the features of each look, of length 1; of one look that feature as it is. (n, d).

    >>> half_way([torch.tensor([[3.0, 0.0]]), torch.tensor([[0.0, 5.0]])])
    tensor([[0.7071, 0.7071]])
    """
    if len(looks) == 1:
        return looks[0]
    return normalize(torch.stack([normalize(look, dim=1) for look in looks]).sum(dim=0), dim=1)

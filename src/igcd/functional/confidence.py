"""How distances to category means become probabilities.

A row belongs to the category of a near mean with a probability that falls with the distance. But features do not show
everything: some rows lie nearest to a mean that is not theirs, however near. So a share of all rows counts as strays,
which may be of any category. Without it the surest rows are promised too much, and the others too little.
"""

from dataclasses import dataclass

from torch import Tensor

from igcd.functional.refining import closeness


@dataclass(frozen=True)
class Confidence:
    """How sharply distances decide, and how many rows they say nothing about."""

    sharpness: float
    stray: float = 0.0  # share of rows that may be of any category, from 0 to below 1

    def probs(self, close: Tensor) -> Tensor:
        """Probabilities of c categories from the closeness to their means. (n, c) -> (n, c), rows sum to 1.

        >>> Confidence(100.0, stray=0.2).probs(Tensor([[0.5, 0.0]]))  # near the first of two means
        tensor([[0.9000, 0.1000]])
        """
        return (1 - self.stray) * (self.sharpness * close).softmax(dim=1) + self.stray / max(close.shape[1], 1)

    def of_best(self, rows: Tensor, means: Tensor) -> Tensor:
        """The probability of the most probable category of each row. (n, d), (c, d) -> (n,)."""
        return self.probs(closeness(rows, means)).max(dim=1).values


def between(first: Confidence, second: Confidence, weight: float) -> Confidence:
    """The first with this weight and the second with the rest; of sharpness the geometric mean.

    >>> middle = between(Confidence(10.0, 0.1), Confidence(40.0, 0.2), 0.5)
    >>> round(middle.sharpness, 3), round(middle.stray, 3)
    (20.0, 0.15)
    """
    sharpness = first.sharpness**weight * second.sharpness ** (1 - weight)
    return Confidence(sharpness, weight * first.stray + (1 - weight) * second.stray)

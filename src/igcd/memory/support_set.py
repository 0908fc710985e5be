"""The support set S: the features the classifier compares with."""

from torch import Tensor

from igcd.errors import IgcdError
from igcd.functional.grouping import distinct
from igcd.functional.snn import predict_by_support, soft_nearest_neighbor_log_probs
from igcd.memory.entries import Entries


class SupportSet(Entries):
    """Features of a few images of each category; the content of an entry is an L2-normalised feature h, (d,)."""

    @property
    def features(self) -> Tensor:
        """Feature h of each support image, (s, d)."""
        return self.content

    @property
    def category_ids(self) -> Tensor:
        """The categories of S, rising: column c of the predictions is `category_ids[c]`. (c,)."""
        return distinct(self.categories)[0]

    def rows(self) -> Tensor:
        """For each support image the position of its category in `category_ids`. (s,)."""
        return distinct(self.categories)[1].to(self.content.device)

    def refresh(self, features: Tensor) -> None:
        """Replaces all features, in the order of `image_ids`, by those of an encoder that has learned since. (s, d)."""
        if len(features) != len(self):
            raise IgcdError(
                f"refreshing needs one feature per support image, {len(self)}, got {len(features)}; "
                "encode the images of image_ids in their order"
            )
        self.content = features

    def log_probs(self, queries: Tensor, *, tau: float) -> Tensor:
        """Log of the probability of each category of S, eq. 2. (n, d) -> (n, c)."""
        return soft_nearest_neighbor_log_probs(
            queries, self.features, self.rows(), n_categories=len(self.category_ids), tau=tau
        )

    def predict(self, queries: Tensor, *, tau: float) -> tuple[Tensor, Tensor]:
        """The most probable category id of each query and its probability. (n, d) -> (n,), (n,)."""
        if len(self) == 0:
            raise IgcdError(
                "predicting needs at least one support image, the support set is empty; learn a stage first"
            )
        ids = self.category_ids.to(queries.device)
        rows, probs = predict_by_support(queries, self.features, self.rows(), n_categories=len(ids), tau=tau)
        return ids[rows], probs

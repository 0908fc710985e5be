"""The soft nearest neighbor classifier, section 4.2: no parameters, a new category is a few more support images."""

import torch
from torch import Tensor

from igcd.errors import IgcdError


def soft_nearest_neighbor_log_probs(
    queries: Tensor, support: Tensor, support_rows: Tensor, *, n_categories: int, tau: float
) -> Tensor:
    """Log of the category probabilities of each query, eq. 2. (n, d), (s, d), (s,) -> (n, c).

    Features are L2-normalised. `support_rows` says for each support image which of the c categories it stands for; each
    of them needs one. Similarities of a category are summed in log space about their own maximum, so that a
    category far away at a small temperature has a very negative logarithm and not −inf.
    """
    _require_support(support_rows, n_categories)
    logits = queries @ support.T / tau
    # Any constant may be taken out of a log-sum-exp, so no gradient has to go through the maximum.
    columns = support_rows.expand(len(queries), -1)
    with torch.no_grad():
        largest = logits.new_full((len(queries), n_categories), -torch.inf)
        largest = largest.scatter_reduce(1, columns, logits, "amax")
    sums = torch.zeros_like(largest).index_add(1, support_rows, (logits - largest.gather(1, columns)).exp())
    return (largest + sums.log()).log_softmax(dim=1)


def soft_nearest_neighbor(
    queries: Tensor, support: Tensor, support_rows: Tensor, *, n_categories: int, tau: float
) -> Tensor:
    """Category probabilities of each query, eq. 2. (n, d), (s, d), (s,) -> (n, c), rows sum to 1."""
    return soft_nearest_neighbor_log_probs(queries, support, support_rows, n_categories=n_categories, tau=tau).exp()


@torch.no_grad()
def predict_by_support(
    queries: Tensor, support: Tensor, support_rows: Tensor, *, n_categories: int, tau: float, max_bytes: int = 2**28
) -> tuple[Tensor, Tensor]:
    """The most probable category of each query and its probability, in bounded memory. -> (n,), (n,)."""
    n_rows = max(1, max_bytes // (16 * (len(support) + n_categories)))
    rows = torch.empty(len(queries), dtype=torch.int64, device=queries.device)
    probs = torch.empty(len(queries), dtype=queries.dtype, device=queries.device)
    for start in range(0, len(queries), n_rows):
        part = slice(start, start + n_rows)
        best = soft_nearest_neighbor(queries[part], support, support_rows, n_categories=n_categories, tau=tau).max(1)
        probs[part], rows[part] = best.values, best.indices
    return rows, probs


def _require_support(support_rows: Tensor, n_categories: int) -> None:
    n_support = torch.bincount(support_rows, minlength=n_categories)
    if len(n_support) != n_categories or not n_support.all():
        raise IgcdError(
            f"each of the {n_categories} categories needs a support image, got {int((n_support > 0).sum())} categories "
            f"with one and ids up to {len(n_support) - 1}; number the categories of the support set from 0 without gaps"
        )

"""Category discovery on any embeddings, as a scikit-learn estimator."""

from igcd.discoverer.estimator import CategoryDiscoverer
from igcd.discoverer.reports import Discovery

__all__ = ["CategoryDiscoverer", "Discovery"]

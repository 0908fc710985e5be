"""A scikit-learn pipeline with category discovery in it, and a grid search over its settings.

    python examples/pipeline.py

The search scores held-out labeled rows, so it chooses what helps to recognize known categories. It says nothing about
the number of new ones: leave `granularity` and `n_novel` out of such a grid.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from igcd import CategoryDiscoverer

UNLABELED = -1


def labeled_rows_right(model: Pipeline, rows: np.ndarray, y: np.ndarray) -> float:
    """Share of held-out labeled rows that are recognized. Unlabeled rows do not count."""
    is_labeled = y != UNLABELED
    return float((model.predict(rows[is_labeled]) == y[is_labeled]).mean())


def main() -> GridSearchCV:
    """Six digits with some labels, four without any: the best settings, and what they find."""
    rows, digits = (part[::2] for part in load_digits(return_X_y=True))  # half of them: the search fits nine times
    y = np.where((digits < 6) & (np.arange(len(digits)) % 4 == 0), digits, UNLABELED)
    pipeline = Pipeline([("scale", StandardScaler()), ("discover", CategoryDiscoverer())])
    grid = {"scale": [StandardScaler(), "passthrough"], "discover__n_components": [16, None]}
    # Folds are stratified by label, the unlabeled rows included: they take part in learning.
    search = GridSearchCV(pipeline, grid, scoring=labeled_rows_right, cv=StratifiedKFold(2)).fit(rows, y)
    for parameters, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        print(f"{score:.3f} {parameters}")
    best = search.best_estimator_["discover"]
    print(f"best: {search.best_params_}; new categories: {best.n_novel_}, of {best.labels_.size} rows")
    for found in best.discoveries_:
        digit = np.bincount(digits[list(found.members)]).argmax()
        print(f"  {best.ledger_.current(found.id).label}: {found.n_rows} rows, typical ones are of digit {digit}")
    return search


if __name__ == "__main__":
    main()

"""Category discovery on embeddings, in three batches: learn, let a person decide, go on.

    python examples/embeddings.py

Rows are scikit-learn's digits as 64 gray values. Six digits have labels, four have none; the 9 comes later.
"""

import numpy as np
from sklearn.datasets import load_digits

from igcd import CategoryDiscoverer


def mostly(digits: np.ndarray) -> str:
    """The most frequent digit, its share, and the number of rows."""
    counts = np.bincount(digits, minlength=10)
    return f"mostly {counts.argmax()} ({counts.max() / counts.sum():.0%} of {counts.sum()})"


def main() -> None:
    """Three batches of digits."""
    rows, digits = load_digits(return_X_y=True)
    parts = np.arange(len(rows)) % 3
    names = np.array(["zero", "one", "two", "three", "four", "five"])
    # The first batch: 0 to 5, half of them labeled, and 6, 7 and 8 without a label.
    first = (parts == 0) & (digits != 9)
    is_labeled = (digits < 6) & (np.arange(len(rows)) % 2 == 0)
    y = np.where(is_labeled, names[np.minimum(digits, 5)], "")
    model = CategoryDiscoverer().fit(rows[first], y[first])
    print(f"{first.sum()} rows, {(y[first] != '').sum()} labeled; found: {model.n_novel_}")

    # A person looks at the rows around each peak, names what was found, and merges what belongs together.
    for found in model.discoveries_:
        like = model.ledger_.current(found.nearest_id).label
        print(f"  {found.label}: {mostly(digits[first][model.labels_ == found.label])}, most like {like!r}")
        name = {6: "six", 7: "seven", 8: "eight"}.get(int(np.bincount(digits[first][list(found.members)]).argmax()))
        if name is None:
            model.reject(found.label)
        elif name in model.categories_:
            model.merge(name, found.label)
        else:
            model.rename(found.label, name)
    print("known now:", ", ".join(model.categories_))

    # A second batch without any label, and the unsure rows once more: the known are recognised, no id changes.
    second = parts == 1
    second[np.flatnonzero(first)[model.labels_ == ""]] = True
    model.partial_fit(rows[second])
    for label in model.categories_[len(model.categories_) - model.n_novel_ :]:
        print(f"new in the second batch: {label}, {mostly(digits[second][model.labels_ == label])}")

    names = np.array([*names, "six", "seven", "eight", "nine"])
    has_name = np.isin(names[digits], model.categories_) & (parts == 2)
    right = model.predict(rows[has_name]) == names[digits[has_name]]
    print(f"third batch, {has_name.sum()} rows of named digits: {right.mean():.0%} right")


if __name__ == "__main__":
    main()

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment

from igcd.functional import calibration
from igcd.functional.assignment import contingency, match
from igcd.functional.calibration import (
    AGREED,
    DEFAULT_CONFIDENCE,
    STRAYS,
    _share_right,
    _weights_for,
    agreed_confidence,
    confidence_for,
    fit_confidence,
    rehearsed_confidence,
)
from igcd.functional.confidence import Confidence, between
from igcd.functional.discovery import Discovered, discover
from igcd.functional.tree_cut import Cut
from igcd.functional.whitening import Whitening


def clouds(n_clouds, n_each, *, spread, seed=0, width=12):
    rng = np.random.default_rng(seed)
    owners = np.repeat(np.arange(n_clouds), n_each)
    rows = rng.normal(size=(n_clouds, width))[owners] + spread * rng.normal(size=(len(owners), width))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return torch.from_numpy(rows.astype(np.float32)), torch.from_numpy(owners)


def found_among(rows, owners, *, n_known=4, n_labels=6):
    rank = torch.tensor([int((owners[:row] == owners[row]).sum()) for row in range(len(owners))])
    is_labeled = (owners < n_known) & (rank < n_labels)
    labeled, categories, unlabeled = rows[is_labeled], owners[is_labeled], rows[~is_labeled]
    return discover(unlabeled, labeled, categories), unlabeled, labeled, categories


def test_wider_clouds_decide_less_sharply():
    sharpness, stray = [], []
    for spread in (0.1, 0.6, 1.0):
        found = [found_among(*clouds(7, 20, spread=spread, seed=seed)) for seed in range(4)]
        sure = [agreed_confidence(*each) for each in found]
        sharpness.append(np.mean([np.log(each.sharpness) for each in sure]))
        stray.append(np.mean([each.stray for each in sure]))
    assert sharpness[0] > sharpness[1] > sharpness[2]
    assert stray[0] < stray[1] < stray[2]


def agreed_by(found, unlabeled, labeled, n_parts):
    """The share of rows that two parts place alike, by loops; the mean over pairs of parts and ways to part."""
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(len(labeled) + len(unlabeled), generator=generator)
    shares = []
    for _ in range(calibration.N_SPLITS):
        order = order[torch.randperm(len(order), generator=generator)]
        shares.append(agreed_in(found, unlabeled, labeled, n_parts, order.tolist()))
    return np.mean(shares)


def agreed_in(found, unlabeled, labeled, n_parts, order):
    order = [row for row in order if row < len(labeled)] + [row for row in order if row >= len(labeled)]
    rows = torch.cat([labeled, unlabeled])[order]
    nothing, places = torch.empty(0, dtype=torch.int64), []
    for part in range(n_parts):
        n_groups = len(found.means)
        alone = discover(rows[part::n_parts], rows[:0], nothing, n_novel=n_groups, whitening=found.whitening)
        places.append([int((row - alone.means).square().sum(dim=1).argmin()) for row in found.whitening(rows)])
    shares = []
    for first, second in zip(places[::2], places[1::2], strict=True):
        table = np.zeros((max(first) + 1, max(second) + 1))
        for one, other in zip(first, second, strict=True):
            table[one, other] += 1
        shares.append(table[linear_sum_assignment(-table)].sum() / len(rows))
    return np.mean(shares)


@pytest.mark.parametrize(("n_each", "spread", "extrapolates"), [(4, 0.3, False), (40, 0.8, True)])
def test_confidence_is_what_parts_agree_on(n_each, spread, extrapolates):
    found, unlabeled, labeled, categories = found_among(*clouds(7, n_each, spread=spread))
    rows = torch.cat([labeled, unlabeled])
    halves, expected = [agreed_by(found, unlabeled, labeled, 2)] * 2
    assert (len(rows) >= 8 * len(found.means)) == extrapolates
    if extrapolates:
        quarters = agreed_by(found, unlabeled, labeled, 4)
        assert 0.3 < quarters < halves < 0.98
        expected = 1 - (1 - halves) ** 2 / (1 - quarters)
    confidence = agreed_confidence(found, unlabeled, labeled, categories).of_best(found.whitening(rows), found.means)
    assert float(confidence.mean()) == pytest.approx(expected**AGREED, abs=1e-3)


def test_rows_too_few_for_two_halves_agree_on_nothing():
    rows, _ = clouds(1, 5, spread=0.1)
    nothing = torch.empty(0, dtype=torch.int64)
    own = torch.zeros(5, dtype=torch.int64)
    alone = Discovered(Whitening(torch.eye(12)), rows.mean(dim=0)[None], nothing, own, nothing, Cut(1, 0.0, 0.0))
    assert agreed_confidence(alone, rows, rows[:0], nothing) is None
    assert rehearsed_confidence(alone, rows, rows[:0], nothing) == DEFAULT_CONFIDENCE
    found, *few = found_among(*clouds(7, 3, spread=0.1), n_known=6, n_labels=2)
    assert len(few[0]) + len(few[1]) < 4 * len(found.means)
    assert agreed_confidence(found, *few) is None


def test_of_very_many_rows_whole_categories_are_asked(monkeypatch):
    category = torch.arange(200) % 5
    monkeypatch.setattr(calibration, "MAX_ROWS", 100)
    own = calibration._of_whole_categories(category, torch.Generator().manual_seed(0))
    assert torch.bincount(category[own]).unique().tolist() in ([0, 40], [40])
    assert 0 < len(own) <= 100 and len(set(own.tolist())) == len(own)


def test_of_very_large_categories_some_rows_are_asked(monkeypatch):
    monkeypatch.setattr(calibration, "MAX_ROWS", 100)
    category = torch.arange(400) % 2
    own = calibration._of_whole_categories(category, torch.Generator().manual_seed(0))
    assert len(set(own.tolist())) == 100 and torch.bincount(category[own]).min() > 25


def test_three_labeled_categories_are_enough_to_rehearse(monkeypatch):
    n_known = []
    discover = calibration.discover

    def noted(unlabeled, labeled, categories, **options):
        if len(labeled):  # parts of the rows are asked without any
            n_known.append(len(categories.unique()))
        return discover(unlabeled, labeled, categories, **options)

    monkeypatch.setattr(calibration, "discover", noted)
    rehearsed_confidence(*found_among(*clouds(7, 20, spread=0.4), n_known=3))
    assert n_known == [2, 2]  # one is hidden at a time, though more than half of the categories are new


def test_too_few_labels_to_rehearse_leave_it_to_the_halves():
    asked = found_among(*clouds(7, 20, spread=0.4), n_known=2)
    assert rehearsed_confidence(*asked) == agreed_confidence(*asked)
    asked = found_among(*clouds(7, 20, spread=0.4), n_known=6, n_labels=1)
    assert rehearsed_confidence(*asked) == agreed_confidence(*asked)


def test_as_many_categories_are_hidden_as_are_new(monkeypatch):
    """Six labeled categories: three are hidden at a time where half of all are new, one where none is."""
    for n_clouds, expected in ((12, 3), (6, 1)):
        found, unlabeled, labeled, categories = found_among(*clouds(n_clouds, 20, spread=0.2), n_known=6)
        n_left = []

        def counted(rows, known, owners, n_left=n_left, found=found, **options):
            if len(known):
                n_left.append(len(owners.unique()))
                assert options["n_novel"] == found.n_novel + 6 - n_left[-1]  # those found, and those hidden
            return discover(rows, known, owners, **options)

        monkeypatch.setattr(calibration, "discover", counted)
        rehearsed_confidence(found, unlabeled, labeled, categories)
        assert n_left == [6 - expected, 6 - expected]


def test_guesses_of_earlier_batches_are_not_rehearsed(monkeypatch):
    found, unlabeled, labeled, categories = found_among(*clouds(10, 20, spread=0.2), n_known=6)
    is_guess, owners_seen = categories >= 4, []

    def noted(rows, known, owners, **options):
        if not len(known):
            return discover(rows, known, owners, **options)
        owners_seen.append(owners)
        assert len(rows) + len(known) == len(unlabeled) + len(labeled)
        return discover(rows, known, owners, **options)

    monkeypatch.setattr(calibration, "discover", noted)
    rehearsed_confidence(found, unlabeled, labeled, categories, is_guess=is_guess)
    assert all(int(owners.max()) < 4 for owners in owners_seen) and len(owners_seen) == 2


def test_rehearsals_that_fail_make_probabilities_softer():
    for spread in (0.2, 1.0):  # clouds apart, and clouds that melt into one
        promised, right = [], []
        for seed in range(4):
            rows, owners = clouds(10, 20, spread=spread, seed=seed)
            found, unlabeled, labeled, categories = found_among(rows, owners, n_known=6)
            confidence = rehearsed_confidence(found, unlabeled, labeled, categories)
            assert confidence == rehearsed_confidence(found, unlabeled, labeled, categories)
            promised.append(float(confidence.of_best(found.whitening(unlabeled), found.means).mean()))
            truth = owners[(rows[:, None] == unlabeled).all(dim=2).any(dim=1)].numpy()
            right.append(float((match(contingency(found.category.numpy(), truth))[found.category] == truth).mean()))
        assert np.mean(promised) == pytest.approx(np.mean(right), abs=0.1)
        assert (np.mean(right) > 0.95) == (spread == 0.2)


@pytest.mark.parametrize("stray", STRAYS)
@pytest.mark.parametrize("share", [0.4, 0.6, 0.9])
def test_the_confidence_has_that_mean(share, stray):
    rows, _ = clouds(6, 20, spread=0.5)
    means = rows[::20]
    confidence = confidence_for(share, [(rows, means)], np.full(len(rows), 1 / len(rows)), stray=stray)
    assert float(confidence.of_best(rows, means).mean()) == pytest.approx(share, abs=1e-3)
    assert confidence.stray == pytest.approx(stray * (1 - share))


@pytest.mark.parametrize("stray", [0.0, 0.2])
def test_strays_are_found_where_there_are_some(stray):
    """Rows whose categories are drawn by their probabilities, but for strays, which may be of any category."""
    rows, _ = clouds(6, 400, spread=0.7)
    means, rng = rows[::400], np.random.default_rng(0)
    probs = Confidence(8.0, stray).probs(rows @ means.T - means.square().sum(dim=1) / 2).numpy()
    drawn = (probs.cumsum(axis=1) > rng.random((len(rows), 1))).argmax(axis=1)
    right = (drawn == probs.argmax(axis=1)).astype(float)
    fitted = fit_confidence(right, [(rows, means)], np.full(len(rows), 1 / len(rows)))
    assert fitted.stray == 0 if stray == 0 else fitted.stray > 0.05


def test_rehearsals_and_parts_of_the_rows_share_the_decision(monkeypatch):
    found, unlabeled, labeled, categories = found_among(*clouds(10, 20, spread=0.6), n_known=6)
    asked = []
    for weight in (1.0, 0.25):
        monkeypatch.setattr(calibration, "_weight_of_rehearsed", lambda *_, weight=weight: weight)
        asked.append(rehearsed_confidence(found, unlabeled, labeled, categories))
    rehearsed, mixed = asked
    agreed = agreed_confidence(found, unlabeled, labeled, categories)
    assert rehearsed != agreed
    assert mixed == between(rehearsed, agreed, 0.25)


def test_rehearsed_rows_weigh_what_they_stand_for():
    is_new = np.array([True, True, True, False])
    weights = _weights_for(0.2, is_new)
    assert weights.sum() == pytest.approx(1)
    assert weights[is_new].sum() == pytest.approx(0.2)
    assert len(set(weights[is_new])) == 1
    for all_alike in (np.ones(4, dtype=bool), np.zeros(4, dtype=bool)):
        assert _weights_for(0.2, all_alike).tolist() == [0.25] * 4


def test_how_right_rows_are():
    """Known are 7 and 9, at places 0 and 1; 5 was hidden whole, and its rows are in new groups 2, 2, 3 and in 7."""
    found = Discovered(
        Whitening(torch.eye(2)),
        torch.zeros(4, 2),
        torch.tensor([7, 9]),
        torch.empty(0, dtype=torch.int64),
        torch.empty(0, dtype=torch.int64),
        Cut(4, 0.0, 0.0),
    )
    predicted, categories = np.array([0, 1, 2, 2, 3, 0]), np.array([7, 7, 5, 5, 5, 5])
    # Of 7: one right and one in 9. Of 5: both rows in group 2 are right by the generous view, and by a third by the
    # strict one (without the row, three groups have one other each); the two others are wrong by both.
    in_group_2 = (1 - 1 / 4) * 1 + 1 / 4 * 1 / 3
    assert _share_right(found, predicted, categories).tolist() == pytest.approx([1, 0, in_group_2, in_group_2, 0, 0])

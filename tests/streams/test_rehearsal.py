from collections import Counter
from dataclasses import replace

import pytest

from igcd.assembly import build_stream
from igcd.config import StreamConfig
from igcd.data.sources import load_source
from igcd.errors import IgcdError
from igcd.streams.build import split_by_category
from igcd.streams.protocols import StreamSpec
from igcd.streams.rehearsal import rehearse


@pytest.fixture(scope="module")
def split():
    spec = StreamSpec(protocol="igcd-u", categories_per_stage=(8, 2), images_labeled=20, images_new=10, images_old=5)
    return split_by_category(load_source("digits"), spec, seed=3)


def ids_of(split):
    return [
        image_id
        for stage in split.stages
        for part in (stage.labeled, stage.unlabeled, stage.test)
        for image_id in part.image_ids
    ]


def test_nothing_but_the_labeled_images_of_stage_0_takes_part(split):
    labeled = split.stages[0].labeled
    truth = dict(zip(labeled.image_ids, labeled.categories, strict=True))
    rehearsed = rehearse(split)
    assert set(ids_of(rehearsed)) <= set(truth)
    for stage in rehearsed.stages:
        for part in (stage.labeled, stage.unlabeled, stage.test):
            assert all(truth[i] == category for i, category in zip(part.image_ids, part.categories, strict=True))


def test_known_categories_are_labeled_and_come_back_novel_ones_are_new_and_what_is_scored_was_never_seen(split):
    first, second = rehearse(split).stages
    assert len(set(first.labeled.categories)) == 7 and not first.unlabeled.image_ids
    novel = set(second.unlabeled.categories) - set(first.labeled.categories)
    assert len(novel) == 1 and not second.labeled.image_ids
    assert set(first.labeled.categories) <= set(second.unlabeled.categories)
    seen = {*first.labeled.image_ids, *second.unlabeled.image_ids}
    assert len(seen) == len(first.labeled.image_ids) + len(second.unlabeled.image_ids)
    assert not seen & {*first.test.image_ids, *second.test.image_ids}
    groups = dict(zip(second.test.categories, second.test.groups, strict=True))
    assert len(groups) == 8 and {c for c, group in groups.items() if group == "New"} == novel


@pytest.mark.parametrize(("n_labeled", "n_new", "n_old"), [(20, 30, 6), (10, 40, 2), (30, 10, 5)])
def test_images_per_category_are_in_the_proportions_of_the_stream(split, n_labeled, n_new, n_old):
    like = StreamSpec(protocol="mi", images_labeled=n_labeled, images_new=n_new, images_old=n_old)
    first, second = rehearse(split, like).stages
    labeled, unlabeled = Counter(first.labeled.categories), Counter(second.unlabeled.categories)
    novel = {category: n for category, n in unlabeled.items() if category not in labeled}
    old = {category: n for category, n in unlabeled.items() if category in labeled}
    found = [set(counts.values()) for counts in (labeled, novel, old)]
    assert all(len(each) == 1 for each in found)
    scale = 14 / max(n_new, n_labeled + n_old)  # of 20 labeled images 6 are held out
    for (n,), expected in zip(found, (n_labeled, n_new, n_old), strict=True):
        assert abs(n - scale * expected) <= 1  # whole images


def test_it_is_the_same_each_time_and_another_for_another_seed(split):
    assert rehearse(split) == rehearse(split)
    assert ids_of(rehearse(split)) != ids_of(rehearse(replace(split, seed=4)))


def test_too_few_labels_are_refused():
    spec = StreamSpec(protocol="mi", categories_per_stage=(3, 2), images_labeled=20, images_new=10)
    with pytest.raises(IgcdError, match="needs 4 labeled categories of 4 images"):
        rehearse(split_by_category(load_source("digits"), spec, seed=0))
    spec = StreamSpec(protocol="mi", categories_per_stage=(8, 2), images_labeled=3, images_new=10)
    with pytest.raises(IgcdError, match="3 of the smallest"):
        rehearse(split_by_category(load_source("digits"), spec, seed=0))


def test_a_recipe_asks_for_it():
    spec = StreamSpec(protocol="mi", categories_per_stage=(8, 2), images_labeled=20, images_new=10, test_per_category=4)
    config = StreamConfig(source="digits", by_category=spec, rehearsal=True)
    built = build_stream(config, seed=0)
    real = build_stream(config.model_copy(update={"rehearsal": False}), seed=0)
    assert built.stream.name == "digits-mi-rehearsal" and len(built.stream) == 2
    assert built.split == rehearse(real.split, spec)
    for (stage, _), cut in zip(built.stream, built.split.stages, strict=True):
        assert len(stage.labeled) == len(cut.labeled.image_ids)


def test_several_later_stages_meet_their_own_new_categories_and_known_ones_come_back_to_each(split):
    first, *later = rehearse(split, n_later=2).stages
    met = set(first.labeled.categories)
    assert len(met) == 6 and len(later) == 2
    for stage in later:
        unlabeled = set(stage.unlabeled.categories)
        assert met <= unlabeled and len(unlabeled - met) == 1
        met |= unlabeled
    seen = [
        image_id for stage in (first, *later) for image_id in (*stage.labeled.image_ids, *stage.unlabeled.image_ids)
    ]
    assert len(seen) == len(set(seen))
    assert not set(seen) & set(later[-1].test.image_ids)


def test_a_recipe_says_how_many_later_stages():
    spec = StreamSpec(protocol="mi", categories_per_stage=(8, 2), images_labeled=20, images_new=10, test_per_category=4)
    config = StreamConfig(source="digits", by_category=spec, rehearsal=True, rehearsal_stages=3)
    assert len(build_stream(config, seed=0).stream) == 4

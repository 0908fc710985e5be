import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from igcd.data.taxonomy import Taxon
from igcd.functional.assignment import contingency, match
from igcd.metrics.scorecard import scorecard
from igcd.metrics.taxonomy_levels import LEVELS, groups_by_level, hits_at_level, scores_by_level
from igcd.types import Predictions


def taxon(name, family, genus, order="Lepidoptera"):
    return Taxon(name, ("Animalia", "Arthropoda", "Insecta", order, family, genus))


# Few names, so that species share genera and families, and any of them may be unknown.
taxa = st.lists(
    st.tuples(st.sampled_from(["", "F", "G"]), st.sampled_from(["", "x", "y"]), st.sampled_from(["L", "M"])),
    min_size=5,
    max_size=5,
).map(lambda ranks: [taxon(f"c{number}", family, genus, order) for number, (family, genus, order) in enumerate(ranks)])
images = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(-1, 6)), min_size=1, max_size=40)
"""Stage, category and cluster of each image."""


def predictions_of(rows):
    """Two categories are Old, two New; the fifth is absent after stage 0."""
    groups = {0: "Old", 1: "Old", 2: "New", 3: "New"}
    stages, categories, clusters = zip(*rows, strict=True)
    return Predictions(
        np.array(stages),
        ("test",) * len(rows),
        tuple(map(str, range(len(rows)))),
        tuple(f"c{category}" for category in categories),
        tuple(map(str, clusters)),
        tuple(groups.get(category, "S-0" if stage else "Old") for stage, category, _ in rows),
    )


def is_same(one, other, level):
    """The slow twin of a group: names read down the tree, one level after the other."""
    if one.name == other.name:
        return True
    if level == "species":
        return False
    if one.at("genus") and one.ranks == other.ranks:
        return True
    return level == "family" and bool(one.at("family")) and one.ranks[:5] == other.ranks[:5]


def slow_scores(rows, taxa, level):
    """The slow twin: the matching of each stage as a dict, and images counted one by one."""
    predictions = predictions_of(rows)
    scores = {}
    for stage in sorted({row[0] for row in rows}):
        now = [number for number, row in enumerate(rows) if row[0] == stage]
        # Ties between best matchings go by what is in the clusters, so that other numbers give the same.
        category_of = match(contingency(np.array([rows[i][2] for i in now]), np.array([rows[i][1] for i in now])))
        counts = {group: [] for group in ("All", "Old", "New")}
        for i in now:
            _, category, cluster = rows[i]
            matched = category_of[cluster] if cluster >= 0 else -1
            is_right = matched >= 0 and is_same(taxa[matched], taxa[category], level)
            group = predictions.group[i]
            if group in ("Old", "New"):
                counts["All"].append(is_right)
                counts[group].append(is_right)
        scores[stage] = {name: 100 * sum(right) / len(right) if right else None for name, right in counts.items()}
    return scores


def levels_of(rows, taxa):
    by_level = scores_by_level(predictions_of(rows), {one.name: one for one in taxa}, split="test")
    return {level: {stage.stage: dict(stage.scores) for stage in stages} for level, stages in by_level.items()}


@given(taxa, images)
def test_levels_are_those_of_the_slow_twin(taxa, rows):
    found = levels_of(rows, taxa)
    for level in LEVELS:
        for stage, scores in slow_scores(rows, taxa, level).items():
            assert found[level][stage] == pytest.approx(scores)


@given(taxa, images)
def test_a_broader_level_is_never_below_a_narrower_one(taxa, rows):
    found = levels_of(rows, taxa)
    for stage, species in found["species"].items():
        for group, narrowest in species.items():
            genus, family = found["genus"][stage][group], found["family"][stage][group]
            assert narrowest == genus == family if narrowest is None else narrowest <= genus <= family


@given(taxa, images)
def test_the_species_level_is_the_default_score(taxa, rows):
    found = levels_of(rows, taxa)
    for stage in scorecard(predictions_of(rows)).variants["test/v2/image/paper"].stages:
        assert {name: stage.scores[name] for name in ("All", "Old", "New")} == found["species"][stage.stage]


def test_by_hand():
    """Five images in two clusters: 0 is matched to the monarch, 1 to the fox."""
    monarch, queen = taxon("monarch", "Nymphalidae", "Danaus"), taxon("queen", "Nymphalidae", "Danaus")
    comma, fox = taxon("comma", "Nymphalidae", "Polygonia"), taxon("fox", "Canidae", "Vulpes", "Carnivora")
    category = ("monarch", "monarch", "queen", "comma", "fox", "queen")
    predictions = Predictions(
        np.ones(6, dtype=np.int64),
        ("test",) * 6,
        tuple("abcdef"),
        category,
        ("0", "0", "0", "0", "1", "1"),
        tuple("New" if name in ("queen", "comma") else "Old" for name in category),
    )
    taxonomy = {one.name: one for one in (monarch, queen, comma, fox)}
    by_level = scores_by_level(predictions, taxonomy, split="test")
    assert {level: dict(stages[0].scores) for level, stages in by_level.items()} == {
        "species": {"All": 50.0, "Old": 100.0, "New": 0.0},
        "genus": {"All": pytest.approx(100 * 4 / 6), "Old": 100.0, "New": pytest.approx(100 / 3)},
        "family": {"All": pytest.approx(100 * 5 / 6), "Old": 100.0, "New": pytest.approx(200 / 3)},
    }


def test_a_cluster_per_image_gains_nothing_at_a_broader_level():
    """Clusters matched to no category count as wrong: by their majority they would all be right."""
    genus = [taxon("c0", "F", "x"), taxon("c1", "F", "x")]
    clusters, categories = np.arange(10), np.repeat([0, 1], 5)
    category_of = match(contingency(clusters, categories))
    for group_of in groups_by_level(genus).values():
        assert hits_at_level(category_of, clusters, categories, group_of).sum() == 2


def test_a_genus_without_a_family_stays_together_and_names_of_other_orders_apart():
    groups = groups_by_level(
        [taxon("a", "", "x"), taxon("b", "", "x"), taxon("c", "", "x", order="Orchidales"), taxon("d", "", "")]
    )
    assert groups["genus"].tolist() == groups["family"].tolist() == [0, 0, 2, 3]

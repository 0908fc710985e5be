from dataclasses import replace

from small_run import TAXA, discovery

from igcd.report.discoveries import MAX_DISCOVERIES, N_IMAGES, galleries, judge
from igcd.report.run_records import DiscoveryRecord, read_run


def test_a_category_is_found_once():
    found = [
        DiscoveryRecord(**discovery(7, category="newt")),
        DiscoveryRecord(**discovery(8, category="newt")),
        DiscoveryRecord(**discovery(9, category="owl")),
        DiscoveryRecord(**discovery(10, category=None, purity=None)),
        DiscoveryRecord(**discovery(11, size=0, category=None, purity=None)),
    ]
    assert judge(found, known={"owl", "fox"}) == ["new", "again", "known", "unknown", "empty"]


def test_the_gallery_of_a_stage(make_run):
    (gallery,) = galleries(read_run(make_run()))
    assert (gallery.stage, gallery.n_found, gallery.n_new, gallery.missed) == (1, 1, 2, ("moth",))
    (found,) = gallery.shown
    assert (found.cluster, found.purity, found.verdict) == (7, 80.0, "new")
    assert found.peak.alt == "most typical of category 7" and found.peak.uri
    assert (found.nearest.name, len(found.nearest.examples)) == ("owl", 1)


def test_the_largest_come_first_and_not_too_many(make_run):
    images = [f"gallery/found-7-{number % 2}.jpg" for number in range(12)]
    many = [discovery(100 + size, size=size, images=images) for size in range(1, MAX_DISCOVERIES + 20)]
    (gallery,) = galleries(read_run(make_run(discoveries={1: many})))
    assert gallery.n_found == len(many)
    assert len(gallery.shown) == MAX_DISCOVERIES
    sizes = [found.size for found in gallery.shown]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] == len(many)
    assert all(1 + len(found.others) == N_IMAGES for found in gallery.shown)


def test_the_nearest_may_be_a_category_found_before(make_run):
    before = [discovery(7)]
    (first, second) = galleries(read_run(make_run(discoveries={0: before, 1: [discovery(8, nearest_known=7)]})))
    assert first.stage == 0
    nearest = second.shown[0].nearest
    assert nearest.name == "category 7"
    assert nearest.examples[0].uri is not None


def novelties(folder):
    (gallery,) = galleries(read_run(folder))
    return {found.cluster: found.novelty for found in gallery.shown}


def test_how_new_a_discovery_is_beside_the_labeled_categories(make_run):
    found = [
        discovery(7, category="newt"),
        discovery(8, category="moth"),
        discovery(9, category="owl"),
        discovery(10, category=None, purity=None),
    ]
    assert novelties(make_run(discoveries={1: found}, taxa=TAXA)) == {
        7: "new species of a known genus",
        8: "new phylum of a known kingdom",
        9: None,  # it is known
        10: None,
    }


def test_without_a_taxonomy_nothing_is_said_of_how_new_it_is(make_run):
    assert novelties(make_run()) == {7: None}


def test_an_empty_rank_may_be_a_known_one(make_run):
    owl, fox, newt, moth = TAXA
    assert novelties(make_run(taxa=[owl, fox, replace(newt, ranks=(*newt.ranks[:5], "")), moth])) == {7: None}

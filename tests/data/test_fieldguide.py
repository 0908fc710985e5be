import datetime
import itertools
import json
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from igcd.data.fieldguide.bodies.every import BODY_PLANS
from igcd.data.fieldguide.brush import PIGMENTS, Brush, Ribbon
from igcd.data.fieldguide.dice import Dice
from igcd.data.fieldguide.guide import DrawnImages, FieldGuide, write
from igcd.data.fieldguide.plate import sightings_sheet, species_plate
from igcd.data.fieldguide.sightings import INLAND, WAVES, long_tail, split_evenly, wave_of
from igcd.data.fieldguide.taxonomy import visible
from igcd.data.images import ImageSet, digest
from igcd.errors import IgcdError

GUIDE = FieldGuide(n_species=30, n_images=600, n_test_per_species=5, seed=3)
GOLDEN_ANNOTATIONS = "7ce689237383aeedfd3e5e5f"

IMAGE_KEYS = "id width height file_name license rights_holder date latitude longitude location_uncertainty"
CATEGORY_KEYS = (
    "id name common_name supercategory kingdom phylum class order family genus specific_epithet image_dir_name"
)


def difference(a, b):
    """Traits in which two species of one body plan differ."""
    return [trait for trait in a.traits if a.traits[trait] != b.traits[trait]]


def test_same_parameters_give_the_same_annotations_everywhere():
    guide = FieldGuide(n_species=12, n_images=120, n_test_per_species=3, seed=0)
    text = json.dumps([guide.annotations("train"), guide.annotations("val")], sort_keys=True)
    assert digest(text.encode()) == GOLDEN_ANNOTATIONS


def test_same_parameters_give_the_same_pixels_and_keys():
    again = FieldGuide(n_species=30, n_images=600, n_test_per_species=5, seed=3).images("train")
    images = GUIDE.images("train")
    for idx in range(0, 600, 37):
        np.testing.assert_array_equal(images.pixels(idx), again.pixels(idx))
        assert images.key(idx) == again.key(idx)


def test_another_seed_gives_another_guide():
    other = FieldGuide(n_species=30, n_images=600, n_test_per_species=5, seed=4)
    assert not {species.name for species in other.species} & {species.name for species in GUIDE.species}
    assert other.annotations("train")["images"] != GUIDE.annotations("train")["images"]
    assert not np.array_equal(other.images("train").pixels(0), GUIDE.images("train").pixels(0))


def test_an_image_does_not_depend_on_what_was_drawn_before():
    images = GUIDE.images("val")
    first = images.pixels(7)
    images.pixels(8)
    np.testing.assert_array_equal(first, images.pixels(7))


@pytest.mark.parametrize("n_species", [10, 11, 60, 2500])
def test_species_of_a_genus_differ_in_one_or_two_traits_that_show(n_species):
    guide = FieldGuide(n_species=n_species, n_images=4 * n_species)
    assert len(guide.species) == n_species
    for _, members in itertools.groupby(guide.species, key=lambda species: species.genus):
        for a, b in itertools.combinations(members, 2):
            assert a.plan is b.plan
            assert a.family == b.family
            assert len(difference(a, b)) in (1, 2)
            assert visible(a.plan, a.traits) != visible(b.plan, b.traits)


@pytest.mark.parametrize("n_species", [10, 60, 2500])
def test_names_and_looks_are_unique(n_species):
    species = FieldGuide(n_species=n_species, n_images=4 * n_species).species
    assert len({one.name for one in species}) == n_species
    assert len({one.common_name for one in species}) == n_species
    assert len({(one.plan.name, *sorted(one.traits.items())) for one in species}) == n_species
    genera = {one.genus: one.family for one in species}
    assert all(genera[one.genus] == one.family for one in species)


def test_no_genus_has_a_single_species():
    for n_species in range(10, 40):
        species = FieldGuide(n_species=n_species, n_images=4 * n_species).species
        assert min(Counter(one.genus for one in species).values()) >= 2


def test_markings_never_have_the_color_of_what_they_mark():
    for species in FieldGuide(n_species=500, n_images=2000).species:
        pigments = [option for option in species.traits.values() if option in PIGMENTS]
        assert len(pigments) == len(set(pigments))


def test_the_default_guide_has_many_body_plans():
    assert len({species.plan.name for species in FieldGuide().species}) >= 10


def test_annotations_have_the_layout_of_inat2021():
    for split, first_id in (("train", 0), ("val", 600)):
        annotations = GUIDE.annotations(split)
        images, links, categories = annotations["images"], annotations["annotations"], annotations["categories"]
        assert all(" ".join(image) == IMAGE_KEYS for image in images)
        assert all(list(link) == ["id", "image_id", "category_id"] for link in links)
        assert all(" ".join(category) == CATEGORY_KEYS for category in categories)
        assert [image["id"] for image in images] == list(range(first_id, first_id + len(images)))
        assert [link["image_id"] for link in links] == [image["id"] for image in images]
        folders = {category["id"]: category["image_dir_name"] for category in categories}
        for image, link in zip(images, links, strict=True):
            assert image["file_name"].startswith(f"{split}/{folders[link['category_id']]}/")
            assert image["file_name"].endswith(".jpg")
        json.dumps(annotations)


def test_folder_names_hold_number_and_lineage():
    for category in GUIDE.annotations("val")["categories"]:
        ranks = ["kingdom", "phylum", "class", "order", "family", "genus", "specific_epithet"]
        assert category["image_dir_name"] == "_".join([f"{category['id']:05d}", *(category[rank] for rank in ranks)])
        assert category["name"] == f"{category['genus']} {category['specific_epithet']}"


def test_ids_and_file_names_are_unique_over_both_splits():
    images = [image for split in ("train", "val") for image in GUIDE.annotations(split)["images"]]
    assert len(images) == 600 + 30 * 5
    assert len({image["id"] for image in images}) == len(images)
    assert len({image["file_name"] for image in images}) == len(images)
    assert len({image["file_name"].rsplit("/", 1)[1] for image in images}) == len(images)


def test_the_digits_of_a_file_and_its_number_tell_nothing_about_the_species():
    other = FieldGuide(n_species=20, n_images=600, n_test_per_species=5, seed=3)
    assert [one.digits for one in other.sightings("train")] == [one.digits for one in GUIDE.sightings("train")]
    species = np.array([one.species for one in GUIDE.sightings("train")])
    assert abs(np.corrcoef(species, np.arange(len(species)))[0, 1]) < 0.15
    assert (species[1:] == species[:-1]).mean() < 0.15


def test_sightings_have_a_long_tail():
    counts = sorted(Counter(one.species for one in FieldGuide().sightings("train")).values(), reverse=True)
    assert sum(counts) == 4_000
    assert len(counts) == 60
    assert counts[0] > 6 * counts[-1]
    assert sum(counts[:15]) > 0.4 * sum(counts)
    assert counts[-1] >= 30


def test_long_tail_sums_to_the_total_and_falls():
    for n_images, n_species in ((40, 10), (4_000, 60), (10_007, 997)):
        counts = long_tail(n_images, n_species)
        assert sum(counts) == n_images
        assert counts == sorted(counts, reverse=True)
        assert counts[-1] >= 1


def test_split_evenly_is_within_one_of_the_exact_share():
    shares = [0.1, 3.0, 0.7, 2.2]
    for total in (0, 1, 7, 100):
        counts = split_evenly(total, shares)
        assert sum(counts) == total
        assert all(abs(count - total * share / 6.0) < 1 for count, share in zip(counts, shares, strict=True))


def test_dates_and_coordinates_are_of_the_survey():
    by_year = Counter()
    for one, image in zip(GUIDE.sightings("train"), GUIDE.annotations("train")["images"], strict=True):
        assert one.continent in GUIDE.ranges[one.species]
        assert any(
            south <= image["latitude"] <= north and west <= image["longitude"] <= east
            for south, north, west, east in INLAND[one.continent]
        )
        date = datetime.datetime.fromisoformat(image["date"])
        assert date == one.date
        assert 2008 <= date.year <= 2019
        assert 6 <= date.hour < 20
        by_year[date.year] += 1
    assert by_year[2008] < by_year[2012] < by_year[2016]
    assert by_year[2008] < min(by_year[year] for year in (2017, 2018, 2019))


def test_ranges_are_one_to_three_continents_and_never_lead_back():
    sizes = Counter()
    for continents in FieldGuide().ranges:
        assert len(set(continents)) == len(continents)
        assert all(wave_of(continent) >= wave_of(continents[0]) for continent in continents)
        sizes[len(continents)] += 1
    assert set(sizes) == {1, 2, 3}


def stages(guide, split="train"):
    """Number of images by species in each stage of the rule year x continent."""
    return [
        Counter(one.species for one in guide.sightings(split) if one.continent in continents and one.date.year in years)
        for continents, years in WAVES
    ]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_species", [10, 13, 60])
def test_every_stage_has_novel_and_returning_species(n_species, seed):
    guide = FieldGuide(n_species=n_species, n_images=10 * n_species, seed=seed)
    known = set()
    for stage, (images, test_images) in enumerate(zip(stages(guide), stages(guide, "val"), strict=True)):
        assert set(images) - known, "novel species"
        assert stage == 0 or set(images) & known, "returning species"
        assert set(images) - known <= set(test_images), "test images of the novel species"
        known |= set(images)
    assert len(known) == n_species


def test_the_default_guide_has_enough_images_of_each_novel_species():
    known = set()
    for images in stages(FieldGuide()):
        novel = set(images) - known
        assert 8 <= len(novel) <= 30
        assert all(images[species] >= 20 for species in novel)
        known |= novel


@pytest.mark.parametrize("size", [16, 32, 33, 96, 224])
def test_draws_at_any_size(size):
    images = FieldGuide(n_species=36, n_images=144, size=size).images("val")
    for idx in range(0, 36, 5):
        pixels = images.pixels(idx)
        assert pixels.shape == (size, size, 3)
        assert pixels.dtype == np.uint8
        assert pixels.std() > 5


def test_every_size_shows_the_same_scene():
    small, large = (FieldGuide(n_species=12, n_images=48, size=size).images("train") for size in (64, 128))
    for idx in range(12):
        shrunk = np.asarray(Image.fromarray(large.pixels(idx)).reduce(2), dtype=float)
        assert np.corrcoef(shrunk.ravel(), small.pixels(idx).ravel())[0, 1] > 0.95


@pytest.mark.parametrize("plan", BODY_PLANS, ids=lambda plan: plan.name)
def test_every_option_of_every_trait_can_be_drawn_and_seen(plan):
    def drawn(look):
        canvas = Image.new("RGB", (128, 128), (120, 125, 130))
        plan.draw(Brush(canvas, center=(0.5, 0.5), scale=plan.size), look, Dice("pose"))
        return canvas.tobytes()

    # The last option of a form is never "plain" or "none", and no color twice: nothing hides anything.
    base = {trait: options[0] for trait, options in plan.family_traits.items()}
    for trait, options in plan.species_traits.items():
        base[trait] = next(
            option for option in reversed(options) if option not in base.values() or option not in PIGMENTS
        )
    for trait, options in plan.traits.items():
        looks = {drawn({**base, trait: option}) for option in options}
        assert len(looks) == len(options), trait


def test_continents_look_different():
    guide = FieldGuide(n_species=60, n_images=600)
    by_continent = {continent: [] for continent in INLAND}
    for one in guide.sightings("val"):
        if len(by_continent[one.continent]) < 25:
            by_continent[one.continent].append(guide.draw(one)[:16].mean(axis=(0, 1)))
    means = [np.mean(colors, axis=0) for colors in by_continent.values()]
    assert min(np.abs(a - b).max() for a, b in itertools.combinations(means, 2)) > 5


def test_drawn_images_are_an_image_set_in_any_order():
    names = [image["file_name"] for image in GUIDE.annotations("train")["images"]]
    images = DrawnImages(GUIDE, reversed(names[:10]))
    assert isinstance(images, ImageSet)
    assert images.ids == tuple(reversed(names[:10]))
    np.testing.assert_array_equal(images.pixels(9), GUIDE.images("train").pixels(0))
    assert len({images.key(idx) for idx in range(10)}) == 10


def test_the_key_changes_with_the_size():
    small = FieldGuide(n_species=30, n_images=600, n_test_per_species=5, seed=3, size=32)
    assert small.images("train").key(0) != GUIDE.images("train").key(0)


def test_an_unknown_file_name_is_refused():
    with pytest.raises(IgcdError, match="not in this field guide"):
        DrawnImages(GUIDE, ["train/00000_nothing/0.jpg"])


@pytest.mark.parametrize(
    "parameters", [{"n_species": 3}, {"n_images": 100}, {"size": 4}, {"n_test_per_species": -1}], ids=str
)
def test_impossible_parameters_are_refused(parameters):
    (name,) = parameters
    with pytest.raises(IgcdError, match=name):
        FieldGuide(**parameters)


def test_write_makes_a_folder_like_inat2021(tmp_path):
    guide = FieldGuide(n_species=10, n_images=40, n_test_per_species=1, size=32)
    calls = []
    assert write(guide, tmp_path / "guide", on_image=lambda done, total: calls.append((done, total))) == 50
    assert calls[-1] == (50, 50)
    for split in ("train", "val"):
        annotations = json.loads((tmp_path / "guide" / f"{split}.json").read_text())
        assert annotations == guide.annotations(split)
        for idx, image in enumerate(annotations["images"]):
            with Image.open(tmp_path / "guide" / image["file_name"]) as file:
                assert file.format == "JPEG"
                difference_to_drawn = np.asarray(file, dtype=float) - guide.images(split).pixels(idx)
            assert np.abs(difference_to_drawn).mean() < 6
    with pytest.raises(IgcdError, match="must be new or empty"):
        write(guide, tmp_path / "guide")


def test_plates_hold_every_species_and_sighting():
    plate = species_plate("Plate I", GUIDE.species[:7], columns=3, cell=60)
    assert plate.width > 180
    assert plate.height > 3 * 60
    sheet = sightings_sheet(GUIDE, GUIDE.sightings("val")[:7], columns=3)
    assert sheet.size == (3 * 96, 3 * 96)
    np.testing.assert_array_equal(np.asarray(sheet)[:96, :96], GUIDE.images("val").pixels(0))


def test_ribbon_points_agree_with_a_straight_bar():
    bar = Ribbon(np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]), np.array([0.5, 0.5, 0.5]))
    np.testing.assert_allclose(bar.at([0.0, 0.25, 1.0], [-1.0, 0.0, 1.0]), [[0, -0.5], [0.5, 0], [2, 0.5]])
    np.testing.assert_allclose(bar.spot(0.25, 0.5), bar.at([0.25], [0.5])[0])
    np.testing.assert_allclose(bar.band(0.0, 0.5, n=2), [[0, -0.5], [1, -0.5], [1, 0.5], [0, 0.5]])
    np.testing.assert_allclose(bar.outline(), [[0, -0.5], [1, -0.5], [2, -0.5], [2, 0.5], [1, 0.5], [0, 0.5]])

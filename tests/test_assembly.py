import inspect
import json
import tarfile

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from igcd import assembly
from igcd.assembly import _processes, build_fabric, build_stream, method_maker
from igcd.cli.run import run_recipe
from igcd.config import StreamConfig, read_recipe
from igcd.data.fieldguide.guide import FieldGuide, write
from igcd.errors import IgcdError
from igcd.method_registry import METHODS
from igcd.methods.novel_count import EstimatedCount, GivenCounts
from igcd.metrics.predictions import read_predictions
from igcd.streams.stage_rules import PlaceAndYearSpec


@pytest.mark.parametrize("packed", [False, True])
def test_a_folder_as_inat2021_unpacks_is_a_stream(tmp_path, packed):
    """The built-in guide written out: the same split as the guide itself, with its pictures, map and taxonomy."""
    options = {"n_species": 12, "n_images": 240, "n_test_per_species": 4, "size": 32}
    write(FieldGuide(**options), tmp_path)
    if packed:
        for name in ("train.json", "val.json"):
            with tarfile.open(tmp_path / f"{name}.tar.gz", "w:gz") as archive:
                archive.add(tmp_path / name, arcname=name)
            (tmp_path / name).unlink()
    spec = PlaceAndYearSpec(protocol="igcd-u")
    built = build_stream(StreamConfig(source="inat2021", data=tmp_path, by_place_and_year=spec), seed=0)
    drawn = build_stream(StreamConfig(source="fieldguide", options=options, by_place_and_year=spec), seed=0)
    assert built.split.stages == drawn.split.stages
    assert set(built.tables) == {"places.csv", "taxonomy.csv"} and built.tables == drawn.tables
    stage, truth = next(iter(built.stream))
    assert stage.labeled.pixels(0).shape == (32, 32, 3) and len(truth.test_images) > 0


def test_missing_annotations_and_sources_without_places_get_a_sentence(tmp_path):
    spec = PlaceAndYearSpec()
    with pytest.raises(IgcdError, match=r"should hold train\.json or train_mini\.json"):
        build_stream(StreamConfig(source="inat2021", data=tmp_path, by_place_and_year=spec), seed=0)
    with pytest.raises(IgcdError, match=r"stream\.data=FOLDER"):
        build_stream(StreamConfig(source="inat2021", by_place_and_year=spec), seed=0)
    with pytest.raises(IgcdError, match="need dates and coordinates"):
        build_stream(StreamConfig(source="digits", by_place_and_year=spec), seed=0)
    with pytest.raises(IgcdError, match="whole numbers"):
        options = {"n_species": "many"}
        build_stream(StreamConfig(source="fieldguide", options=options, by_place_and_year=spec), seed=0)


@pytest.mark.parametrize("method", METHODS)
def test_a_section_has_the_options_and_defaults_of_its_method(method):
    section, kind = METHODS[method].section(), METHODS[method].load()
    assert section.name == method
    makers = [kind for kind in kind.__mro__ if "__init__" in vars(kind)]
    defaults = {}
    for maker in reversed(makers):  # an option handed on to a parent by **options has the parent's default
        defaults |= {
            name: parameter.default for name, parameter in inspect.signature(maker.__init__).parameters.items()
        }
    for name, value in section.options().items():
        if (method, name) != ("frozen_snn", "features"):  # what makes it another method
            assert defaults[name] == value, name


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["method.name=simgcd"], (0.2, 0.4)),
        (["method.name=simgcd", "method.learning_rate=0.3", "method.later_learning_rate=0.03"], (0.3, 0.03)),
        (["method.name=happy"], (0.2, 0.01)),  # its authors'
        (["method.name=uno"], (0.2, 0.4)),
        (["method.name=uno", "method.learning_rate=0.3", "method.later_learning_rate=0.03"], (0.3, 0.03)),
        (["method.name=msc_incd", "method.later_learning_rate=0.03"], (0.2, 0.03)),
        (["method.name=vb_cgcd", "method.learning_rate=0.3"], (0.3, 0.4)),
        (["method.name=frost", "method.later_learning_rate=null"], (0.2, 0.4)),
        (["method.name=kmeans"], (0.2, 0.4)),  # which trains nothing
    ],
)
def test_the_learning_rates_of_a_method_stand_in_place_of_the_recipes(monkeypatch, overrides, expected):
    rates = ["training.first_stage.learning_rate=0.2", "training.later_stages.learning_rate=0.4"]
    seen = []
    monkeypatch.setattr(
        assembly,
        "make_method",
        lambda _section, _context, first, later, _count: seen.append((first.learning_rate, later.learning_rate)),
    )
    assembly.method_maker(read_recipe("demo", [*rates, *overrides]), None, None)(None, print)
    assert seen == [expected]


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["devices=100000"], r"devices must be at most \d+, the number of cores here, got 100000; lower it"),
        (["accelerator=gpu"], "needs a GPU that this PyTorch can use, there is none; take auto or cpu"),
    ],
)
def test_no_more_processes_than_cores_and_no_gpu_that_is_not_there(monkeypatch, overrides, words):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    with pytest.raises(IgcdError, match=words):
        build_fabric(read_recipe("demo", overrides))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_images": 10**12}, "n_images must be at most 10,000,000"),
        ({"size": 10**6}, "size must be at most 2,048"),
        ({"n_species": "many"}, "n_species must be a whole number, got 'many'"),
    ],
)
def test_a_guide_that_nobody_can_draw_is_refused(options, words):
    cut = {"protocol": "mi"}
    with pytest.raises(IgcdError, match=words):
        build_stream(StreamConfig(source="fieldguide", options=options, by_category=cut), seed=0)


@pytest.fixture(scope="module")
def trunk_cache(tmp_path_factory):
    """For all methods, because the trunk gives all of them the same."""
    return tmp_path_factory.mktemp("trunk")


@pytest.mark.usefixtures("quick_learning")
@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs_within_its_budget_and_is_recorded(method, tmp_path, trunk_cache):
    recipe = tmp_path / "small.yaml"
    recipe.write_text(
        "stream:\n  source: digits\n  by_category: {protocol: igcd-l, categories_per_stage: [4, 2, 2],"
        " images_labeled: 12, images_new: 12, images_old: 4, test_per_category: 3}\n"
        "encoder: {backbone: resnet10t, weights: random, size: 32, tail: adapter, n_views: 2,"
        f" cache: {trunk_cache}}}\n"
        "training: {first_stage: {epochs: 1}, later_stages: {epochs: 1}}\n"
    )
    overrides = [f"method.name={method}", *(["method.n_steps=20"] if method == "mib" else [])]  # of 300
    run_recipe(str(recipe), overrides, tmp_path / "out", resume=False, as_json=True)
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["method"] == method and len(results["stages"]) == 3
    assert "NaN" not in (tmp_path / "out" / "results.json").read_text()
    predictions = read_predictions(tmp_path / "out" / "predictions.csv")
    columns = (predictions.stage, predictions.split, predictions.category, predictions.cluster)
    last = [row for row in zip(*columns, strict=True) if row[:2] == (2, "test")]
    assert len(last) == 8 * 3  # every test image of every category so far has a row, for each method
    assert results["M_d"] == pytest.approx(100 * best_matching([row[2:] for row in last]) / len(last))
    assert {cluster for *_, cluster in last} - {"-1"}, f"{method} predicts nothing"
    n_clusters = 8 + sum(stage["opened"] for stage in results["stages"])
    assert results["stages"][-1]["kept"]["images"] <= METHODS[method].section().budget * n_clusters


def best_matching(pairs):
    """How many pairs of category and cluster agree under the best one-to-one matching: the slow twin of M_d."""
    categories, clusters = (sorted(set(side)) for side in zip(*pairs, strict=True))
    counts = np.array([[pairs.count((category, cluster)) for cluster in clusters] for category in categories])
    return counts[linear_sum_assignment(-counts)].sum()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_novel", ["as_published", "given", "estimated", "silhouette"])
def test_which_methods_are_given_how_many_categories_are_novel(monkeypatch, method, n_novel):
    made = []
    monkeypatch.setattr("igcd.assembly.make_method", lambda *args: made.append(args))
    recipe = read_recipe("demo", [f"method.name={method}", f"n_novel={n_novel}"])
    method_maker(recipe, None, None, [0, 4])(None, print)
    own, count = METHODS[method].own_count, made[0][-1]
    if n_novel == "given" or (n_novel == "as_published" and own is not None):
        assert count == GivenCounts((0, 4))
    else:
        assert count == EstimatedCount("silhouette" if n_novel == "silhouette" else own or "density", seed=0)


def test_torchrun_says_how_many_processes_there_are(monkeypatch):
    assert _processes(3) == (3, 1)
    for name, value in {"TORCHELASTIC_RUN_ID": "1", "LOCAL_WORLD_SIZE": "2", "WORLD_SIZE": "6"}.items():
        monkeypatch.setenv(name, value)
    assert _processes(1) == _processes(2) == (2, 3)
    with pytest.raises(IgcdError, match="torchrun has started 2 processes here, devices must be as many, got 4"):
        _processes(4)

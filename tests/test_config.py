import re
from importlib import resources

import pytest
import yaml

from igcd.comparison.plan import option_variants, read_variants
from igcd.config import read_recipe, recipe_headline, recipe_names
from igcd.errors import IgcdError
from igcd.method_registry import METHODS


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_is_valid_and_opens_with_what_it_is_and_its_command(name):
    recipe = read_recipe(name)
    assert recipe.method.name in METHODS
    assert recipe_headline(name).endswith(".")
    text = (resources.files("igcd") / "recipes" / f"{name}.yaml").read_text(encoding="utf-8")
    assert f"igcd run {name}" in text or f"igcd {name}" in text
    assert sum(getattr(recipe.stream, way) is not None for way in ("split", "by_category", "by_place_and_year")) == 1


def test_the_defaults_are_the_papers():
    recipe = read_recipe("cifar100-mi")
    method, first_stage = recipe.method, recipe.training.first_stage
    assert (first_stage.epochs, recipe.training.later_stages.epochs) == (100, 40)
    assert (first_stage.learning_rate, first_stage.momentum) == (0.1, 0.9)
    assert (first_stage.weight_decay, first_stage.batch_size) == (1e-4, 128)
    assert (method.labeled_weight, method.epsilon, method.tau_u, method.tau_c) == (0.35, 2.0, 0.07, 0.1)
    assert (method.K, method.K_d, method.T, method.n_support) == (10, 20, 0.6, 5)
    assert method.features == "tuned"


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_opens_with_numbers_of_a_run_or_says_that_it_was_not_run(name):
    header = (resources.files("igcd") / "recipes" / f"{name}.yaml").read_text(encoding="utf-8").partition("stream:")[0]
    text = " ".join(header.replace("#", " ").split())
    was_run = re.search(r"About \d+ min.* Seed 0: .*M_[df] \d+\.\d", text) is not None
    assert was_run != bool(re.search(r"Not run (here|yet)", text))


@pytest.mark.parametrize("name", [name for name in recipe_names() if name.endswith("-cpu")])
def test_classifiers_on_a_feature_that_stands_still_are_compared_on_the_same_one(name):
    methods = ("density_gaussian", "rls")
    gaussian, least_squares = (read_recipe(name, [f"method.name={method}"]).method for method in methods)
    shared = {"features", "n_components", "frozen_weight", "granularity", "learning_rate"}
    assert gaussian.features == "dual"
    assert gaussian.model_dump(include=shared) == least_squares.model_dump(include=shared)


def test_the_papers_method_has_few_options():
    assert len(read_recipe("cifar100-mi").method.options()) <= 17


def test_overrides_reach_any_depth():
    recipe = read_recipe("demo", ["training.first_stage.epochs=3", "method.features=frozen", "encoder.cache=null"])
    assert recipe.training.first_stage.epochs == 3
    assert recipe.method.features == "frozen"
    assert recipe.encoder.cache is None


def test_another_method_comes_with_its_own_options(tmp_path):
    path = tmp_path / "mine.yaml"
    text = "stream: {source: digits}\nmethod: {features: dual}\nothers: {simgcd: {epsilon: 4}}\n"
    path.write_text(text)
    method = read_recipe(str(path), ["method.tau=0.2", "method.name=simgcd"]).method
    assert (method.name, method.epsilon, method.tau) == ("simgcd", 4.0, 0.2)
    assert read_recipe(str(path), ["method.name=simgcd", "others.simgcd.epsilon=3"]).method.epsilon == 3.0
    assert read_recipe(str(path), ["method.name=snn_density"]).method.features == "dual"
    with pytest.raises(IgcdError, match="there is no method 'simgdc'; choose one of snn_density"):
        read_recipe(str(path), ["method.name=simgdc"])
    path.write_text("stream: {source: digits}\nmethod: {name: simgdc}\n")
    with pytest.raises(IgcdError, match="there is no such method; choose one of snn_density"):
        read_recipe(str(path))


def test_a_recipe_from_a_file(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({"stream": {"source": "digits", "by_category": {"protocol": "mi"}}, "seed": 4}))
    assert read_recipe(str(path)).seed == 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- a\n- b\n", "must hold sections"),
        ("stream: {source: digits", "not valid YAML"),
        ("stream: {source: digits}\nmethods: {}\n", "unknown key methods; known here are stream, encoder"),
        ("stream: {source: digits}\nencoder: {sise: 3}\n", "unknown key encoder.sise; known here are backbone"),
        ("stream: {source: digits}\nencoder: {size: big}\n", "encoder.size"),
        ("encoder: {}\n", "stream: Field required"),
        ("stream: " + "[" * 1000, "not valid YAML: it nests too deeply"),
        ("stream: &a {source: *a}", "not valid YAML: it refers to itself"),
        ("".join(f"a{i}: &a{i} [{f'*a{i - 1},' * 9 if i else 5}]\n" for i in range(9)), "not valid YAML: it refers"),
        ("seed: 2015-13-45", "not valid YAML: month must be in"),
        ("seed: 2015-12-24", "not valid YAML: .* is neither a number nor a text"),
        ("seed: !!set {a, b}", "is neither a number nor a text"),
        ("seed: !!python/object/apply:os.getcwd []", "not valid YAML: could not determine a constructor"),
        ("seed: " + "9" * 5000, "not valid YAML"),
        ("seed: \0", "not valid YAML"),
        (b"seed: \xe9", "bad.yaml is not UTF-8 text"),
    ],
    ids=lambda text: str(text)[:60],
)
def test_a_bad_recipe_gets_a_sentence(tmp_path, text, words):
    path = tmp_path / "bad.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(IgcdError, match=words):
        read_recipe(str(path))
    if not words.startswith(("must", "unknown", "encoder", "stream")):
        with pytest.raises(IgcdError, match=words):
            read_variants(str(path), "cifar100-mi")


@pytest.mark.parametrize("text", ["2015-13-45", "2015-12-24", "&a [*a]", "[" * 1000, "9" * 5000, "\0"])
def test_a_value_on_the_command_line_that_is_no_yaml_is_taken_as_text(text):
    with pytest.raises(IgcdError, match="recipe demo: seed: "):
        read_recipe("demo", [f"seed={text}"])
    with pytest.raises(IgcdError, match="--over is written key=value"):
        option_variants(f"seed={text}")


def test_options_that_do_not_go_together_are_said_in_one_sentence():
    with pytest.raises(IgcdError) as refused:
        read_recipe("cifar100-cpu", ["method.features=tuned", "method.frozen_support=means"])
    sentence = "frozen_support=means keeps means of the pretrained feature; take features=dual or frozen"
    assert str(refused.value) == f"recipe cifar100-cpu: method: {sentence}"


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["training.first_stage.learning_rate=.inf"], "training.first_stage.learning_rate: must be a finite number"),
        (["training.first_stage.learning_rate=nan"], "training.first_stage.learning_rate: Input should be a finite"),
        (["stream.by_category.old_presence=.nan"], "stream.by_category.old_presence: must be a finite number, got nan"),
        (["stream.by_category.old_presence=nan"], "stream.by_category.old_presence: Input should be a finite number"),
        (["stream.options={x: [.nan]}"], "stream.options.x: must be a finite number"),
        (["max_broken=-.inf"], "max_broken: must be a finite number"),
        ([f"seed={2**63}"], "seed: must be a number of at most 63 bits, got one of 64; lower it"),
        (["seed=-1"], "seed: Input should be greater than or equal to 0"),
        ([f"method.K={10**40}"], "method.K: must be a number of at most 63 bits"),
        (["encoder.size=1000000000"], "encoder.size: Input should be less than or equal to 2048"),
        (["encoder.n_views=1000000000000"], "encoder.n_views: Input should be less than or equal to 10000"),
        (
            ["training.first_stage.batch_size=1000000000000"],
            "batch_size: Input should be less than or equal to 1000000",
        ),
        (["method={name: frost, n_drawn: 1000000000000}"], "method.n_drawn: Input should be less than or equal to"),
        (["method={name: kmeans, n_starts: 1000000000000}"], "method.n_starts: Input should be less than or equal to"),
        (["encoder.cache_gigabytes=1e+300"], "cache_gigabytes: Input should be less than"),
        (['encoder.cache="a\\0b"'], "encoder.cache: must be a text without a NUL character"),
        (["training=null"], "training: must be a section with keys of its own, got None"),
        (["training=null", "method={variant: as_released}"], "training: must be a section with keys of its own"),
        (["training=5", "method={variant: as_released}"], "training: must be a section with keys of its own, got 5"),
        (["method=null"], "method: must be a section with keys of its own"),
        (["method=x"], "method: must be a section with keys of its own"),
        (["others.gm=x"], "others.gm: must be a section with keys of its own, got 'x'"),
        (["others.gm=x", "method.name=gm"], "others.gm must be a section with keys of its own, got 'x'"),
        (["others.gm=null", "method.name=gm"], "others.gm must be a section with keys of its own, got None"),
        (["others=[1]"], r"others: must be a section with keys of its own, got \[1\]"),
        (
            ["n_kept=7"],
            "snn_density would keep 8 images per category, n_kept allows 7; lower its n_support or n_replay",
        ),
        (["method={name: gcd, n_replay: 9}"], "gcd would keep 9 images per category, n_kept allows 8"),
        (["seed=!!timestamp x"], "seed: Input should be a valid integer"),
        (["seed=!!int ''"], "seed: Input should be a valid integer"),
    ],
    ids=lambda arguments: " ".join(arguments)[:50] if isinstance(arguments, list) else "",
)
def test_an_impossible_value_gets_a_sentence(overrides, words):
    with pytest.raises(IgcdError, match=words) as refused:
        read_recipe("cifar100-cpu", overrides)
    assert len(str(refused.value)) < 300


def test_the_largest_seed_is_taken():
    assert read_recipe("demo", [f"seed={2**63 - 1}"]).seed == 2**63 - 1

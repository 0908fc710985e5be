import re
from collections import Counter
from pathlib import Path

import pytest

from igcd.comparison.plan import (
    Variant,
    folder_name,
    method_variants,
    option_variants,
    parse_seeds,
    plan,
    read_variants,
    stream_name,
    variants_names,
)
from igcd.config import read_recipe, recipe_names
from igcd.errors import IgcdError
from igcd.method_registry import METHODS
from igcd.method_sections import TrainedSection
from igcd.methods.still_space import StillSpaceMethod
from igcd.methods.supervised import Supervised
from igcd.report.paper import TABLES, published_figures


def test_every_method_with_every_seed_the_first_seed_first(recipe, tmp_path):
    comparison = plan(recipe, ["n_novel=given"], method_variants(["gm", "snn_density"], None), [0, 3], tmp_path)
    names = [cell.folder.relative_to(tmp_path).as_posix() for cell in comparison.cells]
    assert names == ["cells/gm-0", "cells/snn_density-0", "cells/gm-3", "cells/snn_density-3"]
    assert comparison.cells[2].overrides == ("n_novel=given", "method.name=gm", "seed=3")
    assert comparison.cells[1].config["method"]["K"] == 6  # the recipe's own options of its own method
    assert comparison.cells[3].recipe.seed == 3


def test_options_of_other_methods_come_from_the_recipe(recipe, tmp_path):
    (cell,) = plan(recipe, [], method_variants(["simgcd"], None), [0], tmp_path).cells
    assert cell.config["method"]["epsilon"] == 4


def test_options_are_varied_one_after_another_and_the_same_settings_are_run_once(recipe, tmp_path):
    variants = [*option_variants("method.K=5,6"), *option_variants("method.T=0.4,0.6")]
    comparison = plan(recipe, [], variants, [0], tmp_path)
    assert [cell.variant.name for cell in comparison.cells] == [
        "method.K=5",
        "method.K=6",
        "method.T=0.4",
        "method.T=0.6",
    ]
    assert [cell.config["method"]["T"] for cell in comparison.cells] == [0.6, 0.6, 0.4, 0.6]
    assert comparison.cells[3].folder == comparison.cells[1].folder  # K = 6 and T = 0.6 are the recipe's own
    assert [cell.name for cell in comparison.distinct_cells] == ["method.K=5-0", "method.K=6-0", "method.T=0.4-0"]


def test_every_method_that_trains_has_the_same_number_of_learning_rates_to_try(recipe, tmp_path):
    variants = read_variants("learning-rates", "cifar100-mi")
    comparison = plan(recipe, [], variants, [0], tmp_path)
    assert len(comparison.distinct_cells) == len(variants)  # no two trials are the same
    trials = Counter(cell.recipe.method.name for cell in comparison.cells)
    assert set(trials.values()) == {2}
    trained = {name for name, entry in METHODS.items() if issubclass(entry.section, TrainedSection)}
    assert trained - set(trials) == {"frozen_snn", "mib"}  # which train no network, unless an option says so


def test_trials_of_learning_rates_differ_in_a_rate_that_the_method_uses(recipe, tmp_path):
    cells = plan(recipe, [], read_variants("learning-rates", ""), [0], tmp_path).cells
    methods = [cell.recipe.method for cell in cells]
    for first, second in zip(methods[::2], methods[1::2], strict=True):
        assert first.name == second.name
        trains_once = issubclass(METHODS[first.name].load(), StillSpaceMethod | Supervised)
        rate = "learning_rate" if trains_once else "later_learning_rate"
        assert getattr(first, rate) != getattr(second, rate), first.name
        if trains_once:
            assert getattr(first, "features", "tuned") != "frozen"


def test_every_method_with_a_choice_of_where_new_prototypes_start_tries_both(recipe, tmp_path):
    cells = plan(recipe, [], read_variants("novel-start", "cifar100-mi"), [0], tmp_path).cells
    choosing = [name for name, entry in METHODS.items() if "novel_start" in entry.section.model_fields]
    trials = {(cell.recipe.method.name, cell.recipe.method.novel_start) for cell in cells}
    assert trials == {(name, start) for name in choosing for start in ("split", "all")}
    assert len(cells) == len(trials)


@pytest.mark.parametrize(
    ("over", "overrides"),
    [
        ("method.K=5,auto", ["method.K=5", "method.K=auto"]),
        ("encoder.cache=null", ["encoder.cache=null"]),
        ("stream.options={a: 1},{a: 'yes'}", ['stream.options={"a": 1}', 'stream.options={"a": "yes"}']),
        ("method.variant='5',x", ['method.variant="5"', "method.variant=x"]),
    ],
)
def test_values_are_yaml(over, overrides):
    assert [variant.overrides[0] for variant in option_variants(over)] == overrides


@pytest.mark.parametrize("over", ["method.K", "=1,2", "method.K=", "method.K={", ""])
def test_a_wrong_option_is_one_sentence(over):
    with pytest.raises(IgcdError, match="--over is written"):
        option_variants(over)


@pytest.mark.parametrize(
    ("variants", "seeds", "words"),
    [
        ([Variant("a", ()), Variant("a", ())], [0], "a name of its own"),
        ([Variant("a b", ("method.K=5",)), Variant("a_b", ())], [0], "differ in their letters"),
        ([Variant("a", ())], [0, 0], "--seeds"),
        ([Variant("a", ())], [], "--seeds"),
        ([Variant("a", ("method.KK=5",))], [0], "unknown key method.KK"),
        ([Variant("../..", ())], [0], "letters or digits"),
    ],
)
def test_a_wrong_plan_is_refused_before_anything_runs(recipe, tmp_path, variants, seeds, words):
    with pytest.raises(IgcdError, match=words):
        plan(recipe, [], variants, seeds, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_bears_the_name_and_stays_below():
    assert folder_name("../etc/passwd") == "etc_passwd"
    assert folder_name("snn_density, ViT-B/16") == "snn_density-ViT-B_16"


def test_an_unknown_method_is_an_error():
    with pytest.raises(IgcdError, match="there is no method 'simgdc'; choose from snn_density"):
        method_variants(["simgdc"], None)


def test_seeds():
    assert parse_seeds("0-2,7") == [0, 1, 2, 7]
    with pytest.raises(IgcdError, match="--seeds is written like"):
        parse_seeds("a")
    with pytest.raises(IgcdError, match="at most 1,000 of them"):
        parse_seeds("0-99999999999")
    with pytest.raises(IgcdError, match="at most 63 bits"):
        parse_seeds(f"0,{2**63}")


@pytest.mark.parametrize("name", variants_names())
def test_every_file_of_variants_fits_its_recipes_and_the_paper(name, tmp_path):
    recipes = ["inat-igcd-l"] if name == "table-A3" else ["cifar100-cpu"]
    recipes += ["cifar100-mi", "inat-igcd-l"] if name.startswith("table") and "A3" not in name else []
    for recipe in recipes:
        base = read_recipe(recipe)
        variants = read_variants(name, stream_name(base))
        assert len({cell.folder for cell in plan(recipe, [], variants, [0], tmp_path).cells}) == len(variants)
        if name.startswith("table") and name != "table-A3-cpu":
            figures = [published_figures(variant.paper, variant.paper_row) for variant in variants]
            assert all(figure is not None and {"M_f", "M_d"} == set(figure.figures) for figure in figures)
            assert {figure.table for figure in figures} == {name.removeprefix("table-")}
            rows = TABLES[variants[0].paper.partition(".")[0]]["rows"]
            assert name == "table-A3" or [variant.name for variant in variants] == list(rows)


@pytest.mark.parametrize("name", recipe_names())
def test_the_table_a_recipe_names_is_there(name):
    recipe = read_recipe(name)
    if recipe.paper is not None:
        assert published_figures(recipe.paper, "snn_density").figures
    assert "paper" not in recipe.model_dump()  # a label: naming it does not make another run


def test_the_commands_of_the_page_of_tables_can_be_planned(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")
    commands = [text.split() for text in re.findall(r"`igcd ((?:compare|ablate) [^`]*)`", page)]
    assert len(commands) > 30
    for verb, recipe, *rest in commands:
        overrides = [word for word in rest if "=" in word and word.split("=")[0] != "encoder.weights"]
        option, value = rest[rest.index("--methods" if verb == "compare" else "--variants") :][:2]
        if option == "--methods":
            variants = method_variants(list(METHODS) if value == "all" else value.split(","), None)
        else:
            variants = read_variants(value, stream_name(read_recipe(recipe)))
        assert plan(recipe, overrides, variants, [0], tmp_path).cells


def test_the_commands_of_the_page_of_tables_name_weights_of_the_recipes_backbone():
    page = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")
    (full,) = re.findall(r"`FULL` stands for `([^`]*)`", page)
    named = 0
    for command in re.findall(r"`igcd ((?:compare|ablate) [^`]*)`", page):
        weights = re.search(r"encoder\.weights=(\w+)_(\w+)\.pth", command.replace("FULL", full))
        if weights is not None:
            named += 1
            backbone = {"resnet18": "resnet18", "vitbase16": "vit_base_patch16_224.dino"}[weights[2]]
            assert read_recipe(command.split()[1]).encoder.backbone == backbone, command
    assert named > 15


def test_variants_of_a_file(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("paper: {a-mi: mi.cub}\nvariants:\n  gm: [method.name=gm]\n  'no': {set: [], paper: mi.cub/gm}\n")
    first, second = read_variants(str(path), "a-mi")
    assert (first.paper, first.paper_row, second.paper) == ("mi.cub", "gm", "mi.cub/gm")
    assert read_variants(str(path), "b-mi")[0].paper is None
    for text in ("variants: {}", "variant: {a: []}", "- a", "variants: {a: [", "variants: {a: {over: []}}"):
        path.write_text(text)
        with pytest.raises(IgcdError, match=r"variants .*mine.yaml"):
            read_variants(str(path), "a-mi")
    names = "as-released, features, forgetting, learning-rates, novel-start, parts, support, table-5"
    with pytest.raises(IgcdError, match=f"there are {names}"):
        read_variants("table-7", "a-mi")

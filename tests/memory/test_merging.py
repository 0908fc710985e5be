"""The estimator's ledger and the workspace's catalog agree on what comes of two merged categories."""

from itertools import product

import pytest
from workspace.sample_catalog import sample_workspace

from igcd.memory.category_ledger import CategoryLedger
from igcd.workspace import decisions, queries
from igcd.workspace.catalog import open_catalog


def merged_in_ledger(into, other, _folder):
    """Whether the survivor is known, and the label it goes by; what nobody named is called None."""
    ledger = CategoryLedger(kind="text", unlabeled="", first_novel=1)
    ids = {}
    for name, is_known in {"into": into, "other": other}.items():
        ids[name] = ledger.open(name if is_known else None)
    ledger.merge(ids["into"], ids["other"])
    survivor = ledger.current(ids["other"])
    assert survivor.id == ids["into"]
    return survivor.status == "known", None if str(survivor.label).startswith("novel") else survivor.label


def merged_in_catalog(into, other, folder):
    known = {"fox": 1} | {name: 2 for name, is_known in {"into": into, "other": other}.items() if is_known}
    novel = {name: 2 for name, is_known in {"into": into, "other": other}.items() if not is_known}
    ids = {name: number for number, name in enumerate([*sorted(known), *novel], start=1)}
    sample_workspace(folder, known=known, novel=novel)
    with open_catalog(folder / "ws") as catalog:
        decisions.merge(catalog, ids["other"], ids["into"], author="ann")
        survivor = queries.category(catalog, ids["into"])
        assert queries.category(catalog, ids["other"]).merged_into == survivor.id
    return survivor.state == "labeled", survivor.name


@pytest.mark.parametrize("merge", [merged_in_ledger, merged_in_catalog])
@pytest.mark.parametrize(("into", "other"), [*product([True, False], repeat=2)])
def test_known_if_either_was_under_the_name_of_the_known_one(merge, into, other, tmp_path):
    is_known, name = merge(into, other, tmp_path)
    assert is_known == (into or other)
    assert name == ("into" if into else "other" if other else None)

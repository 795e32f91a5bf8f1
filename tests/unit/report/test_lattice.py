"""The lattice of a global recoding, against one that is counted by hand."""

from collections import Counter
from itertools import product

import polars as pl
import pytest

from sfumato.core.run import Run
from sfumato.data.generalised.levels import KeyLevels
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods.global_recoding import GlobalRecoding
from sfumato.methods.recoding import Recoding, hierarchies_of
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.report import lattice
from sfumato.report.lattice import lattices_of

AGES, SEXES = [21, 22, 23, 24, 31, 32, 33, 34, 61, 62, 63, 64], list("ffmmffmmffmf")
SCHEMA = Schema((Column("age", Kind.CONTINUOUS, Role.KEY), Column("<b>", Kind.NOMINAL, Role.KEY)))
TABLE = Table(pl.DataFrame({"age": AGES, "<b>": SEXES}), SCHEMA)


def overview(k=2, **settings):
    return GlobalRecoding(k=k, **settings).explore(TABLE.aimed_at(("age", "<b>")), Run(seed=1), most=500)


def smallest_class(levels, keys):
    """The size of the smallest class by counting what each record shows at these levels."""
    shown = Recoding(levels={"age": levels[keys.index("age")], "<b>": levels[keys.index("<b>")]})
    release = Recipe((Step(shown, ("age", "<b>")),)).apply(TABLE, Run(seed=1))
    return min(Counter(map(str, release.table.frame.rows())).values())


def test_a_node_meets_k_if_its_smallest_class_does():
    found = overview()
    assert set(found.states) == set(product(*map(range, found.heights)))
    for levels, state in found.states.items():
        enough = smallest_class(levels, found.keys) >= 2
        if state in {"optimum", "met"}:
            assert enough
        if state in {"failed", "ruled out"}:
            assert not enough
    assert list(found.states.values()).count("optimum") == 1
    assert found.proved


def test_what_is_drawn_is_what_is_known():
    recipe = Recipe((Step(GlobalRecoding(k=2), ("age", "<b>")),))
    (one,) = lattices_of(recipe, TABLE, Run(seed=1))
    rows = one["chart"]["data"]["values"]
    assert len(rows) == len(overview().states)
    assert len(rows) <= lattice.MAX_NODES
    assert {row["state"] for row in rows} >= {"optimum"}
    first = one["nodes"][0]
    made = Recipe.from_list(first["steps"])
    assert made.steps[0].method.name == "recoding"
    assert made.apply(TABLE, Run(seed=1)).table.names == TABLE.names


def test_too_many_nodes_are_a_sentence(monkeypatch):
    monkeypatch.setattr(lattice, "MAX_NODES", 3)
    (one,) = lattices_of(Recipe((Step(GlobalRecoding(k=2), ("age", "<b>")),)), TABLE, Run(seed=1))
    assert "too many to draw" in one["words"]
    assert "chart" not in one


@pytest.mark.parametrize("method", [GlobalRecoding(k=2, local=True, suppression=100.0)])
def test_records_with_levels_of_their_own_have_no_lattice(method):
    (one,) = lattices_of(Recipe((Step(method, ("age", "<b>")),)), TABLE, Run(seed=1))
    assert "of its own" in one["words"]


def test_other_steps_have_none():
    assert lattices_of(Recipe((Step(Recoding(), ("age",)),)), TABLE, Run(seed=1)) == []
    assert lattices_of(Recipe((Step(GlobalRecoding(), ("age",)),)), TABLE.take([]), Run(seed=1)) == []


def test_the_levels_are_those_of_the_hierarchies():
    hierarchies, _ = hierarchies_of(TABLE.aimed_at(("age", "<b>")), Run(seed=1))
    found = overview()
    heights = [KeyLevels.of(TABLE, name, hierarchies[name]).height for name in found.keys]
    assert list(found.heights) == heights

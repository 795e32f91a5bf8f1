"""The public domain: codes of values of any type, classes of nodes, and what a leader may say of them."""

from datetime import date

import numpy as np
import polars as pl
import pytest

from sfumato.core.run import Run
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, PlanError, RefusedError
from sfumato.methods.global_recoding import GlobalRecoding
from sfumato.parties.domain import PublicDomain
from sfumato.parties.party_plan import PartiesSpec, PartyPlan
from sfumato.parties.search import AgreedRecoding, search_apart, search_pooled
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step

LEVELS = {
    "born": [["2001-02-03", "2001", "*"], ["2001-09-30", "2001", "*"], ["2002-01-01", "2002", "*"]],
    "class": [["1", "low", "*"], ["2", "low", "*"], ["3", "high", "*"]],
    "<b>": [["=1+1", "x", "*"], ["b", "x", "*"]],
}
HIERARCHIES = {
    name: Hierarchy.from_levels(pl.DataFrame(rows, orient="row"), name=name) for name, rows in LEVELS.items()
}
SCHEMA = Schema(
    (
        Column("<b>", Kind.NOMINAL, Role.KEY, hierarchy="<b>"),
        Column("born", Kind.DATE, Role.KEY, hierarchy="born"),
        Column("class", Kind.ORDINAL, Role.KEY, hierarchy="class", missing=(-9,)),
    )
)
DOMAIN = PublicDomain.of(SCHEMA.columns, HIERARCHIES)


def party_plan(records="pooled", k=2):
    recipe = Recipe((Step(GlobalRecoding(k=k, suppression=100.0), SCHEMA.names),))
    return PartyPlan(Plan(schema=SCHEMA, recipe=recipe), PartiesSpec("", {}, records), b"", DOMAIN, {})


def table(**columns):
    frame = pl.DataFrame(
        {
            "<b>": ["b", "=1+1", None],
            "born": [date(2002, 1, 1), date(2001, 2, 3), None],
            "class": [3, 1, -9],
            **columns,
        }
    )
    return Table(frame, SCHEMA)


def test_values_have_the_codes_of_their_rows_and_missing_ones_code_0():
    assert DOMAIN.shape == (3, 4, 4)
    assert DOMAIN.codes(table()).tolist() == [[2, 3, 3], [1, 1, 1], [0, 0, 0]]


@pytest.mark.parametrize("values", [[3.0, 1.0, None], ["3", "1", None]])
def test_the_type_that_a_file_has_does_not_matter(values):
    assert DOMAIN.codes(table(**{"class": values}))[:, 2].tolist() == [3, 1, 0]


def test_counts_are_dense_and_of_all_records():
    counts = DOMAIN.count(DOMAIN.codes(table()))
    assert len(counts) == 48
    assert np.flatnonzero(counts).tolist() == [0, 1 * 16 + 1 * 4 + 1, 2 * 16 + 3 * 4 + 3]


def test_a_part_without_records_counts_nothing():
    assert not DOMAIN.count(DOMAIN.codes(table().take(np.zeros(0, dtype=np.int64)))).any()


def test_the_table_of_codes_has_these_codes():
    every = np.column_stack(np.unravel_index(np.arange(48), DOMAIN.shape))
    assert (DOMAIN.codes(DOMAIN.table(every)) == every).all()


@pytest.mark.parametrize("levels", [(0, 0, 0), (1, 0, 1), (0, 1, 2), (2, 2, 2)])
def test_an_example_of_a_class_is_in_it(levels):
    classes = np.arange(int(np.prod(DOMAIN.class_shape(levels))))
    assert (DOMAIN.classes(DOMAIN.examples(classes, levels), levels) == classes).all()


def test_a_value_of_no_row_is_not_named():
    with pytest.raises(DataError, match="column `<b>` has values that its public hierarchy lacks") as refused:
        DOMAIN.codes(table(**{"<b>": ["b", "secret", None]}))
    assert "secret" not in str(refused.value)


def test_a_hierarchy_cannot_hold_a_code_for_missing_values():
    column = Column("class", Kind.ORDINAL, Role.KEY, hierarchy="class", missing=(3,))
    with pytest.raises(PlanError, match="missing codes"):
        PublicDomain.of([column], HIERARCHIES)


# What the leader says was agreed on ------------------------------------------------------------------------

AGREED = {
    "node": [1, 1, 1],
    "leftover": "none",
    "n_records": 3,
    "n_suppressed": 0,
    "loss": 0.5,
    "proved": True,
}


def test_what_was_agreed_on_is_read_as_it_was_sent():
    agreed = AgreedRecoding(
        {"<b>": 1, "born": 1, "class": 1}, np.arange(18) % 3 == 0, "dropped", 9, 2, 0.25, proved=False
    )
    read = AgreedRecoding.read(party_plan(), agreed.to_dict(), np.packbits(agreed.failing).tobytes())
    assert (read.failing == agreed.failing).all()
    assert "not proved" in read.sentence()
    assert read.to_dict() == {**agreed.to_dict(), "node": agreed.node}


@pytest.mark.parametrize(
    "change",
    [
        {"node": [3, 0, 0]}, {"node": [1, 1]}, {"node": [0.5, 1, 1]}, {"node": "111"}, {"node": None},
        {"node": [-1, 0, 0]}, {"leftover": "shown"}, {"leftover": None}, {"n_records": "many"}, {"loss": None},
    ],
)  # fmt: skip
def test_levels_that_there_are_not_are_refused(change):
    with pytest.raises(RefusedError, match="the leader does not follow the protocol"):
        AgreedRecoding.read(party_plan(), {**AGREED, **change}, bytes(3))


@pytest.mark.parametrize("size", [0, 2, 4])
def test_classes_that_are_missing_are_not_taken_for_large_ones(size):
    """The node has 2 · 3 · 3 classes, of 18 bits: 3 bytes."""
    AgreedRecoding.read(party_plan(), AGREED, bytes(3))
    with pytest.raises(RefusedError, match="the leader does not follow the protocol"):
        AgreedRecoding.read(party_plan(), AGREED, bytes(size))


@pytest.mark.parametrize(("records", "search"), [("pooled", search_pooled), ("apart", search_apart)])
@pytest.mark.parametrize(("value", "error"), [(0, DataError), (2**63, RefusedError)])
def test_sums_of_nobody_and_of_more_than_there_can_be_are_refused(records, search, value, error):
    plan = party_plan(records)
    with pytest.raises(error):
        search(plan, np.full(plan.n_numbers, value, dtype=np.uint64), Run(1))

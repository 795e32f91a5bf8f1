"""Which released columns a privacy budget covers, step by step; in doubt it covers none."""

import polars as pl
import pytest

from sfumato.core.budget import PrivacyBudget, Spending
from sfumato.core.origin import Origin
from sfumato.core.registry import method
from sfumato.core.release import Byproducts, Provenance, Release
from sfumato.core.run import Run
from sfumato.data.rules import Rule
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.recipes.parts import Output
from sfumato.releasing.budget_coverage import BudgetCoverage, coverage_of
from sfumato.releasing.postprocess import postprocess

COLUMNS = (
    Column("pid", Kind.NOMINAL, role=Role.PERSON),
    Column("a", Kind.CONTINUOUS, role=Role.KEY),
    Column("b", Kind.CONTINUOUS, role=Role.KEY),
    Column("c", Kind.NOMINAL, role=Role.SENSITIVE),
)


def table(*names, a=(1.0, 2.0, 3.0), weight=False):
    frame = pl.DataFrame({"pid": ["x", "y", "z"], "a": list(a), "b": [4.0, 5.0, 6.0], "c": ["u", "v", "v"]})
    columns = COLUMNS
    if weight:
        frame, columns = (
            frame.with_columns(w=pl.lit(2.0)),
            (*COLUMNS, Column("w", Kind.CONTINUOUS, role=Role.WEIGHT)),
        )
    whole = Table(frame, Schema(columns))
    return whole.select(names) if names else whole


def step(name, *columns, spent=0.0, within=(), together="", **parameters):
    taken = method(name)()
    said = Byproducts(budget=PrivacyBudget((Spending(name, epsilon=spent),)) if spent else PrivacyBudget())
    return Provenance(name, {**taken.to_dict(), **parameters}, columns, tuple(within), together, said)


def uncovered(original, *steps, released=("a", "b", "c")):
    release = Release({"release": original.select(released)}, steps=steps)
    found = coverage_of(release, original)
    assert set(found.covered) | set(found.uncovered) == set(released)
    assert not set(found.covered) & set(found.uncovered)
    return found.uncovered


NOISE = step("private-laplace", "a", "b", spent=1)
RESPONSE = step("private-response", "c", spent=1)


def test_columns_beside_the_private_ones_are_not_covered():
    assert uncovered(table(), NOISE) == ("c",)
    assert uncovered(table(), NOISE, RESPONSE) == ()
    assert uncovered(table(), NOISE, released=("a", "b")) == ()  # what is dropped tells nothing
    assert uncovered(table()) == ("a", "b", "c")


@pytest.mark.parametrize("beside", ["pid", "w"])
def test_a_pseudonym_and_a_weight_are_not_covered(beside):
    released = ("a", "b", "c", beside)
    assert uncovered(table(weight=True), NOISE, RESPONSE, released=released) == (beside,)


def test_new_records_of_private_counts_are_covered_with_all_that_is_made_of_them():
    drawn = step("private-marginals", "a", "b", "c", spent=1)
    everything = ("pid", "a", "b", "c")
    assert uncovered(table(), drawn, released=everything) == ()
    for later in ("mdav", "synthesis", "rounding"):
        assert uncovered(table(), drawn, step(later, "a", "b"), released=everything) == ()
    few = step("private-marginals", "a", spent=1)  # the others come out empty
    assert uncovered(table(), few, released=everything) == ()


def test_what_a_later_step_makes_with_a_look_at_other_columns_is_not_covered():
    assert uncovered(table(), NOISE, RESPONSE, step("mdav", "a", "b")) == ("a", "b")  # it may see the persons
    assert uncovered(table(), NOISE, step("synthesis", "a", "b", "c")) == ("a", "b", "c")
    assert uncovered(table(), NOISE, RESPONSE, step("record-suppression", "a")) == ("a", "b", "c")
    assert uncovered(table(), NOISE, RESPONSE, step("mdav", "a", "b"), NOISE) == ()


def test_what_is_made_of_covered_values_alone_stays_covered():
    rounded = step("rounding", "a")
    assert uncovered(table(), NOISE, RESPONSE, rounded) == ()
    assert uncovered(table(), NOISE, RESPONSE, step("rounding", "a", within=["pid"])) == ("a",)
    assert uncovered(table(weight=True), NOISE, RESPONSE, rounded) == ("a",)  # weights are seen
    alone = table("a", "b")
    assert uncovered(alone, NOISE, step("mdav", "a", "b"), released=("a", "b")) == ()


def test_a_step_that_is_not_private_covers_nothing_before_or_alone():
    assert uncovered(table(), step("rounding", "c"), NOISE) == ("c",)


def test_missing_values_that_show_are_not_covered():
    holes = table(a=(1.0, None, 3.0))
    assert uncovered(holes, NOISE, RESPONSE) == ("a",)
    hidden = step("private-laplace", "a", "b", spent=1, missing="hidden")
    assert uncovered(holes, hidden, RESPONSE) == ()


def test_values_that_a_household_shares_are_not_covered():
    assert uncovered(table(), step("private-laplace", "a", "b", spent=1, together="pid"), RESPONSE) == (
        "a",
        "b",
    )


def test_a_column_that_was_added_is_not_covered():
    original = table()
    more = original.with_values("d", original.frame["a"].alias("d"), column=Column("d", Kind.CONTINUOUS))
    release = Release({"release": more}, steps=(NOISE, RESPONSE, step("private-response", "pid", spent=1)))
    assert coverage_of(release, original).uncovered == ()  # all there was is private: what is made of it, too
    release = Release({"release": more}, steps=(NOISE, RESPONSE))
    assert coverage_of(release, original).uncovered == ("pid", "d")


def test_a_statement_promises_nothing_where_something_is_uncovered():
    spent = PrivacyBudget((Spending("laplace", epsilon=1.0),))
    assert BudgetCoverage(("a",)).statement(spent) == spent.to_dict()
    said = BudgetCoverage((), ("a", "b")).statement(spent)
    assert "advantage_at_most" not in said
    assert (
        said["coverage"]
        == "ε covers no released column; `a`, `b` are released without it: no guarantee for a person"
    )


def test_several_tables_are_covered_together():
    tables = {"p": BudgetCoverage(("a",)), "q": BudgetCoverage((), ("b",))}
    assert BudgetCoverage.joint(tables) == BudgetCoverage(("p.a",), ("q.b",))
    assert BudgetCoverage.joint({"": tables["p"]}) == tables["p"]


@pytest.mark.parametrize(("private", "mended"), [(("a",), [9.0, 9.0, 9.0]), (("a", "b"), [4.0, 5.0, 6.0])])
def test_a_column_that_is_dropped_mends_nothing_unless_it_is_covered(private, mended):
    original = Table(
        pl.DataFrame({"a": [4.0, 5.0, 6.0], "b": [4.0, 5.0, 6.0]}),
        Schema((Column("a", Kind.CONTINUOUS), Column("b", Kind.CONTINUOUS)), rules=(Rule("a = b"),)),
    )
    noisy = original.with_values("a", pl.Series("a", [9.0, 9.0, 9.0]))
    release = Release(
        {"release": noisy}, Origin.identity(3), steps=(step("private-laplace", *private, spent=1),)
    )
    left, _ = postprocess(release, original, Output(repair=True, drop=("b",)), Run(seed=1))
    assert left.table.names == ("a",)
    assert left.table.frame["a"].to_list() == mended

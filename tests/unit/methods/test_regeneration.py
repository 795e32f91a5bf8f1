"""Regeneration of masked values: Algorithm S1 on small tables."""

from __future__ import annotations

from collections import Counter
from datetime import date

import numpy as np
import polars as pl
import pytest

from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.suppressing import to_wildcard
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, PlanError, RefusedError
from sfumato.front import protect
from sfumato.methods.noise import UncorrelatedNoise
from sfumato.methods.regeneration import MARGINALS, Regeneration, masked_cells, masked_marginals
from sfumato.methods.safe_harbour import SafeHarbour
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step


def table_of(values, kind=Kind.NOMINAL, **facts):
    return Table(pl.DataFrame([pl.Series("a", values)]), Schema((Column("a", kind, **facts),)))


def marginals_of(values, counts, column="a"):
    return Table(pl.DataFrame({"column": column, "value": values, "count": counts}), MARGINALS)


def filled(table, marginals=None, *, seed=1, **settings):
    if marginals is None:
        return protect(table, Regeneration(**settings), columns=["a"], seed=seed)
    method = Regeneration(marginals="given", **settings)
    return protect(table, method, columns=["a"], seed=seed, resources={"given": marginals})


def masked(table, rows):
    return to_wildcard(table, "a", np.isin(np.arange(len(table)), rows))


def test_as_many_copies_of_each_value_as_were_masked():
    table = masked(table_of(list("aabbbcd")), [1, 4, 5, 6])
    after = filled(table, marginals_of(["a", "b", "c", "d"], [1, 1, 1, 1])).table
    assert not after.nodes
    assert after.frame["a"].dtype == pl.String
    assert Counter(after.frame["a"]) == Counter("aabbbcd")
    assert [after.frame["a"][row] for row in (0, 2, 3)] == ["a", "b", "b"]


def test_every_place_is_equally_likely():
    """The one `z` among six masked cells: chi-square of 120 draws, critical value of 5 degrees at 0.1 %."""
    table = masked(table_of(list("aaaaaaaz")), [0, 1, 2, 4, 5, 7]).aimed_at(["a"])
    resources, method = {"given": marginals_of(["a", "z"], [5, 1])}, Regeneration(marginals="given")
    releases = (method.apply(table, Run(seed=seed, resources=resources)) for seed in range(120))
    places = [release.table.frame["a"].to_list().index("z") for release in releases]
    counts = np.array([places.count(row) for row in (0, 1, 2, 4, 5, 7)])
    assert counts.sum() == 120
    assert ((counts - 20) ** 2 / 20).sum() < 20.515


@pytest.mark.parametrize(
    ("values", "kind", "dtype"),
    [
        ([1, 2, 3, 4], Kind.CONTINUOUS, pl.Int64),
        ([1.5, 2.0, 3.25, 4.0], Kind.CONTINUOUS, pl.Float64),
        ([date(2020, 1, day) for day in (1, 2, 3, 4)], Kind.DATE, pl.Date),
        ([10, 2, 33, 4], Kind.NOMINAL, pl.Int64),
        (["01", "2", "3", "4"], Kind.NOMINAL, pl.String),
        (["a", "b", "c", "d"], Kind.NOMINAL, pl.String),
    ],
)
def test_types_come_back(values, kind, dtype):
    original = table_of(values, kind)
    table = masked(original, [1, 3])
    after = filled(table, masked_marginals(original, table)).table.frame["a"]
    assert after.dtype == dtype
    assert sorted(after) == sorted(values)
    assert (after[0], after[2]) == (values[0], values[2])


def test_ranges_and_missing_values():
    ages = intervals([20, 20, 41, None], [29, 20, 41, None], missing=[False, False, True, False], name="a")
    table = Table(pl.DataFrame([ages]), Schema((Column("a", Kind.CONTINUOUS),)))
    assert masked_cells(table, "a").tolist() == [True, False, False, True]
    assert masked_cells(table, "a", "missing").tolist() == [False, False, True, False]
    assert masked_cells(table, "a", "both").tolist() == [True, False, True, True]
    assert sorted(filled(table, marginals_of(["25", "90"], [1, 1])).table.frame["a"].drop_nulls()) == [
        20,
        25,
        90,
    ]
    both = filled(table, marginals_of(["25", "90", None], [1, 1, 1]), masked="both").table.frame["a"]
    assert both.null_count() == 1
    assert sorted(both.drop_nulls()) == [20, 25, 90]


def test_missing_values_were_not_masked_unless_it_is_said():
    table = table_of(["a", None, "b", None])
    untouched = filled(table)
    assert untouched.table.frame["a"].to_list() == ["a", None, "b", None]
    after = filled(table, marginals_of(["q"], [2]), masked="missing").table
    assert after.frame["a"].to_list() == ["a", "q", "b", "q"]


def test_counts_must_add_up_or_are_taken_for_shares():
    table, known = (
        masked(table_of(list("abcdefg")), [0, 1, 2, 3, 4]),
        marginals_of(["a", "b", "c"], [3, 2, 1]),
    )
    with pytest.raises(DataError, match="must add up to its 5 masked cells, got: 6"):
        filled(table, known)
    after = filled(table, known, counts="shares").table.frame["a"]
    # 2.5, 1.67 and 0.83 of five cells: the largest remainders are those of c and b.
    assert Counter(after) == Counter({"a": 2, "b": 2, "c": 1, "f": 1, "g": 1})


def test_without_marginals_values_are_copied_as_they_are_there():
    table = masked(table_of(["a"] * 6 + ["b"] * 3 + ["c"] * 3), [9, 10, 11])
    release = filled(table)
    assert Counter(release.table.frame["a"]) == {"a": 8, "b": 4}
    assert release.provenance[0].notes == (
        "no marginals were given: values are drawn in proportion to the unmasked ones",
    )


def test_nothing_to_copy_leaves_the_cells_masked():
    table = masked(table_of(["a", "b"]), [0, 1])
    release = filled(table)
    assert release.table.frame["a"].cast(pl.String).to_list() == ["*", "*"]
    assert release.provenance[0].notes[0] == "no value of `a` is known: 2 masked cells left"


def test_marginals_are_one_table_for_all_columns_in_any_order():
    table = masked(table_of(list("abcd")), [0, 1, 2, 3])
    one = marginals_of(["a", "b", "c", "a"], [1, 1, 1, 1])
    other = Table(
        pl.DataFrame(
            {"count": [9, 1, 2, 1], "value": [7, "c", "a", "b"], "column": ["z", "a", "a", "a"]}, strict=False
        ),
        MARGINALS,
    )
    assert filled(table, one).table.frame.equals(filled(table, other).table.frame)


def test_marginals_that_are_none():
    table = masked(table_of([1, 2, 3], Kind.CONTINUOUS), [0])
    with pytest.raises(DataError, match="1 value of `a` of another type"):
        filled(table, marginals_of(["x"], [1]))
    counts = pl.DataFrame({"column": "a", "value": ["1", "2"], "count": [-1.0, 0.5]})
    with pytest.raises(DataError, match="whole numbers from 0 up, got: 2 others"):
        filled(table, Table(counts, MARGINALS))
    with pytest.raises(RefusedError, match="must name a table with the columns column, value, count"):
        filled(table, table_of(["a"]))
    with pytest.raises(PlanError, match="`marginals` of regeneration names a resource that is not declared"):
        protect(table, Regeneration(marginals="nowhere"), columns=["a"])
    with pytest.raises(RefusedError, match="cannot fill generalised"):
        filled(table, masked="missing")


def test_counting_what_was_masked():
    original = table_of(["a", "b", "b", None, "c"])
    release = masked(original, [1, 2, 3])
    counted = masked_marginals(original, release).frame
    assert counted.rows() == [("a", None, 1), ("a", "b", 2)]
    with pytest.raises(DataError, match="must have the original's 5 records, got: 2"):
        masked_marginals(original, release.take(np.arange(2)))


def test_what_is_filled_is_exact_for_the_next_step():
    table = table_of([1, 1, 2, 3, 5, 8], Kind.CONTINUOUS)
    mask, fill, noise = Step(SafeHarbour(order="a")), Step(Regeneration()), Step(UncorrelatedNoise())
    release = Recipe((mask, fill, noise)).apply(table, Run(seed=1))
    assert release.table.frame["a"].to_list() == [1] * 6  # the one value that was left has no spread
    assert "needs exact values" in Recipe((mask, noise)).faults(table.schema)[0]


def test_a_column_in_which_nothing_was_ever_known_stays_covered():
    table = to_wildcard(table_of(pl.Series([None, None], dtype=pl.String)), "a", np.ones(2, dtype=np.bool_))
    release = filled(table)
    assert release.table.frame["a"].to_list() == ["*", "*"]
    assert "no value of `a` is known: 2 masked cells left" in release.provenance[0].notes

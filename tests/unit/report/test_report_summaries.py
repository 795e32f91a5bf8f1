"""What a report shows of the data: bins, quantiles, counts and correlations, and how coarse they are."""

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.report.charts import charts
from sfumato.report.column_charts import bars, histogram, quantiles
from sfumato.report.correlations import correlate, correlations
from sfumato.report.distributions import distributions
from sfumato.report.values import OTHERS

METHOD = {"key": "m0", "label": "A method", "color": "#0072B2", "shape": "circle", "dash": [1, 0]}


def one(values, kind: Kind = Kind.CONTINUOUS, **facts) -> Table:
    frame = pl.DataFrame({"x": pl.Series(values, strict=False)})
    return Table(frame, Schema((Column("x", kind, **facts),)))


def summary(original: Table, release: Table | None = None, *, public: bool = True) -> dict:
    return distributions(original, {"m0": release or original}, ["x"], public=public)[0]


# Histograms --------------------------------------------------------------------------------------------


def test_bins_are_round_and_counted_together():
    original, release = one(np.arange(0.5, 100)), one(np.arange(0.5, 100) / 2)
    found = summary(original, release, public=False)
    # 100 values want ten bins: steps of 10 from 10 to 90, open at both ends
    assert found["edges"] == [10, 20, 30, 40, 50, 60, 70, 80, 90]
    assert found["shares"]["original"] == [0.1] * 10
    assert found["shares"]["m0"] == [0.2] * 5 + [0.0] * 5


@pytest.mark.parametrize("seed", range(5))
def test_public_bins_hold_ten_records_and_no_end(seed):
    rng = np.random.default_rng(seed)
    values = rng.lognormal(3, 1, 300)
    release = values * rng.lognormal(0, 0.3, 300)
    found = summary(one(values), one(release))
    edges = np.array(found["edges"])
    for column in (values, release):
        counts = np.histogram(column, [-np.inf, *edges, np.inf])[0]
        assert ((counts == 0) | (counts >= 10)).all()
    assert np.histogram(values, [-np.inf, *edges, np.inf])[0].min() >= 10
    assert np.quantile(values, 0.01) < edges.min() < edges.max() < np.quantile(values, 0.99)


def test_public_counts_are_rounded_to_fives():
    found = summary(one([0] * 52 + [1] * 31 + [2] * 23))
    # 50, 30 and 25 of 105
    assert found["shares"]["original"] == [0.4762, 0.2857, 0.2381]


def test_a_small_table_is_suppressed_in_public():
    values = np.random.default_rng(1).normal(size=19)
    assert summary(one(values))["note"].startswith("Suppressed")
    assert summary(one(values), public=False)["drawn"] == "histogram"


def test_whole_numbers_are_cut_between_them():
    found = summary(one([0] * 50 + [1] * 30 + [2] * 20))
    assert found["edges"] == [0.5, 1.5]
    assert found["shares"]["original"] == [0.5, 0.3, 0.2]
    tips = histogram(found, [METHOD])["layer"][2]["data"]["values"]
    assert [row["bin"] for row in tips] == ["below 1", "1 to 1", "2 and above"]


def test_values_that_lie_far_apart_have_a_logarithmic_axis():
    values = np.logspace(0.01, 5.99, 600)  # from 1 to a million, evenly by ratio
    found = summary(one(values))
    assert found["axis"] == "log"
    # 17 bins over six decades: 1, 2 and 5 of each but for those in the tails
    assert found["edges"][:4] == [2, 5, 10, 20]
    assert found["edges"][-1] == 500_000
    spec = histogram(found, [METHOD])
    assert spec["layer"][0]["encoding"]["x"]["scale"]["type"] == "log"
    heights = [row["y"] for row in spec["data"]["values"] if row["key"] == "original"]
    assert np.allclose(heights[1:-2], np.mean(heights[1:-2]), rtol=0.2)
    assert all(row["m0"] > 0 for row in quantiles(found, [METHOD])["data"]["values"])


def test_values_beyond_the_axis_count_in_the_open_bins():
    found = summary(one(np.arange(100.0)), one(np.arange(100.0) + 10_000), public=False)
    assert found["shares"]["m0"][-1] == 1.0


@pytest.mark.parametrize("public", [False, True])
def test_constant_and_empty_columns_say_so(public):
    assert (
        summary(one([5.0] * 50), public=public)["note"] == "The original has the same value in every record."
    )
    assert summary(one([None] * 50), public=public)["note"] == "The original has no values in this column."
    nearly = summary(one([0.0] * 999 + [7.0]), public=public)
    assert nearly["drawn"] == ("" if public else "histogram")


def test_public_shares_do_not_tell_how_few_are_missing():
    """Of 100 records 3 have no value: shares of 97 would tell that; 97 is rounded to 95."""
    found = summary(one(["a"] * 57 + ["b"] * 40 + [None] * 3, Kind.NOMINAL))
    assert found["missing"]["original"] is None
    assert found["shares"]["original"] == [round(55 / 95, 4), round(40 / 95, 4)]


def test_missing_values_are_shared_out_and_hidden_when_few():
    many = one([None] * 50 + list(range(50)))
    few = one([None] * 3 + list(range(97)))
    assert summary(many, few)["missing"] == {"original": 0.5, "m0": None}
    assert summary(many, few, public=False)["missing"] == {"original": 0.5, "m0": 0.03}


def test_dates_have_an_axis_of_dates():
    days = [date(2000, 1, 1) + timedelta(days=7 * i) for i in range(400)]
    times = pl.Series(days).cast(pl.Datetime("us"))
    found = summary(one(days, Kind.DATE), one(times, Kind.DATE))
    assert found["axis"] == "date"
    assert found["shares"]["original"] == found["shares"]["m0"]
    spec = histogram(found, [METHOD])
    assert spec["layer"][0]["encoding"]["x"]["type"] == "temporal"
    first = spec["layer"][2]["data"]["values"][1]["bin"]
    assert date(2000, 1, 1) < date.fromisoformat(first[:10]) < date(2008, 1, 1)


def test_intervals_count_at_their_middle():
    original = one(np.arange(100.0))
    lows = np.repeat(np.arange(0.0, 100, 10), 10)
    found = summary(original, one(intervals(lows, lows + 9)), public=False)
    assert found["drawn"] == "histogram"
    assert found["shares"]["m0"] == found["shares"]["original"]


def test_a_release_of_another_kind_is_not_drawn():
    found = summary(one(np.arange(100.0)), one(["low", "high"] * 50), public=False)
    assert found["drawn"] == ""
    assert "another kind" in found["note"]


def test_a_column_that_was_dropped_is_drawn_for_the_original_only():
    other = Table(pl.DataFrame({"y": [1.0]}), Schema((Column("y", Kind.CONTINUOUS),)))
    found = distributions(one(np.arange(100.0)), {"m0": other}, ["x"], public=True)[0]
    assert list(found["shares"]) == ["original"]


# Quantiles ---------------------------------------------------------------------------------------------


def test_public_quantiles_are_means_of_ten_and_few():
    values = np.random.default_rng(2).normal(size=1000)
    found = summary(one(values))["quantiles"]
    assert len(found["levels"]) == 19
    assert found["levels"][0] == 0.05
    drawn = np.array(found["values"]["original"])
    assert np.allclose(drawn, np.quantile(values, found["levels"]), atol=0.1)
    assert drawn.min() > np.sort(values)[10]
    assert not set(drawn) & set(values)


def test_small_tables_have_no_public_quantiles():
    values = np.arange(199) + 0.5
    assert summary(one(values))["quantiles"] is None
    assert summary(one(values), public=False)["quantiles"] is not None
    large = one(np.arange(200) + 0.5)
    assert list(summary(large, one(values))["quantiles"]["values"]) == ["original"]


def test_quantiles_are_drawn_as_the_distribution_function():
    spec = quantiles(summary(one(np.arange(200) + 0.5)), [METHOD])
    rows = spec["data"]["values"]
    assert spec["transform"][0] == {"fold": ["original", "m0"], "as": ["key", "value"]}
    assert [row["level"] for row in rows] == sorted({row["level"] for row in rows})
    assert all(row["original"] == row["m0"] for row in rows)


# Values one by one -------------------------------------------------------------------------------------


def test_rare_values_are_put_together_until_they_are_enough():
    values = ["a"] * 40 + ["b"] * 30 + ["c"] * 15 + ["rare"] * 2
    found = summary(one(values, Kind.NOMINAL))
    # two others alone could be told apart, so the smallest of the shown joins them
    assert found["categories"] == ["a", "b", OTHERS]
    assert found["shares"]["original"] == pytest.approx([40 / 85, 30 / 85, 15 / 85], abs=1e-4)
    assert summary(one(values, Kind.NOMINAL), public=False)["categories"] == ["a", "b", "c", "rare"]


def test_a_value_rare_in_the_release_is_put_together_too():
    original = one(["a"] * 40 + ["b"] * 30 + ["c"] * 30, Kind.NOMINAL)
    release = one(["a"] * 50 + ["b"] * 45 + ["c"] * 5, Kind.NOMINAL)
    assert "c" not in summary(original, release)["categories"]


def grouped(members: dict[str, list[str]], labels: list[str]) -> Table:
    nodes = Nodes.of(members, leaves=sorted({value for group in members.values() for value in group}))
    table = one(labels, Kind.NOMINAL)
    return table.with_nodes("x", table.frame["x"].cast(nodes.dtype), nodes)


def test_the_public_name_of_a_group_holds_no_value_that_few_have():
    original = one(["south"] * 40 + ["north"] * 30 + ["Rare"] * 6 + ["Rarer"] * 5, Kind.NOMINAL)
    members = {
        "{Rare|south}": ["Rare", "south"],
        "Rare … Rarer": ["Rare", "Rarer"],
        "coast": ["Rarer", "north"],
        "north": ["north"],
    }
    release = grouped(
        members, ["{Rare|south}"] * 20 + ["Rare … Rarer"] * 20 + ["coast"] * 20 + ["north"] * 12
    )
    found = summary(original, release)
    assert "Rare" not in str(found)
    assert {"{south|…}", "{…}", "coast", "north"} <= set(found["categories"])
    assert "{Rare|south}" in summary(original, release, public=False)["categories"]


def test_the_public_name_of_an_interval_has_no_end_that_few_have():
    original = one([1] * 40 + [2] * 30 + [3] * 20 + [8] * 6 + [9] * 6, Kind.ORDINAL)
    ends = pl.Series([1] * 40 + [2] * 30 + [3] * 32), pl.Series([1] * 40 + [2] * 30 + [9] * 32)
    release = Table(pl.DataFrame({"x": intervals(*ends)}), original.schema)
    found = summary(original, release)
    assert found["categories"] == ["1", "2", "3", "[3;…]", OTHERS]
    assert "[3;9]" in summary(original, release, public=False)["categories"]


def test_a_column_of_single_values_is_suppressed_in_public():
    names = one([f"name-{i}" for i in range(100)], Kind.NOMINAL)
    assert summary(names)["note"].startswith("Suppressed")
    found = summary(names, public=False)
    assert len(found["categories"]) == 21
    assert found["categories"][-1] == OTHERS


def test_ordinal_values_stand_in_their_order():
    order = ("low", "mid", "high")
    column = one(["high"] * 50 + ["low"] * 20 + ["mid"] * 30, Kind.ORDINAL, order=order)
    found = summary(column)
    assert found["categories"] == ["low", "mid", "high"]
    spec = bars(found, [METHOD])
    assert spec["layer"][0]["encoding"]["y"]["sort"] == ["low", "mid", "high"]


def test_an_ordinal_column_of_many_numbers_has_an_axis():
    assert summary(one(list(range(100)), Kind.ORDINAL))["drawn"] == "histogram"
    assert summary(one([1, 2, 3, 4] * 25, Kind.ORDINAL))["drawn"] == "bars"


def test_members_of_sets_are_counted():
    column = one([["a", "b"], ["a"]] * 20, Kind.SET)
    found = summary(column)
    assert found["categories"] == ["a", "b"]
    assert found["shares"]["original"] == [1.0, 0.5]


def test_missing_codes_are_no_value():
    column = one(["a"] * 20 + ["b"] * 20 + ["."] * 20, Kind.NOMINAL, missing=(".",))
    found = summary(column)
    assert found["categories"] == ["a", "b"]
    assert found["shares"]["original"] == [0.5, 0.5]


# Correlations ------------------------------------------------------------------------------------------


def test_correlations_agree_with_numpy():
    matrix = np.random.default_rng(3).normal(size=(50, 4)) @ np.random.default_rng(4).normal(size=(4, 4))
    assert np.allclose(correlate(matrix), np.corrcoef(matrix, rowvar=False))
    assert np.allclose(correlate(matrix * 1e9 + 1e12), np.corrcoef(matrix, rowvar=False), atol=1e-5)


def test_missing_values_are_left_out_pair_by_pair():
    matrix = np.random.default_rng(5).normal(size=(60, 3))
    matrix[:10, 0] = np.nan
    matrix[30:35, 1] = np.nan
    both = ~np.isnan(matrix[:, :2]).any(axis=1)
    expected = np.corrcoef(matrix[both, :2], rowvar=False)[0, 1]
    assert correlate(matrix)[0, 1] == pytest.approx(expected)


def test_constants_and_small_samples_have_no_correlation():
    matrix = np.column_stack([np.arange(20.0), np.full(20, 3.3), np.r_[np.arange(5.0), np.full(15, np.nan)]])
    found = correlate(matrix, least=10)
    assert found[0, 0] == pytest.approx(1)
    assert np.isnan(found[1]).all()
    assert np.isnan(found[0, 2])
    assert correlate(matrix, least=3)[0, 2] == pytest.approx(1)
    assert np.isnan(correlate(np.empty((0, 2)))).all()


def two(x, y, **facts) -> Table:
    columns = (Column("x", Kind.CONTINUOUS), Column("y", facts.pop("kind", Kind.CONTINUOUS), **facts))
    return Table(pl.DataFrame({"x": x, "y": y}), Schema(columns))


def test_the_triptych_is_original_release_and_difference():
    rng = np.random.default_rng(6)
    x = rng.normal(size=100)
    found = correlations(two(x, x), {"m0": two(x, rng.permutation(x))}, ["x", "y"], public=True)
    assert found["original"] == [[1.0, 1.0], [1.0, 1.0]]
    r = found["releases"]["m0"][0][1]
    assert r == round(r, 2)
    assert found["differences"]["m0"][0][1] == pytest.approx(r - 1)


def test_ordinal_texts_count_by_the_order_of_the_original():
    order = ("low", "mid", "high")
    original = two([1.0, 2, 3] * 5, ["low", "mid", "high"] * 5, kind=Kind.ORDINAL, order=order)
    found = correlations(original, {"m0": original}, ["x", "y"], public=True)
    assert found["original"][0][1] == 1.0


def test_one_column_has_no_correlations():
    assert correlations(one([1.0, 2.0]), {}, ["x"], public=False) is None


def test_many_columns_are_cut_and_said_to_be():
    rng = np.random.default_rng(7)
    names = [f"c{i}" for i in range(33)]
    table = Table(
        pl.DataFrame({name: rng.normal(size=40) for name in names}),
        Schema(tuple(Column(name, Kind.CONTINUOUS) for name in names)),
    )
    found = correlations(table, {}, names, public=False)
    assert (len(found["columns"]), found["left_out"]) == (30, 3)
    nothing = {"outcomes": [], "map": [], "distributions": [], "class_sizes": None, "mosaics": None}
    drawn = charts({**nothing, "correlations": found})
    assert len(drawn["correlation-original"]["layer"]) == 2  # no numbers in so many cells

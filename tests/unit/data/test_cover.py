"""What the cells of a column stand for: small columns with the answer worked out by hand."""

from dataclasses import replace
from datetime import date, datetime

import numpy as np
import polars as pl
import pytest

from sfumato.data.generalised import label_sets
from sfumato.data.generalised.cover import (
    Cover,
    cover_of,
    covers_of,
    extent,
    reads_as_numbers,
    uninformative_records,
    wildcards,
)
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.label_sets import LabelSets, Runs
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.generalised.text_forms import parse_intervals
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError

NAN, INF = np.nan, np.inf
at = datetime.fromisoformat


def one(values, kind, *, nodes=None, **facts):
    """A table of one column x."""
    frame = pl.DataFrame({"x": values})
    return Table(frame, Schema((Column("x", kind, **facts),)), nodes={} if nodes is None else {"x": nodes})


def ranges(*texts, dtype=pl.Int64, kind=Kind.CONTINUOUS, **facts):
    return one(parse_intervals(pl.Series(texts, dtype=pl.String), dtype), kind, **facts)


def labels(nodes, *texts, kind=Kind.NOMINAL, **facts):
    return one(pl.Series(texts, dtype=nodes.dtype), kind, nodes=nodes, **facts)


def same(found, expected):
    np.testing.assert_allclose(found, expected, atol=1e-12)


# Which columns are generalised


def test_a_column_is_generalised_if_it_has_intervals_or_labels(counties):
    assert ranges("[1;2]", "3").is_generalised("x")
    assert labels(counties, "Kern").is_generalised("x")
    assert not one([1, 2], Kind.CONTINUOUS).is_generalised("x")
    assert not one(pl.Series(["Kern"], dtype=pl.Enum(["Kern"])), Kind.NOMINAL).is_generalised("x")
    both = Table(
        pl.DataFrame({"a": [1], "b": intervals([1], [2])}),
        Schema((Column("a", Kind.CONTINUOUS), Column("b", Kind.CONTINUOUS))),
    )
    assert both.is_generalised("a", "b")
    assert not both.is_generalised("a")
    assert not both.is_generalised()


def test_wildcards_of_any_column(counties):
    assert wildcards(ranges("*", "[;5]", None, "3"), "x").tolist() == [True, False, False, False]
    assert wildcards(labels(counties, "*", "north", None), "x").tolist() == [True, False, False]
    assert wildcards(one(["*", "a"], Kind.NOMINAL), "x").tolist() == [False, False]


def test_a_record_says_nothing_if_none_of_its_cells_does():
    """One cell that says something is enough."""
    x = parse_intervals(pl.Series(["*", "*", None, "[1;2]"], dtype=pl.String), pl.Int64)
    columns = (Column("x", Kind.CONTINUOUS), Column("y", Kind.NOMINAL, missing=("?",)))
    table = Table(pl.DataFrame({"x": x, "y": ["?", "a", None, None]}), Schema(columns))
    assert uninformative_records(table, ["x", "y"]).tolist() == [True, False, True, False]
    assert uninformative_records(table, ["x"]).tolist() == [True, True, True, False]


def test_a_label_without_a_value_has_no_mean():
    nodes = Nodes.of({"low": ["1", "3"], "none": ["?"]}, leaves=["1", "3", "?"])
    sets = LabelSets.of(nodes, np.array([1.0, 3.0, NAN]))
    of = dict(zip(nodes.labels, sets.means, strict=True))
    assert of["low"] == 2
    assert np.isnan(of["none"])


# Intervals


def test_intervals_run_from_low_to_high():
    cover = Cover.of(ranges("[20;29]", "25", "*", None, "[;20]", "[65;]"), "x")
    same(cover.lows, [20, 25, -INF, NAN, -INF, 65])
    same(cover.highs, [29, 25, INF, NAN, 20, INF])
    assert cover.missing.tolist() == [False, False, False, True, False, False]
    assert cover.wildcards.tolist() == [False, False, True, False, False, False]
    assert cover.uninformative.tolist() == [False, False, True, True, False, False]
    assert cover.domain == (20, 65)
    assert cover.step == 1
    assert not cover.exact


def test_open_ends_close_at_the_domain_and_at_least_at_the_other_end():
    cover = replace(Cover.of(ranges("[20;29]", "*", None, "[;10]", "[65;]", "[95;]"), "x"), domain=(15, 90))
    whole = cover.close_ends()
    same(whole.lows, [20, 15, NAN, 10, 65, 95])
    same(whole.highs, [29, 90, NAN, 10, 90, 95])
    same(whole.middles, [24.5, 52.5, NAN, 10, 77.5, 95])
    quiet = cover.close_ends(wildcards="silent")
    same(quiet.lows, [20, NAN, NAN, 10, 65, 95])
    same(quiet.middles, [24.5, NAN, NAN, 10, 77.5, 95])


def test_intervals_hold_what_lies_within_their_closed_ends():
    released = ranges("[20;29]", "[20;29]", "[20;29]", "*", "*", None, "[20;29]", "[65;]")
    known = one([20.0, 29.0, 30.0, 7.0, None, 7.0, None, 70.0], Kind.CONTINUOUS)
    numbers, cover = cover_of(known, released, "x")
    assert cover.holds(numbers).tolist() == [True, True, False, True, True, False, False, True]


def test_the_spread_of_intervals_is_a_share_of_the_domain():
    cover = Cover.of(ranges("[20;29]", "25", "*", None, "[;20]", "[90;]", "[-50;500]"), "x")
    # Of 0 … 100: 9/100, 0, 1, missing, 20/100, 10/100, and all of it.
    same(replace(cover, domain=(0, 100)).share_of_domain(), [0.09, 0, 1, NAN, 0.2, 0.1, 1])
    # Of its own ends −50 … 500: 9/550, 0, 1, missing, 70/550, 410/550, 1.
    same(cover.share_of_domain(), [9 / 550, 0, 1, NAN, 70 / 550, 410 / 550, 1])


def test_a_domain_of_one_value_or_of_huge_ones():
    same(Cover.of(ranges("5", "*", None, dtype=pl.Float64), "x").share_of_domain(), [0, 1, NAN])
    same(Cover.of(ranges("*"), "x").share_of_domain(), [1])
    wide = Cover.of(one(intervals([-1.7e308, 0.0], [1.7e308, 1.7e308]), Kind.CONTINUOUS), "x")
    same(wide.share_of_domain(), [1, 0.5])
    same(wide.middles / 1.7e308, [0, 0.5])


def test_the_domain_is_what_the_known_table_states_or_what_is_declared():
    known, released = one([10, 30, None], Kind.CONTINUOUS), ranges("[0;99]", "[20;25]", "*")
    numbers, cover = cover_of(known, released, "x")
    assert cover.domain == (10, 30)
    same(cover.share_of_domain(), [1, 0.25, 1])
    assert extent(numbers, column=Column("x", Kind.CONTINUOUS, lower=0.0)) == (0, 30)
    assert extent(numbers, np.array([INF, 40])) == (10, 40)
    assert extent(np.array([NAN])) == (0, 0)


def test_intervals_beside_categories_are_of_values_not_of_positions():
    for kind in (Kind.ORDINAL, Kind.NOMINAL):
        numbers, cover = cover_of(one([30, 10, 20], kind), ranges("[5;15]", "[5;15]", "20", kind=kind), "x")
        same(numbers, [30, 10, 20])
        assert cover.holds(numbers).tolist() == [False, True, True]
    with pytest.raises(DataError, match="must hold numbers to lie in ranges"):
        cover_of(one(["a"], Kind.ORDINAL), ranges("[5;15]", kind=Kind.ORDINAL), "x")


def test_exact_values_beside_exact_ones_are_read_by_their_kind():
    numbers, cover = cover_of(one([10, 30, None], Kind.ORDINAL), one([30, 20], Kind.ORDINAL), "x")
    same(numbers, [0, 2, NAN])
    same(cover.lows, [2, 1])
    assert cover.exact
    same(cover.share_of_domain(), [0, 0])
    missing = one([10, -9], Kind.CONTINUOUS, missing=(-9,))
    same(Cover.of(missing, "x").lows, [10, NAN])
    assert Cover.of(missing, "x").uninformative.tolist() == [False, True]


def test_what_is_known_must_be_exact():
    with pytest.raises(DataError, match="needs exact values"):
        cover_of(ranges("[1;2]"), ranges("[1;2]"), "x")


# Dates


def test_dates_of_one_type_are_days_and_of_two_types_microseconds():
    days = ranges("[2020-01-01;2020-01-31]", "2020-01-05", "*", dtype=pl.Date, kind=Kind.DATE)
    known = one([date(2020, 1, 31), date(2020, 3, 1), date(2020, 1, 1)], Kind.DATE)
    numbers, cover = cover_of(known, days, "x")
    assert cover.step == 1
    same(cover.share_of_domain(), [30 / 60, 0, 1])
    assert cover.holds(numbers).tolist() == [True, False, True]
    times = one([at("2020-01-31T00:00:00"), at("2020-01-05T12:00:00"), None], Kind.DATE)
    numbers, cover = cover_of(times, days, "x")
    assert cover.step == 86_400e6
    assert (cover.highs[0] - cover.lows[0]) / cover.step == 30
    assert cover.holds(numbers).tolist() == [True, False, True]


def test_leaves_of_dates_and_times():
    nodes = Nodes.of({"new year": ["2020-01-01", "2020-01-02"]}, leaves=["2020-01-01", "2020-01-02"])
    released = labels(nodes, "new year", "*", kind=Kind.DATE)
    for known in ([date(2020, 1, 1), date(2020, 1, 9)], [at("2020-01-01"), at("2020-01-09")]):
        numbers, cover = cover_of(one(known, Kind.DATE), released, "x")
        assert cover.holds(numbers).tolist() == [True, True]
        assert cover.holds(numbers[::-1]).tolist() == [False, True]


# Labels


def test_labels_hold_their_members(counties):
    released = labels(counties, "north", "north", "Kern", "*", "*", "*", None, None, "south")
    known = one(["Kings", "Kern", "Kern", "Kern", "elsewhere", None, "Kern", None, None], Kind.NOMINAL)
    expected = [True, False, True, True, True, True, False, False, False]
    for nested in (False, True):
        numbers, cover = cover_of(known, released, "x", nested=nested)
        assert cover.holds(numbers).tolist() == expected
        assert cover.missing.tolist() == [False] * 6 + [True, True, False]
        # Of 4 leaves: 1/3 twice, 0/3, all, missing, 1/3.
        same(cover.share_of_domain(), [1 / 3, 1 / 3, 0, 1, 1, 1, NAN, NAN, 1 / 3])


def test_leaves_stand_by_value_or_so_that_labels_are_ranges():
    nodes = Nodes.of({"odd": ["1", "9"], "5": ["5"], "low": ["1", "5"]}, leaves=["9", "5", "1"])
    known, released = one([1, 5, 9, 7], Kind.CONTINUOUS), labels(nodes, "odd", "5", "*", "low")
    numbers, cover = cover_of(known, released, "x")
    same(numbers, [1, 5, 9, 7])
    same(cover.lows, [1, 5, -INF, 1])
    same(cover.highs, [9, 5, INF, 5])
    same(cover.middles[[0, 1, 3]], [5, 5, 3])
    same(cover.means, [5, 5, 5, 3])  # the wildcard is all leaves
    same(cover.close_ends(wildcards="silent").means, [5, 5, NAN, 3])
    nested, boxed = cover_of(known, released, "x", nested=True)
    assert sorted(nested[:3]) == [0, 1, 2]
    assert np.isnan(nested[3])  # 7 is no leaf
    alone = Cover.of(labels(nodes, "odd", "5", "*"), "x")
    assert alone.boxes().counts.tolist() == [1, 1, 1]  # 1 and 9 stand side by side
    assert cover.boxes().counts[0] == 2  # by value they do not
    for each, values in ((cover, numbers), (boxed, nested)):
        assert [each.take(np.full(4, i)).holds(values).tolist() for i in range(4)] == [
            [True, False, True, False],
            [False, True, False, False],
            [True, True, True, True],
            [True, True, False, False],
        ]


def test_boxes_are_runs_and_what_says_nothing_is_open():
    groups = {"ab": ["a", "b"], "bc": ["b", "c"], "ac": ["a", "c"]}
    cover = Cover.of(labels(Nodes.of(groups, leaves=list("abc")), "ab", "bc", "ac", "*", None), "x")
    runs = cover.boxes()
    assert sorted(runs.counts[:3]) == [1, 1, 2]  # three leaves in a row: one pair of them is torn
    assert runs.counts[3:].tolist() == [1, 1]
    assert runs.ends[:, runs.starts[3:]].tolist() == [[-INF, -INF], [INF, INF]]
    cells, places = runs.laid_out(np.arange(3))
    low, high = runs.ends[:, places]
    assert np.bincount(cells, high - low + 1).tolist() == [2, 2, 2]
    numbered = Cover.of(ranges("[1;3]", None, "*"), "x").boxes()
    assert numbered.ends.tolist() == [[1, -INF, -INF], [3, INF, INF]]
    some = Runs(np.array([[0, 5, 9], [1, 6, 9]]), np.array([0, 1]), np.array([1, 2]))
    assert [each.tolist() for each in some.laid_out(np.array([1, 0, 1]))] == [
        [0, 0, 1, 2, 2],
        [1, 2, 0, 1, 2],
    ]


def test_a_code_for_missing_values_is_no_leaf():
    nodes = Nodes.of({"a": ["a"], "?": ["?"], "both": ["a", "?"]}, leaves=["a", "?"])
    released = labels(nodes, "a", "?", "both", missing=("?",))
    numbers, cover = cover_of(one(["a", "?", "a"], Kind.NOMINAL, missing=("?",)), released, "x")
    same(numbers, [0, NAN, 0])
    assert cover.missing.tolist() == [False, True, False]
    assert cover.holds(numbers).tolist() == [True, False, True]
    same(cover.lows, cover.highs)


def test_leaves_that_are_no_numbers(counties):
    released = labels(counties, "north", kind=Kind.CONTINUOUS)
    assert not reads_as_numbers(released, "x", Kind.CONTINUOUS)
    with pytest.raises(DataError, match="4 that are not"):
        cover_of(one([1.5], Kind.CONTINUOUS), released, "x")
    for leaves, are_numbers in (["1", "2"], True), (["1", "inf"], False):
        nodes = Nodes.of({"both": leaves}, leaves=leaves)
        assert reads_as_numbers(labels(nodes, "both"), "x", Kind.CONTINUOUS) is are_numbers
    assert reads_as_numbers(ranges("[1;2]"), "x", Kind.ORDINAL)
    assert not reads_as_numbers(ranges("[1;2]"), "x", Kind.DATE)
    assert not reads_as_numbers(one(["a"], Kind.ORDINAL), "x", Kind.ORDINAL)


def test_steps_that_lead_up_to_a_label(counties):
    cover = Cover.of(labels(counties, "north", "Kern", "*"), "x")
    levels = dict(zip(counties.labels, cover.sets.levels.tolist(), strict=True))
    assert (levels["Kern"], levels["north"], levels["*"]) == (0, 1, 2)


# Two tables that may both be generalised


def test_both_tables_may_be_generalised_each_in_its_way():
    nodes = Nodes.of({"low": ["1", "2"], "9": ["9"]}, leaves=["1", "2", "9"])
    one_way, other = covers_of(labels(nodes, "low", "9", kind=Kind.ORDINAL), ranges("[1;5]", "9"), "x")
    same(one_way.lows, [1, 9])
    same(one_way.highs, [2, 9])
    same(other.lows, [1, 9])
    assert one_way.domain == other.domain == (1, 9)
    same(other.share_of_domain(), [0.5, 0])


def test_taking_cells():
    cover = Cover.of(ranges("[20;29]", "25", None), "x").take(np.array([1, -1, 0, 2]))
    same(cover.lows, [25, NAN, 20, NAN])
    exact = Cover.of(one([3.0, 4.0], Kind.CONTINUOUS), "x")
    assert exact.take(np.array([1, -1])).exact
    assert exact.take(slice(None)) is exact


def test_columns_without_records(counties):
    for table in (ranges(), labels(counties), one(pl.Series([], dtype=pl.Float64), Kind.CONTINUOUS)):
        cover = Cover.of(table, "x")
        empty = [
            cover.share_of_domain(),
            cover.middles,
            cover.means,
            cover.holds(np.zeros(0)),
            cover.boxes().starts,
        ]
        assert [len(each) for each in empty] == [0] * 5


@pytest.mark.parametrize("seed", range(3))
def test_leaves_stand_by_the_largest_labels_first(seed):
    """As if each label, from the smallest to the largest, moved its leaves to the front; of many labels."""
    rng = np.random.default_rng(seed)
    leaves = [f"v{i:02d}" for i in range(12)]
    sets = sorted({tuple(sorted(rng.choice(12, rng.integers(1, 6), replace=False))) for _ in range(90)})
    named = {str(i): [leaves[j] for j in sets[i]] for i in rng.permutation(len(sets))}
    nodes = Nodes.of(named, leaves=leaves)
    used = np.sort(rng.permutation(len(named))[: (3, 40, 80)[seed]])
    released = labels(nodes, *(nodes.labels[int(code)] for code in used))
    order = list(range(12))
    for code in sorted(used, key=lambda code: nodes.sizes[code]):
        mine = nodes.members[nodes.starts[code] : nodes.starts[code + 1]].tolist()
        order = [each for each in order if each in mine] + [each for each in order if each not in mine]
    assert np.argsort(Cover.of(released, "x").sets.places).tolist() == order


@pytest.mark.parametrize("looks_up", [True, False])
def test_labels_hold_the_values_that_are_theirs(monkeypatch, looks_up):
    monkeypatch.setattr(label_sets, "fits", lambda *_: looks_up)
    rng = np.random.default_rng(1)
    for _ in range(20):
        leaves = [str(value) for value in rng.choice(9, rng.integers(2, 9), replace=False)]
        groups = {
            f"g{i}": rng.choice(leaves, rng.integers(2, len(leaves) + 1), replace=False).tolist()
            for i in range(4)
        }
        shown = rng.choice(list(groups), 30).tolist()
        held = [float(value) for value in rng.integers(-1, 11, 30)]
        nodes = Nodes.of(groups, leaves=leaves)
        table = one(pl.Series(shown).cast(nodes.dtype), Kind.CONTINUOUS, nodes=nodes)
        found = covers_of(one([float(each) for each in leaves], Kind.CONTINUOUS), table, "x")[1]
        expected = [str(int(value)) in groups[label] for label, value in zip(shown, held, strict=True)]
        assert found.holds(np.array(held)).tolist() == expected

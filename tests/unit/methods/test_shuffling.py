"""Rank shuffling and data shuffling: against hand-worked cases and naive versions of themselves."""

from collections import Counter
from datetime import date, timedelta
from itertools import permutations, product

import numpy as np
import polars as pl
import pytest
from scipy import linalg, stats

from sfumato.core.params import Columns
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import PlanError, RefusedError, UnknownNameError
from sfumato.kernels.shuffles import shuffle_in_windows, window_bounds
from sfumato.methods.shuffling import DataShuffling, RankShuffling
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step


def table_of(frame, targets=(), **kinds):
    """Continuous columns, unless a kind (or a whole column) is given for them."""
    said = [kinds.get(name, Kind.CONTINUOUS) for name in frame.columns]
    columns = (
        each if isinstance(each, Column) else Column(name, each)
        for name, each in zip(frame.columns, said, strict=True)
    )
    return Table(frame, Schema(tuple(columns)), targets=tuple(targets))


def rank_shuffled(series, column=Kind.CONTINUOUS, seed=3, **parameters):
    table = table_of(pl.DataFrame({"x": series}), x=column)
    return RankShuffling(**parameters).apply(table, Run(seed=seed)).table.frame["x"]


def data_shuffled(table, seed=3, **parameters):
    return DataShuffling(**parameters).apply(table, Run(seed=seed)).table.frame


# --- rank shuffling -----------------------------------------------------------------------------------


def test_windows_worked_by_hand():
    starts, ends = window_bounds(10, 4, 2)  # 4 + 3·2 = 10: they fit
    assert (starts.tolist(), ends.tolist()) == ([0, 2, 4, 6], [4, 6, 8, 10])
    starts, ends = window_bounds(10, 3, 3)  # 3 + 3·3 = 12: all are narrowed by 10/12
    assert (starts.tolist(), ends.tolist()) == ([0, 2, 5, 7], [2, 5, 7, 10])
    starts, ends = window_bounds(2, 5, 5)
    assert (starts.tolist(), ends.tolist()) == ([0], [2])
    starts, ends = window_bounds(0, 3, 3)
    assert (starts.tolist(), ends.tolist()) == ([0], [0])


@pytest.mark.parametrize(("n", "width", "slide"), [(-1, 3, 3), (5, 0, 0), (5, 3, 0), (5, 3, 4)])
def test_windows_that_leave_ranks_out_are_refused(n, width, slide):
    with pytest.raises(ValueError, match="`slide`"):
        window_bounds(n, width, slide)


@pytest.mark.parametrize(("n", "width", "slide"), [(17, 5, 5), (17, 5, 2), (30, 7, 1), (6, 9, 9), (1, 3, 3)])
def test_kernel_equals_shuffling_lists_one_window_after_the_other(n, width, slide):
    starts, ends = window_bounds(n, width, slide)
    rng, items = np.random.default_rng(5), list(range(n))
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        for last in range(end - 1, start, -1):
            drawn = int(rng.integers(start, last + 1))
            items[last], items[drawn] = items[drawn], items[last]
    assert shuffle_in_windows(n, width, slide, np.random.default_rng(5)).tolist() == items


def test_overlapping_windows_have_the_exact_distribution():
    """Of n = 4, windows 0–2 and 1–3: all 36 pairs of orders are equally likely. Fails once in 1,000 seeds."""
    exact = Counter()
    for first, second in product(permutations(range(3)), repeat=2):
        items = [*first, 3]
        exact[items[0], *(items[1 + place] for place in second)] += 1
    rng, draws = np.random.default_rng(11), 7200
    found = Counter(tuple(shuffle_in_windows(4, 3, 1, rng).tolist()) for _ in range(draws))
    assert set(found) == set(exact)
    expected = [count * draws / 36 for count in exact.values()]
    assert stats.chisquare([found[order] for order in exact], expected).pvalue > 0.001


def test_a_window_is_a_percentage_and_blocks_keep_their_order():
    """Ten per cent of 100 are ten: whoever was in a block still is, and almost all of them moved."""
    values = np.arange(100.0)
    turned = rank_shuffled(pl.Series(values), window=10).to_numpy()
    np.testing.assert_array_equal(turned // 10, values // 10)
    assert (turned != values).mean() > 0.7  # 90 ± 3 are expected to move


def test_overlapping_windows_carry_values_up_but_not_down():
    values = np.arange(1000.0)
    moves = rank_shuffled(pl.Series(values), window=5, slide=20).to_numpy() - values
    # A record that gets a lower value saw its own ride upwards: values move down by less than a window.
    assert moves.max() <= 49
    assert moves.min() < -50


@pytest.mark.parametrize("n", [2, 3, 5, 7, 101])
def test_no_value_is_left_alone_in_its_window(n):
    """With the narrowest window the greatest value still moves, in one of 40 draws or more."""
    turned = [rank_shuffled(pl.Series(np.arange(float(n))), seed=seed, window=0.01) for seed in range(40)]
    assert any(each[-1] != n - 1 for each in turned)
    assert any(each[0] != 0 for each in turned)


def test_rank_shuffling_keeps_types_orders_and_missing_codes():
    rng = np.random.default_rng(0)
    numbers = pl.Series(rng.integers(0, 1000, 200), dtype=pl.Int32)
    assert rank_shuffled(numbers).dtype == pl.Int32
    words = pl.Series(["low"] * 10 + ["mid"] * 10 + ["high"] * 10)
    ordinal = Column("x", Kind.ORDINAL, order=("low", "mid", "high"))
    turned = rank_shuffled(words, ordinal, window=27)  # 8 ranks: low and high are never under one window
    assert sorted(turned) == sorted(words)
    assert turned.to_list() != words.to_list()
    assert not {("low", "high"), ("high", "low")} & set(zip(words, turned, strict=True))
    days = pl.Series([date(2020, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 500, 200)])
    assert rank_shuffled(days, Kind.DATE).dtype == pl.Date
    coded = pl.Series([-9, 5, -9, 3, 8, 1, -9, 7])
    turned = rank_shuffled(coded, Column("x", Kind.CONTINUOUS, missing=(-9,)), window=100)
    assert [place for place, value in enumerate(turned) if value == -9] == [0, 2, 6]
    assert sorted(turned) == sorted(coded)


# --- data shuffling -----------------------------------------------------------------------------------


def naive_data_shuffling(protected, given, normals, independence=1.0):
    """Muralidhar and Sarathy's steps written down one by one, for columns without ties or holes."""
    n, p = protected.shape
    both = np.hstack([protected, given])
    scores = stats.norm.ppf((stats.rankdata(both, axis=0) - 0.5) / n)
    scores = (scores - scores.mean(axis=0)) / scores.std(axis=0, ddof=1)
    matrix = 2 * np.sin(np.pi / 6 * np.corrcoef(stats.rankdata(both, axis=0).T))
    slopes = matrix[:p, p:] @ np.linalg.inv(matrix[p:, p:])
    root = linalg.sqrtm(matrix[:p, :p] - slopes @ matrix[p:, :p]).real
    expected = scores[:, p:] @ slopes.T
    own = scores[:, :p] - expected
    drawn = expected + np.sqrt(1 - independence**2) * own + independence * normals @ root
    result = np.empty_like(protected)
    for column in range(p):
        result[np.argsort(drawn[:, column]), column] = np.sort(protected[:, column])
    return result


def correlated(n, seed):
    """Three skewed columns and two that tell something of them."""
    rng = np.random.default_rng(seed)
    mixing = np.array([[1, 0.6, 0.3, 0.5, 0], [0, 1, 0.4, 0, 0.7], [0, 0, 1, 0.2, 0.2]])
    normals = rng.standard_normal((n, 3)) @ mixing + 0.4 * rng.standard_normal((n, 5))
    return pl.DataFrame(np.exp(normals), schema=["a", "b", "c", "s", "t"])


@pytest.mark.parametrize("independence", [1.0, 0.4])
def test_data_shuffling_equals_the_naive_version(independence):
    frame = correlated(150, seed=1)
    run = Run(seed=9)
    normals = np.stack([run.rng(name).standard_normal(150) for name in "abc"], axis=1)
    expected = naive_data_shuffling(
        frame.select("a", "b", "c").to_numpy(), frame.select("s", "t").to_numpy(), normals, independence
    )
    method = DataShuffling(given=Columns(["t", "s"]), independence=independence)
    got = method.apply(table_of(frame, targets="cab"), run).table.frame
    np.testing.assert_array_equal(got.select("a", "b", "c").to_numpy(), expected)
    assert got.select("s", "t").equals(frame.select("s", "t"))


def test_what_is_given_in_full_comes_back():
    """With a perfect monotone relation the model has nothing left to draw, whichever way it runs."""
    rng = np.random.default_rng(4)
    given = rng.permutation(40).astype(float)
    frame = pl.DataFrame({"up": np.exp(given / 10), "down": -(given**3), "given": given})
    got = data_shuffled(table_of(frame, targets=["up", "down"]), given=Columns(["given"]))
    assert got.equals(frame)


@pytest.mark.parametrize("given", [(), ("s",), ("s", "t")])
def test_rank_correlations_are_kept(given):
    """Within five standard deviations of a rank correlation, of which none is above 1/√n."""
    n = 4000
    frame = correlated(n, seed=2)
    got = data_shuffled(table_of(frame, targets="abc"), given=Columns(given))
    names = ["a", "b", "c", *given]
    before, after = (stats.spearmanr(each.select(names).to_numpy()).statistic for each in (frame, got))
    np.testing.assert_allclose(np.atleast_2d(after), np.atleast_2d(before), atol=5 / np.sqrt(n))


def partial_correlation(first, second, given):
    """Correlation of two columns of scores with the part that follows from a third taken out."""
    scores = [stats.norm.ppf((stats.rankdata(each) - 0.5) / len(each)) for each in (first, second, given)]
    left, right = (each - np.polyval(np.polyfit(scores[2], each, 1), scores[2]) for each in scores[:2])
    return np.corrcoef(left, right)[0, 1]


@pytest.mark.parametrize("independence", [1.0, 0.8, 0.3])
def test_independence_says_how_much_is_the_records_own(independence):
    """What is left beside the given column correlates with the original by √(1 − δ²), within 5/√n."""
    n = 4000
    frame = correlated(n, seed=3)
    got = data_shuffled(table_of(frame, targets="a"), given=Columns(["s"]), independence=independence)
    own = partial_correlation(frame["a"], got["a"], frame["s"])
    assert own == pytest.approx(np.sqrt(1 - independence**2), abs=5 / np.sqrt(n))


def test_a_given_nominal_column_keeps_the_groups_apart():
    """Groups a hundred apart, nothing between them: the model puts the values back into their groups."""
    rng = np.random.default_rng(6)
    group = rng.permutation(np.repeat([0, 1, 2], 200))
    income = np.array([100.0, 300.0, 200.0])[group] + rng.random(600)
    frame = pl.DataFrame({"income": income, "group": np.array(["x", "y", "z"])[group]})
    table = table_of(frame, targets=["income"], group=Kind.NOMINAL)
    blind = data_shuffled(table).group_by("group").agg(pl.col("income").mean())["income"]
    assert blind.max() - blind.min() < 50
    seeing = dict(
        data_shuffled(table, given=Columns(["group"])).group_by("group").agg(pl.col("income").mean()).rows()
    )
    assert seeing["x"] < 140
    assert 170 < seeing["z"] < 230
    assert seeing["y"] > 260


def test_holes_stay_and_holes_in_given_columns_do_not_matter_much():
    frame = correlated(500, seed=7).with_columns(
        pl.when(pl.int_range(pl.len()) % 7 != 0).then("a").alias("a"),
        pl.when(pl.int_range(pl.len()) % 5 != 0).then("s").alias("s"),
        pl.Series("t", [None] * 500, dtype=pl.Float64),
        pl.when(pl.int_range(pl.len()) % 3 != 0).then(pl.lit("x")).otherwise(None).alias("c"),
    )
    table = table_of(frame, targets="ab", c=Kind.NOMINAL)
    got = data_shuffled(table, given=Columns(["s", "t", "c"]))
    for name in "ab":
        assert got[name].is_null().equals(frame[name].is_null())
        assert got[name].sort().equals(frame[name].sort())
    pairs = frame["s"].is_not_null() & frame["a"].is_not_null()
    before, after = (
        stats.spearmanr(each.filter(pairs)["a"], frame.filter(pairs)["s"]).statistic for each in (frame, got)
    )
    assert after == pytest.approx(before, abs=5 / np.sqrt(343))


def test_constants_copies_and_ties_are_coped_with():
    rng = np.random.default_rng(8)
    income = np.where(rng.random(300) < 0.6, 0.0, rng.lognormal(3, 1, 300))
    frame = pl.DataFrame(
        {"a": income, "b": income, "c": np.full(300, 7.0), "s": np.full(300, 1.0), "t": income, "u": income}
    )
    got = data_shuffled(table_of(frame, targets="abc"), given=Columns(["s"]))
    assert got["a"].sort().equals(frame["a"].sort())
    assert got["a"].equals(got["b"])  # one column twice is shuffled as one
    assert got["c"].equals(frame["c"])
    told = data_shuffled(table_of(frame, targets="a"), given=Columns(["t", "u"]))
    assert told["a"].equals(frame["a"])


def test_words_and_dates_keep_their_type():
    rng = np.random.default_rng(9)
    days = [date(2020, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 500, 100)]
    frame = pl.DataFrame(
        {"word": rng.choice(["low", "mid", "high"], 100), "day": days, "text": map(str, days)}
    )
    ordinal = Column("word", Kind.ORDINAL, order=("low", "mid", "high"))
    got = data_shuffled(table_of(frame, word=ordinal, day=Kind.DATE, text=Kind.DATE))
    assert got.schema == frame.schema
    for name in frame.columns:
        assert got[name].sort().equals(frame[name].sort())
        assert not got[name].equals(frame[name])


def test_a_group_of_columns_means_the_others_of_it():
    frame = correlated(100, seed=10)
    columns = tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in frame.columns)
    table = Table(frame, Schema(columns), targets=("a", "b"))
    by_role = data_shuffled(table, given=Columns(["@key"]))
    assert by_role.equals(data_shuffled(table, given=Columns(["t", "c", "s"])))


def test_given_columns_that_cannot_be_are_refused():
    frame = correlated(400, seed=11).with_columns(
        pl.Series("c", [f"v{place}" for place in range(400)]),
        pl.Series("t", [["x"]] * 400, dtype=pl.List(pl.String)),
    )
    table = table_of(frame, c=Kind.NOMINAL, t=Kind.SET).aimed_at("a")
    with pytest.raises(RefusedError, match="at most 200 categories in all, got: 400"):
        data_shuffled(table, given=Columns(["c"]))
    with pytest.raises(RefusedError, match="got: sets in `t`"):
        data_shuffled(table, given=Columns(["t"]))
    with pytest.raises(UnknownNameError, match="zz"):
        data_shuffled(table, given=Columns(["zz"]))
    with pytest.raises(RefusedError, match="must have 20 records for these given columns, got: 19"):
        data_shuffled(table.take(np.arange(19)), given=Columns(["b", "s"]))
    with pytest.raises(PlanError, match="protected themselves"):
        Recipe((Step(DataShuffling(given=Columns(["a"])), ("a",)),)).apply(table, Run(seed=1))


def test_a_model_of_few_records_would_recite_them():
    """Why there must be ten records for a column: 12 records and 11 indicators leave nothing to draw."""
    frame = pl.DataFrame({"a": np.arange(12.0), "who": [f"p{place}" for place in range(12)]})
    table = table_of(frame, targets="a", who=Kind.NOMINAL)
    assert DataShuffling.protect(
        DataShuffling(given=Columns(["who"])), table, Run(seed=1)
    ).table.frame.equals(frame)
    with pytest.raises(RefusedError, match="must have 110 records"):
        data_shuffled(table, given=Columns(["who"]))

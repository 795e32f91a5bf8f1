"""Top and bottom coding by hand, and outliers against the definition written out record by record."""

from datetime import date

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from scipy.stats import chi2, norm

from sfumato.cli import cli
from sfumato.core.method import ColumnView
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, ParameterError, RefusedError
from sfumato.kernels.outlyingness import RobustCentre, scores, squares_at
from sfumato.methods.coding import MultivariateTopCoding, TopBottomCoding

AGES = [3, 41, 17, 88, 104, 65, 93, 22, 1, 55]  # sorted: 1 3 17 22 41 55 65 88 93 104


def coded(series, kind=Kind.CONTINUOUS, *, weights=None, facts=None, **settings):
    columns, frame = (Column("x", kind, **(facts or {})),), pl.DataFrame({"x": series})
    if weights is not None:
        frame = frame.with_columns(pl.Series("w", weights, dtype=pl.Float64))
        columns += (Column("w", Kind.CONTINUOUS, Role.WEIGHT),)
    table = Table(frame, Schema(columns), targets=("x",))
    return TopBottomCoding(**settings).apply(table, Run(seed=1)).table.frame["x"]


# ------------------------------------------------------------------------------------------ by share and count


def test_the_three_largest_and_smallest_by_hand():
    """88 and 17 are people's ages; 80 and 20 are the roundest numbers that draw in neither 65 nor 22."""
    result = coded(AGES, share=0, count=3)
    assert result.to_list() == [20, 41, 20, 80, 80, 65, 80, 22, 20, 55]
    assert result.dtype == pl.Int64


@pytest.mark.parametrize(
    ("replace", "top", "bottom"), [("threshold", 80, 20), ("mean", 95, 7), ("median", 93, 3)]
)
def test_what_a_group_shows(replace, top, bottom):
    """Top 88, 93, 104 with mean 95; bottom 1, 3, 17 with mean 7."""
    result = coded(AGES, share=0, count=3, replace=replace).to_list()
    assert [result[i] for i in (3, 4, 6)] == [top] * 3
    assert [result[i] for i in (0, 2, 8)] == [bottom] * 3
    assert [result[i] for i in (1, 5, 7, 9)] == [41, 65, 22, 55]


def test_of_two_middle_values_the_one_nearer_to_the_others():
    result = coded(AGES, share=0, count=4, replace="median").to_list()
    assert max(result) == 88  # of 65 88 93 104
    assert min(result) == 3 + 14  # of 1 3 17 22


@pytest.mark.parametrize(
    ("share", "records", "shown"),
    [(0.1, 1, 100), (10, 1, 100), (10.1, 2, 90), (20, 2, 90), (30, 3, 80), (49, 5, 50), (0, 0, 104)],
)
def test_shares_are_rounded_up_to_records(share, records, shown):
    result = coded(AGES, share=share, count=0, side="top")
    ordered = sorted(AGES, reverse=True)
    assert sorted(result, reverse=True) == [shown] * records + ordered[records:]


def test_a_threshold_of_dense_numbers_is_no_ones_value():
    """1,000 incomes, half a unit apart: the top 10 % begin at 1,450.25, and ten more records at 1,445.25."""
    values = 1000.25 + np.arange(1000) / 2
    result = coded(values, share=10, count=0, side="top")
    assert result.max() == 1450  # of 1,444.75 to 1,450.25 the roundest
    assert (result == 1450).sum() == 100
    assert coded(values + 3, share=10, count=0, side="top").max() == 1450  # of 1,447.75 to 1,453.25
    assert (coded(values + 3, share=10, count=0, side="top") == 1450).sum() == 106


def test_a_given_threshold_stays_and_one_that_is_filled_up_does_not():
    values = [50.3, 85.3, 88.3, 91.3, 20.3]
    assert coded(values, top=84.7, side="top", count=3).max() == 84.7
    assert coded(values, top=90.7, side="top", count=2).max() == 88  # of 85.3 to 88.3


def test_a_share_that_is_a_whole_number_of_records_is_no_more():
    """2.2 % of 1,000 is 22.000000000000004 in binary."""
    assert 2.2 / 100 * 1000 > 22
    result = coded(np.arange(1000.0), share=2.2, count=0, side="top")
    assert (result == 978).sum() == 22


def test_the_count_is_a_least_number():
    for share, count, expected in ((10, 4, 4), (50, 4, 5)):
        result = coded(AGES, share=share, count=count, side="top", replace="median")
        assert (result == result.max()).sum() == expected


def test_sides():
    assert coded(AGES, side="top").to_list() == [3, 41, 17, 80, 80, 65, 80, 22, 1, 55]
    assert coded(AGES, side="bottom").to_list() == [20, 41, 20, 88, 104, 65, 93, 22, 20, 55]


def test_ties_are_treated_alike():
    values = [1.0, 2.0, 2.0, 2.0, 5.0, 5.0, 5.0, 9.0]
    assert coded(values, share=0, count=2, side="top").to_list() == [1.0, 2, 2, 2, 5, 5, 5, 5]
    assert coded(values, share=0, count=2, side="top", replace="mean").to_list() == [1.0, 2, 2, 2, 6, 6, 6, 6]


def test_where_the_groups_meet_all_are_alike():
    values = [1.0, 2.0, 3.0, 10.0]
    assert coded(values, share=0, count=3).to_list() == [2.0] * 4  # of two middle values the lower
    assert coded(values, share=0, count=3, replace="mean").to_list() == [4.0] * 4
    assert coded([7.0] * 5, replace="mean").to_list() == [7.0] * 5
    assert coded([7.0], count=3).to_list() == [7.0]
    assert coded(pl.Series([], dtype=pl.Float64)).to_list() == []
    assert coded([0.1] * 7, replace="mean").to_list() == [0.1] * 7


# ----------------------------------------------------------------------------------------------------- by value


def test_by_value_alone():
    values = [50.0, 89.0, 90.0, 91.0, 120.0, -5.0]
    result = coded(values, top=90, bottom=0, count=0)
    assert result.to_list() == [50, 89, 90, 90, 90, 0]
    mean = coded(values, top=90, side="top", count=0, replace="mean")
    assert mean.to_list() == [50, 89] + [pytest.approx(301 / 3)] * 3 + [-5]


def test_a_group_by_value_is_filled_up_to_the_count_if_anyone_is_in_it():
    values = [50.0, 85.0, 88.0, 91.0, 20.0]
    assert coded(values, top=90, side="top").to_list() == [50, 80, 80, 80, 20]  # between 50 and 85
    assert coded(values, top=95, side="top").to_list() == values
    assert coded(values, top=60, side="top").to_list() == [50, 60, 60, 60, 20]
    assert coded(values, top=60, side="top", count=100).to_list() == [20] * 5


def test_a_value_for_one_column_and_a_share_for_the_others():
    frame = pl.DataFrame({"age": [5.0, 95.0, 40.0, 50.0], "pay": [1.0, 2.0, 3.0, 900.0]})
    table = Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS) for name in frame.columns)))
    method = TopBottomCoding(top={"age": 90}, count=0, share=50, side="top")
    result = method.apply(table, Run(seed=1)).table.frame
    assert result["age"].to_list() == [5, 90, 40, 50]
    assert result["pay"].to_list() == [1, 2, 3, 3]


def test_no_value_above_the_given_one_is_shown_where_groups_meet():
    """Everyone is above 10, and the lowest three are in the bottom group as well."""
    assert coded([20.0, 30.0, 40.0, 50.0], top=10, share=0, count=3).to_list() == [10.0] * 4
    assert coded([20.0, 30.0, 40.0, 50.0], bottom=60, share=0, count=3).to_list() == [60.0] * 4


@pytest.mark.parametrize(
    ("settings", "kind", "match"),
    [
        (
            {"top": 5, "side": "bottom"},
            Kind.CONTINUOUS,
            "`top` of .* only if the top is coded, got: side `bottom`",
        ),
        ({"bottom": 5, "side": "top"}, Kind.CONTINUOUS, "`bottom` of .* only if the bottom is coded"),
        ({"top": 5, "bottom": 5}, Kind.CONTINUOUS, r"must be below `top`, got: `5\.0` and `5\.0` for `x`"),
        ({"replace": "mean"}, Kind.ORDINAL, "must replace the ordinal `x` by threshold or median"),
        ({"top": 2}, Kind.NOMINAL, "must be given continuous or date or ordinal columns"),
    ],
)
def test_contradictions_are_refused(settings, kind, match):
    with pytest.raises(RefusedError, match=match):
        coded([1, 2, 3], kind, **settings)


def test_words_and_dates_have_no_value_to_code_by():
    order = {"order": ("low", "middle", "high")}
    with pytest.raises(RefusedError, match="by share or count"):
        coded(["low", "high"], Kind.ORDINAL, facts=order, top=1)
    with pytest.raises(RefusedError, match="by share or count"):
        coded([date(2020, 1, 1)], Kind.DATE, bottom=1)


def test_a_search_needs_a_share_to_move():
    table = Table(pl.DataFrame({"x": [1.0, 2.0]}), Schema((Column("x", Kind.CONTINUOUS),)))
    assert TopBottomCoding(top=1.5).drive_range(table) == (0.1, 50)
    for method in (TopBottomCoding(top=1.5, side="top"), TopBottomCoding(top=1.5, bottom=1.2)):
        with pytest.raises(ParameterError, match="`share` of top-bottom-coding cannot be searched"):
            method.drive_range(table)


def test_the_command_line_takes_values_by_column(tmp_path):
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    pl.DataFrame({"age": [95.5, 20.5, 40.5], "pay": [1.5, 2.5, 99.5]}).write_csv(source)
    command = ["protect", "top-bottom-coding", str(source), "--columns", "age,pay", "--out", str(out)]
    command += [
        "--unjudged",
        "--keep-order",
        "--side",
        "top",
        "--count",
        "2",
        "--share",
        "0",
        "--top",
        "age=30",
    ]
    assert CliRunner().invoke(cli, command).exit_code == 0
    assert pl.read_csv(out).rows() == [(30.0, 1.5), (20.5, 2.0), (30.0, 2.0)]


# ---------------------------------------------------------------------------------------- kinds, missing, weights


def test_words_follow_their_order():
    words = ["low", "high", "middle", "low", "highest", "middle"]
    order = {"order": ("low", "middle", "high", "highest")}
    result = coded(words, Kind.ORDINAL, facts=order, share=0, count=2, side="top")
    assert result.to_list() == ["low", "high", "middle", "low", "high", "middle"]
    median = coded(words, Kind.ORDINAL, facts=order, share=0, count=3, side="top", replace="median")
    assert median.to_list() == ["low", "middle", "middle", "low", "middle", "middle"]


def test_numbered_categories_by_value():
    result = coded([1, 2, 5, 7, 9], Kind.ORDINAL, top=6, bottom=2, count=0)
    assert result.to_list() == [2, 2, 5, 7, 7]  # 6 does not occur: 7 is the next at or above it
    assert coded([1, 2, 5], Kind.ORDINAL, top=6, side="top").to_list() == [1, 2, 5]
    assert coded([3, 4, 5], Kind.ORDINAL, bottom=2, side="bottom").to_list() == [3, 4, 5]


def test_dates_and_instants_keep_their_type_and_digits():
    days = [date(1999, 12, 31), date(1920, 5, 1), date(1921, 5, 1), date(1950, 1, 1), date(1960, 1, 1)]
    result = coded(days, Kind.DATE, share=0, count=2, side="bottom")
    assert result.to_list() == [days[0], date(1940, 1, 1), date(1940, 1, 1), days[3], days[4]]
    mean = coded(days, Kind.DATE, share=0, count=2, side="bottom", replace="mean")
    assert mean.to_list()[1] in {date(1920, 10, 30), date(1920, 10, 31)}  # half a day between them
    instants = pl.Series([10**18 + 1, 10**18 + 3, 5, 7]).cast(pl.Datetime("ns"))  # no float holds the first
    late = coded(instants, Kind.DATE, share=0, count=2, side="top", replace="mean")
    assert late.dtype == pl.Datetime("ns")
    assert late.to_physical().to_list() == [10**18 + 2, 10**18 + 2, 5, 7]
    texts = coded(["1999-12-31", "1920-05-01", "1921-05-01"], Kind.DATE, share=0, count=2, side="bottom")
    assert texts.to_list() == ["1999-12-31", "1950-01-01", "1950-01-01"]


def test_holes_and_missing_codes_neither_change_nor_count():
    result = coded([-9, 5, None, 3, 8, 1, -9, 7], facts={"missing": (-9,)}, share=0, count=2)
    assert result.to_list() == [-9, 5, None, 4, 6, 4, -9, 6]


def test_weights_are_people():
    """Of 100 people the top 30 % are the record of weight 10 and part of that of weight 40."""
    values, weights = [1.0, 2.0, 3.0, 4.0], [20, 30, 40, 10]
    assert coded(values, weights=weights, share=10, count=0, side="top").to_list() == [1, 2, 3, 4]
    assert coded(values, weights=weights, share=30, count=0, side="top").to_list() == [1, 2, 3, 3]
    assert coded(values, weights=weights, share=50, count=0, side="top").to_list() == [1, 2, 3, 3]
    assert coded(values, weights=weights, share=0, count=3, side="top").to_list() == [1, 2, 2, 2]
    mean = coded(values, weights=weights, share=50, count=0, side="top", replace="mean")
    assert mean.to_list() == [1, 2, pytest.approx(3.2), pytest.approx(3.2)]
    assert float(mean.dot(pl.Series(weights))) == pytest.approx(20 + 60 + 120 + 40)
    median = coded(values, weights=weights, share=0, count=3, side="top", replace="median")
    assert median.to_list() == [1, 3, 3, 3]


def test_declared_whole_numbers_and_ranges_are_kept():
    result = coded([1, 2, 3, 50, 61], facts={"integer": True}, share=0, count=2, side="top", replace="mean")
    assert result.to_list() == [1, 2, 3, 56, 56]  # 55.5, to even


# ------------------------------------------------------------------------------------------------------- outliers


def table_of(values):
    frame = pl.DataFrame({f"c{i}": values[:, i] for i in range(values.shape[1])})
    return Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS) for name in frame.columns)))


def drawn_in(values, **settings):
    return MultivariateTopCoding(**settings).apply(table_of(values), Run(seed=1)).table.frame.to_numpy()


def naive_middle(values):
    centre = np.array([np.nanmedian(column) for column in values.T])
    scale = []
    for column, middle in zip(values.T, centre, strict=True):
        apart = np.abs(column[~np.isnan(column)] - middle)
        typical = np.median(apart) or (np.median(apart[apart > 0]) if apart.any() else 0.0)
        scale.append(typical / norm.ppf(0.75))
    return centre, np.array(scale)


def naive_squares(values):
    """For complete columns that vary: medians, MADs, correlations of what is drawn in, record by record."""
    centre, scale = naive_middle(values)
    standard = (values - centre) / scale
    core = np.full(len(values), fill_value=True)
    for _ in range(4):  # once among all, then three times among the nearer half
        correlation = np.corrcoef(np.clip(standard[core], -2, 2).T)
        squares = np.array([row @ np.linalg.solve(correlation, row) for row in standard])
        core = squares <= np.median(squares)
    return squares


@pytest.fixture
def incomes():
    rng = np.random.default_rng(4)
    base = rng.lognormal(10, 1, (400, 1))
    return np.hstack([base * rng.lognormal(0, 0.4, (400, 1)) for _ in range(3)])


def test_distances_are_the_definition(incomes):
    squares, sizes = RobustCentre.of(incomes).distances(incomes)
    np.testing.assert_allclose(squares, naive_squares(incomes), rtol=1e-9)
    assert (sizes == 3).all()


def test_distances_over_the_columns_that_are_there(incomes):
    holes = np.random.default_rng(2).random(incomes.shape) < 0.3
    values = np.where(holes, np.nan, incomes)
    middle = RobustCentre.of(values)
    centre, scale = naive_middle(values)
    np.testing.assert_allclose(middle.centre, centre)
    np.testing.assert_allclose(middle.scale, scale)
    squares, sizes = middle.distances(values)
    for row, expected, size in zip(values, squares, sizes, strict=True):
        there = np.flatnonzero(~np.isnan(row))
        z = ((row - centre) / scale)[there]
        part = middle.correlation[np.ix_(there, there)]
        assert size == len(there)
        assert expected == pytest.approx(z @ np.linalg.solve(part, z) if size else 0.0, rel=1e-9)


def test_outermost_records_come_to_the_ellipsoid_on_their_ray(incomes):
    result = drawn_in(incomes, share=5)
    before, middle = naive_squares(incomes), RobustCentre.of(incomes)
    after, _ = middle.distances(result)
    limit = np.sort(before)[-21]  # 20 of 400 are coded, the next one is the limit
    moved = before > limit
    assert moved.sum() == 20
    np.testing.assert_array_equal(result[~moved], incomes[~moved])
    np.testing.assert_allclose(after[moved], limit, rtol=1e-9)
    ratio = (result - middle.centre)[moved] / (incomes - middle.centre)[moved]
    np.testing.assert_allclose(ratio, np.sqrt(limit / before[moved])[:, None] * np.ones(3), rtol=1e-6)


def test_the_mean_of_the_outermost(incomes):
    result = drawn_in(incomes, share=5, replace="mean")
    group = np.argsort(naive_squares(incomes))[-20:]
    np.testing.assert_allclose(result[group], np.tile(incomes[group].mean(axis=0), (20, 1)))
    np.testing.assert_allclose(result.sum(axis=0), incomes.sum(axis=0))
    rest = np.delete(np.arange(400), group)
    np.testing.assert_array_equal(result[rest], incomes[rest])


def test_outliers_cannot_hide_one_another():
    """A clump of 20 % far off along the short axis: by mean and covariance it would look ordinary."""
    rng = np.random.default_rng(8)
    crowd = rng.standard_normal((400, 1)) @ np.ones((1, 2)) + 0.2 * rng.standard_normal((400, 2))
    clump = np.array([4.0, -4.0]) + 0.05 * rng.standard_normal((100, 2))
    values = np.vstack([crowd, clump])
    squares, _ = RobustCentre.of(values).distances(values)
    assert squares[400:].min() > squares[:400].max()


def test_a_combination_that_is_odd_only_together_is_found():
    """Each coordinate of the odd record is within a deviation and a half; its combination is not."""
    rng = np.random.default_rng(8)
    crowd = rng.standard_normal((400, 1)) @ np.ones((1, 2)) + 0.1 * rng.standard_normal((400, 2))
    values = np.vstack([crowd, [[1.4, -1.4]]])
    result = drawn_in(values, share=0.1)
    assert (result[-1] != values[-1]).all()
    np.testing.assert_array_equal(result[:-1], values[:-1])


def test_far_columns_constants_duplicates_and_zeros(incomes):
    """A column of mostly zeros has a spread, that of its other values; offsets change no distance."""
    rng = np.random.default_rng(1)
    mostly_zero = np.where(rng.random(400) < 0.8, 0.0, rng.lognormal(5, 1, 400))
    standard = (incomes - incomes.mean(axis=0)) / incomes.std(axis=0)
    values = np.column_stack([standard, standard[:, 0], np.full(400, 3.0), mostly_zero])
    near, far = (drawn_in(values + offset, share=10) - offset for offset in (0.0, 1e8))
    np.testing.assert_allclose(near, far, atol=1e-5)
    assert (near[:, 4] == 3.0).all()
    assert (near[:, 0] == near[:, 3]).all()
    assert ((near != values).any(axis=1)).sum() == 40


def test_a_column_of_mostly_zeros_has_the_spread_of_its_others():
    values = np.array([[0.0], [0.0], [0.0], [0.0], [0.0], [10.0], [20.0], [600.0]])
    middle = RobustCentre.of(values)
    assert middle.scale[0] == pytest.approx(20.0 / norm.ppf(0.75))
    np.testing.assert_allclose(drawn_in(values, share=10)[:, 0], [0, 0, 0, 0, 0, 10, 20, 20])


def test_records_without_values_are_left_alone():
    values = np.array([[np.nan, np.nan], [1.0, 2.0], [2.0, np.nan], [3.0, 1.0], [4.0, 9.0], [90.0, 2.5]])
    for replace in ("ellipsoid", "mean"):
        result = drawn_in(values, share=30, replace=replace)
        np.testing.assert_array_equal(np.isnan(result), np.isnan(values))
        assert (result[5] != values[5]).any()
    np.testing.assert_array_equal(drawn_in(np.full((4, 2), np.nan)), np.full((4, 2), np.nan))
    np.testing.assert_array_equal(drawn_in(np.array([[5.0, 6.0]]), share=100), [[5.0, 6.0]])


def test_all_records_can_be_coded(incomes):
    mean = drawn_in(incomes, share=100, replace="mean")
    np.testing.assert_allclose(mean, np.tile(incomes.mean(axis=0), (400, 1)))
    after, _ = RobustCentre.of(incomes).distances(drawn_in(incomes, share=100))
    np.testing.assert_allclose(after, naive_squares(incomes).min(), rtol=1e-6)


def test_scores_make_numbers_of_columns_comparable():
    """Quantiles of χ² with 1, 3 and 10 degrees of freedom score as those of a normal, to a tenth."""
    for size in (1, 3, 10):
        for share in (0.5, 0.9, 0.99, 0.999):
            squares = np.array([chi2.ppf(share, size)])
            score = scores(squares, np.array([size]))
            assert score[0] == pytest.approx(norm.ppf(share), abs=0.1)
            np.testing.assert_allclose(squares_at(score[0], np.array([size])), squares, rtol=1e-12)
    assert scores(np.array([0.0]), np.array([0]))[0] == -np.inf
    assert squares_at(-50.0, np.array([3]))[0] == 0.0


def test_the_values_that_came_are_not_changed():
    view = ColumnView(Column("x", Kind.CONTINUOUS), np.array([1.0, 2.0, 3.0, 4.0]))
    result = TopBottomCoding(count=2, share=0).protect_column(view, np.random.default_rng(0))
    assert result.tolist() == [2.0, 2.0, 3.0, 3.0]
    assert view.values.tolist() == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("replace", ["ellipsoid", "mean"])
def test_distances_that_are_no_numbers_are_refused(replace):
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0, 1e300], "y": [1.0, 3.0, 2.0, 5.0, 4.0]})
    table = Table(frame, Schema((Column("x", Kind.CONTINUOUS), Column("y", Kind.CONTINUOUS))))
    with pytest.raises(DataError, match="got: 1 records too far from the centre"):
        MultivariateTopCoding(share=20, replace=replace).apply(table, Run(seed=1))

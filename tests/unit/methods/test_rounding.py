"""Rounding against decimal arithmetic, by hand, and against the formulas written out."""

from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from scipy.linalg import sqrtm
from scipy.stats import norm

from sfumato.cli import cli
from sfumato.core.method import ColumnView
from sfumato.core.params import PerColumn
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.engines.memory import MemoryEngine
from sfumato.errors import ParameterError, RefusedError
from sfumato.kernels.rounding import RoundingCell, turns
from sfumato.methods.rounding import MultivariateRounding, Rounding
from sfumato.recipes.step import Step
from sfumato.risk.ranks import RankLinkage
from sfumato.study.evaluate import EvaluationCase
from sfumato.study.level import Target, reach

MODES = ("controlled", "random", "nearest")


def table_of(columns, **facts):
    frame = pl.DataFrame(columns)
    return Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS, **facts) for name in frame.columns)))


def rounded(values, seed=1, **settings):
    view = ColumnView(Column("x", Kind.CONTINUOUS), np.asarray(values, dtype=np.float64))
    return Rounding(**settings).protect_column(view, np.random.default_rng(seed))


# ---------------------------------------------------------------------------------------------- the nearest


def test_nearest_by_hand():
    """From the middle to the even multiple: 5 → 0, 15 → 20, 25 → 20; also below zero."""
    values = [0, 4, 5, 6, 15, 25, -4, -5, -6, -15, -25, 99.9]
    expected = [0, 0, 0, 10, 20, 20, 0, 0, -10, -20, -20, 100]
    assert rounded(values, base=10, mode="nearest").tolist() == expected


@pytest.mark.parametrize("base", ["0.05", "0.1", "0.25", "0.3", "1", "2.5", "7", "100", "1000", "12.5"])
@pytest.mark.parametrize("offset", ["0", "100000000", "-3000"])
def test_nearest_is_what_decimals_say(base, offset):
    """Every value of two decimals, where binary fractions fall to either side of the middle."""
    step = Decimal(base)
    values = [Decimal(offset) + Decimal(k) / 100 for k in range(-700, 701)]
    expected = [(v / step).quantize(Decimal(1), rounding=ROUND_HALF_EVEN) * step for v in values]
    result = rounded([float(v) for v in values], base=float(base), mode="nearest")
    assert [Decimal(repr(y)) for y in result.tolist()] == expected


def test_no_decimals_come_in():
    """3 · 0.05 is 0.15000000000000002 in binary; nobody wants to read that."""
    result = rounded([0.149, 0.31, 0.7, 2.9], base=0.05, mode="nearest")
    assert result.tolist() == [0.15, 0.3, 0.7, 2.9]
    assert not np.signbit(rounded([-0.01], base=1, mode="nearest"))[0]


@pytest.mark.parametrize("mode", MODES)
def test_a_multiple_stays(mode):
    """0.15 / 0.05 is 2.9999999999999996, and 0.15 stays all the same, whatever the chance."""
    values = [k / 20 for k in range(-2000, 2000)] + [1e8 + k / 20 for k in range(200)]
    for seed in range(3):
        assert rounded(values, seed, base=0.05, mode=mode).tolist() == values


@pytest.mark.parametrize("mode", MODES)
def test_values_too_large_for_the_base_stay(mode):
    """At 10¹² bases of 10⁻⁹ a double has no fractions of a base left; at 10³⁰⁰ the quotient overflows."""
    values = [1e300, -1e300, 1e12 + 0.123, 5e-324, 0.0]
    result = rounded(values, base=1e-9, coarseness=1, mode=mode)
    assert result[:3].tolist() == values[:3]
    assert set(result[3:].tolist()) <= {0.0, 1e-9}


# --------------------------------------------------------------------------------------- at random, unbiased


class StartAt:
    """A generator whose one draw is chosen by the test."""

    def __init__(self, start):
        self.start = start

    def integers(self, low, high, dtype):
        assert low <= self.start < high
        return dtype(self.start)


@pytest.mark.parametrize("eighths", [[1, 2, 5, 7, 0, 4], [3] * 7, [0, 0], [7, 7, 7, 7, 7], [4], []])
def test_every_value_goes_up_with_its_share_exactly(eighths):
    """Shares in eighths: the eight arcs of the wheel are all that can happen, each as likely as the others."""
    share = np.array(eighths) / 8
    outcomes = np.array([turns(share, StartAt(k * 2**61 + 12345)) for k in range(8)]).reshape(8, len(share))
    np.testing.assert_array_equal(outcomes.mean(axis=0), share)
    total = Fraction(sum(eighths), 8)
    assert set(outcomes.sum(axis=1).tolist()) <= {int(total), -int(-total // 1)}
    assert Fraction(int(outcomes.sum()), 8) == total


def test_turns_are_the_formula():
    """⌊u + f₁ + … + fᵢ⌋ − ⌊u + f₁ + … + fᵢ₋₁⌋ in exact arithmetic."""
    rng = np.random.default_rng(3)
    share = rng.random(500) * (rng.random(500) < 0.9)
    start = int(rng.integers(0, 2**64, dtype=np.uint64))
    sums = [Fraction(start, 2**64)]
    for each in share:
        sums.append(sums[-1] + Fraction(int(each * 2**64), 2**64))
    expected = [int(after // 1) - int(before // 1) for before, after in pairwise(sums)]
    assert turns(share, StartAt(start)).astype(int).tolist() == expected


def test_the_margin_keeps_totals_that_are_whole_up_to_rounding():
    """Three thirds are one: a start in the last few steps of the wheel would make nothing of them."""
    share = np.full(3, 1 / 3)
    assert int(share[0] * 2**64) * 3 < 2**64
    assert turns(share, StartAt(0)).sum() == 0
    between = RoundingCell.of(np.array([1.0, 1.0, 1.0]), 3.0)
    keep = int(between.margin() * 2**64)
    assert turns(between.share, StartAt(keep), margin=between.margin()).sum() == 1
    assert turns(between.share, StartAt(2**64 - keep - 1), margin=between.margin()).sum() == 1


@pytest.mark.parametrize("end", ["first", "last"])
def test_the_worst_start_keeps_a_total_of_thirds(end):
    class Worst:
        def permutation(self, n):
            return np.arange(n)

        def integers(self, low, high, dtype):
            return dtype(low if end == "first" else high - 1)

    view = ColumnView(Column("x", Kind.CONTINUOUS), np.ones(3))
    assert Rounding(base=3).protect_column(view, Worst()).sum() == 3.0


@pytest.mark.parametrize("mode", ["controlled", "random"])
def test_both_random_modes_are_unbiased(mode):
    """4,000 draws of 12 values: at a true share f the mean is off by more than 4.5 deviations once in 10⁵."""
    values = np.array([3.0, 14.0, 15.0, 92.0, 65.0, 35.0, 89.0, -7.0, -93.0, 23.0, 84.0, 20.0])
    draws = np.array([rounded(values, seed, base=10, mode=mode) for seed in range(4000)])
    share = values / 10 - np.floor(values / 10)
    deviation = 10 * np.sqrt(share * (1 - share) / len(draws))
    limit = norm.isf(1e-5 / 2 / len(values))
    assert (np.abs(draws.mean(axis=0) - values) <= limit * deviation).all()
    totals = draws.sum(axis=1)
    if mode == "controlled":
        assert set(totals.tolist()) == {340.0}  # it is a multiple
    else:
        assert totals.std() > 10


def test_random_draws_each_value_for_itself():
    """Variances add up: f(1 − f)b² each, to within the 10⁻⁵ quantile of their estimate from 2,000 draws."""
    values = np.full(50, 2.5)
    totals = np.array([rounded(values, seed, base=5, mode="random").sum() for seed in range(2000)])
    assert abs(totals.var() / (50 * 25 / 4) - 1) < 4.5 * np.sqrt(2 / 2000)


def test_controlled_ties_are_drawn_in_random_order():
    """Couples one after the other: were ties taken in file order, every second would always go up."""
    values = np.full(2000, 2.5)
    up = rounded(values, base=5) > 2.5
    assert up.sum() == 1000
    # Hypergeometric with mean 500 and deviation 11.2; five deviations are passed once in 10⁶.
    assert abs(int(up[::2].sum()) - 500) < 56


# --------------------------------------------------------------------------------------------------- the base


@pytest.mark.parametrize(
    ("deviation", "expected"),
    [(1.0, 0.1), (10.0, 1.0), (13.0, 1.0), (15.0, 2.0), (30.0, 2.0), (40.0, 5.0), (72.0, 10.0), (1e6, 1e5)],
)
def test_the_usual_base_is_a_round_number_near_a_tenth_of_the_deviation(deviation, expected):
    values = deviation * np.array([-1.0, 1.0]) + 0.25
    view = ColumnView(Column("x", Kind.CONTINUOUS), values)
    assert Rounding().base_of(view) == pytest.approx(expected, rel=1e-12)


def base_of(values, **settings):
    return Rounding(**settings).base_of(ColumnView(Column("x", Kind.CONTINUOUS), np.asarray(values, float)))


def test_coarseness_multiplies_every_base_and_keeps_it_round():
    halves = [0.5, 1.5, 7.25]
    assert base_of(halves, base=7.25) == 7.25
    assert base_of(halves, base=0.05, coarseness=3) == 0.15
    assert base_of(halves, base=5, coarseness=2.3714) == 12.0
    assert base_of(halves, base=1000, coarseness=0.12345) == 120.0
    assert base_of(halves, base=7.25, coarseness=1.5) == 10.9
    assert base_of([1, 4, 9], base=5, coarseness=0.5) == 2.0  # whole numbers have a whole base: 2.5 to even
    assert base_of([1, 4, 9], base=5, coarseness=0.01) == 1.0
    assert base_of([1.0, 2.0, 3.0]) == 1.0
    assert base_of([5.0]) >= 1.0
    assert base_of([0.1]) == 1.0
    assert base_of([1e200, -1e200]) <= 1e15


def test_a_base_by_column_and_the_usual_for_the_others():
    table = table_of({"age": [33.0, 47.0, 61.0], "pay": [0.123, 5.456, 9.789]})
    method = Rounding(base={"age": 5}, mode="nearest")
    assert method.base == PerColumn(None, (("age", 5.0),))
    frame = method.apply(table, Run(seed=1)).table.frame
    assert frame["age"].to_list() == [35.0, 45.0, 60.0]
    assert frame["pay"].to_list() == [0.0, 5.5, 10.0]  # the deviation is 3.95, the base 0.5


def test_whole_numbers_stay_whole():
    table = table_of({"age": pl.Series([3, 47, 62, 18], dtype=pl.Int32)}, integer=True)
    for mode in MODES:
        result = Rounding(base=5, mode=mode).apply(table, Run(seed=1)).table.frame["age"]
        assert result.dtype == pl.Int32
        assert all(value % 5 == 0 for value in result)
    for coarseness in (0.001, 0.3, 1.7, 33):
        assert Rounding(coarseness=coarseness).apply(table, Run(seed=1)).table.frame["age"].dtype == pl.Int32


def test_refuses_fractions_of_whole_numbers():
    table = table_of({"age": [3, 47], "size": [1, 2]}, integer=True)
    with pytest.raises(RefusedError, match=r"must be a whole number for `age`.*`2\.5`"):
        Rounding(base={"age": 2.5, "size": 1}).apply(table, Run(seed=1))
    assert Rounding(base={"age": 2}).refuses(table) is None
    with pytest.raises(ParameterError, match="at least 1e-09"):
        Rounding(base=0)


def test_a_multiple_outside_the_range_becomes_its_end():
    table = table_of({"share": [97.0, 99.0, 96.0, 51.0]}, lower=0, upper=100)
    result = Rounding(base=30, mode="nearest").apply(table, Run(seed=1)).table.frame["share"]
    assert result.to_list() == [90.0, 90.0, 90.0, 60.0]
    high = Rounding(base=40, mode="nearest").apply(table, Run(seed=1)).table.frame["share"]
    assert high.to_list() == [80.0, 80.0, 80.0, 40.0]
    top = Rounding(base=65, mode="nearest").apply(table, Run(seed=1)).table.frame["share"]
    assert top.to_list() == [65.0, 100.0, 65.0, 65.0]  # 99 is nearest to 130


def test_holes_and_missing_codes_stay():
    table = table_of({"pay": [-9, 1234, None, 1777, -9]}, missing=(-9,))
    result = Rounding(base=100, mode="nearest").apply(table, Run(seed=1)).table.frame["pay"]
    assert result.to_list() == [-9, 1200, None, 1800, -9]


def test_within_strata_each_total_is_kept():
    rng = np.random.default_rng(5)
    pay, region = rng.integers(0, 10_000, 300).astype(float), rng.integers(0, 4, 300)
    frame = pl.DataFrame({"pay": pay, "region": region})
    columns = (Column("pay", Kind.CONTINUOUS, Role.KEY), Column("region", Kind.NOMINAL, Role.OTHER))
    step = Step(Rounding(base=1000), ("pay",), within=("region",))
    result = step.apply(Table(frame, Schema(columns)), Run(seed=2)).table.frame["pay"].to_numpy()
    for stratum in range(4):
        before, after = pay[region == stratum].sum(), result[region == stratum].sum()
        assert after in {1000 * np.floor(before / 1000), 1000 * np.ceil(before / 1000)}


def test_a_search_moves_all_bases_in_proportion():
    rng = np.random.default_rng(7)
    table = table_of({"a": rng.lognormal(3, 1, 150), "b": rng.lognormal(10, 1, 150)})
    step = Step(Rounding(base={"a": 1.0, "b": 2000.0}), ("a", "b"))
    level = reach(step, EvaluationCase(table), Target(RankLinkage(), 0.9), Run(seed=1), repeats=2)
    assert level.parameter == "coarseness"
    assert level.step.method.base == step.method.base
    assert abs(level.score - 0.9) < 0.1
    assert level.tried[min(level.tried)] < level.tried[max(level.tried)]


def test_the_command_line_takes_a_base_by_column_or_none(tmp_path):
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    pl.DataFrame({"pay": [12.3, 45.6, 78.9], "tax": [1.1, 2.2, 3.9]}).write_csv(source)
    command = ["protect", "rounding", str(source), "--columns", "pay,tax", "--out", str(out), "--keep-order"]
    command += ["--mode", "nearest", "--unjudged"]
    assert CliRunner().invoke(cli, [*command, "--base", "pay=10", "--base", "2"]).exit_code == 0
    assert pl.read_csv(out).rows() == [(10.0, 2.0), (50.0, 2.0), (80.0, 4.0)]
    assert CliRunner().invoke(cli, [*command, "--overwrite"]).exit_code == 0
    assert pl.read_csv(out)["pay"].to_list() == [12.0, 46.0, 78.0]  # the deviation is 27.2, the base 2


# ----------------------------------------------------------------------------------------- several together


@pytest.fixture
def incomes():
    rng = np.random.default_rng(4)
    base = rng.lognormal(10, 1, (400, 1))
    return np.hstack([base * rng.lognormal(0, 0.4, (400, 1)) for _ in range(3)])


def together(values, seed=1, engine=MemoryEngine(), **settings):  # noqa: B008  — it is never changed
    names = [f"c{i}" for i in range(values.shape[1])]
    table = table_of({name: values[:, i] for i, name in enumerate(names)})
    release = MultivariateRounding(**settings).apply(table, Run(seed=seed, engine=engine))
    return release.table.frame.to_numpy()


def naive_lattice(values, width, offsets):
    """The formula, record by record, over the columns each has; correlations over pairs of present values."""
    d = values.shape[1]
    mean, deviation = np.nanmean(values, axis=0), np.nanstd(values, axis=0, ddof=1)
    correlation = np.eye(d)
    for i in range(d):
        for j in range(d):
            both = ~np.isnan(values[:, i]) & ~np.isnan(values[:, j])
            covariance = np.cov(values[both, i], values[both, j])[0, 1]
            correlation[i, j] = covariance / (deviation[i] * deviation[j])
    spectrum, axes = np.linalg.eigh(correlation)
    if spectrum.min() < 0:
        correlation = axes @ np.diag(np.maximum(spectrum, -spectrum.min())) @ axes.T
    result = values.copy()
    for row in range(len(values)):
        there = np.flatnonzero(~np.isnan(values[row]))
        if not len(there):
            continue
        root = np.real(sqrtm(correlation[np.ix_(there, there)]))
        z = np.linalg.solve(root, (values[row, there] - mean[there]) / deviation[there])
        q = width * (np.floor(z / width - offsets[there] + 0.5) + offsets[there])
        result[row, there] = mean[there] + deviation[there] * (root @ q)
    return result


@pytest.mark.parametrize("offset", ["mean", "random"])
@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_multivariate_is_the_formula(incomes, offset, holes):
    values = incomes[:120].copy()
    values[np.random.default_rng(0).random(values.shape) < holes] = np.nan
    place = Run(seed=1).at("block", 0)
    offsets = np.array([place.rng(f"c{i}", "offset").random() if offset == "random" else 0 for i in range(3)])
    expected = naive_lattice(values, 0.7, offsets)
    np.testing.assert_allclose(together(values, width=0.7, offset=offset), expected, rtol=1e-8)


def test_without_correlation_it_rounds_each_column_to_its_deviation():
    values = np.array([[-1.0, -10.0], [-1.0, 10.0], [1.0, -10.0], [1.0, 10.0], [0.1, 0.0], [-0.1, 0.0]])
    deviation = values.std(axis=0, ddof=1)
    expected = deviation * np.rint(values / deviation)
    np.testing.assert_allclose(together(values, width=1, offset="mean"), expected, atol=1e-12)


def test_all_blocks_share_one_lattice(incomes):
    whole = together(incomes, width=1.5)
    np.testing.assert_allclose(together(incomes, width=1.5, engine=MemoryEngine(37)), whole, rtol=1e-9)


def test_no_record_moves_farther_than_half_a_diagonal(incomes):
    width = 0.9
    move = together(incomes, width=width) - incomes
    inverse = np.linalg.inv(np.cov(incomes.T))
    assert np.sqrt(np.einsum("ij,jk,ik->i", move, inverse, move)).max() <= width * np.sqrt(3) / 2 * (1 + 1e-9)


def test_a_random_offset_is_unbiased(incomes):
    """300 draws: in whitened coordinates the error is uniform on ±w/2; 4.5 deviations are passed once in 10⁵."""
    width, few = 2.0, incomes[:40]
    draws = np.array([together(few, seed, width=width) - few for seed in range(300)])
    scaled = (draws / few.std(axis=0, ddof=1)) @ np.linalg.inv(np.real(sqrtm(np.corrcoef(few.T))))
    assert np.abs(scaled).max() <= width / 2 * (1 + 1e-9)
    assert np.abs(scaled.mean(axis=0)).max() < 4.8 * width / np.sqrt(12 * 300)


def test_covariances_grow_by_sheppards_factor():
    """Normal data, cells of one deviation: 1 + w²/12, to 2 % at 40,000 records."""
    rng = np.random.default_rng(9)
    values = rng.standard_normal((40_000, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    ratio = np.cov(together(values, width=1.0).T) / np.cov(values.T)
    np.testing.assert_allclose(ratio, 1 + 1 / 12, rtol=0.02)


def test_sums_constants_and_far_columns_survive(incomes):
    parts = incomes[:, :2]
    values = np.column_stack([parts, parts.sum(axis=1), np.full(len(parts), 7.0)])
    result = together(values, width=1.3)
    np.testing.assert_allclose(result[:, 0] + result[:, 1], result[:, 2], rtol=1e-9)
    assert (result[:, 3] == 7.0).all()
    standard = (incomes - incomes.mean(axis=0)) / incomes.std(axis=0)
    near, far = (together(standard + offset, width=0.5, offset="mean") - offset for offset in (0.0, 1e8))
    # Rounded to other points are only records in the middle of two, to the digits that 1e8 leaves.
    moved = np.abs(near - far).max(axis=1) > 1e-6
    assert moved.mean() < 0.01


def test_few_points_are_left_when_cells_are_wide(incomes):
    counts = [len(np.unique(np.round(together(incomes, width=w), 6), axis=0)) for w in (0.05, 0.5, 2, 8)]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] <= 8 < counts[1] < 400

"""Distances between the distributions of single columns: by hand, against SciPy, and with every sort of value."""

from datetime import date, datetime

import numpy as np
import polars as pl
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import ks_2samp, wasserstein_distance

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.utility.distributions import (
    ColumnEarthMoversDistance,
    Hellinger,
    JensenShannon,
    KolmogorovSmirnov,
    TotalVariation,
)
from sfumato.utility.transport import EarthMoversDistance

EVERY = [ColumnEarthMoversDistance(), KolmogorovSmirnov(), TotalVariation(), Hellinger(), JensenShannon()]


def table(kind=Kind.CONTINUOUS, nodes=None, weights=None, order=(), **columns):
    frame = pl.DataFrame(columns, strict=False)
    described = [Column(name, kind, order=order) for name in columns]
    if weights is not None:
        frame = frame.with_columns(pl.Series("weight", weights, dtype=pl.Float64))
        described.append(Column("weight", Kind.CONTINUOUS, Role.WEIGHT))
    return Table(frame, Schema(tuple(described)), nodes=nodes or {})


def score(measure, original, protected):
    return measure.score(Evidence(original, Release.of(protected)), Run(seed=1))


def value(measure, original, protected):
    found = score(measure, original, protected)
    assert found.status is Status.OK
    return found.value


# By hand ------------------------------------------------------------------------------------------------


def test_numbers_by_hand():
    """{0, 2, 4, 10} to {1, 2, 4, 10}: a quarter moves by a tenth; the functions differ by a quarter on [0, 1)."""
    x, y = table(a=[0, 2, 4, 10]), table(a=[1, 2, 4, 10])
    assert value(ColumnEarthMoversDistance(), x, y) == pytest.approx(0.025)
    assert value(KolmogorovSmirnov(), x, y) == pytest.approx(0.25)
    # Four distinct values, four bins: up to 0, up to 2, up to 4, above. The first goes to the second.
    assert value(TotalVariation(), x, y) == pytest.approx(0.25)
    assert value(Hellinger(), x, y) == pytest.approx(np.sqrt((0.25 + (np.sqrt(0.5) - 0.5) ** 2) / 2))


def test_words_by_hand():
    """Shares (1/2, 1/2, 0) and (1/4, 1/2, 1/4)."""
    x, y = table(Kind.NOMINAL, a=list("aabb")), table(Kind.NOMINAL, a=list("abbc"))
    p, q = np.array([0.5, 0.5, 0]), np.array([0.25, 0.5, 0.25])
    assert value(TotalVariation(), x, y) == pytest.approx(0.25)
    assert value(ColumnEarthMoversDistance(), x, y) == pytest.approx(0.25)
    assert value(Hellinger(), x, y) == pytest.approx(np.sqrt(1 - np.sqrt(p * q).sum()))
    assert value(JensenShannon(), x, y) == pytest.approx(jensenshannon(p, q, base=2))


def test_positions_of_an_order():
    """low, middle, high, high to low, high, high, high: one of four moves by half of the order."""
    order = ("low", "middle", "high")
    x = table(Kind.ORDINAL, order=order, a=["low", "middle", "high", "high"])
    y = table(Kind.ORDINAL, order=order, a=["low", "high", "high", "high"])
    assert value(ColumnEarthMoversDistance(), x, y) == pytest.approx(0.125)
    assert value(KolmogorovSmirnov(), x, y) == pytest.approx(0.25)


def test_days():
    x = table(Kind.DATE, a=[date(2020, 1, 1), date(2020, 1, 11)])
    y = table(Kind.DATE, a=[date(2020, 1, 1), date(2020, 1, 6)])
    assert value(ColumnEarthMoversDistance(), x, y) == pytest.approx(0.25)
    later = table(Kind.DATE, a=[datetime(2020, 1, 1), datetime(2020, 1, 6)])  # noqa: DTZ001
    assert value(ColumnEarthMoversDistance(), x, later) == pytest.approx(0.25)


@pytest.mark.parametrize("measure", EVERY, ids=lambda measure: measure.name)
def test_the_extremes(measure):
    x, apart = table(a=[1.0, 2.0, 3.0]), table(a=[11.0, 12.0, 13.0])
    assert value(measure, x, table(a=[3.0, 1.0, 2.0])) == 0
    assert value(measure, x, table(a=[3.0, 1.0, 2.0] * 2)) == pytest.approx(0, abs=1e-7)
    if measure.name in {"column-emd", "kolmogorov-smirnov"}:
        assert value(measure, x, apart) == pytest.approx(5 if measure.name == "column-emd" else 1)
    words = table(Kind.NOMINAL, a=list("abc")), table(Kind.NOMINAL, a=list("xyz"))
    if Kind.NOMINAL in measure.kinds:
        assert value(measure, *words) == pytest.approx(1)


def test_columns_are_averaged_or_the_worst_counts():
    x, y = table(a=[0.0, 1.0], b=[0.0, 1.0]), table(a=[0.0, 1.0], b=[0.0, 0.5])
    found = score(ColumnEarthMoversDistance(), x, y)
    assert found.by_column == pytest.approx({"a": 0, "b": 0.25})
    assert found.value == pytest.approx(0.125)
    assert value(ColumnEarthMoversDistance(over="worst"), x, y) == pytest.approx(0.25)


# Against SciPy ------------------------------------------------------------------------------------------


def test_agrees_with_scipy():
    rng = np.random.default_rng(1)
    x, y = np.rint(rng.normal(0, 20, 700)), np.rint(rng.normal(3, 30, 500))
    one, other = table(a=x), table(a=y)
    assert value(KolmogorovSmirnov(), one, other) == pytest.approx(ks_2samp(x, y).statistic, abs=1e-12)
    expected = wasserstein_distance(x, y) / np.ptp(x)
    assert value(ColumnEarthMoversDistance(), one, other) == pytest.approx(expected, abs=1e-12)
    edges = np.unique(np.quantile(x, np.arange(1, 20) / 20, method="inverted_cdf"))
    p, q = (np.bincount(np.searchsorted(edges, v), minlength=len(edges) + 1) / len(v) for v in (x, y))
    assert value(TotalVariation(), one, other) == pytest.approx(np.abs(p - q).sum() / 2, abs=1e-12)
    assert value(JensenShannon(), one, other) == pytest.approx(jensenshannon(p, q, base=2), abs=1e-12)
    apart = np.linalg.norm(np.sqrt(p) - np.sqrt(q)) / np.sqrt(2)
    assert value(Hellinger(), one, other) == pytest.approx(apart, abs=1e-12)


def test_large_values_keep_their_digits():
    x, y = np.arange(100.0), np.arange(100.0) + 0.5
    for shift in (0.0, 1e9):
        found = value(ColumnEarthMoversDistance(), table(a=x + shift), table(a=y + shift))
        assert found == pytest.approx(0.5 / 99, rel=1e-6)
    far = table(a=[-1.7e308, 1.7e308]), table(a=[1.7e308, 1.7e308])
    assert value(ColumnEarthMoversDistance(), *far) == pytest.approx(0.5)


# Weights ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", EVERY, ids=lambda measure: measure.name)
@pytest.mark.parametrize("kind", [Kind.CONTINUOUS, Kind.ORDINAL])
def test_a_weight_of_three_is_three_records(measure, kind):
    x, y = table(kind, a=[1, 2, 5, 9], weights=[3, 1, 1, 2]), table(kind, a=[1, 5, 7], weights=[1, 2, 1])
    long = table(kind, a=[1, 1, 1, 2, 5, 9, 9]), table(kind, a=[1, 5, 5, 7])
    assert value(measure, x, y) == pytest.approx(value(measure, *long), abs=1e-12)


def test_only_the_original_may_have_weights():
    x, y = table(Kind.NOMINAL, a=["a", "b"], weights=[3, 1]), table(Kind.NOMINAL, a=["a", "b"])
    assert value(TotalVariation(), x, y) == pytest.approx(0.25)


# Missing ------------------------------------------------------------------------------------------------


def test_suppression_costs_its_share():
    """One of ten suppressed: a tenth of the mass goes 1; whichever it is, nothing else has to move."""
    x = table(a=np.arange(10.0))
    for hole in (0, 4, 9):
        y = table(a=[None if i == hole else float(i) for i in range(10)])
        assert value(ColumnEarthMoversDistance(), x, y) == pytest.approx(0.1)
        assert value(ColumnEarthMoversDistance(), y, y) == 0
        assert value(TotalVariation(), x, y) == pytest.approx(0.1)
    # Above or below all others, whichever shows more: nine values shift by a tenth at the least.
    assert value(KolmogorovSmirnov(), x, table(a=[*np.arange(9.0), None])) == pytest.approx(0.1)
    nothing = table(a=[None] * 10)
    for measure in EVERY:
        assert value(measure, x, nothing.with_values("a", pl.Series([None] * 10, dtype=pl.Float64))) == 1


def test_agrees_with_the_distance_of_records_on_one_column():
    """The earth mover's distance of records, solved as a transport problem, on a single column with holes."""
    rng = np.random.default_rng(4)
    for n, m in ((20, 20), (15, 24)):
        x, y = rng.integers(0, 30, n).astype(float), rng.integers(0, 30, m).astype(float)
        x[rng.random(n) < 0.1], y[rng.random(m) < 0.4] = np.nan, np.nan
        one, other = table(a=x), table(a=y)
        expected = value(EarthMoversDistance(), one, other)
        assert value(ColumnEarthMoversDistance(), one, other) == pytest.approx(expected, abs=1e-9)


def test_codes_of_missing_values_are_missing():
    schema = Schema((Column("a", Kind.CONTINUOUS, missing=(-9,)),))
    x = Table(pl.DataFrame({"a": [0.0, 5.0, 10.0, -9.0]}), schema)
    assert value(ColumnEarthMoversDistance(), x, table(a=[0.0, 5.0, 10.0, None])) == 0


# Generalised values -------------------------------------------------------------------------------------


def test_intervals_of_whole_numbers_are_spread_over_them():
    """Twenty ages, in decades: spread evenly they are the ages again; at their middles they are not."""
    x = table(a=list(range(20, 40)))
    decades = table(a=intervals([20] * 10 + [30] * 10, [29] * 10 + [39] * 10))
    for measure in EVERY:
        assert value(measure, x, decades) == pytest.approx(0, abs=1e-7)
    middle = table(a=[24.5] * 10 + [34.5] * 10)
    for make in (type(measure) for measure in EVERY):
        assert value(make(generalised="midpoint"), x, decades) == pytest.approx(value(make(), x, middle))
    # From the middle to each of ten numbers is 2.5 on average, of a range of 19.
    found = value(ColumnEarthMoversDistance(generalised="midpoint"), x, decades)
    assert found == pytest.approx(2.5 / 19)


def test_the_worst_that_intervals_may_stand_for():
    """Half of the records may all be at 20, where the original has a twentieth."""
    x = table(a=list(range(20, 40)))
    decades = table(a=intervals([20] * 10 + [30] * 10, [29] * 10 + [39] * 10))
    assert value(KolmogorovSmirnov(generalised="worst"), x, decades) == pytest.approx(0.45)
    rng = np.random.default_rng(0)
    for _ in range(20):
        drawn = table(a=np.concatenate([rng.integers(20, 30, 10), rng.integers(30, 40, 10)]))
        assert value(KolmogorovSmirnov(), x, drawn) <= 0.45 + 1e-12
    assert value(KolmogorovSmirnov(generalised="worst"), x, x) == 0


def test_continuous_intervals_are_spread_to_half_a_part():
    rng = np.random.default_rng(2)
    x = table(a=np.concatenate(([0.0, 1.0], rng.uniform(size=5000))))
    halves = table(a=intervals([0.0, 0.5] * 50, [0.5, 1.0] * 50))
    # A sample of 5,002 is within 1.63 / √5002 = 0.023 of the uniform in 99 of 100 cases.
    assert value(KolmogorovSmirnov(), x, halves) < 0.023 + 0.5 / 100
    assert value(ColumnEarthMoversDistance(), x, halves) < 0.023


def test_unbounded_ends_are_those_of_the_original():
    x = table(a=list(range(10)))
    for lo, hi in ((None, None), (0, None), (None, 9)):
        star = table(a=intervals(pl.Series([lo] * 10, dtype=pl.Int64), pl.Series([hi] * 10, dtype=pl.Int64)))
        assert value(ColumnEarthMoversDistance(), x, star) == pytest.approx(0, abs=1e-12)


def test_a_missing_interval_is_missing():
    x = table(a=[1, 2, 3, 4])
    y = table(a=intervals([1, 1, 3, 3], [2, 2, 4, 4], missing=[False, False, False, True]))
    assert value(TotalVariation(), x, y) == pytest.approx(0.25)


def test_sets_of_words_are_spread_over_them():
    nodes = Nodes.of({"ab": ["a", "b"], "a": ["a"], "c": ["c"]}, leaves=["a", "b", "c"])
    x = table(Kind.NOMINAL, a=list("aabc"))
    y = Table(
        pl.DataFrame({"a": pl.Series(["ab", "ab", "a", "c"], dtype=nodes.dtype)}),
        x.schema,
        nodes={"a": nodes},
    )
    # ab twice is a once and b once; with the other a they are as before.
    for measure in (TotalVariation(), Hellinger(), JensenShannon(), ColumnEarthMoversDistance()):
        assert value(measure, x, y) == pytest.approx(0, abs=1e-7)
    stars = Table(pl.DataFrame({"a": pl.Series(["*"] * 4, dtype=nodes.dtype)}), x.schema, nodes={"a": nodes})
    assert value(TotalVariation(), x, stars) == pytest.approx(1 / 6)  # thirds against a half and two quarters


@pytest.mark.parametrize("kind", [Kind.ORDINAL, Kind.CONTINUOUS])
def test_sets_of_numbers_are_spread_over_them(kind):
    nodes = Nodes.of({"1-2": ["1", "2"], "3-4": ["3", "4"]}, leaves=["1", "2", "3", "4"])
    x = table(kind, a=[1, 2, 3, 4])
    frame = pl.DataFrame({"a": pl.Series(["1-2", "1-2", "3-4", "3-4"], dtype=nodes.dtype)})
    for told in (kind, Kind.NOMINAL):  # a recoded column may be called nominal
        y = Table(frame, Schema((Column("a", told),)), nodes={"a": nodes})
        assert value(ColumnEarthMoversDistance(), x, y) == pytest.approx(0, abs=1e-12)
        assert value(KolmogorovSmirnov(generalised="midpoint"), x, y) == pytest.approx(0.25)
        # At the middles 1.5 and 3.5 each of four values is half a step off, of a range of three.
        assert value(ColumnEarthMoversDistance(generalised="midpoint"), x, y) == pytest.approx(0.5 / 3)


def test_intervals_of_an_ordinal_column_are_read_by_its_numbers():
    x = table(Kind.ORDINAL, a=[1, 2, 3, 4])
    y = table(Kind.ORDINAL, a=intervals([1, 1, 3, 3], [2, 2, 4, 4]))
    for measure in EVERY:
        assert value(measure, x, y) == pytest.approx(0, abs=1e-7)


def test_a_generalised_original_is_the_same_as_itself():
    x = table(a=intervals([0, 0, 5], [4, 9, 9]))
    for measure in EVERY:
        assert value(measure, x, x) == 0


# What does not compare ----------------------------------------------------------------------------------


def test_columns_that_do_not_compare_are_left_out():
    x = table(a=[1.0, 2.0], b=[1.0, 2.0])
    y = Table(
        pl.DataFrame({"a": [1.0, 2.0], "b": ["low", "high"]}),
        Schema((Column("a", Kind.CONTINUOUS), Column("b", Kind.NOMINAL))),
    )
    found = score(TotalVariation(), x, y)
    assert set(found.by_column) == {"a"}
    assert found.details["columns_left_out"] == 1
    alone = score(TotalVariation(), x.select(["b"]), y.select(["b"]))
    assert alone.status is Status.REFUSED


def test_words_have_no_distribution_function():
    words = table(Kind.NOMINAL, a=["a", "b"])
    assert score(KolmogorovSmirnov(), words, words).status is Status.REFUSED


def test_no_records_no_distance():
    x = table(a=[1.0, 2.0])
    found = score(TotalVariation(), x, x.take(np.arange(0)))
    assert found.status is Status.NOT_ESTIMABLE


def test_records_need_not_map():
    x, y = table(a=np.arange(50.0)), table(a=np.arange(20.0))
    evidence = Evidence(x, Release.of(y, source_rows=None))
    for measure in EVERY:
        assert measure.score(evidence, Run(seed=1)).status is Status.OK


def test_measures_share_their_work():
    x, y = table(a=[1.0, 2.0]), table(a=[1.0, 3.0])
    evidence = Evidence(x, Release.of(y))
    for measure in EVERY:
        measure.score(evidence, Run(seed=1))
    assert len(evidence._memory) == 2

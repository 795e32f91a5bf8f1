"""Laws of distances between distributions: bounds, symmetry, the triangle, and growth with noise."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.testing import instances
from sfumato.utility.associations import (
    ContingencyDifference,
    CorrelationDifference,
    CramersVDifference,
    MutualInformationDifference,
)
from sfumato.utility.distributions import (
    ColumnEarthMoversDistance,
    Hellinger,
    JensenShannon,
    KolmogorovSmirnov,
    TotalVariation,
)
from sfumato.utility.estimates import EstimateDifference, IntervalOverlap
from sfumato.utility.slices import SlicedEarthMoversDistance

COLUMNS = [ColumnEarthMoversDistance, KolmogorovSmirnov, TotalVariation, Hellinger, JensenShannon]
PAIRS = [ContingencyDifference, CramersVDifference, MutualInformationDifference, CorrelationDifference]
ESTIMATES = [IntervalOverlap, EstimateDifference]

cell = st.one_of(st.none(), st.integers(0, 6))
rows = st.lists(st.tuples(cell, cell), min_size=1, max_size=15)


def table(records, kinds=(Kind.CONTINUOUS, Kind.NOMINAL)):
    columns = list(zip(*records, strict=True))
    frame = pl.DataFrame(
        {"a": pl.Series(columns[0], dtype=pl.Int64), "b": pl.Series(columns[1], dtype=pl.Int64)}
    )
    return Table(frame, Schema((Column("a", kinds[0]), Column("b", kinds[1]))))


def score(measure, original, protected):
    return measure.score(Evidence(original, protected), Run(seed=1))


def distances(make, kinds=(Kind.CONTINUOUS, Kind.NOMINAL)):
    """Score two lists of records by a measure."""

    def between(first, second):
        return score(make, table(first, kinds), table(second, kinds)).value

    return between


@pytest.mark.parametrize("make", COLUMNS)
@examples(20)
@given(first=rows, second=rows)
def test_within_bounds_and_zero_only_for_the_same_masses(make, first, second):
    found = score(make(), table(first), table(second))
    assert found.status is Status.OK
    assert make.bounds[0] <= found.value <= make.bounds[1]
    assert score(make(), table(first), table(first[::-1])).value == pytest.approx(0, abs=1e-9)
    for name, distance in found.by_column.items():
        shares = [
            each.frame[name].value_counts(normalize=True).sort(name).rows()
            for each in (table(first), table(second))
        ]
        # Bins of numbers see only what crosses an edge; functions and categories see everything.
        if make in COLUMNS[:2] or name == "b":
            assert (distance > 1e-9) == (shares[0] != shares[1])


@pytest.mark.parametrize("make", [TotalVariation, Hellinger, JensenShannon])
@examples(20)
@given(first=rows, second=rows, third=rows)
def test_metrics_on_categories(make, first, second, third):
    between = distances(make(), (Kind.NOMINAL, Kind.NOMINAL))
    assert between(first, second) == pytest.approx(between(second, first), abs=1e-12)
    assert between(first, third) <= between(first, second) + between(second, third) + 1e-9


@examples(20)
@given(first=rows, second=rows)
def test_how_the_distances_of_categories_compare(first, second):
    """H² ≤ TV ≤ √2 H, and J² ≤ TV (in bits)."""
    kinds = (Kind.NOMINAL, Kind.NOMINAL)
    variation, hellinger, jensen = (
        score(make(), table(first, kinds), table(second, kinds)).by_column
        for make in (TotalVariation, Hellinger, JensenShannon)
    )
    for name in "ab":
        assert hellinger[name] ** 2 <= variation[name] + 1e-12
        assert variation[name] <= np.sqrt(2) * hellinger[name] + 1e-12
        assert jensen[name] ** 2 <= variation[name] + 1e-12


@examples(20)
@given(first=rows, second=rows)
def test_distribution_functions_see_no_more_than_categories(first, second):
    kinds = (Kind.ORDINAL, Kind.ORDINAL)
    one, other = table(first, kinds), table(second, kinds)
    smirnov, variation = (score(make(), one, other).by_column for make in (KolmogorovSmirnov, TotalVariation))
    assert all(smirnov[name] <= variation[name] + 1e-12 for name in smirnov)


@examples(20)
@given(first=rows, second=rows)
def test_a_two_way_table_sees_at_least_each_column(first, second):
    kinds = (Kind.NOMINAL, Kind.NOMINAL)
    one, other = table(first, kinds), table(second, kinds)
    joint = score(ContingencyDifference(), one, other).value
    alone = score(TotalVariation(), one, other).by_column
    assert max(alone.values()) <= joint + 1e-12


@pytest.mark.parametrize("make", [*COLUMNS[:2], TotalVariation, *PAIRS, *ESTIMATES])
@examples(20)
@given(first=rows, second=rows, shift=st.sampled_from([-1000, 7, 10**6]))
def test_a_shift_of_both_changes_nothing(make, first, second, shift):
    moved = [[(None if a is None else a + shift, b) for a, b in each] for each in (first, second)]
    plain, other = score(make(), table(first), table(second)), score(make(), *map(table, moved))
    assert plain.status is other.status
    if plain.status is Status.OK:
        assert other.value == pytest.approx(plain.value, abs=1e-7)


ranges = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), min_size=1, max_size=12)


@examples(20)
@given(first=rows, spans=ranges)
def test_the_worst_of_intervals_bounds_every_reading(first, spans):
    original = table(first).select(["a"])
    lows = [low for low, _ in spans]
    shown = Table(pl.DataFrame({"a": intervals(lows, [low + w for low, w in spans])}), original.schema)
    worst = score(KolmogorovSmirnov(generalised="worst"), original, shown).value
    for generalised in ("midpoint", "expected"):
        assert score(KolmogorovSmirnov(generalised=generalised), original, shown).value <= worst + 1e-9


@examples(20)
@given(first=rows, spans=ranges)
def test_whole_intervals_are_their_numbers_written_out(first, spans):
    """Spreading a record over its numbers is the same as having one record for each, weighted."""
    original = table(first).select(["a"])
    shown = Table(
        pl.DataFrame({"a": intervals([low for low, _ in spans], [low + w for low, w in spans])}),
        original.schema,
    )
    times = 60  # the least common multiple of 1 to 5
    written = [low + step for low, w in spans for step in range(w + 1) for _ in range(times // (w + 1))]
    long = Table(pl.DataFrame({"a": pl.Series(written, dtype=pl.Int64)}), original.schema)
    for make in COLUMNS:
        found, expected = (score(make(), original, each).value for each in (shown, long))
        assert found == pytest.approx(expected, abs=1e-7)


MADE = [*COLUMNS, *PAIRS, *ESTIMATES, SlicedEarthMoversDistance]


@pytest.mark.parametrize("make", MADE)
@examples(20)
@given(data=st.data())
def test_every_setting_gives_a_score(make, data):
    """The whole declared domain, on a small table with holes, warnings being errors."""
    measure = data.draw(instances(make))
    if isinstance(measure, SlicedEarthMoversDistance):
        measure = SlicedEarthMoversDistance(directions=min(measure.directions, 50))
    first, second = data.draw(rows), data.draw(rows)
    found = score(measure, table(first), table(second))
    if found.status in {Status.OK, Status.APPROXIMATE}:
        assert make.bounds[0] <= found.value <= make.bounds[1]
    else:
        assert found.reason


NOISY = [make() for make in (*COLUMNS, ContingencyDifference, CorrelationDifference)]
NOISY += [SlicedEarthMoversDistance(directions=20), EstimateDifference(of="variance")]
NOISY += [IntervalOverlap(of="variance"), IntervalOverlap(of="correlation")]


@pytest.mark.parametrize("measure", NOISY, ids=str)
def test_more_noise_is_less_useful(measure):
    """Means of eight releases at four levels of noise, each worse than the one before."""
    rng = np.random.default_rng(3)
    common = rng.normal(size=400)
    x = np.column_stack([common + 0.4 * rng.normal(size=400) for _ in range(2)])

    def told(values):
        frame = pl.DataFrame({"a": values[:, 0], "b": values[:, 1]})
        return Table(frame, Schema((Column("a", Kind.CONTINUOUS), Column("b", Kind.CONTINUOUS))))

    means = []
    for level in (0.3, 0.6, 1.2, 2.4):
        releases = [told(x + level * rng.normal(size=x.shape)) for _ in range(8)]
        means.append(np.mean([score(measure, told(x), release).value for release in releases]))
    worse = np.diff(means) if measure.better == "low" else -np.diff(means)
    assert (worse >= 0).all()
    assert worse.sum() > 0

"""Laws of information loss: readings against enumeration, bounds, only identity is free, monotone in noise."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairs import numeric, score, table
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Kind
from sfumato.utility.ambiguity import Ambiguity, NonUniformEntropy
from sfumato.utility.cells import CellsChanged, SuppressedCells
from sfumato.utility.classes import AverageClassSize, Discernibility
from sfumato.utility.divergence import KullbackLeiblerDivergence
from sfumato.utility.generalisation import GeneralisedInformationLoss, PrecisionLoss
from sfumato.utility.losses import Il1, Il1s, SseRatio
from sfumato.utility.permutation import RankUtility
from sfumato.utility.probabilistic_loss import ProbabilisticInformationLoss
from sfumato.utility.spectrum import EigenvalueDifference, InverseCorrelationLoss

LEAVES = list(range(7))

#: A released cell: a set of values, all of them for the wildcard, none for a missing one.
cells = st.one_of(
    st.sets(st.sampled_from(LEAVES), min_size=1, max_size=5).map(frozenset),
    st.just("*"),
    st.none(),
)
records = st.lists(st.tuples(st.sampled_from([*LEAVES, None]), cells), min_size=2, max_size=10)


def as_labels(shown, kind):
    """Sets of values as a node column."""
    groups = {frozenset(each) for each in shown if each not in {None, "*"}}
    name = {group: "".join(map(str, sorted(group))) + "s" for group in groups}
    nodes = Nodes.of({name[g]: [str(v) for v in sorted(g)] for g in groups}, leaves=[str(v) for v in LEAVES])
    labels = [each if each in {None, "*"} else name[frozenset(each)] for each in shown]
    return table({"x": pl.Series(labels, dtype=nodes.dtype)}, kind, nodes={"x": nodes})


def as_ranges(shown):
    """Sets of values as an interval column, from the least to the greatest."""
    gone = [each is None for each in shown]
    lows, highs = ([None if each in {None, "*"} else end(each) for each in shown] for end in (min, max))
    return table(
        {"x": intervals(pl.Series(lows, dtype=pl.Int64), pl.Series(highs, dtype=pl.Int64), missing=gone)}
    )


def naive_numbers(truth, shown, reading, *, ranges):
    """Distances and squares of each cell, one after the other."""
    there = [value for value in truth if value is not None]
    found = []
    for value, cell in zip(truth, shown, strict=True):
        if value is None:
            continue
        silent = cell in {None, "*"}
        if silent:
            members = there
            middle = np.mean(there)
            ends = (min(LEAVES), max(LEAVES)) if not ranges else (min(there), max(there))
        else:
            members = range(min(cell), max(cell) + 1) if ranges else sorted(cell)
            middle, ends = (min(cell) + max(cell)) / 2, (min(cell), max(cell))
        if reading == "midpoint":
            found.append((abs(value - middle), (value - middle) ** 2))
        elif reading == "worst":
            farthest = max(abs(value - end) for end in ends)
            found.append((farthest, farthest**2))
        else:
            found.append(
                (np.mean([abs(value - m) for m in members]), np.mean([(value - m) ** 2 for m in members]))
            )
    return np.array(found).mean(axis=0)


@given(records, st.sampled_from(["midpoint", "worst", "expected"]), st.booleans())
def test_ranges_and_sets_of_numbers_against_enumeration(pairs, reading, ranges):
    truth, shown = zip(*pairs, strict=True)
    there = [value for value in truth if value is not None]
    if len(set(there)) < 2:
        return
    x = table({"x": pl.Series(truth, dtype=pl.Int64)})
    y = as_ranges(shown) if ranges else as_labels(shown, Kind.CONTINUOUS)
    distance, square = naive_numbers(truth, shown, reading, ranges=ranges)
    found = score(Il1s(generalised=reading), x, y)
    assert found.value == pytest.approx(distance / (np.sqrt(2) * np.std(there, ddof=1)), abs=1e-9)
    assert score(SseRatio(generalised=reading), x, y).value == pytest.approx(square / np.var(there), abs=1e-9)


def naive_words(truth, shown, reading):
    """Squares between corners of a simplex: each word is a unit vector, a set the mean of its own."""
    corner = dict(zip(LEAVES, np.eye(len(LEAVES)), strict=True))
    there = [value for value in truth if value is not None]
    found = []
    for value, cell in zip(truth, shown, strict=True):
        if value is None:
            continue
        members = there if cell in {None, "*"} else sorted(cell)
        apart = [((corner[value] - corner[m]) ** 2).sum() for m in members]
        centre = np.mean([corner[m] for m in members], axis=0)
        middle = ((corner[value] - centre) ** 2).sum()
        found.append({"midpoint": middle, "worst": max(apart), "expected": np.mean(apart)}[reading])
    centre = np.mean([corner[value] for value in there], axis=0)
    return np.mean(found) / np.mean([((corner[value] - centre) ** 2).sum() for value in there])


@given(records, st.sampled_from(["midpoint", "worst", "expected"]))
def test_sets_of_words_against_enumeration(pairs, reading):
    truth, shown = zip(*pairs, strict=True)
    if len({value for value in truth if value is not None}) < 2:
        return
    x = table({"x": pl.Series([None if v is None else str(v) for v in truth], dtype=pl.String)}, Kind.NOMINAL)
    found = score(SseRatio(generalised=reading), x, as_labels(shown, Kind.NOMINAL))
    assert found.value == pytest.approx(naive_words(truth, shown, reading), abs=1e-9)


@given(records)
def test_possibilities_and_bits_against_enumeration(pairs):
    truth, shown = zip(*pairs, strict=True)
    there = [value for value in truth if value is not None]
    if not there:
        return
    x = table({"x": pl.Series([None if v is None else str(v) for v in truth], dtype=pl.String)}, Kind.NOMINAL)
    y = as_labels(shown, Kind.NOMINAL)
    sizes, widths, bits, total = [], [], 0.0, 0.0
    for value, cell in zip(truth, shown, strict=True):
        if value is None:
            sizes.append(1)
            continue
        members = set(LEAVES) if cell in {None, "*"} else cell
        sizes.append(max(len(set(there) & set(members)), 1))  # of the values of the original
        widths.append((len(members) - 1) / (len(LEAVES) - 1))
        among = there if value not in members or cell in {None, "*"} else [v for v in there if v in members]
        bits -= np.log2(there.count(value) / len(among))
        total -= np.log2(there.count(value) / len(there))
    assert score(Ambiguity(), x, y).value == pytest.approx(np.mean(sizes))
    assert score(GeneralisedInformationLoss(), x, y).value == pytest.approx(np.mean(widths))
    if total > 0:
        assert score(NonUniformEntropy(), x, y).value == pytest.approx(bits / total, abs=1e-12)
    lost = sum(value is not None and cell in {None, "*"} for value, cell in pairs)
    assert score(SuppressedCells(), x, y).value == pytest.approx(lost / len(there))
    kept = sum(
        (value is None and cell is None) or (value is not None and cell == frozenset({value}))
        for value, cell in pairs
    )
    assert score(CellsChanged(), x, y).value == pytest.approx(1 - kept / len(pairs))


@given(records)
def test_the_worst_reading_is_worst_and_bounds_hold(pairs):
    truth, shown = zip(*pairs, strict=True)
    if all(value is None for value in truth):
        return
    x = table({"x": pl.Series(truth, dtype=pl.Int64)})
    y = as_labels(shown, Kind.CONTINUOUS)
    for cls in (Il1s, SseRatio):
        worst, middle, expected = (
            score(cls(generalised=reading), x, y).value for reading in ("worst", "midpoint", "expected")
        )
        if np.ptp([value for value in truth if value is not None]) > 0:  # else the unit differs
            assert worst >= middle - 1e-12
            assert worst >= expected - 1e-12
    for cls in (GeneralisedInformationLoss, PrecisionLoss, SuppressedCells, CellsChanged):
        assert 0 <= score(cls(), x, y).value <= 1


tables = st.tuples(st.integers(2, 12), st.integers(1, 3), st.integers(0, 10**6)).map(
    lambda shape: np.random.default_rng(shape[2]).integers(0, 4, shape[:2]).astype(float)
)


@given(tables, st.data())
def test_only_identity_is_free(x, data):
    """One cell moved is a loss to all that compare records."""
    y = x.copy()
    i = data.draw(st.integers(0, x.shape[0] - 1))
    j = data.draw(st.integers(0, x.shape[1] - 1))
    y[i, j] += data.draw(st.sampled_from([-3.0, 0.25, 7.0]))
    for cls in (Il1s, Il1, SseRatio, CellsChanged):
        assert score(cls(), numeric(x), numeric(x)).value == 0
        assert score(cls(), numeric(x), numeric(y)).value > 0


@given(tables)
def test_identity_is_the_extreme_of_statistics(x):
    for measure, best in (
        (ProbabilisticInformationLoss(), 0.0),
        (EigenvalueDifference(), 0.0),
        (InverseCorrelationLoss(), 0.0),
        (RankUtility(), 1.0),
        (KullbackLeiblerDivergence(), 0.0),
        (KullbackLeiblerDivergence(dimension="two"), 0.0),
    ):
        turned = x[np.random.default_rng(1).permutation(len(x))]
        found = score(measure, numeric(x), numeric(turned))
        assert np.isnan(found.value) or found.value == pytest.approx(best, abs=1e-9)


@given(tables, st.integers(0, 10**6), st.sampled_from([1e-6, 1.0, 1e6]))
def test_inverse_correlations_have_no_unit_and_a_bound(x, seed, unit):
    y = x + np.random.default_rng(seed).integers(-2, 3, x.shape)
    found = score(InverseCorrelationLoss(), numeric(x), numeric(y)).value
    assert np.isnan(found) or 0 <= found <= 1
    moved = score(InverseCorrelationLoss(), numeric(x), numeric(3 + unit * y)).value
    assert moved == pytest.approx(found, abs=1e-6, nan_ok=True)


@given(tables)
def test_coarser_is_never_better(x):
    """Suppressing one more column costs, or at least gains nothing."""
    some = numeric(x).with_values("a", pl.Series([None] * len(x), dtype=pl.Float64))
    for cls in (
        GeneralisedInformationLoss,
        PrecisionLoss,
        SuppressedCells,
        Ambiguity,
        Discernibility,
        AverageClassSize,
    ):
        assert score(cls(), numeric(x), some).value >= score(cls(), numeric(x), numeric(x)).value


@pytest.mark.parametrize(
    "measure",
    [
        Il1s(),
        Il1(),
        SseRatio(),
        ProbabilisticInformationLoss(),
        EigenvalueDifference(),
        RankUtility(),
        RankUtility(of="standardised"),
        KullbackLeiblerDivergence(),
        KullbackLeiblerDivergence(dimension="two"),
        NonUniformEntropy(),
    ],
    ids=str,
)
def test_more_noise_is_not_better_on_average(measure):
    """Means over 12 fixed draws at noise of 0, 5, 20, 80 and 320 per cent of each deviation."""
    rng = np.random.default_rng(12)
    x = rng.lognormal(size=(200, 1)) + rng.lognormal(size=(200, 3))
    means = []
    for share in (0.0, 0.05, 0.2, 0.8, 3.2):
        draws = (np.random.default_rng(100 + d).normal(size=x.shape) * x.std(axis=0) for d in range(12))
        means.append(np.mean([score(measure, numeric(x), numeric(x + share * draw)).value for draw in draws]))
    steps = np.diff(means) if measure.better == "low" else -np.diff(means)
    assert (steps >= -1e-12).all(), means
    assert steps.sum() > 0.1

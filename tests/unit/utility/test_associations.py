"""Associations of pairs of columns: by hand, against SciPy, and with every sort of value."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr
from scipy.stats.contingency import association

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.utility import _binnings as binnings
from sfumato.utility.associations import (
    ContingencyDifference,
    CorrelationDifference,
    CramersVDifference,
    MutualInformationDifference,
    cramers_v,
    mutual_information,
)

COUNTED = [ContingencyDifference(), CramersVDifference(), MutualInformationDifference()]


def table(kind=Kind.NOMINAL, nodes=None, weights=None, **columns):
    frame = pl.DataFrame(columns, strict=False)
    described = [Column(name, kind) for name in columns]
    if weights is not None:
        frame = frame.with_columns(pl.Series("weight", weights, dtype=pl.Float64))
        described.append(Column("weight", Kind.CONTINUOUS, Role.WEIGHT))
    return Table(frame, Schema(tuple(described)), nodes=nodes or {})


def numbers(**columns):
    return table(Kind.CONTINUOUS, **columns)


def score(measure, original, protected):
    return measure.score(Evidence(original, protected), Run(seed=1))


def value(measure, original, protected):
    found = score(measure, original, protected)
    assert found.status is Status.OK
    return found.value


# By hand and against SciPy ------------------------------------------------------------------------------


def test_by_hand():
    """Two words that always go together, and the same words crossed: all that was told is gone."""
    x = table(a=list("aabb"), b=list("xxyy"))
    y = table(a=list("aabb"), b=list("xyxy"))
    # Cells (1/2, 0, 0, 1/2) and four quarters.
    assert value(ContingencyDifference(), x, y) == pytest.approx(0.5)
    assert value(CramersVDifference(), x, y) == pytest.approx(1)
    assert value(MutualInformationDifference(), x, y) == pytest.approx(1)
    assert value(MutualInformationDifference(normalised=False), x, y) == pytest.approx(1)  # one bit


def test_correlation_by_hand():
    x = numbers(a=[1, 2, 3], b=[1, 2, 3])
    assert value(CorrelationDifference(), x, numbers(a=[1, 2, 3], b=[3, 2, 1])) == pytest.approx(2)
    assert value(CorrelationDifference(), x, numbers(a=[1, 2, 3], b=[1, 3, 2])) == pytest.approx(0.5)


def test_v_agrees_with_scipy():
    rng = np.random.default_rng(5)
    for shape in ((2, 2), (3, 5), (6, 4)):
        counts = rng.integers(1, 30, shape)
        expected = association(counts, method="cramer", correction=False)
        assert cramers_v(counts / counts.sum()) == pytest.approx(expected, abs=1e-12)


def test_information_by_entropies():
    """I = H(a) + H(b) − H(a, b)."""
    rng = np.random.default_rng(6)
    joint = rng.dirichlet(np.ones(12)).reshape(3, 4)

    def entropy(p):
        return -(p * np.log2(p)).sum()

    rows, columns = entropy(joint.sum(axis=1)), entropy(joint.sum(axis=0))
    shared = rows + columns - entropy(joint)
    assert mutual_information(joint, normalised=False) == pytest.approx(shared, abs=1e-12)
    assert mutual_information(joint, normalised=True) == pytest.approx(shared / np.sqrt(rows * columns))


def test_weak_associations_keep_their_digits():
    """V of independent columns is 0, and not the root of a rounding error."""
    joint = np.outer([0.1, 0.2, 0.7], [0.3, 0.3, 0.4])
    assert cramers_v(joint) < 1e-15


def test_correlations_agree_with_numpy():
    rng = np.random.default_rng(7)
    x = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 3)) + 1e6
    y = x + rng.normal(size=x.shape)
    names = "abc"
    one, other = (numbers(**dict(zip(names, each.T, strict=True))) for each in (x, y))
    upper = np.triu_indices(3, 1)
    expected = np.abs(np.corrcoef(x.T) - np.corrcoef(y.T))[upper].mean()
    assert value(CorrelationDifference(), one, other) == pytest.approx(expected, abs=1e-10)
    ranked = np.abs(spearmanr(x).statistic - spearmanr(y).statistic)[upper].mean()
    assert value(CorrelationDifference(by="rank"), one, other) == pytest.approx(ranked, abs=1e-10)


def test_the_worst_pair_is_named():
    x = numbers(a=[1, 2, 3, 4], b=[1, 2, 3, 4], c=[1, 2, 3, 4])
    y = numbers(a=[1, 2, 3, 4], b=[1, 2, 3, 4], c=[4, 3, 2, 1])
    found = score(CorrelationDifference(), x, y)
    assert found.value == pytest.approx(4 / 3)
    assert found.details["worst_pair"] == "b × c"
    assert found.by_column == pytest.approx({"a": 1, "b": 1, "c": 2})
    assert value(CorrelationDifference(over="worst"), x, y) == pytest.approx(2)


# Numbers in bins, many categories -----------------------------------------------------------------------


def test_numbers_are_cut_at_the_originals_quantiles():
    """Ten bins of ten: swapping the two halves of one column puts every record into another cell."""
    x = numbers(a=np.arange(100), b=np.arange(100))
    y = numbers(a=np.arange(100), b=np.roll(np.arange(100), 50))
    assert value(ContingencyDifference(bins=10), x, y) == pytest.approx(1)
    within = numbers(a=np.arange(100), b=np.arange(100).reshape(10, 10)[:, ::-1].ravel())
    assert value(ContingencyDifference(bins=10), x, within) == 0


def test_rare_categories_share_one():
    words = [f"w{i}" for i in range(60)]
    x = table(a=["common"] * 60 + words, b=["x"] * 120)
    y = table(a=["common"] * 60 + words[::-1], b=["x"] * 120)
    shuffled = table(a=["common"] * 60 + ["w0"] * 60, b=["x"] * 120)
    assert value(ContingencyDifference(categories=2), x, y) == 0
    assert value(ContingencyDifference(categories=2), x, shuffled) == 0
    assert value(ContingencyDifference(categories=100), x, shuffled) == pytest.approx(59 / 120)


def test_constants_go_with_nothing():
    x = numbers(a=[1, 1, 1, 1], b=[1, 2, 3, 4])
    for measure in (*COUNTED, CorrelationDifference()):
        assert value(measure, x, x) == 0
    y = numbers(a=[1, 2, 3, 4], b=[1, 2, 3, 4])
    assert value(CorrelationDifference(), x, y) == pytest.approx(1)


# Weights, missing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", [*COUNTED, CorrelationDifference(), CorrelationDifference(by="value")])
def test_a_weight_of_two_is_two_records(measure):
    x = table(Kind.ORDINAL, a=[1, 2, 3], b=[1, 3, 2], weights=[2, 1, 2])
    y = table(Kind.ORDINAL, a=[1, 2, 2], b=[1, 3, 1], weights=[1, 2, 1])
    long = (
        table(Kind.ORDINAL, a=[1, 1, 2, 3, 3], b=[1, 1, 3, 2, 2]),
        table(Kind.ORDINAL, a=[1, 2, 2, 2], b=[1, 3, 3, 1]),
    )
    assert value(measure, x, y) == pytest.approx(value(measure, *long), abs=1e-12)


def test_missing_is_a_category():
    x = table(a=["a", "a", "b", "b"], b=["x", "x", "y", "y"])
    y = table(a=["a", None, "b", "b"], b=["x", "x", "y", "y"])
    assert value(ContingencyDifference(), x, y) == pytest.approx(0.25)


def test_correlations_use_the_records_that_have_both():
    rng = np.random.default_rng(8)
    x = rng.normal(size=(60, 3))
    y = x.copy()
    y[:20, 0], y[10:30, 1] = np.nan, np.nan
    one, other = (numbers(**dict(zip("abc", each.T, strict=True))) for each in (x, y))
    differences = []
    for i, j in ((0, 1), (0, 2), (1, 2)):
        both = ~np.isnan(y[:, i]) & ~np.isnan(y[:, j])
        differences.append(abs(np.corrcoef(x[:, i], x[:, j])[0, 1] - np.corrcoef(y[both][:, [i, j]].T)[0, 1]))
    assert value(CorrelationDifference(), one, other) == pytest.approx(np.mean(differences), abs=1e-12)


def test_nothing_in_common_is_not_estimable():
    x = numbers(a=[1.0, None], b=[None, 1.0])
    assert score(CorrelationDifference(), x, x).status is Status.NOT_ESTIMABLE


# Generalised values -------------------------------------------------------------------------------------


def ages(widths):
    """Ages of 20 to 39, each with its double; the release shows decades, or ranges of other widths."""
    x = numbers(a=np.repeat(np.arange(20, 40), 2), b=np.tile([0, 1], 20))
    lows = np.repeat(20 + widths * (np.arange(20) // widths), 2)
    return x, numbers(a=intervals(lows, lows + widths - 1), b=np.tile([0, 1], 20))


def test_intervals_are_spread_over_their_cells():
    x, y = ages(10)
    assert value(ContingencyDifference(bins=20), x, y) == pytest.approx(0, abs=1e-12)
    middles = ContingencyDifference(bins=20, generalised="midpoint")
    assert value(middles, x, y) == pytest.approx(0.9)  # four cells of ten are where the original has one each


def test_many_cells_give_the_same_as_few(monkeypatch):
    rng = np.random.default_rng(3)
    x, y = ages(5)
    y = y.with_values("b", pl.Series(rng.integers(0, 2, 40)))
    few = [value(measure, x, y) for measure in COUNTED]
    monkeypatch.setattr(binnings, "_DENSE_CELLS", 1)
    assert [value(measure, x, y) for measure in COUNTED] == pytest.approx(few, abs=1e-12)


def test_sets_of_words_are_spread_over_their_cells():
    nodes = Nodes.of({"ab": ["a", "b"], "c": ["c"]}, leaves=["a", "b", "c"])
    x = table(a=["a", "b", "c", "c"], b=["x", "x", "y", "y"])
    labels = pl.Series(["ab", "ab", "c", "c"], dtype=nodes.dtype)
    y = Table(x.frame.with_columns(a=labels), x.schema, nodes={"a": nodes})
    for measure in COUNTED:
        assert value(measure, x, y) == pytest.approx(0, abs=1e-12)


def test_the_unit_does_not_count_where_there_are_intervals():
    def lost(unit):
        low, high = np.array([0.0, 1, 2, 5]) * unit, np.array([1.0, 3, 2, 6]) * unit
        other = [1.0, 2, 4, 3]
        return value(
            CorrelationDifference(),
            numbers(a=(low + high) / 2, b=other),
            numbers(a=intervals(low, high), b=other),
        )

    assert lost(1e307) == pytest.approx(lost(1.0))


def test_what_varies_within_intervals_shrinks_correlations():
    """a = b on 0…99; decades keep the covariance of their middles, and the variance of all numbers."""
    numbers_a = np.arange(100)
    lows = numbers_a // 10 * 10
    x = numbers(a=numbers_a, b=numbers_a)
    y = numbers(a=intervals(lows, lows + 9), b=numbers_a)
    middle = np.corrcoef(lows + 4.5, numbers_a)[0, 1]
    assert value(CorrelationDifference(generalised="midpoint"), x, y) == pytest.approx(1 - middle)
    shrink = np.std(lows + 4.5) / np.std(
        numbers_a
    )  # the decades are spread over exactly the numbers there were
    assert value(CorrelationDifference(), x, y) == pytest.approx(1 - middle * shrink)


# What does not compare ----------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", [*COUNTED, CorrelationDifference()])
def test_one_column_is_no_pair(measure):
    alone = numbers(a=[1, 2])
    assert score(measure, alone, alone).status is Status.REFUSED


def test_measures_share_their_tables():
    evidence = Evidence(table(a=["a", "b"], b=["x", "y"]), table(a=["a", "b"], b=["y", "x"]))
    for measure in COUNTED:
        measure.score(evidence, Run(seed=1))
    assert len(evidence._memory) == 1

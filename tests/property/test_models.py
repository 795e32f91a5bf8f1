"""Laws of the measures by models, on tables that have a column to explain."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release, reorder
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.utility.classification import ClassificationMetric
from sfumato.utility.clustering import ClusterAgreement, ClusterStructure
from sfumato.utility.prediction import Prediction, PredictionError
from sfumato.utility.propensity import PropensityMeanSquare, PropensityRatio
from sfumato.utility.queries import QueryError
from sfumato.utility.regression import CoefficientOverlap

MEASURES = [
    PropensityMeanSquare(),
    PropensityRatio(effects="main"),
    CoefficientOverlap(),
    Prediction(folds=2, repeats=1),
    PredictionError(folds=2, repeats=1, score_by="mae"),
    ClusterAgreement(clusters=3, starts=2),
    ClusterAgreement(clusters=2, starts=1, index="fowlkes-mallows"),
    ClusterStructure(clusters=2, starts=1),
    ClusterStructure(clusters=3, starts=1, index="davies-bouldin"),
    QueryError(queries=30),
    ClassificationMetric(),
]

SCHEMA = Schema(
    (
        Column("amount", Kind.CONTINUOUS, Role.SENSITIVE),
        Column("answer", Kind.NOMINAL, Role.SENSITIVE),
        Column("grade", Kind.ORDINAL, Role.KEY, order=("low", "middle", "high")),
        Column("number", Kind.CONTINUOUS, Role.KEY),
        Column("place", Kind.NOMINAL, Role.KEY),
        Column("weight", Kind.CONTINUOUS, Role.WEIGHT),
    )
)


def a_table(n, holes, seed):
    """A table of every kind, with ties, weights and a share of holes."""
    rng = np.random.default_rng(seed)
    columns = {
        "amount": rng.integers(-5, 6, n).astype(float),
        "answer": rng.choice(["no", "yes"], n),
        "grade": rng.choice(["low", "middle", "high"], n),
        "number": rng.choice([0.0, 0.1, 1e9, -1e300], n),
        "place": rng.choice(list("abc"), n),
    }
    cells = [
        pl.Series(
            name,
            [
                None if gone else cell
                for cell, gone in zip(column.tolist(), rng.random(n) < holes, strict=True)
            ],
            dtype=pl.Float64 if column.dtype.kind == "f" else pl.String,
        )
        for name, column in columns.items()
    ]
    return Table(pl.DataFrame([*cells, pl.Series("weight", rng.choice([1.0, 2.5], n))]), SCHEMA)


#: Drawn by seed, not by cell: a table has too many of them.
tables = st.builds(a_table, st.integers(1, 25), st.sampled_from([0.0, 0.2, 1.0]), st.integers(0, 10**6))


@st.composite
def releases(draw):
    """A table beside another that some of its records became."""
    original, other = draw(tables), draw(tables)
    if draw(st.booleans()):
        return Evidence(original, Release.of(other))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    return Evidence(original, Release.of(other, source_rows=rng.integers(-1, len(original), len(other))))


def value(measure, evidence):
    return measure.score(evidence, Run(seed=7))


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@given(evidence=releases())
@examples(15)
def test_a_number_within_bounds_or_a_reason(measure, evidence):
    found = value(measure, evidence)
    if found.status is Status.OK:
        assert measure.bounds[0] <= found.value <= measure.bounds[1]
        for each in found.by_column.values():
            assert measure.bounds[0] <= each <= measure.bounds[1]
    else:
        assert np.isnan(found.value)
        assert found.reason


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@given(evidence=releases(), seed=st.integers(0, 9))
@examples(10)
def test_neither_the_order_of_records_nor_of_columns_counts(measure, evidence, seed):
    rng = np.random.default_rng(seed)
    release = Release.of(evidence.protected, source_rows=evidence.source_rows)
    turned = reorder(release, rng.permutation(len(evidence.protected)))
    names = list(rng.permutation(SCHEMA.names))
    other = Evidence(
        evidence.original.select(names),
        Release.of(turned.table.select(names), source_rows=turned.source_rows),
    )
    np.testing.assert_allclose(value(measure, other).value, value(measure, evidence).value, rtol=1e-12)


#: What the original itself must score; of predictions nobody knows, but that it equals the baseline.
BEST = {
    "pmse": 0.0,
    "pmse-ratio": 0.0,
    "coefficient-overlap": 1.0,
    "cluster-agreement": 1.0,
    "cluster-structure": 0.0,
    "query-error": 0.0,
}


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@given(original=tables)
@examples(15)
def test_the_original_is_the_best_release(measure, original):
    found = value(measure, Evidence(original, Release.of(original, source_rows=np.arange(len(original)))))
    if found.status is Status.OK:
        assert found.value == BEST.get(measure.name, found.baseline)


# ------------------------------------------------------------------------------------------------ noise


def people(n, seed):
    """A table in which all hangs together."""
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(2, n)) + 2 * rng.integers(-1, 2, size=(1, n))
    answer = np.where(x + z + 0.5 * rng.normal(size=n) > 0, "yes", "no")
    schema = Schema(
        (
            Column("amount", Kind.CONTINUOUS, Role.SENSITIVE),
            Column("answer", Kind.NOMINAL, Role.SENSITIVE),
            Column("x", Kind.CONTINUOUS, Role.KEY),
            Column("z", Kind.CONTINUOUS, Role.KEY),
        )
    )
    frame = pl.DataFrame({"amount": x - z + 0.5 * rng.normal(size=n), "answer": answer, "x": x, "z": z})
    return Table(frame, schema)


def noisy(table, scale, seed):
    """The same records with noise of so many deviations."""
    rng = np.random.default_rng(seed)
    protected = table
    for name in ("amount", "x", "z"):
        values = table.numbers(name)
        protected = protected.with_values(
            name, pl.Series(values + scale * values.std() * rng.normal(size=len(table)))
        )
    return Evidence(table, replace(Release.unchanged(table), tables=Release.of(protected).tables))


NOISED = [
    PropensityMeanSquare(),
    PropensityRatio(),
    CoefficientOverlap(target=("amount",)),
    Prediction(repeats=1),
    Prediction(repeats=1, score_by="auc"),
    PredictionError(repeats=1),
    ClusterAgreement(clusters=3),
    ClusterStructure(clusters=3),
    QueryError(queries=100),
]


@pytest.mark.parametrize("measure", NOISED, ids=str)
def test_more_noise_is_less_useful(measure):
    """Means over three tables: steps of noise so far apart that chance does not turn them."""
    means = [
        np.mean([value(measure, noisy(people(300, seed), scale, seed + 100)).value for seed in range(3)])
        for scale in (0.0, 0.3, 1.0, 4.0)
    ]
    for less, more in pairwise(means):
        assert measure.is_better(less, more), means

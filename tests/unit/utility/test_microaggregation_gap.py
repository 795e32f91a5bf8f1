"""The gap of a microaggregation against worked tables and every partition there is."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.methods import IndividualRanking, KWard, Mdav, Mondrian, SpanningTreeMicroaggregation
from sfumato.utility.microaggregation_gap import MicroaggregationGap


def mixed(n, seed=1):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "age": rng.integers(20, 80, n),
            "income": rng.lognormal(3, 1, n).round(1),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    kinds = (Kind.CONTINUOUS, Kind.CONTINUOUS, Kind.NOMINAL)
    return Table(frame, Schema(tuple(map(Column, frame.columns, kinds))))


def gap_of(table, release):
    return MicroaggregationGap().score(Evidence(table, release), Run(seed=1))


@pytest.mark.parametrize("method", [Mdav(k=3), KWard(k=3), SpanningTreeMicroaggregation(k=3)])
def test_every_microaggregation_has_a_gap(method):
    table = mixed(60)
    score = gap_of(table, method.protect(table, Run(seed=1)))
    assert score.status is Status.OK
    assert 0 <= score.value < 0.5
    assert score.details["k"] == 3
    assert score.details["least_loss"] <= score.details["loss"]
    assert score.value == pytest.approx(1 - score.details["least_loss"] / score.details["loss"])


def test_a_bad_partition_has_a_wide_gap_that_covers_the_best():
    values = np.array([0.0, 0.1, 5.0, 5.2, 9.0, 9.3])
    best = min(
        sum(np.ptp(values[list(pair)]) ** 2 / 2 for pair in (one, two, three))
        for one in combinations(range(6), 2)
        for two in combinations(sorted({*range(6)} - {*one}), 2)
        for three in [tuple({*range(6)} - {*one} - {*two})]
    )
    table = Table(pl.DataFrame({"x": values}), Schema((Column("x", Kind.CONTINUOUS),)))
    shown = table.with_values("x", pl.Series([2.5, 4.55, 2.5, 7.2, 4.55, 7.2]))  # pairs across the clusters
    score = gap_of(table, Release.record_by_record(shown))
    loss = sum((values[i] - values[j]) ** 2 / 2 for i, j in ((0, 2), (1, 4), (3, 5)))
    assert score.value >= 1 - best / loss
    assert score.value == pytest.approx(1 - best / loss, abs=1e-6)


def test_what_has_no_groups_has_no_gap():
    table = mixed(30)
    numbers = table.aimed_at(("age", "income"))
    for release in (
        Release.unchanged(table),
        IndividualRanking(k=3).protect(numbers, Run(seed=1)),
        Mondrian(k=3).protect(numbers, Run(seed=1)),
    ):
        score = gap_of(table, release)
        assert (score.status, bool(score.reason)) == (Status.NOT_ESTIMABLE, True)


def test_missing_values_and_records_left_out_are_no_obstacle():
    table = mixed(40)
    table = table.with_values("income", pl.Series([None, *table.frame["income"][1:]]))
    release = Mdav(k=4).protect(table.aimed_at(("age", "sex")), Run(seed=1))
    kept = np.arange(40) != 7
    part = Release.of(release.table.take(np.flatnonzero(kept)), source_rows=np.flatnonzero(kept))
    score = gap_of(table, part)
    assert (score.status, score.details["k"]) == (Status.OK, 3)

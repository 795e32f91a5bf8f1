"""The worst score that a measure declares is reached by some release and passed by none."""

import math

import numpy as np
import polars as pl
import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.requirement import parse_measure
from sfumato.core.run import Run
from sfumato.core.waves import Waves
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table

SCHEMA = Schema(
    (
        Column("who", Kind.NOMINAL, Role.PERSON),
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("area", Kind.NOMINAL, Role.KEY),
        Column("ill", Kind.NOMINAL, Role.SENSITIVE),
    )
)

#: Whose worst depends on settings, or is not the number that nothing would have.
MEASURES = [
    "k", "k(missing=any)", "k(missing=worst)", "l", "l(missing=worst)", "l(kind=entropy)", "l(kind=recursive)",
    "l(kind=recursive, c=1)", "l(kind=recursive, c=0.4)", "recursive-diversity(l=1)", "p", "p(missing=worst)",
    "xy-anonymity", "lkc-privacy", "lkc-privacy(c=1)", "alpha", "prosecutor-risk", "uniqueness", "dbrl",
    "m-invariance", "pk-angelisation(bucket=area)",
]  # fmt: skip


def some_table(rng):
    """Few people of few values, some missing, some twice, or all the same."""
    n, values = int(rng.integers(1, 9)), int(rng.integers(1, 4))

    def column(choices):
        drawn = np.array(choices, dtype=object)[rng.integers(0, min(values, len(choices)), n)]
        drawn[rng.random(n) < rng.choice([0, 0.3])] = None
        return drawn.tolist()

    who = np.arange(n) if rng.random() < 0.7 else rng.integers(0, n, n)
    cells = {"age": column([20.0, 30.0, 41.0]), "area": column(["n", "s"]), "ill": column(["a", "b", "c"])}
    types = {"who": pl.String, "age": pl.Float64, "area": pl.String, "ill": pl.String}
    return Table(pl.DataFrame({"who": [f"p{each}" for each in who], **cells}, schema=types), SCHEMA)


def scores(measure, seed=1, tables=25):
    rng = np.random.default_rng(seed)
    for _ in range(tables):
        table = some_table(rng)
        rows = rng.permutation(len(table))[: int(rng.integers(1, len(table) + 1))]
        kept = table.take(rows).select(["age", "area", "ill"])
        for release in (
            Release.unchanged(table.select(["age", "area", "ill"])),
            Release.of(kept, source_rows=rows),
        ):
            evidence = Evidence(table, release, Scenario(columns=("age", "area")))
            evidence.resources["series"] = Waves.of([Evidence(table, Release.unchanged(table))])
            score = measure.score(evidence, Run(seed=1))
            if score.status in {Status.OK, Status.APPROXIMATE}:
                yield score.value


@pytest.mark.parametrize("name", MEASURES)
def test_the_worst_is_reached_and_never_passed(name):
    measure = parse_measure(name)
    found = list(scores(measure))
    assert len(found) > 10
    worst = min(found) if measure.better == "high" else max(found)
    assert worst == measure.worst


@pytest.mark.parametrize("floor", [0.1, 0.5, 1.0, 3.0])
def test_ranks_at_the_floor_are_the_worst(floor):
    measure = parse_measure(f"rank-linkage(floor={floor})")
    for columns in (1, 2, 4):
        names = [f"x{each}" for each in range(columns)]
        values = np.random.default_rng(columns).normal(size=(6, columns))
        schema = Schema(tuple(Column(each, Kind.CONTINUOUS, Role.KEY) for each in names))
        table = Table(pl.DataFrame(values, schema=names), schema)
        score = measure.score(Evidence(table, Release.unchanged(table)), Run(seed=1))
        assert score.value == pytest.approx(math.log(floor) / columns)
        assert score.value >= measure.worst - 1e-12
        assert columns > 1 or floor > 1 or score.value == pytest.approx(measure.worst)

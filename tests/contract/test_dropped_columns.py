"""A column that a release left out is lost: to every utility it is one whose cells are all suppressed."""

import math

import numpy as np
import polars as pl
import pytest

from sfumato.core import registry
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.suppressing import to_missing
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table

#: They count classes of the keys that are left; a dropped key makes them larger, or leaves them as they are.
BY_CLASSES = {"average-class-size", "classification-metric", "discernibility"}
#: Guesses that do without one of two columns that tell the same may be as good.
BY_MODELS = {"prediction", "prediction-error", "cluster-agreement", "coefficient-overlap"}

UTILITIES = sorted(name for name, cls in registry.measures().items() if cls.aspect == "utility")


def people(n=80):
    rng = np.random.default_rng(5)
    income = rng.normal(50, 10, n)
    frame = pl.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)],
            "income": income,
            "tax": income + rng.normal(0, 5, n),
            "debt": rng.normal(0, 1, n),
            "school": rng.integers(0, 4, n),
            "town": rng.choice(["a", "b", "c"], n),
            "job": np.where(income > 50, "u", "v"),
            "ill": rng.choice(["yes", "no"], n),
        }
    )
    kinds = {"school": Kind.ORDINAL, "town": Kind.NOMINAL, "job": Kind.NOMINAL, "ill": Kind.NOMINAL}
    roles = {"ill": Role.SENSITIVE, "id": Role.IDENTIFIER}
    columns = (
        Column(
            name,
            Kind.NOMINAL if name == "id" else kinds.get(name, Kind.CONTINUOUS),
            roles.get(name, Role.KEY),
        )
        for name in frame.columns
    )
    return Table(frame, Schema(tuple(columns)))


def scored(name, table, released, *, mapped):
    rows = np.arange(len(table)) if mapped else None
    return registry.measure(name)().score(
        Evidence(table, Release.of(released, source_rows=rows)), Run(seed=1)
    )


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("name", UTILITIES)
def test_a_column_left_out_costs_what_it_costs_suppressed(name, mapped):
    table = people()
    cls = registry.measure(name)
    intact = scored(name, table, table.select([each for each in table.names if each != "id"]), mapped=mapped)
    for column in ("income", "job"):
        left_out = scored(name, table, table.select([n for n in table.names if n != column]), mapped=mapped)
        empty = to_missing(table, column, np.ones(len(table), dtype=np.bool_))
        suppressed = scored(name, table, empty, mapped=mapped)
        assert left_out.status is suppressed.status
        np.testing.assert_allclose(left_out.value, suppressed.value, rtol=1e-9)
        sees = table.schema[column].kind in cls.kinds and left_out.status in {Status.OK, Status.APPROXIMATE}
        if sees and column in left_out.by_column and name not in BY_CLASSES | BY_MODELS:
            assert cls().is_better(intact.value, left_out.value) or math.isinf(left_out.value)


def test_identifiers_and_weights_may_be_left_out():
    table = people()
    shown = table.select([each for each in table.names if each != "id"])
    assert scored("suppressed-cells", table, shown, mapped=True).value == 0


def test_a_target_that_is_gone_is_named():
    table = people()
    gone = scored("prediction", table, table.select([n for n in table.names if n != "ill"]), mapped=True)
    assert gone.status is Status.NOT_ESTIMABLE
    assert gone.reason == "the release has no value of `ill`"

"""What analysts need most: transport counts it more, and methods that choose what to lose lose less of it."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linear_sum_assignment

from sfumato.core.evidence import Evidence
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import PlanError
from sfumato.methods.local_suppression import LocalSuppression
from sfumato.methods.mondrian import Mondrian
from sfumato.methods.suppression import AttributeSuppression
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.utility.transport import EarthMoversDistance

RNG = np.random.default_rng(5)


def people(n=60, **importance):
    columns = (
        Column("age", Kind.CONTINUOUS, Role.KEY, importance=importance.get("age", 1.0)),
        Column("town", Kind.NOMINAL, Role.KEY, importance=importance.get("town", 1.0)),
        Column("pay", Kind.CONTINUOUS, Role.KEY, importance=importance.get("pay", 1.0)),
    )
    rng = np.random.default_rng(3)
    frame = {
        "age": rng.integers(20, 80, n),
        "town": rng.choice(list("abcd"), n),
        "pay": rng.lognormal(8, 0.5, n),
    }
    return Table(pl.DataFrame(frame).cast({"age": pl.Float64}), Schema(columns))


def by_hand(original, released, worth):
    """The least mean distance of all one-to-one matches, by the matrix of all distances."""
    squares = np.zeros((len(original), len(released)))
    for name, weight in worth.items():
        one, other = original.frame[name].to_numpy(), released.frame[name].to_numpy()
        if original.schema[name].kind is Kind.NOMINAL:
            squares += weight**2 * (one[:, None] != other[None, :])
        else:
            squares += (weight * (one[:, None] - other[None, :]) / np.ptp(one)) ** 2
    costs = np.sqrt(squares)
    return costs[linear_sum_assignment(costs)].mean()


@pytest.mark.parametrize("records", [5, 1000], ids=["matched", "solved"])
def test_transport_counts_a_column_by_its_importance(records):
    worth = {"age": 3.0, "town": 2.0, "pay": 0.5}
    original = people(**worth)
    moved = original.with_values("age", original.frame["age"] + RNG.normal(0, 9, 60))
    moved = moved.with_values("town", pl.Series(RNG.permutation(original.frame["town"].to_numpy())))
    found = EarthMoversDistance(records=records).score(Evidence(original, Release.of(moved)), Run(seed=1))
    assert found.value == pytest.approx(by_hand(original, moved, worth), rel=1e-6)
    equal = EarthMoversDistance(records=records).score(Evidence(people(), Release.of(moved)), Run(seed=1))
    assert equal.value == pytest.approx(by_hand(original, moved, dict.fromkeys(worth, 1.0)), rel=1e-6)


def test_one_column_alone():
    table = people(age=3.0).select(["age"])
    moved = table.with_values("age", table.frame["age"] + 6)
    span = np.ptp(table.frame["age"].to_numpy())
    found = EarthMoversDistance().score(Evidence(table, Release.of(moved)), Run(seed=1))
    assert found.value == pytest.approx(3 * 6 / span)


def width(table, name):
    low, high = table.frame[name].struct.unnest().get_columns()
    return float((high - low).mean())


def test_mondrian_cuts_what_is_needed_more_often():
    widths = {}
    for importance in (1.0, 3.0):
        made = Recipe((Step(Mondrian(k=5), ("age", "pay")),)).apply(people(400, pay=importance), Run(seed=1))
        widths[importance] = width(made.table, "pay")
    assert widths[3.0] < widths[1.0]


def test_suppression_spares_it():
    def lost(method, **importance):
        made = Recipe((Step(method, ("age", "town")),)).apply(people(80, **importance), Run(seed=1))
        return {name: made.table.frame[name].null_count() for name in ("age", "town")}

    assert lost(LocalSuppression(k=3), age=50.0)["age"] <= lost(LocalSuppression(k=3), town=50.0)["age"]
    whole = AttributeSuppression(k=3, show="missing")
    assert lost(whole, town=50.0)["town"] == 0


@pytest.mark.parametrize("wrong", [0.0, -1.0, 5000.0])
def test_an_importance_must_be_a_number_above_zero(wrong):
    with pytest.raises(PlanError, match="`importance` must be above 0"):
        replace(people().schema["age"], importance=wrong)

"""The score of loss and risk is the weighted sum of its parts."""

import numpy as np
import polars as pl
import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import SfumatoError
from sfumato.methods import UncorrelatedNoise
from sfumato.utility.tradeoff_score import TradeoffScore


def numbers(n=80):
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({name: rng.normal(50, 10, n) for name in "abc"})
    return Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in "abc")))


def score(table, release):
    return TradeoffScore().score(Evidence(table, release), Run(seed=1))


def test_it_is_half_the_loss_and_half_the_risks():
    table = numbers()
    found = score(table, UncorrelatedNoise().apply(table, Run(seed=1)))
    parts = found.details
    risk = parts["interval-disclosure"] / 2 + (parts["dbrl"] + parts["probabilistic-linkage"]) / 4
    assert found.value == pytest.approx((parts["probabilistic-information-loss"] + risk) / 2)
    assert 0 < found.value < 0.5


def test_what_is_unchanged_discloses_all_and_loses_nothing():
    found = score(numbers(), Release.unchanged(numbers()))
    assert found.details["probabilistic-information-loss"] == 0
    assert found.value == pytest.approx(0.5, abs=0.05)


def test_a_part_without_a_number_is_said_and_nobody_may_require_it():
    table = numbers().select(["a"])
    column = Column("a", Kind.NOMINAL, Role.KEY)
    named = Table(table.frame.select(pl.col("a").cast(pl.String)), Schema((column,)))
    assert score(named, Release.unchanged(named)).status is Status.REFUSED
    with pytest.raises(SfumatoError, match="trades risk for loss"):
        Requirement.parse("tradeoff-score <= 0.3")

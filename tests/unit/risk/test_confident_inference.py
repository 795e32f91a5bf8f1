"""Inference by confidence (RAPID): the published example, and a look at every pair."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.release import Release
from sfumato.core.requirement import parse_measure
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.inference import InferenceTarget

SCHEMA = Schema(
    (
        *(Column(name, Kind.NOMINAL, Role.KEY) for name in "ab"),
        Column("ill", Kind.NOMINAL, Role.SENSITIVE),
        Column("pay", Kind.CONTINUOUS, Role.SENSITIVE),
    )
)


def people(n, seed):
    rng = np.random.default_rng(seed)
    a = rng.choice(list("uvwx"), n)
    return Table(
        pl.DataFrame(
            {
                "a": a,
                "b": rng.choice(list("pqr"), n),
                "ill": np.where(
                    (a == "u") & (rng.random(n) < 0.7), "flu", rng.choice(["no", "gout"], n, p=[0.8, 0.2])
                ),
                "pay": np.round(rng.lognormal(7, 0.3, n) + 300 * (a == "v")) * (rng.random(n) < 0.9),
            }
        ),
        SCHEMA,
    )


def scored(settings, original, released, control):
    evidence = Evidence(original, Release.of(released), resources={"control": control})
    return parse_measure(f"inference(success=confident, {settings})").score(evidence, Run(seed=1))


def test_the_published_example():
    """Of 100 people 60 are healthy: chances of 0.70, 0.85 and 0.55 gain 0.25, 0.625 and less than nothing."""
    schema = Schema((Column("ill", Kind.NOMINAL, Role.SENSITIVE),))
    table = Table(pl.DataFrame({"ill": ["healthy"] * 60 + ["ill"] * 40}), schema)
    target = InferenceTarget.of(table, table, "ill", 10.0, 100)
    found = target.gains(np.arange(3), np.array([0.70, 0.85, 0.55]))
    np.testing.assert_allclose(found, [0.25, 0.625, -0.125])
    alone = Table(pl.DataFrame({"ill": ["healthy"] * 20}), schema)
    same = InferenceTarget.of(alone, alone, "ill", 10.0, 20)
    np.testing.assert_array_equal(same.gains(np.arange(2), np.ones(2)), [0, 0])  # nothing is left to gain


@pytest.mark.parametrize("gain", [0.0, 0.3, 0.6])
def test_categories_are_at_risk_as_a_look_at_every_pair_tells(gain):
    original, released, control = people(80, 1), people(90, 2), people(60, 3)
    mine, theirs, others = (table.frame.to_dicts() for table in (original, released, control))
    counts, at_risk = Counter(each["ill"] for each in mine), []
    for record in mine + others:
        far = [(record["a"] != each["a"]) + (record["b"] != each["b"]) for each in theirs]
        near = [each["ill"] for each, away in zip(theirs, far, strict=True) if away == min(far)]
        prevalence = counts[record["ill"]] / 80
        at_risk.append((near.count(record["ill"]) / len(near) - prevalence) / (1 - prevalence) > gain)
    score = scored(f"by=neighbours, learn=ill, gain={gain}", original, released, control)
    assert score.details["rate"] == score.details["rapid"] == pytest.approx(np.mean(at_risk[:80]))
    assert score.details["control"] == pytest.approx(np.mean(at_risk[80:]))
    np.testing.assert_array_equal(score.by_record, np.array(at_risk[:80], dtype=float))
    assert score.baseline == 0


@pytest.mark.parametrize("error", [5.0, 20.0])
def test_numbers_are_at_risk_within_a_relative_error(error):
    original, released, control = people(80, 4), people(90, 5), people(60, 6)
    mine, theirs, others = (table.frame.to_dicts() for table in (original, released, control))
    spread = np.std([each["pay"] for each in mine + others])
    shares = []
    for record in mine + others:
        far = [(record["a"] != each["a"]) + (record["b"] != each["b"]) for each in theirs]
        near = [each["pay"] for each, away in zip(theirs, far, strict=True) if away == min(far)]
        reach = error / 100 * record["pay"] if record["pay"] else 0.1 * spread
        shares.append(np.mean([abs(each - record["pay"]) <= reach for each in near]))
    score = scored(f"by=neighbours, learn=pay, error={error}", original, released, control)
    assert score.details["rate"] == pytest.approx(np.mean(shares[:80]))
    assert score.details["control"] == pytest.approx(np.mean(shares[80:]))


def test_a_forest_gives_chances_and_is_surer_of_its_own_people():
    original, control = people(150, 7), people(150, 8)
    shares = [
        scored(f"by=forest, learn=ill, gain={gain}", original, original, control).details["rate"]
        for gain in (0.0, 0.3, 0.9)
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > shares[2]
    both = scored("learn=ill+pay", original, original, control)
    assert both.details["rapid"] >= both.details["rate"]
    assert set(both.by_column) == {"ill", "pay"}


def test_dates_have_no_relative_error():
    """A day is near within a share of the standard deviation, however long ago the count of days began."""
    rng = np.random.default_rng(1)
    schema = Schema((Column("a", Kind.NOMINAL, Role.KEY), Column("since", Kind.DATE, Role.SENSITIVE)))
    original, released, control = (
        Table(
            pl.DataFrame(
                {
                    "a": rng.choice(list("uv"), 40),
                    "since": [date(2020, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 900, 40)],
                }
            ),
            schema,
        )
        for _ in range(3)
    )
    confident, right = (
        parse_measure(f"inference(by=neighbours, success={success})").score(
            Evidence(original, Release.of(released), resources={"control": control}), Run(seed=1)
        )
        for success in ("confident", "right")
    )
    assert confident.details["rate"] == right.details["rate"] < 0.5

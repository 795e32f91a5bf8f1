"""The owner's protocol: accept, protect anew, take a stronger step, suppress."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.evidence import Evidence
from sfumato.core.params import param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError, RefusedError
from sfumato.methods.microaggregation import Mdav
from sfumato.methods.noise import CorrelatedNoise
from sfumato.recipes.step import Step
from sfumato.risk.global_linkage import GlobalLinkage
from sfumato.risk.linkage import DistanceLinkage
from sfumato.study.protocol import LinkageLimits, carry_out_protocol, rounded_up, strengthen_in_rungs

RNG = np.random.default_rng(6)
POINTS = RNG.lognormal(size=(120, 3))
NAMES = ("a", "b", "c")
TABLE = Table(
    pl.DataFrame(POINTS, schema=NAMES, orient="row"),
    Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in NAMES)),
)


def test_a_strong_step_is_accepted_and_measured_alike_from_outside():
    ended = carry_out_protocol(
        TABLE, [Step(CorrelatedNoise(ratio=100))], Run(seed=1), limits=LinkageLimits(0.1, 0.1)
    )
    assert ended.accepted
    (only,) = ended.attempts
    assert only.verdict == "accepted"
    evidence = Evidence(TABLE, ended.release)
    assert DistanceLinkage().score(evidence, Run(seed=8)).value == only.local.value <= 0.1
    assert GlobalLinkage().score(evidence, Run(seed=8)).value == only.everywhere.value <= 0.1
    moved = (POINTS - ended.release.table.frame.to_numpy()) / POINTS.std(axis=0)
    assert only.distortion == pytest.approx(np.linalg.norm(moved, axis=1).max())
    assert only.distortion <= ended.bound <= only.distortion * 1.1


def test_weak_steps_are_tried_anew_and_then_suppressed():
    ended = carry_out_protocol(TABLE, [Step(CorrelatedNoise(ratio=1e-4))], Run(seed=1), attempts=2)
    assert not ended.accepted
    assert ended.bound is None
    assert [attempt.replicate for attempt in ended.attempts] == [0, 1]
    assert ended.attempts[0].local.value > 0.05
    assert ended.attempts[0].everywhere is None  # no need to look further
    assert ended.reason.startswith("not released after 2 attempts: dbrl is")
    assert ended.attempts[0].distortion != ended.attempts[1].distortion  # fresh chance


def test_a_stronger_step_is_taken_when_the_first_fails():
    steps = [Step(Mdav(k=2)), Step(CorrelatedNoise(ratio=100))]
    ended = carry_out_protocol(TABLE, steps, Run(seed=1), limits=LinkageLimits(0.2, 0.2))
    assert ended.accepted
    assert [attempt.step.method.name for attempt in ended.attempts] == ["mdav", "correlated-noise"]


def test_global_linkage_alone_can_stop_a_release():
    """Noise whose neighbours are mostly wrong may still be undone by linking everyone at once."""
    ended = carry_out_protocol(
        TABLE, [Step(CorrelatedNoise(ratio=0.5))], Run(seed=1), limits=LinkageLimits(1.0, 0.0), attempts=1
    )
    assert not ended.accepted
    assert "gdbrl" in ended.reason
    assert ended.attempts[0].everywhere.value > 0


def test_bad_settings_and_releases_that_do_not_map():
    with pytest.raises(ParameterError, match="share from 0 to 1"):
        LinkageLimits(local=5)
    with pytest.raises(ParameterError, match="a step and an attempt"):
        carry_out_protocol(TABLE, [], Run(seed=1))

    class Anew(Mdav):
        """Make other records."""

        def protect(self, table, run):
            return Release.of(table)

    with pytest.raises(RefusedError, match="do not map"):
        carry_out_protocol(TABLE, [Step(Anew())], Run(seed=1))


@given(st.floats(1e-12, 1e12))
def test_a_published_bound_is_above_and_near(distance):
    upper = rounded_up(distance)
    assert distance <= upper <= distance * 1.11
    assert float(f"{upper:.2g}") == upper


# ------------------------------------------------------------------------------------- raised by itself


def test_one_method_is_strengthened_rung_by_rung():
    steps = strengthen_in_rungs(Step(CorrelatedNoise(ratio=0.01)), TABLE, Run(seed=1), rungs=5)
    ratios = [step.method.ratio for step in steps]
    assert ratios[0] == 0.01
    assert ratios == sorted(ratios)
    assert ratios[-1] == CorrelatedNoise.drive().tune[1]
    ended = carry_out_protocol(TABLE, steps, Run(seed=1), limits=LinkageLimits(0.1, 0.1), attempts=1)
    assert ended.accepted
    assert 1 < len(ended.attempts) <= len(steps)


def test_a_drive_that_runs_the_other_way_is_strengthened_downwards():
    class Opposite(CorrelatedNoise):
        """The larger, the less noise."""

        name = "toy-opposite"
        ratio: float = param(50.0, "How little.", gt=0, le=100, tune=(0.01, 100), log=True, drive=True)

        def protect(self, table, run):
            return CorrelatedNoise(ratio=1 / self.ratio).apply(table, run)

    values = [
        step.method.ratio for step in strengthen_in_rungs(Step(Opposite()), TABLE, Run(seed=1), rungs=5)
    ]
    assert values[0] == 50
    assert values == sorted(values, reverse=True)
    assert values[-1] == 0.01


def test_a_method_without_a_drive_stands_alone():
    class Still(Mdav):
        """Nothing to move."""

        @classmethod
        def drive(cls):
            return None

    step = Step(Still())
    assert strengthen_in_rungs(step, TABLE, Run(seed=1)) == (step,)


def test_the_protocol_says_itself_for_machines():
    ended = carry_out_protocol(TABLE, [Step(Mdav(k=2))], Run(seed=1), limits=LinkageLimits(0.0, 0.0))
    said = json.loads(json.dumps(ended.to_dict(), allow_nan=False))
    assert said["accepted"] is False
    assert said["bound"] is None
    assert said["attempts"][0]["step"]["method"] == "mdav"
    assert said["attempts"][0]["everywhere"] is None


def test_the_limits_are_requirements_that_judge_as_the_protocol_does():
    said = [str(each) for each in LinkageLimits(0.2, 0.1).requirements]
    assert [each.split("(")[0] for each in said] == ["dbrl", "gdbrl"]
    assert [each.rpartition(" ")[2] for each in said] == ["0.2", "0.1"]
    taken = carry_out_protocol(TABLE, [Step(Mdav(k=20))], Run(seed=1), limits=LinkageLimits(0.2, 0.2))
    assert taken.accepted
    last = taken.attempts[-1]
    assert all(
        each.met_by(score)
        for each, score in zip(
            LinkageLimits(0.2, 0.2).requirements, (last.local, last.everywhere), strict=True
        )
    )

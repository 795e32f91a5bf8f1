"""What a study knows at levels that it was not asked for, against lines worked out by hand."""

from dataclasses import replace

import polars as pl
import pytest

from sfumato.core.requirement import parse_measure
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError
from sfumato.methods.noise import CorrelatedNoise
from sfumato.methods.swapping import RankSwapping
from sfumato.recipes.step import Step
from sfumato.study.compare import MethodAtLevel, Study, rank_outcomes
from sfumato.study.frontier import Point
from sfumato.study.known_levels import at_level, known_levels, same_method
from sfumato.study.level import LevelResult, LevelStatus, Target
from sfumato.study.replicate_mean import ReplicateMean
from sfumato.utility.transport import EarthMoversDistance

TABLE = Table(pl.DataFrame({"age": [1.0, 2.0]}), Schema((Column("age", Kind.CONTINUOUS, Role.KEY),)))
SWAPPING, NOISE = Step(RankSwapping(window=10.0), ("age",)), Step(CorrelatedNoise(ratio=0.1), ("age",))


def points(step, *known):
    method, drive = step.method, step.method.drive().name
    return [Point(method.name, method.title, drive, v, r, u, step=step.with_drive(v)) for v, r, u in known]


def outcome(step, value, held, ranked, **facts):
    step, drive = step.with_drive(value), step.method.drive().name
    level = LevelResult(step, drive, value, held, LevelStatus.WITHIN)
    return MethodAtLevel(level, ReplicateMean(held, 0.0, 2), ReplicateMean(ranked, 0.0, 2), **facts)


@pytest.fixture
def study():
    """Swapping runs from risk .4 to .1 as its loss goes from .1 to .4; noise loses half of that, to risk .2."""
    found = [outcome(SWAPPING, 10.0, 0.2, 0.3), outcome(NOISE, 0.2, 0.2, 0.15)]
    measured = [
        *points(SWAPPING, (2.0, 0.4, 0.1), (30.0, 0.1, 0.4)),
        *points(NOISE, (0.05, 0.4, 0.05), (0.2, 0.2, 0.15)),
    ]
    ranked_by = EarthMoversDistance()
    return Study(
        TABLE,
        Target(parse_measure("dbrl"), 0.2),
        ranked_by,
        rank_outcomes(found, ranked_by),
        points=tuple(measured),
    )


def test_its_own_level_is_the_study_itself(study):
    assert at_level(study, 0.2) is study


def test_between_two_settings_a_straight_line_is_taken(study):
    first, second = at_level(study, 0.3).outcomes
    assert (first.step.method.name, first.rank, second.rank) == (NOISE.method.name, 1, 2)
    assert first.ranked.mean == pytest.approx(0.1)  # halfway from .05 to .15
    assert second.ranked.mean == pytest.approx(0.2)  # the setting of the study itself is on its line
    assert first.level.reached is LevelStatus.ESTIMATED
    assert "between" in first.level.reason
    assert "which were measured" in first.level.reason
    assert 0.05 < first.level.value < 0.2
    assert first.step == NOISE.with_drive(first.level.value)


def test_beyond_what_was_measured_nothing_is_estimated(study):
    swapping, noise = at_level(study, 0.15).outcomes
    assert swapping.ranked.mean == pytest.approx(0.35)
    assert (noise.rank, noise.ranked, noise.level.reached) == (None, None, LevelStatus.UNREACHABLE)
    assert "riskier than 0.15" in noise.level.reason
    assert "misses it by 0.05" in noise.level.reason
    safer = at_level(study, 0.45)
    assert {each.level.reached for each in safer.outcomes} == {LevelStatus.BETTER}
    assert safer.winner is None


def test_fresh_runs_count_where_they_are_at_the_level(study):
    near = at_level(study, 0.2005)  # within the tolerance of 1 %
    assert [each.ranked.mean for each in near.outcomes] == [0.15, 0.3]
    assert [each.rank for each in near.outcomes] == [1, 2]


def test_a_line_that_passes_the_level_twice_is_taken_where_it_changes_the_data_least(study):
    wavy = points(SWAPPING, (2.0, 0.4, 0.1), (5.0, 0.2, 0.2), (10.0, 0.3, 0.3), (30.0, 0.1, 0.4))
    given = replace(study, points=tuple(wavy), outcomes=(MethodAtLevel(study.outcomes[1].level),))
    assert at_level(given, 0.25).outcomes[0].ranked.mean == pytest.approx(0.175)


def test_doubt_of_fresh_runs_makes_ties(study):
    shaky = [
        replace(each, ranked=replace(each.ranked, deviation=0.2))
        if each.step.method.name == NOISE.method.name
        else each
        for each in study.outcomes
    ]
    assert [each.rank for each in at_level(replace(study, outcomes=tuple(shaky)), 0.3).outcomes] == [1, 1]


def test_who_refuses_refuses_at_every_level(study):
    level = LevelResult(NOISE, "", float("nan"), float("nan"), LevelStatus.REFUSED, reason="no number")
    given = replace(study, outcomes=(study.outcomes[1], MethodAtLevel(level)))
    assert at_level(given, 0.3).outcomes[-1].level == level


def test_a_method_without_a_line_is_not_estimated(study):
    (one, other) = at_level(replace(study, points=()), 0.3).outcomes
    assert one.rank is None
    assert other.rank is None
    assert "nearest" in one.level.reason


def test_levels_run_over_all_that_was_measured(study):
    levels = known_levels(study, 7)
    assert (levels[0], levels[-1]) == (0.1, 0.4)
    assert 0.2 in levels
    assert levels == sorted(set(levels))


def test_a_method_is_known_again_at_another_setting(study):
    moved = at_level(study, 0.3).outcomes
    assert [[same_method(one, other) for other in moved] for one in study.outcomes] == [
        [True, False],
        [False, True],
    ]


def test_under_requirements_there_is_no_level(study):
    demanding = replace(study, demands=("k >= 2",))
    with pytest.raises(ParameterError, match="no level"):
        at_level(demanding, 0.3)

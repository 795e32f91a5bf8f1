"""Reaching a level, with toy methods whose answer is known."""

import json
import math
import re
from collections import Counter
from dataclasses import replace
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato
from sfumato.core import registry
from sfumato.core.measure import Score, Status
from sfumato.core.method import Randomness
from sfumato.core.params import param
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Progress, Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import Cancelled, DataError, ParameterError, PlanError, RefusedError, UnreachableError
from sfumato.methods.microaggregation import Mdav
from sfumato.recipes.demand import Demand
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.risk.linkage import DistanceLinkage
from sfumato.study.compare import MethodAtLevel, compare, rank_outcomes, require_reachable
from sfumato.study.evaluate import EvaluationCase, evaluate
from sfumato.study.frontier import Point, frontier, mark_front
from sfumato.study.level import LevelResult, LevelStatus, Target, level_of, reach
from sfumato.study.replicate_mean import ReplicateMean
from sfumato.study.target import held_by_default
from shifts import Lost, Moved, Shift


class _LogShift(Shift):
    name = "toy-log-shift"
    by: float = param(1.0, "How much.", gt=0, le=1e4, tune=(1e-3, 1e4), log=True, drive=True)


class _WholeShift(Shift):
    name = "toy-whole-shift"
    by: int = param(1, "How much.", ge=0, le=100, tune=(0, 100), drive=True)

    def shift(self, rng):
        return 2 * self.by


class _NoisyShift(Shift):
    name = "toy-noisy-shift"
    randomness = Randomness()

    def shift(self, rng):
        return self.by + rng.normal(0, 3)


class _Hump(Shift):
    """Rises to 50 and falls again: both ends give 0."""

    name = "toy-hump"

    def shift(self, rng):
        return 50 - abs(self.by - 50)


class _Staircase(Shift):
    name = "toy-staircase"

    def shift(self, rng):
        return 0 if self.by < 30 else 80


CASE = EvaluationCase(Table(pl.DataFrame({"x": np.arange(20.0)}), Schema((Column("x", Kind.CONTINUOUS),))))


def search(method, level, tolerance=0.01, **more):
    return reach(Step(method), CASE, Target(Moved(), level, tolerance), Run(seed=1), **more)


@pytest.mark.parametrize("level", [0.4, 33.3, 99.0])
def test_a_real_parameter_is_found_within_tolerance(level):
    found = search(Shift(), level)
    assert found.reached is LevelStatus.WITHIN
    assert found.value == pytest.approx(level, rel=0.01)
    assert found.score == pytest.approx(found.value)
    assert len(found.tried) < 15


@pytest.mark.parametrize("level", [0.02, 1.7, 5000.0])
def test_a_logarithmic_axis(level):
    found = search(_LogShift(), level)
    assert found.reached is LevelStatus.WITHIN
    assert found.value == pytest.approx(level, rel=0.01)


def test_a_whole_number_is_the_nearest_there_is():
    assert search(_WholeShift(), 42).value == 21
    odd = search(_WholeShift(), 41)  # 2·20 and 2·21 are equally near: the safer, and it says so
    assert odd.reached is LevelStatus.NEAREST
    assert odd.value == 21
    assert isinstance(odd.value, int)
    assert "nearest" in odd.sentence(Target(Moved(), 41))


def test_a_risk_is_never_rounded_to_the_unsafe_side():
    """40.5 lies nearer to 40 than to 42, but 40 would be less safe than asked."""
    assert search(_WholeShift(), 40.5).value == 21


def test_a_utility_takes_the_nearest_side():
    found = reach(Step(_WholeShift()), CASE, Target(Lost(), 40.9, 0.001), Run(seed=1))
    assert found.value == 20


class _Saturating(Shift):
    """Rises to 30 and stays there: 31 and 99 protect alike, but 99 would change the data more elsewhere."""

    name = "toy-saturating"

    def shift(self, rng):
        return min(self.by, 30.0)


@pytest.mark.parametrize("level", [30.0, 30.2])
def test_where_the_measure_has_levelled_off_the_first_value_is_taken(level):
    found = search(_Saturating(), level)
    assert found.reached is LevelStatus.WITHIN
    assert 29 < found.value < 31


class _Curve(Shift):
    """Moves by a curve over its setting, and by chance."""

    name = "toy-curve"
    curve: ClassVar = staticmethod(lambda by: by)
    chance: ClassVar[float] = 0.0
    runs: ClassVar[list[float]] = []

    def shift(self, rng):
        self.runs.append(self.by)
        return self.curve(self.by) + (rng.normal(0, self.chance) if self.chance else 0.0)


def curved(curve, chance=0.0, drive=None):
    """A method that moves by a curve."""
    facts = {"name": "toy-curve", "curve": staticmethod(curve), "chance": chance, "runs": []}
    facts |= {"randomness": Randomness(stochastic=bool(chance)), "__doc__": "A curve."}
    if drive is not None:
        facts |= {"by": drive, "__annotations__": {"by": float}}
    return type("_Curved", (_Curve,), facts)


def levelling(by):
    """Nears 30 and never comes there."""
    return 30 * (1 - math.exp(-by / 3))


@pytest.mark.parametrize("chance", [0.0, 0.02])
def test_the_edge_of_the_tolerance_decides_nothing(chance):
    """Every setting from 14 to 100 is within 1 % of 29.9; on it is only 3 ln 300 = 17.1."""
    found = search(curved(levelling, chance)(), 29.9)
    assert found.reached is LevelStatus.WITHIN
    assert found.value == pytest.approx(3 * math.log(300), abs=1)
    assert abs(found.score - 29.9) <= 0.03


@pytest.mark.parametrize("level", [30.0, 30.1])
def test_on_a_plateau_the_mildest_setting_that_cannot_be_told_from_the_nearest(level):
    """A tenth of the tolerance (.03) below 30 is 3 ln 1000 = 20.7: before it the curve still rises."""
    found = search(curved(levelling)(), level)
    assert 20 <= found.value <= 22
    assert found.reached is LevelStatus.WITHIN


def test_a_plateau_at_the_mild_end_is_left_nowhere():
    """The measure sees nothing of settings up to 40: as near as that is the one that changes nothing."""
    found = search(curved(lambda by: max(by, 40.0))(), 40.0)
    assert found.value == 0


def test_of_steps_within_the_tolerance_the_nearest_is_taken_whichever_side_it_is_on():
    stairs = curved(lambda by: 10.0 * (by // 10))
    assert search(stairs(), 43.0, tolerance=0.2).score == 40
    assert search(stairs(), 43.0, tolerance=0.01).score == 50  # none is within it: the safe side


def test_two_settings_on_the_level_are_the_milder():
    assert search(_Hump(), 30.0).value == pytest.approx(30, abs=0.1)


@pytest.mark.parametrize("method", [Shift(by=33.3), _NoisyShift(by=61.7), _WholeShift(by=7)])
def test_the_method_that_sets_the_level_stays_where_it_is(method):
    level = level_of(Step(method), CASE, Moved(), Run(seed=1))
    assert search(method, level).value == method.by


def test_far_from_the_level_one_run_is_enough():
    noisy = curved(lambda by: by**4 / 1e6, 0.05)
    found = search(noisy(), 71.3, repeats=10)
    runs = Counter(noisy.runs)
    assert abs(found.score - 71.3) <= 0.1
    assert {runs[value] for value in found.tried} == {1, 10}
    assert all(runs[value] == 10 for value, score in found.tried.items() if abs(score - 71.3) < 2)


def test_runs_that_differ_much_are_all_made():
    """One of a few runs that differ by as much as the whole range tells nothing."""
    noisy = curved(lambda by: by, 30.0)
    found = search(noisy(), 50.0, repeats=4)
    runs = Counter(noisy.runs)
    assert {runs[value] for value in found.tried} == {4}


@settings(max_examples=20, deadline=None)
@given(
    rises=st.lists(st.sampled_from([0.0, 0.0, 1.0, 5.0, 30.0, -8.0]), min_size=2, max_size=8),
    level=st.floats(1, 60),
    chance=st.sampled_from([0.0, 0.05, 2.0]),
    tolerance=st.sampled_from([0.01, 0.1]),
)
def test_no_setting_that_was_tried_is_nearer_than_runs_can_tell(rises, level, chance, tolerance):
    heights = np.cumsum([0.0, *rises])
    method = curved(lambda by: float(np.interp(by, np.linspace(0, 100, len(heights)), heights)), chance)
    target = Target(Moved(), level, tolerance)
    found = reach(Step(method()), CASE, target, Run(seed=1))
    missed = {value: abs(score - level) for value, score in found.tried.items()}
    assert (missed[found.value] <= target.slack) == (found.reached is LevelStatus.WITHIN)
    if found.reached is LevelStatus.WITHIN:
        runs = [evaluate(Recipe((found.step,)), CASE, [Moved()], Run(seed=1), replicate=r) for r in range(3)]
        scores = [each.scores["toy-moved"].value for each in runs]
        assert np.mean(scores) == pytest.approx(found.score)
        doubt = min(max(np.std(scores, ddof=1) / math.sqrt(3), target.slack / 10), target.slack)
        assert missed[found.value] <= min(missed.values()) + doubt + 1e-9
    else:
        safe = [miss for value, miss in missed.items() if found.tried[value] > level]
        assert missed[found.value] <= min(safe or missed.values()) + target.slack


def test_a_level_that_cannot_be_reached_says_what_is_best():
    target = Target(Moved(), 150.0)
    found = reach(Step(Shift()), CASE, target, Run(seed=1))
    assert found.reached is LevelStatus.UNREACHABLE
    assert found.value == 100
    assert found.sentence(target) == "150 is unreachable: the nearest is by = 100 gives toy-moved 100"
    low = Target(Moved(), -5.0)
    never = reach(Step(Shift()), CASE, low, Run(seed=1))
    assert never.reached is LevelStatus.BETTER
    assert never.sentence(low) == "it is always safer than -5: the nearest is by = 0 gives toy-moved 0"


def test_a_hump_is_found_between_ends_that_give_nothing():
    found = search(_Hump(), 30.0)
    assert found.reached is LevelStatus.WITHIN
    assert 50 - abs(found.value - 50) == pytest.approx(30, rel=0.01)


def test_a_jump_over_the_level_is_the_nearest_side():
    found = search(_Staircase(), 50.0)
    assert found.reached is LevelStatus.NEAREST
    assert found.score == 80
    assert len(found.tried) < 30


def test_noise_is_averaged_and_common_to_all_points():
    found = search(_NoisyShift(), 40.0, repeats=5)
    assert found.reached is LevelStatus.WITHIN
    assert found.score == pytest.approx(40, rel=0.01)
    assert abs(found.value - 40) < 4 * 3 / np.sqrt(5)
    again = search(_NoisyShift(), 40.0, repeats=5)
    assert again == found


def test_the_same_seed_gives_the_same_level():
    assert search(_NoisyShift(), 20.0).tried == search(_NoisyShift(), 20.0).tried


def test_a_target_outside_the_bounds_of_its_measure_is_refused():
    class Bounded(Moved):
        name = "toy-bounded"
        bounds = (0.0, 1.0)

    with pytest.raises(ParameterError, match="from 0 to 1, got: `2`"):
        Target(Bounded(), 2)
    with pytest.raises(ParameterError, match="must be a number"):
        Target(Moved(), float("nan"))
    with pytest.raises(ParameterError, match="tolerance"):
        Target(Moved(), 1, 0)


def test_zero_is_a_level():
    assert 0 <= search(Shift(), 0.0).value <= 0.01


def test_a_refused_measure_is_an_error_not_a_number():
    class Never(Moved):
        name = "toy-never"

        def refuses(self, evidence):
            return "toy-never must be given nothing, got: something"

    with pytest.raises(RefusedError, match="toy-never"):
        reach(Step(Shift()), CASE, Target(Never(), 1), Run(seed=1))


def test_a_search_can_be_stopped():
    calls = []

    def stopped():
        calls.append(1)
        return len(calls) > 4

    with pytest.raises(Cancelled):
        reach(Step(Shift()), CASE, Target(Moved(), 33.3), Run(seed=1, progress=Progress(stopped=stopped)))


# ------------------------------------------------------------------------------------------------- study


def study(steps, level=30.0, **more):
    return compare(CASE, steps, Run(seed=1), target=Target(Moved(), level), ranked_by=Lost(), **more)


def test_methods_are_ranked_at_the_level_and_the_unreachable_stand_last():
    class Short(Shift):
        name = "toy-short"
        by: float = param(1.0, "How much.", ge=0, le=10, tune=(0, 10), drive=True)

    found = study([Step(Short()), Step(Shift()), Step(_Hump())], repeats=2)
    assert [outcome.rank for outcome in found.outcomes] == [1, 1, None]  # the two lose alike
    assert [outcome.tied_with for outcome in found.outcomes] == [(1,), (0,), ()]
    assert found.outcomes[-1].step.method.name == "toy-short"
    assert [o.step.method.name for o in found.unranked_methods] == ["toy-short"]
    for outcome in found.outcomes[:2]:
        assert outcome.held.mean == pytest.approx(30, rel=0.01)
    require_reachable(found)


def test_scores_come_from_fresh_runs():
    """The replicates that were searched on are not those that are scored."""
    found = study([Step(_NoisyShift())], repeats=3)
    outcome = found.outcomes[0]
    assert outcome.held.runs == 3
    assert outcome.held.mean != outcome.level.score
    assert outcome.held.deviation > 0


def test_nothing_reached_is_an_error_that_says_the_best():
    with pytest.raises(UnreachableError, match="no method can reach") as caught:
        require_reachable(study([Step(Shift())], level=500.0))
    assert "by = 100" in caught.value.hint


def test_a_comparison_needs_a_risk_and_a_utility():
    with pytest.raises(ParameterError, match="two measures of risk"):
        compare(CASE, [Step(Shift())], Run(seed=1), target=Target(Moved(), 1), ranked_by=Moved())
    with pytest.raises(PlanError, match="at least one method"):
        study([])


def test_equal_utility_works_as_well():
    found = compare(CASE, [Step(Shift())], Run(seed=1), target=Target(Lost(), 12.0), ranked_by=Moved())
    assert found.winner.level.value == pytest.approx(12, rel=0.01)


def test_level_of_a_step_as_it_is():
    assert level_of(Step(Shift(by=7)), CASE, Moved(), Run(seed=1)) == 7


def test_spread_is_students_interval_and_welchs_test():
    from scipy.stats import t, ttest_ind

    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b = rng.normal(0, 1, 5), rng.normal(rng.uniform(0, 2), 2, 7)
        first, second = ReplicateMean.of(a), ReplicateMean.of(b)
        low, high = t.interval(0.95, 4, a.mean(), a.std(ddof=1) / np.sqrt(5))
        assert first.interval == pytest.approx((low, high))
        assert first.differs_from(second) == (ttest_ind(a, b, equal_var=False).pvalue < 0.05)
    assert ReplicateMean.of([1.0]).interval == (1.0, 1.0)
    assert ReplicateMean.of([0.9643059] * 3).deviation == 0
    assert ReplicateMean.of([1.0]).differs_from(ReplicateMean.of([1.1]))
    assert not ReplicateMean.of([1.0]).differs_from(ReplicateMean.of([1.0]))


# ---------------------------------------------------------------------------------------------- frontier


def test_the_map_covers_the_range():
    points = frontier([Step(Shift())], CASE, Moved(), Lost(), Run(seed=1), points=5)
    assert [point.value for point in points] == [0, 25, 50, 75, 100]
    assert [point.risk for point in points] == [0, 25, 50, 75, 100]
    assert all(point.on_front for point in points)  # more safety for more loss, everywhere


def test_front_is_brute_force():
    rng = np.random.default_rng(3)
    for _ in range(20):
        pairs = rng.integers(0, 6, (15, 2))
        points = [Point("m", "M", "p", float(i), float(r), float(u)) for i, (r, u) in enumerate(pairs)]
        marked = mark_front(points, Moved(), Lost())  # risk: high is better; utility: low is better
        for point in marked:
            beaten = any(
                q.risk >= point.risk
                and q.utility <= point.utility
                and (q.risk, q.utility) != (point.risk, point.utility)
                for q in points
            )
            assert point.on_front == (not beaten)


# ------------------------------------------------------------------------------------ several requirements


class _Shrunk(Moved):
    """The same change on another scale: a second requirement."""

    name = "toy-shrunk"
    by: float = param(2.0, "Divisor.", gt=0)

    def measure(self, evidence, run):
        return Score(super().measure(evidence, run).value / self.by)


def demanded(steps, *requirements, **more):
    demands = [Demand(requirement) for requirement in requirements]
    return compare(CASE, steps, Run(seed=1), demands=demands, ranked_by=Lost(), **more)


def test_methods_at_their_weakest_setting_that_meets_all_requirements():
    asked = (
        Requirement(Moved(), ">=", 30),
        Requirement(_Shrunk(), ">=", 20),
        Requirement(_Shrunk(by=4), ">=", 5),
    )
    found = demanded([Step(_WholeShift()), Step(_Hump()), Step(Shift())], *asked, repeats=2)
    assert found.aim == "toy-moved >= 30 and toy-shrunk >= 20 and toy-shrunk(by=4.0) >= 5"
    assert [outcome.rank for outcome in found.outcomes] == [1, 2, 2]  # the last two lose alike
    assert {o.level.reached for o in found.outcomes} == {LevelStatus.MET}
    by_name = {outcome.step.method.name: outcome for outcome in found.outcomes}
    exact = by_name["toy-whole-shift"]
    assert exact.level.value == 20  # moves by 40
    assert {label: spread.mean for label, spread in exact.scores.items()} == {
        "toy-moved": 40, "toy-shrunk": 20, "toy-shrunk(by=4.0)": 10,
    }  # fmt: skip
    assert exact.n_runs_meeting == exact.ranked.runs == 1
    assert by_name["toy-hump"].ranked.mean == pytest.approx(40, abs=0.2)
    assert found.to_dict()["requirements"][0]["requirement"] == "toy-moved(plus=0.0) >= 30"
    json.dumps(found.to_dict(), allow_nan=False)
    require_reachable(found)


def test_a_requirement_that_a_method_cannot_meet_is_explained():
    class Short(Shift):
        name = "toy-short"
        by: float = param(1.0, "How much.", ge=0, le=10, tune=(0, 10), drive=True)

    found = demanded([Step(Short()), Step(Shift())], Requirement(Moved(), ">=", 30))
    assert [o.step.method.name for o in found.unranked_methods] == ["toy-short"]
    assert found.unranked_methods[0].level.sentence(found.target) == "toy-moved >= 30: at most 10, at by = 10"
    with pytest.raises(UnreachableError, match="no method can meet toy-moved >= 30") as caught:
        require_reachable(demanded([Step(Short())], Requirement(Moved(), ">=", 30)))
    assert "at most 10" in caught.value.hint


def test_a_setting_found_by_luck_is_looked_for_again():
    """Fresh runs that miss send the search back with more runs; what is left unmet is said."""
    found = demanded([Step(_NoisyShift())], Requirement(Moved(), ">=", 40), repeats=3)
    (only,) = found.outcomes
    assert only.ranked.runs == 3
    assert (only.n_runs_meeting == 3) == (only.remark == "")
    assert only.level.value > 40


def test_a_method_that_refuses_does_not_kill_the_study():
    class Refusing(Shift):
        name = "toy-refusing"

        def refuses(self, table):
            return "toy-refusing must be given more records, got: 20"

    for more in ({"target": Target(Moved(), 30.0)}, {"demands": [Demand(Requirement(Moved(), ">=", 30))]}):
        found = compare(
            CASE, [Step(Refusing()), Step(Shift())], Run(seed=1), ranked_by=Lost(), points=3, **more
        )
        assert [o.rank for o in found.outcomes] == [1, None]
        refused = found.unranked_methods[0]
        assert refused.level.reached is LevelStatus.REFUSED
        assert refused.level.sentence(found.target) == (
            "refused: toy-refusing must be given more records, got: 20"
        )
        assert {point.method for point in found.points} == {"toy-shift"}
        json.dumps(found.to_dict(), allow_nan=False)
        with pytest.raises(RefusedError, match="more records"):
            compare(CASE, [Step(Refusing())], Run(seed=1), ranked_by=Lost(), **more)


def test_a_measure_that_is_not_estimable_for_one_method_leaves_the_others():
    class Sometimes(Moved):
        name = "toy-sometimes"

        def measure(self, evidence, run):
            score = super().measure(evidence, run)
            return score if score.value <= 50 else Score.not_estimable("too far")

    class Far(Shift):
        name = "toy-far"

        def shift(self, rng):
            return 60 + self.by

    steps = [Step(Far()), Step(Shift()), Step(_Staircase())]
    found = compare(CASE, steps, Run(seed=1), ranked_by=Lost(), target=Target(Sometimes(), 30.0))
    assert found.winner.level.value == pytest.approx(30, rel=0.01)  # though its strong end has no number
    far, stairs = found.unranked_methods
    assert far.level.reached is LevelStatus.UNJUDGED  # the method applies, only nobody can say what it does
    assert far.level.reason == "toy-sometimes cannot be estimated: too far"
    assert stairs.level.reached is LevelStatus.UNREACHABLE


def test_a_comparison_has_a_level_or_requirements_and_never_two_aspects_alike():
    asked = [Demand(Requirement(Moved(), ">=", 30))]
    with pytest.raises(ParameterError, match="both or neither"):
        compare(CASE, [Step(Shift())], Run(seed=1), ranked_by=Lost())
    with pytest.raises(ParameterError, match="both or neither"):
        compare(
            CASE, [Step(Shift())], Run(seed=1), ranked_by=Lost(), demands=asked, target=Target(Moved(), 1)
        )
    with pytest.raises(ParameterError, match="two measures of risk"):
        compare(CASE, [Step(Shift())], Run(seed=1), ranked_by=Moved(), demands=asked)


def test_equal_utility_with_a_requirement_takes_the_method_as_far_as_it_may_go():
    demands = [Demand(Requirement(Lost(), "<=", 25))]
    found = compare(CASE, [Step(_WholeShift())], Run(seed=1), demands=demands, ranked_by=Moved())
    assert found.winner.level.value == 12  # moves by 24; 26 would be too much


# --------------------------------------------------------------------------------------- the front door


def people():
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(rng.lognormal(size=(60, 2)), schema=["a", "b"])
    names = tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in frame.columns)
    return Table(frame, Schema(names))


def test_as_safe_as_this_release():
    table = people()
    release = sfumato.protect(table, "mdav", seed=1)
    level = sfumato.assess(table, release, ["dbrl"], seed=1)["dbrl"].value
    held = sfumato.compare(table, ["mdav"], hold="dbrl", level=release, rank_by="il1s", seed=1, repeats=1)
    assert held.target.value == level
    asked = sfumato.compare(table, ["mdav"], require="dbrl", level=release, rank_by="il1s", seed=1, repeats=1)
    assert asked.demands[0].requirement == Requirement(DistanceLinkage(), "<=", level)
    assert asked.winner.scores["dbrl"].mean <= level
    with pytest.raises(ParameterError, match="has no level"):
        sfumato.compare(table, ["mdav"], require=["dbrl"], rank_by="il1s")
    with pytest.raises(ParameterError, match="`level` cannot be given together with requirements"):
        sfumato.compare(table, ["mdav"], require=["dbrl <= 0.1"], level=0.1)
    with pytest.raises(ParameterError, match="`hold` cannot be given together with requirements"):
        sfumato.compare(table, ["mdav"], require=["dbrl <= 0.1"], hold="dbrl")
    with pytest.raises(RefusedError, match="do not map") as caught:
        sfumato.compare(table, ["mdav"], require=["dbrl"], level=Release.of(release.table))
    assert "aligned" in caught.value.hint


@pytest.mark.parametrize("measure", sorted(registry.measures()))
def test_any_measure_can_be_held_or_says_why_not(measure):
    """Every measure against one of the other aspect: a study, or an error that says what is wrong."""
    table, cls = people(), registry.measure(measure)
    other = "il1s" if cls.aspect == "risk" else "permutation-distance"
    release = sfumato.protect(table, Mdav(k=3), seed=1)
    hold = {"hold": measure, "level": release, "rank_by": other, "repeats": 1, "seed": 1}
    scores = sfumato.assess(table, release, [measure], seed=1)
    if scores[measure].status in {Status.REFUSED, Status.NOT_ESTIMABLE}:
        assert len(scores[measure].reason.split()) > 3
        with pytest.raises((RefusedError, DataError), match=re.escape(scores[measure].reason)):
            sfumato.compare(table, [Mdav(k=3)], **hold)
    elif cls.tells.why_not_required or not math.isfinite(scores[measure].value):
        with pytest.raises(ParameterError, match=r"must be a number|is only reported, not held at a level"):
            sfumato.compare(table, [Mdav(k=3)], **hold)
    else:
        found = sfumato.compare(table, [Mdav(k=3)], **hold)
        assert found.target == Target(cls(), scores[measure].value)
        told = (
            found.winner
            or found.unranked_methods[0].why_not_ranked
            or found.unranked_methods[0].level.reached.value == "unreachable"
        )
        assert told  # a measure with chance of its own may not come to one draw's level again


# ------------------------------------------------------------------------------------- equal risk means it


class _Drifting(Shift):
    """Moves twenty farther in every run but the first three, which are those that a search looks at."""

    name = "toy-drifting"
    randomness = Randomness()
    first: ClassVar[list[int]] = []

    def shift(self, rng):
        draw = int(rng.integers(2**40))
        if len(self.first) < 3 and draw not in self.first:
            self.first.append(draw)
        return self.by + (0 if draw in self.first else 20)


class _AlwaysFar(Shift):
    name = "toy-always-far"

    def shift(self, rng):
        return 60 + self.by


def test_fresh_runs_decide_and_what_drifts_is_moved_and_then_stands_apart():
    _Drifting.first.clear()
    steps = [Step(_Drifting()), Step(Shift())]
    found = compare(CASE, steps, Run(seed=1), ranked_by=Lost(), target=Target(Moved(), 30.0))
    assert found.winner.step.method.name == "toy-shift"
    (drifting,) = found.unranked_methods
    assert drifting.level.value < 20  # 30 did in the search of three runs: moved, but never far enough
    assert drifting.why_not_ranked == "safer than the level"
    assert drifting.ranked is not None
    assert found.headline == "1 of 2 methods ranked"


def test_chance_alone_puts_nobody_apart():
    found = compare(CASE, [Step(_NoisyShift())], Run(seed=1), ranked_by=Lost(), target=Target(Moved(), 30.0))
    assert found.winner is not None


def test_what_is_always_safer_is_measured_and_said_to_be_so():
    steps = [Step(_AlwaysFar()), Step(Shift())]
    found = compare(CASE, steps, Run(seed=1), ranked_by=Lost(), target=Target(Moved(), 30.0))
    (far,) = found.unranked_methods
    assert far.why_not_ranked == "always safer than the level"
    assert far.ranked.mean == far.held.mean == 60
    alone = compare(CASE, steps[:1], Run(seed=1), ranked_by=Lost(), target=Target(Moved(), 30.0))
    assert alone.winner is None
    require_reachable(alone)  # who is safer has not failed


def test_risks_that_nobody_held_stand_beside_and_a_winner_that_protects_nobody_says_so():
    """A shift keeps the order: everyone is unique, and the nearest of a shifted grid is mostly somebody else."""
    found = compare(CASE, [Step(Shift())], Run(seed=1), ranked_by=Lost(), target=Target(Moved(), 0.1))
    beside = found.winner.other_risks
    assert list(beside) == ["uniqueness", "k-anonymity", "dbrl", "gdbrl"]
    assert [beside[name].value for name in beside] == [1, 1, 1, 1]
    assert found.caution.startswith("After this method 100% of the people are still unique")
    assert found.to_dict()["outcomes"][0]["beside"]["k-anonymity"]["value"] == 1


def test_of_many_persons_some_are_looked_for_beside_a_ranking(monkeypatch):
    case = EvaluationCase(Table(pl.DataFrame({"x": np.arange(60.0)}), CASE.table.schema))
    monkeypatch.setattr(DistanceLinkage, "scales", replace(DistanceLinkage.scales, persons_drawn=50))
    monkeypatch.setattr("sfumato.study.compare._PERSONS_DRAWN", 20)
    found = compare(case, [Step(Shift())], Run(seed=1), ranked_by=Lost(), target=Target(Moved(), 0.1))
    score = found.winner.other_risks["dbrl"]
    assert score.status is Status.APPROXIMATE
    assert "20 persons drawn" in score.reason
    assert score.interval[0] <= score.value <= score.interval[1]


def test_many_records_are_looked_at_once_where_the_level_is_far(monkeypatch):
    """One setting tells how much runs differ; of small tables three do."""
    counts = []

    def shift(self, rng):
        counts[-1] += 1
        return self.by + rng.normal(0, 0.01)

    monkeypatch.setattr(_NoisyShift, "shift", shift)
    for many in (20_000, 2):
        monkeypatch.setattr("sfumato.study.level._MANY_RECORDS", many)
        counts.append(0)
        found = reach(Step(_NoisyShift()), CASE, Target(Moved(), 30.0), Run(seed=1), repeats=3)
        assert found.value == pytest.approx(30, abs=0.3)
    assert counts[1] < counts[0]


def test_the_default_sees_all_keys_or_says_which_not():
    mixed = people()
    assert held_by_default(EvaluationCase(mixed)).name == ("dbrl" if _mixed(mixed) else "rank-linkage")
    frame = pl.DataFrame({"x": np.arange(20.0), "town": ["a", "b"] * 10})
    schema = Schema((Column("x", Kind.CONTINUOUS, Role.KEY), Column("town", Kind.NOMINAL, Role.KEY)))
    case = EvaluationCase(Table(frame, schema))
    assert held_by_default(case).name == "dbrl"
    step, target = Step(Shift(), ("x",)), Target(Moved(), 30.0)
    found = compare(case, [step], Run(seed=1), ranked_by=Lost(), target=target, repeats=1)
    assert found.notes == ("toy-moved does not measure `town`, which the intruder knows",)


# ------------------------------------------------------------------------ the loss over the tolerance, and ties


class _Dear(Lost):
    """Twice as much is lost as is moved."""

    name = "toy-dear"

    def measure(self, evidence, run):
        return Score(2 * super().measure(evidence, run).value)


def fixed(name, low, high=None, deviation=0.0, apart=""):
    """An outcome that loses so much; at the edges of the tolerance more or less."""
    mean = low if high is None else (low + high) / 2
    step = Step(type("_Fixed", (Shift,), {"name": name, "__doc__": "Fixed."})())
    level = LevelResult(step, "by", 1.0, 30.0, LevelStatus.WITHIN)
    ends = None if high is None else (low, high)
    spread = ReplicateMean(mean, deviation, 5)
    return MethodAtLevel(
        level, held=ReplicateMean(30, 0, 5), ranked=spread, ranked_range=ends, why_not_ranked=apart
    )


def test_the_loss_is_shown_over_the_tolerance():
    """30 ± 10 % is from 27 to 33, and twice as much is lost; the edges lie nine tenths of the way."""
    target = Target(Moved(), 30.0, 0.1)
    found = compare(CASE, [Step(_NoisyShift())], Run(seed=1), ranked_by=_Dear(), target=target, repeats=3)
    (only,) = found.outcomes
    best, worst = only.ranked_range
    assert best <= only.ranked.mean <= worst
    assert worst - best == pytest.approx(2 * 2 * 0.9 * 3, rel=0.1)  # chance is common, so it cancels
    assert found.to_dict()["outcomes"][0]["ranked_range"] == [best, worst]
    assert found.to_frame().select("ranked_low", "ranked_high").row(0) == (best, worst)


def test_the_range_is_that_of_an_oracle_that_tries_every_setting():
    """A plateau from 20 on is within the tolerance to its end, which costs five times as much."""
    target = Target(Moved(), 29.9)
    method = curved(levelling)

    class Cost(Lost):
        name = "toy-cost"

        def measure(self, evidence, run):
            moved = super().measure(evidence, run).value  # the setting, which the plateau hides
            return Score(-3 * math.log(max(1 - moved / 30, math.exp(-100 / 3))))

    (only,) = compare(CASE, [Step(method())], Run(seed=1), ranked_by=Cost(), target=target).outcomes
    settings = np.linspace(0, 100, 2001)
    inside = [by for by in settings if target.met_by(levelling(by))]
    best, worst = only.ranked_range
    assert only.ranked.mean == pytest.approx(only.level.value)
    assert min(inside) - 0.1 <= best <= min(inside) + 2
    assert worst == pytest.approx(max(inside), rel=0.01)


def test_an_outcome_apart_or_under_requirements_has_no_range_but_its_own():
    far = compare(CASE, [Step(_AlwaysFar())], Run(seed=1), ranked_by=Lost(), target=Target(Moved(), 30.0))
    assert far.outcomes[0].ranked_range is None
    asked = demanded([Step(Shift())], Requirement(Moved(), ">=", 30)).outcomes[0]
    assert asked.ranked_range == (asked.ranked.mean, asked.ranked.mean)


def ranked(*outcomes, measure=None):
    found = rank_outcomes(outcomes, measure or Lost())
    return [(o.step.method.name, o.rank, o.tied_with) for o in found]


def test_ranges_that_overlap_are_tied_and_share_a_rank():
    assert ranked(fixed("c", 31, 33), fixed("a", 10, 12), fixed("b", 11, 13)) == [
        ("a", 1, (1,)), ("b", 1, (0,)), ("c", 3, ()),
    ]  # fmt: skip
    chain = ranked(fixed("a", 10, 12), fixed("b", 11, 14), fixed("c", 13, 16))
    assert chain == [("a", 1, (1,)), ("b", 1, (0, 2)), ("c", 2, (1,))]  # only a is better than c
    assert ranked(fixed("a", 10), fixed("b", 10), fixed("c", 11)) == [
        ("a", 1, (1,)), ("b", 1, (0,)), ("c", 3, ()),
    ]  # fmt: skip


def test_chance_ties_as_well_and_one_rule_is_for_both():
    near, far = fixed("b", 10.5, deviation=1), fixed("c", 14, deviation=1)
    assert ranked(fixed("a", 10, deviation=1), near, far) == [("a", 1, (1,)), ("b", 1, (0,)), ("c", 3, ())]
    both = ranked(fixed("a", 10, 12, deviation=1), fixed("b", 12.5, 14, deviation=1))
    assert both == [("a", 1, (1,)), ("b", 1, (0,))]  # neither the ranges nor the means alone would


def test_where_high_is_better_the_best_end_is_the_highest():
    first, second = fixed("a", 33, 31), fixed("b", 30, 28)
    assert ranked(second, first, measure=Moved()) == [("a", 1, ()), ("b", 2, ())]
    assert ranked(second, replace(first, ranked_range=(33, 29)), measure=Moved())[1][1] == 1
    assert ranked(first, fixed("z", 40, 38, apart="safer"), measure=Moved())[1] == ("z", None, ())


@settings(max_examples=50, deadline=None)
@given(
    ends=st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9), st.sampled_from([0, 1])), min_size=1, max_size=6
    )
)
def test_ranks_are_one_more_than_are_better(ends):
    given_ = [fixed(f"m{i}", min(a, b), max(a, b), d) for i, (a, b, d) in enumerate(ends)]
    found = rank_outcomes(given_, Lost())
    assert found[0].rank == 1
    assert found[0].ranked.mean == min(each.ranked.mean for each in given_)
    ranks = [each.rank for each in found]
    assert ranks == sorted(ranks)
    for place, each in enumerate(found):
        beaten_by = [
            o for o in found
            if max(o.ranked_range) < min(each.ranked_range)
            and (o.ranked.deviation == each.ranked.deviation == 0 or _welch(o, each))
        ]  # fmt: skip
        assert each.rank == 1 + len(beaten_by)
        assert all(place in found[other].tied_with for other in each.tied_with)


def _welch(first, second):
    from scipy.stats import ttest_ind_from_stats

    a, b = first.ranked, second.ranked
    high, low = max(first.ranked_range), min(second.ranked_range)
    numbers = (high, a.deviation, a.runs, low, b.deviation, b.runs)
    return ttest_ind_from_stats(*numbers, equal_var=False).pvalue < 0.05


def _mixed(table):
    return any(table.schema[name].kind is Kind.NOMINAL for name in table.schema.known_columns())

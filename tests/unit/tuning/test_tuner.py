"""The tuner on toy problems whose best answer is known."""

import sys
import tomllib

import numpy as np
import polars as pl
import pytest

from sfumato.core import registry
from sfumato.core.measure import Measure, Score, Status
from sfumato.core.method import Randomness
from sfumato.core.params import param
from sfumato.core.requirement import Requirement, parse_measure
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, MissingDependencyError, ParameterError, UnreachableError
from sfumato.recipes.demand import Demand
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.study.evaluate import EvaluationCase
from sfumato.study.replicate_mean import ReplicateMean
from sfumato.tuning import looks_at_sensitive, tune
from sfumato.tuning.candidate import ConfirmedCandidate, RecipeJudge, RecipeResult
from sfumato.tuning.derive_space import Scope
from sfumato.tuning.trial_runner import SearchBudget
from sfumato.tuning.tuning_result import _surest, describe
from shifts import NUMBERS, Shift


class NoisyShift(Shift):
    """Add a number that depends on chance."""

    name = "toy-noisy-shift"
    randomness = Randomness()

    def shift(self, rng):
        return self.by + rng.normal(0, 2)


class Short(Shift):
    """Cannot go far."""

    name = "toy-short"
    by: float = param(1.0, "How much.", ge=0, le=5, tune=(0, 5), drive=True)


class Moody(Shift):
    """Fails whenever it should move far."""

    name = "toy-moody"

    def shift(self, rng):
        if self.by > 10:
            raise DataError("toy-moody must not be asked for more than 10")
        return self.by


class Moved(Measure):
    """Mean change of one column, or of the column that changed least: the more the safer."""

    name = "toy-moved"
    title = "Moved"
    aspect = "risk"
    better = "high"
    kinds = NUMBERS

    column: str = param("", "Which column; the one that moved least if empty.")

    def measure(self, evidence, run):
        names = [self.column] if self.column else ["x", "y"]
        gaps = [(evidence.protected.numbers(n) - evidence.original.numbers(n)).mean() for n in names]
        return Score(float(min(gaps)))


class Estimated(Moved):
    """The same, never certain."""

    name = "toy-estimated"

    def measure(self, evidence, run):
        return Score(super().measure(evidence, run).value, status=Status.APPROXIMATE, reason="sampled")


class Lost(Measure):
    """Mean absolute change over both columns."""

    name = "toy-lost"
    title = "Lost"
    aspect = "utility"
    better = "low"
    bounds = (0.0, np.inf)
    kinds = NUMBERS

    def measure(self, evidence, run):
        gaps = [np.abs(evidence.protected.numbers(n) - evidence.original.numbers(n)) for n in ("x", "y")]
        return Score(float(np.mean(gaps)))


class LostX(Lost):
    name = "toy-lost-x"

    def measure(self, evidence, run):
        return Score(float(np.abs(evidence.protected.numbers("x") - evidence.original.numbers("x")).mean()))


def table(records=20):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"x": rng.normal(0, 1, records), "y": rng.normal(0, 1, records)})
    return Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in "xy")))


GROUPS = {"x": ["x"], "y": ["y"], "both": ["x", "y"]}


def needs(measure=None, level=10.0, sign=">="):
    return Demand(Requirement(measure or Moved(), sign, level), Scenario())


def search(demands, *, methods=(Shift,), trials=60, seed=1, groups=None, utilities=None, **budget):
    scope = Scope(groups=GROUPS if groups is None else groups, methods=tuple(methods))
    return tune(
        EvaluationCase(table()),
        demands,
        utilities or [Lost()],
        Run(seed=seed),
        scope=scope,
        budget=SearchBudget(trials=trials, **budget),
    )


UNEQUAL = (needs(Moved(column="x"), 7), needs(Moved(column="y"), 23))


def test_two_steps_beat_the_best_single_one():
    """x must move by 7 and y by 23: together both move by 23 (cost 23), apart by 7 and 23 (cost 15)."""
    tuned = search(UNEQUAL, trials=80)
    best = tuned.best.utilities[0].mean
    assert 15 <= best < 15.6
    release = tuned.recipe.apply(table(), Run(seed=9))
    moved = [release.table.numbers(name) - table().numbers(name) for name in "xy"]
    assert moved[0].mean() >= 7
    assert moved[1].mean() >= 23
    words = "\n".join(tuned.sentences())
    assert "The best single method that passed, toy-shift(by=23" in words
    lone = next(each for each in tuned.runners_up if len(each.recipe.steps) == 1)
    assert lone.utilities[0].mean == pytest.approx(23, rel=0.01)


def test_a_single_step_at_its_weakest_is_as_good_as_it_gets():
    tuned = search([needs()], groups={"both": ["x", "y"]}, trials=24)
    assert len(tuned.recipe.steps) == 1
    assert 10 <= tuned.best.utilities[0].mean < 10.1
    assert tuned.counts["single methods"] == 1
    assert tuned.counts["tried"] == tuned.counts["single methods"] + tuned.counts["searched"]


def test_what_is_safe_already_is_left_as_it_is():
    tuned = search([needs(level=0.0)])
    assert tuned.recipe == Recipe()
    assert tuned.best.utilities[0].mean == 0
    assert tuned.sentences()[0] == "Recommended: the data as they are."
    assert tuned.counts["tried"] == 0


def test_out_of_reach_says_the_closest_and_by_how_much():
    with pytest.raises(UnreachableError, match=r"none of \d+ recipes tried meets toy-moved >= 10") as caught:
        search([needs()], methods=[Short], groups={"both": ["x", "y"]}, trials=16)
    assert "the closest is toy-short(by=5) on x, y: toy-moved is 5, must be >= 10" in caught.value.hint
    assert "toy-short: toy-moved >= 10: at most 5, at by = 5" in caught.value.hint


def test_an_estimate_never_meets_a_requirement():
    with pytest.raises(UnreachableError) as caught:
        search([needs(Estimated())], groups={"both": ["x", "y"]}, trials=10)
    assert "toy-estimated is approximate (sampled)" in caught.value.hint


def test_a_noisy_method_is_confirmed_in_fresh_runs():
    """Deviation 2 and five fresh runs of two columns: what passes all has a mean well above the level."""
    tuned = search([needs()], methods=[NoisyShift], groups={"both": ["x", "y"]}, trials=24)
    result = tuned.best.result
    assert len(result.runs) == 5
    assert all(run.demands[0].value >= 10 for run in result.runs)
    assert tuned.best.utilities[0].deviation > 0
    assert tuned.recipe.steps[0].method.by > 10
    # What failed did so on the fresh runs only, and stands in the report.
    for candidate, failed in tuned.found.failed:
        assert candidate.feasible
        assert min(run.demands[0].value for run in failed.runs) < 10
    assert tuned.counts["failed in fresh runs"] == len(tuned.found.failed)


@pytest.mark.parametrize("seed", range(3))
def test_a_failed_candidate_is_replaced_by_a_stronger_one_beside_it(seed):
    """The weakest setting often fails in fresh runs; a search of nothing but that still ends with a recipe."""
    tuned = search([needs()], methods=[NoisyShift], groups={"both": ["x", "y"]}, trials=1, seed=seed)
    assert tuned.counts["searched"] == 0
    assert all(run.demands[0].value >= 10 for run in tuned.best.result.runs)


def test_confirmation_uses_chance_the_search_never_saw():
    tuned = search([needs()], methods=[NoisyShift], groups={"both": ["x", "y"]}, trials=12)
    seen = {
        run.demands[0].value
        for each in tuned.found.candidates
        for run in each.result.runs
        if each.recipe == tuned.recipe
    }
    assert not seen & {run.demands[0].value for run in tuned.best.result.runs}


def test_the_number_of_workers_changes_nothing():
    alone = search(UNEQUAL, methods=[Shift, NoisyShift, Short], trials=24)
    together = search(UNEQUAL, methods=[Shift, NoisyShift, Short], trials=24, workers=4)
    assert together.to_dict() == alone.to_dict()
    assert [c.result for c in together.found.candidates] == [c.result for c in alone.found.candidates]


def test_another_seed_is_another_search():
    first = search([needs()], methods=[NoisyShift], trials=12, seed=1)
    second = search([needs()], methods=[NoisyShift], trials=12, seed=2)
    assert first.to_dict() != second.to_dict()


def test_without_a_seed_of_ones_own_the_same_search_is_made_each_time():
    """What leaves nothing to its owner's seed: only the release itself needs a secret one."""
    made = [search([needs()], methods=[NoisyShift], trials=8, seed=None) for _ in range(2)]
    assert made[0].to_dict() == made[1].to_dict()


def test_what_is_left_to_chance_wins_only_by_more_than_chance():
    def confirmed(stochastic, values):
        recipe = Recipe((Step(NoisyShift() if stochastic else Shift(), ("x",)),))
        return ConfirmedCandidate(recipe, (ReplicateMean.of(values),), (), RecipeResult())

    sure = confirmed(False, [1.0])
    lucky, better = confirmed(True, [0.5, 1.4, 0.8, 1.2]), confirmed(True, [0.5, 0.51, 0.5])
    assert _surest([lucky, sure]) is sure
    assert _surest([better, sure]) is better
    assert _surest([sure, lucky]) is sure


def test_several_utilities_count_alike():
    both = (LostX(), Lost())
    tuned = search(UNEQUAL, utilities=both, trials=16)
    assert len(tuned.best.utilities) == 2
    assert set(tuned.to_dict()["recommended"]["utility"]) == {"toy-lost-x", "toy-lost"}


def test_a_recipe_that_cannot_be_followed_is_counted_and_the_search_goes_on():
    tuned = search([needs()], methods=[Shift, Moody], groups={"both": ["x", "y"]}, trials=40)
    assert tuned.recipe.steps[-1].method.by >= 10
    assert tuned.counts["could not be applied"] > 0
    refused = [each.result.refused for each in tuned.found.candidates if each.result.refused]
    assert set(refused) == {"toy-moody must not be asked for more than 10"}


def test_methods_beyond_the_budget_are_named():
    tuned = search([needs()], methods=[Shift, NoisyShift, Short], groups={"both": ["x", "y"]}, trials=3)
    assert tuned.found.skipped == ("toy-short",)
    assert "Not tried alone, for lack of trials or time: toy-short." in tuned.sentences()


def test_the_frontier_is_what_nobody_beats():
    tuned = search(UNEQUAL, trials=24)
    judged = [each for each in tuned.found.candidates if each.is_judged]
    for each in tuned.frontier:
        assert not any(
            other.losses[0] <= each.losses[0]
            and other.shortfall <= each.shortfall
            and (other.losses[0], other.shortfall) != (each.losses[0], each.shortfall)
            for other in judged
        )
    assert {each.recipe.digest for each in tuned.frontier} >= {Recipe().digest}


@pytest.mark.parametrize(
    ("said", "match"),
    [
        ({"trials": 0}, "`trials` must be a whole number from 1"),
        ({"workers": 1.5}, "`workers` must be"),
        ({"minutes": 0}, "`minutes` must be a number above 0"),
    ],
)
def test_a_budget_is_checked(said, match):
    with pytest.raises(ParameterError, match=match):
        SearchBudget(**said)


def test_a_search_needs_something_to_meet_and_to_lose():
    with pytest.raises(ParameterError, match="needs a requirement on risk"):
        tune(EvaluationCase(table()), [], [Lost()], Run(seed=1))
    with pytest.raises(ParameterError, match="needs a utility measure"):
        tune(EvaluationCase(table()), [needs()], [], Run(seed=1))


# ------------------------------------------------------------------------------------------------- plans


def patients(records=120):
    from sfumato import datasets

    return datasets.patients(n=records, seed=3)


def test_the_plan_reruns(tmp_path):
    from sfumato import tune as front_tune

    tuned = front_tune(
        patients(),
        "k >= 3",
        methods=["mdav"],
        utility="cells-changed",
        trials=3,
        seed=1,
        plan=Plan(folder=tmp_path),
    )
    again = Plan.from_dict(tomllib.loads(tuned.plan.to_toml()))
    assert again.recipe == tuned.recipe
    assert [str(each) for each in again.requirements] == [str(each) for each in tuned.plan.requirements]
    assert again.output.path == "release.csv"
    assert again.schema == patients().schema


def test_requirements_of_several_intruders_stay_with_them():
    k = Requirement.parse("k >= 2")
    few, many = Scenario("neighbour", ("sex",)), Scenario("hospital", ("sex", "race"))
    demands = [Demand(k, few), Demand(k, many), Demand(Requirement.parse("k >= 3"), many)]
    tuned = tune(
        EvaluationCase(patients()), demands, [parse_measure("cells-changed")], Run(seed=1),
        scope=Scope(columns=("sex", "race"), methods=("mdav",)), budget=SearchBudget(trials=2),
    )  # fmt: skip
    assert tuned.plan.scenarios == (few, many)
    assert tuned.plan.demands == tuple(demands)
    same = tune(
        EvaluationCase(patients()), demands[:2], [parse_measure("cells-changed")], Run(seed=1),
        scope=Scope(columns=("sex", "race"), methods=("mdav",)), budget=SearchBudget(trials=2),
    )  # fmt: skip
    assert same.plan.requirements == (k,)
    assert not same.plan.required_in


@pytest.mark.parametrize(
    ("text", "looks"), [("k >= 3", False), ("dbrl <= 0.1", False), ("l >= 2", True), ("t <= 0.3", True)]
)
def test_whether_a_requirement_looks_at_sensitive_columns(text, looks):
    demands = [Demand(Requirement.parse(text), Scenario())]
    assert looks_at_sensitive(EvaluationCase(patients(60)), demands, Run(seed=1)) is looks


def test_a_recipe_in_a_line():
    mdav = registry.method("mdav")
    steps = (Step(mdav(k=3), tuple("abcdefgh")), Step(registry.method("rank-swapping")(window=5.0), ("a",)))
    assert (
        describe(Recipe(steps)) == "mdav(k=3) on a, b, c, d, e and 3 more; then rank-swapping(window=5) on a"
    )
    assert describe(Recipe((Step(mdav(scale="range"), tuple("abcdef")),))) == (
        "mdav(k=5, scale=range) on a, b, c, d, e, f"
    )


def test_without_optuna_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingDependencyError, match="tuning needs the package `optuna`") as caught:
        search([needs()], trials=1)
    assert caught.value.hint == "pip install 'sfumato[tune]'"


# ---------------------------------------------------------------------------------------------- its time


class Clock:
    """Stands still until somebody works."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


CLOCK = Clock()


class Slow(Shift):
    """Takes ten seconds a column."""

    name = "toy-slow"

    def shift(self, rng):
        CLOCK.now += 10
        return self.by


class Endless(Shift):
    """Never comes to an end, but looks whether it should."""

    name = "toy-endless"

    def protect(self, table, run):
        while True:
            CLOCK.now += 1
            run.check()


def timed(methods, *, minutes, records=20, clock=CLOCK, level=10.0, **more):
    CLOCK.now = 0.0
    scope = Scope(groups={"both": ["x", "y"]}, methods=tuple(methods))
    budget = SearchBudget(trials=60, minutes=minutes)
    return tune(
        EvaluationCase(table(records)), [needs(level=level)], [Lost()], Run(seed=1), scope=scope, budget=budget,
        clock=clock, **more,
    )  # fmt: skip


def test_a_search_keeps_its_minutes_confirmation_included():
    """Sixty trials of twenty seconds would take twenty minutes, and the scan of one method seven."""
    tuned = timed([Slow], minutes=10)
    assert CLOCK.now <= 600 * 1.1
    assert tuned.best.result.runs[0].demands[0].value >= 10
    assert tuned.found.planned == "17 of 60 trials, as many as fit into its time"
    assert not tuned.found.stopped_early


def test_a_time_limit_ends_early_and_says_so():
    """What was quick becomes slow after it was planned."""

    class Slower(Shift):
        name = "toy-slower"
        runs = 0

        def shift(self, rng):
            Slower.runs += 1
            CLOCK.now += 60 * (Slower.runs > 40)
            return self.by

    tuned = timed([Slower], minutes=10, level=0.5)
    assert 0 < tuned.counts["tried"] < 60
    words = "\n".join(tuned.sentences())
    assert "stopped after 10 minutes" in words
    assert "on another machine" in words


def test_as_many_trials_are_made_as_surely_fit_whether_there_is_a_little_more_time_or_less():
    made = [timed([Slow], minutes=minutes) for minutes in (10, 10.5, 11)]
    assert len({tuned.found.planned for tuned in made}) == 1
    assert len({tuned.recipe for tuned in made}) == 1


class SlowByChance(Slow):
    """Takes ten seconds a column, and moves a little more or less."""

    name = "toy-slow-by-chance"
    randomness = Randomness()

    def shift(self, rng):
        return super().shift(rng) + rng.normal(0, 0.1)


@pytest.mark.parametrize("method", [Slow, SlowByChance])
def test_what_was_seen_to_meet_is_confirmed_though_time_is_up(method):
    """Trying what is known takes all the time there is, and more."""
    known = Recipe((Step(method(by=12.0), ("x", "y")),))
    tuned = timed([Endless], minutes=0.1, known=[known])
    assert tuned.recipe == known
    assert len(tuned.best.result.runs) == 1
    assert "stopped after 0.1 minutes" in tuned.found.stopped_early
    assert CLOCK.now <= 20 * (4 if method is SlowByChance else 1)


def test_the_next_is_confirmed_where_the_first_fails_though_time_is_up():
    """Of two that were seen to meet only the second does in a fresh run; time was up before either."""

    class Lucky(SlowByChance):
        name = "toy-lucky"
        runs = 0

        def shift(self, rng):
            Lucky.runs += 1
            return super().shift(rng) - 5 * (Lucky.runs > 6)  # two columns in three runs of the search

    first, second = (
        Recipe((Step(cls(by=by), ("x", "y")),)) for cls, by in ((Lucky, 12.0), (SlowByChance, 14.0))
    )
    tuned = timed([Endless], minutes=0.1, known=[first, second])
    assert tuned.recipe == second
    assert [candidate.recipe for candidate, _ in tuned.found.failed] == [first]


def test_a_method_that_does_not_end_is_stopped_and_the_others_go_on():
    tuned = timed([Endless, Shift], minutes=5)
    assert CLOCK.now <= 300 * 1.1
    assert [step.method.name for step in tuned.recipe.steps] == ["toy-shift"]
    assert tuned.found.skipped == ("toy-endless",)


def test_what_is_known_is_tried_before_anything_else():
    """All that the search itself may try never ends, but what is known does."""
    known = Recipe((Step(Shift(by=12.0), ("x", "y")),))
    tuned = timed([Endless], minutes=5, known=[known])
    assert tuned.recipe == known


def test_what_is_told_before_counts_as_time_of_the_search():
    def wait(works, table, run):
        CLOCK.now += 400

    with pytest.raises(UnreachableError) as caught:
        timed([Slow], minutes=5, before=wait)
    assert "stopped after 5 minutes" in caught.value.hint


def test_nobody_stops_a_search_without_a_limit():
    tuned = timed([Slow], minutes=None)
    assert CLOCK.now > 600
    assert not tuned.found.stopped_early


class Wasteful(Shift):
    """Protects no more than it should, and loses more the higher its number."""

    name = "toy-wasteful-0"
    extra = 0

    def protect_column(self, column, rng):
        apart = np.where(np.arange(len(column.values)) % 2, -1.0, 1.0)
        return column.values + self.by + self.extra * apart


WASTEFUL = [
    type(f"Waste{i}", (Wasteful,), {"name": f"toy-wasteful-{i}", "extra": 40 + 10 * i}) for i in range(1, 7)
]


def test_of_many_methods_the_best_on_a_sample_go_on_with_everybody():
    """All move the mean alike, but waste moves records further to and fro."""
    tuned = timed([*WASTEFUL[::-1], Shift], minutes=None, records=1000, level=30.0)
    assert tuned.found.subsample == 500
    assert len(tuned.found.sampled_only) == 3
    assert set(tuned.found.sampled_only) == {"toy-wasteful-4", "toy-wasteful-5", "toy-wasteful-6"}
    alone = [each for each in tuned.found.candidates if each.origin == "single method"]
    assert not {each.recipe.steps[0].method.name for each in alone} & set(tuned.found.sampled_only)
    assert tuned.best.utilities[0].mean < 31
    assert "on a sample of 500 records, so not tried on all" in "\n".join(tuned.sentences())


def test_a_sample_keeps_households_together():
    from sfumato.tuning.pruning import Pruning

    frame = pl.DataFrame({"x": np.arange(1200.0), "home": np.arange(1200) // 3})
    columns = (Column("x", Kind.CONTINUOUS, Role.KEY), Column("home", Kind.NOMINAL, Role.HOUSEHOLD))
    made = Pruning(EvaluationCase(Table(frame, Schema(columns))), RecipeJudge((), ()), Run(seed=1))
    assert 500 <= made.records <= 502
    assert set(made.case.table.frame["home"].value_counts()["count"]) == {3}


def test_a_household_number_that_nothing_could_bear_is_left_out_and_said():
    """dbrl looks at each record alone, so it is never certain where a column joins records."""
    frame = table(60).frame.with_columns(home=pl.Series(np.arange(60) // 2))
    schema = Schema((*table().schema.columns, Column("home", Kind.NOMINAL, Role.HOUSEHOLD)))
    demand = Demand(Requirement.parse("dbrl <= 0.3"), Scenario())
    tuned = tune(
        EvaluationCase(Table(frame, schema)), [demand], [Lost()], Run(seed=1), scope=Scope(methods=("mdav",)),
        budget=SearchBudget(trials=3),
    )  # fmt: skip
    assert tuned.plan.output.drop == ("home",)
    assert "home" in tuned.plan.schema
    assert tuned.notes == ("`home` is left out: it links records, and dbrl measures each alone",)


class Dear(Lost):
    """What is asked for; a search ranks by something quick instead."""

    name = "toy-dear"

    def quick(self):
        return Lost()

    def measure(self, evidence, run):
        CLOCK.now += 50
        return Score(2 * super().measure(evidence, run).value)


def test_only_the_last_few_are_measured_by_what_costs_much():
    tuned = timed_by(Dear(), minutes=None)
    assert CLOCK.now == 150  # three finalists
    assert tuned.best.utilities[0].mean == pytest.approx(20, rel=0.02)
    assert tuned.judge.utilities == (Dear(),)
    assert set(tuned.to_dict()["frontier"][0]["utility"]) == {"toy-lost"}
    assert any("The search measured losses by toy-lost" in said for said in tuned.sentences())


def test_without_time_for_it_the_quick_loss_is_told_and_said_to_be_that():
    tuned = timed_by(Dear(), minutes=1)
    assert CLOCK.now <= 150
    assert tuned.judge.utilities == (Lost(),)
    assert "the loss of the best by quick measures only" in tuned.found.stopped_early


def timed_by(measure, *, minutes):
    CLOCK.now = 0.0
    scope = Scope(groups={"both": ["x", "y"]}, methods=(Shift,))
    budget = SearchBudget(trials=20, minutes=minutes)
    return tune(
        EvaluationCase(table()), [needs()], [measure], Run(seed=1), scope=scope, budget=budget, clock=CLOCK
    )

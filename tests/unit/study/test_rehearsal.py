"""The rehearsal: who sits out, what is followed without them, and who is attacked."""

from __future__ import annotations

import tomllib

import numpy as np
import polars as pl
import pytest

from sfumato.core.measure import Measure, Needs, Score, Status
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.scenario import CONTROL
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError, PlanError, UnreachableError
from sfumato.recipes.parts import Output
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.releasing.carry_out import carry_out
from sfumato.study.evaluate import EvaluationCase, evaluate, evaluate_replicates, usable
from sfumato.tuning import dropping


class Parted(Measure):
    """Tells who is who by the number of each record, and how many there are on either side."""

    name, title, aspect, better = "toy-parted", "Parted", "risk", "low"
    kinds = frozenset({Kind.CONTINUOUS})
    needs = Needs(control=True)

    def measure(self, evidence, run):
        mine, others = evidence.original.frame["x"].to_numpy(), evidence.control.frame["x"].to_numpy()
        said = {"mine": len(mine), "others": len(others), "common": len(np.intersect1d(mine, others))}
        said["persons"] = len(np.intersect1d(mine // 4, others // 4))
        said["released"] = len(evidence.protected)
        return Score(float(others.sum()), by_record=mine, details=said)


def table(n=40, *, persons=False):
    frame = {"x": np.arange(float(n)), "who": np.arange(n) // 4 if persons else np.arange(n)}
    role = Role.PERSON if persons else Role.OTHER
    schema = Schema((Column("x", Kind.CONTINUOUS, Role.KEY), Column("who", Kind.NOMINAL, role)))
    return Table(pl.DataFrame(frame), schema)


def scored(what=None, *, seed=1, control=0.25, replicate=None, of=None, **more):
    recipe = Recipe.from_list([]) if what is None else what
    case = EvaluationCase(of or table(), control=control, **more)
    return evaluate(recipe, case, [Parted()], Run(seed=seed), replicate=replicate).scores["toy-parted"]


def test_the_rest_is_protected_and_those_who_sit_out_are_the_control():
    score = scored()
    assert score.details == {
        "mine": 30,
        "others": 10,
        "common": 0,
        "persons": score.details["persons"],
        "released": 30,
    }
    assert len(score.by_record) == 40
    assert np.isnan(score.by_record).sum() == 10
    kept = ~np.isnan(score.by_record)
    np.testing.assert_array_equal(score.by_record[kept], np.arange(40)[kept])


def test_nobody_is_on_both_sides_where_persons_have_several_records():
    said = scored(of=table(persons=True)).details
    assert said["persons"] == 0
    assert said["mine"] + said["others"] == 40


def test_nor_where_the_number_of_the_person_was_left_out():
    said = scored(of=table(persons=True), after=dropping(Output(drop=("who",)))).details
    assert said["persons"] == 0


def test_who_sits_out_is_told_by_seed_and_table_alone():
    assert scored().value == scored(replicate=3).value
    assert scored().value != scored(seed=2).value
    one, other = (
        evaluate_replicates(
            Recipe.from_list([]), EvaluationCase(table(), control=0.25), [Parted()], Run(seed=1), [0]
        ),
        None,
    )
    other = evaluate(Recipe(), EvaluationCase(table(), control=0.25), [Parted()], Run(seed=1).at("elsewhere"))
    assert next(iter(one)).scores["toy-parted"].value == other.scores["toy-parted"].value


def test_a_file_of_others_is_taken_before_a_rehearsal_and_without_both_there_is_a_reason():
    others = table(5)
    score = scored(resources={CONTROL: others})
    assert score.details["others"] == 5
    assert score.details["mine"] == 40
    none = scored(control=0.0)
    assert none.status is Status.REFUSED
    assert "control" in none.reason


def test_a_release_is_rehearsed_only_by_what_made_it():
    case = EvaluationCase(table(), control=0.25)
    alone = evaluate(Release.unchanged(table()), case, [Parted()], Run(seed=1)).scores["toy-parted"]
    assert alone.status is Status.REFUSED
    made = EvaluationCase(table(), control=0.25, make=Recipe().apply)
    again = evaluate(Release.unchanged(table()), made, [Parted()], Run(seed=1)).scores["toy-parted"]
    assert again.value == scored().value


def test_a_rehearsal_that_cannot_be_followed_is_a_reason_and_no_number():
    def never(part, run):
        raise UnreachableError("nothing will do")

    case = EvaluationCase(table(), control=0.25, make=never)
    score = evaluate(Release.unchanged(table()), case, [Parted()], Run(seed=1)).scores["toy-parted"]
    assert score.status is Status.NOT_ESTIMABLE
    assert "nothing will do" in score.reason


def test_all_of_one_person_leaves_nobody_to_protect():
    one = table(4, persons=True)
    score = scored(of=one)
    assert score.status is Status.NOT_ESTIMABLE
    with pytest.raises(Exception, match="leaves nobody to protect"):
        usable(Parted(), score)


@pytest.mark.parametrize("share", [-0.1, 1.0, 1.5, float("nan")])
def test_a_share_is_a_share(share):
    with pytest.raises(ParameterError, match="share"):
        EvaluationCase(table(), control=share)


PLAN = """
[data]
path = "people.csv"
control = 0.25
[columns]
x = { kind = "continuous", role = "key" }
y = { kind = "continuous", role = "key" }
"""


def test_a_plan_says_it_with_the_data_and_says_it_again():
    said = tomllib.loads(PLAN)
    plan = Plan.from_dict(said)
    assert plan.control == 0.25
    assert Plan.from_dict(tomllib.loads(plan.to_toml())) == plan
    only = Plan.from_dict({"data": {"control": 0.1}})
    assert (only.data, only.control) == (None, 0.1)
    assert only.to_dict() == {"data": {"control": 0.1}}


@pytest.mark.parametrize("value", [True, "0.2", 1, -0.5])
def test_a_plan_with_another_share_is_refused(value):
    with pytest.raises(PlanError, match="share of the persons"):
        Plan.from_dict({"data": {"path": "a.csv", "control": value}})


def test_a_plan_has_a_share_or_a_file_of_others():
    said = {"data": {"path": "a.csv", "control": 0.2}, "resources": {"control": {"path": "b.csv"}}}
    with pytest.raises(PlanError, match="both"):
        Plan.from_dict({**said, "columns": {"x": {"kind": "continuous", "role": "key"}}})


def test_a_plan_is_judged_in_its_rehearsal_and_released_with_everyone():
    said = tomllib.loads(PLAN)
    plan = Plan.from_dict(said)
    plan = Plan(**{**vars(plan), "requirements": (Requirement(Parted(), "<=", 1e9),)})
    whole = Table(pl.DataFrame({"x": np.arange(40.0), "y": np.arange(40.0)}), plan.schema)
    outcome = carry_out(plan, Run(seed=1), table=whole, protect=None)
    (judgement,) = outcome.judgements
    assert judgement.score.details["mine"] == 30
    assert len(outcome.release.table) == 40
    assert carry_out(plan, Run(seed=1), table=whole).judgements[0].score.value == judgement.score.value

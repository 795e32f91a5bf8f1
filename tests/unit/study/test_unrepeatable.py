"""Methods whose chance must not be repeated, an ε that was moved on the data, and records that are nobody's."""

import json

import pytest

from sfumato import front
from sfumato.core import registry
from sfumato.core.budget import NO_GUARANTEE
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.errors import ParameterError, PlanError
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.releasing.trail import randomness_of
from sfumato.report import write_report
from toys import Draw, Invented, Private, numbers_table

COLUMNS = ("age", "income")


def compared(methods, **more):
    return front.compare(
        numbers_table(60), methods, hold="rank-linkage", level=0.5, rank_by="rank-utility",
        columns=COLUMNS, repeats=1, tolerance=0.5, seed=1, **more,
    )  # fmt: skip


def test_an_epsilon_that_was_moved_on_the_data_is_labelled_everywhere(tmp_path):
    study = compared([Private(), Draw()])
    private, other = (
        next(o for o in study.outcomes if o.step.method.name == name) for name in ("private", "draw")
    )
    assert NO_GUARANTEE in private.to_dict()["caution"]
    assert not other.to_dict()["caution"]
    assert [NO_GUARANTEE in text for text in study.to_frame().sort("method")["remark"]] == [False, True]
    assert NO_GUARANTEE in private.example.provenance[0].notes[-1]
    page, twin = write_report(study, tmp_path / "study.html", public=False)
    assert NO_GUARANTEE in page.read_text()
    assert NO_GUARANTEE in json.dumps(json.loads(twin.read_text()))


def test_the_label_survives_in_a_plan_and_needs_the_parameter_that_is_moved(monkeypatch):
    monkeypatch.setattr(registry, "method", lambda name: Private)
    moved = Step(Private(), COLUMNS).with_drive(2.0)
    again = Step.from_dict(moved.to_dict())
    assert again.tuned == ("epsilon",)
    assert NO_GUARANTEE in again.caution
    assert not Step(Private(epsilon=2.0), COLUMNS).caution
    with pytest.raises(PlanError, match="tuned"):
        Step(Private(), COLUMNS, tuned=("eps",)).apply(numbers_table(10), Run(seed=1))


def test_nobody_compares_them_unless_by_name(monkeypatch):
    monkeypatch.setattr(registry, "methods", lambda: {"private": Private, "draw": Draw})
    assert [o.step.method.name for o in compared([]).outcomes] == ["draw"]


def test_a_replay_refuses_them(tmp_path):
    trail = tmp_path / "release.private.json"
    trail.write_text('{"seed": "1f", "seed_given": true}')
    assert randomness_of(trail, Plan(recipe=Recipe.of(Draw()))).seed == 31
    with pytest.raises(ParameterError, match="private"):
        randomness_of(trail, Plan(recipe=Recipe.of(Draw(), Private())))


@pytest.mark.parametrize("measure", ["k", "uniqueness", "prosecutor-risk", "suda", "unsafe-combinations"])
def test_who_is_alike_among_nobody_is_no_question(measure):
    """Of a file from elsewhere, whose records do not map either, it is one."""
    table = numbers_table(40)
    release = Recipe((Step(Invented(), COLUMNS),)).apply(table, Run(seed=1))
    found = front.assess(table, release, [measure], seed=1)[measure]
    assert found.status is Status.REFUSED
    assert "nobody" in found.reason
    assert (
        front.assess(table, Release.of(release.table), [measure], seed=1)[measure].status
        is not Status.REFUSED
    )
    strata = Recipe((Step(Invented(), COLUMNS, within=("region",)),)).apply(table, Run(seed=1))
    later = Recipe((Step(Invented(), COLUMNS), Step(Draw(), COLUMNS))).apply(table, Run(seed=1))
    assert strata.synthetic
    assert later.synthetic


def test_what_measures_distances_of_records_still_can():
    table = numbers_table(40).select(COLUMNS)
    release = Recipe((Step(Invented(), COLUMNS),)).apply(table, Run(seed=1))
    assert front.assess(table, release, ["rank-linkage"], seed=1)["rank-linkage"].status is Status.OK

"""The desk answers at once: what it remembers never changes an answer, and a sample meets no requirement."""

import os
import random
from dataclasses import replace

import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.cli import cli
from sfumato.core.run import Run
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.decide import decide
from sfumato.web.answers import render
from sfumato.web.strip import strip_of
from sfumato.web.tasks import TASKS, Desk, scores
from sfumato.web.tasks.answer_costs import AnswerCosts

PLAN = """
[data]
path = "live.csv"

[columns.name]
kind = "nominal"
role = "identifier"

[columns.age]
kind = "continuous"
role = "key"
integer = true

[columns.sex]
kind = "nominal"
role = "key"

[columns.town]
kind = "nominal"
role = "key"

[columns.pay]
kind = "continuous"
role = "sensitive"

[[scenarios]]
name = "neighbour"
columns = ["age", "sex"]
requirements = ["k-anonymity >= 1", "l-diversity >= 2"]

[[scenarios]]
name = "register"
columns = ["age", "sex", "town"]
requirements = ["uniqueness <= 1"]

[output]
path = "release.csv"
"""

#: What can be moved: steps that leave nothing to chance, and one that does.
STEPS = {
    "round": '[[steps]]\nmethod = "rounding"\ncolumns = ["age"]\n[steps.parameters]\nbase = {}\n',
    "swap": '[[steps]]\nmethod = "rank-swapping"\ncolumns = ["pay"]\n[steps.parameters]\nwindow = {}\n',
    "pram": '[[steps]]\nmethod = "pram"\ncolumns = ["town"]\n[steps.parameters]\nretain = 0.{}\n',
}
EDITS = st.lists(
    st.tuples(st.permutations(["round", "swap", "pram"]), st.integers(0, 3), st.sampled_from([5, 7, 9])),
    min_size=2, max_size=4,
)  # fmt: skip


def people(n, seed=1):
    rng = random.Random(seed)
    return pl.DataFrame({
        "name": [f"person {i}" for i in range(n)],
        "age": [rng.randrange(20, 60) for _ in range(n)],
        "sex": [rng.choice("fm") for _ in range(n)],
        "town": [rng.choice(["north", "south", "west"]) for _ in range(n)],
        "pay": [rng.randrange(1000, 9000) / 10 for _ in range(n)],
    })  # fmt: skip


def new_desk():
    return Desk(tell=lambda _: None, stopped=lambda: False)


def plan_of(*steps):
    return PLAN + "".join(STEPS[name].format(setting) for name, setting in steps)


def ask(desk, toml, name="score", **how):
    return TASKS[name](desk, toml=toml, **how)


def numbers(answer):
    return {name: each for name, each in answer.items() if name != "seconds"}


@pytest.fixture(scope="module", autouse=True)
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("live")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        people(120).write_csv(place / "live.csv")
        yield place


@pytest.fixture
def sampling(monkeypatch):
    """A desk that takes a second to be none: every file is too large for it."""
    monkeypatch.setattr(scores, "_SECONDS_AT_ONCE", -1.0)
    monkeypatch.setattr(scores, "SAMPLED_RECORDS", 60)
    monkeypatch.setattr(scores, "_TRIED_RECORDS", 30)


def same_after(edits):
    """Whether a desk that has gone through edits says what one says that has just been opened."""
    desk = new_desk()
    for order, length, setting in edits:
        toml = plan_of(*((name, setting) for name in order[:length]))
        fresh, plan = new_desk(), Plan.from_dict(pl_toml(toml))
        fresh.memory(plan).chance = desk.memory(plan).chance
        assert numbers(ask(desk, toml)) == numbers(ask(fresh, toml))


def pl_toml(text):
    from sfumato.data.records import parse_toml

    return parse_toml(text, "the plan")


@settings(max_examples=4)
@given(edits=EDITS)
def test_what_is_remembered_never_changes_an_answer(edits):
    same_after(edits)


@settings(max_examples=4)
@given(edits=EDITS)
def test_nor_does_it_of_a_sample(edits):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scores, "_SECONDS_AT_ONCE", -1.0)
        patch.setattr(scores, "SAMPLED_RECORDS", 60)
        patch.setattr(scores, "_TRIED_RECORDS", 30)
        same_after(edits)


def test_the_desk_says_after_any_changes_what_a_run_says():
    desk = new_desk()
    for setting in (5, 7, 9, 7):
        toml = plan_of(("round", 10), ("swap", setting))
        answer = ask(desk, toml)
    plan = Plan.from_dict(pl_toml(toml))
    run = Run(randomness=desk.memory(plan).chance)
    outcome = carry_out(plan, run)
    assert [each["score"] for each in answer["requirements"]] == [
        each.score.to_dict() for each in outcome.judgements
    ]
    assert answer["decision"] == decide(outcome, subject="the release").to_dict()


def test_the_original_scores_what_the_command_line_says(place):
    (place / "plan.toml").write_text(PLAN)
    result = CliRunner().invoke(
        cli, ["risk", "plan.toml", "-m", "uniqueness", "--columns", "age,sex,town", "--json"]
    )
    assert result.exit_code == 0, result.output
    found = next(each for each in ask(new_desk(), PLAN)["requirements"] if each["measure"] == "uniqueness")
    assert f'"value": {found["original"]["value"]}' in result.output


@pytest.mark.usefixtures("sampling")
def test_a_sample_is_named_hatched_and_meets_no_requirement():
    answer = ask(new_desk(), plan_of(("round", 10)))
    assert (answer["sampled"], answer["records"]) == (60, 120)
    assert not any(each["met"] for each in answer["requirements"])  # though k >= 1 holds of any
    assert not answer["decision"]["open"]
    assert not answer["decision"]["met"]
    assert "requirement-missed" in {each["rule"] for each in answer["decision"]["findings"]}
    for each in answer["requirements"]:
        each["strip"] = strip_of(each)
        assert "sample of 60 records" in each["strip"]["words"][0]
        assert "computed exactly" not in each["strip"]["words"]
    page = render("desk_strip", {"found": answer, "session": 1})
    assert page.count('class="guessed"') == len(answer["requirements"])
    assert 'id="hatch"' in page
    assert "✓" not in page
    assert "sample of 60 of 120 records" in page


def test_all_records_are_neither_hatched_nor_named_so():
    answer = ask(new_desk(), plan_of(("round", 10)))
    for each in answer["requirements"]:
        each["strip"] = strip_of(each)
    page = render("desk_strip", {"found": answer, "session": 1})
    assert "hatch" not in page
    assert "sample" not in page
    assert "✓ met" in page


def test_what_was_made_of_a_file_is_dropped_when_it_changes(place):
    desk, toml = new_desk(), plan_of(("round", 10)).replace("live.csv", "other.csv")
    people(100).write_csv(place / "other.csv")
    before = ask(desk, toml)
    people(90, seed=2).write_csv(place / "other.csv")
    after = ask(desk, toml)
    fresh = new_desk()
    fresh.memory(Plan.from_dict(pl_toml(toml))).chance = desk.known[1].chance
    assert (before["records"], after["records"]) == (100, 90)
    assert numbers(after) == numbers(ask(fresh, toml))
    assert set(desk.known[1].steps) == {90}


def test_another_role_is_another_answer():
    desk, toml = new_desk(), plan_of(("round", 5)).replace('columns = ["age", "sex", "town"]\n', "")
    other = toml.replace(
        '[columns.town]\nkind = "nominal"\nrole = "key"', '[columns.town]\nkind = "nominal"\nrole = "other"'
    )
    # rounding draws at ties: fives leave somebody alone whatever is drawn
    values = [ask(desk, each)["requirements"][-1]["score"]["value"] for each in (toml, other, toml)]
    assert values[0] == values[2] != values[1]


def test_a_file_is_read_once_for_its_questions_and_its_desk(monkeypatch):
    from sfumato.io import delimited

    read, times = delimited.read, []
    monkeypatch.setattr(delimited, "read", lambda *a: times.append(1) or read(*a))
    desk = new_desk()
    TASKS["look_into"](desk, source="live.csv", reading={})
    request = {
        "source": "live.csv",
        "roles": {"name": "identifier", "age": "key", "sex": "key", "town": "key", "pay": "sensitive"},
    }
    made = TASKS["draft"](desk, request, with_step=False)
    desk.table(Plan.from_dict(pl_toml(made["toml"])))
    assert len(times) == 1
    assert desk.held is None


def test_a_first_answer_is_rehearsed_on_a_few_records(monkeypatch):
    monkeypatch.setattr(os, "nice", lambda _more: None)  # the tests after it shall not go slowly
    assert TASKS["rehearse"](new_desk(), source="live.csv", reading={}) is None


class Clock:
    def __init__(self, *seconds):
        self.times, self.now = iter(seconds), 0.0

    def __call__(self):
        self.now += next(self.times)
        return self.now


def test_what_answers_took_tells_what_more_records_take():
    plan = Plan.from_dict(pl_toml(plan_of(("round", 10))))
    costs = AnswerCosts(Clock(0, 0.1, 0, 0.2, 0, 0.05, 0, 3.0))
    assert costs.expected_seconds(plan, 10_000) == 0
    for records in (500, 2_000):
        with costs.noting(plan, records, anew=True):
            pass
    assert costs.is_tried(plan, 500, 2_000)
    assert 0.2 < costs.expected_seconds(plan, 4_000) < costs.expected_seconds(plan, 10**6)
    with costs.noting(plan, 2_000, anew=False):  # less, as its steps were known
        pass
    assert costs.expected_seconds(plan, 2_000) == pytest.approx(0.2)
    with costs.noting(plan, 10**6, anew=False):
        pass
    assert costs.expected_seconds(plan, 10**6) == pytest.approx(3.0)
    other = replace(plan, requirements=(), required_in={})
    assert costs.expected_seconds(other, 10**6) == 0  # of another kind nothing is known


def test_few_records_that_took_longer_tell_nothing():
    plan = Plan.from_dict(pl_toml(PLAN))
    costs = AnswerCosts(Clock(0, 2.0, 0, 0.2))
    for records in (500, 2_000):
        with costs.noting(plan, records, anew=True):
            pass
    assert not costs.is_tried(plan, 500, 2_000)

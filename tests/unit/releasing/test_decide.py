"""The one place that says whether something may leave: what it looks at, and what it makes of what it finds."""

import json
import stat
from dataclasses import replace
from types import SimpleNamespace

import polars as pl
import pytest

from seeds import LARGE
from sfumato.core.budget import PrivacyBudget, Spending
from sfumato.core.measure import Score, Status
from sfumato.core.randomness import ByPlace
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.checks import Violation
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import RequirementError
from sfumato.methods.microaggregation import Mdav
from sfumato.methods.noise import CorrelatedNoise
from sfumato.recipes.demand import Demand
from sfumato.recipes.parts import Output
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.releasing import decide as deciding
from sfumato.releasing.budget_coverage import BudgetCoverage
from sfumato.releasing.decide import (
    RULES,
    Decision,
    Finding,
    decide,
    decide_file,
    decide_plan,
    decide_reproduced,
    foresee,
    override,
    record_override,
    require_secret_seed,
)
from sfumato.releasing.outcome import CountsBeside, Judgement, PlanOutcome, TableOutcome
from sfumato.releasing.prepare import prepare_file
from sfumato.releasing.request import Request

RUN = Run(seed=LARGE)
AGE, TOWN = Column("age", Kind.CONTINUOUS, Role.KEY), Column("town", Kind.NOMINAL, Role.KEY)
PEOPLE = {"age": [30, 30, 40, 40], "town": ["A", "A", "B", "B"]}
K2, K3 = Requirement.parse("k >= 2"), Requirement.parse("k >= 3")


def table_of(data=PEOPLE, *columns):
    return Table(pl.DataFrame(data), Schema(columns or (AGE, TOWN)))


def judged(requirement, value, scenario="default"):
    return Judgement(requirement, scenario, Score(value))


def plan_of(*columns, step=None, requirements=(K2,), **output):
    return Plan(
        schema=Schema(columns or (AGE, TOWN)),
        recipe=Recipe((step,)) if step else Recipe(),
        requirements=requirements,
        output=Output(**output),
    )


MET = (judged(K2, 2),)


def part_of(judgements=MET, broken=(), plan=None, **more):
    table = table_of()
    return TableOutcome(plan or plan_of(), table, Release.unchanged(table), judgements, broken, **more)


def outcome_of(part, randomness=RUN.randomness):
    parts = part if isinstance(part, dict) else {"": part}
    return PlanOutcome(parts, randomness)


def rules(decision):
    return [each.rule for each in decision.findings]


# -------------------------------------------------------------------------------------------- the decision


def test_what_is_found_blocks_unless_someone_takes_it_on():
    found = (Finding("role-missing", "`age` has no role"),)
    assert Decision("it", ()).may_leave is True
    assert Decision("it", found).may_leave is False
    assert Decision("it", found, override="agreed").may_leave is True
    Decision("it", ()).require_leave()
    Decision("it", found, override="agreed").require_leave()
    with pytest.raises(RequirementError) as caught:
        Decision("it", found).require_leave()
    assert caught.value.message == (
        "it may not leave (1 problem), so nothing was written; role-missing: `age` has no role"
    )
    assert (
        caught.value.hint
        == 'fix what is listed; or release it anyway with --override "REASON", which is recorded'
    )
    with pytest.raises(RequirementError) as caught:
        Decision("it", found).require_leave(hint="ask")
    assert caught.value.hint == "ask"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (["nothing-required"], "no requirement limits the risk of the release, so nothing was written; why"),
        (
            ["requirement-missed"],
            "1 of 3 requirements are not met, so nothing was written; requirement-missed: why",
        ),
        (["seed-guessable"], "it may not leave (1 problem), so nothing was written; seed-guessable: why"),
        (
            ["requirement-missed", "nothing-required"],
            "it may not leave (2 problems), so nothing was written; requirement-missed: why; nothing-required: why",
        ),
    ],
)
def test_why_it_may_not_leave(found, said):
    judgements = (judged(K2, 2), judged(K2, 3), judged(K3, 2))
    decision = Decision("it", tuple(Finding(each, "why") for each in found), judgements)
    with pytest.raises(RequirementError) as caught:
        decision.require_leave()
    assert caught.value.message == said
    assert caught.value.hint.startswith(
        "leave out --seed" if found == ["seed-guessable"] else "fix what is listed"
    )


def test_the_scenario_where_it_does_worst_decides():
    first, worse, better = (judged(K3, value, name) for value, name in ((3, "a"), (2, "b"), (5, "c")))
    unknown = Judgement(K2, "d", Score.refused("why"))
    decision = Decision("it", (), (first, worse, better, judged(K2, 9), unknown))
    assert decision.worst == (worse, unknown)
    assert decision.met_requirements == (first.sentence, better.sentence, decision.judgements[3].sentence)


def test_a_decision_for_machines():
    asked = Requirement.parse("individual-risk <= 0.05 at 90%")
    estimate = Judgement(asked, "default", Score(0.01, Status.APPROXIMATE, (0.001, 0.04), confidence=95))
    decision = Decision("it", (Finding("role-missing", "why"),), (judged(K2, 2), estimate))
    said = {
        "subject": "it",
        "open": False,
        "findings": [{"rule": "role-missing", "must": RULES["role-missing"], "message": "why"}],
        "met": ["default: met: k-anonymity is 2", f"default: {asked.verdict(estimate.score)}"],
        "estimated": ["default: individual-risk <= 0.05 at 90%"],
    }
    assert decision.to_dict() == said
    assert replace(decision, override="agreed").to_dict() == {**said, "open": True, "override": "agreed"}


# ------------------------------------------------------------------------------------- what came of a plan


def test_nothing_is_found_where_all_is_met():
    outcome = outcome_of(part_of())
    assert decide(outcome, subject="it") == Decision("it", (), outcome.judgements)
    assert decide(outcome, subject="it").outcome is outcome
    assert decide(outcome, subject="it", override="agreed").override == ""  # there is nothing to take on
    assert decide(outcome, subject="it", unjudged=True).unjudged is False


@pytest.mark.parametrize(
    ("part", "found"),
    [
        ({"judgements": (judged(K3, 2), judged(K2, 2))}, "requirement-missed"),
        ({"judgements": (Judgement(K2, "default", Score.refused("why")),)}, "requirement-missed"),
        ({"judgements": ()}, "nothing-required"),
        ({"judgements": (judged(Requirement.parse("k >= 1"), 2),)}, "nothing-required"),
        ({"broken": (Violation("age <= 35", 2),)}, "rule-broken"),
        ({"beside": CountsBeside(faults=("a cell is of one record",))}, "counts-disclose"),
    ],
)
def test_each_thing_that_is_found_blocks(part, found):
    decision = decide(outcome_of(part_of(**part)), subject="it")
    assert rules(decision) == [found]
    assert not decision.may_leave
    taken_on = decide(outcome_of(part_of(**part)), subject="it", override=" agreed ")
    assert (taken_on.override, taken_on.may_leave) == ("agreed", True)
    assert not decide(outcome_of(part_of(**part)), subject="it", override="  ").may_leave


def test_nothing_required_is_accepted_only_where_that_is_so():
    unjudged = decide(outcome_of(part_of(judgements=())), subject="it", unjudged=True)
    assert (rules(unjudged), unjudged.unjudged) == ([], True)
    missed = decide(outcome_of(part_of(judgements=(judged(K3, 2),))), subject="it", unjudged=True)
    assert (rules(missed), missed.unjudged) == (["requirement-missed"], False)


def test_of_several_tables_each_is_named():
    parts = {"people": part_of(), "visits": part_of(broken=(Violation("age <= 35", 1),))}
    (found,) = decide(outcome_of(parts), subject="it").findings
    assert found.message == "visits: 1 record violates the constraint: age <= 35"
    (found,) = decide(outcome_of(part_of(broken=(Violation("age <= 35", 2),))), subject="it").findings
    assert found.message == "2 records violate the constraint: age <= 35"


def test_an_identifier_in_any_copy_is_found_once():
    named = table_of(
        {**PEOPLE, "name": ["A", "B", "C", "D"]}, AGE, TOWN, Column("name", Kind.NOMINAL, Role.IDENTIFIER)
    )
    part = part_of(further=(Release.unchanged(named), Release.unchanged(named)))
    assert rules(decide(outcome_of(part), subject="it")) == ["identifier-left-in"]


def test_an_epsilon_that_guarantees_nothing_blocks(monkeypatch):
    spent = PrivacyBudget((Spending("laplace", epsilon=1.0, kept=False), Spending("geometric", epsilon=1.0)))
    part = SimpleNamespace(
        copies=(),
        broken=(),
        release=SimpleNamespace(budget=spent),
        is_judged=True,
        judgements=(),
        beside=CountsBeside(),
    )
    (found,) = deciding._findings_in(part, unjudged=False)
    assert (found.rule, "laplace" in found.message) == ("not-private", True)
    monkeypatch.setattr(PlanOutcome, "coverage", BudgetCoverage(("age",), ("town",)))
    (found,) = decide(outcome_of(part_of()), subject="it").findings
    assert (found.rule, "`town` is released without it" in found.message) == ("not-private", True)


@pytest.mark.parametrize(
    ("seed", "is_given", "shuffle", "step", "blocks"),
    [
        (5, True, True, None, True),
        (5, True, False, CorrelatedNoise(), True),
        (5, True, False, Mdav(), False),
        (LARGE, True, True, None, False),
        (5, False, True, None, False),
    ],
)
def test_a_seed_that_can_be_tried_blocks_what_hangs_on_it(seed, is_given, shuffle, step, blocks):
    chance = ByPlace(seed, is_given=is_given)
    plan = plan_of(step=Step(step, ("age",)) if step else None, shuffle=shuffle)
    other = part_of(plan=plan_of(shuffle=False))
    decision = decide(outcome_of({"a": other, "b": part_of(plan=plan)}, chance), subject="it")
    assert rules(decision) == ["seed-guessable"] * blocks
    run = Run(randomness=chance) if is_given else replace(Run(), randomness=chance)
    if blocks:
        with pytest.raises(RequirementError, match="seed-guessable"):
            require_secret_seed(plan, run, subject="it")
        require_secret_seed(plan, run, subject="it", override="agreed")
    else:
        require_secret_seed(plan, run, subject="it")


def test_what_was_overridden_then_is_when_it_is_made_again():
    missed = outcome_of(part_of(judgements=(judged(K3, 2),)))
    assert rules(decide_reproduced(missed, {})) == ["requirement-missed"]
    assert decide_reproduced(missed, {}).unjudged is False
    again = decide_reproduced(missed, {"override": {"override": "agreed"}})
    assert (again.findings, again.override, again.outcome) == ((), "agreed", missed)
    assert decide_reproduced(outcome_of(part_of(judgements=())), {}).unjudged is True


# ------------------------------------------------------------------------------------- before any work is done


def test_a_plan_is_decided_on_by_what_it_would_release():
    table = table_of()
    assert decide_plan(
        plan_of(), Run(seed=5), subject="it", table=table
    ).may_leave  # none of its chance leaves
    assert rules(decide_plan(plan_of(requirements=(K3,)), RUN, subject="it", table=table)) == [
        "requirement-missed"
    ]
    open_role = plan_of(AGE, Column("town", Kind.NOMINAL))
    assert rules(decide_plan(open_role, RUN, subject="it", table=table)) == ["role-missing"]


MAIL = Column("mail", Kind.NOMINAL, Role.OTHER)
WITH_MAIL = {**PEOPLE, "mail": [f"p{i}@example.org" for i in range(4)]}


def test_what_no_step_changes_is_looked_at_before_any_work():
    table = table_of(WITH_MAIL, AGE, TOWN, MAIL)
    foreseen = foresee(plan_of(AGE, TOWN, MAIL), {"": table}, subject="it")
    assert (foreseen.subject, rules(foreseen)) == ("it", ["identifier-left-in"])
    assert foreseen.findings[0].message.startswith("`mail`")
    assert foresee(plan_of(AGE, TOWN, MAIL, drop=("mail",)), {"": table}, subject="it").may_leave
    changed = plan_of(AGE, TOWN, MAIL, step=Step(Mdav(k=2), ("mail",)))
    assert foresee(
        changed, {"": table}, subject="it"
    ).may_leave  # what comes of it is judged when it is there
    assert foresee(plan_of(AGE, TOWN, MAIL), {}, subject="it").may_leave  # nor is what nobody has at hand


def test_that_nothing_is_required_is_said_before_any_work():
    bare = plan_of(requirements=(Requirement.parse("il1s <= 3"),))
    (found,) = foresee(bare, {"": table_of()}, subject="it").findings
    assert found.rule == "nothing-required"
    assert found.message == (
        "only utility is required (il1s <= 3); k = 2: at least 2 records share each combination of `age`, `town`"
    )
    (found,) = foresee(bare, {}, subject="it").findings
    assert found.message.endswith("; the keys were not examined")
    assert foresee(bare, {"": table_of()}, subject="it", unjudged=True).may_leave
    assert foresee(plan_of(), {"": table_of()}, subject="it").may_leave
    assert rules(foresee(plan_of(AGE, Column("town", Kind.NOMINAL)), {}, subject="it")) == ["role-missing"]


def test_of_several_plans_each_is_named_before_any_work():
    tables = {"people": table_of(WITH_MAIL, AGE, TOWN, MAIL), "visits": table_of()}
    plan = Plan(tables={"people": plan_of(AGE, TOWN, MAIL), "visits": plan_of(requirements=())})
    first, second = foresee(plan, tables, subject="it").findings
    assert first.message.startswith("people: `mail`")
    assert second.message.startswith("visits: k = 2")


# --------------------------------------------------------------------------------------- a file from elsewhere


def file_rules(table, *requirements, **more):
    return rules(decide_file(table, [Demand(each) for each in requirements], RUN, subject="it", **more))


def test_a_file_is_judged_as_it_is():
    assert file_rules(table_of(), K2) == []
    assert file_rules(table_of(), K3) == ["requirement-missed"]
    assert file_rules(table_of()) == ["nothing-required"]
    assert file_rules(table_of(), Requirement.parse("il1s <= 3")) == [
        "nothing-required",
        "requirement-missed",
    ]
    assert file_rules(table_of(), K2, Requirement.parse("k >= 1")) == []
    assert file_rules(table_of(PEOPLE, replace(AGE, upper=35), TOWN), K2) == ["rule-broken"]
    named = table_of(WITH_MAIL, AGE, TOWN, replace(MAIL, role=Role.IDENTIFIER))
    assert file_rules(named, K2) == ["identifier-left-in"]


def test_a_column_without_a_role_counts_as_known():
    """Were it not looked at, everybody would be alike."""
    facts = table_of({**PEOPLE, "fact": ["p", "q", "p", "q"]}, AGE, TOWN, Column("fact", Kind.NOMINAL))
    decision = decide_file(facts, [Demand(K2)], RUN, subject="it")
    assert rules(decision) == ["role-missing", "requirement-missed"]
    assert decision.findings[0].message == "`fact` has no role: add --role fact=ROLE"
    assert [each.score.value for each in decision.judgements] == [1]


def test_a_column_without_a_role_in_the_file_counts_as_known_whatever_the_original_says():
    columns = {role: (AGE, TOWN, Column("fact", Kind.NOMINAL, role)) for role in (None, Role.OTHER)}
    original, file = (
        table_of({**PEOPLE, "fact": list("pqpq")}, *columns[role]) for role in (Role.OTHER, None)
    )
    beside = {"original": original, "release": Release.record_by_record(file)}
    decision = decide_file(file, [Demand(K2)], RUN, subject="it", **beside)
    assert [each.score.value for each in decision.judgements] == [1]


def test_beside_its_original_a_file_is_judged_and_not_the_original():
    """Also where its records can be put together, by the number of a person."""
    person = Column("person", Kind.NOMINAL, Role.PERSON, pseudonym="p")
    original = table_of({**PEOPLE, "person": list("aabb")}, AGE, TOWN, person)
    blurred = table_of({"age": [35] * 4, "town": ["A"] * 4, "person": list("xxyy")}, AGE, TOWN, person)
    beside = {"original": original, "release": Release.record_by_record(blurred)}
    assert file_rules(blurred, K2, **beside) == []
    assert file_rules(original, K2, original=original, release=Release.unchanged(original)) == [
        "requirement-missed"
    ]


APART = {
    "minus zero": ("0.0,-0.0,1.5,1.5", Column("x", Kind.CONTINUOUS, Role.KEY)),
    "too many digits": ("1.5,1.50000000000000001,2.5,2.5", Column("x", Kind.CONTINUOUS, Role.KEY)),
    "other forms": ("1,1.0,2.5,2.5", Column("x", Kind.CONTINUOUS, Role.KEY)),
    "codes beside sets": ("?,.,{k|m},{k|m}", Column("x", Kind.NOMINAL, Role.KEY, missing=("?", "."))),
    "a code beside a wildcard": (",?,*,*", Column("x", Kind.NOMINAL, Role.KEY, missing=("?",))),
    "codes beside numbers": ("?,.,2.5,2.5", Column("x", Kind.CONTINUOUS, Role.KEY, missing=("?", "."))),
}


@pytest.mark.parametrize("case", APART)
def test_people_whom_a_file_tells_apart_are_not_let_out_as_alike(tmp_path, case):
    cells, column = APART[case]
    for role, apart in ((Role.KEY, ["value-shown-apart"]), (Role.SENSITIVE, [])):
        (tmp_path / "file.csv").write_text("x,town\n" + "".join(f"{x},A\n" for x in cells.split(",")))
        plan = Plan(schema=Schema((replace(column, role=role), TOWN)), requirements=(K2,))
        asked = prepare_file(Request(source=tmp_path / "file.csv", plan=plan))
        assert file_rules(asked.table, K2, merged=asked.merged) == apart


def test_what_is_written_in_one_way_is_not_held_to_be_shown_apart(tmp_path):
    (tmp_path / "file.csv").write_text("x,town\n1,A\n1.5,A\n1,B\n1.5,B\n,A\n,A\n-9,B\n-9,B\n")
    column = Column("x", Kind.CONTINUOUS, Role.KEY, missing=(-9,))
    asked = prepare_file(Request(source=tmp_path / "file.csv", plan=Plan(schema=Schema((column, TOWN)))))
    assert asked.merged == ()


def test_what_needs_an_original_is_met_only_beside_it():
    linkage = Requirement.parse("dbrl <= 0.6")
    decision = decide_file(table_of(), [Demand(linkage)], RUN, subject="it")
    assert decision.judgements[0].score.status is Status.REFUSED
    assert rules(decision) == ["requirement-missed"]
    blurred = table_of({**PEOPLE, "age": [35] * 4, "town": ["A"] * 4})
    beside = {"original": table_of(), "release": Release.record_by_record(blurred)}
    assert file_rules(blurred, linkage, **beside) == []
    assert file_rules(blurred, K3, **beside) == []  # of what is released, not of the original
    assert file_rules(blurred, Requirement.parse("dbrl <= 0.1"), **beside) == ["requirement-missed"]


# ---------------------------------------------------------------------------------------- what names somebody


def found_in(values, role=Role.OTHER, name="x", **column):
    table = table_of({name: values}, Column(name, Kind.NOMINAL, role, **column))
    return [(each.rule, each.message) for each in deciding._identifiers(table)]


def test_an_identifier_is_one_whatever_its_values():
    said = [("identifier-left-in", "`x` is declared as a direct identifier")]
    assert found_in(["a", "a", "b", "b"], Role.IDENTIFIER) == said
    said = [("identifier-left-in", "`x` is taken as a direct identifier (its name)")]
    assert found_in(["a", "a", "b", "b"], Role.IDENTIFIER, role_basis="its name") == said
    assert found_in(["a", "a", "b", "b"]) == []


def test_what_looks_like_an_identifier_is_one_whatever_was_declared():
    mails = [f"p{i}@example.org" for i in range(6)]
    for role in (Role.OTHER, Role.KEY, Role.SENSITIVE):
        ((rule, message),) = found_in(mails, role)
        assert (rule, message.startswith("`x` looks like a direct identifier: ")) == (
            "identifier-left-in",
            True,
        )
    for role in (Role.PERSON, Role.IDENTIFIER):  # a pseudonym takes their place
        assert found_in(mails, role, pseudonym="p") == []


def test_the_number_of_a_person_must_be_a_pseudonym():
    ((rule, message),) = found_in(["a", "b", "c", "c"], Role.PERSON)
    assert (rule, "give it a `pseudonym`" in message) == ("identifier-left-in", True)
    assert found_in(["a", "b", "c", "c"], Role.PERSON, pseudonym="p") == []


def test_an_address_in_a_label_is_found():
    found = found_in(["a", "a", "b", "b"], labels=(("a", "write to p1@example.org"), ("b", "none")))
    assert found == [("contact-left-in", "`x` contains e-mail addresses in 1 different text")]


@pytest.mark.parametrize(
    ("role", "confidence", "declared", "found"),
    [
        (Role.PERSON, 0.8, Role.OTHER, True),
        (Role.PERSON, 0.79, Role.OTHER, False),
        (Role.PERSON, 0.9, Role.KEY, False),
        (Role.HOUSEHOLD, 0.9, Role.OTHER, False),
    ],
)
def test_a_number_of_persons_is_believed_if_it_is_sure(monkeypatch, role, confidence, declared, found):
    """A key that numbers persons is judged as a key."""
    guess = SimpleNamespace(column=Column("x", Kind.NOMINAL, role), confidence=confidence, role_reason="why")
    monkeypatch.setattr(deciding, "guess_columns", lambda table: [guess])
    said = [("identifier-left-in", "`x` links the records of a person: why")]
    assert found_in(["a", "b", "b"], declared) == (said if found else [])


# ------------------------------------------------------------------------------------------------ overriding


def test_who_takes_something_on_is_on_record(tmp_path):
    clean = Decision("it", ())
    assert override(clean, "agreed", tmp_path, sha256="0") is clean
    assert not list(tmp_path.iterdir())
    blocked = Decision("it", (Finding("role-missing", "why"),))
    assert override(blocked, "agreed", tmp_path, sha256="0") == replace(blocked, override="agreed")
    override(blocked, "again", tmp_path, sha256="1")
    (ledger,) = tmp_path.iterdir()
    assert stat.S_IMODE(ledger.stat().st_mode) == 0o600
    lines = [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]
    assert [(each["reason"], each["sha256"], each["open"]) for each in lines] == [
        ("agreed", "0", False),
        ("again", "1", False),
    ]
    assert "override" not in lines[0]


def test_in_a_release_folder_it_is_on_record_in_the_private_part(tmp_path):
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "SHA256SUMS").touch()
    record_override(Decision("it", (), override="agreed"), tmp_path, sha256="0")
    assert (tmp_path / "private" / "overrides.private.jsonl").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["private"]

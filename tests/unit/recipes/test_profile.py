"""Release profiles: what comes with sfumato, what users write, and what becomes of it on a table."""

from __future__ import annotations

import polars as pl
import pytest

import sfumato
from sfumato.core.requirement import Requirement
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.errors import PlanError, ReadError, UnknownNameError
from sfumato.recipes.parts import Output
from sfumato.recipes.plan import Plan
from sfumato.recipes.profile import Intruder, Profile

SCHEMA = Schema(
    (
        Column("name", Kind.NOMINAL, Role.IDENTIFIER),
        Column("sex", Kind.NOMINAL, Role.KEY),
        Column("born", Kind.DATE, Role.KEY),
        Column("income", Kind.CONTINUOUS, Role.KEY),
        Column("illness", Kind.NOMINAL, Role.SENSITIVE),
        Column("weight", Kind.CONTINUOUS, Role.WEIGHT),
    )
)

OWN = """
title = "Ours"
summary = "For our partners."
report = ["uniqueness"]
[defaults]
rank_by = "il1s"
repeats = 2
shuffle = false
[[scenarios]]
name = "partner"
columns = ["sex", "@continuous"]
kinds = ["nominal", "continuous"]
records = 0.5
membership = false
reason = "They know some."
[[scenarios]]
name = "stranger"
roles = ["key", "sensitive"]
reason = "They know much."
[[requirements]]
require = "k >= 4"
reason = "We said so."
[[requirements]]
require = "dbrl <= 0.2"
scenarios = ["partner"]
references = ["herranz2015"]
reason = "We measured it."
"""


def texts(demands):
    return [f"{demand.scenario.name}: {demand}" for demand in demands]


# ------------------------------------------------------------------------------------ those that come along


USES = ("secure", "scientific", "industry", "public")


def test_the_four_kinds_of_release_of_the_survey_and_rules_of_a_field():
    assert Profile.names() == (
        *USES,
        "clinical",
        "hipaa-safe-harbour",
        "netherlands-public",
        "netherlands-researchers",
        "small-cells",
        "three-threats",
    )
    for name in Profile.names():
        profile = Profile.load(name)
        assert profile.name == name
        assert all(threshold.reason and threshold.references for threshold in profile.thresholds)
        assert all(intruder.reason for intruder in profile.intruders)
        assert Profile.parse(profile.text, name=name) == profile


def level(name, measure):
    found = [
        t.requirement.level for t in Profile.load(name).thresholds if t.requirement.measure.name == measure
    ]
    return found[0] if found else None


def test_the_wider_the_circle_the_stricter():
    """Secure files are protected least, public ones most (survey, section 3)."""
    assert [level(name, "k-anonymity") for name in USES] == [None, 3, 5, 10]
    assert [level(name, "dbrl") for name in USES] == [None, 0.1, 0.05, 0.05]
    assert [level(name, "gdbrl") for name in USES] == [None, None, 0.1, 0.05]
    assert [level(name, "exact-match") for name in USES] == [None, 0, 0, None]
    assert [level(name, "l-diversity") for name in USES] == [None, 2, 2, 3]
    assert [level(name, "regrouped") for name in USES] == [None, 0.05, 0.05, 0]


def test_attacks_are_asked_though_no_control_is_known_yet():
    """Without a control group they refuse when the release is judged; left out, nobody would notice."""
    asked = [demand.measure.name for demand in Profile.load("three-threats").requirements(SCHEMA)]
    assert asked == ["singling-out", "linkability", "inference", "k-anonymity"]


def test_the_safe_harbour_is_asked_of_columns_whether_or_not_a_table_of_zip_codes_is_there():
    asked = [str(demand) for demand in Profile.load("hipaa-safe-harbour").requirements(SCHEMA)]
    assert asked == [
        "safe-harbour-violations <= 0",
        "safe-harbour-violations(rule=places) <= 0",
        "safe-harbour-violations(rule=dates) <= 0",
    ]


@pytest.mark.parametrize(("alike", "met"), [(11, False), (12, True)])
def test_the_highest_risk_of_clinical_data_means_twelve_alike(alike, met):
    required = Profile.load("clinical").thresholds[0].requirement
    scores = sfumato.assess(pl.DataFrame({"sex": ["f"] * 30 + ["m"] * alike}), None, [required.measure])
    assert required.met_by(scores["prosecutor-risk"]) is met


def test_an_unknown_profile_suggests_one():
    with pytest.raises(UnknownNameError) as caught:
        Profile.load("publik")
    assert "`public`" in caught.value.hint


# --------------------------------------------------------------------------------------------- on a table


def test_intruders_know_columns_by_role_and_kind():
    asked = Profile.load("public").requirements(SCHEMA)
    assert texts(asked) == [
        "acquaintance: k-anonymity >= 10",
        "acquaintance: l-diversity >= 3",
        "acquaintance: t-closeness(distance=kind) <= 0.2",
        "maximum knowledge: k-anonymity >= 3",
        "maximum knowledge: dbrl <= 0.05",
        "maximum knowledge: gdbrl <= 0.05",
        "maximum knowledge: regrouped <= 0",
    ]
    assert asked[0].scenario.columns == ("sex", "born")
    assert asked[-1].scenario.columns == ("sex", "born", "income")
    assert Profile.load("public").left_out(SCHEMA) == ()


def test_who_knows_birthdays_knows_ages_in_whatever_kind_they_are():
    numbers = ("age", "Alter", "birthYear", "birth_weight", "wage", "income")
    schema = Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in numbers))
    first, *_ = Profile.load("public").requirements(schema)
    assert texts([first]) == ["acquaintance: k-anonymity >= 10"]
    assert first.scenario.columns == ("age", "Alter", "birthYear")
    of_amounts = Intruder("an office", "it knows amounts", kinds=(Kind.NOMINAL,))
    assert of_amounts.knows(schema) == ()


def test_what_does_not_apply_is_left_out_and_said():
    profile = Profile.load("public")
    numbers = Schema((Column("income", Kind.CONTINUOUS, Role.KEY), Column("tax", Kind.CONTINUOUS, Role.KEY)))
    assert texts(profile.requirements(numbers)) == [
        "maximum knowledge: k-anonymity >= 3",
        "maximum knowledge: dbrl <= 0.05",
        "maximum knowledge: gdbrl <= 0.05",
    ]
    reasons = profile.left_out(numbers)
    assert len(reasons) == 4
    assert reasons[0].startswith(
        "k-anonymity >= 10 is left out: scenario `acquaintance`: the table has no nominal"
    )
    assert reasons[-1].startswith("regrouped <= 0 is left out: regrouped needs a column that tells")
    harmless = SCHEMA.select(["name", "sex", "income"])
    assert list(profile.left_out(harmless)) == [
        "l-diversity >= 3 is left out: l-diversity needs a sensitive column, and the table has none",
        "t-closeness(distance=kind) <= 0.2 is left out: t-closeness needs a sensitive column, and the table has none",
    ]


def test_without_keys_the_columns_protected_are_known_or_all_about_people():
    schema = Schema(
        (
            Column("a", Kind.CONTINUOUS),
            Column("b", Kind.CONTINUOUS),
            Column("id", Kind.NOMINAL, Role.IDENTIFIER),
        )
    )
    profile = Profile.load("scientific")
    assert profile.requirements(schema)[-1].scenario.columns == ("a", "b")
    assert profile.requirements(schema, keys=["b"])[-1].scenario.columns == ("b",)
    assert profile.requirements(SCHEMA, keys=["illness"])[-1].scenario.columns == (
        "sex", "born", "income", "illness",
    )  # fmt: skip


def test_every_threshold_is_either_asked_or_explained():
    for name in Profile.names():
        profile = Profile.load(name)
        for columns in (["sex"], ["income"], ["illness", "sex"], SCHEMA.names):
            schema = SCHEMA.select(columns)
            told = len(profile.requirements(schema)) + len(profile.left_out(schema))
            assert told == sum(
                not each.series for each in profile.thresholds
            )  # each of ours stands against one intruder


# ---------------------------------------------------------------------------------------- one's own file


def test_a_file_of_ones_own(tmp_path):
    path = tmp_path / "ours.toml"
    path.write_text(OWN, encoding="utf-8")
    profile = Profile.of(str(path))
    assert (profile.name, profile.repeats, profile.shuffle) == ("ours", 2, False)
    assert str(profile.rank_by) == "il1s"
    assert [str(measure) for measure in profile.report] == ["uniqueness"]
    asked = profile.requirements(SCHEMA)
    assert texts(asked) == [
        "partner: k-anonymity >= 4", "stranger: k-anonymity >= 4", "partner: dbrl <= 0.2",
    ]  # fmt: skip
    assert asked[0].scenario == Scenario("partner", ("sex", "income"), 0.5, membership=False)
    assert asked[1].scenario.columns == ("sex", "born", "income", "illness")
    assert Profile.of(profile) is profile
    with pytest.raises(ReadError, match="File not found: "):
        Profile.read(tmp_path / "absent.toml")


def test_all_faults_of_a_file_are_told_together():
    text = """
title = 3
colour = "blue"
[defaults]
repeats = 0
rank_by = "il9"
[[scenarios]]
name = "a"
reason = "r"
roles = ["keys"]
kinds = ["nominal"]
records = 2
[[scenarios]]
name = "a"
reason = "r"
[[requirements]]
require = "k > many"
scenarios = ["b"]
references = ["nobody1900"]
"""
    with pytest.raises(PlanError) as caught:
        Profile.parse(text, name="bad")
    said = "\n".join(caught.value.faults)
    for part in (
        "`title` must be a text, got: int",
        "there is no setting `colour`",
        "`summary` is missing",
        "`repeats` must be at least 1",
        "defaults: rank_by: there is no measure `il9`",
        "scenario 1: each item of `roles` must be one of identifier, key, sensitive",
        "scenario 1: `records` of scenario `a` must be a share",
        "got twice: `a`",
        "requirement 1: require: `",
        "requirement 1: scenario 1: there is no scenario `b`",
        "requirement 1: reference 1: there is no reference `nobody1900`",
        "requirement 1: `reason` is missing",
    ):
        assert part in said
    assert len(caught.value.faults) == 12


@pytest.mark.parametrize("text", ["x = [", "scenarios = 3", 'title = "t"\nsummary = "s"\nscenarios = []'])
def test_what_is_no_profile_is_refused(text):
    with pytest.raises(PlanError):
        Profile.parse(text, name="bad")


# ---------------------------------------------------------------------------------------------- in a plan


def test_a_plan_takes_the_requirements_by_scenario():
    plan = Profile.load("public").apply_to(Plan(schema=SCHEMA, output=Output(drop=("name",), shuffle=False)))
    assert [scenario.name for scenario in plan.scenarios] == ["acquaintance", "maximum knowledge"]
    assert texts(plan.demands) == texts(Profile.load("public").requirements(SCHEMA))
    assert plan.output == Output(drop=("name",), shuffle=True)
    again = Plan.from_dict(plan.to_dict())
    assert again.demands == plan.demands
    assert Plan.from_dict(again.to_dict()) == plan


def test_what_a_plan_requires_itself_stays_as_it_was():
    own = Requirement.parse("k >= 2")
    plan = Plan(schema=SCHEMA, scenarios=(Scenario("boss", ("sex",)),), requirements=(own,))
    merged = Profile.load("scientific").apply_to(plan)
    assert texts(merged.demands) == [
        "boss: k-anonymity >= 2", "acquaintance: k-anonymity >= 3", "acquaintance: l-diversity >= 2",
        "matching: exact-match <= 0", "matching: dbrl <= 0.1", "matching: regrouped <= 0.05",
    ]  # fmt: skip
    assert Profile.load("scientific").apply_to(merged).demands == merged.demands
    other = Plan(schema=SCHEMA, scenarios=(Scenario("matching", ("sex",)),), requirements=(own,))
    with pytest.raises(PlanError, match="both have a scenario named `matching`"):
        Profile.load("scientific").apply_to(other)
    with pytest.raises(PlanError, match="plan that declares its columns"):
        Profile.load("public").apply_to(Plan())


def test_a_plan_reads_requirements_of_one_scenario():
    said = {
        "columns": SCHEMA.to_dict()["columns"],
        "requirements": ["k >= 2"],
        "scenarios": [{"name": "a", "requirements": ["dbrl <= 0.1"]}, {"name": "b"}],
    }
    plan = Plan.from_dict(said)
    assert texts(plan.demands) == ["a: k-anonymity >= 2", "a: dbrl <= 0.1", "b: k-anonymity >= 2"]
    assert Plan.from_dict(plan.to_dict()) == plan
    with pytest.raises(PlanError, match="is not a requirement"):
        Plan.from_dict({**said, "scenarios": [{"name": "a", "requirements": "k"}]})


def test_a_comparison_says_what_an_intruder_knows_that_stays_bare():
    table = sfumato.read("builtin:patients?n=60&seed=1")
    study = sfumato.compare(
        table, ["mdav"], profile="scientific", columns=["age_yrs", "los"], repeats=1, seed=1
    )
    assert any("also knows" in note and "`sex`" in note and "`los`" not in note for note in study.notes)
    every = sfumato.compare(table, ["mdav"], profile="scientific", repeats=1, seed=1)
    assert not any("also knows" in note for note in every.notes)


def test_a_profile_is_applied_once():
    profile = Profile.load("public")
    plan = profile.apply_to(Plan(schema=SCHEMA))
    assert profile.apply_to(plan) == plan

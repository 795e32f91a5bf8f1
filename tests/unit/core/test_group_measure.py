"""Scores in every group: how they are asked for, whose group counts, and what has none."""

import pickle
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.core.evidence import Evidence
from sfumato.core.group_measure import NO_VALUE, POOLED, GroupMeasure, Groups
from sfumato.core.measure import Status
from sfumato.core.origin import Origin
from sfumato.core.release import MAIN, Release
from sfumato.core.requirement import Requirement, parse_measure
from sfumato.core.run import Run
from sfumato.core.waves import SERIES, Waves
from sfumato.data.scenario import CONTROL
from sfumato.data.schema import Role
from sfumato.errors import PlanError
from sfumato.methods.anatomy import Anatomy
from sfumato.methods.mondrian import Mondrian
from sfumato.recipes.demand import Demand
from sfumato.recipes.starter import safe_steps

ROLES = {"region": "other", "age": "key", "sex": "key", "illness": "sensitive"}


@pytest.fixture
def table():
    """Three of a, two of b, one without a region."""
    frame = pl.DataFrame(
        {
            "region": ["a", "a", "a", "b", "b", None],
            "age": [1, 1, 1, 1, 2, 2],
            "sex": ["f", "f", "f", "f", "m", "m"],
            "illness": ["flu", "none", "flu", "none", "flu", "none"],
        }
    )
    return sfumato.read(frame, roles=ROLES)


def score_of(text, *args, **keywords):
    return parse_measure(text).score(Evidence(*args, **keywords), Run())


# How it is written ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "k >= 5 in every region",
        "dbrl <= 0.1 in every age_band of 200",
        "t(distance=ordered) <= 0.2 in every region+sex of 50",
        "individual-risk <= 0.05 at 95% in every region",
        "k >= 3 in every place of birth of 20",
    ],
)
def test_a_requirement_is_read_back_as_it_is_said(text):
    requirement = Requirement.parse(text)
    assert isinstance(requirement.measure, GroupMeasure)
    assert Requirement.parse(str(requirement)) == requirement == Requirement.parse(requirement.short)
    assert pickle.loads(pickle.dumps(requirement)) == requirement
    assert text.endswith(requirement.where)
    assert requirement.where in requirement.in_words


def test_a_name_that_would_not_be_read_back_is_no_group():
    with pytest.raises(PlanError, match="does not name groups"):
        Groups(("a+b",))
    with pytest.raises(PlanError, match="does not name groups"):
        Requirement.parse("k >= 2 in every a+a")
    for text in ("k >= 5 in every", "k >= 5 in every of 200"):
        with pytest.raises(PlanError) as caught:
            Requirement.parse(text)
        assert "in every region" in str(caught.value.hint)
        assert "of 200`" in str(caught.value.hint)


def test_the_worse_side_is_refused_in_groups_too():
    with pytest.raises(PlanError, match="worse side"):
        Requirement.parse("k <= 5 in every region")


# Whose group counts ---------------------------------------------------------------------------------------


def test_the_worst_group_is_told_in_private_only(table):
    score = score_of("k in every region", table)
    assert score.value == 1
    assert score.by_value["records"] == {NO_VALUE: 1, "a": 3, "b": 2}
    assert score.by_value["score"] == {NO_VALUE: 1, "a": 3, "b": 1}
    assert "by_value" not in score.to_dict()
    assert score.details == {"groups": 3}


def test_small_groups_are_judged_together(table):
    score = score_of("k in every region of 3", table)
    assert score.by_value["records"] == {"a": 3, POOLED: 3}
    assert score.value == 1
    assert score_of("k in every region of 100", table).value == score_of("k", table).value


def test_the_original_group_counts_whatever_became_of_the_column(table):
    dropped = replace(Release.unchanged(table), tables={MAIN: table.select(["age", "sex", "illness"])})
    assert (
        score_of("k in every region", table, dropped).by_value
        == score_of("k in every region", table).by_value
    )
    moved = table.with_values("region", pl.Series(["z"] * 6))
    shown = replace(Release.unchanged(table), tables={MAIN: moved})
    assert score_of("k in every region", table, shown).value == 1


def test_every_group_is_every_value_of_each_key(table):
    score = score_of("k in every group of 2", table)
    assert score.by_value["records"] == {
        "age = 1": 4,
        "age = 2": 2,
        "sex = f": 4,
        "sex = m": 2,
    }
    alone = [score_of(f"k in every {name} of 2", table) for name in ("age", "sex")]
    assert score.value == min(each.value for each in alone)
    assert np.array_equal(score.by_record, np.minimum(*(each.by_record for each in alone)))
    pooled = score_of("column-loss in every group of 500", table, Release.unchanged(table))
    assert pooled.by_value["records"] == {f"age = {POOLED}": 6, f"sex = {POOLED}": 6}
    assert pooled.value == 0


def test_a_column_named_group_is_that_column(table):
    roles = {"group" if name == "region" else name: role for name, role in ROLES.items()}
    named = sfumato.read(table.frame.rename({"region": "group"}), roles=roles)
    assert score_of("k in every group", named).by_value["records"] == {NO_VALUE: 1, "a": 3, "b": 2}


def test_nobody_protects_groups_that_overlap_one_by_one(table):
    method = Mondrian(k=2, also="k >= 2 in every group")
    assert "name a column" in str(method.refuses(table.aimed_at(("age", "sex"))))
    demand = Demand(Requirement.parse("l >= 2 in every group"))
    assert not safe_steps(table.schema, [demand])[0].method.also


def test_one_group_scores_as_all_records(table):
    alone = table.with_values("region", pl.Series(["a"] * 6))
    for name in ("k", "uniqueness", "l"):
        assert score_of(f"{name} in every region", alone).value == score_of(name, alone).value


def test_chance_has_an_address_for_each_group(table):
    whole = table.take(np.arange(300) % 6)
    evidence = Evidence(whole, Mondrian(k=2).apply(whole.aimed_at(("age", "sex")), Run()))
    measure = parse_measure("query-error in every region")
    order = np.random.default_rng(1).permutation(300)
    turned = Evidence(whole.take(order), None)
    turned = replace(turned, release=replace(evidence.release, origin=Origin.of_rows(np.argsort(order))))
    first, second = measure.score(evidence, Run(seed=7)), measure.score(turned, Run(seed=7))
    assert first.by_value["score"] == pytest.approx(second.by_value["score"])


# What has no score ----------------------------------------------------------------------------------------


def test_a_group_of_which_nobody_is_left_meets_nothing(table):
    rows = np.array([0, 1, 2])
    release = Release({MAIN: table.take(rows)}, Origin.of_rows(rows))
    score = score_of("k in every region", table, release)
    assert score.status is Status.NOT_ESTIMABLE
    assert not Requirement.parse("k >= 1 in every region").met_by(score)
    assert "b" not in score.reason.split()


def test_synthetic_records_have_no_risk_in_groups_but_a_loss_if_they_show_the_group(table):
    made = Release({MAIN: table}, Origin.synthetic())
    assert score_of("replicated-uniques in every region", table, made).status is Status.REFUSED
    assert score_of("column-emd in every region", table, made).value == 0
    hidden = Release({MAIN: table.select(["age", "sex", "illness"])}, Origin.synthetic())
    assert "does not show `region`" in score_of("column-emd in every region", table, hidden).reason


def test_several_tables_a_series_and_other_tables_are_refused(table):
    whole = table.take(np.tile(np.arange(6), 4))
    parted = Anatomy(l=2, sensitive=("illness",)).apply(whole.aimed_at(("age", "sex")), Run())
    assert "one table" in score_of("k in every region", whole, parted).reason
    release = Release.unchanged(whole)
    series = {SERIES: Waves.of(())}
    assert (
        score_of("averaging-risk in every region", whole, release, resources=series).status is Status.REFUSED
    )
    assert score_of("k in every region", whole, release, resources=series).status is Status.OK
    lacking = {CONTROL: whole.select(["age", "sex", "illness"])}
    assert (
        "of `control`" in score_of("singling-out in every region", whole, release, resources=lacking).reason
    )
    assert score_of("k in every region", whole, release, resources=lacking).status is Status.OK


@pytest.mark.parametrize("column", ["nowhere", "age"])
def test_what_is_no_group_is_refused_with_a_sentence(table, column):
    coarse = Mondrian(k=3).apply(table.aimed_at(("age",)), Run()).table
    score = score_of(f"k in every {column}", coarse)
    assert score.status is Status.REFUSED
    assert f"`{column}`" in score.reason


def test_records_that_are_joined_across_groups_leave_a_doubt(table):
    persons = table.with_values("illness", pl.Series(["1", "1", "2", "2", "3", "3"]))
    persons = replace(
        persons, schema=persons.schema.replace(replace(table.schema["illness"], role=Role.PERSON))
    )
    score = score_of("k in every region", persons, Release.unchanged(persons))
    assert score.status is Status.APPROXIMATE
    assert "several groups" in score.reason
    assert not Requirement.parse("k >= 1 in every region").met_by(score)


# Who enforces it ------------------------------------------------------------------------------------------


def test_a_step_enforces_it_in_each_group(table):
    whole = table.take(np.repeat(np.arange(6), 4))
    release = Mondrian(k=2, also="k >= 4 in every region and k >= 3 in every sex").apply(
        whole.aimed_at(("age", "sex")), Run()
    )
    assert score_of("k in every region", whole, release).value >= 4
    assert score_of("k in every sex", whole, release).value >= 3


def test_fallbacks_enforce_what_is_demanded_in_every_group(table):
    demands = [
        Demand(Requirement.parse(text)) for text in ("dbrl <= 0.2 in every region", "l >= 2 in every sex")
    ]
    step = safe_steps(table.schema, demands)[0]
    assert step.method.also == ("k-anonymity >= 5 in every region", "l-diversity >= 2 in every sex")

"""Explaining a record: against naive counts, against the measures, and against a recipe followed by hand."""

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core import registry
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Score, Status
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role
from sfumato.errors import ParameterError, RefusedError, SfumatoError
from sfumato.explain import PRIVATE, explain_record, riskiest_records
from sfumato.explain.attacks import attacks_on, usual_attacks
from sfumato.explain.formulas import in_letters
from sfumato.explain.keys import cell, explain_keys
from sfumato.explain.steps import ABSENT, follow_record
from sfumato.explain.words import explain_score, meaning_of
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.risk.anonymity import KAnonymity
from sfumato.risk.combinations import UnsafeCombinations
from sfumato.risk.linkability import Linkability
from sfumato.risk.linkage import DistanceLinkage
from sfumato.risk.reidentification import ProsecutorRisk
from sfumato.testing.secrecy import SENTINEL_WORD, assert_silent
from toys import Constant, Draw, Halves, Mean, Sampling, Synthetic, Turned, table_of

NOMINAL = Kind.NOMINAL


def people(**more):
    """Eight people with three keys; the last is alone in `job` already."""
    return table_of(
        {
            "sex": ["f", "f", "f", "m", "m", "m", "f", "m"],
            "job": ["cook", "cook", "smith", "cook", "smith", "smith", "cook", "pope"],
            "age": [20, 30, 20, 20, 30, 40, 50, 40],
            **more,
        },
        sex=NOMINAL,
        job=NOMINAL,
    )


# ------------------------------------------------------------------------------------------------- the keys


def naive_size(table, row, keys, missing="category"):
    """How many persons agree with a record in some keys, by looking at everybody."""
    unit = table.schema.only_role(Role.PERSON)

    def agree(other, name):
        mine, theirs = table.frame[name][row], table.frame[name][other]
        if mine is None or theirs is None:
            return {"category": mine is None and theirs is None, "any": True, "worst": False}[missing]
        return mine == theirs

    owners = table.frame[unit].to_list() if unit else list(range(len(table)))
    alike = [other for other in range(len(table)) if all(agree(other, name) for name in keys)]
    return len({owners[other] for other in alike} | {owners[row]})


def naive_unique_in(table, row, keys, missing="category"):
    """The smallest sets of keys in which a record is alone, by trying all of them."""
    alone = [
        set(chosen)
        for size in range(1, len(keys) + 1)
        for chosen in combinations(sorted(keys), size)
        if naive_size(table, row, chosen, missing) == 1
    ]
    return {tuple(sorted(chosen)) for chosen in alone if not any(other < chosen for other in alone)}


def test_worked_example():
    story = explain_keys(people(), 0, ["sex", "job", "age"], k=3)
    assert story.class_size == 1
    assert [(each.key, each.value, each.shared_by) for each in story.rarities] == [
        ("age", 20, 3), ("job", "cook", 4), ("sex", "f", 4),
    ]  # fmt: skip
    assert story.unique_in == (("age", "job", "sex"),)
    assert (story.looked_up_to, story.complete, story.persons) == (3, True, 8)
    # Without its age it is like records 1 and 6; from 20 to 50 takes both in.
    assert [(remedy.keys, remedy.how, remedy.size) for remedy in story.remedies] == [
        (("age",), "suppressed", 3), (("age",), "as the range from 20 to 50", 3),
    ]  # fmt: skip
    assert explain_keys(people(), 7, ["sex", "job", "age"]).unique_in == (("job",),)


def test_a_common_record_needs_no_remedy():
    table = table_of({"sex": ["f"] * 5 + ["m"]}, sex=NOMINAL)
    story = explain_keys(table, 0, ["sex"], k=5)
    assert (story.class_size, story.unique_in, story.remedies) == (5, (), ())


def test_fewer_people_than_wanted_can_never_do():
    story = explain_keys(people(), 0, ["sex", "job"], k=9)
    assert story.remedies == ()


def test_a_range_is_the_narrowest_around_the_value():
    table = table_of({"age": [30, 31, 28, 50, 29, None]})
    (_, widened) = explain_keys(table, 0, ["age"], k=3).remedies
    assert widened.how == "as the range from 29 to 31"
    assert widened.size == 3


def test_a_hierarchy_is_climbed_as_far_as_needed():
    levels = pl.DataFrame({"leaf": ["a", "b", "c", "d"], "one": ["ab", "ab", "cd", "cd"], "root": ["*"] * 4})
    table = table_of({"place": ["a", "b", "c", "c", "d"]}, place=NOMINAL)
    hierarchy = {"place": Hierarchy.from_levels(levels)}
    assert [r.how for r in explain_keys(table, 0, ["place"], k=2, hierarchies=hierarchy).remedies] == [
        "suppressed", "at level 1 of its hierarchy",
    ]  # fmt: skip
    last = explain_keys(table, 0, ["place"], k=3, hierarchies=hierarchy).remedies[-1]
    assert (last.how, last.size) == ("at level 2 of its hierarchy", 5)


def test_sets_of_keys_are_bounded_and_that_is_said():
    rng = np.random.default_rng(1)
    table = table_of({f"q{i}": rng.integers(0, 2, 40).tolist() for i in range(12)})
    story = explain_keys(table, 3, table.names, most_sets=100)
    assert story.looked_up_to == 2  # 12 + 66 sets
    assert not story.complete
    assert all(len(found) <= 2 for found in story.unique_in)
    whole = explain_keys(table, 3, table.names)
    assert whole.complete
    assert set(whole.unique_in) == naive_unique_in(table, 3, table.names)


cells = st.one_of(st.none(), st.integers(0, 2))
rows = st.lists(st.tuples(cells, cells, cells, cells), min_size=1, max_size=12)


@given(
    rows=rows,
    at=st.integers(0, 11),
    missing=st.sampled_from(["category", "any", "worst"]),
    units=st.booleans(),
)
def test_keys_as_counted_naively(rows, at, missing, units):
    row = at % len(rows)
    frame = {name: [each[i] for each in rows] for i, name in enumerate("abcd")}
    kinds = dict.fromkeys("abcd", NOMINAL)
    if units:
        frame["who"], kinds["who"] = [i // 2 for i in range(len(rows))], (NOMINAL, Role.PERSON)
    table = table_of({k: pl.Series(v, dtype=pl.Int64) for k, v in frame.items()}, **kinds)
    keys = tuple("abcd")
    story = explain_keys(table, row, keys, k=2, missing=missing)
    assert story.class_size == naive_size(table, row, keys, missing)
    assert [each.shared_by for each in story.rarities] == [naive_size(table, row, [q], missing) for q in keys]
    expected = naive_unique_in(table, row, keys, missing) if story.class_size == 1 else set()
    assert set(story.unique_in) == expected
    assert len(set(story.unique_in)) == len(story.unique_in)
    score = KAnonymity(missing=missing).score(Evidence(table), Run(seed=1))
    assert score.by_record[row] == story.class_size
    for remedy in (each for each in story.remedies if each.how == "suppressed"):
        left = [name for name in keys if name not in remedy.keys]
        assert remedy.size == (naive_size(table, row, left, missing) if left else story.persons)
        assert remedy.size >= 2


@given(rows=rows, at=st.integers(0, 11))
@examples(25)
def test_as_many_smallest_sets_as_the_measure_counts(rows, at):
    row = at % len(rows)
    table = table_of(
        {name: pl.Series([each[i] for each in rows], dtype=pl.Int64) for i, name in enumerate("abcd")},
        **dict.fromkeys("abcd", NOMINAL),
    )
    score = UnsafeCombinations(dimension=4).score(Evidence(table), Run(seed=1))
    assert len(explain_keys(table, row, "abcd").unique_in) == score.by_record[row]


def test_generalised_values_are_alike_if_equal():
    table = table_of({"age": intervals([20, 20, 30], [29, 29, 39])})
    story = explain_keys(table, 0, ["age"], k=3)
    assert (story.class_size, story.rarities[0].value) == (2, "[20;29]")
    assert [each.how for each in story.remedies] == ["suppressed"]


def test_cells_of_every_sort_can_be_shown():
    frame = pl.DataFrame(
        {
            "day": pl.Series(["2026-11-15"]).str.to_date(),
            "tags": [["b", "a"]],
            "share": [float("nan")],
            "yes": [True],
        }
    )
    kinds = {"day": Kind.DATE, "tags": Kind.SET, "share": Kind.CONTINUOUS, "yes": NOMINAL}
    table = table_of(frame, **kinds)
    assert [cell(table, name, 0) for name in table.names] == ["2026-11-15", "{a|b}", None, True]
    json.dumps([cell(table, name, 0) for name in table.names], allow_nan=False)


# ------------------------------------------------------------------------------------------------ the steps


def test_every_step_is_seen_as_it_was_taken():
    table = table_of({"x": [1.0, 2.0, 3.0, 6.0], "y": [10.0, 20.0, 30.0, 40.0]})
    recipe = Recipe((Step(Turned(), ("x",)), Step(Mean(), ("y",))))
    (first, second), release = follow_record(recipe, table, 0, Run(seed=1))
    (change,) = first.changes
    assert (change.column, change.before, change.after) == ("x", 1.0, 6.0)
    assert change.deviations == pytest.approx(5 / np.std([1, 2, 3, 6]))
    assert (change.ranks, change.of_ranks) == (3.0, 4)
    (change,) = second.changes
    assert (change.before, change.after) == (10.0, 25.0)
    assert change.ranks == 1.5  # it passed 20, and half of itself
    assert release.table.frame.equals(recipe.apply(table, Run(seed=1)).table.frame)


def test_the_run_of_a_release_shows_its_own_draws():
    table = table_of({"x": [1.0, 2.0, 3.0, 4.0], "y": [1.0, 2.0, 3.0, 4.0]})
    recipe = Recipe((Step(Draw(), ("x",)), Step(Draw(), ("y",))))
    released = recipe.apply(table, Run(seed=5)).table
    stories, _ = follow_record(recipe, table, 2, Run(seed=5))
    assert [story.changes[0].after for story in stories] == [released.frame["x"][2], released.frame["y"][2]]


def test_an_unchanged_record_is_said_to_be_so():
    table = table_of({"x": [5.0, 5.0]})
    (story,), _ = follow_record(Recipe.of(Mean()), table, 0, Run(seed=1))
    assert (story.changes, story.note) == ((), "this step did not change the record")


def test_a_record_is_followed_through_another_order_or_lost():
    table = table_of({"x": [float(i) for i in range(10)]})
    recipe = Recipe.of(Sampling(share=0.5), Constant(number=-1.0))
    kept = set(recipe.apply(table, Run(seed=2)).source_rows.tolist())
    inside, outside = min(kept), min(set(range(10)) - kept)
    stories, _ = follow_record(recipe, table, inside, Run(seed=2))
    assert [story.copies for story in stories] == [1, 1]
    assert (stories[1].changes[0].before, stories[1].changes[0].after) == (float(inside), -1.0)
    stories, _ = follow_record(recipe, table, outside, Run(seed=2))
    assert [story.copies for story in stories] == [0, 0]
    assert stories[0].note == "this step removed the record"
    said = explain_record(table, outside, recipe=recipe, run=Run(seed=2))
    assert said.released_as == ()
    assert said.released_keys is None


def test_nobody_is_followed_into_synthetic_data_and_several_tables_are_read_as_one():
    table = table_of({"x": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 3.0]})
    (story,), _ = follow_record(Recipe.of(Synthetic()), table, 0, Run(seed=1))
    assert story.copies is None
    said = explain_record(table, 0, recipe=Recipe.of(Halves()), run=Run(seed=1))
    (change,) = said.steps[0].changes  # the second table has no bucket: y is one of all values
    assert (change.column, change.before, change.after) == ("y", 1.0, "[1;3]")
    assert said.released_as == (0,)


def test_ordinal_values_move_by_ranks_and_nominal_ones_only_change():
    grades = Column("grade", Kind.ORDINAL, Role.KEY, order=("low", "mid", "high"))
    table = table_of(
        {"grade": ["low", "mid", "mid", "high"], "job": ["a", "b", "c", "d"]}, grade=grades, job=NOMINAL
    )
    (story,), _ = follow_record(Recipe((Step(Turned(), ("grade", "job")),)), table, 0, Run(seed=1))
    by_name = {change.column: change for change in story.changes}
    assert (by_name["grade"].ranks, by_name["grade"].deviations) == (3.0, None)
    assert (by_name["job"].ranks, by_name["job"].after) == (None, "d")


def test_last_touches_are_a_step():
    table = table_of({"x": [1.0, 2.0], "name": ["a", "b"]}, name=NOMINAL)

    def postprocess(release):
        return replace(release, tables={"release": release.table.select(["x"])})

    said = explain_record(
        table, 0, recipe=Recipe((Step(Mean(), ("x",)),)), run=Run(seed=1), postprocess=postprocess
    )
    assert [step.step for step in said.steps] == ["mean", "postprocessing"]
    assert [(c.column, c.after) for c in said.steps[1].changes] == [("name", ABSENT)]


# ------------------------------------------------------------------------------------------------ the attacks


def test_attacks_say_what_the_measures_say():
    table = table_of({"x": [1.0, 2.0, 3.0, 4.0, 9.0]})
    release = Recipe.of(Turned()).apply(table, Run(seed=1))
    measures = [DistanceLinkage(), KAnonymity(), ProsecutorRisk()]
    for row in range(len(table)):
        said = explain_record(table, row, release, measures=measures, run=Run(seed=1))
        evidence = Evidence(table, release)
        for attack in said.attacks:
            measure = next(each for each in measures if str(each) == attack.measure)
            score = measure.score(evidence, Run(seed=1))
            assert attack.value == score.by_record[row]
            assert attack.whole == score.value
            worse = (
                score.by_record < attack.value if measure.better == "low" else score.by_record > attack.value
            )
            assert attack.safer == worse.sum() / 4
    assert {attack.measure: attack.guessing for attack in said.attacks} == {
        "dbrl": 0.2, "k-anonymity": None, "prosecutor-risk": 0.2,
    }  # fmt: skip


def test_an_attack_says_what_it_cannot_see():
    """In the explanation of a record as in the measure, which alone holds the sentence."""
    rng = np.random.default_rng(1)
    table, control = (table_of({"x": rng.random(20), "y": rng.random(20)}) for _ in "12")
    evidence = Evidence(table, Release.unchanged(table), resources={"control": control})
    (one, other), _ = attacks_on(evidence, 3, [Linkability(), DistanceLinkage()], Run(seed=1))
    assert {one.not_seen, other.not_seen} == {Linkability.tells.not_seen, ""}


def test_every_light_attack_speaks_or_says_why_not():
    table = people()
    said = explain_record(table, 7, recipe=Recipe((Step(Turned(), ("age",)),)), run=Run(seed=1))
    heard = {attack.measure for attack in said.attacks} | set(said.silent)
    assert heard == {str(measure) for measure in usual_attacks()}
    assert {"dbrl", "gdbrl", "k-anonymity", "uniqueness", "direct-matching", "interval-disclosure"} <= heard
    assert all(attack.sentence for attack in said.attacks)
    assert [attack.safer for attack in said.attacks] == sorted((a.safer for a in said.attacks), reverse=True)
    assert all(said.silent.values())


def test_sentences():
    assert DistanceLinkage().sentence(1.0).endswith("finds it for sure")
    assert DistanceLinkage().sentence(0.0).endswith("does not find it")
    assert DistanceLinkage().sentence(0.25).endswith("with a chance of 0.25")
    for cls in registry.measures().values():
        for value in (0.0, 0.5, 1.0, 7.0):
            assert cls().sentence(value)


def test_the_intruder_holds_the_record_whatever_the_scenario():
    said = explain_record(people(), 0, scenario=Scenario(name="some", records=0.1), measures=[KAnonymity()])
    assert said.notes == (
        "the intruder of scenario `some` is assumed to know the true values of this record",
    )


# ----------------------------------------------------------------------------------------------- the riskiest


def test_riskiest_come_worst_first_and_ties_are_told():
    found = riskiest_records(people(), 3, measure=KAnonymity(), scenario=Scenario(columns=("job",)))
    assert found.rows.tolist() == [7, 2, 4]  # the pope, then the smiths in the order of the file
    assert found.values.tolist() == [1.0, 3.0, 3.0]
    assert (found.as_risky, found.records) == (4, 8)


def test_riskiest_by_default():
    assert riskiest_records(people(), 1).measure == "unsafe-combinations"
    release = Recipe((Step(Turned(), ("age",)),)).apply(people(), Run(seed=1))
    assert riskiest_records(people(), 1, release).measure == "dbrl"


def test_riskiest_of_a_measure_that_says_nothing_of_records():
    with pytest.raises(RefusedError, match="single records"):
        riskiest_records(people(), 3, measure=registry.measure("separation")())
    with pytest.raises(ParameterError, match="at least 1"):
        riskiest_records(people(), 0)


# ------------------------------------------------------------------------------------------------ the whole


def test_the_whole_is_private_and_machines_can_read_it():
    said = explain_record(people(), 0, recipe=Recipe((Step(Turned(), ("age",)),)), run=Run(seed=1))
    told = json.loads(json.dumps(said.to_dict(), allow_nan=False))
    assert told["private"] == PRIVATE
    assert told["values"] == {"sex": "f", "job": "cook", "age": 20}
    assert told["keys"]["unique_in"] == [["age", "job", "sex"]]
    assert told["steps"][0]["changes"][0]["after"] == 40


def test_no_cell_in_a_repr():
    table = people(secret=[SENTINEL_WORD] * 8)
    table = replace(table, schema=table.schema.replace(Column("secret", NOMINAL, Role.KEY)))
    said = explain_record(table, 0, recipe=Recipe((Step(Turned(), ("secret", "age")),)), run=Run(seed=1))
    assert SENTINEL_WORD in json.dumps(said.to_dict())
    assert_silent(repr(said), "the repr of an explanation")


@pytest.mark.parametrize("row", [-1, 8])
def test_a_position_that_is_none(row):
    with pytest.raises(ParameterError, match="from 0 to 7"):
        explain_record(people(), row)


def test_small_tables_and_odd_calls():
    one = table_of({"x": [1.0]})
    said = explain_record(one, 0)
    assert (said.keys.class_size, said.keys.unique_in, said.keys.remedies) == (1, (("x",),), ())
    with pytest.raises(ParameterError, match="has no records"):
        explain_record(one.take(np.array([], dtype=np.int64)), 0)
    release = Recipe.of(Mean()).apply(one, Run(seed=1))
    with pytest.raises(ParameterError, match="not both"):
        explain_record(one, 0, release, recipe=Recipe.of(Mean()))


def test_sets_are_left_out_of_the_keys_and_that_is_said():
    table = table_of({"tags": [["a"], ["b"]], "age": [1, 1]}, tags=Kind.SET)
    said = explain_record(table, 0, measures=[registry.measure("km-anonymity")()])
    assert said.keys.keys == ("age",)
    assert "`tags`" in said.notes[0]


def test_no_error_quotes_a_cell():
    table = table_of({"x": [SENTINEL_WORD, SENTINEL_WORD]})
    with pytest.raises(SfumatoError) as caught:
        explain_record(table, 0, recipe=Recipe.of(Mean()), run=Run(seed=1))
    assert_silent(str(caught.value), "an error")


# ------------------------------------------------------------------------------------------------- in words


@pytest.mark.parametrize("name", [*registry.measures(), *registry.methods()])
def test_everything_can_be_explained(name):
    cls = registry.measures().get(name) or registry.method(name)
    meaning = meaning_of(cls)
    assert meaning.summary == cls.summary().replace("``", "`") or ":math:" in cls.summary()
    text = "\n".join((meaning.definition, *meaning.notes.values()))
    assert not any(mark in text for mark in (":math:", ".. math::", "``", "**", "\\frac"))
    assert meaning.notes or not cls.references
    assert len(meaning.literature) == len(cls.references)
    json.dumps(meaning.to_dict())


def test_what_dbrl_says():
    meaning = meaning_of(DistanceLinkage)
    assert meaning.what == "measure of risk"
    assert meaning.side == "lower is safer; it lies between 0 and 1"
    assert meaning.guessing == "`baseline` is what guessing finds."
    assert "    P(T, T') = 1/N Σ_{n=1}^N χ_n/|B_n|\n" in meaning.definition
    assert list(meaning.notes) == [
        "How to read it",
        "Doubt",
        "Missing",
        "Units",
        "Cost",
        "How it was checked",
    ]
    assert meaning.literature[0].startswith("J. Herranz")


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"\frac{a + b}{n}", "(a + b)/n"),
        (r"\frac{1}{\sqrt{n}}", "1/(√(n))"),
        (r"x_{i} \in \{1, \dots, n\}", "x_i ∈ {1, …, n}"),
        (r"\max\left(1, \left\lfloor \frac{p\,n}{100} \right\rfloor\right)", "max(1, ⌊ (p n)/100 ⌋)"),
        (r"\mathrm{rank}(x^i) \le \bar{x}", "rank(x^i) ≤ x\u0304"),
        ("plain", "plain"),
        (
            r"y_i = \begin{cases} v & x_i \ge t \\ x_i & \text{else} \end{cases}",
            "y_i = { v for x_i ≥ t; x_i for else }",
        ),
        (r"\begin{pmatrix} z_1' \\ z_2' \end{pmatrix}", "[ z_1'; z_2' ]"),
    ],
)
def test_formulas_in_letters(latex, shown):
    assert in_letters(latex) == shown


def test_scores_in_sentences():
    measure = KAnonymity()
    said = explain_score(measure, Score(3.0, by_column={"a": 2.0, "b": 1.0}, details={"records_below_5": 7}))
    assert said[0] == "k-anonymity is 3, where higher is safer; it is at least 1."
    assert said[1] == "By column, the worst first: `b` 1, `a` 2"
    assert said[2] == "Details: records below 5: 7"
    risk = DistanceLinkage()
    assert (
        explain_score(risk, Score(0.1, baseline=0.2))[1] == "Guessing gives 0.2: this is no more than that."
    )
    said = explain_score(risk, Score(0.5, status=Status.APPROXIMATE, interval=(0.4, 0.6), reason="a sample"))
    assert said[1:] == (
        "It is an estimate: a sample. It meets no requirement.",
        "The true value is probably between 0.4 and 0.6.",
    )
    # What is proved can meet a requirement: see Requirement.met_by.
    proved = Score(0.5, Status.APPROXIMATE, (0.4, 0.6), interval_is_proved=True, reason="equals")
    assert Requirement(risk, "<=", 0.6).met_by(proved)
    assert explain_score(risk, proved)[1:] == (
        "It is an estimate: equals. Requirements are judged by its worse end.",
        "The true value is between 0.4 and 0.6.",
    )
    estimate = Score(0.5, Status.APPROXIMATE, (0.4, 0.6), reason="a model", confidence=95)
    assert explain_score(risk, estimate)[1:] == (
        "It is an estimate: a model. It meets no requirement unless that allows estimates: `at 95%`.",
        "The true value is probably between 0.4 and 0.6, with a confidence of 95 %.",
    )
    assert explain_score(risk, Score.refused("no release")) == (
        "Distance-based record linkage does not apply: no release.",
    )

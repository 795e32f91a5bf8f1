"""Carrying out a plan: from a file to a release, judged before it is written, and repeatable to the byte."""

import hashlib
import json
import os
import stat
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from seeds import LARGE
from sfumato.core.measure import Score, Status
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Progress, Run
from sfumato.data.rules import Rule
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import (
    Cancelled,
    DataError,
    ParameterError,
    PlanError,
    ReadError,
    RequirementError,
    SfumatoError,
    UnreachableError,
    WriteError,
)
from sfumato.methods import Anatomy, LocalSuppression
from sfumato.methods.microaggregation import Mdav
from sfumato.methods.noise import CorrelatedNoise
from sfumato.methods.recoding import Recoding
from sfumato.methods.swapping import RankSwapping
from sfumato.recipes.parts import Output, Source, fingerprint
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.releasing import copies
from sfumato.releasing import destination as writing
from sfumato.releasing import load as loading
from sfumato.releasing.carry_out import carry_out, load, load_resources, maker
from sfumato.releasing.decide import decide
from sfumato.releasing.destination import Destination, write_release
from sfumato.releasing.trail import environment, randomness_of
from sfumato.releasing.write_trail import earlier_releases, grown_ledger
from toys import SECRET_WORD

RECORDS = 40
SCHEMA = Schema(
    (
        Column("name", Kind.NOMINAL, Role.IDENTIFIER),
        Column("age", Kind.CONTINUOUS, Role.KEY, lower=18, upper=90),
        Column("income", Kind.CONTINUOUS, Role.KEY, missing=(-9,)),
        Column("region", Kind.NOMINAL, Role.OTHER),
        Column("ill", Kind.NOMINAL, Role.SENSITIVE),
    )
)


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(5)
    frame = pl.DataFrame(
        {
            "name": [f"{SECRET_WORD}-{i}" for i in range(RECORDS)],
            "age": rng.integers(18, 91, RECORDS),
            "income": np.where(rng.random(RECORDS) < 0.1, -9, rng.lognormal(7, 1, RECORDS).round(2)),
            "region": rng.choice(["north", "south"], RECORDS),
            "ill": [f"ill-{i // 2}" for i in range(RECORDS)],
        }
    )
    frame.write_csv(tmp_path / "people.csv")
    return frame


@pytest.fixture
def plan(people, tmp_path):
    return Plan(
        data=Source("people.csv"),
        schema=SCHEMA,
        recipe=Recipe.of(Step(RankSwapping(window=50), ("age", "income"), within=("region",))),
        output=Output("release.csv", drop=("name",)),
        folder=tmp_path,
    )


def files(folder):
    """All but the ledger, which is there once something left to chance was released."""
    return sorted(path.name for path in folder.iterdir() if path.name != "releases.private.jsonl")


def write(outcome, *, overwrite=False, unjudged=True, **options):
    """Decide on what came of the plan of one table, and write it."""
    decision = decide(outcome, subject="it", unjudged=unjudged)
    return write_release(decision, Destination(outcome.parts[""].plan, overwrite=overwrite), **options)


def published(plan, run, **options):
    """Carry out and write; what was written."""
    return write(carry_out(plan, run), **options)


# ------------------------------------------------------------------------------------------------ end to end


def test_from_file_to_file(plan, people, tmp_path):
    release, trail = published(plan, Run(seed=LARGE + 3))
    assert files(tmp_path) == ["people.csv", "release.csv", "release.private.json"]
    assert (release.name, trail.name) == ("release.csv", "release.private.json")
    written = pl.read_csv(release)
    assert written.columns == ["age", "income", "region", "ill"]
    # Swapping keeps each column's values, and within regions it keeps theirs.
    for region in ("north", "south"):
        before, after = (frame.filter(pl.col("region") == region) for frame in (people, written))
        for name in ("age", "income"):
            assert sorted(before[name]) == sorted(after[name])
    # The untouched column still stands beside its region, and the missing code beside its record.
    assert Counter(written.select("region", "ill").rows()) == Counter(people.select("region", "ill").rows())
    lacking = set(people.filter(pl.col("income") == -9)["ill"])
    assert lacking == set(written.filter(pl.col("income") == -9)["ill"])
    assert lacking


def test_a_dropped_column_is_really_absent(plan, tmp_path):
    for suffix in ("csv", "parquet"):
        place, _ = published(
            replace(plan, output=Output(f"out-{suffix}.{suffix}", drop=("name", "ill"))), Run(seed=LARGE + 3)
        )
        frame = pl.read_csv(place) if suffix == "csv" else pl.read_parquet(place)
        assert frame.columns == ["age", "income", "region"]
        assert SECRET_WORD.encode() not in place.read_bytes()
        assert b"ill" not in place.read_bytes()


def test_the_private_trail_holds_no_cell(plan):
    _, trail = published(plan, Run(seed=LARGE + 3))
    assert SECRET_WORD not in trail.read_text(encoding="utf-8")
    assert "ill-" not in trail.read_text(encoding="utf-8")


def test_the_release_is_shuffled_and_only_that(plan, people):
    ordered = carry_out(replace(plan, output=replace(plan.output, shuffle=False)), Run(seed=LARGE + 3))
    shuffled = carry_out(plan, Run(seed=LARGE + 3))
    assert ordered.release.table.frame["ill"].to_list() == people["ill"].to_list()
    assert shuffled.release.table.frame["ill"].to_list() != people["ill"].to_list()
    assert Counter(ordered.release.table.frame.rows()) == Counter(shuffled.release.table.frame.rows())
    # Where each record comes from moves with it.
    assert shuffled.release.table.frame["ill"].to_list() == [
        people["ill"][int(i)] for i in shuffled.release.source_rows
    ]
    assert ordered.judgements == shuffled.judgements


def test_the_shuffle_depends_on_seed_and_data(plan):
    orders = {tuple(carry_out(plan, Run(seed=seed)).release.source_rows.tolist()) for seed in range(5)}
    assert len(orders) == 5


def test_nothing_is_written_by_carrying_out(plan, tmp_path):
    carry_out(plan, Run(seed=LARGE + 3))
    assert files(tmp_path) == ["people.csv"]


# -------------------------------------------------------------------------------------------------- replay


def test_the_seed_of_the_trail_gives_the_same_bytes(plan):
    release, trail = published(plan, Run())
    first = release.read_bytes()
    chance = randomness_of(trail)
    assert chance.is_given is False
    again = replace(plan, output=replace(plan.output, path="again.csv"))
    place, second_trail = published(again, Run(randomness=chance))
    assert place.read_bytes() == first
    assert randomness_of(second_trail) == chance
    other, _ = published(replace(plan, output=replace(plan.output, path="other.csv")), Run())
    assert other.read_bytes() != first


def test_the_plan_in_the_trail_can_be_run(plan, tmp_path):
    release, trail = published(plan, Run(seed=LARGE + 9))
    said = json.loads(trail.read_text(encoding="utf-8"))
    again = Plan.from_dict(said["plan"], folder=tmp_path)
    assert again == plan
    rerun = carry_out(again, Run(seed=int(said["seed"], 16)))
    assert rerun.release.table.frame.equals(carry_out(plan, Run(seed=LARGE + 9)).release.table.frame)
    assert said["output"] == {"name": "release.csv", "sha256": fingerprint(release)}


def test_the_trail_says_what_was_done_in_what_environment(plan):
    _, trail = published(plan, Run(seed=LARGE + 255))
    said = json.loads(trail.read_text(encoding="utf-8"))
    assert said["seed"] == f"{LARGE + 255:032x}"
    assert said["records"] == RECORDS
    assert said["columns"] == ["age", "income", "region", "ill"]
    assert [step["method"] for step in said["steps"]] == ["rank-swapping"]
    assert said["inputs"] == {
        "people.csv": hashlib.sha256((plan.folder / "people.csv").read_bytes()).hexdigest()
    }
    assert said["environment"] == environment()
    assert {"python", "machine", "numpy", "polars", "numba", "scipy"} <= set(said["environment"])


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"seed": 5}', '{"seed": "xyz", "seed_given": false}', '{"seed": null}', "null", "3"],
)
def test_what_is_no_trail(tmp_path, text):
    place = tmp_path / "x.json"
    place.write_text(text, encoding="utf-8")
    with pytest.raises(ReadError, match="is not the private audit trail of a run"):
        randomness_of(place)
    with pytest.raises(ReadError):
        randomness_of(tmp_path / "nowhere.json")


# ------------------------------------------------------------------------------------------------- secrecy


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_only_the_owner_may_read_the_trail(plan, tmp_path):
    old = os.umask(0)
    try:
        _, trail = published(plan, Run(seed=LARGE + 3))
        assert stat.S_IMODE(trail.stat().st_mode) == 0o600
        trail.chmod(0o644)  # somebody opened it; the next trail is private again
        published(plan, Run(seed=LARGE + 4), overwrite=True)
    finally:
        os.umask(old)
    assert stat.S_IMODE(trail.stat().st_mode) == 0o600
    assert randomness_of(trail).seed == LARGE + 4


def test_the_seed_stands_in_no_public_place(plan):
    seed = 0xDEADBEEFCAFEBABE1234
    run = Run(seed=seed)
    outcome = carry_out(plan, run)
    release, trail = write(outcome)
    for text in (
        json.dumps(outcome.to_dict()),
        repr(outcome),
        release.read_text(encoding="utf-8"),
        release.name,
    ):
        assert "deadbeef" not in text.lower()
        assert str(seed) not in text
    assert "deadbeef" in trail.read_text(encoding="utf-8")


def test_the_public_half_holds_nothing_per_record(plan):
    outcome = carry_out(
        replace(plan, requirements=(Requirement.parse("rank-linkage >= 0"),)), Run(seed=LARGE + 3)
    )
    said = json.dumps(outcome.to_dict())
    assert "by_record" not in said
    assert "source_rows" not in said
    assert "ill-" not in said


def test_a_broken_file_is_reported_without_its_cells(plan, people, tmp_path):
    people.with_columns(age=pl.lit(SECRET_WORD)).write_csv(tmp_path / "people.csv")
    with pytest.raises(SfumatoError) as caught:
        carry_out(plan, Run(seed=LARGE + 3))
    assert SECRET_WORD not in str(caught.value)
    assert "`age`" in str(caught.value)


# ------------------------------------------------------------------------------------------------ judgement


def test_a_requirement_that_is_met(plan):
    outcome = carry_out(
        replace(plan, requirements=(Requirement.parse("rank-linkage >= 0.01"),)), Run(seed=LARGE + 3)
    )
    (judgement,) = outcome.judgements
    assert outcome.is_met
    assert judgement.is_met
    assert judgement.scenario == "default"
    assert judgement.to_dict()["verdict"].startswith("met: rank-linkage is ")
    assert outcome.to_dict()["met"] is True


def test_a_requirement_that_is_not_met_is_not_written(plan, tmp_path):
    plan = replace(
        plan,
        requirements=(Requirement.parse("rank-linkage >= 0.01"), Requirement.parse("rank-linkage >= 1e9")),
    )
    outcome = carry_out(plan, Run(seed=LARGE + 3))
    assert [judgement.is_met for judgement in outcome.judgements] == [True, False]
    assert not outcome.is_met
    with pytest.raises(RequirementError) as caught:
        write(outcome, overwrite=True)
    assert caught.value.message.startswith("1 of 2 requirements are not met, so nothing was written")
    assert caught.value.exit_code == 1
    assert files(tmp_path) == ["people.csv"]


def test_every_requirement_in_every_scenario(plan):
    """What one intruder cannot link another may: the release must hold against both."""
    plan = replace(
        plan,
        recipe=Recipe.of(Step(Mdav(k=20), ("age",))),
        requirements=(
            Requirement.parse("rank-linkage >= 0.5"),
            Requirement.parse("rank-linkage(floor=0.25) >= 0.5"),
        ),
        scenarios=(Scenario("age", columns=("age",)), Scenario("income", columns=("income",))),
    )
    outcome = carry_out(plan, Run(seed=LARGE + 3))
    assert [(j.scenario, j.requirement.measure.floor) for j in outcome.judgements] == [
        ("age", 0.5), ("age", 0.25), ("income", 0.5), ("income", 0.25),
    ]  # fmt: skip
    # Income was left as it is: nothing about it is protected.
    assert [judgement.is_met for judgement in outcome.judgements] == [True, True, False, False]
    assert not outcome.is_met


def test_a_refused_measure_is_not_met(plan):
    """The intruder knows only a column that is not in the release: no number, hence no pass."""
    plan = replace(
        plan,
        output=replace(plan.output, drop=("name", "age")),
        scenarios=(Scenario(columns=("age",)),),
        requirements=(Requirement.parse("rank-linkage >= 0"),),
    )
    outcome = carry_out(plan, Run(seed=LARGE + 3))
    assert outcome.judgements[0].score.status is Status.REFUSED
    assert not outcome.is_met
    assert "refused" in outcome.judgements[0].to_dict()["verdict"]
    json.dumps(outcome.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    "score", [Score(0.9, status=Status.APPROXIMATE), Score.not_estimable("why"), Score(float("nan"))]
)
def test_a_doubtful_score_opens_no_gate(plan, monkeypatch, score, tmp_path):
    requirement = Requirement.parse("rank-linkage >= 0")
    judged = SimpleNamespace(scores={str(requirement.measure): score})
    monkeypatch.setattr(copies, "evaluate", lambda *args, **options: judged)
    outcome = carry_out(replace(plan, requirements=(requirement,)), Run(seed=LARGE + 3))
    assert not outcome.is_met
    with pytest.raises(RequirementError):
        write(outcome)
    assert files(tmp_path) == ["people.csv"]


@pytest.mark.parametrize("records", [RECORDS, RECORDS + 1])
def test_what_is_done_of_a_large_table_after_its_steps_is_told(plan, monkeypatch, records):
    seen = []
    monkeypatch.setattr("sfumato.releasing.carry_out._WORTH_TELLING", records)
    carry_out(plan, Run(seed=1, progress=Progress(lambda event: seen.append(event.task))))
    phases = ["judging the release", "counting what changed", "shuffling the records"]
    assert [each for each in seen if each in phases] == (phases if records <= RECORDS else [])


def test_measures_judge_the_release_as_it_is_and_not_the_shuffled_rows(plan):
    """A release that changes nothing is as risky as can be, shuffled or not."""
    requirement = Requirement.parse("rank-linkage >= 0")
    values = set()
    for shuffle in (True, False):
        bare = replace(
            plan, recipe=Recipe(), requirements=(requirement,), output=replace(plan.output, shuffle=shuffle)
        )
        values.add(carry_out(bare, Run(seed=LARGE + 3)).judgements[0].score.value)
    assert len(values) == 1


def test_broken_promises_are_counted(plan, people):
    """Ranges are kept by every method; a rule across columns is not, so it is counted."""
    noisy = replace(
        plan,
        recipe=Recipe.of(Step(CorrelatedNoise(ratio=100), ("age",))),
        schema=replace(SCHEMA, rules=(Rule("income >= 0"), Rule("income >= 10 * age"))),
        output=replace(plan.output, drop=("name",)),
    )
    outcome = carry_out(noisy, Run(seed=LARGE + 3))
    promises = {violation.promise: violation.records for violation in outcome.parts[""].broken}
    released, there = outcome.release.table.frame, pl.Series(~outcome.release.table.missing("income"))
    broken = int(((released["income"] < 10 * released["age"]) & there).sum())
    assert broken > 0
    assert promises == {"`income >= 10 * age` holds": broken}
    assert outcome.to_dict()["broken_promises"][0]["records"] == broken
    assert carry_out(plan, Run(seed=LARGE + 3)).parts[""].broken == ()


# ------------------------------------------------------------------------------------------------- blocked


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"schema": SCHEMA.replace(Column("ill", Kind.NOMINAL))},
            "these columns have no role: `ill`",
        ),
        ({"schema": None}, "the plan declares no columns"),
        ({"output": Output("release.csv", drop=SCHEMA.names)}, "no column would be released"),
    ],
)
def test_nothing_is_read_or_written_when_blocked(plan, change, words, tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "read_table", lambda *args, **options: pytest.fail("the data were read"))
    with pytest.raises(PlanError) as caught:
        carry_out(replace(plan, **change), Run(seed=LARGE + 3))
    assert words in str(caught.value)
    assert files(tmp_path) == ["people.csv"]


def test_a_plan_without_data_or_output(plan):
    with pytest.raises(PlanError, match="the plan names no data"):
        carry_out(replace(plan, data=None), Run(seed=LARGE + 3))
    outcome = carry_out(replace(plan, output=Output(drop=("name",))), Run(seed=LARGE + 3))
    with pytest.raises(PlanError, match="the plan names no output"):
        write(outcome)


def test_another_file_of_the_same_name_is_noticed(plan, people, tmp_path):
    sha256 = fingerprint(tmp_path / "people.csv")
    pinned = replace(plan, data=Source("people.csv", sha256=sha256))
    carry_out(pinned, Run(seed=LARGE + 3))
    people.reverse().write_csv(tmp_path / "people.csv")
    with pytest.raises(ReadError, match="has changed since the plan was written"):
        carry_out(pinned, Run(seed=LARGE + 3))


def test_a_column_the_plan_does_not_know_blocks(plan, people, tmp_path):
    """A column that came with the new delivery of the data must not slip through into the release."""
    people.with_columns(phone=pl.lit("0123")).write_csv(tmp_path / "people.csv")
    with pytest.raises(SfumatoError, match="column `phone` of the data is not declared"):
        carry_out(plan, Run(seed=LARGE + 3))


def test_stopping_leaves_nothing(plan, tmp_path):
    with pytest.raises(Cancelled):
        carry_out(plan, Run(seed=LARGE + 3, progress=Progress(stopped=lambda: True)))
    assert files(tmp_path) == ["people.csv"]


# ----------------------------------------------------------------------------------------------- originals


def test_an_original_is_never_overwritten(plan, tmp_path):
    before = (tmp_path / "people.csv").read_bytes()
    (tmp_path / "sub").mkdir()
    os.link(tmp_path / "people.csv", tmp_path / "hard.csv")
    (tmp_path / "soft.csv").symlink_to(tmp_path / "people.csv")
    for name in ("people.csv", "./sub/../people.csv", str(tmp_path / "people.csv"), "hard.csv", "soft.csv"):
        outcome = carry_out(replace(plan, output=Output(name, drop=("name",))), Run(seed=LARGE + 3))
        with pytest.raises(WriteError):
            write(outcome, overwrite=True)
    assert (tmp_path / "people.csv").read_bytes() == before
    assert files(tmp_path) == ["hard.csv", "people.csv", "soft.csv", "sub"]


def test_a_resource_is_an_original_too(plan, people, tmp_path):
    people.select("age").write_csv(tmp_path / "census.csv")
    plan = replace(plan, resources={"census": Source("census.csv")})
    before = (tmp_path / "census.csv").read_bytes()
    assert [path.name for path in Destination(plan).originals] == [
        "people.csv", "census.csv", "people.labels.csv", "census.labels.csv",
    ]  # fmt: skip
    assert len(load_resources(plan)["census"]) == RECORDS
    outcome = carry_out(replace(plan, output=Output("census.csv", drop=("name",))), Run(seed=LARGE + 3))
    with pytest.raises(WriteError, match="is the same file as the original"):
        write(outcome, overwrite=True)
    assert (tmp_path / "census.csv").read_bytes() == before


def test_what_is_there_is_replaced_only_when_asked(plan, tmp_path):
    (tmp_path / "release.csv").write_text("mine", encoding="utf-8")
    outcome = carry_out(plan, Run(seed=LARGE + 3))
    with pytest.raises(WriteError, match="exists already"):
        write(outcome)
    assert (tmp_path / "release.csv").read_text(encoding="utf-8") == "mine"
    assert files(tmp_path) == ["people.csv", "release.csv"]
    write(outcome, overwrite=True)
    assert (tmp_path / "release.csv").read_text(encoding="utf-8") != "mine"


def test_a_release_is_not_written_when_its_trail_cannot_be(plan, tmp_path):
    """A release whose seed is lost cannot be made again; and the trail there is another release's."""
    (tmp_path / "release.private.json").write_text("another seed", encoding="utf-8")
    outcome = carry_out(plan, Run(seed=LARGE + 3))
    with pytest.raises(WriteError, match="exists already"):
        write(outcome)
    assert files(tmp_path) == ["people.csv", "release.private.json"]
    assert (tmp_path / "release.private.json").read_text(encoding="utf-8") == "another seed"


def test_a_folder_that_is_not_there(plan, tmp_path):
    outcome = carry_out(
        replace(plan, output=Output("nowhere/release.csv", drop=("name",))), Run(seed=LARGE + 3)
    )
    with pytest.raises(WriteError, match="there is no folder"):
        write(outcome)
    assert files(tmp_path) == ["people.csv"]


def test_a_failed_write_leaves_the_old_release(plan, tmp_path, monkeypatch):
    published(plan, Run(seed=LARGE + 3))
    before = {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}

    def fail(*args, **options):
        raise DataError("the disk is full")

    monkeypatch.setattr(writing, "stage", fail)
    with pytest.raises(DataError):
        published(plan, Run(seed=LARGE + 4), overwrite=True)
    assert {name: (tmp_path / name).read_bytes() for name in files(tmp_path)} == before


def test_all_that_writing_would_refuse_is_refused_before_the_work(plan, tmp_path):
    """The codebook of a release that is not there any more would be read as the new one's."""
    Destination(plan).check()
    (tmp_path / "release.labels.csv").write_text("column,label,value\n", encoding="utf-8")
    with pytest.raises(WriteError, match=r"release\.labels\.csv` exists already"):
        Destination(plan).check()
    Destination(plan, overwrite=True).check()
    with pytest.raises(WriteError, match="is the same file as the original"):
        Destination(plan, overwrite=True, also_read=(tmp_path / "release.labels.csv",)).check()
    guarded = replace(plan, output=Output("out.parquet", guard=True))
    with pytest.raises(ParameterError, match="`guard` applies to delimited text"):
        Destination(guarded).check()
    assert files(tmp_path) == ["people.csv", "release.labels.csv"]


def test_a_codebook_is_written_with_the_release_or_goes_with_the_old_one(plan, people, tmp_path):
    recipe = Recipe.of(Step(Recoding(levels=1), ("ill",)))
    assert (
        len(published(replace(plan, recipe=recipe), Run(seed=LARGE + 3))) == 2
    )  # nothing says what may occur
    meanings = tuple((f"ill-{i}", f"ill-{i}") for i in range(RECORDS))
    declared = plan.schema.replace(replace(plan.schema["ill"], labels=meanings))
    coarse, run = replace(plan, recipe=recipe, schema=declared), Run(seed=LARGE + 3)
    release, labels, trail = published(coarse, run, overwrite=True)
    assert [path.name for path in (release, labels, trail)] == [
        "release.csv", "release.labels.csv", "release.private.json",
    ]  # fmt: skip
    assert labels.read_text(encoding="utf-8").startswith("column,label,value\n")
    assert len(published(plan, Run(seed=LARGE + 3), overwrite=True)) == 2
    assert files(tmp_path) == ["people.csv", "release.csv", "release.private.json"]


def test_a_release_made_elsewhere_goes_the_same_way_out(plan):
    """It is postprocessed, judged and shuffled as one that the recipe makes, and keeps its provenance."""
    plan = replace(plan, requirements=(Requirement.parse("rank-linkage >= 0"),))
    usual = carry_out(plan, Run(seed=LARGE + 3))
    elsewhere = carry_out(replace(plan, recipe=Recipe()), Run(seed=LARGE + 3), protect=plan.recipe.apply)
    assert elsewhere.release.table.frame.equals(usual.release.table.frame)
    assert elsewhere.judgements == usual.judgements
    assert [step.method for step in elsewhere.release.provenance] == ["rank-swapping"]


def test_an_outcome_of_several_tables_has_no_single_release(plan):
    both = Plan(
        tables={"a": plan, "b": replace(plan, output=Output("b.csv", drop=("name",)))}, folder=plan.folder
    )
    outcome = carry_out(both, Run(seed=LARGE + 3))
    assert set(outcome.parts) == {"a", "b"}
    with pytest.raises(PlanError, match="must be for one table, got: 2"):
        _ = outcome.release
    assert set(outcome.to_dict()) == {"tables", "dangling"}


def test_the_record_of_a_verb_stands_in_the_trail(plan):
    _, trail = published(plan, Run(seed=LARGE + 3), record={"protocol": {"bound": 2}})
    assert json.loads(trail.read_text(encoding="utf-8"))["protocol"] == {"bound": 2}


# ----------------------------------------------------------------------------------- several copies, and tables

SMALL = Table(
    pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "y": [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]}),
    Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY, upper=9) for name in "xy")),
)


def small(*steps, **output):
    return Plan(schema=SMALL.schema, recipe=Recipe.of(*steps), output=Output(**output))


def with_x(*values):
    return Release.record_by_record(
        replace(SMALL, frame=SMALL.frame.with_columns(x=pl.Series(values, dtype=pl.Float64)))
    )


def test_who_asks_sees_each_table_before_the_work():
    seen = []
    plan = replace(small(), resources={})
    carry_out(plan, Run(seed=LARGE), table=SMALL, before=lambda *given: seen.append(given))
    ((its_plan, its_table, run),) = seen
    assert (its_plan, its_table) == (plan, SMALL)
    assert run.resources == {}


def test_the_first_copy_is_what_there_would_be_alone():
    step = Step(CorrelatedNoise(), ("x", "y"))
    made = carry_out(small(step, copies=3), Run(seed=LARGE), table=SMALL).parts[""].copies
    alone = carry_out(small(step), Run(seed=LARGE), table=SMALL).release
    assert len(made) == 3
    assert made[0].table.frame.equals(alone.table.frame)
    assert len({each.table.frame.write_csv() for each in made}) == 3
    assert len({tuple(each.source_rows) for each in made}) == 3  # nor are they in one order
    unshuffled = (
        carry_out(small(step, copies=3, shuffle=False), Run(seed=LARGE), table=SMALL).parts[""].copies
    )
    assert [list(each.source_rows) for each in unshuffled] == [[0, 1, 2, 3, 4, 5]] * 3
    assert len({each.table.frame.write_csv() for each in unshuffled}) == 3


def test_of_several_copies_the_worst_is_told():
    """The copy that breaks most, and of each repair the most cells."""
    releases = [with_x(1, 2, 3, 4, 5, 10), with_x(1, 2, 3, 10, 10, 10), with_x(1, 2, 3, 4, 10, 10)]
    made = iter(releases)
    part = carry_out(small(copies=3), Run(seed=LARGE), table=SMALL, protect=lambda *_: next(made)).parts[""]
    assert [each.records for each in part.broken] == [3]
    made = iter(releases)
    mended = carry_out(
        small(copies=3, repair=True), Run(seed=LARGE), table=SMALL, protect=lambda *_: next(made)
    ).parts[""]
    assert (mended.broken, list(mended.changes.values())) == ((), [3])


def test_copies_are_of_one_table():
    ages = Table(
        pl.DataFrame({"age": [30, 31, 32, 33], "ill": ["a", "b", "a", "b"]}),
        Schema((Column("age", Kind.CONTINUOUS, Role.KEY), Column("ill", Kind.NOMINAL, Role.SENSITIVE))),
    )
    plan = Plan(schema=ages.schema, recipe=Recipe.of(Step(Anatomy(l=2))), output=Output())
    assert len(carry_out(plan, Run(seed=LARGE), table=ages).release.tables) == 2
    with pytest.raises(PlanError, match="`copies` above 1 needs a release of one table"):
        carry_out(replace(plan, output=Output(copies=2)), Run(seed=LARGE), table=ages)


def test_tables_of_one_plan_have_chance_of_their_own():
    plan = small(Step(CorrelatedNoise(), ("x", "y")))
    both = carry_out(Plan(tables={"a": plan, "b": plan}), Run(seed=LARGE), table=SMALL).parts
    alone = carry_out(plan, Run(seed=LARGE), table=SMALL)
    frames = [each.table.frame for each in (alone.release, both["a"].release, both["b"].release)]
    assert len({each.write_csv() for each in frames}) == 3


@pytest.mark.parametrize("role", [None, Role.IDENTIFIER, Role.OTHER])
def test_what_a_step_enforced_holds_after_a_repair_whatever_stays_behind(role):
    """Totals that are summed again from noisy parts tell everybody apart; a name that is left out changes nothing."""
    beside = () if role is None else (Column("stays", Kind.NOMINAL, role),)
    columns = [Column(each, Kind.CONTINUOUS, Role.KEY if each == "t" else Role.OTHER) for each in "abt"]
    schema = Schema((*columns, *beside), rules=(Rule("t = a + b"),))
    data = {
        "a": [1.0] * 3 + [2.0] * 3,
        "b": [1.0] * 3 + [2.0] * 3,
        "t": [2.0] * 3 + [4.0] * 3,
        "stays": list("uvwxyz"),
    }
    table = Table(pl.DataFrame(data).select(schema.names), schema)
    steps = (Step(LocalSuppression(k=3), ("t",)), Step(CorrelatedNoise(), ("a",)))
    output = Output(repair=True, drop=tuple(each.name for each in beside))
    plan = Plan(schema=schema, recipe=Recipe(steps), output=output)
    with pytest.raises(UnreachableError, match=r"local-suppression.* enforced does not hold"):
        carry_out(plan, Run(seed=LARGE), table=table)
    carry_out(replace(plan, output=replace(output, repair=False)), Run(seed=LARGE), table=table)


def test_what_a_step_enforced_is_not_asked_of_what_lacks_the_sensitive_column():
    schema = Schema(
        (
            Column("t", Kind.NOMINAL, Role.KEY),
            Column("ill", Kind.NOMINAL, Role.SENSITIVE),
            Column("x", Kind.CONTINUOUS, Role.OTHER, upper=9),
        )
    )
    table = Table(pl.DataFrame({"t": ["a"] * 4, "ill": list("pqpq"), "x": [1.0, 2.0, 3.0, 4.0]}), schema)
    recipe = Recipe((Step(LocalSuppression(k=2, also=("l >= 2",)), ("t",)),))
    plan = Plan(schema=schema, recipe=recipe, output=Output(repair=True, drop=("ill",)))
    beyond = Release.record_by_record(replace(table, frame=table.frame.with_columns(x=pl.lit(10.0))))
    part = carry_out(plan, Run(seed=LARGE), table=table, protect=lambda *_: beyond).parts[""]
    assert list(part.changes.values()) == [4]


def test_what_makes_a_release_makes_it_as_it_would_be_written():
    plan = small(Step(CorrelatedNoise(), ("x",)), drop=("y",))
    made = maker(plan)(SMALL, Run(seed=LARGE))
    assert made.table.names == ("x",)
    assert not made.table.frame.equals(SMALL.frame.select("x"))
    assert maker(plan, lambda table, run: Release.unchanged(table))(SMALL, Run()).table.frame.equals(
        SMALL.frame.select("x")
    )


# --------------------------------------------------------------------------------------------- built-in data


def test_built_in_data_are_no_file(tmp_path):
    plan = Plan(data=Source("builtin:rand?per=person"), folder=tmp_path)
    assert plan.files == {}
    table = load(plan)
    same = load(replace(plan, schema=table.schema))
    assert same.digest == table.digest
    with pytest.raises(PlanError, match="is not declared"):
        load(replace(plan, schema=table.schema.select(table.names[:2])))


def test_the_ledger_tells_of_earlier_releases_with_other_chance(plan, tmp_path):
    carried = [carry_out(plan, run) for run in (Run(seed=LARGE + 3), Run(seed=LARGE + 4))]
    ledger = Destination(plan).ledger
    assert ledger.parent == tmp_path
    assert [earlier_releases(ledger, each) for each in carried] == [0, 0]
    ledger.write_text(grown_ledger(ledger, carried[0]))
    assert [earlier_releases(ledger, each) for each in carried] == [0, 1]  # a replay is no further release
    assert f"{3:032x}" not in ledger.read_text(encoding="utf-8")

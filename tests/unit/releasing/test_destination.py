"""Where each file of a release goes, what is refused before the work, and that nothing is written without a decision."""

import json
import math
import stat
from dataclasses import replace

import polars as pl
import pytest

from seeds import LARGE
from sfumato.core.release import Provenance, Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError, PlanError, RequirementError, WriteError
from sfumato.methods import Anatomy
from sfumato.methods.microaggregation import Mdav
from sfumato.methods.noise import CorrelatedNoise
from sfumato.recipes.parts import CountTable, Output, Source
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.releasing.decide import decide
from sfumato.releasing.destination import Destination, write_release
from sfumato.releasing.outcome import CountsBeside, Judgement, PlanOutcome, Score, TableOutcome

SCHEMA = Schema((Column("age", Kind.CONTINUOUS, Role.KEY), Column("ill", Kind.NOMINAL, Role.SENSITIVE)))
TABLE = Table(pl.DataFrame({"age": [30, 30, 40, 40], "ill": ["a", "b", "a", "b"]}), SCHEMA)
DATABASE = "a table of a database"


@pytest.fixture
def planned(tmp_path):
    TABLE.frame.write_csv(tmp_path / "people.csv")

    def make(path="out.csv", steps=(), counts=(), **output):
        path = f"sqlite://{tmp_path}/out.db?table=t" if path == DATABASE else path
        return Plan(
            data=Source("people.csv"), schema=SCHEMA, recipe=Recipe(tuple(Step(each) for each in steps)),
            requirements=(Requirement.parse("k >= 2"),), output=Output(path, **output), count_tables=counts, folder=tmp_path,
        )  # fmt: skip

    return make


def names(places):
    return [place.name for place in places]


# ----------------------------------------------------------------------------------------------- every place


def test_one_file_goes_to_its_place(planned, tmp_path):
    here = Destination(planned())
    assert here.places == {"": tmp_path / "out.csv"}
    assert here.copies("") == [tmp_path / "out.csv"]
    assert here.files("", ["table"]) == {"table": tmp_path / "out.csv"}
    assert here.counts("") == {}
    assert (here.trail, here.ledger) == (tmp_path / "out.private.json", tmp_path / "releases.private.jsonl")
    private = Destination(planned(), private=tmp_path / "private")
    assert private.trail.parent == private.ledger.parent == tmp_path / "private"


def test_several_files_have_a_word_or_number_each(planned):
    assert names(Destination(planned(copies=3)).copies("")) == ["out.1.csv", "out.2.csv", "out.3.csv"]
    assert names(Destination(planned(copies=2)).copies("")) == ["out.1.csv", "out.2.csv"]
    places = Destination(planned()).files("", ["qit", "st"])
    assert {name: place.name for name, place in places.items()} == {"qit": "out.qit.csv", "st": "out.st.csv"}


def test_tables_of_counts_and_those_that_stay(planned, tmp_path):
    counts = (CountTable("ages", ("age",)), CountTable("ills", ("ill",), otherwise="tau-argus"))
    here = Destination(planned("out.parquet", counts=counts), private=tmp_path / "private")
    assert here.counts("") == {"ages": tmp_path / "out.ages.csv", "ills": tmp_path / "out.ills.csv"}
    stay = here.for_tau_argus("")
    assert (names(stay), stay[0].parent) == (
        ["tau-argus.ills.tab", "tau-argus.ills.rda"],
        tmp_path / "private",
    )


def test_a_database_takes_one_table(planned, tmp_path):
    here = Destination(planned(DATABASE))
    assert isinstance(here.copies("")[0], str)
    assert list(here.files("", ["table"])) == ["table"]
    assert here.trail == tmp_path / "release.private.json"
    with pytest.raises(PlanError, match="several copies must be written to files"):
        Destination(planned(DATABASE, copies=2)).copies("")
    with pytest.raises(PlanError, match="a release of 2 tables must be written to files"):
        here.files("", ["qit", "st"])
    with pytest.raises(PlanError, match="tables of counts must be written to files"):
        Destination(planned(DATABASE, counts=(CountTable("ages", ("age",)),))).counts("")


def test_every_table_needs_a_place(planned, tmp_path):
    both = Plan(tables={"a": planned("a.csv"), "b": planned("b.csv")}, folder=tmp_path)
    assert names(Destination(both).places.values()) == ["a.csv", "b.csv"]
    assert Destination(both).trail == tmp_path / "tables.private.json"
    for lacking in (planned(""), Plan(tables={"a": planned("a.csv"), "b": planned("")}, folder=tmp_path)):
        with pytest.raises(PlanError, match="the plan names no output"):
            _ = Destination(lacking).places


# ---------------------------------------------------------------------------------------- before the work


def test_a_key_that_is_there_is_an_original(planned, tmp_path):
    plan = planned(pseudonym_key="people.key")
    assert names(Destination(plan).keys) == ["people.key"]
    assert "people.key" not in names(Destination(plan).originals)
    Destination(plan).check()
    (tmp_path / "people.key").write_text("0" * 64, encoding="utf-8")
    assert "people.key" in names(Destination(plan).originals)
    Destination(plan).check()  # it is read, not written


def test_a_key_that_will_be_drawn_needs_a_folder(planned):
    with pytest.raises(WriteError, match="there is no folder"):
        Destination(planned(pseudonym_key="nowhere/people.key")).check()


@pytest.mark.parametrize(
    ("settings", "taken"),
    [
        ({}, "out.csv"), ({}, "out.private.json"), ({}, "out.labels.csv"), ({}, "note.html"),
        ({"copies": 2}, "out.2.csv"), ({"copies": 2}, "out.2.labels.csv"), ({"copies": 2}, "out.csv"),
        ({"steps": (Mdav(k=2), Anatomy(l=2))}, "out.st.csv"), ({"counts": (CountTable("ages", ("age",)),)}, "out.ages.csv"),
        ({"counts": (CountTable("ages", ("age",), otherwise="tau-argus"),)}, "tau-argus.ages.tab"),
    ],
)  # fmt: skip
def test_every_file_that_would_be_replaced_is_known_before_the_work(planned, tmp_path, settings, taken):
    here = Destination(planned(**settings), pages=(tmp_path / "note.html",))
    here.check()
    (tmp_path / taken).touch()
    with pytest.raises(WriteError, match="exists already"):
        here.check()
    replace(here, overwrite=True).check()


def test_what_the_last_step_does_not_make_is_in_nobodys_way(planned, tmp_path):
    (tmp_path / "out.st.csv").touch()
    for steps in ((Mdav(k=2),), (Anatomy(l=2), Mdav(k=2)), (Mdav(k=2), Anatomy(l=2), Mdav(k=2))):
        Destination(planned(steps=steps)).check()


def test_a_format_that_cannot_be_is_refused_before_the_work(planned):
    with pytest.raises(ParameterError, match="`guard` applies to delimited text"):
        Destination(planned("out.parquet", guard=True)).check()
    Destination(planned(DATABASE)).check()


def test_a_release_folder_is_replaced_as_a_whole(planned, tmp_path):
    (tmp_path / "folder" / "private").mkdir(parents=True)
    (tmp_path / "folder" / "private" / "SHA256SUMS").touch()
    for path in ("folder/out.csv", "folder/private/out.csv"):
        with pytest.raises(WriteError, match="can only be replaced as a whole"):
            Destination(planned(path)).check()
    (tmp_path / "folder" / "deep" / "er").mkdir(parents=True)
    Destination(planned("folder/deep/er/out.csv")).check()


# ------------------------------------------------------------------------------------------------- writing


def outcome_of(plan, *, value=2, **more):
    judgement = Judgement(Requirement.parse("k >= 2"), "default", Score(value))
    steps = tuple(Provenance(each.method.name, {}, ("age",)) for each in plan.recipe.steps)
    part = TableOutcome(plan, TABLE, replace(Release.unchanged(TABLE), steps=steps), (judgement,), (), **more)
    return PlanOutcome({"": part}, Run(seed=LARGE).randomness.for_release())


def written(outcome, plan, override="", **more):
    return write_release(decide(outcome, subject="it", override=override), Destination(plan), **more)


def test_nothing_is_written_without_leave(planned, tmp_path):
    plan = planned()
    with pytest.raises(RequirementError):
        written(outcome_of(plan, value=1), plan)
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_an_override_is_in_the_trail_and_the_ledger(planned, tmp_path):
    plan = planned()
    written(outcome_of(plan, value=1), plan, override="agreed")
    trail = json.loads((tmp_path / "out.private.json").read_text(encoding="utf-8"))
    assert (trail["override"]["override"], trail["unjudged"]) == ("agreed", False)
    (line,) = (tmp_path / "overrides.private.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["reason"] == "agreed"


def test_what_needs_no_override_has_none(planned, tmp_path):
    plan = planned()
    written(outcome_of(plan), plan, override="agreed")
    assert "override" not in json.loads((tmp_path / "out.private.json").read_text(encoding="utf-8"))
    assert not (tmp_path / "overrides.private.jsonl").exists()


def test_what_is_written_is_private_where_it_must_be(planned, tmp_path):
    """The trail has the seed, the key undoes pseudonyms, the ledger tells of both, τ-ARGUS gets exact totals."""
    counts = (CountTable("ages", ("age",)), CountTable("ills", ("ill",)))
    plan = planned(counts=counts, steps=(CorrelatedNoise(),), copies=2)
    beside = CountsBeside(tables={"ages": TABLE.select(["age"])}, private={"tau-argus.ills.tab": "cells"})
    outcome = outcome_of(plan, beside=beside, further=(Release.unchanged(TABLE),))
    outcome = replace(outcome, new_keys={tmp_path / "people.key": "secret"})
    places = written(outcome, plan, pages={tmp_path / "note.html": "a page"}, record={"verb": "test"})
    private = {"out.private.json", "people.key", "tau-argus.ills.tab", "releases.private.jsonl"}
    public = {"out.1.csv", "out.2.csv", "out.ages.csv", "note.html"}
    made = {path.name for path in tmp_path.iterdir()} - {"people.csv"}
    assert made - {"releases.private.jsonl"} == {place.name for place in places}
    assert made == private | public
    for path in tmp_path.iterdir():
        assert (stat.S_IMODE(path.stat().st_mode) == 0o600) == (path.name in private), path.name
    assert (tmp_path / "note.html").read_text(encoding="utf-8") == "a page"
    trail = json.loads((tmp_path / "out.private.json").read_text(encoding="utf-8"))
    assert (trail["verb"], set(trail["written"]) >= public) == ("test", True)


def test_the_ledger_of_releases_grows(planned, tmp_path):
    for seed, path in ((LARGE, "one.csv"), (LARGE + 1, "two.csv")):
        plan = planned(path, steps=(CorrelatedNoise(),))
        written(replace(outcome_of(plan), randomness=Run(seed=seed).randomness.for_release()), plan)
    ledger = tmp_path / "releases.private.jsonl"
    assert len(ledger.read_text(encoding="utf-8").splitlines()) == 2
    assert stat.S_IMODE(ledger.stat().st_mode) == 0o600


def test_a_key_that_appears_meanwhile_is_never_replaced(planned, tmp_path):
    """Its pseudonyms would be lost: nothing is written, even where files may be."""
    plan, key = planned(steps=(CorrelatedNoise(),)), tmp_path / "people.key"
    outcome = replace(outcome_of(plan), new_keys={key: "ours"})
    key.write_text("theirs", encoding="utf-8")
    with pytest.raises(WriteError):
        write_release(decide(outcome, subject="it", unjudged=True), Destination(plan, overwrite=True))
    assert key.read_text(encoding="utf-8") == "theirs"
    assert {path.name for path in tmp_path.iterdir()} == {"people.csv", "people.key"}


def test_a_number_that_json_lacks_is_not_written(planned, tmp_path):
    plan = planned()
    with pytest.raises(ValueError, match="JSON"):
        written(outcome_of(plan), plan, record={"score": math.nan})
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_a_table_of_a_database_is_among_what_was_written(planned):
    plan = planned(DATABASE)
    places = written(outcome_of(plan), plan)
    assert [str(place).endswith("table=t") for place in places if isinstance(place, str)] == [True]

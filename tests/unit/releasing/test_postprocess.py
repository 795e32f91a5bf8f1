"""Postprocessing: codes for what was suppressed, pseudonyms, and tables that stay linked."""

import json
import math
import tomllib

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeds import LARGE
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.suppressing import to_missing, to_wildcard
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import PlanError, RequirementError, WriteError
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.decide import decide
from sfumato.releasing.destination import Destination, write_release
from sfumato.releasing.postprocess import dangling, forget_unshown, mark_suppressed, rename_people


def table_of(column, values, **more):
    return Table(pl.DataFrame({column.name: values}, **more), Schema((column,)))


# ------------------------------------------------------------------------------------------- held back


@pytest.mark.parametrize(
    ("code", "original", "released", "expected"),
    [
        (-9, [1, 2, None, 4], [1, None, None, None], [1, -9, None, -9]),
        (-9, [1.5, 2.5, None, 4.0], [1.5, None, None, None], [1.5, -9.0, None, -9.0]),
        ("held", ["a", "b", None, "d"], ["a", None, None, None], ["a", "held", None, "held"]),
    ],
)
def test_a_value_that_is_gone_gets_the_code_and_an_unknown_one_does_not(code, original, released, expected):
    column = Column("x", Kind.NOMINAL, suppressed=code)
    before, after = table_of(column, original), table_of(column, released)
    marked, counts = mark_suppressed(after, before, np.arange(4))
    assert marked.frame["x"].to_list() == expected
    assert marked.frame["x"].dtype == after.frame["x"].dtype
    assert counts == {"x": 2}
    assert marked.missing("x").tolist() == [False, True, True, True]  # the code is a missing code


def test_records_are_found_by_where_they_come_from():
    column = Column("x", Kind.CONTINUOUS, suppressed=-1)
    before = table_of(column, [None, 10, 20])
    after = table_of(column, [None, None], schema={"x": pl.Int64})
    marked, counts = mark_suppressed(after, before, np.array([0, 2]))
    assert marked.frame["x"].to_list() == [None, -1]
    assert counts == {"x": 1}


@pytest.mark.parametrize("values", [["cook", "smith", None], [1, 2, None]])
def test_a_generalised_column_keeps_its_cells_missing_so_that_no_class_is_split(values):
    kind = Kind.NOMINAL if isinstance(values[0], str) else Kind.CONTINUOUS
    column = Column("x", kind, suppressed="withheld" if kind is Kind.NOMINAL else -9)
    before = table_of(column, values)
    rows = np.array([True, False, False])
    after = to_missing(to_wildcard(before, "x", ~rows), "x", rows)
    marked, counts = mark_suppressed(after, before, np.arange(3))
    assert counts == {}
    assert marked.frame["x"].equals(after.frame["x"])


def test_a_mark_on_a_recoded_column_is_released(tmp_path):
    """Three cells are suppressed beside two that were unknown: alike in the file as in the count of people."""
    (tmp_path / "h.csv").write_text("cook;food;*\nbaker;food;*\nsmith;metal;*\n")
    jobs = ["cook", "baker"] * 5 + ["smith"] + [""] * 2
    (tmp_path / "in.csv").write_text("job,n\n" + "".join(f"{job},{i}\n" for i, job in enumerate(jobs)))
    plan = Plan.from_dict(
        tomllib.loads("""
            requirements = ["k >= 3"]
            data = {path = "in.csv"}
            columns.job = {kind = "nominal", role = "key", suppressed = "withheld", hierarchy = "h"}
            columns.n = {kind = "continuous", role = "other"}
            resources.h = {path = "h.csv", holds = "hierarchy"}
            output = {path = "out.csv"}
            [[steps]]
            method = "recoding"
            columns = ["job"]
            parameters = {levels = 1}
            [[steps]]
            method = "local-suppression"
            columns = ["job"]
            parameters = {k = 3}
        """),
        folder=tmp_path,
    )
    outcome = carry_out(plan, Run(seed=LARGE + 1))
    assert outcome.is_met
    write_release(decide(outcome, subject="it", unjudged=True), Destination(plan))
    shown = pl.read_csv(tmp_path / "out.csv")["job"].value_counts(sort=True)
    assert shown.rows() == [("{cook|baker}", 10), (None, 3)]


def test_a_code_the_values_cannot_hold_is_refused():
    column = Column("x", Kind.CONTINUOUS, suppressed="gone")
    with pytest.raises(PlanError, match="a code its values can hold"):
        mark_suppressed(table_of(column, [None, 2]), table_of(column, [1, 2]), np.arange(2))


# ------------------------------------------------------------------------------------------ pseudonyms


def people(ids):
    return table_of(Column("pid", Kind.CONTINUOUS, Role.PERSON, pseudonym="person", missing=(-9,)), ids)


def test_the_same_person_has_the_same_name_in_every_table_of_a_run():
    run = Run(seed=LARGE + 5)
    first, second = (
        rename_people(people([1, 2, 3]), run.randomness.secret),
        rename_people(people([3, 1, 1]), run.randomness.secret),
    )
    assert first.frame["pid"][2] == second.frame["pid"][0]
    assert second.frame["pid"][1] == second.frame["pid"][2] == first.frame["pid"][0]
    assert first.schema["pid"].kind is Kind.NOMINAL
    other = rename_people(people([1, 2, 3]), Run(seed=LARGE + 6).randomness.secret)
    assert not set(first.frame["pid"]) & set(other.frame["pid"])


def test_a_missing_number_stays_missing():
    named = rename_people(people([1, -9, None]), Run(seed=LARGE + 5).randomness.secret)
    assert named.frame["pid"].is_null().to_list() == [False, True, True]


def test_what_no_longer_finds_its_other_half_is_counted():
    tables = {"persons": people([1, 2]), "stays": people([1, 1, 3])}
    assert dangling(tables) == {
        "`persons.pid` not in `stays.pid`": 1,
        "`stays.pid` not in `persons.pid`": 1,
    }


# ------------------------------------------------------------------------------------------ whole plans

PLAN = """
[tables.persons.data]
path = "persons.csv"
[tables.persons.columns.pid]
kind = "nominal"
role = "identifier"
pseudonym = "person"
[tables.persons.columns.age]
kind = "continuous"
role = "key"
integer = true
[[tables.persons.steps]]
method = "correlated-noise"
columns = ["age"]
parameters = { ratio = 0.2 }
[tables.persons.output]
path = "persons.out.csv"
repair = true

[tables.stays.data]
path = "stays.csv"
[tables.stays.columns.patient]
kind = "nominal"
role = "person"
pseudonym = "person"
[tables.stays.columns.days]
kind = "continuous"
role = "sensitive"
[[tables.stays.steps]]
method = "rank-swapping"
columns = ["days"]
[tables.stays.output]
path = "stays.out.csv"
"""


@pytest.fixture
def hospital(tmp_path):
    rng = np.random.default_rng(1)
    pl.DataFrame({"pid": range(100, 160), "age": rng.integers(0, 90, 60)}).write_csv(tmp_path / "persons.csv")
    patients = rng.integers(100, 160, 200)
    pl.DataFrame({"patient": patients, "days": rng.integers(1, 30, 200)}).write_csv(tmp_path / "stays.csv")
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


@pytest.mark.parametrize("other", ["persons.out.csv", "./persons.out.csv", "x/../persons.out.csv"])
def test_two_tables_are_not_written_over_each_other(hospital, other):
    (hospital / "x").mkdir()
    (hospital / "plan.toml").write_text(PLAN.replace("stays.out.csv", other))
    with pytest.raises(PlanError, match="two tables have the same `path`"):
        Plan.read(hospital / "plan.toml")


def joined(persons, stays, here, there):
    """Number of stays of each person, however the persons are called."""
    return sorted(stays.join(persons, left_on=there, right_on=here).group_by(there).len()["len"])


def released(said, folder, *, raises=None, match=None, overwrite=False):
    """Carry out what a plan says and write it, which may be refused; what was written."""
    plan, run = Plan.from_dict(said, folder=folder), Run(seed=LARGE + 3)
    outcome, destination = carry_out(plan, run), Destination(plan, overwrite=overwrite)
    if raises is None:
        return write_release(decide(outcome, subject="it", unjudged=True), destination)
    with pytest.raises(raises, match=match):
        write_release(decide(outcome, subject="it", unjudged=True), destination)
    return None


def test_two_tables_stay_linked(hospital):
    plan = Plan.read(hospital / "plan.toml")
    run = Run(seed=LARGE + 9)
    written = write_release(decide(carry_out(plan, run), subject="it", unjudged=True), Destination(plan))
    assert [path.name for path in written] == ["persons.out.csv", "stays.out.csv", "tables.private.json"]
    persons, stays = pl.read_csv(written[0]), pl.read_csv(written[1])
    before = joined(
        pl.read_csv(hospital / "persons.csv"), pl.read_csv(hospital / "stays.csv"), "pid", "patient"
    )
    assert joined(persons, stays, "pid", "patient") == before
    assert persons["pid"].str.contains("^[0-9a-f]{32}$").all()
    assert persons["age"].dtype == pl.Int64  # repaired to whole numbers
    trail = json.loads(written[2].read_text())
    assert trail["seed"] == f"{LARGE + 9:032x}"
    assert set(trail["tables"]) == {"persons", "stays"}
    assert written[2].stat().st_mode & 0o077 == 0
    key = trail["seed"]
    assert key not in written[0].read_text() + written[1].read_text()


def test_nothing_is_written_unless_all_may_be(hospital):
    text = (hospital / "plan.toml").read_text()
    said = tomllib.loads(text)
    said["tables"]["stays"]["requirements"] = ["permutation-distance >= 1"]
    released(said, hospital, raises=RequirementError)
    (hospital / "stays.out.csv").write_text("old")
    del said["tables"]["stays"]["requirements"]
    released(said, hospital, raises=WriteError, match="exists already")
    assert not (hospital / "persons.out.csv").exists()


def test_a_codebook_in_the_way_leaves_no_table_half_released(tmp_path):
    codes = [f"{letter}{number}" for letter in "abc" for number in range(20)] * 10
    said = {"tables": {}}
    for name in "ab":
        pl.DataFrame({"code": codes}).write_csv(tmp_path / f"{name}.csv")
        said["tables"][name] = {
            "data": {"path": f"{name}.csv"},
            "columns": {"code": {"kind": "nominal", "role": "key"}},
            "steps": [{"method": "recoding", "columns": ["code"], "parameters": {"levels": 1}}],
            "output": {"path": f"{name}.out.csv"},
        }
    (tmp_path / "b.out.labels.csv").write_text("")
    released(said, tmp_path, raises=WriteError, match="exists already")
    assert {path.name for path in tmp_path.iterdir()} == {"a.csv", "b.csv", "b.out.labels.csv"}
    (tmp_path / "b.out.labels.csv").unlink()
    names = [path.name for path in released(said, tmp_path)]
    assert "b.out.labels.csv" in names  # there is one to be in the way of


def test_minus_zero_is_zero_for_the_count_of_people_and_in_the_file(tmp_path):
    (tmp_path / "in.csv").write_text("v\n0.0\n-0.0\n-0.0\n5.5\n5.5\n")
    said = {
        "requirements": ["k >= 2"],
        "data": {"path": "in.csv"},
        "columns": {"v": {"kind": "continuous", "role": "key"}},
        "output": {"path": "out.csv"},
    }
    released(said, tmp_path)
    assert sorted((tmp_path / "out.csv").read_text().split()) == ["0.0", "0.0", "0.0", "5.5", "5.5", "v"]


def test_a_plan_of_tables_says_itself_and_gathers_its_faults(hospital):
    plan = Plan.read(hospital / "plan.toml")
    assert Plan.from_dict(tomllib.loads(plan.to_toml())) == plan
    said = plan.to_dict()
    said["tables"]["persons"]["columns"]["age"]["kind"] = "number"
    said["tables"]["stays"]["steps"][0]["method"] = "rank-swap"
    said["steps"] = []
    said["tables"]["stays"]["output"]["path"] = "persons.out.csv"
    with pytest.raises(PlanError) as caught:
        Plan.from_dict(said)
    text = str(caught.value)
    assert "persons: column `age`" in text
    assert "stays: step 1" in text
    assert "got outside: `steps`" in text


def test_a_raw_number_of_a_person_is_warned_of(hospital):
    said = Plan.read(hospital / "plan.toml").to_dict()
    del said["tables"]["stays"]["columns"]["patient"]["pseudonym"]
    del said["tables"]["persons"]["columns"]["pid"]["pseudonym"]
    plan = Plan.from_dict(said)
    assert any("give it a `pseudonym`" in warning for warning in plan.warnings())
    assert plan.tables["persons"].left_out == ("pid",)


def test_a_plan_from_table_to_table_of_a_database(hospital):
    """What is read from a database and written to it again never touches the original."""
    from sfumato import io

    source, target = (f"sqlite:{hospital / 'clinic.db'}?table={name}" for name in ("stays", "released"))
    io.write(pl.read_csv(hospital / "stays.csv"), source)
    said = Plan.read(hospital / "plan.toml").to_dict()["tables"]["stays"]
    said["data"] = {"path": "sqlite:clinic.db?table=stays"}
    said["output"] = {"path": "sqlite:clinic.db?table=released"}
    written = released(said, hospital)
    assert written[-1] == hospital / "release.private.json"
    after = io.read(target)
    assert sorted(after["days"]) == sorted(pl.read_csv(hospital / "stays.csv")["days"])
    assert io.read(source).equals(pl.read_csv(hospital / "stays.csv"))
    said["output"] = {"path": "sqlite:clinic.db?table=stays"}
    released(
        said, hospital, raises=WriteError, match="the table `stays` of .* is an original", overwrite=True
    )


# What no record shows is forgotten ------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from([None, math.nan, 1.0, 2.0, 7.0, 8.0, 9.0, -50.0]), min_size=1, max_size=8),
    st.sets(st.sampled_from([7, 8, 9])),
    st.sampled_from([None, (-99.0, -1.0)]),
)
def test_only_codes_and_labels_that_records_have_are_declared(values, codes, span):
    labels = tuple((value, f"label {value}") for value in (1, 2, 7, 8, 9, -50))
    column = Column("x", Kind.CONTINUOUS, missing=tuple(codes), missing_range=span, labels=labels)
    table = Table(pl.DataFrame({"x": values}, schema={"x": pl.Float64}), Schema((column,)))
    left = forget_unshown(table)
    told = left.schema["x"]
    assert set(told.missing) == {code for code in codes if code in values}
    assert told.missing_range == (span if -50.0 in values else None)
    assert {value for value, _ in told.labels} == {value for value, _ in labels if value in values}
    assert (left.missing("x") == table.missing("x")).all()


def test_labels_of_ranges_are_those_of_their_ends():
    column = Column("x", Kind.ORDINAL, labels=((1, "low"), (2, "middle"), (3, "high"), (4, "never")))
    frame = pl.DataFrame({"x": intervals([1, 1], [3, 1], name="x")})
    told = forget_unshown(Table(frame, Schema((column,)))).schema["x"]
    assert told.labels == ((1, "low"), (3, "high"))

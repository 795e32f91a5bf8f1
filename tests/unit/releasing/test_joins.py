"""Tables that leave together: worked out by hand."""

import numpy as np
import polars as pl
import pytest

from seeds import LARGE
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.linked_tables import joins_of
from sfumato.releasing.outcome import TableOutcome
from sfumato.risk.anonymity import KAnonymity
from sfumato.risk.linkage import DistanceLinkage


def part(number, key, **values):
    columns = Column(number, Kind.NOMINAL, Role.PERSON, pseudonym="p"), Column(key, Kind.NOMINAL, Role.KEY)
    table = Table(pl.DataFrame(values), Schema(columns))
    release = Release.of(table, source_rows=np.arange(len(table)))
    return TableOutcome(Plan(schema=table.schema), table, release, (), ())


PEOPLE = part("who", "sex", who=[1, 2, 3, 4], sex=list("ffmm"))
STAYS = part("patient", "ward", patient=[1, 2, 3, 4, 4], ward=list("AABBC"))


def test_a_person_is_all_that_the_tables_say_of_them():
    (join,) = joins_of({"people": PEOPLE, "stays": STAYS})
    assert (join.number, join.places) == ("p", (("people", "who"), ("stays", "patient")))
    evidence = join.evidence("default")
    assert evidence.known_columns == ("people.sex", "stays.ward", "table of the record")
    # Alike are 1 and 2; 3 and 4 differ by a stay, though each table alone has two of a kind, or nearly.
    score = join.score(KAnonymity(), "default", Run(seed=1))
    assert score.value == 1
    assert score.by_record.tolist() == [2, 2, 1, 1, 2, 2, 1, 1, 1]


def test_a_measure_that_sees_single_records_is_refused():
    (join,) = joins_of({"people": PEOPLE, "stays": STAYS})
    assert join.score(DistanceLinkage(), "default", Run(seed=1)).status is Status.REFUSED


def test_a_number_in_one_table_joins_nothing():
    assert list(joins_of({"people": PEOPLE})) == []


def plan_of(folder, tables, **columns):
    """A plan of tables, k >= 2 in each; of each its frame, and what is declared of its columns."""
    said, folder = {}, folder / "-".join(columns)
    folder.mkdir(exist_ok=True)
    for name, frame in tables.items():
        frame.write_csv(folder / f"{name}.csv")
        declared = {each: columns.get(each, {"kind": "nominal", "role": "key"}) for each in frame.columns}
        said[name] = {
            "requirements": ["k >= 2"],
            "data": {"path": f"{name}.csv"},
            "columns": declared,
            "output": {"path": f"out/{name}.csv"},
        }
    return Plan.from_dict({"tables": said}, folder=folder)


def fewest_alike(people, stays):
    """Brute force: of whom all that both tables say, as sets, is said of the fewest."""
    said = {}
    for table in (people, stays):
        for number, *rest in table.rows():
            if number is not None:
                said.setdefault(float(number), set()).add((*table.columns[1:], *rest))
    return min(sum(other == each for other in said.values()) for each in said.values())


BARE = {"kind": "nominal", "role": "person"}


@pytest.mark.parametrize("seed", range(6))
def test_numbers_of_persons_join_whatever_their_columns_are_called(tmp_path, seed):
    """Numbers that leave as they are, one a text with a decimal: as if the columns had one name."""
    rng = np.random.default_rng(seed)
    people = pl.DataFrame({"pid": range(12), "sex": rng.choice(["f", "m"], 12)})
    stays = pl.DataFrame({"patient": rng.integers(0, 12, 20), "ward": rng.choice(["A", "B"], 20)})
    expected = fewest_alike(people, stays)
    as_text = stays.with_columns(pl.col("patient").cast(pl.Float64))
    same = plan_of(tmp_path, {"people": people.rename({"pid": "patient"}), "stays": stays}, patient=BARE)
    other = plan_of(tmp_path, {"people": people, "stays": as_text}, pid=BARE, patient=BARE)
    for plan, number in ((same, "patient"), (other, "pid = patient")):
        outcome = carry_out(plan, Run(seed=LARGE))
        for each in outcome.parts.values():
            joined = each.judgements[-1]
            assert joined.score.value == expected
            assert f"all tables joined by `{number}`" in joined.scenario


@pytest.mark.parametrize(("patients", "is_told"), [([1, 2, 3, 4], True), ([5, 6, 7, 8], False)])
def test_numbers_under_different_pseudonyms_do_not_join_and_that_is_told(tmp_path, patients, is_told):
    people = pl.DataFrame({"pid": [1, 2, 3, 4], "sex": list("ffmm")})
    stays = pl.DataFrame({"patient": patients, "ward": list("ABAB")})
    declared = {"pid": BARE | {"pseudonym": "p"}, "patient": BARE | {"pseudonym": "q"}}
    outcome = carry_out(plan_of(tmp_path, {"people": people, "stays": stays}, **declared), Run(seed=LARGE))
    assert [len(each.judgements) for each in outcome.parts.values()] == [1, 1]
    notes = " ".join(note for each in outcome.parts.values() for note in each.notes)
    assert ("`people.pid` and `stays.patient` give the same people" in notes) is is_told


def test_a_table_with_two_numbers_of_persons_is_seen_by_each(tmp_path):
    """Everyone has a mother, and two of four are one: by what is said of their children they differ."""
    number = {"kind": "nominal", "pseudonym": "p"}
    people = pl.DataFrame(
        {"who": [1, 2, 3, 4], "mother": [9, 9, 1, 2], "sex": list("ffmm"), "place": list("AAXY")}
    )
    plan = plan_of(
        tmp_path, {"people": people}, who=number | {"role": "person"}, mother=number | {"role": "other"}
    )
    (joined,) = [
        each
        for part in carry_out(plan, Run(seed=LARGE)).parts.values()
        for each in part.judgements
        if "joined" in each.scenario
    ]
    assert joined.score.value == 1


def test_who_has_no_number_is_nobody_elses(tmp_path):
    """−9 says that the number is missing: it makes no person of those who have none."""
    missing = BARE | {"missing": [-9], "pseudonym": "p"}
    people = pl.DataFrame({"pid": [1, 2, 3, -9], "sex": list("ffmm")})
    stays = pl.DataFrame({"patient": [1, 2, -9, -9], "ward": list("AABB")})
    outcome = carry_out(
        plan_of(tmp_path, {"people": people, "stays": stays}, pid=missing, patient=missing), Run(seed=LARGE)
    )
    for each in outcome.parts.values():
        assert each.judgements[-1].score.value == 2


def test_each_requirement_on_a_risk_is_judged_on_the_joined_tables_too(tmp_path):
    """Each table alone has two of a kind; together they tell all four people apart, and nothing may leave."""
    pl.DataFrame({"who": [1, 2, 3, 4], "sex": list("ffmm")}).write_csv(tmp_path / "people.csv")
    pl.DataFrame({"who": [1, 2, 3, 4], "ward": list("ABAB")}).write_csv(tmp_path / "stays.csv")
    tables = {
        name: {
            "requirements": ["k >= 2"],
            "data": {"path": f"{name}.csv"},
            "columns": {
                "who": {"kind": "nominal", "role": "person", "pseudonym": "p"},
                key: {"kind": "nominal", "role": "key"},
            },
            "output": {"path": f"out/{name}.csv"},
        }
        for name, key in (("people", "sex"), ("stays", "ward"))
    }
    outcome = carry_out(Plan.from_dict({"tables": tables}, folder=tmp_path), Run(seed=LARGE))
    for each in outcome.parts.values():
        alone, joined = each.judgements
        assert (alone.score.value, joined.score.value) == (2, 1)
        assert "all tables joined by `p`" in joined.scenario
    assert not outcome.is_met


# Side by side ---------------------------------------------------------------------------------------------


def membership_of(folder, people, stays, *, control=0.4, steps=()):
    """The scores of membership: of each table alone, and of both side by side."""
    said = {}
    for name, frame in {"people": people, "stays": stays}.items():
        frame.write_csv(folder / f"{name}.csv")
        keys = {each: {"kind": "nominal", "role": "key"} for each in frame.columns[1:]}
        said[name] = {
            "requirements": ["membership(test=distance) <= 0.5 at 95%"],
            "data": {"path": f"{name}.csv", **({"control": control} if control else {})},
            "columns": {frame.columns[0]: {"kind": "nominal", "role": "person", "pseudonym": "p"}, **keys},
            "steps": list(steps) if name == "stays" else [],
            "output": {"path": f"out/{name}.csv"},
        }
    outcome = carry_out(Plan.from_dict({"tables": said}, folder=folder), Run(seed=LARGE))
    return {
        f"{name}: {judged.scenario}": judged.score
        for name, part in outcome.parts.items()
        for judged in part.judgements
    }


def two_tables(rng, n=300):
    """Six questions with two answers in each table: alone they tell few people apart, together nearly all."""
    answers = {f"{table}{i}": rng.choice(["y", "n"], n) for table in "qr" for i in range(6)}
    everybody = pl.DataFrame({"who": range(n), **answers})
    stays = everybody.select(pl.col("who").alias("patient"), *(f"r{i}" for i in range(6)))
    return everybody.select("who", *(f"q{i}" for i in range(6))), stays.sample(n, shuffle=True, seed=1)


def test_a_copy_that_only_both_tables_together_show_is_found(tmp_path):
    scores = membership_of(tmp_path, *two_tables(np.random.default_rng(3)))
    alone = [score.value for where, score in scores.items() if "joined" not in where]
    joined = [score.value for where, score in scores.items() if "joined by `p`" in where]
    assert (len(alone), len(joined)) == (2, 2)
    assert max(alone) < 0.4
    assert min(joined) > 0.8


def test_tables_whose_links_mean_nothing_tell_no_more_together(tmp_path):
    steps = [{"method": "pram", "columns": [f"r{i}" for i in range(6)], "parameters": {"retain": 0.5}}]
    scores = membership_of(tmp_path, *two_tables(np.random.default_rng(3)), steps=steps)
    assert max(score.value for where, score in scores.items() if "joined" in where) < 0.5


def test_without_a_control_group_nothing_is_said_of_both(tmp_path):
    scores = membership_of(tmp_path, *two_tables(np.random.default_rng(3)), control=0)
    assert {score.status for score in scores.values()} == {Status.REFUSED}


def test_records_of_a_person_stand_beside_each_other():
    (join,) = joins_of({"people": PEOPLE, "stays": STAYS})
    evidence = join.rehearsed_evidence("default", Run(seed=1))  # nobody sits out
    rows = evidence.original.frame.rows()
    assert rows == [("1", "f", "A"), ("2", "f", "A"), ("3", "m", "B"), ("4", "m", "B"), ("4", "m", "C")]
    assert evidence.control is None

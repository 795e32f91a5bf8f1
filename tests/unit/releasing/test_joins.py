"""Tables that leave together: worked out by hand."""

import numpy as np
import polars as pl

from seeds import LARGE
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.joins import joins_of
from sfumato.releasing.outcome import Part
from sfumato.risk.anonymity import KAnonymity
from sfumato.risk.linkage import DistanceLinkage


def part(number, key, **values):
    columns = Column(number, Kind.NOMINAL, Role.PERSON, pseudonym="p"), Column(key, Kind.NOMINAL, Role.KEY)
    table = Table(pl.DataFrame(values), Schema(columns))
    release = Release.of(table, source_rows=np.arange(len(table)))
    return Part(Plan(schema=table.schema), table, release, (), ())


PEOPLE = part("who", "sex", who=[1, 2, 3, 4], sex=list("ffmm"))
STAYS = part("patient", "ward", patient=[1, 2, 3, 4, 4], ward=list("AABBC"))


def test_a_person_is_all_that_the_tables_say_of_them():
    (join,) = joins_of({"people": PEOPLE, "stays": STAYS})
    assert (join.number, join.columns) == ("p", {"people": "who", "stays": "patient"})
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
    assert not outcome.met

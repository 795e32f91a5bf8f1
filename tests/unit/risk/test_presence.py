"""δ-presence and (p,k)-angelisation by hand."""

import numpy as np
import polars as pl
import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods import Angelisation
from sfumato.risk.presence import DeltaPresence, PKAngelisation

NUMBER, NAME = Kind.CONTINUOUS, Kind.NOMINAL


def table_of(columns, **roles):
    frame = pl.DataFrame(columns, strict=False)
    numeric = {
        name for name in frame.columns if frame.schema[name].is_nested() or frame.schema[name].is_numeric()
    }
    return Table(
        frame,
        Schema(
            tuple(
                Column(name, NUMBER if name in numeric else NAME, roles.get(name, Role.KEY))
                for name in frame.columns
            )
        ),
    )


def score(measure, table, **resources):
    return measure.score(Evidence(table, resources=resources), Run(seed=1))


# ------------------------------------------------------------------------------------------------ δ-presence


def test_presence_by_hand():
    """Of three of age 30 two are in, of the one of age 40 all, of the two of age 50 none."""
    people = table_of({"age": [30, 30, 30, 40, 50, 50]})
    found = score(DeltaPresence(population="p"), table_of({"age": [30, 40, 30]}), p=people)
    assert found.value == 1
    assert found.by_record.tolist() == pytest.approx([2 / 3, 1, 2 / 3])
    assert found.details == {"delta_min": 0.0, "surely_absent": 2, "people": 6, "classes": 2}


def test_coarser_keys_hide_presence():
    people = table_of({"age": [30, 30, 30, 40, 50, 50]})
    released = table_of({"age": intervals([30, 30, 30], [50, 50, 50])})
    found = score(DeltaPresence(population="p"), released, p=people)
    assert found.value == 0.5
    assert found.details["delta_min"] == 0.5
    assert found.details["surely_absent"] == 0


def test_classes_that_overlap_share_people():
    """All four of the population are in, two by each class: the score is less than that, and says so."""
    people = table_of({"age": [30, 31, 32, 33]})
    released = table_of({"age": intervals([30, 30, 29, 29], [35, 35, 34, 34])})
    found = score(DeltaPresence(population="p"), released, p=people)
    assert found.value == 0.5
    assert found.status is Status.APPROXIMATE
    assert found.interval == (0.5, 1.0)
    assert found.interval_is_proved
    apart = table_of({"age": intervals([30, 32], [31, 33])})
    assert score(DeltaPresence(population="p"), apart, p=people).status is Status.OK


def test_who_is_not_in_the_population_was_not_drawn_from_it():
    people = table_of({"age": [30, 30]})
    found = score(DeltaPresence(population="p"), table_of({"age": [30, 31]}), p=people)
    assert found.status is Status.NOT_ESTIMABLE
    assert "in classes of 1 record" in found.reason
    assert "needs a table of the population" in score(DeltaPresence(), people).reason
    empty = score(DeltaPresence(population="p"), people.take(np.arange(0)), p=people)
    assert empty.status is Status.NOT_ESTIMABLE


def test_several_records_of_one_person_are_one():
    people = table_of({"age": [30, 30, 30]})
    released = table_of({"age": [30, 30], "who": ["a", "a"]}, who=Role.PERSON)
    assert score(DeltaPresence(population="p"), released, p=people).value == pytest.approx(1 / 3)


# --------------------------------------------------------------------------------------------- (p,k)-angelisation

KEYS = {"age": [30, 30, 40, 40, 40], "batch": ["one", "one", "two", "two", "two"]}
VALUES = {"batch": ["one", "one", "two", "two", "two"], "illness": ["flu", "gout", "flu", "flu", "gout"]}


def in_two_tables(values):
    """The table with the keys as the release, that with the values as a resource."""
    keys = table_of(KEYS, batch=Role.OTHER)
    illness = Column("illness", NAME, Role.SENSITIVE)
    whole = Table(
        keys.frame.with_columns(illness=pl.Series(VALUES["illness"])), Schema((*keys.schema.columns, illness))
    )
    return Evidence(whole, Release.of(keys), resources={"values": table_of(values, illness=Role.SENSITIVE)})


def test_two_tables():
    evidence = in_two_tables(VALUES)
    found = PKAngelisation(bucket=["batch"], values="values").score(evidence, Run(seed=1))
    assert found.value == 2
    assert found.by_column == {"illness": 2}
    assert found.details == {
        "buckets": 2, "smallest_bucket": 2, "k": 2, "feasible": "yes", "classes": 2, "smallest_class": 2,
    }  # fmt: skip
    asked = PKAngelisation(bucket=["batch"], values="values", k=3).score(evidence, Run(seed=1))
    assert asked.details["feasible"] == "no"
    together = PKAngelisation(bucket=["batch"]).score(Evidence(evidence.original), Run(seed=1))
    assert together.value == 2


def test_the_release_of_angelisation_says_its_buckets_and_how_many_records_each_has():
    """Batches do not know of groups of keys: five people are alike in these, in whatever batches they are."""
    values = {"age": [20, 21, 22, 23, 24, 70, 71, 72, 73, 74], "illness": ["flu", "gout"] * 5}
    table = table_of(values, illness=Role.SENSITIVE).aimed_at(("age",))
    evidence = Evidence(table, Angelisation(l=2, k=5).apply(table, Run(seed=1)))
    found = PKAngelisation(k=2).score(evidence, Run(seed=1))
    assert found.value == 2
    assert found.details == {
        "buckets": 5, "smallest_bucket": 2, "k": 2, "feasible": "yes", "classes": 2, "smallest_class": 5,
    }  # fmt: skip
    assert PKAngelisation(k=3).score(evidence, Run(seed=1)).details["feasible"] == "no"


def test_the_poorest_bucket_counts_and_only_those_that_are_used():
    """Bucket three has one value only, but nobody is in it; the second illness of bucket two is missing."""
    evidence = in_two_tables(
        {"batch": ["two", "one", "one", "two", "three"], "illness": ["flu", "flu", "gout", None, "flu"]}
    )
    assert PKAngelisation(bucket=["batch"], values="values").score(evidence, Run(seed=1)).value == 2
    worst = PKAngelisation(bucket=["batch"], values="values", missing="worst").score(evidence, Run(seed=1))
    assert worst.value == 1
    assert worst.by_record is None  # nobody said which original is which


def test_what_is_lacking_is_said():
    whole = table_of({**KEYS, "illness": ["flu"] * 5}, batch=Role.OTHER, illness=Role.SENSITIVE)
    assert "`bucket`" in score(PKAngelisation(), whole).reason
    assert (
        "one lacks `batch`"
        in score(PKAngelisation(bucket=["batch"]), whole.select(["age", "illness"])).reason
    )
    measure = PKAngelisation(bucket=["batch"], values="values")
    assert "must name a table" in score(measure, whole).reason
    assert "sensitive column" in score(measure, whole, values=table_of({"batch": ["one"]})).reason
    few = table_of({"batch": ["one"], "illness": ["flu"]}, illness=Role.SENSITIVE)
    lost = score(measure, whole, values=few)
    assert lost.status is Status.NOT_ESTIMABLE
    assert "bucket of 3 records" in lost.reason

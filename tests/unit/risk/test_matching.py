"""Direct matching: by hand, against a look at every pair, and by its laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.matching import DirectMatching

SCHEMA = Schema(
    (
        Column("sex", Kind.NOMINAL, Role.KEY),
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("town", Kind.NOMINAL, Role.KEY),
    )
)


def score(original, protected, measure=None, *, schema=SCHEMA, rows=None, **scenario):
    known = Table(pl.DataFrame(original, schema=list(schema.names), orient="row"), schema)
    released = Table(pl.DataFrame(protected, schema=list(schema.names), orient="row"), schema)
    rows = np.arange(len(released)) if rows is None else np.array(rows)
    release = Release.of(released, source_rows=rows)
    evidence = release.against(known, scenario=Scenario(columns=("sex", "age", "town"), **scenario))
    return (measure or DirectMatching()).score(evidence, Run(seed=1))


PEOPLE = [("f", 30, "Ulm"), ("m", 30, "Ulm"), ("m", 40, "Ulm"), ("m", 40, "Ulm"), ("f", 50, "Bonn")]


def test_the_raw_file_by_hand():
    """Three people are alone with what is known of them, two share it: (1 + 1 + ½ + ½ + 1) / 5."""
    result = score(PEOPLE, PEOPLE)
    assert result.value == pytest.approx(0.8)
    assert result.by_record.tolist() == [1, 1, 0.5, 0.5, 1]
    assert result.baseline == pytest.approx(0.2)
    assert result.details["unique"] == result.details["unique_correct"] == 3
    assert result.status is Status.OK


def test_a_match_may_be_wrong():
    """The women of 30 and 50 change places in what is released: each matches one record, of the other."""
    turned = [PEOPLE[4], *PEOPLE[1:4], PEOPLE[0]]
    result = score(PEOPLE, turned)
    assert result.by_record.tolist() == [0, 1, 0.5, 0.5, 0]
    assert (result.details["unique"], result.details["unique_correct"]) == (3, 1)


def test_one_column_may_differ():
    """The first is released with age 31, so no released record agrees with her in all columns.

    In all but one, her own does, and the man of 30's; he is matched by his own and by both men of 40.
    """
    released = [("f", 31, "Ulm"), *PEOPLE[1:]]
    assert score(PEOPLE, released).by_record[0] == 0
    loose = score(PEOPLE, released, DirectMatching(differ=1))
    assert loose.by_record.tolist() == [
        0.5,
        pytest.approx(1 / 3),
        pytest.approx(1 / 3),
        pytest.approx(1 / 3),
        1,
    ]
    blocked = score(PEOPLE, released, DirectMatching(differ=1, block=("sex",)))
    assert blocked.by_record[0] == 1


def test_missing_agrees_with_missing_only():
    people = [("f", None, "Ulm"), ("f", 30, "Ulm"), (None, 30, "Ulm")]
    assert score(people, people).by_record.tolist() == [1, 1, 1]


def test_persons_are_found_by_any_of_their_records():
    schema = replace(SCHEMA, columns=(*SCHEMA.columns, Column("who", Kind.NOMINAL, Role.PERSON)))
    people = [("f", 30, "Ulm", "a"), ("f", 30, "Ulm", "a"), ("m", 30, "Ulm", "b"), ("m", 30, "Ulm", "c")]
    result = score(people, people, schema=schema)
    assert result.by_record.tolist() == [1, 1, 0.5, 0.5]  # both records that match her are hers
    assert result.value == pytest.approx(2 / 3)
    assert result.details["persons"] == 3


def test_a_block_that_cannot_be_compared_is_refused():
    schema = Schema((*SCHEMA.columns[:2], Column("town", Kind.SET, Role.KEY)))
    rows = [(sex, age, [town]) for sex, age, town in PEOPLE]
    result = score(rows, rows, DirectMatching(block=("town",)), schema=schema)
    assert result.status is Status.REFUSED
    assert "`town`" in result.reason


def test_records_that_do_not_map_are_refused():
    known = Table(pl.DataFrame(PEOPLE, schema=list(SCHEMA.names), orient="row"), SCHEMA)
    result = DirectMatching().score(Release.of(known).against(known), Run(seed=1))
    assert result.status is Status.REFUSED
    assert "do not map" in result.reason


def brute_force(original, released, rows, differ, blocked):
    """Look at every pair."""
    chances = []
    for number, person in enumerate(original):
        matches = []
        for place, record in enumerate(released):
            apart = [a != b for a, b in zip(person, record, strict=True)]
            if not any(apart[i] for i in blocked) and sum(apart) <= differ:
                matches.append(rows[place] == number)
        chances.append(sum(matches) / len(matches) if matches else 0.0)
    return chances


cell = st.tuples(
    st.sampled_from(["f", "m", None]), st.sampled_from([1.0, 2.0, None]), st.sampled_from(["Ulm", "Bonn"])
)


@given(
    people=st.lists(cell, min_size=1, max_size=12),
    seed=st.integers(0, 2**16),
    differ=st.integers(0, 3),
    blocked=st.sets(st.sampled_from([0, 1, 2])),
)
def test_against_a_look_at_every_pair(people, seed, differ, blocked):
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(people))[: rng.integers(1, len(people) + 1)]
    released = [tuple(people[rng.integers(len(people))][column] for column in range(3)) for _ in rows]
    measure = DirectMatching(differ=differ, block=[SCHEMA.names[i] for i in sorted(blocked)])
    result = score(people, released, measure, rows=rows, membership=False)
    expected = brute_force(people, released, rows, differ, blocked)
    np.testing.assert_allclose(result.by_record, expected)
    assert result.value == pytest.approx(np.mean(expected))

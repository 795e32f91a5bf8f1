"""Repeated uniques and told values against counts of rows, on mixed tables with persons and missing values."""

from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core.evidence import Evidence, PersonSampling
from sfumato.core.measure import Status
from sfumato.core.origin import Origin
from sfumato.core.release import Release
from sfumato.core.requirement import parse_measure
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table

SCHEMA = Schema(
    (
        Column("who", Kind.NOMINAL, Role.PERSON),
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("job", Kind.NOMINAL, Role.KEY),
        Column("ill", Kind.NOMINAL, Role.SENSITIVE),
    )
)
CELLS = st.tuples(
    st.sampled_from([0.5, 1.0, None]), st.sampled_from(["u", "v", None]), st.sampled_from(["p", "q", None])
)


@st.composite
def cases(draw):
    """Rows of the original with whose they are, rows of the release, and where these come from."""
    rows = draw(st.lists(CELLS, min_size=1, max_size=7))
    who = draw(st.lists(st.sampled_from("abcde"), min_size=len(rows), max_size=len(rows)))
    shown = draw(st.lists(st.one_of(st.sampled_from(rows), CELLS), min_size=1, max_size=9))
    sources = st.lists(st.integers(-1, len(rows) - 1), min_size=len(shown), max_size=len(shown))
    return rows, who, shown, draw(st.one_of(sources, st.sampled_from(["synthetic", "unknown"])))


def table_from(rows, names):
    types = {"who": pl.String, "age": pl.Float64, "job": pl.String, "ill": pl.String}
    frame = pl.DataFrame(rows, schema={name: types[name] for name in names}, orient="row")
    return Table(frame, Schema(tuple(SCHEMA[name] for name in names)))


def hit_persons(rows, who, shown):
    """Who is unique and repeated, who is told, and who could be."""
    own_rows, there = list(zip(rows, who, strict=True)), {row[:2] for row in shown}
    holders = {row[:2]: {own for each, own in own_rows if each[:2] == row[:2]} for row in rows}
    repeated = {own for row, own in own_rows if len(holders[row[:2]]) == 1 and row[:2] in there}
    asked = {own for row, own in own_rows if row[2] is not None}
    told = {
        own
        for row, own in own_rows
        if row[2] is not None and {each[2] for each in shown if each[:2] == row[:2]} == {row[2]}
    }
    return repeated, told, asked


def expected(hit, asked, who, shown, sources):
    share = len(hit) / len(asked)
    if sources == "synthetic":
        return share
    if sources == "unknown":
        released = -(-len(shown) * len({*who}) // len(who))
        return min(len(hit) / min(len(asked), released), 1)
    inside = {who[row] for row in sources if row >= 0} & asked
    return max(share, len(hit & inside) / len(inside)) if inside else share


@examples(60)
@given(cases())
def test_uniques_and_values_as_counts_of_rows_tell(case):
    rows, who, shown, sources = case
    original = table_from([(own, *row) for row, own in zip(rows, who, strict=True)], SCHEMA.names)
    released = table_from(shown, SCHEMA.names[1:])
    release = Release.of(released, source_rows=np.array(sources) if isinstance(sources, list) else None)
    if sources == "synthetic":
        release = replace(release, origin=Origin.synthetic())
    evidence = Evidence(original, release, sampling=PersonSampling(ignore_person_links=True))
    repeated, told, asked = hit_persons(rows, who, shown)
    for name, hit, those in (("replicated-uniques", repeated, {*who}), ("disco", told, asked)):
        score = parse_measure(name).score(evidence, Run(seed=1))
        if score.status is not Status.OK:
            assert not those or all(row[:2] == (None, None) for row in rows)
            continue
        assert score.value == pytest.approx(expected(hit, those, who, shown, sources))
        assert score.details["published"] <= score.value + 1e-12
        persons = {own for own, value in zip(who, score.by_record, strict=True) if value == 1}
        assert persons == hit


@examples(30)
@given(cases(), st.lists(CELLS, max_size=6))
def test_no_record_that_is_added_hides_a_unique(case, further):
    rows, who, shown, _ = case
    original = table_from([(own, *row) for row, own in zip(rows, who, strict=True)], SCHEMA.names)
    scores = []
    for made in (shown, shown + further):
        release = replace(Release.of(table_from(made, SCHEMA.names[1:])), origin=Origin.synthetic())
        scores.append(parse_measure("replicated-uniques").score(Evidence(original, release), Run(seed=1)))
    assert not scores[0].value > scores[1].value
    known = Counter(row[:2] for row in rows)
    if len({*who}) == len(rows) and scores[1].status is Status.OK:
        there = {row[:2] for row in shown + further}
        assert scores[1].details["uniques"] == sum(count == 1 for count in known.values())
        alone = sum(count == 1 and keys in there for keys, count in known.items())
        assert scores[1].value == pytest.approx(alone / len(rows))

"""A score in every group is that of the worst part, by plain loops over rows or by the plain measure on parts."""

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.origin import Origin
from sfumato.core.release import MAIN, Release
from sfumato.core.requirement import Requirement, parse_measure
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import RefusedError, UnreachableError
from sfumato.methods.global_recoding import GlobalRecoding
from sfumato.methods.local_suppression import LocalSuppression
from sfumato.methods.mondrian import Mondrian

RECORD = st.fixed_dictionaries(
    {
        "g": st.sampled_from(["a", "b", "c", None]),
        "h": st.sampled_from([1, 2, -9]),
        "x": st.sampled_from([1.0, 2.0, 3.0, None]),
        "y": st.sampled_from(["p", "q", None]),
        "s": st.sampled_from(["ill", "well"]),
        "who": st.integers(0, 6),
    }
)
TYPES = {"g": pl.String, "h": pl.Int64, "x": pl.Float64, "y": pl.String, "s": pl.String, "who": pl.Int64}


def table_of(rows, *, persons=False):
    columns = (
        Column("g", Kind.NOMINAL, Role.OTHER),
        Column("h", Kind.ORDINAL, Role.OTHER, missing=(-9,)),
        Column("x", Kind.CONTINUOUS, Role.KEY),
        Column("y", Kind.NOMINAL, Role.KEY),
        Column("s", Kind.NOMINAL, Role.SENSITIVE),
        Column("who", Kind.NOMINAL, Role.PERSON if persons else Role.OTHER),
    )
    return Table(pl.DataFrame(rows, schema=TYPES), Schema(columns))


def release_of(table, changed, places):
    """Some of the records in another order, with other keys, without the number of the person."""
    kept = table_of(changed, persons=False).select(["g", "h", "x", "y", "s"]).take(np.array(places, np.int64))
    return Release({MAIN: kept}, Origin.of_rows(np.array(places, np.int64)))


@st.composite
def releases(draw, least=1):
    rows = draw(st.lists(RECORD, min_size=least, max_size=14))
    keys = st.fixed_dictionaries({"x": st.sampled_from([1.0, 2.0, None]), "y": st.sampled_from(["p", "q"])})
    changed = [{**row, **draw(keys)} for row in rows]
    places = draw(st.permutations(range(len(rows))))
    places = places[: draw(st.integers(1, len(rows)))]
    return rows, changed, places


def groups_of(rows, columns, at_least=1):
    """The numbers of the rows of each group, small ones together."""
    found = defaultdict(list)
    for number, row in enumerate(rows):
        found[tuple(None if row[c] in (None, -9) else row[c] for c in columns)].append(number)
    big = [each for each in found.values() if len(each) >= at_least]
    small = [number for each in found.values() if len(each) < at_least for number in each]
    return big + ([small] if small else [])


def plain_k(rows, changed, places, group, *, persons):
    """How many persons at least are alike among the released records of a group."""
    classes = defaultdict(set)
    for place in places:
        if place in group:
            row = changed[place]
            classes[row["x"], row["y"]].add(rows[place]["who"] if persons else place)
    return min(map(len, classes.values()), default=math.nan)


@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize(
    ("text", "sorts", "at_least"),
    [
        ("g", [["g"]], 1),
        ("g+h of 4", [["g", "h"]], 4),
        ("group", [["x"], ["y"]], 1),
        ("group of 4", [["x"], ["y"]], 4),
    ],
)
@given(made=releases())
@examples(150)
def test_k_in_every_group_is_counted_by_plain_loops(persons, text, sorts, at_least, made):
    rows, changed, places = made
    table = table_of(rows, persons=persons)
    score = parse_measure(f"k in every {text}").score(
        Evidence(table, release_of(table, changed, places)), Run()
    )
    groups = [group for columns in sorts for group in groups_of(rows, columns, at_least)]
    counts = [plain_k(rows, changed, places, group, persons=persons) for group in groups]
    if any(map(math.isnan, counts)):
        assert score.status is Status.NOT_ESTIMABLE  # nobody of the group is left
    elif score.status is Status.OK:
        assert score.value <= min(counts)  # a further approach of the intruder may be worse
        assert "approach" in score.details or score.value == min(counts)
    else:
        assert not Requirement.parse(f"k >= 1 in every {text}").met_by(score)


@pytest.mark.parametrize(
    "name", ["dbrl", "cells-changed", "l", "suppressed-cells", "column-emd", "uniqueness"]
)
@given(made=releases())
@examples(100)
def test_the_worst_part_by_the_plain_measure(name, made):
    """Of a release whose records do not tell more together than in parts."""
    rows, changed, places = made
    table, measure = table_of(rows), parse_measure(name)
    score = parse_measure(f"{name} in every g+h").score(
        Evidence(table, release_of(table, changed, places)), Run()
    )
    plain = []
    for group in groups_of(rows, ["g", "h"]):
        part = table_of([rows[number] for number in group])
        there = [place for place in places if place in group]
        kept = table_of([changed[place] for place in there]).select(["g", "h", "x", "y", "s"])
        release = Release({MAIN: kept}, Origin.of_rows(np.array([group.index(p) for p in there], np.int64)))
        plain.append(measure.score(Evidence(part, release), Run()))
    if any(each.status not in (Status.OK, Status.APPROXIMATE) for each in plain):
        assert score.status not in (Status.OK, Status.APPROXIMATE)
        return
    worst = max(each.value for each in plain) if measure.better == "low" else min(e.value for e in plain)
    assert score.value == pytest.approx(worst) or not measure.is_better(score.value, worst)


@given(rows=st.lists(RECORD, min_size=1, max_size=14))
@examples(150)
def test_k_in_every_group_is_k_with_the_group_as_one_more_key(rows):
    table = table_of(rows)
    keys = table.schema.replace(replace(table.schema["g"], role=Role.KEY))
    with_group = parse_measure("k").score(Evidence(Table(table.frame, keys)), Run()).value
    alone = parse_measure("k in every g").score(Evidence(table), Run()).value
    pooled = parse_measure("k in every g of 4").score(Evidence(table), Run()).value
    assert alone == with_group
    assert alone <= pooled <= parse_measure("k").score(Evidence(table), Run()).value


@pytest.mark.parametrize("method", [Mondrian, LocalSuppression, GlobalRecoding])
@pytest.mark.parametrize("columns", [("x", "y"), ("g", "x", "y")])
@given(rows=st.lists(RECORD, min_size=4, max_size=24), at_least=st.sampled_from([1, 8]))
@examples(60)
def test_what_is_enforced_in_every_group_holds_by_plain_counting(method, columns, rows, at_least):
    table = table_of(rows)
    also = f"k >= 2 in every g{f' of {at_least}' if at_least > 1 else ''}"
    try:
        release = method(k=1, also=also).apply(table.aimed_at(columns), Run())
    except (UnreachableError, RefusedError):
        return
    shown = release.table.frame.select(columns).rows()
    sources = release.source_rows.tolist()
    for group in groups_of(rows, ["g"], at_least):
        classes = defaultdict(int)
        for source, cells in zip(sources, shown, strict=True):
            if source in group:
                classes[str(cells)] += 1
        assert min(classes.values()) >= 2

"""Exact matches against a look at every pair of records, on mixed tables with persons."""

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.exact_match import ExactMatch

GROUPS = {"a": "a", "b": "b", "c": "c", "ab": "ab", "ac": "ac"}
NODES = Nodes.of({label: list(members) for label, members in GROUPS.items()}, leaves=list("abc"))
EXACT = {"number": st.integers(0, 2), "set": st.sampled_from("abc"), "word": st.sampled_from("uv")}
SHOWN = {
    "number": st.one_of(
        st.integers(0, 2).map(lambda x: (x, x)),
        st.tuples(st.integers(0, 2), st.integers(0, 2)).map(lambda pair: tuple(sorted(pair))),
        st.just((None, None)),
        st.integers(0, 2).map(lambda x: (None, x)),
    ),
    "set": st.sampled_from([*GROUPS, "*"]),
    "word": st.sampled_from("uv"),
}
KINDS = {"number": Kind.CONTINUOUS, "set": Kind.NOMINAL, "word": Kind.NOMINAL}


def says_nothing(cell):
    return cell in {None, "*", (None, None)}


def covers(name, cell, value):
    """Whether a released cell may stand for a value, neither missing."""
    if name == "number":
        return (cell[0] is None or cell[0] <= value) and (cell[1] is None or value <= cell[1])
    return value in GROUPS[cell] if name == "set" else cell == value


def is_rival(person, row, own):
    """Whether a released row may be whose record it is, if a cell that says nothing hides only its like."""
    for name, value in person.items():
        if says_nothing(row[name]):
            if not says_nothing(own[name]):
                return False
        elif value is None or not covers(name, row[name], value):
            return False
    return True


@st.composite
def cases(draw):
    n = draw(st.integers(1, 7))
    names = draw(st.lists(st.sampled_from(sorted(EXACT)), min_size=1, max_size=3, unique=True))

    def column(cells):
        return draw(st.lists(st.one_of(cells, cells, cells, st.none()), min_size=n, max_size=n))

    known = {name: column(EXACT[name]) for name in names}
    shown = {name: column(SHOWN[name]) for name in names}
    for name in names:  # many as they were
        kept = draw(st.lists(st.booleans(), min_size=n, max_size=n))
        for i in np.flatnonzero(kept):
            value = known[name][i]
            shown[name][i] = (value, value) if name == "number" and value is not None else value
    persons = draw(st.one_of(st.just(list(range(n))), st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    return known, shown, persons


def tables(known, shown, persons):
    """The original, and a release that does not tell whose the records are."""
    keys = tuple(Column(name, KINDS[name], Role.KEY) for name in known)
    original = [pl.Series("who", persons)]
    released = []
    for name, cells in shown.items():
        dtype = pl.Int64 if name == "number" else pl.String
        original.append(pl.Series(name, known[name], dtype=dtype))
        if name == "number":
            pairs = [(None, None) if cell is None else cell for cell in cells]
            lo, hi = (pl.Series([pair[side] for pair in pairs], dtype=dtype) for side in (0, 1))
            released.append(intervals(lo, hi, missing=[cell is None for cell in cells], name=name))
        else:
            released.append(pl.Series(name, cells, dtype=NODES.dtype if name == "set" else dtype))
    schema = Schema((Column("who", Kind.NOMINAL, Role.PERSON), *keys))
    nodes = {"set": NODES} if "set" in shown else {}
    return Table(pl.DataFrame(original), schema), Table(pl.DataFrame(released), Schema(keys), nodes=nodes)


@given(cases())
@examples(300)
def test_found_is_who_is_covered_by_their_own_alone(case):
    known, shown, persons = case
    original, released = tables(known, shown, persons)
    n = len(persons)
    score = ExactMatch().score(
        Evidence(original, Release.of(released, source_rows=np.arange(n))), Run(seed=1)
    )
    assert score.status is Status.OK
    rows = [{name: shown[name][i] for name in shown} for i in range(n)]
    mine = [{name: known[name][i] for name in known} for i in range(n)]
    found = []
    for i in range(n):
        own = [j for j in range(n) if persons[j] == persons[i]]
        others = [j for j in range(n) if persons[j] != persons[i]]
        alone = [
            is_rival(mine[i], rows[j], rows[j])
            and not any(is_rival(mine[i], rows[k], rows[j]) for k in others)
            for j in own
        ]
        found.append(any(alone))
    people = {
        person: any(f for f, p in zip(found, persons, strict=True) if p == person) for person in persons
    }
    assert score.value == np.mean(list(people.values()))
    np.testing.assert_array_equal(score.by_record.astype(bool), found)

"""Recoding like another release, against a search of all combinations done by hand."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.front import protect
from sfumato.methods.recode_like import RecodeLike

SETS = {"a": "a", "b": "b", "ab": "ab", "ac": "ac", "bd": "bd", "acd": "acd", "*": "abcd"}
NODES = Nodes.of(
    {label: list(members) for label, members in SETS.items() if label != "*"}, leaves=list("abcd")
)
SCHEMA = Schema((Column("age", Kind.CONTINUOUS, Role.KEY), Column("code", Kind.NOMINAL, Role.KEY)))

ENDS = st.tuples(st.integers(0, 6), st.integers(0, 4)).map(lambda pair: (pair[0], pair[0] + pair[1]))
RANGES = st.one_of(ENDS, st.sampled_from([(None, 3), (4, None), (None, None), "missing"]))
BOXES = st.lists(st.tuples(RANGES, st.sampled_from([*SETS, None])), min_size=1, max_size=12)
RECORDS = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(-1, 11)), st.sampled_from([*"abcde", None])), max_size=12
)


def like_of(boxes):
    lo, hi = zip(*((0, 0) if ends == "missing" else ends for ends, _ in boxes), strict=True)
    lo, hi = pl.Series(lo, dtype=pl.Int64), pl.Series(hi, dtype=pl.Int64)
    ages = intervals(lo, hi, missing=[ends == "missing" for ends, _ in boxes], name="age")
    codes = pl.Series("code", [label for _, label in boxes], dtype=NODES.dtype)
    return Table(pl.DataFrame([ages, codes]), SCHEMA, nodes={"code": NODES})


def covers(box, record, *, anything):
    ends, label = box
    age, code = record
    if ends == "missing":
        in_range = anything or age is None
    else:
        low, high = ends
        open_ = low is None and high is None
        in_range = open_ or (
            age is not None and (low is None or low <= age) and (high is None or age <= high)
        )
    if label is None:
        return in_range and (anything or code is None)
    return in_range and (label == "*" or (code is not None and code in SETS[label]))


def loss(box, boxes, *, anything):
    """The sum of the shares of the domains that a box spans."""
    ends, label = box
    stated = [end for other, _ in boxes if other != "missing" for end in other if end is not None]
    least, most = (min(stated), max(stated)) if stated else (0, 0)
    if ends == "missing":
        first = float(anything)
    elif ends == (None, None):
        first = 1.0
    else:
        low, high = least if ends[0] is None else ends[0], most if ends[1] is None else ends[1]
        first = (high - low) / ((most - least) or 1)
    second = float(anything) if label is None else 1.0 if label == "*" else (len(SETS[label]) - 1) / 3
    return first + second


@given(boxes=BOXES, records=RECORDS, policy=st.sampled_from(["category", "any"]))
def test_each_record_is_shown_as_the_narrowest_box_that_covers_it(boxes, records, policy):
    frame = pl.DataFrame(records, schema={"age": pl.Int64, "code": pl.String}, orient="row")
    like, anything = like_of(boxes), policy == "any"
    # Distinct combinations as the table has them: all ways to write a range that is the same are one.
    method = RecodeLike(like="first", missing=policy)
    shown = protect(Table(frame, SCHEMA), method, resources={"first": like}).table.frame
    if not records:
        assert shown.height == 0
        return
    for record, age, code in zip(records, shown["age"].to_list(), shown["code"].to_list(), strict=True):
        covering = [box for box in boxes if covers(box, record, anything=anything)]
        if not covering:
            assert (age, code) == ({"lo": None, "hi": None}, "*")
            continue
        expected = min(covering, key=lambda box: loss(box, boxes, anything=anything))  # the first of equals
        ends = None if expected[0] == "missing" else {"lo": expected[0][0], "hi": expected[0][1]}
        assert (age, code) == (ends, expected[1])


@given(boxes=BOXES, records=RECORDS)
def test_order_of_the_other_table_decides_only_between_equals(boxes, records):
    frame = pl.DataFrame(records, schema={"age": pl.Int64, "code": pl.String}, orient="row")
    losses = []
    for order in (boxes, boxes[::-1]):
        resources = {"first": like_of(order)}
        shown = protect(Table(frame, SCHEMA), RecodeLike(like="first"), resources=resources).table.frame
        losses.append(
            [
                loss(("missing" if age is None else (age["lo"], age["hi"]), code), boxes, anything=False)
                for age, code in shown.rows()
            ]
        )
    assert len(losses[0]) == len(records)
    assert losses[0] == pytest.approx(losses[1], abs=1e-12)

"""Iyengar's classification metric: groups of alike records by hand and one record at a time."""

from collections import Counter

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.utility.classification import ClassificationMetric
from toys import table_of

KINDS = {"key": (Kind.NOMINAL, Role.KEY), "y": (Kind.NOMINAL, Role.SENSITIVE)}


def score(original, protected, rows=None, **settings):
    return ClassificationMetric(**settings).score(
        Evidence(original, protected, source_rows=rows), Run(seed=1)
    )


def people(keys, answers):
    return table_of({"key": keys, "y": answers}, **KINDS)


def test_minorities_are_lost():
    # Of a, two are x and one is y; b is one y.
    table = people(list("aaab"), list("xxyy"))
    found = score(table, table, np.arange(4))
    assert found.value == found.baseline == 1 / 4
    assert found.by_column == {"y": 1 / 4}
    assert found.details["groups"] == 2


def test_a_coarser_release_loses_more_and_the_baseline_is_the_original():
    original = people(list("abcd"), list("xxyy"))
    found = score(original, people(["*"] * 4, list("xxyy")), np.arange(4))
    assert found.value == 1 / 2
    assert found.baseline == 0


def test_records_left_out_or_suppressed_are_lost():
    original = people(list("aabb"), list("xxyy"))
    assert score(original, people(list("aab"), list("xxy")), np.arange(3)).value == 1 / 4
    suppressed = people(["a", "a", "b", None], list("xxyy"))
    found = score(original, suppressed, np.arange(4))
    assert found.value == 1 / 4
    assert found.details["suppressed"] == 1


def test_wildcards_hold_back_and_ranges_are_keys():
    original = table_of({"key": [1, 2, 3, 4], "y": list("xyxy")}, key=Kind.CONTINUOUS, y=KINDS["y"])
    series = intervals(pl.Series([1, 1, 3, None]), pl.Series([2, 2, 3, None]), name="key")
    coarse = Table(original.frame.with_columns(series), original.schema)
    found = score(original, coarse, np.arange(4))
    assert found.value == 2 / 4  # one of the pair, and the wildcard
    words = people(list("abcd"), list("xyxy"))
    nodes = Nodes.of({"ab": ["a", "b"], "c": ["c"]}, leaves=list("abcd"))
    labels = pl.Series("key", ["ab", "ab", "c", "*"], dtype=nodes.dtype)
    named = Table(words.frame.with_columns(labels), words.schema, nodes={"key": nodes})
    assert score(words, named, np.arange(4)).value == 2 / 4


def test_the_class_is_that_of_the_original():
    original = people(list("aaa"), list("xxx"))
    changed = people(list("aaa"), list("yyx"))
    assert score(original, changed, np.arange(3)).value == 1  # most say y, and all are x
    assert score(original, changed).value == 1 / 3  # nobody knows who they were


def test_copies_share_a_record():
    original = people(list("ab"), list("xy"))
    copies = people(list("aac"), list("xyy"))
    # The first record has a copy that is right (x before y of equals) and one that is, too: a is x to both.
    assert score(original, copies, np.array([0, 0, 1])).value == 0
    half = people(list("acc"), list("xyy"))
    assert score(original, half, np.array([0, 0, 1])).value == (1 / 2 + 0) / 2


def test_weights_count_records():
    schema = Schema(
        (
            Column("key", Kind.NOMINAL, Role.KEY),
            Column("y", Kind.NOMINAL, Role.SENSITIVE),
            Column("w", Kind.CONTINUOUS, Role.WEIGHT),
        )
    )
    table = Table(pl.DataFrame({"key": ["a"] * 3, "y": list("xxy"), "w": [1.0, 1.0, 6.0]}), schema)
    assert score(table, table, np.arange(3)).value == 2 / 8  # y is the majority now


def test_records_without_a_class_are_left_out():
    table = people(list("aab"), ["x", None, None])
    assert score(table, table, np.arange(3)).value == 0
    nobody = people(list("ab"), pl.Series([None, None], dtype=pl.String))
    assert score(nobody, nobody, np.arange(2)).status is Status.NOT_ESTIMABLE


def test_refuses_without_classes():
    bare = table_of({"key": list("ab")}, key=KINDS["key"])
    assert "`target`" in score(bare, bare, np.arange(2)).reason
    numbers = table_of(
        {"key": list("ab"), "y": [1.0, 2.0]}, key=KINDS["key"], y=(Kind.CONTINUOUS, Role.SENSITIVE)
    )
    assert score(numbers, numbers, np.arange(2)).status is Status.REFUSED
    original = people(list("ab"), list("xy"))
    nodes = Nodes.of({"xy": ["x", "y"]}, leaves=list("xy"))
    labels = pl.Series("y", ["xy", "xy"], dtype=nodes.dtype)
    coarse = Table(original.frame.with_columns(labels), original.schema, nodes={"y": nodes})
    assert "exact classes" in score(original, coarse, np.arange(2)).reason


records = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]),
        st.sampled_from(["p", "q", None]),
        st.sampled_from(["x", "y", "z", None]),
    ),
    min_size=1,
    max_size=12,
)


@given(records, st.data())
def test_one_record_at_a_time(people_there, data):
    kept = data.draw(st.lists(st.integers(0, len(people_there) - 1), unique=True, min_size=1))
    kinds = {"one": (Kind.NOMINAL, Role.KEY), "two": (Kind.NOMINAL, Role.KEY), "y": KINDS["y"]}
    frame = pl.DataFrame(people_there, schema=dict.fromkeys(("one", "two", "y"), pl.String), orient="row")
    original = table_of({name: frame[name] for name in frame.columns}, **kinds)
    found = score(original, original.take(np.array(kept)), np.array(kept))
    votes = {}
    for row in kept:
        one, two, answer = people_there[row]
        if answer is not None and (one, two) != (None, None):
            votes.setdefault((one, two), Counter())[answer] += 1
    lost = []
    for row, (one, two, answer) in enumerate(people_there):
        if answer is None:
            continue
        group = votes.get((one, two), Counter())
        best = min((word for word in group if group[word] == max(group.values())), default=None)
        lost.append(row not in kept or (one, two) == (None, None) or answer != best)
    if lost:
        np.testing.assert_allclose(found.value, np.mean(lost))
    else:
        assert found.status is Status.NOT_ESTIMABLE

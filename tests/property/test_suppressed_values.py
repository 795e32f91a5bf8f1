"""Suppressed sensitive values hide nothing that those who are alike tell: by a table of all readings."""

from collections import Counter
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.evidence import Evidence
from sfumato.core.release import Release
from sfumato.core.requirement import parse_measure
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table

SCHEMA = Schema((Column("sex", Kind.NOMINAL, Role.KEY), Column("ill", Kind.NOMINAL, Role.SENSITIVE)))
#: What each label stands for.
COVERS = {"a": "a", "b": "b", "c": "c", "ab": "ab", "bc": "bc", "*": "abc"}


def labelled(table, labels):
    nodes = Nodes.of(
        {label: list(leaves) for label, leaves in COVERS.items() if label != "*"}, leaves=list("abc")
    )
    return table.with_nodes("ill", pl.Series("ill", labels, dtype=nodes.dtype), nodes)


def score(word, original, released):
    return (
        parse_measure(word).score(Evidence(original, Release.record_by_record(released)), Run(seed=1)).value
    )


def least(classes, cells, worth):
    """The smallest worth of a class under any reading of its cells, where a reading is one value for each."""
    found = []
    for each in set(classes):
        own = [COVERS[cell] for cell, of in zip(cells, classes, strict=True) if of == each]
        found.append(min(worth(list(values)) for values in product(*own)))
    return min(found)


def entropy(values):
    shares = np.array(list(Counter(values).values())) / len(values)
    return np.exp(-(shares * np.log(shares)).sum())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("mf"), st.sampled_from("abc")), min_size=1, max_size=7),
    st.lists(st.sampled_from(["exact", "set", "*", "none"]), min_size=7, max_size=7),
)
def test_diversity_is_no_more_than_exact_values_and_never_praised_for_what_is_hidden(people, hidden):
    """Above the worst of all readings, as no one reading of all cells need be the intruder's; and never above
    what the shown values give with every hidden cell taken for the most frequent that it may be."""
    classes, values = zip(*people, strict=True)
    original = Table(pl.DataFrame({"sex": classes, "ill": values}), SCHEMA)
    cells = []
    for value, how in zip(values, hidden, strict=False):
        sets = {"a": "ab", "b": "ab", "c": "bc"}
        cells.append({"exact": value, "set": sets[value], "*": "*", "none": "*"}[how])
    found = score("l", original, labelled(original, cells))
    filled = []
    for cell, of in zip(cells, classes, strict=True):
        shown = Counter(c for c, o in zip(cells, classes, strict=True) if o == of and len(COVERS[c]) == 1)
        able = [value for value in COVERS[cell] if shown[value]]
        filled.append(max(able, key=lambda value: shown[value]) if able and len(COVERS[cell]) > 1 else cell)
    guessed = min(len({v for v, o in zip(filled, classes, strict=True) if o == of}) for of in set(classes))
    assert least(classes, cells, lambda own: len(set(own))) <= found <= guessed


@pytest.mark.parametrize("word", ["l", "l(kind=entropy)", "p-sensitivity", "attribute-disclosure"])
@pytest.mark.parametrize("how", ["missing", "wildcard", "set"])
def test_a_few_suppressed_values_do_not_make_a_class_diverse(word, how):
    """All ten have the same illness; three are suppressed: who finds the class still learns it."""
    original = Table(pl.DataFrame({"sex": ["m"] * 10, "ill": ["b"] * 10}), SCHEMA)
    if how == "missing":
        released = original.with_values("ill", pl.Series(["b"] * 7 + [None] * 3))
    else:
        released = labelled(original, ["b"] * 7 + [{"wildcard": "*", "set": "ab"}[how]] * 3)
    assert score(word, original, released) == score(word, original, original)


def test_what_was_missing_in_the_original_is_a_value_of_its_own():
    original = Table(pl.DataFrame({"sex": ["m"] * 4, "ill": ["a", "a", None, None]}), SCHEMA)
    assert score("l", original, original) == 2


def test_amounts_that_are_suppressed():
    columns = (Column("sex", Kind.NOMINAL, Role.KEY), Column("pay", Kind.CONTINUOUS, Role.SENSITIVE))
    original = Table(pl.DataFrame({"sex": ["m"] * 6, "pay": [5.0] * 5 + [7.0]}), Schema(columns))
    lows, highs = [5.0] * 4 + [-np.inf, -np.inf], [5.0] * 4 + [np.inf, np.inf]
    released = original.with_values("pay", intervals(pl.Series(lows), pl.Series(highs), name="pay"))
    assert score("l", original, original) == 2
    assert score("l", original, released) == 1


def test_a_class_of_which_nothing_is_shown_counts_as_one_value():
    """Its two records have the same suppressed value, half of the four: what is not shown is not diverse."""
    original = Table(pl.DataFrame({"sex": ["m", "m", "f", "f"], "ill": list("abab")}), SCHEMA)
    released = labelled(original, ["*", "*", "a", "b"])
    assert score("attribute-disclosure", original, original) == 0
    assert score("attribute-disclosure", original, released) == 0.5
    assert score("l", original, original) == 2
    assert score("l", original, released) == 1

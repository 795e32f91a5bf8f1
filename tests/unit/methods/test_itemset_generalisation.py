from itertools import combinations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.cli import _exit_code
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, RefusedError, UnreachableError
from sfumato.front import protect
from sfumato.methods.itemset_generalisation import ItemsetGeneralisation

ITEMS = [*"abcdefgh"]
HIERARCHY = Hierarchy.from_levels(
    pl.DataFrame({"0": ITEMS, "1": [*"AABBCCDD"], "2": [*"XXXXYYYY"], "3": ["*"] * 8}), name="items"
)
BELOW = {
    label: {row[0] for row in HIERARCHY.levels.iter_rows() if label in row} for label in "abcdefghABCDXY"
}


def _table(sets, persons=None):
    frame = pl.DataFrame({"basket": pl.Series(sets, dtype=pl.List(pl.String))})
    columns = [Column("basket", Kind.SET, Role.KEY, hierarchy="items")]
    if persons is not None:
        frame = frame.with_columns(pl.Series("who", persons))
        columns.append(Column("who", Kind.NOMINAL, Role.PERSON))
    return Table(frame, Schema(tuple(columns)))


def _protected(table, **how):
    return protect(table, ItemsetGeneralisation(**how), columns=["basket"], resources={"items": HIERARCHY})


def _attempt(table, **how):
    try:
        return _protected(table, **how), ""
    except (RefusedError, UnreachableError) as error:
        return None, error.message


def _least(sets, m, persons):
    """The fewest persons who have any combination of up to m items that somebody has; a hole is an item."""
    holders = {}
    for items, person in zip(sets, persons, strict=True):
        known = (
            ["missing"] if items is None else sorted({"missing" if item is None else item for item in items})
        )
        for size in range(1, m + 1):
            for combination in combinations(known, size):
                holders.setdefault(combination, set()).add(person)
    return min(map(len, holders.values()), default=0)


SETS = st.lists(
    st.one_of(st.none(), st.lists(st.one_of(st.none(), st.sampled_from(ITEMS)), max_size=5, unique=True)),
    min_size=1, max_size=25,
)  # fmt: skip


@examples(60)
@given(SETS, st.integers(2, 5), st.integers(1, 3), st.sampled_from([None, 0, 1, 3]), st.data())
def test_any_few_items_are_shared_and_every_label_is_true(sets, k, m, level, data):
    persons = data.draw(
        st.one_of(st.none(), st.lists(st.integers(0, 6), min_size=len(sets), max_size=len(sets)))
    )
    release, why_not = _attempt(_table(sets, persons), k=k, m=m, level=level)
    if release is None:  # nothing would be left, or there are not enough people for anything
        assert "no record has an item" in why_not or len(set(persons or range(len(sets)))) < k
        return
    shown = release.table.frame["basket"].to_list()
    least = _least(shown, m, persons or range(len(sets)))
    assert least >= k or least == 0
    labels = {label for each in shown if each for label in each if label not in {None, "*"}}
    for one, other in combinations(sorted(labels), 2):
        assert not BELOW[one] & BELOW[other]  # a cut: one item is not shown by two labels
    for before, after in zip(sets, shown, strict=True):
        for label in after or ():
            assert label in (before or ()) or label == "*" or BELOW[label] & set(before)
        assert after is not None or before is None


def test_nothing_changes_where_nothing_is_rare():
    sets = [["a", "b"], ["a", "b"], []]
    release = _protected(_table(sets), k=2)
    assert release.table.frame["basket"].to_list() == sets
    assert release.figures == {"items_generalised": 0, "items_suppressed": 0}


def test_items_climb_before_they_are_suppressed():
    sets = [["a"], ["b"], ["h"]]
    release = _protected(_table(sets), k=2, m=1)
    assert release.table.frame["basket"].to_list() == [["A"], ["A"], []]
    assert release.figures == {"items_generalised": 2, "items_suppressed": 1}


def test_a_level_bounds_the_climb():
    sets = [["a"], ["c"], ["h"], ["h"]]
    assert _protected(_table(sets), k=2, m=1).table.frame["basket"].to_list() == [["X"], ["X"], ["h"], ["h"]]
    bounded = _protected(_table(sets), k=2, m=1, level=1)
    assert bounded.table.frame["basket"].to_list() == [[], [], ["h"], ["h"]]


def test_few_missing_sets_are_shown_as_empty():
    sets = [["a"], ["a"], None, ["a", None]]
    shown = _protected(_table(sets), k=3, m=1).table.frame["basket"].to_list()
    assert shown == [["a"], ["a"], [], ["a"]]
    with pytest.raises(UnreachableError):
        _protected(_table(sets), k=3, m=1, missing="worst")


def test_an_item_that_the_hierarchy_does_not_hold_is_an_error_without_its_name():
    with pytest.raises(DataError, match="1 value of `basket`") as caught:
        _protected(_table([["a"], ["zebra"]]), k=2)
    assert "zebra" not in str(caught.value)


def test_on_the_command_line(tmp_path, capfd):
    plan = tmp_path / "plan.toml"
    (tmp_path / "in.csv").write_text("basket\na;b\na;b\nc;h\nd;g\n;\n")
    HIERARCHY.levels.write_csv(tmp_path / "items.csv", include_header=False, separator=";")
    plan.write_text(
        'requirements = ["km-anonymity >= 2"]\n[data]\npath = "in.csv"\n[output]\npath = "out.csv"\n'
        '[columns.basket]\nkind = "set"\nrole = "key"\nseparator = ";"\nhierarchy = "items"\n'
        '[resources.items]\npath = "items.csv"\nholds = "hierarchy"\n'
        '[[steps]]\nmethod = "itemset-generalisation"\nparameters = { k = 2 }\n'
    )
    assert _exit_code(["run", str(plan)]) == 0, capfd.readouterr()
    shown = (tmp_path / "out.csv").read_text().split()[1:]
    assert sorted(shown) == [";", "B;D", "B;D", "a;b", "a;b"]


def test_nobody_has_no_sets():
    frame = pl.DataFrame({"basket": pl.Series([], dtype=pl.List(pl.String))})
    table = Table(frame, Schema((Column("basket", Kind.SET, Role.KEY),)))
    with pytest.raises(RefusedError, match="must be given records, got: none"):
        protect(table, ItemsetGeneralisation(), columns=["basket"], seed=1)

"""A hierarchy changed by hand stays a hierarchy: each label has one parent, each value is there once."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.hierarchy.edit import add_level, drop_level, put_into, rename, without_rare_names
from sfumato.data.hierarchy.proposals import PROPOSALS, proposals_for, propose_by
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Kind
from sfumato.errors import ParameterError, SfumatoError, UnknownNameError


def of(*rows):
    return Hierarchy.from_levels(pl.DataFrame([list(row) for row in rows], orient="row"), name="town")


TOWNS = of(
    ("Ash", "north", "west", "*"), ("Bar", "north", "west", "*"), ("Cor", "south", "east", "*"),
    ("Dov", "south", "east", "*"),
)  # fmt: skip


def rows(hierarchy):
    return {row[0]: list(row[1:]) for row in hierarchy.levels.iter_rows()}


def test_values_are_put_into_a_new_group_that_climbs_as_the_first_of_them():
    found = rows(put_into(TOWNS, 0, [1, 2], "middle"))
    assert found == {
        "Ash": ["north", "west", "*"], "Bar": ["middle", "west", "*"], "Cor": ["middle", "west", "*"],
        "Dov": ["south", "east", "*"],
    }  # fmt: skip


def test_a_value_is_moved_into_a_group_that_there_is():
    assert rows(put_into(TOWNS, 0, [1], "south"))["Bar"] == ["south", "east", "*"]


def test_below_the_root_a_level_is_added():
    found = put_into(TOWNS, 2, [0, 1], "land")
    assert found.height == TOWNS.height + 1
    assert {tuple(row) for row in rows(found).values()} == {
        ("north", "west", "land", "*"),
        ("south", "east", "land", "*"),
    }


def test_groups_are_renamed_and_joined():
    assert rows(rename(TOWNS, 1, [0], "up"))["Ash"] == ["up", "west", "*"]
    joined = rows(rename(TOWNS, 1, [0, 1], "all"))
    assert {tuple(row) for row in joined.values()} == {("all", "west", "*")}
    assert rows(rename(TOWNS, 1, [0], "south"))["Ash"] == ["south", "east", "*"]


def test_levels_come_and_go():
    more = add_level(TOWNS, 0)
    assert rows(more)["Ash"] == ["Ash", "north", "west", "*"]
    assert drop_level(more, 1) == TOWNS
    assert rows(drop_level(TOWNS, 1))["Ash"] == ["west", "*"]


@pytest.mark.parametrize(
    "change",
    [
        lambda: put_into(TOWNS, 0, [], "x"),
        lambda: put_into(TOWNS, 0, [9], "x"),
        lambda: put_into(TOWNS, 0, [0], " "),
        lambda: put_into(TOWNS, 0, [0], "*"),
        lambda: put_into(TOWNS, 3, [0], "x"),
        lambda: put_into(TOWNS, -1, [0], "x"),
        lambda: rename(TOWNS, 0, [0], "x"),
        lambda: rename(TOWNS, 3, [0], "x"),
        lambda: drop_level(TOWNS, 0),
        lambda: drop_level(TOWNS, 3),
        lambda: add_level(TOWNS, 3),
    ],
)
def test_what_cannot_be_is_a_sentence(change):
    with pytest.raises(ParameterError) as error:
        change()
    assert "Ash" not in str(error.value)


@given(st.data())
def test_whatever_is_done_every_value_stays_and_the_hierarchy_is_sound(data):
    hierarchy = TOWNS
    for _ in range(data.draw(st.integers(1, 6))):
        level = data.draw(st.integers(0, hierarchy.height - 2))
        codes = data.draw(st.lists(st.integers(0, len(hierarchy.labels(level)) - 1), min_size=1, unique=True))
        label = data.draw(st.sampled_from(["north", "west", "new", "Ash", "Dov", "other"]))
        change = data.draw(
            st.sampled_from(
                [
                    lambda h, at=level, some=codes, name=label: put_into(h, at, some, name),
                    lambda h, at=level, some=codes, name=label: rename(h, at, some, name),
                    lambda h, at=level: add_level(h, at),
                    lambda h, at=level: drop_level(h, at),
                ]
            )
        )
        try:
            hierarchy = change(hierarchy)
        except ParameterError:
            continue
        assert hierarchy.check() == []
        assert hierarchy.levels[:, 0].to_list() == ["Ash", "Bar", "Cor", "Dov"]


def test_no_group_names_a_rare_value():
    hierarchy = of(
        ("Ash", "Ash", "*"), ("Bar", "{Bar|Cor}", "*"), ("Cor", "{Bar|Cor}", "*"), ("Dov", "Dov … Ely", "*"),
        ("Ely", "Dov … Ely", "*"), ("Fro", "Fro", "*"),
    )  # fmt: skip
    found = rows(without_rare_names(hierarchy, ["Cor", "Ely", "Fro"]))
    assert [each[0] for each in found.values()] == [
        "Ash", "other: 2 values", "other: 2 values", "other: 2 values'", "other: 2 values'", "Fro",
    ]  # fmt: skip
    assert without_rare_names(hierarchy, []) == hierarchy


SETS = of(
    ("20", "[20;24]", "{a|b}", "*"), ("24", "[20;24]", "{a|b}", "*"), ("30", "[30;34]", "{c|d}", "*"),
    ("34", "[30;34]", "{c|d}", "*"), ("99", "old", "{c|d}", "*"),
)  # fmt: skip


def test_a_label_that_would_no_longer_be_true_counts_instead():
    found = rows(put_into(SETS, 0, [2], "[20;24]"))  # 30 is not from 20 to 24, and {c|d} has lost a member
    assert found["20"] == found["30"] == ["other: 3 values", "other: 3 values", "*"]
    assert found["34"] == ["[30;34]", "other: 2 values", "*"]  # which holds of what is left
    assert rows(put_into(SETS, 0, [2], "old"))["99"] == ["old", "{c|d}", "*"]
    assert rows(rename(SETS, 1, [0], "[20;29]"))["20"] == ["[20;29]", "{a|b}", "*"]  # your word


VALUES = {
    Kind.CONTINUOUS: pl.Series("x", [float(i % 37) for i in range(200)]),
    Kind.NOMINAL: pl.Series("x", [f"{i % 40:05}" for i in range(200)]),
    Kind.ORDINAL: pl.Series("x", [f"{i % 7}" for i in range(200)]),
    Kind.DATE: pl.Series("x", pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 6, 30), eager=True)),
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_every_proposal_for_a_kind_holds_all_its_values(kind):
    column, values = Column("x", kind), VALUES[kind]
    ways = proposals_for(column)
    assert ways
    for way in ways:
        hierarchy = propose_by(way, column, values)
        assert hierarchy.check(values) == []
        assert hierarchy.height > 1


def test_own_widths_and_lengths_are_taken():
    widths = propose_by("intervals", Column("x", Kind.CONTINUOUS), VALUES[Kind.CONTINUOUS], [10.0])
    assert widths.labels(1).to_list() == ["[0;9]", "[10;19]", "[20;29]", "[30;39]"]
    lengths = propose_by("prefix", Column("x", Kind.NOMINAL), VALUES[Kind.NOMINAL], [4.0])
    assert "0001*" in lengths.labels(1)


@pytest.mark.parametrize(("way", "numbers"), [("intervals", [0.0]), ("intervals", [5.0, 12.0])])
def test_widths_that_do_not_nest_are_a_sentence(way, numbers):
    with pytest.raises(ParameterError):
        propose_by(way, Column("x", Kind.CONTINUOUS), VALUES[Kind.CONTINUOUS], numbers)


@pytest.mark.parametrize("numbers", [[2.5], [0.0], [2.0, 3.0]])
def test_lengths_that_are_none_are_a_sentence(numbers):
    with pytest.raises(SfumatoError):
        propose_by("prefix", Column("x", Kind.NOMINAL), VALUES[Kind.NOMINAL], numbers)


def test_a_way_for_another_kind_is_unknown():
    with pytest.raises(UnknownNameError):
        propose_by("prefix", Column("x", Kind.CONTINUOUS), VALUES[Kind.CONTINUOUS])
    assert set(PROPOSALS) >= set(proposals_for(Column("x", Kind.SET)))
    assert not proposals_for(Column("x", Kind.SET))

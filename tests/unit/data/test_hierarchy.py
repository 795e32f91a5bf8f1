"""Hierarchies: small tables with the answer worked out by hand."""

import pickle

import numpy as np
import polars as pl
import pytest

from brute import covers
from sfumato.data.generalised.text_forms import to_text
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.errors import DataError, ParameterError, PlanError


def rows(hierarchy):
    return [";".join(row) for row in hierarchy.levels.iter_rows()]


# Climbing


def test_the_root_is_added_where_there_is_none(work):
    assert (work.height, work.n_leaves, work.root) == (3, 5, "*")
    assert work.labels(1).to_list() == ["Business", "Government", "None"]
    assert work.labels(2).to_list() == ["*"]
    assert rows(work)[0] == "Private;Business;*"


def test_values_climb_and_missing_ones_stay_missing(work):
    values = pl.Series("job", ["State", None, "Never", "Private"])
    climbed = work.climb(values, 1)
    assert climbed.to_list() == ["Government", None, "None", "Business"]
    assert climbed.name == "job"
    assert climbed.dtype == pl.Enum(["Business", "Government", "None"])
    assert work.climb(values, 0).to_list() == values.to_list()
    assert work.climb(values, 2).to_list() == ["*", None, "*", "*"]
    assert work.climb(values.cast(pl.Categorical), 1).to_list() == climbed.to_list()


def test_codes_are_positions_among_the_labels(work):
    codes = work.codes(pl.Series(["State", None, "Never", "Private"]), 1)
    assert codes.dtype == np.int32
    assert codes.tolist() == [1, -1, 2, 0]


def test_an_unseen_value_is_counted_and_not_shown(work):
    values = pl.Series("job", ["sentinel", "Private", "sentinel", "other sentinel", None])
    with pytest.raises(DataError, match=r"2 values of `job` \(3 records\)") as caught:
        work.climb(values, 1)
    assert "sentinel" not in str(caught.value)
    assert caught.value.hint


def test_an_unseen_value_may_climb_to_the_root(work):
    values = pl.Series("job", ["sentinel", "Never", None])
    # The root's code follows those of the level's labels, and leads to the root on every level above.
    assert work.codes(values, 1, unseen="root").tolist() == [3, 2, -1]


def test_numbers_climb_by_their_value():
    ages = Hierarchy.from_levels(pl.DataFrame({"age": ["25", "26.0", "30"], "band": ["20s", "20s", "30s"]}))
    for values in (
        pl.Series([25, 26, 30]),
        pl.Series([25.0, 26.0, 30.0]),
        pl.Series([25, 26, 30], dtype=pl.UInt8),
    ):
        assert ages.climb(values, 1).to_list() == ["20s", "20s", "30s"]
    assert ages.climb(pl.Series([float("nan"), None]), 1).to_list() == [None, None]
    with pytest.raises(DataError, match="1 value"):
        ages.climb(pl.Series([25.5]), 1)


@pytest.mark.parametrize("level", [-1, 3])
def test_a_level_must_exist(work, level):
    with pytest.raises(ParameterError, match="from 0 to 2"):
        work.climb(pl.Series(["Never"]), level)


def test_nodes_cover_the_leaves_under_them(work):
    nodes = work.nodes()
    assert nodes.leaves.to_list() == ["Private", "Self-emp", "Federal", "State", "Never"]
    by_label = {label: nodes.members_of(code).to_list() for code, label in enumerate(nodes.labels)}
    assert by_label == {
        **{leaf: [leaf] for leaf in nodes.leaves},
        "Business": ["Private", "Self-emp"],
        "Government": ["Federal", "State"],
        "None": ["Never"],
        "*": nodes.leaves.to_list(),
    }
    values = pl.Series(["State", None, "Never"])
    assert covers(work.climb(values, 1), values, nodes=nodes).all()
    assert to_text(work.climb(values, 1), nodes).to_list() == ["{Federal|State}", None, "Never"]


def test_a_label_of_two_meanings_is_told_apart():
    # "Other" is the leaf on level 0 and a group of two on level 1; "Black" is the same on both.
    race = Hierarchy.from_levels(
        pl.DataFrame({"0": ["White", "Black", "Other", "Asian"], "1": ["White", "Black", "Other", "Other"]})
    )
    assert race.labels(1).to_list() == ["White", "Black", "Other (level 1)"]
    assert race.climb(pl.Series(["Asian", "Other"]), 1).to_list() == ["Other (level 1)"] * 2
    assert rows(race)[3] == "Asian;Other;*"
    nodes = race.nodes()
    assert nodes.labels.to_list() == ["White", "Black", "Other", "Asian", "Other (level 1)", "*"]
    assert nodes.sizes.tolist() == [1, 1, 1, 1, 2, 4]


def test_a_name_that_is_taken_is_not_taken_again():
    odd = Hierarchy.from_levels(pl.DataFrame({"0": ["a", "b", "c"], "1": ["a", "a", "a (level 1)"]}))
    assert odd.labels(1).to_list() == ["a (level 1)'", "a (level 1)"]


def test_early_suppression_is_the_wildcard():
    early = Hierarchy.from_levels(
        pl.DataFrame({"0": ["a", "b", "c"], "1": ["x", "x", "*"], "2": ["*", "*", "*"]})
    )
    assert early.climb(pl.Series(["c", "a"]), 1).to_list() == ["*", "x"]
    assert early.codes(pl.Series(["z"]), 1, unseen="root").tolist() == [1]
    nodes = early.nodes()
    assert nodes.members_of(nodes.labels.index_of("*")).to_list() == ["a", "b", "c"]


def test_a_root_may_have_a_name():
    world = Hierarchy.from_levels(pl.DataFrame({"0": ["Spain", "Japan"], "1": ["World", "World"]}))
    assert (world.height, world.root) == (2, "World")
    assert world.codes(pl.Series(["Mars"]), 1, unseen="root").tolist() == [0]
    assert world.nodes().labels.to_list() == ["Spain", "Japan", "World", "*"]


def test_hierarchies_compare_and_pickle_and_keep_their_values_to_themselves(work):
    work.labels(1)
    copy = pickle.loads(pickle.dumps(work))
    assert copy == work
    assert hash(copy) == hash(work)
    assert copy != Hierarchy("other", work.levels)
    assert work != "work"
    assert repr(work) == "Hierarchy('work', 5 leaves, 3 levels)"


# Faults


def test_all_faults_are_gathered_and_none_shows_a_value():
    faulty = Hierarchy(
        "job",
        pl.DataFrame(
            {
                # s1 twice; group X under both A and B; the last row short; two roots.
                "0": ["s1", "s2", "s1", "s3", "*"],
                "1": ["X", "X", "X", "Y", "Z"],
                "2": ["A", "B", "A", "B", None],
            }
        ),
    )
    expected = [
        "1 row with fewer levels than the 3 of the deepest",
        "1 value on more than one row",
        "a value called `*`, which is the wildcard's name",
        "1 label of level 1 with several parents at level 2",
        "2 roots instead of one at level 2",
    ]
    assert faulty.check() == expected
    values = pl.Series("s", ["s1", "s4", "s4", "s5", None])
    assert faulty.check(values, "column") == [
        *expected,
        "2 values of `column` (3 records) not among its 5 leaves",
    ]
    with pytest.raises(PlanError, match="has 6 faults") as caught:
        faulty.require(values, "column")
    assert len(caught.value.faults) == 6
    assert not any(value in str(caught.value) for value in ("s1", "s4", "s5", "X", "Y"))
    for use in (lambda: faulty.labels(0), lambda: faulty.climb(values, 0), faulty.nodes):
        with pytest.raises(PlanError):
            use()


def test_nothing_is_above_the_wildcard():
    levels = pl.DataFrame({"0": ["a", "b"], "1": ["*", "*"], "2": ["X", "X"], "3": ["*", "*"]})
    assert Hierarchy("x", levels).check() == ["1 label above `*`, which nothing can be above"]


def test_a_sound_hierarchy_has_no_faults(work):
    assert work.check(pl.Series(["Never", None])) == []
    work.require(pl.Series(["Never"]))
    with pytest.raises(DataError, match="`job`"):
        work.require(pl.Series(["sentinel"]), "job")


def test_a_hierarchy_of_nothing_is_faulty():
    with pytest.raises(DataError, match="has no levels"):
        Hierarchy("x", pl.DataFrame())
    with pytest.raises(PlanError, match="no values"):
        Hierarchy.from_levels(pl.DataFrame({"0": []}, schema={"0": pl.String}))

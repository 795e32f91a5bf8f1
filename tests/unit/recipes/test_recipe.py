"""A recipe: which columns a step takes, strata and households, chance by identity, and composed records."""

import math
import traceback
from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from sfumato.core import registry
from sfumato.core.method import Gives, Takes
from sfumato.core.params import PerColumn
from sfumato.core.release import Release, reorder
from sfumato.core.run import Run
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, PlanError, RefusedError, UnreachableError
from sfumato.methods.microaggregation import Mdav
from sfumato.methods.noise import CorrelatedNoise
from sfumato.methods.swapping import RankSwapping
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from toys import (
    SECRET_NUMBER,
    SECRET_WORD,
    CentredNoise,
    Draw,
    Halves,
    Mean,
    Pairs,
    Rounding,
    Sampling,
    Shift,
    Synthetic,
    Turned,
    numbers_table,
    table_of,
)

SCHEMA = Schema(
    (
        Column("id", Kind.NOMINAL, Role.IDENTIFIER),
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("sex", Kind.NOMINAL, Role.KEY),
        Column("born", Kind.DATE, Role.KEY),
        Column("pay", Kind.CONTINUOUS, Role.SENSITIVE),
        Column("grade", Kind.ORDINAL, Role.SENSITIVE),
        Column("w", Kind.CONTINUOUS, Role.WEIGHT),
        Column("late", Kind.CONTINUOUS),
    ),
    related=(("age", "born"), ("pay", "grade", "w")),
)


def protect(step, table, seed=1):
    return Recipe.of(step).apply(table, Run(seed=seed))


def frame_of(step, table, seed=1):
    return protect(step, table, seed).table.frame


# ---------------------------------------------------------------------------------------- which columns


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ((), ("age", "born", "late")),
        (("pay", "age"), ("pay", "age")),
        (("@key",), ("age", "born")),
        (("@sensitive",), ("pay", "grade")),
        (("@continuous",), ("age", "pay", "late")),
        (("@ordinal", "@date"), ("grade", "born")),
        (("@nominal",), ()),
        (("@weight",), ("w",)),
        (("pay", "@key", "pay", "@continuous"), ("pay", "age", "born", "late")),
        (("sex",), ("sex",)),
    ],
)
def test_resolving(columns, expected):
    """Groups give only what the method can take; a name gives the column, so that a mistake is seen."""
    assert Step(RankSwapping(), columns).resolve(SCHEMA) == expected


def test_without_keys_it_is_everything_said_of_people():
    schema = SCHEMA.select(["id", "pay", "w", "late"])
    assert Step(Mean()).resolve(schema) == ("pay", "late")
    only_words = SCHEMA.replace(Column("age", Kind.NOMINAL, Role.KEY), Column("born", Kind.NOMINAL, Role.KEY))
    assert Step(Mean()).resolve(only_words) == ("pay", "late")


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        (Step(Mean(), ("aeg",)), "there is no column `aeg` (did you mean `age`"),
        (Step(Mean(), ("@keys",)), "there is no group of columns `@keys` (did you mean `@key`"),
        (Step(Mean(), ("@",)), "there is no group of columns `@`"),
        (Step(Mean(), ("@nominal",)), "mean needs a continuous column to protect, got: none"),
        (Step(Mean(), ("sex", "age", "born")), "mean protects continuous columns, got: `sex` (nominal), `born` (date)"),
        (Step(Mean(), ("age",), within=("reg",)), "mean: there is no column `reg`"),
        (Step(Mean(), ("age",), together="house"), "mean: there is no column `house`"),
        (Step(Mean(), ("age",), within=("age",)), "mean: a column cannot both be protected and group the records: `age`"),
        (Step(Mean(), ("age",), together="age"), "mean: a column cannot both be protected and group the records: `age`"),
        (Step(Mean(), ("age",), within=("sex", "sex")), "mean: `within` must name each column once, got: `sex`, `sex`"),
        (
            Step(Rounding(base={"pay": 5, "agee": 2}), ("age",)),
            "`base` of rounding names columns it does not protect: `agee`, `pay`",
        ),
    ],
)  # fmt: skip
def test_faults_of_a_step(step, fault):
    faults = list(step.faults(SCHEMA))
    assert len(faults) == 1
    assert faults[0].startswith(fault)
    with pytest.raises(PlanError):
        Recipe((step,)).apply(_table_for(SCHEMA), Run(seed=1))


def _table_for(schema):
    dtypes = {Kind.CONTINUOUS: pl.Float64, Kind.DATE: pl.Date}
    return Table(pl.DataFrame(schema={c.name: dtypes.get(c.kind, pl.String) for c in schema.columns}), schema)


def test_all_faults_of_all_steps_come_before_anything_runs():
    recipe = Recipe.of(Draw(), Step(Mean(), ("nobody",)), Step(Mean(), ("age", "sex"), within=("age", "reg")))
    with pytest.raises(PlanError) as caught:
        recipe.apply(_table_for(SCHEMA), Run(seed=1))
    assert [fault.partition(":")[0] for fault in caught.value.faults] == [
        "step 2",
        "step 3",
        "step 3",
        "step 3",
    ]


def test_a_step_that_needs_exact_values_cannot_follow_one_that_generalises_them():
    class Ranges(Mean):
        name = "ranges"
        gives = Gives(generalised=True)

    class Hiding(Mean):
        name = "hiding"
        takes = Takes(generalised=True)

    ranges, hiding, mean = (Step(method(), ("age",)) for method in (Ranges, Hiding, Mean))
    (fault,) = Recipe((ranges, hiding, mean)).faults(SCHEMA)
    assert fault.startswith("step 3: mean needs exact values")
    assert "`age`" in fault
    assert not Recipe((mean, ranges, hiding, Step(Mean(), ("pay",)))).faults(SCHEMA)


def test_a_text_is_not_a_list_of_letters():
    """`ab` would be the columns `a` and `b`."""
    for words in ({"columns": "ab"}, {"within": "ab"}):
        with pytest.raises(PlanError, match="must be a list of names, got: the text `ab`"):
            Step(Mean(), **words)
    assert Step(Mean(), ["a"]) == Step(Mean(), ("a",))


def test_warnings_for_columns_that_tell_the_same_story():
    assert list(Step(Mean(), ("age",)).warnings(SCHEMA)) == [
        "`age` and `born` are strongly related, but mean protects only `age`"
    ]
    assert list(Step(RankSwapping(), ("age", "born")).warnings(SCHEMA)) == []
    assert list(Step(Mean(), ("pay", "late")).warnings(SCHEMA)) == [
        "`pay` and `grade`, `w` are strongly related, but mean protects only `pay`"
    ]
    assert len(Recipe.of(Step(Mean(), ("age",)), Step(Mean(), ("pay",))).warnings(SCHEMA)) == 2


# ------------------------------------------------------------------------------------------------ simplest


def test_no_step_changes_nothing():
    table = numbers_table()
    release = Recipe().apply(table, Run(seed=1))
    assert_frame_equal(release.table.frame, table.frame)
    assert release.source_rows.tolist() == list(range(len(table)))
    assert release.provenance == ()


def test_rounding_by_column_by_hand():
    table = table_of({"a": [14.0, 15.1, None], "b": [14.0, 17.4, 18.0], "c": [14.0, 15.0, 16.0]})
    step = Step(Rounding(base={"b": 5, "default": 10}), ("a", "b"))
    assert frame_of(step, table).to_dict(as_series=False) == {
        "a": [10.0, 20.0, None], "b": [15.0, 15.0, 20.0], "c": [14.0, 15.0, 16.0],
    }  # fmt: skip


def test_provenance_says_what_was_done():
    table = numbers_table()
    recipe = Recipe.of(
        Step(Rounding(base={"age": 5}), ("@key",), within=("region",)), Step(Mean(), ("income",))
    )
    first, second = recipe.apply(table, Run(seed=77)).provenance
    assert first.to_dict() | {"seconds": 0} == {
        "method": "rounding", "parameters": {"base": {"default": 10.0, "age": 5.0}}, "columns": ["income", "age"],
        "within": ["region"], "together": "", "notes": [], "figures": {}, "seconds": 0,
    }  # fmt: skip
    assert second.method == "mean"
    assert first.seconds > 0
    assert "77" not in str(first.to_dict() | {"seconds": 0})


def test_the_release_is_aimed_at_nothing():
    """The columns of one step must not be those of the next."""
    table = numbers_table()
    release = protect(Step(Mean(), ("age",)), table)
    assert release.table.targets == ()
    assert release.table.chosen == tuple(sorted(table.names))


# -------------------------------------------------------------------------------------------------- strata


STRATA = {
    "words": pl.Series(["n", "s", "n", "w", "s", "n", "w", "n", "s", "w"]),
    "holes": pl.Series(["None", None, "None", None, "null", "null", None, "None", "", ""]),
    "numbers": pl.Series([1, 2, 1, None, 2, 1, None, 1, 2, 2]),
    "floats": pl.Series([0.1, 0.2, math.nan, None, math.nan, 0.1, None, 0.2, 0.1, math.nan]),
    "truth": pl.Series([True, False, None] * 3 + [True]),
    "enum": pl.Series(list("abcabcabca"), dtype=pl.Enum(["c", "b", "a"])),
}


@pytest.mark.parametrize("method", [Mean(), Turned(), Pairs(), Mdav(k=1)], ids=lambda method: method.name)
@pytest.mark.parametrize("strata", STRATA)
def test_within_strata_each_is_protected_as_if_alone(strata, method):
    """By brute force: protect every stratum by itself and put the records back where they were."""
    values = np.array([3.0, 1.0, 4.0, 1.5, 9.0, 2.0, 6.0, 5.0, 3.5, 8.0])
    table = table_of({"x": values, "s": STRATA[strata]}, s=(Kind.NOMINAL, Role.OTHER))
    release = protect(Step(method, ("x",), within=("s",)), table)
    labels = [str(value) if value is not None else None for value in STRATA[strata]]
    expected = np.empty(len(values))
    for label in set(labels):
        rows = np.array([i for i, each in enumerate(labels) if each == label])
        expected[rows] = frame_of(Step(method, ("x",)), table.take(rows))["x"].to_numpy()
    np.testing.assert_array_equal(release.table.frame["x"].to_numpy(), expected)
    assert_frame_equal(release.table.frame.select("s"), table.frame.select("s"))
    assert release.source_rows.tolist() == list(range(10))


def test_within_two_columns():
    table = table_of(
        {"x": [1.0, 2.0, 3.0, 4.0, 5.0, 4.0], "s": ["a", "a", "b", "b", "a", "a"], "t": [1, 2, 1, 1, 1, 2]},
        s=(Kind.NOMINAL, Role.OTHER),
        t=(Kind.NOMINAL, Role.OTHER),
    )
    for within in (("s", "t"), ("t", "s")):
        assert frame_of(Step(Mean(), ("x",), within=within), table)["x"].to_list() == [
            3.0,
            3.0,
            3.5,
            3.5,
            3.0,
            3.0,
        ]


@pytest.mark.parametrize("name", ["row", "__row", "by_0", "index", "code", "value", "len", "count", "*"])
def test_a_stratum_column_may_have_any_name(name):
    values = {"x": [1.0, 3.0, 10.0, 12.0], name: ["a", "a", "b", "b"]}
    table = table_of(values, **{name: (Kind.NOMINAL, Role.OTHER)})
    assert frame_of(Step(Mean(), ("x",), within=(name,)), table)["x"].to_list() == [2.0, 2.0, 11.0, 11.0]


def test_a_record_alone_in_its_stratum_never_leaves_as_it_is_in_silence():
    values = {"x": [1.0, 3.0, 77.0], "s": ["a", "a", "b"]}
    table = table_of(values, s=(Kind.NOMINAL, Role.OTHER))
    with pytest.raises(DataError, match="cannot change 1 record of persons alone"):
        protect(Step(RankSwapping(), ("x",), within=("s",)), table)
    assert frame_of(Step(Draw(), ("x",), within=("s",)), table)["x"][2] != 77
    whose = table_of(  # two records of one person hide nobody
        {"x": [1.0, 3.0, 77.0, 77.0], "s": ["a", "a", "b", "b"], "who": ["p", "q", "r", "r"]},
        s=(Kind.NOMINAL, Role.OTHER), who=(Kind.NOMINAL, Role.PERSON),
    )  # fmt: skip
    with pytest.raises(DataError, match="cannot change 2 records"):
        protect(Step(RankSwapping(), ("x",), within=("s",)), whose)


def test_what_a_step_enforced_is_measured_again_at_the_end():
    table = table_of({"x": [1.0, 1.0, 2.0, 2.0]})
    enforced = Step(registry.method("local-suppression")(k=2), ("x",))
    assert len(Recipe.of(enforced, Step(Mean(), ("x",))).apply(table, Run(seed=1)).table) == 4
    with pytest.raises(UnreachableError, match=r"step 1 \(local-suppression\) enforced does not hold"):
        Recipe.of(enforced, Step(Draw(), ("x",))).apply(table, Run(seed=1))


def test_strata_have_streams_of_their_own_and_a_hole_is_not_the_word_none():
    table = table_of({"x": [0.0] * 4, "s": ["None", None, "null", ""]}, s=(Kind.NOMINAL, Role.OTHER))
    drawn = frame_of(Step(Draw(), ("x",), within=("s",)), table)["x"]
    assert drawn.n_unique() == 4


def test_whole_numbers_in_one_stratum_and_halves_in_another():
    table = table_of({"x": [1, 3, 1, 2], "s": ["a", "a", "b", "b"]}, s=(Kind.NOMINAL, Role.OTHER))
    assert frame_of(Step(Mean(), ("x",), within=("s",)), table)["x"].to_list() == [2.0, 2.0, 1.5, 1.5]


def test_classes_of_strata_do_not_meet():
    """Pairs 0, 1 of one stratum and 0 of the other are three classes, each within one stratum."""
    table = table_of(
        {"x": [1.0, 2.0, 8.0, 9.0, 5.0, 6.0], "s": ["a", "b", "a", "a", "b", "a"]},
        s=(Kind.NOMINAL, Role.OTHER),
    )
    release = protect(Step(Pairs(), ("x",), within=("s",)), table)
    classes = release.classes.tolist()
    assert classes[0] == classes[5] != classes[2] == classes[3]
    assert classes[1] == classes[4]
    assert len(set(classes)) == 3
    assert release.table.frame["x"].to_list() == [3.5, 3.5, 8.5, 8.5, 3.5, 3.5]


def test_within_an_empty_table():
    table = numbers_table().take(np.arange(0))
    assert len(frame_of(Step(Mean(), within=("region",)), table)) == 0
    assert len(frame_of(Step(Pairs(), ("age",), together="house"), table)) == 0


def test_sampling_within_strata_knows_its_records():
    table = numbers_table(40)
    release = protect(Step(Sampling(share=0.5), within=("region",)), table)
    assert release.table.frame["note"].to_list() == release.source_rows.tolist()
    sizes, kept = Counter(table.frame["region"]), Counter(release.table.frame["region"])
    assert kept == {region: round(0.5 * size) for region, size in sizes.items()}


def test_a_stratum_too_small_is_an_error_without_its_value():
    table = table_of({"x": [1.0] * 4, "s": [SECRET_WORD, "b", "b", "b"]}, s=(Kind.NOMINAL, Role.OTHER))
    with pytest.raises(Exception, match="`k` of mdav") as caught:
        protect(Step(Mdav(k=2), ("x",), within=("s",)), table)
    assert SECRET_WORD not in "".join(traceback.format_exception(caught.value))


# ---------------------------------------------------------------------------------------------- households


def households(**more):
    return table_of(
        {"house": [7, 3, 7, None, 3, None], "rent": [10.0, 4.0, 10.0, 6.0, 4.0, 8.0], "age": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], **more},
        house=(Kind.NOMINAL, Role.HOUSEHOLD),
        s=(Kind.NOMINAL, Role.OTHER),
    )  # fmt: skip


def test_households_count_once_and_their_members_share():
    """Four households with rents 10, 4, 6, 8: their mean is 7, that of the six records would be 7 by chance."""
    assert frame_of(Step(Mean(), ("rent",), together="house"), households())["rent"].to_list() == [7.0] * 6
    skewed = households(rent=[100.0, 4.0, 100.0, 6.0, 4.0, 10.0])
    assert frame_of(Step(Mean(), ("rent",), together="house"), skewed)["rent"].to_list() == [30.0] * 6


def test_members_share_one_draw_and_the_homeless_none():
    drawn = frame_of(Step(Draw(), ("rent",), together="house"), households())["rent"].to_list()
    assert drawn[0] == drawn[2]
    assert drawn[1] == drawn[4]
    assert len(set(drawn)) == 4


@pytest.mark.parametrize(
    ("house", "facts"),
    [
        (pl.Series([7.0, 3.0, 7.0, math.nan, 3.0, math.nan]), {}),
        (pl.Series([7, 3, 7, -1, 3, -1]), {"missing": (-1,)}),
        (pl.Series(["b", "a", "b", ".", "a", "."]), {"missing": (".",)}),
        (pl.Series(["b", "a", "b", None, "a", None], dtype=pl.Categorical), {}),
    ],
    ids=["nan", "code", "text", "category"],
)
def test_without_a_household_number_everyone_is_their_own(house, facts):
    """All who lack a number are not one large family, however the lack is written."""
    column = Column("house", Kind.NOMINAL, Role.HOUSEHOLD, **facts)
    table = Table(
        pl.DataFrame({"house": house, "rent": [10.0, 4.0, 10.0, 6.0, 4.0, 8.0]}),
        Schema((column, Column("rent", Kind.CONTINUOUS, Role.KEY))),
    )
    drawn = frame_of(Step(Draw(), ("rent",), together="house"), table)["rent"].to_list()
    assert len(set(drawn)) == 4


def test_members_that_differ_are_counted_not_quoted():
    table = households(rent=[SECRET_NUMBER, 4.0, 10.0, 6.0, 4.5, 8.0])
    with pytest.raises(DataError) as caught:
        protect(Step(Mean(), ("rent",), together="house"), table)
    assert caught.value.message == (
        "`rent` must be equal in all records of a `house` to protect them together, got: 2 records with another value"
    )
    assert "91827" not in "".join(traceback.format_exception(caught.value))


def test_a_household_with_a_hole_differs():
    with pytest.raises(DataError, match="1 record with another value"):
        protect(Step(Mean(), ("rent",), together="house"), households(rent=[None, 4.0, 10.0, 6.0, 4.0, 8.0]))
    same = households(rent=[None, 4.0, None, 6.0, 4.0, 8.0])
    assert frame_of(Step(Mean(), ("rent",), together="house"), same)["rent"].to_list() == [
        None,
        6,
        None,
        6,
        6,
        6,
    ]


def test_a_household_must_lie_in_one_stratum():
    step = Step(Mean(), ("rent",), within=("s",), together="house")
    with pytest.raises(DataError, match="`s` must be equal in all records of a `house`"):
        protect(step, households(s=["a", "b", "b", "a", "b", "a"]))
    release = protect(step, households(s=["a", "b", "a", "a", "b", "b"]))
    assert release.table.frame["rent"].to_list() == [8.0, 6.0, 8.0, 8.0, 6.0, 6.0]


def test_classes_of_households_are_those_of_their_members():
    """Rents 4 and 6 are a pair, 8 and 10 are one."""
    release = protect(Step(Pairs(), ("rent",), together="house"), households())
    assert release.classes.tolist() == [1, 0, 1, 0, 0, 1]
    assert release.table.frame["rent"].to_list() == [9.0, 5.0, 9.0, 5.0, 5.0, 9.0]
    assert release.source_rows.tolist() == list(range(6))
    assert release.table.frame["age"].to_list() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_a_method_that_makes_new_records_cannot_keep_households():
    with pytest.raises(PlanError, match="synthetic makes new records, so it cannot be used with `together`"):
        protect(Step(Synthetic(), ("rent",), together="house"), households())


def test_a_household_that_is_left_out_goes_with_all_its_members():
    table = households()
    release = protect(Step(Sampling(share=0.5), ("rent",), together="house"), table)
    rows = release.source_rows.tolist()
    assert rows == sorted(rows)
    assert release.table.frame.equals(table.take(release.source_rows).frame)
    kept = set(rows)
    assert {0, 2} <= kept or not {0, 2} & kept
    assert {1, 4} <= kept or not {1, 4} & kept
    assert len({0, 1, 3, 5} & kept) == 2, "two of the four households"


def test_what_labels_cover_is_kept():
    """The node table a method makes for a column comes along, or its labels would mean nothing."""
    nodes = Nodes.of({"{a|b}": ("a", "b")}, leaves=("a", "b"))

    class Wild(Turned):
        """Put a label in place of every word."""

        name = "wild"

        def protect_column(self, column, rng):
            return pl.Series(["{a|b}"] * len(column))

    table = table_of({"h": [1, 1], "x": ["a", "a"]}, x=Kind.NOMINAL, h=(Kind.NOMINAL, Role.HOUSEHOLD))
    table = replace(table, nodes={"x": nodes})
    release = protect(Step(Wild(), ("x",), together="h"), table)
    assert release.table.nodes["x"] is nodes


# -------------------------------------------------------------------------------------------------- chance


def test_the_same_seed_and_data_give_the_same_release():
    table = numbers_table(30)
    recipe = Recipe.of(Step(Draw(), ("income",)), Step(CentredNoise(), ("age",), within=("region",)))
    assert_frame_equal(
        recipe.apply(table, Run(seed=4)).table.frame, recipe.apply(table, Run(seed=4)).table.frame
    )
    assert not recipe.apply(table, Run(seed=4)).table.frame.equals(
        recipe.apply(table, Run(seed=5)).table.frame
    )


def test_two_identical_steps_do_not_share_a_stream():
    """Noise added twice from one stream would be twice the noise; here the second draw would be the first."""
    table = numbers_table()
    once = Recipe.of(Step(Draw(), ("income",))).apply(table, Run(seed=4)).table.frame["income"]
    twice = Recipe.of(*[Step(Draw(), ("income",))] * 2).apply(table, Run(seed=4)).table.frame["income"]
    assert set(once).isdisjoint(twice)


def test_the_order_of_columns_is_irrelevant():
    table = numbers_table()
    for method in (Draw(), CentredNoise(), CorrelatedNoise(), RankSwapping(window=50), Mdav(k=3)):
        straight = frame_of(Step(method, ("income", "age")), table)
        turned = frame_of(Step(method, ("age", "income")), table.select(reversed(table.names)))
        assert_frame_equal(straight, turned.select(straight.columns))


@pytest.mark.parametrize("change", ["cell", "hole", "record", "order", "name"])
def test_other_data_have_other_chance(change):
    """Two releases of nearly the same data must not share noise: their difference would give it away."""
    table = numbers_table()
    note = table.frame["note"]
    if change == "cell":
        other = table.with_values("note", note.set(note == 3, 99))
    elif change == "hole":
        other = table.with_values("note", note.set(note == 3, None))
    elif change == "record":
        other = table.take(np.arange(len(table) - 1))
    elif change == "order":
        other = table.take(np.arange(len(table))[::-1])
    else:
        frame = table.frame.rename({"note": "remark"})
        other = Table(
            frame,
            table.schema.select(["income", "age", "region", "house"]).replace(Column("remark", Kind.NOMINAL)),
        )
    first, second = (set(frame_of(Step(Draw(), ("income",)), each)["income"]) for each in (table, other))
    assert first.isdisjoint(second)


def test_a_column_keeps_its_noise_when_the_step_takes_another_too():
    table = numbers_table()
    alone = frame_of(Step(Draw(), ("income",)), table)["income"]
    assert frame_of(Step(Draw(), ("income", "age")), table)["income"].to_list() == alone.to_list()


# ---------------------------------------------------------------------------------------- several steps


def test_records_are_followed_through_sampling_and_swapping():
    """Brute force: the untouched column `note` holds each record's own number."""
    table = numbers_table(60)
    recipe = Recipe.of(
        Step(Sampling(share=0.7), ("income",)),
        Step(RankSwapping(window=100), ("income",)),
        Step(Sampling(share=0.5), ("age",), within=("region",)),
        Step(Draw(), ("age",), within=("region",)),
        Step(Turned(), ("region",)),
    )
    for seed in range(5):
        release = recipe.apply(table, Run(seed=seed))
        rows = release.source_rows
        assert release.table.frame["note"].to_list() == rows.tolist()
        assert len(set(rows)) == len(rows) == len(release.table)
        assert 0 < len(rows) < 42
        assert rows.tolist() != sorted(rows)
        assert len(release.provenance) == 5


def test_after_synthetic_records_nobody_is_known():
    recipe = Recipe.of(Step(Sampling()), Step(Synthetic()), Step(Mean(), ("age",)))
    release = recipe.apply(numbers_table(), Run(seed=1))
    assert release.source_rows is None
    assert len(release.table) == 3


def test_a_later_step_drops_the_classes_of_an_earlier():
    table = numbers_table()
    assert protect(Step(Pairs(), ("age",)), table).classes is not None
    assert (
        Recipe.of(Step(Pairs(), ("age",)), Step(Mean(), ("income",))).apply(table, Run(seed=1)).classes
        is None
    )


def test_steps_see_what_the_step_before_made():
    table = table_of({"x": [1.0, 2.0, 9.0]})
    recipe = Recipe.of(Step(Mean(), ("x",)), Step(Rounding(base=3), ("x",)))
    assert recipe.apply(table, Run(seed=1)).table.frame["x"].to_list() == [3.0, 3.0, 3.0]


def test_several_tables_can_only_come_last():
    table = numbers_table()
    release = Recipe.of(Step(Mean(), ("age",)), Step(Halves(), ("age",))).apply(table, Run(seed=1))
    assert set(release.tables) == {"first", "rest"}
    assert len(release.provenance) == 2
    with pytest.raises(DataError, match="this release has 2 tables"):
        Recipe.of(Step(Halves(), ("age",)), Step(Mean(), ("age",))).apply(table, Run(seed=1))


def test_the_input_is_never_changed():
    table = numbers_table(30)
    before = table.frame.clone()
    Recipe.of(Draw(), Step(Pairs(), ("age",), within=("region",)), Sampling()).apply(table, Run(seed=1))
    assert_frame_equal(table.frame, before)


def test_resources_reach_the_step():
    table = table_of({"x": [1.0, 2.0]})
    run = Run(seed=1, resources={"population": table_of({"x": [100.0, 300.0]})})
    assert Recipe.of(Shift()).apply(table, run).table.frame["x"].to_list() == [201.0, 202.0]
    with pytest.raises(PlanError, match="`source` of shift names a resource that is not declared"):
        Recipe.of(Shift(source="nowhere")).apply(table, run)


def test_reordering_moves_everything_about_a_record():
    table = numbers_table(6)
    release = Release.of(table, source_rows=np.arange(6) * 10, classes=np.arange(6) * 100)
    order = np.array([3, 1, 5, 0, 2, 4])
    moved = reorder(release, order)
    assert moved.table.frame["note"].to_list() == order.tolist()
    assert moved.source_rows.tolist() == (order * 10).tolist()
    assert moved.classes.tolist() == (order * 100).tolist()
    nobody = reorder(Release.of(table), order)
    assert nobody.source_rows is None
    assert nobody.classes is None


def test_refusals_of_the_method_itself_come_through():
    class Choosy(Mean):
        """Refuse."""

        name = "choosy"

        def refuses(self, table):
            return super().refuses(table) or "choosy must have better data, got: these"

    with pytest.raises(RefusedError, match="better data"):
        protect(Step(Choosy(), ("income",)), numbers_table())


# ------------------------------------------------------------------------------------------ in and out


def test_a_recipe_says_itself():
    recipe = Recipe.of(
        Step(RankSwapping(window=3), ("@key", "pay"), ("sex",), "house"),
        Mdav(k=3, scale="range"),
        Step(CorrelatedNoise(), ("pay",)),
    )
    assert Recipe.from_list(recipe.to_list()) == recipe
    assert recipe.to_list()[0] == {
        "method": "rank-swapping", "columns": ["@key", "pay"], "within": ["sex"], "together": "house",
        "parameters": {"window": 3.0},
    }  # fmt: skip
    assert Recipe.from_list([]) == Recipe()
    assert Recipe.from_list([{"method": "mdav"}]) == Recipe.of(Mdav())


def test_a_plan_says_every_parameter_so_that_defaults_may_change():
    assert Step(RankSwapping()).to_dict()["parameters"] == {"window": 5.0}
    assert "parameters" not in Step(Mean()).to_dict()
    assert Step(Rounding(base=PerColumn(2.0, (("a", 1.0),)))).to_dict()["parameters"] == {
        "base": {"default": 2.0, "a": 1.0}
    }


def test_all_faults_of_a_list_of_steps_come_together():
    with pytest.raises(PlanError) as caught:
        Recipe.from_list(
            [
                {"method": "rank-swaping"},
                {"method": "rank-swapping", "parameters": {"window": 0, "windw": 3}},
                {"method": "rank-swapping", "parameters": {"window": 101}},
                {"colums": ["a"]},
                {"method": "mdav", "columns": "age", "within": [1], "together": 5, "parameters": []},
                {"method": "mdav"},
                "mdav",
            ]
        )
    first, *others = caught.value.faults
    assert first.startswith("step 1: there is no method `rank-swaping` (did you mean `rank-swapping`")
    assert tuple(others) == (
        "step 2: `window` of rank-swapping must be a number above 0 and at most 100, got: `0`",
        "step 2: there is no parameter of rank-swapping `windw`",
        (
            "step 3: `window` of rank-swapping must be a number above 0 and at most 100, got: `101` "
            "(it is a percentage of the records; 5 is the usual start)"
        ),
        "step 4: there is no setting `colums` (did you mean `columns`?)",
        "step 4: `method` is missing",
        "step 5: `columns` must be a list, got: str",
        "step 5: each item of `within` must be a text, got: int",
        "step 5: `together` must be a text, got: int",
        "step 5: `parameters` must be a table, got: list",
        "step 7: it must be a table, got: str",
    )


def test_a_fingerprint_is_taken_once(monkeypatch):
    taken = []
    to_dict = Step.to_dict
    monkeypatch.setattr(Step, "to_dict", lambda self: taken.append(1) or to_dict(self))
    step = Step(RankSwapping(), ("x",))
    recipe = Recipe((step,))
    assert {recipe.digest, recipe.digest, step.digest, step.digest} == {recipe.digest}
    assert len(taken) == 2  # of the recipe, and of the step alone
    assert replace(step, columns=("y",)).digest != step.digest


def test_numbers_that_are_taken_for_codes_have_a_way_out():
    schema = Schema((Column("trips", Kind.NOMINAL), Column("town", Kind.NOMINAL)))
    table = Table(pl.DataFrame({"trips": [1, 2, 3], "town": ["a", "b", "c"]}), schema)
    for name, way in (("trips", "if the numbers of `trips` are no codes"), ("town", "")):
        with pytest.raises(PlanError, match="protects continuous columns") as caught:
            Recipe((Step(CorrelatedNoise(), (name,)),)).apply(table, Run(seed=1))
        assert caught.value.hint.startswith(way)
        assert bool(caught.value.hint) == bool(way)

"""What protecting gives: the three shapes of a method, what is put back into a column, and composed releases."""

import json
import math
from dataclasses import replace
from datetime import date, datetime
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_series_equal

from sfumato.core.block_method import BlockMethod, cut
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Score, Status
from sfumato.core.method import ColumnMethod, Gives
from sfumato.core.release import MAIN, Provenance, Release
from sfumato.core.run import Progress, Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.engines.memory import MemoryEngine
from sfumato.errors import Cancelled, DataError, RefusedError, UnknownNameError
from sfumato.front import in_native
from sfumato.methods.microaggregation import Mdav
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from toys import (
    SECRET_NUMBER,
    SECRET_WORD,
    CentredNoise,
    Constant,
    Draw,
    Flipped,
    Mean,
    Rounding,
    Shift,
    Short,
    Standardised,
    Turned,
    numbers_table,
    table_of,
)

NAN = math.nan
NO_ROWS = np.arange(0)


def one(values, kind=Kind.CONTINUOUS, *, dtype=None, **facts):
    series = values if isinstance(values, pl.Series) else pl.Series(values, dtype=dtype)
    return Table(pl.DataFrame({"x": series}), Schema((Column("x", kind, **facts),)))


def protected(method, table, seed=1, **engine):
    return method.apply(table, Run(seed=seed, engine=MemoryEngine(**engine))).table.frame["x"]


# ----------------------------------------------------------------------------------------- column methods


@pytest.mark.parametrize(
    ("series", "kind", "facts"),
    [
        (pl.Series([3, 1, 2], dtype=pl.Int8), Kind.CONTINUOUS, {}),
        (pl.Series([3, 1, 2], dtype=pl.UInt64), Kind.CONTINUOUS, {}),
        (pl.Series([3.5, 1, 2], dtype=pl.Float32), Kind.CONTINUOUS, {}),
        (pl.Series([0.1, 0.2, 0.3]), Kind.CONTINUOUS, {}),
        (pl.Series([30, 10, 20]), Kind.ORDINAL, {}),
        (pl.Series([30, 10, 20]), Kind.ORDINAL, {"order": (10, 30, 20)}),
        (pl.Series(["b", "c", "a"]), Kind.NOMINAL, {}),
        (pl.Series(["b", "c", "a"], dtype=pl.Enum(["c", "b", "a"])), Kind.ORDINAL, {}),
        (pl.Series(["b", "c", "a"], dtype=pl.Categorical), Kind.NOMINAL, {}),
        (pl.Series([True, True, False]), Kind.NOMINAL, {}),
        (pl.Series([2**60 + 1, 2**60, 5]), Kind.NOMINAL, {}),
        (pl.Series([date(2020, 1, 3), date(1950, 1, 1), date(2020, 1, 2)]), Kind.DATE, {}),
        (
            pl.Series([datetime(2020, 1, 3, 8, 1, 2, 3), datetime(2020, 1, 1), datetime(1900, 1, 2)]),  # noqa: DTZ001
            Kind.DATE,
            {},
        ),
        (pl.Series([1700000000123456789, 5, 1700000000123456701]).cast(pl.Datetime("ns")), Kind.DATE, {}),
        (pl.Series([1, 2, 3]).cast(pl.Datetime("ms", "Europe/Berlin")), Kind.DATE, {}),
        (pl.Series(["2020-01-03", "1950-01-01", "2020-01-02"]), Kind.DATE, {}),
    ],
    ids=lambda value: str(value.dtype) if isinstance(value, pl.Series) else None,
)
def test_a_method_that_only_moves_values_keeps_them_and_their_type(series, kind, facts):
    """To the last nanosecond, and as dates or words where the original has them."""
    turned = protected(Turned(), one(series, kind, **facts))
    assert_series_equal(
        turned, series.reverse(), check_names=False
    )  # lists of Python's dates end at microseconds


@pytest.mark.parametrize(
    ("values", "kind", "facts", "expected"),
    [
        ([1.0, None, 3.0, math.nan, 4.0], Kind.CONTINUOUS, {}, [4.0, None, 3.0, math.nan, 1.0]),
        ([1, -9, 3, None, 4], Kind.CONTINUOUS, {"missing": (-9,)}, [4, -9, 3, None, 1]),
        (["a", ".", "c", None], Kind.NOMINAL, {"missing": (".",)}, ["c", ".", "a", None]),
        (
            ["2020-01-01", ".", "2020-01-02"],
            Kind.DATE,
            {"missing": (".",)},
            ["2020-01-02", ".", "2020-01-01"],
        ),
        (
            [date(2020, 1, 1), None, date(2020, 1, 2)],
            Kind.DATE,
            {},
            [date(2020, 1, 2), None, date(2020, 1, 1)],
        ),
        ([5, None], Kind.ORDINAL, {"order": (5, 6)}, [5, None]),
    ],
)
def test_missing_values_stay_where_and_what_they_are(values, kind, facts, expected):
    assert str(protected(Turned(), one(values, kind, **facts)).to_list()) == str(expected)


def test_an_author_sees_only_values_that_are_there():
    views = []

    class Watching(ColumnMethod):
        """Look."""

        name = "watching"
        title = "Watching"
        kinds = frozenset(Kind)

        def protect_column(self, column, rng):
            views.append(column)
            return column.values

    table = Table(
        pl.DataFrame({"x": [5.0, None, -9.0, 7.0], "y": ["b", "a", None, "b"], "w": [1.0, 2.0, 3.0, 4.0]}),
        Schema(
            (
                Column("x", Kind.CONTINUOUS, missing=(-9,)),
                Column("y", Kind.ORDINAL, order=("b", "a")),
                Column("w", Kind.CONTINUOUS, Role.WEIGHT),
            )
        ),
    ).aimed_at(["x", "y"])
    Watching().apply(table, Run(seed=1))
    first, second = views
    assert first.values.tolist() == [5.0, 7.0]
    assert first.weights.tolist() == [1.0, 4.0]
    assert first.categories is None
    assert second.values.tolist() == [0, 1, 0]
    assert second.weights.tolist() == [1.0, 2.0, 4.0]
    assert second.categories.to_list() == ["b", "a"]
    assert len(second) == 3


def test_whole_numbers_stay_whole_only_where_nothing_is_lost():
    assert protected(Mean(), one([1, 3])).to_list() == [2, 2]
    assert protected(Mean(), one([1, 3])).dtype == pl.Int64
    assert protected(Mean(), one([1, 2])).to_list() == [1.5, 1.5]
    assert protected(Constant(number=300), one([1, 2], dtype=pl.Int8)).to_list() == [300.0, 300.0]
    assert protected(Constant(number=-1), one([1, 2], dtype=pl.UInt8)).to_list() == [-1.0, -1.0]
    holes = protected(Mean(), one([1, None, 2, -9], missing=(-9,)))
    assert holes.to_list() == [1.5, None, 1.5, -9.0]


@pytest.mark.parametrize("code", [2, -2, 0.5, 1e9, 99])
def test_a_code_that_stands_for_no_category_is_an_error(code):
    """Cut to a whole number or wrapped round, it would be somebody's category."""
    with pytest.raises(DataError) as caught:
        protected(Constant(number=code), one(["a", SECRET_WORD, None], Kind.NOMINAL))
    assert caught.value.message == "`x` must be given codes of its 2 categories, got: 2 values that are none"


def test_a_method_may_suppress_by_minus_one():
    assert protected(Constant(number=-1), one(["a", "b"], Kind.NOMINAL)).to_list() == [None, None]
    assert protected(Constant(number=1), one(["a", "b"], Kind.NOMINAL)).to_list() == ["b", "b"]


def test_a_method_that_loses_records_is_caught():
    with pytest.raises(DataError, match="short must return 3 values, got: 2"):
        protected(Short(), one([1, None, 2, 3]))


def test_a_column_of_nothing_is_not_shown_to_a_method():
    assert protected(Short(), one([None, None], dtype=pl.Int64)).to_list() == [None, None]
    assert protected(Mean(), one([], dtype=pl.Float64)).to_list() == []


def test_refusing_names_columns_and_kinds_only():
    table = Table(
        pl.DataFrame({"x": [SECRET_WORD], "y": [1.0]}),
        Schema((Column("x", Kind.NOMINAL), Column("y", Kind.CONTINUOUS))),
    )
    with pytest.raises(RefusedError) as caught:
        Mean().apply(table, Run(seed=1))
    assert caught.value.message == "mean must be given continuous columns, got: `x` (nominal)"
    assert caught.value.exit_code == 2


def test_each_column_has_a_stream_of_its_own():
    table = table_of({"a": [0.0] * 5, "b": [0.0] * 5})
    both = Draw().apply(table, Run(seed=1)).table.frame
    assert both["a"].to_list() != both["b"].to_list()
    alone = Draw().apply(table.aimed_at(["b"]), Run(seed=1)).table.frame
    assert alone["b"].to_list() == both["b"].to_list()
    assert alone["a"].to_list() == [0.0] * 5


def test_shapes_are_told_apart():
    assert [cls.shape() for cls in (Mean, Standardised, Mdav)] == ["column", "block", "table"]
    described = Rounding.describe()
    assert described["drive"] is None
    assert json.loads(json.dumps(Mdav.describe())) == Mdav.describe()


# ------------------------------------------------------------------------------------------ block methods


@pytest.fixture(params=[1, 2, 3, 4, 65536])
def block_records(request):
    return request.param


def test_rounds_over_blocks_by_hand(block_records):
    """Mean of 1, 2, 6, 7 is 4; absolute deviations 3, 2, 2, 3 have mean 2.5; the hole stays."""
    table = one([1.0, 2.0, None, 6.0, 7.0])
    assert protected(Standardised(), table, block_records=block_records).to_list() == [
        -1.2,
        -0.8,
        None,
        0.8,
        1.2,
    ]


def test_a_later_pass_draws_what_an_earlier_one_drew(block_records):
    """Noise is centred by the sum the first pass took: only the same draws in the same block give nought."""
    values = np.arange(10.0)
    noisy = protected(CentredNoise(), one(values), block_records=block_records).to_numpy()
    assert not np.allclose(noisy, values)
    np.testing.assert_allclose((noisy - values).sum(), 0, atol=1e-12)


def test_blocks_have_streams_of_their_own():
    noise = protected(CentredNoise(), one([0.0] * 9), block_records=3).to_numpy().reshape(3, 3)
    assert not np.allclose(noise[0], noise[1])
    assert not np.allclose(noise[1], noise[2])


@given(st.integers(0, 30), st.integers(1, 12))
def test_blocks_are_cut_without_loss(records, size):
    blocks = cut(one(np.arange(float(records))), size)
    assert [block.index for block in blocks] == list(range(math.ceil(records / size)))
    assert [v for block in blocks for v in block.values[:, 0]] == list(range(records))
    assert all(len(block) == size for block in blocks[:-1])


def test_blocks_carry_their_weights():
    table = Table(
        pl.DataFrame({"x": [1.0, 2.0, 3.0], "w": [1, 2, 3]}),
        Schema((Column("x", Kind.CONTINUOUS), Column("w", Kind.CONTINUOUS, Role.WEIGHT))),
    ).aimed_at(["x"])
    assert [block.weights.tolist() for block in cut(table, 2)] == [[1.0, 2.0], [3.0]]
    assert [block.values.tolist() for block in cut(table, 2)] == [[[1.0], [2.0]], [[3.0]]]


@pytest.mark.parametrize(
    ("series", "kind", "facts", "expected"),
    [
        (
            pl.Series(["low", "high", None, "mid"]),
            Kind.ORDINAL,
            {"order": ("low", "mid", "high")},
            ["high", "low", None, "mid"],
        ),
        (pl.Series([30, 10, None, 20]), Kind.ORDINAL, {}, [10, 30, None, 20]),
        (pl.Series(["b", "a", "."]), Kind.NOMINAL, {"missing": (".",)}, ["a", "b", "."]),
        (
            pl.Series([date(2020, 1, 1), date(2020, 1, 3)]),
            Kind.DATE,
            {},
            [date(2020, 1, 3), date(2020, 1, 1)],
        ),
        (pl.Series(["2020-01-01", "2020-01-03"]), Kind.DATE, {}, ["2020-01-03", "2020-01-01"]),
    ],
)
def test_a_block_method_gives_back_words_and_not_their_codes(series, kind, facts, expected, block_records):
    flipped = protected(Flipped(), one(series, kind, **facts), block_records=block_records)
    assert flipped.dtype == series.dtype
    assert flipped.to_list() == expected


WEIGHTED = Table(
    pl.DataFrame(
        {
            "x": ["c", "a", None, "b", "a"],
            "w": [1.0, 2.0, 3.0, 4.0, 5.0],
            "note": [10, 11, 12, 13, 14],
        }
    ),
    Schema(
        (
            Column("x", Kind.ORDINAL, order=("c", "b", "a"), hierarchy="tree"),
            Column("w", Kind.CONTINUOUS, Role.WEIGHT),
            Column("note", Kind.NOMINAL),
        )
    ),
    targets=("x",),
)


def test_a_block_is_a_small_table():
    """Chosen columns and the weight, with their schema; a code means the same in every block."""
    first, second, third = cut(WEIGHTED, 2)
    assert first.table.names == ("x", "w")
    assert first.names == ("x",)
    assert first.table.schema["x"] == WEIGHTED.schema["x"]
    assert first.categories["x"].to_list() == ["c", "b", "a"]
    np.testing.assert_array_equal(
        np.vstack([first.values, second.values, third.values])[:, 0], [0, 2, NAN, 1, 2]
    )
    assert [block.weights.tolist() for block in (first, second, third)] == [[1, 2], [3, 4], [5]]
    assert [len(block) for block in (first, second, third)] == [2, 2, 1]


def test_bad_weights_are_counted_over_all_blocks():
    bad = replace(WEIGHTED, frame=WEIGHTED.frame.with_columns(w=pl.Series([1.0, 0.0, 1.0, 1.0, -1.0])))
    with pytest.raises(DataError, match="the weight `w` is not a positive number in 2 records"):
        cut(bad, 2)


class ByBlock(BlockMethod):
    """Give what a function makes of a block."""

    name = "by-block"
    title = "By block"
    kinds = frozenset(Kind)
    rounds = 0
    gives = Gives(other_records=True)
    work: ClassVar = None

    def protect_block(self, block, summaries, run):
        return type(self).work(block)


def by_block(work, table=WEIGHTED, size=2):
    method = type("Made", (ByBlock,), {"work": staticmethod(work)})()
    return method.apply(table, Run(seed=1, engine=MemoryEngine(size)))


def test_a_block_may_leave_records_out():
    """The last of each block of two is dropped: 0, 2 and 4 stay, with all that belongs to them."""
    release = by_block(lambda block: Release.of(block.table.take(np.array([0])), source_rows=np.array([0])))
    assert release.source_rows.tolist() == [0, 2, 4]
    assert release.table.frame.rows() == [("c", 1.0, 10), (None, 3.0, 12), ("a", 5.0, 14)]
    assert release.table.names == WEIGHTED.names
    nobody = by_block(lambda block: Release.of(block.table.take(NO_ROWS), source_rows=NO_ROWS))
    assert len(nobody.table) == 0
    assert nobody.table.frame.schema == WEIGHTED.frame.schema


def test_a_block_may_give_other_kinds_weights_and_columns():
    def work(block):
        table = block.table.with_values(
            "x", pl.Series([7.5] * len(block)), column=Column("x", Kind.CONTINUOUS)
        ).with_values("w", pl.Series(2 * block.weights))
        mark = Column("mark", Kind.NOMINAL)
        table = table.with_values("mark", pl.Series([block.index] * len(block)), column=mark)
        return Release.of(
            table, source_rows=np.arange(len(block)), classes=np.zeros(len(block), dtype=np.int64)
        )

    release = by_block(work)
    assert release.table.names == ("x", "w", "note", "mark")
    assert release.table.schema["x"].kind is Kind.CONTINUOUS
    assert release.table.frame["w"].to_list() == [2, 4, 6, 8, 10]
    assert release.table.frame["mark"].to_list() == [0, 0, 1, 1, 2]
    assert release.classes.tolist() == [0, 0, 1, 1, 2]  # the classes of two blocks are not one


def test_a_column_that_a_block_leaves_out_is_gone():
    """It would leave as it came if the rest of the table brought it back."""
    release = by_block(lambda block: Release.of(block.table.select(["w"]), source_rows=np.arange(len(block))))
    assert release.table.names == ("w", "note")


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda block: block.values[1:], "got: a block of another shape"),
        (lambda block: block.values[:, :0], "got: a block of another shape"),
        (
            lambda block: Release.unchanged(block.table) if block.index else block.values,
            "got: a block of another shape",
        ),
        (lambda block: Release.of(block.table), "got: no source rows"),
    ],
)
def test_what_a_block_must_not_give(work, message):
    with pytest.raises(DataError, match=message):
        by_block(work)


def test_columns_travel_alone():
    """The view has all that a column method may look at, and nothing of the other columns."""
    sent = []

    class Ear(MemoryEngine):
        def map(self, work, items, *, records=0):
            for item in items:
                sent.append(item)
                yield work(item)

    tree = object()
    Turned().apply(WEIGHTED, Run(seed=1, engine=Ear(), resources={"tree": tree}))
    ((view, chance),) = sent
    assert chance == Run(seed=1).random_key("x")
    assert view.column == WEIGHTED.schema["x"]
    assert view.missing.tolist() == [False, False, True, False, False]
    assert view.values.tolist() == [0, 2, 1, 2]
    assert view.weights.tolist() == [1, 2, 4, 5]
    assert view.hierarchy is tree


def test_a_block_method_on_nothing():
    assert len(protected(Standardised(), one([], dtype=pl.Float64))) == 0


def test_progress_of_blocks_ends_at_its_total():
    heard = []
    Standardised().apply(
        one([1.0, 2.0, 3.0]), Run(seed=1, engine=MemoryEngine(2), progress=Progress(report=heard.append))
    )
    assert [(event.done, event.total) for event in heard] == [(i, 6) for i in range(1, 7)]


def test_any_shape_can_be_stopped():
    for method in (Mean(), Standardised(), Mdav(k=2)):
        with pytest.raises(Cancelled):
            method.apply(one([1.0, 2.0]), Run(seed=1, progress=Progress(stopped=lambda: True)))
    calls = []
    run = Run(seed=1, progress=Progress(report=calls.append, stopped=lambda: len(calls) >= 2))
    with pytest.raises(Cancelled):
        Mean().apply(table_of({name: [1.0] for name in "abcdef"}), run)
    assert len(calls) == 2


def test_a_resource_is_used_and_a_missing_one_named():
    other = one([10.0, 20.0])
    run = Run(seed=1, resources={"population": other})
    assert Shift().apply(one([1.0, 2.0]), run).table.frame["x"].to_list() == [16.0, 17.0]
    with pytest.raises(UnknownNameError, match="there is no resource `population`"):
        Shift().apply(one([1.0]), Run(seed=1))


# ------------------------------------------------------------------------------------------------ releases


TABLE = numbers_table(6)


def test_composing_rows_by_hand():
    """The second step keeps rows 2, 0 of what the first kept as rows 5, 3, 1: the originals 1 and 5."""
    first = Release.of(
        TABLE.take(np.array([5, 3, 1])), source_rows=np.array([5, 3, 1]), classes=np.zeros(3, dtype=np.int64)
    )
    second = Release.of(first.table.take(np.array([2, 0])), source_rows=np.array([2, 0]))
    both = first.then(second)
    assert both.source_rows.tolist() == [1, 5]
    assert both.classes is None  # the later step vouches for nothing
    assert both.table is second.table


def test_synthetic_records_come_from_nobody_ever_after():
    kept = Release.unchanged(TABLE)
    synthetic = Release.of(TABLE)
    assert kept.then(synthetic).source_rows is None
    assert synthetic.then(kept).source_rows is None


def test_the_classes_of_the_last_step_hold():
    classes = np.arange(6)
    early = Release.of(TABLE, source_rows=np.arange(6), classes=classes)
    assert early.then(Release.unchanged(TABLE)).classes is None
    assert Release.unchanged(TABLE).then(early).classes is classes


def test_provenance_adds_up_and_holds_no_seed():
    first = Provenance("mean", {"k": 3}, ("a",), within=("s",), together="h", seconds=1.23456789)
    second = Provenance("draw", {}, ("b",))
    both = replace(Release.unchanged(TABLE), steps=(first,)).then(
        replace(Release.unchanged(TABLE), steps=(second,))
    )
    assert both.provenance == (first, second)
    assert json.loads(json.dumps(first.to_dict())) == {
        "method": "mean", "parameters": {"k": 3}, "columns": ["a"], "within": ["s"], "together": "h", "notes": [], "figures": {},
        "seconds": 1.234568,
    }  # fmt: skip
    assert replace(first, seconds=9.0) == first  # how long it took is no difference


def test_one_table_or_several():
    assert Release.of(TABLE).table is TABLE
    assert list(Release.of(TABLE).tables) == [MAIN]
    several = Release(tables={"keys": TABLE, "rest": TABLE})
    with pytest.raises(DataError) as caught:
        _ = several.table
    assert caught.value.message == "this release has 2 tables (keys, rest): choose one"


def test_no_array_is_made_of_records_that_stay():
    steps = [
        Step(Rounding(), ("age",)),
        Step(Mdav(k=2), ("age", "income")),
        Step(CentredNoise(), ("income",)),
    ]
    release = Recipe(tuple(steps)).apply(TABLE, Run(seed=1))
    assert release.origin.is_identity
    assert "rows" not in vars(release.origin)
    assert repr(release).startswith("Release(release: 6 records, 5 columns; rounding")


def test_data_comes_back_as_it_went_in():
    assert Release.of(TABLE).data.equals(TABLE.frame)
    assert in_native(Release.of(TABLE), lambda frame: frame.height).data == 6


def test_repr_shows_no_cell():
    table = table_of({"x": [SECRET_NUMBER]})
    release = Release.of(table, source_rows=np.array([918273645]), classes=np.array([918273645]))
    assert "918273645" not in repr(release)
    assert "918273645.5" not in repr(Evidence(table, release))


def test_evidence_of_a_release():
    release = Release.of(TABLE, source_rows=np.arange(6)[::-1], classes=np.arange(6))
    scenario = Scenario(columns=("age",))
    evidence = Evidence(TABLE, release, scenario=scenario, resources={"more": TABLE})
    assert evidence.original is TABLE
    assert evidence.protected is TABLE
    assert evidence.source_rows.tolist() == [5, 4, 3, 2, 1, 0]
    assert evidence.scenario is scenario
    assert evidence.resources == {"more": TABLE}
    assert Evidence(TABLE, release).scenario == Scenario()


# -------------------------------------------------------------------------------------------------- scores


def test_a_score_is_said_in_json_whatever_it_holds():
    """JSON has no NaN: a reader of the audit trail would stumble over it."""
    score = Score(
        math.nan,
        status=Status.NOT_ESTIMABLE,
        interval=(-math.inf, 1.0),
        by_column={"a": math.nan, "b": 0.5},
        by_record=np.array([1.0, math.nan]),
        baseline=math.inf,
        details={"records": 3, "word": "x", "share": math.nan},
    )
    said = score.to_dict(private=True)
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    assert said["value"] is None
    assert said["interval"] == [None, 1.0]
    assert said["by_column"] == {"a": None, "b": 0.5}
    assert said["details"] == {"records": 3, "word": "x", "share": None}
    assert said["by_record"] == [1.0, None]


def test_what_is_known_per_record_stays_private():
    score = Score(0.5, by_record=np.array([SECRET_NUMBER]))
    assert "by_record" not in score.to_dict()
    assert "91827" not in repr(score)

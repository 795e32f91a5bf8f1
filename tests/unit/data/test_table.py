"""A table: missing values, numbers, codes and fingerprints, for every type a column may come in."""

import math
import traceback
from datetime import date, datetime

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from sfumato.data import table as table_module
from sfumato.data.digest import BLOCK_RECORDS, block_digest, digest_of
from sfumato.data.generalised.intervals import intervals
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, PlanError, UnknownNameError, count_noun
from toys import SECRET_WORD

NAN = math.nan


def one(values, kind=Kind.CONTINUOUS, *, dtype=None, role=None, **facts):
    series = values if isinstance(values, pl.Series) else pl.Series(values, dtype=dtype, strict=False)
    return Table(pl.DataFrame({"x": series}), Schema((Column("x", kind, role, **facts),)))


# ------------------------------------------------------------------------------------------------ missing


@pytest.mark.parametrize(
    "codes", [(-9,), (-9.0,), ("-9",), ("-9", "."), (-9, 99.5), (-9, "."), (".", -9.0, 10**30)]
)
@pytest.mark.parametrize(
    "dtype",
    [
        pl.Int8,
        pl.Int64,
        pl.Int128,
        pl.Float32,
        pl.Float64,
        pl.Decimal(10, 2),
        pl.String,
        pl.Categorical,
        pl.Enum(["1", "-9", "2"]),
    ],
    ids=str,
)
def test_a_code_is_missing_whatever_type_it_and_the_column_have(dtype, codes):
    """−9, -9.0 and "-9" are one code in whatever type the column was read."""
    texts = pl.Series(["1", "-9", None, "2"])
    series = (
        texts.cast(dtype)
        if dtype in (pl.String, pl.Categorical, pl.Enum)
        else texts.cast(pl.Float64).cast(dtype)
    )
    table = one(series, missing=codes)
    assert table.missing("x").tolist() == [False, True, True, False]
    np.testing.assert_array_equal(table.numbers("x"), [1, NAN, NAN, 2])
    assert table.codes("x").codes.tolist() == [0, -1, -1, 1]


def test_a_number_written_as_text_is_a_code_of_numbers():
    assert one([1, -9], missing=("-9.0",)).missing("x").tolist() == [False, True]


def test_a_code_a_type_cannot_hold_is_nothing():
    """999 is no Int8 and 1.5 no whole number: neither may be cut to one that is in the data."""
    table = one([1, -25, 2, 103], dtype=pl.Int8, missing=(999, 1.5, 2.9, 231, -281))
    assert not table.missing("x").any()
    assert one([1, 0, 255], dtype=pl.UInt8, missing=(-1, 256)).missing("x").tolist() == [False] * 3


def test_a_decimal_code_in_a_narrow_float():
    assert one([1.5, -9.9], dtype=pl.Float32, missing=(-9.9,)).missing("x").tolist() == [False, True]


def test_large_whole_numbers_are_compared_exactly():
    big = 2**53
    assert one([big, big + 1, big + 2], dtype=pl.Int64, missing=(big + 1,)).missing("x").tolist() == [
        False,
        True,
        False,
    ]


def test_null_and_nan_are_missing_and_zero_is_not():
    assert one([0.0, NAN, None, -0.0]).missing("x").tolist() == [False, True, True, False]
    assert one(["", " ", None, "NA"], Kind.NOMINAL).missing("x").tolist() == [False, False, True, False]
    assert one([None, None]).missing("x").all()
    assert one([False, True, None], Kind.NOMINAL).missing("x").tolist() == [False, False, True]


def test_a_code_with_blanks_around_it():
    table = one(["1", " -9 ", "3", " ."], missing=(-9, "."))
    assert table.missing("x").tolist() == [False, True, False, True]
    np.testing.assert_array_equal(table.numbers("x"), [1, NAN, 3, NAN])


@pytest.mark.parametrize(
    "series",
    [
        pl.Series([date(2020, 1, 1), date(9999, 12, 31)]),
        pl.Series([datetime(2020, 1, 1, 8), datetime(9999, 12, 31)]),  # noqa: DTZ001
        pl.Series(["2020-01-01", "9999-12-31"]),
    ],
    ids=["date", "datetime", "text"],
)
def test_a_date_may_be_a_code(series):
    table = one(series, Kind.DATE, missing=("9999-12-31",))
    assert table.missing("x").tolist() == [False, True]
    assert np.isnan(table.numbers("x")).tolist() == [False, True]


def test_codes_of_another_column_do_not_count():
    table = Table(
        pl.DataFrame({"a": [-9, 1], "b": [-9, 1]}),
        Schema((Column("a", Kind.CONTINUOUS, missing=(-9,)), Column("b", Kind.CONTINUOUS))),
    )
    assert table.missing("a").tolist() == [True, False]
    assert table.missing("b").tolist() == [False, False]


# ------------------------------------------------------------------------------------------------ numbers


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([1, None, -3], pl.Int16, [1, NAN, -3]),
        ([True, False, None], pl.Boolean, [1, 0, NAN]),
        (["1", " 2.5 ", "-1e3", None], pl.String, [1, 2.5, -1000, NAN]),
        (["1", "2"], pl.Categorical, [1, 2]),
        (["2", "1"], pl.Enum(["2", "1"]), [2, 1]),
        ([2**53 - 1, 1 - 2**53], pl.Int64, [2.0**53 - 1, 1 - 2.0**53]),
        ([None, None], pl.Null, [NAN, NAN]),
        ([], pl.Float64, []),
        ([], pl.String, []),
    ],
)
def test_numbers(values, dtype, expected):
    numbers = one(values, dtype=dtype).numbers("x")
    assert numbers.dtype == np.float64
    np.testing.assert_array_equal(numbers, expected)


@pytest.mark.parametrize(
    ("values", "facts", "message"),
    [
        (["1", SECRET_WORD, ""], {}, "column `x` has 2 values that cannot be read as numbers"),
        (["1", "nan", "NaN", "3"], {}, "column `x` has 2 values that cannot be read as numbers"),
        (["1", "1,5"], {}, "column `x` has 1 value that cannot be read as numbers"),
        ([1.0, math.inf, -math.inf], {}, "column `x` has 2 infinite values"),
        (["1", "inf"], {}, "column `x` has 1 infinite value"),
        (
            [2**53 + 1],
            {},
            "column `x` has whole numbers from 2^53 on, which cannot be treated as numbers",
        ),
        (
            [-(2**60)],
            {},
            "column `x` has whole numbers from 2^53 on, which cannot be treated as numbers",
        ),
    ],
)
def test_what_is_no_number_is_counted_not_quoted(values, facts, message):
    with pytest.raises(DataError) as caught:
        one(values, **facts).numbers("x")
    assert caught.value.message == message
    assert caught.value.exit_code == 3
    said = "".join(traceback.format_exception(caught.value))
    assert SECRET_WORD not in said


def test_a_number_too_large_that_is_a_missing_code_does_no_harm():
    np.testing.assert_array_equal(one([1, 2**60], missing=(2**60,)).numbers("x"), [1, NAN])


def test_infinity_may_be_a_missing_code():
    np.testing.assert_array_equal(one([1.0, math.inf], missing=(math.inf,)).numbers("x"), [1, NAN])


def test_intervals_are_no_numbers():
    table = one([{"lo": 1, "hi": 2}])
    with pytest.raises(DataError, match="column `x` holds intervals, and this step needs exact numbers"):
        table.numbers("x")


@pytest.mark.parametrize("instants", [pl.Date, pl.Datetime("us"), pl.Datetime("ns")])
def test_intervals_are_no_dates(instants):
    ends = pl.Series([None, None], dtype=instants)
    with pytest.raises(DataError, match="column `x` holds intervals, and this step needs exact dates"):
        one(intervals(ends, ends), Kind.DATE).numbers("x")


def test_sets_have_no_order():
    with pytest.raises(DataError, match="is set, and this step needs a kind with an order"):
        one([["a"], ["b"]], Kind.SET).numbers("x")


def test_dates_are_days_or_microseconds():
    np.testing.assert_array_equal(one([date(1970, 1, 2), None], Kind.DATE).numbers("x"), [1, NAN])
    np.testing.assert_array_equal(one([datetime(1970, 1, 1, 0, 0, 1)], Kind.DATE).numbers("x"), [1e6])  # noqa: DTZ001
    np.testing.assert_array_equal(
        one(["1970-01-02", " 1970-01-03 ", None], Kind.DATE).numbers("x"), [1, 2, NAN]
    )


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        (["2020-01-01", SECRET_WORD], 1),
        ([SECRET_WORD, SECRET_WORD], 2),
        (["2020-02-30"], 1),
        (["01/02/2020", "13/02/2020"], 2),  # day or month first? A guess would be a wrong number
        (["2020-02-01", "13/02/2020"], 1),
        (["2020-02-01", "80-02-01"], 1),  # of which century?
        ([""], 1),
    ],
)
def test_what_is_no_date_is_counted_not_guessed(values, wrong):
    with pytest.raises(DataError) as caught:
        one(values, Kind.DATE).numbers("x")
    assert (
        str(caught.value)
        == f"column `x` has {count_noun(wrong, 'value')} that cannot be read as dates\n\nhint: write 2026-11-15"
    )


def test_a_missing_code_among_text_dates_is_no_fault():
    np.testing.assert_array_equal(one(["1970-01-02", "."], Kind.DATE, missing=(".",)).numbers("x"), [1, NAN])


def test_ordinals_are_their_position():
    table = one(["high", "low", None, "middle"], Kind.ORDINAL, order=("low", "middle", "high", "huge"))
    np.testing.assert_array_equal(table.numbers("x"), [2, 0, NAN, 1])
    np.testing.assert_array_equal(one([30, 10, 20], Kind.ORDINAL).numbers("x"), [2, 0, 1])


def test_matrix():
    table = Table(
        pl.DataFrame({"a": [1, None], "b": ["x", "y"]}),
        Schema((Column("a", Kind.CONTINUOUS), Column("b", Kind.NOMINAL))),
    )
    np.testing.assert_array_equal(table.matrix(["b", "a"]), [[0, 1], [1, NAN]])
    assert table.matrix([]).shape == (2, 0)


# -------------------------------------------------------------------------------------------------- codes


def test_codes_in_natural_and_in_declared_order():
    codes = one([10, 2, None, 10], Kind.ORDINAL).codes("x")
    assert (codes.codes.tolist(), codes.categories.to_list()) == ([1, 0, -1, 1], [2, 10])
    codes = one(["b", "a", "10", "9"], Kind.NOMINAL).codes("x")
    assert codes.categories.to_list() == ["10", "9", "a", "b"]
    codes = one(["b", "a"], Kind.ORDINAL, order=("c", "b", "a")).codes("x")
    assert (codes.codes.tolist(), codes.categories.to_list()) == ([1, 2], ["c", "b", "a"])


def test_an_enum_has_an_order_of_its_own():
    """An ordered pandas categorical comes in as an Enum; the alphabet would put high below low."""
    series = pl.Series(["low", "high", "middle"], dtype=pl.Enum(["low", "middle", "high"]))
    codes = one(series, Kind.ORDINAL).codes("x")
    assert codes.codes.tolist() == [0, 2, 1]
    assert codes.categories.to_list() == ["low", "middle", "high"]
    assert one(series, Kind.ORDINAL, order=("high", "middle", "low")).codes("x").codes.tolist() == [2, 0, 1]
    assert one(series.cast(pl.Categorical), Kind.NOMINAL).codes("x").categories.to_list() == [
        "high",
        "low",
        "middle",
    ]


@pytest.mark.parametrize(
    ("values", "order", "expected"),
    [
        ([1, 2], ("2", "1"), [1, 0]),
        ([1, 2], (2.0, 1.0), [1, 0]),
        (["1", "2"], (2, 1), [1, 0]),
        ([1.0, 2.0, NAN], (2, 1), [1, 0, -1]),
        (["1", "2", "10+"], (1, 2, "10+"), [0, 1, 2]),
        ([True, False], (1, 0), [0, 1]),
        ([1, 2], (1, 2, "10+"), [0, 1]),
        ([1.5, 1.0], (1, 1.5, 2), [1, 0]),
    ],
)
def test_an_order_may_be_written_in_another_type(values, order, expected):
    assert one(values, Kind.ORDINAL, order=order).codes("x").codes.tolist() == expected


def test_an_order_that_names_a_value_twice_in_the_type_of_the_column():
    """1 and 1.4 are two numbers and one whole number: as a lookup it would double the records."""
    with pytest.raises(DataError, match="lists 1 value again"):
        one([1, 2], Kind.ORDINAL, order=(1, 1.4, 2)).codes("x")


def test_values_outside_the_declared_order_are_counted():
    table = one(
        ["low", SECRET_WORD, SECRET_WORD, "other", None, "."],
        Kind.ORDINAL,
        order=("low", "high"),
        missing=(".",),
    )
    with pytest.raises(DataError) as caught:
        table.codes("x")
    assert caught.value.message == "`x` has 2 values outside its declared order"
    assert SECRET_WORD not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(DataError, match="has 3 values outside"):
        one([1, 2, 3], Kind.ORDINAL, order=("a", "b")).codes("x")


@pytest.mark.parametrize("dtype", [pl.Int64, pl.String, pl.Float64, pl.Enum(["a"]), pl.Null], ids=str)
@pytest.mark.parametrize("order", [(), (1, 2), ("a", "b")])
@pytest.mark.parametrize("values", [[], [None, None]])
def test_codes_of_nothing(values, order, dtype):
    codes = one(values, Kind.ORDINAL, dtype=dtype, order=order).codes("x")
    assert codes.codes.tolist() == [-1] * len(values)
    assert codes.codes.dtype == np.int64


@pytest.mark.parametrize(
    "series",
    [
        pl.Series([3, None, 1, 3]),
        pl.Series([2**60 + 1, 2**60, None]),
        pl.Series(["b", None, "a", "b", ""]),
        pl.Series([date(2020, 1, 2), None, date(2020, 1, 1)]),
        pl.Series([True, None, False]),
        pl.Series([1.5, None, 0.5]),
    ],
    ids=lambda series: str(series.dtype),
)
def test_decoding_undoes_coding(series):
    codes = one(series, Kind.NOMINAL).codes("x")
    assert codes.decode(codes.codes).to_list() == series.to_list()


# ----------------------------------------------------------------------------------------------- weights


def test_weights():
    assert one([1.0]).weights is None
    np.testing.assert_array_equal(one([1, 2], role=Role.WEIGHT).weights, [1.0, 2.0])


@pytest.mark.parametrize(("values", "bad"), [([1, 0], 1), ([-1.0, NAN, None, 2.0], 3), ([0.0, 0.0], 2)])
def test_bad_weights_are_counted(values, bad):
    with pytest.raises(DataError, match=f"the weight `x` is not a positive number in {bad} record"):
        _ = one(values, role=Role.WEIGHT).weights


# ------------------------------------------------------------------------------------------------- digest


def hidden(series):
    """Hide the last value: the memory under the null still holds it."""
    arrow = series.to_arrow()
    mask = pa.array([False] * (len(series) - 1) + [True])
    if pa.types.is_struct(arrow.type):
        parts = [arrow.field(i) for i in range(arrow.type.num_fields)]
        return pl.Series(pa.StructArray.from_arrays(parts, fields=list(arrow.type), mask=mask))
    validity = pa.py_buffer(np.packbits(~np.asarray(mask), bitorder="little").tobytes())
    children = [arrow.values] if pa.types.is_large_list(arrow.type) else None
    buffers = [validity, *arrow.buffers()[1 : 2 if children else None]]
    return pl.Series(pa.Array.from_buffers(arrow.type, len(arrow), buffers, children=children))


def digest(values, name="x", **more):
    series = values if isinstance(values, pl.Series) else pl.Series(values, **more)
    return Table(pl.DataFrame({name: series}), Schema((Column(name, Kind.NOMINAL),))).digest


def test_the_width_of_a_number_does_not_count():
    """A CSV gives Int64 where a Parquet file has Int8: the same data, hence the same noise."""
    whole = {
        digest([1, None, 200], dtype=dtype)
        for dtype in (pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt64, pl.Int128)
    }
    assert len(whole) == 1
    assert digest([1.5, None], dtype=pl.Float32) == digest([1.5, None], dtype=pl.Float64)
    words = ["b", None, "a"]
    assert digest(words) == digest(words, dtype=pl.Categorical) == digest(words, dtype=pl.Enum(["a", "b"]))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pl.Series([1, 2]), pl.Series([2, 1])),
        (pl.Series([1, 0]), pl.Series([1, None])),
        (pl.Series([1.0, 0.0]), pl.Series([1.0, None])),
        (pl.Series([NAN]), pl.Series([None], dtype=pl.Float64)),
        (pl.Series([1.0]), pl.Series([math.nextafter(1.0, 2.0)])),
        (pl.Series([2**53]), pl.Series([2**53 + 1])),
        (pl.Series([2**63], dtype=pl.UInt64), pl.Series([2**63 + 1], dtype=pl.UInt64)),
        (pl.Series([2**70], dtype=pl.Int128), pl.Series([2**70 + 1], dtype=pl.Int128)),
        (pl.Series([1, 2]).cast(pl.Decimal(10, 2)), pl.Series([100, 200])),
        (pl.Series([1, 2]).cast(pl.Decimal(10, 2)), pl.Series([1, 3]).cast(pl.Decimal(10, 2))),
        (pl.Series(["ab", "c"]), pl.Series(["a", "bc"])),
        (pl.Series(["", "abc"]), pl.Series([None, "abc"])),
        (pl.Series(["a\x00", "b"]), pl.Series(["a", "\x00b"])),
        (pl.Series(["é"]), pl.Series(["e\u0301"])),
        (pl.Series(["1"]), pl.Series([1])),
        (pl.Series([True, False]), pl.Series([False, True])),
        (pl.Series([date(2020, 1, 1)]), pl.Series([date(2020, 1, 2)])),
        (pl.Series([[1], [2, 3]]), pl.Series([[1, 2], [3]])),
        (pl.Series([[], [1]], dtype=pl.List(pl.Int64)), pl.Series([None, [1]], dtype=pl.List(pl.Int64))),
        (pl.Series([[], [1]], dtype=pl.List(pl.Int64)), pl.Series([[None], [1]], dtype=pl.List(pl.Int64))),
        (pl.Series([["a", "b"]]), pl.Series([["b", "a"]])),
        (pl.Series([{"lo": 1, "hi": 2}]), pl.Series([{"lo": 2, "hi": 1}])),
        (pl.Series([{"lo": None, "hi": 2}]), pl.Series([None], dtype=pl.Struct({"lo": pl.Int64, "hi": pl.Int64}))),
        (pl.Series([[1, 2]], dtype=pl.Array(pl.Int64, 2)), pl.Series([[2, 1]], dtype=pl.Array(pl.Int64, 2))),
        (pl.Series([b"\xff"]), pl.Series([b"\xfe"])),
        (pl.Series([1]), pl.Series([1, 0])),
        (pl.Series([None, None]), pl.Series([None])),
    ],
)  # fmt: skip
def test_other_data_have_another_fingerprint(first, second):
    assert digest(first) != digest(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pl.Series([1, 2, 3, 4]), pl.concat([pl.Series([1]), pl.Series([2, 3]), pl.Series([4])], rechunk=False)),
        (pl.Series([2, 3]), pl.Series([1, 2, 3, 4])[1:3]),
        (pl.Series([[2], [3, 4]]), pl.Series([[1], [2], [3, 4], [5]])[1:3]),
        (pl.Series(["a", "b"]), pl.Series(["b", "a", "b"], dtype=pl.Enum(["b", "a"]))[1:]),
        (pl.Series(["a", "b"]), pl.Series(["a", "b"], dtype=pl.Enum(["b", "unused", "a"]))),
        (pl.Series(["b", "a"]), pl.Series(["a", "b", "a"], dtype=pl.Categorical)[1:]),
        (pl.Series([NAN]), -pl.Series([NAN])),
        (pl.Series([1, None]), hidden(pl.Series([1, 2]))),
        (pl.Series([1.5, None]), hidden(pl.Series([1.5, NAN]))),
        (pl.Series(["a", None]), hidden(pl.Series(["a", "secret"]))),
        (pl.Series([[1], None]), hidden(pl.Series([[1], [2, 3]]))),
        (pl.Series([{"lo": 1}, None]), hidden(pl.Series([{"lo": 1}, {"lo": 2}]))),
        (pl.Series([None, None], dtype=pl.Int64), pl.Series([None, None], dtype=pl.String)),
    ],
)  # fmt: skip
def test_how_the_memory_lies_does_not_count(first, second):
    assert digest(first) == digest(second)


@pytest.mark.parametrize("records", [0, 1, 65_535, 65_536, 65_537, 3 * 65_536, 200_000])
def test_a_stream_of_blocks_has_the_fingerprint_of_the_table(records):
    """Whoever reads a file block by block, and forgets each, has the digest of the whole."""
    frame = pl.DataFrame({"b": np.arange(records), "a": np.arange(records) % 7 / 3}).with_columns(
        c=pl.when(pl.col("b") % 5 > 0).then(pl.col("b").cast(pl.String))
    )
    table = Table(frame, Schema(tuple(Column(name, Kind.NOMINAL) for name in frame.columns)))
    stream = (frame.slice(start, BLOCK_RECORDS).clone() for start in range(0, records + 1, BLOCK_RECORDS))
    assert digest_of(["a", "b", "c"], stream) == table.digest


def test_blocks_count_in_order():
    names, first, second = ["x"], pl.DataFrame({"x": [1] * 8}), pl.DataFrame({"x": [2] * 8})
    found = {
        digest_of(names, blocks) for blocks in ([first, second], [second, first], [first], [first, first], [])
    }
    assert len(found) == 5
    assert block_digest(first) != block_digest(second)


def test_the_order_of_columns_does_not_count_but_their_names_do():
    frame = pl.DataFrame({"a": [1, 2], "b": [3, 4]})
    schema = Schema((Column("a", Kind.NOMINAL), Column("b", Kind.NOMINAL)))
    table = Table(frame, schema)
    assert table.digest == table.select(["b", "a"]).digest
    assert table.digest != table.select(["a"]).digest
    swapped = Table(frame.rename({"a": "b", "b": "a"}), schema)
    assert swapped.digest != table.digest
    assert digest([1], "a") != digest([1], "b")


def test_a_hole_counts_at_every_place():
    digests = {digest([None if i == hole else 0 for i in range(20)], dtype=pl.Int64) for hole in range(21)}
    assert len(digests) == 21


def test_fingerprints_of_nothing():
    for dtype in (
        pl.Int64,
        pl.String,
        pl.List(pl.Int64),
        pl.Struct({"lo": pl.Int64}),
        pl.Null,
        pl.Date,
        pl.Enum(["a"]),
    ):
        assert len(digest([], dtype=dtype)) == 32
    assert len(Table(pl.DataFrame(), Schema(())).digest) == 32


def test_schema_and_targets_do_not_count():
    table = one([1, 2])
    assert table.digest == one([1, 2], Kind.NOMINAL, missing=(1,)).digest == table.aimed_at(["x"]).digest


# -------------------------------------------------------------------------------------------- the rest


def test_a_notebook_is_shown_columns_and_no_cell():
    table = Table(
        pl.DataFrame({"town": ["Sentinelham"]}),
        Schema((Column("town", Kind.NOMINAL, Role.KEY, label="Home"),)),
    )
    for shown in (table._repr_html_(), table.schema._repr_html_()):
        assert "<td>town</td><td>nominal</td><td>key</td><td>Home</td>" in shown
        assert "Sentinelham" not in shown


def test_repr_shows_no_cell():
    table = one([SECRET_WORD], Kind.NOMINAL)
    assert repr(table) == str(table) == "Table(1 records, 1 columns)"


def test_faults_of_the_schema_come_together():
    with pytest.raises(PlanError) as caught:
        Table(
            pl.DataFrame({"a": [SECRET_WORD], "b": [[1]]}),
            Schema((Column("b", Kind.DATE), Column("c", Kind.NOMINAL))),
        )
    assert len(caught.value.faults) == 3
    assert SECRET_WORD not in str(caught.value)


def test_targets():
    table = Table(
        pl.DataFrame({"b": [1], "a": [2], "c": [3]}),
        Schema(tuple(Column(name, Kind.CONTINUOUS) for name in "bac")),
    )
    assert table.chosen == ("a", "b", "c")
    assert table.aimed_at(["c", "a"]).chosen == ("a", "c")
    assert table.aimed_at(["c", "a"]).select(["b", "c"]).chosen == ("c",)
    with pytest.raises(UnknownNameError):
        table.aimed_at(["d"])


@pytest.mark.parametrize("name", ["*", "^x", "x$", "a.b", "nul\x00"])
def test_a_name_is_no_pattern(name):
    """polars would read * as all columns, so that dropping the others would release them."""
    frame = pl.DataFrame({"x": [1], name: [2]})
    table = Table(frame, Schema(tuple(Column(each, Kind.CONTINUOUS) for each in frame.columns)))
    chosen = table.select([name])
    assert chosen.frame.columns == [name]
    assert chosen.numbers(name).tolist() == [2.0]


def test_take_select_and_with_values_leave_the_original():
    table = one([1, 2, 3])
    assert table.take(np.array([2, 0, 2])).frame["x"].to_list() == [3, 1, 3]
    assert len(table.take(np.array([], dtype=np.int64))) == 0
    changed = table.with_values(
        "x", pl.Series("other name", ["a", "b", "c"]), column=Column("x", Kind.NOMINAL)
    )
    assert changed.frame.columns == ["x"]
    assert changed.schema["x"].kind is Kind.NOMINAL
    assert table.frame["x"].to_list() == [1, 2, 3]
    with pytest.raises(PlanError):
        table.with_values("x", pl.Series([date(2020, 1, 1)] * 3))


@pytest.mark.parametrize("length", [0, 1, 2, 4])
def test_values_of_another_length_are_never_stretched(length):
    with pytest.raises(Exception, match=r"length|height|broadcast"):
        one([1, 2, 3]).with_values("x", pl.Series([7] * length, dtype=pl.Int64))


def test_a_row_that_is_not_there_is_no_other_row():
    """−1 must not mean the last record, as it would in numpy."""
    for rows in ([-1], [3]):
        with pytest.raises(Exception, match=r"bounds|conversion"):
            one([1, 2, 3]).take(np.array(rows))


def test_what_a_table_remembers_nobody_changes_and_other_columns_keep_it(monkeypatch):
    schema = Schema((Column("x", Kind.CONTINUOUS), Column("town", Kind.NOMINAL)))
    table = Table(pl.DataFrame({"x": [1.0, None, 3.0], "town": ["b", "a", "b"]}), schema)
    for make in (
        lambda: table.numbers("x"),
        lambda: table.missing("x"),
        lambda: table.codes("town").codes,
    ):
        before = make()
        make()[:] = 0
        np.testing.assert_array_equal(make(), before)
    made = []
    asked = table.aimed_at(["x"]).select(["x", "town"])
    assert asked.remember("town", "thing", lambda: made.append(1) or "thing") == "thing"
    changed = table.with_values("x", pl.Series([4.0, 5.0, 6.0]))
    assert changed.remember("town", "thing", lambda: made.append(1) or "thing") == "thing"
    assert made == [1]
    np.testing.assert_array_equal(changed.numbers("x"), [4, 5, 6])
    np.testing.assert_array_equal(table.take(np.array([2])).numbers("x"), [3])
    monkeypatch.setattr("sfumato.data.table._KEPT_BYTES", 0)
    fresh = Table(table.frame, schema)
    np.testing.assert_array_equal(fresh.numbers("x"), fresh.numbers("x"))
    assert not any(fresh._memory.values())


def test_a_frame_is_checked_against_its_schema_only_where_one_of_them_is_new(monkeypatch):
    asked, measured = [], []
    faults_with, bytes_of = Schema.faults_with, table_module._bytes_of
    monkeypatch.setattr(
        Schema, "faults_with", lambda self, frame: asked.append(1) or faults_with(self, frame)
    )
    monkeypatch.setattr(table_module, "_bytes_of", lambda made: measured.append(1) or bytes_of(made))
    schema = Schema((Column("x", Kind.CONTINUOUS), Column("town", Kind.NOMINAL)))
    table = Table(pl.DataFrame({"x": [1.0, 2.0], "town": ["b", "a"]}), schema)
    part = table.aimed_at(["x"]).select(["x", "town"]).take(np.array([1]))
    assert (len(asked), part.targets, part.names) == (1, ("x",), ("x", "town"))
    for _ in range(3):  # what is remembered is measured once, whatever is remembered besides
        for name in ("x", "town"):
            table.aimed_at(["x"]).missing(name)
            table.codes(name)
    assert len(measured) == 6  # missing, categories and codes of both
    table.with_values("x", pl.Series([3.0, 4.0]))
    assert len(asked) == 2
    with pytest.raises(UnknownNameError):
        table.aimed_at(["z"])


def test_a_table_that_is_aimed_elsewhere_keeps_its_fingerprint(monkeypatch):
    table = one([1.0, 2.0])
    assert table.digest == table.take(np.array([0, 1])).digest != table.take(np.array([0])).digest
    monkeypatch.setattr(table_module, "digest_of", None)  # which is not asked again
    assert table.aimed_at(["x"]).digest == table.digest

"""Columns in files: the same values, nothing left behind, and a sentence where the disk is full."""

import errno
import gc
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal, assert_series_equal

from sfumato.data.column_pieces import PIECEWISE, ColumnPieces
from sfumato.data.column_store import (
    ColumnStore,
    active_store,
    collect,
    count_values,
    distinct_values,
    gather,
    map_pieces,
    series_of,
    store_columns,
)
from sfumato.engines.stream import memory_in_use
from sfumato.errors import WriteError


@pytest.fixture
def store(tmp_path):
    with ColumnStore(tmp_path, min_records=1).active() as active:
        yield active


MIXED = pl.DataFrame({
    "whole": [3, None, -5],
    "number": [0.5, float("nan"), None],
    "text": ["", None, "a text that is longer than a short one"],
    "day": [date(2026, 1, 2), None, date(1900, 1, 1)],
    "truth": [True, None, False],
    "range": [{"lo": 1.0, "hi": 2.0}, None, {"lo": None, "hi": 5.0}],
    "set": [["a", "b"], [], None],
    "money": [Decimal("1.20"), None, Decimal("-3.40")],
    "category": pl.Series(["x", None, "y"], dtype=pl.Categorical),
    "empty": pl.Series([None, None, None], dtype=pl.Null),
})  # fmt: skip


def test_every_type_comes_back_as_it_was(store, tmp_path):
    kept = store.keep(MIXED)
    assert_frame_equal(kept, MIXED)
    assert kept.schema == MIXED.schema
    assert not list(tmp_path.iterdir())  # the files are gone as soon as they are mapped


@given(st.lists(st.one_of(st.none(), st.floats(), st.just(-0.0))), st.lists(st.one_of(st.none(), st.text())))
def test_random_columns_come_back_to_the_last_bit(tmp_path_factory, numbers, texts):
    store = ColumnStore(tmp_path_factory.mktemp("scratch"), min_records=1)
    series = pl.Series("n", numbers, dtype=pl.Float64)
    kept = store.keep_column(series)
    assert kept.is_null().to_list() == series.is_null().to_list()
    assert kept.fill_null(0).to_numpy().tobytes() == series.fill_null(0).to_numpy().tobytes()
    words = pl.Series("t", texts, dtype=pl.String)
    assert store.keep_column(words).to_list() == words.to_list()


def test_a_column_in_a_file_is_not_written_again(store, monkeypatch):
    kept = store.keep(MIXED)
    monkeypatch.setattr(store, "write_column", lambda series: pytest.fail(f"{series.name} was written again"))
    monkeypatch.setattr(store, "join_pieces", lambda pieces: pytest.fail("a column was written again"))
    again = store.keep(kept)
    assert_frame_equal(
        store.keep(again.with_columns(pl.col("whole").alias("same"))), again.with_columns(same="whole")
    )


def test_it_forgets_what_no_table_holds(store):
    kept = store.keep_column(MIXED["number"])
    assert len(store._starts) == 1
    del kept
    gc.collect()
    assert not store._starts
    assert not store._ends


def test_files_and_rooms_are_for_their_owner_alone(store, tmp_path, monkeypatch):
    modes, mapped = [], store._map
    monkeypatch.setattr(store, "_map", lambda path: modes.append(path.stat().st_mode & 0o777) or mapped(path))
    store.keep_column(MIXED["whole"])
    store.collect_column(pl.LazyFrame({"text": ["a text that is longer than a short one"] * 3}))
    store.keep_column(MIXED["range"])
    assert modes == [0o600] * 4


def test_a_full_disk_is_a_sentence(store, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_ipc", full)
    monkeypatch.setattr(ColumnPieces, "append", full)
    for name in ("whole", "range"):
        with pytest.raises(WriteError, match="scratch folder is full"):
            store.keep_column(MIXED[name])
    assert not list(tmp_path.iterdir())


def test_texts_are_read_row_by_row_into_columns(store, tmp_path):
    path = tmp_path / "x.csv"
    pl.DataFrame({"a": ["1", None, "late"] * 1000, "*": ["x"] * 3000}).write_csv(path)
    lazy = pl.scan_csv(path, infer_schema=False)
    assert_frame_equal(collect(lazy, by_rows=True), lazy.collect())
    assert [each.name for each in tmp_path.iterdir()] == ["x.csv"]


def test_without_a_store_nothing_is_written(tmp_path):
    assert active_store() is None
    assert store_columns(MIXED) is MIXED


def test_few_records_stay_in_memory(tmp_path):
    store = ColumnStore(Path("nowhere"))
    assert store.keep(MIXED) is MIXED


@pytest.mark.skipif(sys.platform != "linux", reason="arrays lie in files on Linux only")
def test_large_arrays_lie_in_a_file_and_hold_the_same(tmp_path):
    with ColumnStore(tmp_path).active():
        before, numbers = memory_in_use(), np.arange(10_000_000)
        squares = numbers.astype(np.float64) ** 2
        zeros, few = np.zeros(10_000_000), np.ones(10)
        grown = np.arange(1_000_000)
        grown.resize(5_000_000, refcheck=False)
        assert memory_in_use() - before < 50_000_000
        assert not list(tmp_path.iterdir())
    assert (squares[-1], zeros.sum(), few.sum()) == (9_999_999.0**2, 0.0, 10.0)  # they outlive the store
    assert (grown[999_999], grown[1_000_000:].sum()) == (999_999, 0)
    assert np.array_equal(np.sort(squares[::-1]), squares)

    def is_open():
        return any(str(tmp_path) in str(each.readlink()) for each in files if each.is_symlink())

    files = list(Path("/proc/self/fd").iterdir())
    assert is_open()
    del numbers, squares, zeros, grown
    assert not is_open()


@pytest.mark.skipif(sys.platform != "linux", reason="arrays lie in files on Linux only")
def test_an_array_that_the_disk_has_no_room_for_is_a_sentence(tmp_path):
    with pytest.raises(WriteError, match="scratch folder is full"), ColumnStore(tmp_path).active():
        np.empty(2**56, dtype=np.int8)


@pytest.mark.skipif(sys.platform != "linux", reason="arrays lie in files on Linux only")
def test_arrays_that_are_small_beside_the_limit_stay_in_memory(tmp_path):
    for memory, is_in_file in ((None, True), (10**9, True), (10**11, False)):
        with ColumnStore(tmp_path, memory=memory).active():
            assert lies_in_file(np.ones(5_000_000)) == is_in_file


def lies_in_file(array):
    """Whether an array is mapped from a file, as the system has it (what it counts may lag behind)."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        place, _, _, _, inode, *_ = line.split()
        start, end = (int(each, 16) for each in place.split("-"))
        if start <= array.ctypes.data < end:
            return inode != "0"
    raise AssertionError("it lies nowhere")


def random_column(dtype, n, chance):
    gone = chance.random(n) < chance.choice([0, 0.3])
    if dtype == pl.String:
        lengths = chance.integers(0, 40, n)
        letters = chance.choice(list("aé漢𝄞"), n)
        values = [letter * int(length) for letter, length in zip(letters, lengths, strict=True)]
    else:
        values = pl.Series(chance.integers(0, 100, n)).cast(dtype).to_list()
    return pl.Series("c", [None if hole else value for hole, value in zip(gone, values, strict=True)], dtype)


@pytest.mark.parametrize("row_group", [3, 50, 1000])
@pytest.mark.parametrize("dtype", PIECEWISE, ids=str)
def test_a_column_that_is_read_in_pieces_is_that_of_the_file(tmp_path, dtype, row_group, monkeypatch):
    store, path = ColumnStore(tmp_path, min_records=7), tmp_path / "x.parquet"
    random_column(dtype, 500, np.random.default_rng(row_group)).to_frame().write_parquet(
        path, row_group_size=row_group
    )
    lazy = pl.scan_parquet(path)
    monkeypatch.setattr(store, "keep_column", lambda series: pytest.fail("it was in memory as a whole"))
    with store.active():
        kept = collect(lazy)
    assert_frame_equal(kept, lazy.collect())
    assert store._has(kept["c"])
    assert [each.name for each in tmp_path.iterdir()] == ["x.parquet"]
    assert_frame_equal(
        kept.reverse().filter(pl.col("c").is_not_null()).sort("c"), lazy.collect().drop_nulls().sort("c")
    )


def test_a_disk_that_fills_up_while_a_column_is_read_is_a_sentence(store, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    MIXED.select("whole").write_parquet(tmp_path / "x.parquet")
    monkeypatch.setattr(ColumnPieces, "append", full)
    with pytest.raises(WriteError, match="scratch folder is full"):
        collect(pl.scan_parquet(tmp_path / "x.parquet"))
    assert [each.name for each in tmp_path.iterdir()] == ["x.parquet"]


def test_an_array_becomes_a_column_with_its_last_bits(store):
    for values in (np.array([0.5, np.nan, -0.0]), np.array([2**62, -1]), np.arange(9, dtype=np.int32)[::2]):
        made = series_of(values)
        assert (made.dtype, made.to_numpy().tobytes()) == (pl.Series(values).dtype, values.tobytes())
        assert not made.null_count()


def test_what_is_made_piece_by_piece_is_what_is_made_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.data.column_store._PIECE", 7)
    numbers = pl.Series("n", [*range(40), None, 3])
    words = pl.Series("w", ["a", "bé", "a text that is longer than a view", ""])
    for make in (
        lambda each: each.cast(pl.Float64),
        lambda each: each.cast(pl.Int8).alias("small"),
        lambda each: words.gather(each % 4),
        lambda each: words.cast(pl.Categorical).gather(each % 4),
    ):
        with ColumnStore(tmp_path, min_records=2).active():
            found = map_pieces(numbers, make)
        assert_series_equal(found, make(numbers))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("dtype", [*PIECEWISE, pl.Categorical, pl.Date, pl.Struct], ids=str)
def test_records_are_gathered_piece_by_piece_as_at_once(tmp_path, dtype, monkeypatch):
    """Texts that several pieces share, that only some share, and that none does."""
    monkeypatch.setattr("sfumato.data.column_store._PIECE", 7)
    chance = np.random.default_rng(3)
    if dtype == pl.Struct:
        ends = [
            random_column(pl.Int64, 60, np.random.default_rng(i)).alias(each) for i, each in enumerate("ab")
        ]
        column = pl.DataFrame(ends).to_struct("c")
    elif dtype == pl.Categorical:
        column = random_column(pl.String, 60, chance).cast(pl.Categorical)
    else:
        column = random_column(dtype, 60, chance)
    longer = pl.concat([column.slice(0, 20), column.slice(20, 40)])  # texts in two buffers or more
    for places in (np.arange(50), np.arange(50)[::-1], chance.integers(0, 60, 90), np.repeat([1, 40], 20)):
        with ColumnStore(tmp_path, min_records=2).active():
            assert_series_equal(gather(longer, places), column.gather(places))
    assert_series_equal(gather(column, np.arange(9)), column.slice(0, 9))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("dtype", [*PIECEWISE, pl.Categorical, pl.Date, pl.Boolean], ids=str)
def test_distinct_values_of_pieces_are_those_of_the_whole(tmp_path, dtype, monkeypatch):
    """Few values that come again, and as many as records; with missing ones."""
    monkeypatch.setattr("sfumato.data.column_store._PIECE", 7)
    chance = np.random.default_rng(4)
    text_or_own = pl.String if dtype == pl.Categorical else dtype
    column = random_column(text_or_own, 60, chance).cast(dtype)
    for each in (column, column.gather(chance.integers(0, 5, 90)), column.clear(), column.slice(0, 1)):
        with ColumnStore(tmp_path, min_records=2).active():
            found, counts = distinct_values(each), count_values(each)
        assert_frame_equal(counts, each.alias("value").value_counts(name="n"), check_row_order=False)
        assert found.dtype == each.dtype
        assert len(found) == each.n_unique()
        assert set(found.cast(pl.String).to_list()) == set(each.cast(pl.String).to_list())

"""Frames of other packages come in, and go out as what they were."""

from __future__ import annotations

import datetime as dt
import sys

import numpy as np
import polars as pl
import pytest

from sfumato.data.generalised.intervals import intervals
from sfumato.errors import DataError, MissingDependencyError
from sfumato.io import to_native, to_polars

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

SECRET = "Xanthippe"


def pandas_frame():
    return pd.DataFrame(
        {
            "n": [3, 1, 2],
            "x": [1.5, np.nan, 2.0],
            "f32": np.array([1, 2, 3], dtype=np.float32),
            "t": ["a", None, "b"],
            "object": pd.Series(["a", None, "c"], dtype=object),
            "nullable": pd.array([1, None, 3], dtype="Int64"),
            "small": pd.array([1, None, 3], dtype="UInt8"),
            "flag": [True, False, True],
            "maybe": pd.array([True, None, False], dtype="boolean"),
            "ordered": pd.Categorical(["lo", "hi", None], categories=["lo", "mid", "hi"], ordered=True),
            "category": pd.Categorical(["u", "v", None], categories=["v", "u", "w"]),
            "coded": pd.Categorical([1, 2, None]),
            "time": pd.to_datetime(["2026-01-01", None, "2026-01-03"]).astype("datetime64[ns]"),
            "zone": pd.to_datetime(["2026-01-01", None, "2026-01-03"]).tz_localize("Europe/Berlin"),
            "day": pd.Series([dt.date(2026, 1, 1)] * 3, dtype=object),
        }
    )


def test_pandas_comes_back_as_it_was_but_for_categories_that_nobody_has():
    frame = pandas_frame()
    inside, native = to_polars(frame)
    shown = frame.assign(
        **{name: frame[name].cat.remove_unused_categories() for name in ("ordered", "category")}
    )
    pd.testing.assert_frame_equal(to_native(inside, native), shown, check_index_type=False)


def test_what_pandas_calls_missing_is_missing():
    inside, _ = to_polars(pandas_frame())
    for name in ("x", "t", "object", "nullable", "maybe", "ordered", "category", "coded", "time", "zone"):
        assert inside[name].null_count() == 1, name
    assert inside["ordered"].dtype == pl.Enum(["lo", "mid", "hi"])
    assert inside["coded"].dtype == pl.Int64


def test_values_that_no_longer_fit_are_not_lost():
    frame = pandas_frame()
    inside, native = to_polars(frame)
    changed = inside.with_columns(
        pl.Series("n", [2**60 + 1, None, 2]),
        pl.Series("x", ["a", "b", None]),
        pl.Series("category", ["new", "v", None]).cast(pl.Categorical),
        pl.Series("flag", [None, True, False]),
        pl.Series("added", [1, 2, 3]),
    ).drop("t")
    out = to_native(changed, native)
    assert out["n"].tolist() == [2**60 + 1, pd.NA, 2]
    assert out["category"].tolist()[:2] == ["new", "v"]
    assert out["x"].tolist()[:2] == ["a", "b"]
    assert out["flag"].isna().sum() == 1
    assert "t" not in out
    assert out["added"].tolist() == [1, 2, 3]


def test_records_are_counted_by_place_not_by_label():
    frame = pd.DataFrame({"n": [3, 1, 2]})
    for other in (frame.sort_values("n"), frame[frame["n"] > 1], frame.iloc[[0, 0]]):
        inside, native = to_polars(other)
        assert inside["n"].to_list() == other["n"].tolist()
        assert isinstance(to_native(inside, native).index, pd.RangeIndex)


@pytest.mark.parametrize(
    "index",
    [
        pd.Index([1, 2, 3], name="person"),
        pd.Index([SECRET, "b", "c"]),
        pd.MultiIndex.from_tuples([(1, 2), (1, 3), (2, 3)]),
        pd.DatetimeIndex(["2026-01-01", "2026-01-02", "2026-01-03"]),
    ],
)
def test_an_index_that_says_something_is_refused(index):
    with pytest.raises(DataError) as caught:
        to_polars(pd.DataFrame({"n": [3, 1, 2]}, index=index))
    assert "reset_index() to keep it as a column" in caught.value.hint
    assert SECRET not in str(caught.value)


def test_an_empty_frame():
    inside, native = to_polars(pd.DataFrame({"a": pd.Series([], dtype="int64")}))
    assert inside.height == len(to_native(inside, native)) == 0


def test_names_must_be_distinct_texts():
    for columns in ([1, 2], ["a", None], [("a", "b"), ("a", "c")], ["", "a"]):
        with pytest.raises(DataError, match="names of columns must be text"):
            to_polars(pd.DataFrame([[1, 2]], columns=columns))
    with pytest.raises(DataError, match="2 columns have only 1 different name"):
        to_polars(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_a_mixture_of_types_is_named_not_shown():
    mixed = [1, SECRET, None]
    for data in (pd.DataFrame({"ok": [1, 2, 3], "bad": mixed}), {"ok": [1, 2, 3], "bad": mixed}):
        with pytest.raises(DataError, match="mix values of several types: `bad`") as caught:
            to_polars(data)
        assert SECRET not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None


def test_odd_things_are_refused():
    with pytest.raises(DataError, match="dates or truth values: `period`"):
        to_polars(pd.DataFrame({"period": pd.period_range("2026-01", periods=3, freq="M")}))
    with pytest.raises(DataError, match="several types: `z`"):
        to_polars(pd.DataFrame({"z": [1 + 2j, 3j]}))
    with pytest.raises(DataError, match="have different lengths"):
        to_polars({"a": [1], "b": [1, 2]})
    for data in ([1, 2], "data.csv", np.zeros((2, 2)), None, pd.Series([1])):
        with pytest.raises(DataError, match="cannot be used\n\nhint: give a frame"):
            to_polars(data)


def test_arrow_comes_back_as_it_was():
    table = pa.table(
        {
            "n": pa.array([1, None], pa.int16()),
            "t": ["a", None],
            "d": pa.array(["x", "y"]).dictionary_encode(),
            "day": [dt.date(2026, 1, 1), None],
        }
    )
    inside, native = to_polars(table)
    out = to_native(inside, native)
    assert isinstance(out, pa.Table)
    assert out.schema.types == table.schema.types
    assert out.to_pydict() == table.to_pydict()


def test_polars_dicts_and_structured_arrays():
    frame = pl.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    inside, native = to_polars(frame)
    assert inside is frame
    assert to_native(inside, native) is frame
    inside, native = to_polars(frame.lazy())
    assert isinstance(to_native(inside, native), pl.LazyFrame)
    inside, native = to_polars({"a": np.array([1, 2]), "b": ["x", "y"]})
    assert inside.equals(frame)
    assert to_native(inside, native)["a"].tolist() == [1, 2]
    array = np.array([(1, "x"), (2, "y")], dtype=[("a", "i8"), ("b", "U3")])
    inside, native = to_polars(array)
    assert inside.equals(frame)
    assert to_native(inside, native)["b"].tolist() == ["x", "y"]


def test_generalised_values_go_out_in_text_form():
    inside, native = to_polars(pd.DataFrame({"age": [25, 31]}))
    out = to_native(inside.with_columns(intervals([20, 31], [29, 31], name="age")), native)
    assert out["age"].tolist() == ["[20;29]", "31"]


def test_a_missing_package_is_named(monkeypatch):
    inside, native = to_polars(pd.DataFrame({"a": [1]}))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match="needs the package `pandas`") as caught:
        to_native(inside, native)
    assert "sfumato[frames]" in caught.value.hint

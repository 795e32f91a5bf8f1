"""The frames of other packages come in here and go out again as what they were.

Records are counted by their place, never by a label: an unnamed index of whole numbers (a filtered or sorted
pandas frame has one) is passed over, and a frame that goes out carries no labels of its original records.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

import polars as pl

from sfumato.data.generalised.intervals import is_interval
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.generalised.text_forms import to_text
from sfumato.errors import DataError, MissingDependencyError, count_noun, quoted
from sfumato.io.addresses import name_beside

if TYPE_CHECKING:
    import narwhals as nw

Package = Literal["polars", "polars-lazy", "pandas", "pyarrow", "numpy", "dict"]

#: What the packages raise at values that they do not know; their text may quote cells.
_UNCONVERTIBLE = (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError, NotImplementedError)

_ACCEPTED = (
    "a frame of polars or pandas, a table of pyarrow, a structured array of numpy or a dict of columns"
)


@dataclass(frozen=True)
class Native:
    """What the data were before they came in: the package, and each column's type there and in polars."""

    package: Package
    dtypes: Mapping[str, Any] = field(default_factory=dict)
    schema: Mapping[str, pl.DataType] = field(default_factory=dict)

    def keeps_dtype(self, name: str, dtype: pl.DataType) -> bool:
        """Whether a column went in and comes out with the same type."""
        return name in self.dtypes and self.schema.get(name) == dtype


def to_polars(data: object) -> tuple[pl.DataFrame, Native]:
    """Take in the data of another package, with a note of what they were for `to_native`.

    Parameters
    ----------
    data
        A frame of polars (lazy or not) or pandas, a table of pyarrow, a structured array of numpy or a dict
        of columns. A NaN in a pandas frame is a missing value.
    """
    package = _package_of(data)
    names = _names_of(data, package)
    wrong = sum(not isinstance(name, str) or not name for name in names)
    if wrong:
        raise DataError(
            f"the names of columns must be text, got: {count_noun(wrong, 'name')} of another type",
            hint="rename them: frame.columns = [str(name) for name in frame.columns]",
        )
    if len(set(names)) != len(names):
        raise DataError(f"{len(names)} columns have only {count_noun(len(set(names)), 'different name')}")
    if package == "pandas":
        _require_plain_index(data)
    frame = _convert_or_raise(data, package)
    _require_plain_types(frame)
    return frame, Native(package, _dtypes_of(data, package), dict(frame.schema))


def to_native(frame: pl.DataFrame, native: Native, *, nodes: Mapping[str, Nodes] | None = None) -> Any:
    """Give a frame back as what the data were when they came in.

    Columns keep the type they had in that package where their values allow it. Outside polars and Arrow a
    generalised value goes out in its text form.
    """
    if native.package == "polars":
        return frame
    if native.package == "polars-lazy":
        return frame.lazy()
    if native.package == "pyarrow":
        return _to_arrow(frame, native)
    known = nodes or {}
    frame = frame.with_columns(
        to_text(series, known.get(series.name))
        for series in frame
        if is_interval(series.dtype) or series.name in known
    )
    if native.package == "pandas":
        return _to_pandas(frame, native)
    if native.package == "numpy":
        return frame.to_numpy(structured=True)
    return {series.name: series.to_numpy() for series in frame}


# Lazy frames ----------------------------------------------------------------------------------------------


def as_lazy(data: object) -> nw.LazyFrame[Any] | None:
    """What narwhals makes of a query that has not run (duckdb, ibis, pyspark, polars); None of all else."""
    import narwhals as nw

    found: object = nw.from_native(cast("Any", data), pass_through=True)
    return found if isinstance(found, nw.LazyFrame) else None


def first_records(frame: nw.LazyFrame[Any], rows: int) -> pl.DataFrame:
    """Run a query for some of its records."""
    return to_polars(frame.head(rows).collect("polars").to_native())[0]


def count_lazy(frame: nw.LazyFrame[Any], names: Collection[str]) -> pl.DataFrame:
    """Count the equal records in these columns where they are: how many stands in the last column.

    A collation that takes different texts for equal is refused: larger classes would understate a risk.
    """
    import narwhals as nw

    there = {name: dtype for name, dtype in frame.collect_schema().items() if name in names}
    texts = [name for name, dtype in there.items() if dtype == nw.String]
    if texts:
        looks = frame.select(_merges(nw.col(name)).any().alias(name) for name in texts)
        [found] = looks.collect("polars").to_native().rows(named=True)
        if merged := [name for name in texts if found[name]]:
            raise DataError(
                f"the database takes different texts for equal in {quoted(merged)}, by their collation",
                hint="cast them to a collation that compares bytes, or collect the frame",
            )
    grouped = frame.group_by(*there, drop_null_keys=False).agg(nw.len().alias(name_beside(there)))
    return to_polars(grouped.collect("polars").to_native())[0]


def _merges(text: nw.Expr) -> nw.Expr:
    """Whether texts are equal that differ by the case or accent of a letter, or by a blank at the end."""
    import narwhals as nw

    def with_first(letter: str) -> nw.Expr:
        return nw.concat_str([nw.lit(letter), text])

    blank = nw.concat_str([text, nw.lit(" ")])
    return (with_first("a") == with_first("A")) | (with_first("a") == with_first("á")) | (blank == text)


# In -------------------------------------------------------------------------------------------------------


def _package_of(data: object) -> Package:
    import narwhals as nw

    if isinstance(data, pl.DataFrame):
        return "polars"
    if isinstance(data, pl.LazyFrame):
        return "polars-lazy"
    if nw.dependencies.is_pandas_dataframe(data):
        return "pandas"
    if nw.dependencies.is_pyarrow_table(data):
        return "pyarrow"
    if nw.dependencies.is_numpy_array(data) and cast("Any", data).dtype.names:
        return "numpy"
    if isinstance(data, dict):
        return "dict"
    raise DataError(f"data of type `{type(data).__name__}` cannot be used", hint=f"give {_ACCEPTED}")


def _names_of(data: Any, package: Package) -> list[Any]:
    if package == "numpy":
        return list(data.dtype.names)
    if package == "dict":
        return list(data)
    if package == "polars-lazy":
        return data.collect_schema().names()  # type: ignore[no-any-return]
    return list(data.column_names if package == "pyarrow" else data.columns)


def _dtypes_of(data: Any, package: Package) -> dict[str, Any]:
    if package == "pandas":
        return dict(data.dtypes)
    if package == "pyarrow":
        return dict(zip(data.schema.names, data.schema.types, strict=True))
    return {}


def _require_plain_index(data: Any) -> None:
    import pandas as pd

    index = data.index
    labels = isinstance(index, pd.MultiIndex) or not pd.api.types.is_integer_dtype(index.dtype)
    if index.names != [None] or (labels and len(index)):
        raise DataError(
            "the index of the frame has a name or labels, and would be lost",
            hint="reset_index() to keep it as a column, reset_index(drop=True) to drop it",
        )


def _convert_or_raise(data: Any, package: Package) -> pl.DataFrame:
    try:
        return _convert(data, package)
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    except _UNCONVERTIBLE:
        wrong = [name for name in _names_of(data, package) if not _converts(data, name, package)]
    if not wrong:
        raise DataError("the columns have different lengths")
    raise DataError(
        f"columns mix values of several types: {quoted(wrong[:10])}",
        hint="turn them into text, or write missing values as None",
    )


def _convert(data: Any, package: Package) -> pl.DataFrame:
    if package == "polars":
        return cast("pl.DataFrame", data)
    if package == "polars-lazy":
        return cast("pl.DataFrame", data.collect())
    if package == "pandas":
        return _from_pandas(data)
    if package == "pyarrow":
        return cast("pl.DataFrame", pl.from_arrow(data))
    return pl.DataFrame(data, strict=True)


def _converts(data: Any, name: str, package: Package) -> bool:
    if package == "pyarrow":
        column: Any = data.select([name])
    elif package == "dict":
        column = {name: data[name]}
    else:
        column = data[[name]]
    try:
        _convert(column, package)
    except _UNCONVERTIBLE:
        return False
    return True


def _from_pandas(data: Any) -> pl.DataFrame:
    frame = pl.from_pandas(data, nan_to_null=True)
    # An ordered category goes in with its order, and with the values that nobody has.
    orders = {
        name: list(dtype.categories)
        for name, dtype in data.dtypes.items()
        if getattr(dtype, "ordered", False) and all(isinstance(value, str) for value in dtype.categories)
    }
    return frame.with_columns(
        pl.col(name).cast(pl.String).cast(pl.Enum(values)) for name, values in orders.items()
    )


def _require_plain_types(frame: pl.DataFrame) -> None:
    odd = [name for name, dtype in frame.schema.items() if _is_odd(dtype)]
    if odd:
        raise DataError(
            f"columns hold neither numbers nor text, dates or truth values: {quoted(odd[:10])}",
            hint="turn periods and other objects into text or dates first",
        )


def _is_odd(dtype: pl.DataType) -> bool:
    return dtype == pl.Object or type(dtype).__name__ == "Extension"


# Out ------------------------------------------------------------------------------------------------------


def _to_arrow(frame: pl.DataFrame, native: Native) -> Any:
    try:
        import pyarrow as pa
    except ModuleNotFoundError as error:
        raise _missing(error) from None

    table = frame.to_arrow()
    for place, (name, dtype) in enumerate(frame.schema.items()):
        if native.keeps_dtype(name, dtype):
            try:
                table = table.set_column(place, name, table.column(place).cast(native.dtypes[name]))
            except pa.ArrowException:  # the new values do not fit the old type: they go out as they are
                continue
    return table


def _to_pandas(frame: pl.DataFrame, native: Native) -> Any:
    try:
        import pandas as pd

        columns = {series.name: _pandas_column(series, native) for series in frame}
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    return pd.DataFrame(columns, index=pd.RangeIndex(frame.height), copy=False)


def _pandas_column(series: pl.Series, native: Native) -> Any:
    import pandas as pd

    gaps = series.null_count() > 0
    column: Any
    if series.dtype.is_integer() and gaps:
        column = pd.array(series.fill_null(0).to_numpy().copy(), dtype=str(series.dtype))
        column[series.is_null().to_numpy()] = pd.NA
    elif series.dtype == pl.Boolean and gaps:
        column = pd.array(series.to_list(), dtype="boolean")
    else:
        column = series.to_pandas()
    if not native.keeps_dtype(series.name, series.dtype):
        return pd.Series(column)
    return _restore_dtype(series, pd.Series(column), native.dtypes[series.name])


def _restore_dtype(series: pl.Series, column: Any, dtype: Any) -> Any:
    import pandas as pd

    if isinstance(dtype, pd.CategoricalDtype) and not column.dropna().isin(dtype.categories).all():
        return column  # a value that is no category of before would silently become missing
    if isinstance(dtype, pd.CategoricalDtype):
        return column.astype(dtype).cat.remove_unused_categories()  # one that nobody has was suppressed
    if column.dtype == dtype:
        return column
    if dtype == "object":
        return pd.Series(series.to_list(), dtype=object)
    try:
        return column.astype(dtype)
    except (TypeError, ValueError):  # whole numbers with gaps
        return column


def _missing(error: ModuleNotFoundError) -> MissingDependencyError:
    package = (error.name or "pyarrow").partition(".")[0]
    return MissingDependencyError.of(package, extra="frames", purpose="a pandas frame or an Arrow table")

r"""Generalised values: intervals, sets of values, and the wildcard.

A generalised column is one of two things in a polars frame.

*An interval column* is a ``Struct(lo, hi)`` of Int64, Float64, Date or Datetime, closed at both ends;
``lo == hi`` is an exact value. An end that is null (−∞ or ∞ for Float64) is unbounded, and unbounded on both
sides is the wildcard of an unknown domain. A null struct is a *missing* value, which the wildcard is not.

*A node column* is an ``Enum`` of labels, with a `Nodes` table that says which leaf values a label covers.
The label ``*`` is the wildcard and covers every leaf.

The text forms are ``[20;29]``, ``[65;]``, ``{Kern|Fresno}`` and ``*``; an exact value stands plainly. In
braces a backslash stands before each of ``\ | { }``. An exact text that would read as one of the forms,
begins with a backslash or is empty has one backslash in front: ``\*``, ``\[1;2]``, and ``\`` for "".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
from polars.datatypes import DataTypeClass

from sfumato.errors import DataError, ParameterError

WILDCARD = "*"
MISSING, UNSEEN = -1, -2  # the codes of a null and of a value that is no leaf

DType: TypeAlias = pl.DataType | DataTypeClass
Values: TypeAlias = pl.Series | npt.NDArray[Any] | Sequence[Any]
Bools: TypeAlias = npt.NDArray[np.bool_]
Codes: TypeAlias = npt.NDArray[np.int32]
Floats: TypeAlias = npt.NDArray[np.float64]

_TIMES = "%Y-%m-%dT%H:%M:%S%.f"
_INTERVAL = r"^\[([^;\[\]]*);([^;\[\]]*)\]$"
_WOULD_MISREAD = r"(?s)^(\*|\[.*\]|\{.*\}|\\.*|)$"
_SET = re.compile(r"\{((?:[^\\{}]|\\.)*)\}", re.DOTALL)
_SET_PIECE = re.compile(r"\\(.)|(\|)|([^\\|]+)", re.DOTALL)
_GUESSES: tuple[DType, ...] = (pl.Int64, pl.Float64, pl.Date, pl.Datetime("us"))


@dataclass(frozen=True, eq=False)
class Nodes:
    """Which leaf values each label of a node column covers.

    The members are one array of leaf indices cut by ``starts``: those of label ``i`` are
    ``members[starts[i]:starts[i + 1]]``, in ascending order.
    """

    leaves: pl.Series
    labels: pl.Series
    starts: npt.NDArray[np.int64]
    members: Codes

    @classmethod
    def of_pairs(cls, leaves: pl.Series, labels: pl.Series, codes: Codes, members: Codes) -> Nodes:
        """Build the table from pairs (code of a label, index of a leaf); the wildcard needs none."""
        wild = (labels == WILDCARD).to_numpy()
        n_leaves = max(len(leaves), 1)
        keys = codes.astype(np.int64) * n_leaves + members
        every_leaf = np.flatnonzero(wild)[:, None] * n_leaves + np.arange(len(leaves))
        keys = np.unique(np.concatenate([keys, every_leaf.ravel()]))
        sizes = np.bincount(keys // n_leaves, minlength=len(labels))
        n_empty = int(((sizes == 0) & ~wild).sum())
        n_repeated = len(leaves) - leaves.n_unique() + len(labels) - labels.n_unique()
        if n_empty or n_repeated:
            raise DataError(
                "the labels and leaves of a node table must be distinct and each label must cover a leaf, "
                f"got {n_repeated} repeated and {n_empty} that cover none"
            )
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return cls(leaves, labels, starts, (keys % n_leaves).astype(np.int32))

    @classmethod
    def of(cls, members: Mapping[str, Sequence[str]], *, leaves: Sequence[str]) -> Nodes:
        """Build the table from the member values of each label; the wildcard is added."""
        listed = {**members, WILDCARD: ()}
        known = pl.Series("leaves", leaves, dtype=pl.String)
        values = pl.Series([value for group in listed.values() for value in group], dtype=pl.String)
        found = match_leaves(values, known)
        if (found < 0).any():
            raise DataError(f"the members of a label must be leaves, got {(found < 0).sum()} that are not")
        codes = np.repeat(np.arange(len(listed), dtype=np.int32), [len(group) for group in listed.values()])
        return cls.of_pairs(known, pl.Series("labels", list(listed), dtype=pl.String), codes, found)

    @property
    def dtype(self) -> pl.Enum:
        """The dtype of a column of these labels."""
        return pl.Enum(self.labels)

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """The number of leaves that each label covers."""
        return np.diff(self.starts)

    def members_of(self, code: int) -> pl.Series:
        """The leaf values that the label with this code covers."""
        return self.leaves.gather(self.members[self.starts[code] : self.starts[code + 1]])

    def codes(self, column: pl.Series) -> Codes:
        """The position of each record's label in the table, −1 where it is missing."""
        codes = match_leaves(column.cast(pl.String), self.labels)
        if (codes == UNSEEN).any():
            raise DataError(
                f"the labels of `{column.name}` must be in its node table, "
                f"got {(codes == UNSEEN).sum()} records with others",
                hint="give the table that was made together with the column",
            )
        return codes

    def contains(self, codes: Codes, leaf_codes: Codes) -> Bools:
        """Whether the label of each code covers the leaf of each leaf code."""
        pairs = np.repeat(np.arange(len(self.labels)), self.sizes) * len(self.leaves) + self.members
        wanted = codes.astype(np.int64) * len(self.leaves) + leaf_codes
        return np.isin(wanted, pairs) & (codes >= 0) & (leaf_codes >= 0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Nodes):
            return NotImplemented
        return (
            self.leaves.to_list() == other.leaves.to_list()
            and self.labels.to_list() == other.labels.to_list()
            and np.array_equal(self.starts, other.starts)
            and np.array_equal(self.members, other.members)
        )

    def __hash__(self) -> int:
        return hash((len(self.leaves), len(self.labels), len(self.members)))

    def __repr__(self) -> str:
        # Counts only: leaves are values of the data, and a traceback may show this.
        return f"Nodes({len(self.labels)} labels of {len(self.leaves)} leaves)"


# Exact values: their text, and where they stand among the leaves ---------------------------------------


def on_distinct(column: pl.Series, function: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Apply ``function`` to the distinct values only; what is missing stays missing."""
    distinct = column.drop_nulls().unique()
    if len(distinct) == len(column):
        return function(column).alias(column.name)
    places = pl.Series(np.arange(len(distinct), dtype=np.uint32))
    codes = column.replace_strict(distinct, places, default=None, return_dtype=pl.UInt32)
    return function(distinct).gather(codes).alias(column.name)


def canonical_text(column: pl.Series) -> pl.Series:
    """Write exact values so that equal values have equal text (25 and 25.0: ``25``); NaN is missing."""
    dtype = column.dtype
    if dtype.is_nested() or dtype in {pl.Binary, pl.Object}:
        raise DataError(f"the values of `{column.name}` must be plain values, got {dtype.base_type()}")
    return on_distinct(column, _plain_text)


def _plain_text(values: pl.Series) -> pl.Series:
    if isinstance(values.dtype, pl.Decimal):
        values = values.cast(pl.Float64)
    if values.dtype.is_float():
        values = values.fill_nan(None)
        whole = ((values == values.floor()) & (values.abs() < 2.0**63)).fill_null(value=False)
        return values.cast(pl.Int64, strict=False).cast(pl.String).zip_with(whole, values.cast(pl.String))
    if isinstance(values.dtype, pl.Datetime):
        if values.dtype.time_zone is None:
            return values.dt.strftime(_TIMES)
        return values.dt.convert_time_zone("UTC").dt.strftime(f"{_TIMES}Z")
    return values.cast(pl.String)


def _parse_plain(texts: pl.Series, dtype: DType) -> pl.Series:
    """Read exact values; what does not read is null."""
    if dtype == pl.Date:
        return texts.str.to_date("%Y-%m-%d", strict=False)
    if isinstance(dtype, pl.Datetime):
        zone, texts = dtype.time_zone, texts.str.strip_suffix("Z")
        times = texts.str.to_datetime(_TIMES, time_unit=dtype.time_unit, strict=False)
        return times if zone is None else times.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    values = texts.cast(dtype, strict=False)
    return values.fill_nan(None) if values.dtype.is_float() else values


def match_leaves(values: pl.Series, leaves: pl.Series) -> Codes:
    """Find each value among the ``leaves``: its index, −1 where it is missing, −2 where it is no leaf.

    Numbers match by value: the leaf ``25``, ``25.0`` or ``025`` matches 25 and 25.0 (first as it is written,
    then as a number, if only one leaf is that number).
    """
    if n_repeated := len(leaves) - leaves.n_unique():  # polars would show which
        raise DataError(f"leaves must be distinct values, got {n_repeated} that repeat others")
    kind = pl.Enum(leaves)
    find: Callable[[pl.Series], pl.Series] = partial(_find_text, kind=kind)
    if values.dtype.is_numeric():
        whole, real = (leaves.cast(number, strict=False) for number in (pl.Int64, pl.Float64))
        number = _plain_text(whole).zip_with(whole.is_not_null(), _plain_text(real))
        places = pl.DataFrame({"number": number, "place": np.arange(len(leaves), dtype=np.int32)})
        find = partial(_find_number, kind=kind, places=places.drop_nulls().unique("number", keep="none"))
    missing = values.is_null() | values.is_nan() if values.dtype.is_float() else values.is_null()
    found = (
        on_distinct(values, find).fill_null(UNSEEN).zip_with(~missing, pl.Series([MISSING], dtype=pl.Int32))
    )
    return found.to_numpy()


def _find_text(values: pl.Series, *, kind: pl.Enum) -> pl.Series:
    return canonical_text(values).cast(kind, strict=False).to_physical().cast(pl.Int32)


def _find_number(values: pl.Series, *, kind: pl.Enum, places: pl.DataFrame) -> pl.Series:
    texts = _plain_text(values)
    as_written = texts.cast(kind, strict=False).to_physical().cast(pl.Int32)
    as_number = texts.replace_strict(places["number"], places["place"], default=None, return_dtype=pl.Int32)
    return as_written.zip_with(as_written.is_not_null(), as_number)


# Interval columns: made and taken apart ----------------------------------------------------------------


def is_interval(dtype: DType) -> bool:
    """Whether a column of this dtype holds intervals."""
    if not isinstance(dtype, pl.Struct) or [field.name for field in dtype.fields] != ["lo", "hi"]:
        return False
    lo, hi = (field.dtype for field in dtype.fields)
    return lo == hi and _end_dtype(lo) == lo


def _end_dtype(dtype: DType) -> DType | None:
    if dtype.is_integer():
        return pl.Int64
    if dtype.is_numeric():
        return pl.Float64
    return dtype if dtype == pl.Date or isinstance(dtype, pl.Datetime) else None


def intervals(lo: Values, hi: Values, *, missing: Values | None = None, name: str = "") -> pl.Series:
    """Make an interval column from its lower and upper ends; a null end is unbounded.

    ``missing`` marks the records whose value is missing; without it none is.
    """
    given = pl.DataFrame({"lo": pl.Series(lo, strict=False), "hi": pl.Series(hi, strict=False)})
    kinds = {_end_dtype(dtype) for dtype in given.dtypes if dtype != pl.Null} or {pl.Float64}
    kinds = {pl.Float64} if kinds == {pl.Int64, pl.Float64} else kinds
    dtype = next(iter(kinds))
    if dtype is None or len(kinds) > 1:
        raise DataError(
            f"both ends of the intervals `{name}` must be numbers, or dates or times of one kind, "
            f"got {given.dtypes[0]} and {given.dtypes[1]}"
        )
    ends = given.cast(dtype, strict=False)
    faulty = ends["lo"] > ends["hi"]
    for end in ends.columns:
        lost = ends[end].is_null() & given[end].is_not_null()
        faulty = faulty.fill_null(value=False) | lost | (ends[end].is_nan() if dtype == pl.Float64 else lost)
    if faulty.any():
        raise DataError(
            f"the intervals of `{name}` must run from a lower to an upper end, got {faulty.sum()} others",
            hint="an unbounded end is a null (not a NaN); a missing value is marked by `missing`",
        )
    gone = pl.repeat(False, len(ends), eager=True) if missing is None else pl.Series(missing)
    return _struct(ends.with_columns(missing=gone.cast(pl.Boolean))).alias(name)


def _struct(ends: pl.DataFrame) -> pl.Series:
    if ends.schema["lo"] == pl.Float64:
        ends = ends.with_columns(pl.col("lo").fill_null(-np.inf), pl.col("hi").fill_null(np.inf))
    return ends.select(pl.when(~pl.col("missing")).then(pl.struct("lo", "hi"))).to_series()


def exact_intervals(values: pl.Series) -> pl.Series:
    """Make an interval column of exact values; a null or NaN is a missing value."""
    values = values.fill_nan(None) if values.dtype.is_float() else values
    return intervals(values, values, missing=values.is_null(), name=values.name)


def wildcard_intervals(n: int, dtype: DType, *, domain: tuple[Any, Any] = (None, None)) -> pl.Series:
    """Make ``n`` wildcards: the whole ``domain``, or unbounded where that is not known."""
    lo, hi = (pl.Series([end], dtype=_end_dtype(dtype)).new_from_index(0, n) for end in domain)
    return intervals(lo, hi)


def ends(column: pl.Series) -> tuple[pl.Series, pl.Series]:
    """The lower and upper ends of an interval column, null where they are unbounded or missing."""
    if not is_interval(column.dtype):
        raise DataError(f"`{column.name}` must be an interval column, got {column.dtype.base_type()}")
    lo, hi = column.struct.field("lo"), column.struct.field("hi")
    if lo.dtype == pl.Float64:
        # An exact infinity is a value; only an end on its own side is unbounded.
        return lo.replace(-np.inf, None), hi.replace(np.inf, None)
    return lo, hi


# Text forms --------------------------------------------------------------------------------------------


def to_text(column: pl.Series, nodes: Nodes | None = None) -> pl.Series:
    """Write a column in text form; what is missing stays missing.

    A node column is written as the sets of its members with ``nodes``, and by its labels as they stand
    without. Any other column is one of exact values.
    """
    if is_interval(column.dtype):
        return _interval_texts(column)
    if nodes is not None:
        texts = pl.Series([*_node_texts(nodes), None], dtype=pl.String)  # code −1 is the last: missing
        return texts.gather(nodes.codes(column)).alias(column.name)
    return column.cast(pl.String) if isinstance(column.dtype, pl.Enum) else _escaped(canonical_text(column))


def _escaped(texts: pl.Series) -> pl.Series:
    return texts.str.replace(_WOULD_MISREAD, r"\${1}")


def _interval_texts(column: pl.Series) -> pl.Series:
    lo, hi = ends(column)
    exact = (column.struct.field("lo") == column.struct.field("hi")).fill_null(value=False)
    frame = pl.DataFrame({"lo": canonical_text(lo), "hi": canonical_text(hi)}).select(
        pl.when(column.is_null())
        .then(None)
        .when(exact)
        .then(canonical_text(column.struct.field("lo")))
        .when(pl.col("lo").is_null() & pl.col("hi").is_null())
        .then(pl.lit(WILDCARD))
        .otherwise(pl.format("[{};{}]", pl.col("lo").fill_null(""), pl.col("hi").fill_null("")))
    )
    return frame.to_series().alias(column.name)


def _node_texts(nodes: Nodes) -> list[str]:
    leaves, exact = nodes.leaves.to_list(), _escaped(nodes.leaves).to_list()
    texts = []
    for code, label in enumerate(nodes.labels):
        members = nodes.members[nodes.starts[code] : nodes.starts[code + 1]].tolist()
        if label == WILDCARD:
            texts.append(WILDCARD)
        else:
            texts.append(exact[members[0]] if len(members) == 1 else _set_text([leaves[i] for i in members]))
    return texts


def _set_text(members: Sequence[str]) -> str:
    return "{" + "|".join(re.sub(r"([\\|{}])", r"\\\1", member) for member in members) + "}"


def parse_intervals(text: pl.Series, dtype: DType | None = None) -> pl.Series:
    """Read an interval column from its text forms.

    Without ``dtype`` it is the first of Int64, Float64, Date and Datetime that reads every value.
    """
    asked = None if dtype is None else _end_dtype(dtype)
    if dtype is not None and asked is None:
        raise ParameterError(f"`dtype` of an interval column must be of numbers, dates or times, got {dtype}")
    distinct = text.drop_nulls().unique()
    faulty = distinct
    for kind in _GUESSES if asked is None else (asked,):
        faulty = distinct.filter(_read_intervals(distinct, kind)["faulty"])
        if faulty.is_empty():
            return on_distinct(text, partial(_intervals_of, dtype=kind))
    raise DataError(
        f"the texts of `{text.name}` must be intervals, exact values or `*`, "
        f"got {text.is_in(faulty.implode()).sum()} records with others",
        hint="an interval is written [lo;hi] with lo at most hi, decimals with a point, dates as 2020-12-31",
    )


def _intervals_of(texts: pl.Series, *, dtype: DType) -> pl.Series:
    return _struct(_read_intervals(texts, dtype))


def _read_intervals(texts: pl.Series, dtype: DType) -> pl.DataFrame:
    """The ends that each text states, null where it leaves one open, and whether the text is faulty."""
    boxed, wild = texts.str.contains(_INTERVAL), texts == WILDCARD
    faulty = texts == ""
    read = {}
    for group, end in enumerate(("lo", "hi"), start=1):
        stated = texts.str.extract(_INTERVAL, group).str.strip_chars(" ").zip_with(boxed, texts)
        open_end = wild | (boxed & (stated == ""))
        read[end] = _parse_plain(stated, dtype)
        faulty |= read[end].is_null() & ~open_end
    faulty |= (read["lo"] > read["hi"]).fill_null(value=False)
    return pl.DataFrame({**read, "faulty": faulty}).with_columns(missing=pl.lit(False))


def parse_nodes(text: pl.Series, leaves: Values | None = None) -> tuple[pl.Series, Nodes]:
    """Read a node column from its text forms; each label of the result is its own text form.

    Without ``leaves`` they are the values that the texts name, in alphabetical order.
    """
    stated = {form: _members(form) for form in text.drop_nulls().unique().sort()}
    named = sorted({value for members in stated.values() for value in members or ()})
    order = {leaf: place for place, leaf in enumerate(named if leaves is None else leaves)}
    faulty = [form for form, members in stated.items() if members is None or not order.keys() >= set(members)]
    if faulty:
        raise DataError(
            f"the texts of `{text.name}` must be values, sets {{a|b}} of values or `*`, "
            f"got {text.is_in(faulty).sum()} records that are malformed or name a value that is no leaf",
            hint="a value in braces that is no set is written with a backslash in front",
        )
    listed = dict(
        zip(_escaped(pl.Series(list(order), dtype=pl.String)), ([leaf] for leaf in order), strict=True)
    )
    exact = list(listed)
    labels = {}
    for form, members in stated.items():
        group = sorted(set(members or ()), key=order.__getitem__)
        label = WILDCARD if not group else exact[order[group[0]]] if len(group) == 1 else _set_text(group)
        labels[form], listed[label] = label, group
    nodes = Nodes.of(listed, leaves=list(order))
    new = pl.Series(list(labels.values()), dtype=pl.String)
    read = text.replace_strict(
        pl.Series(list(labels), dtype=pl.String), new, default=None, return_dtype=pl.String
    )
    return read.cast(nodes.dtype), nodes


def _members(form: str) -> list[str] | None:
    """The values that a text form names: none for the wildcard, and None for a malformed set."""
    if form == WILDCARD:
        return []
    if not (form.startswith("{") and form.endswith("}")):
        return [form.removeprefix("\\")]
    body = _SET.fullmatch(form)
    if body is None:
        return None
    members = [""]
    for escaped, bar, plain in _SET_PIECE.findall(body[1]):
        if bar:
            members.append("")
        members[-1] += escaped + plain
    return members


def looks_generalised(text: pl.Series) -> Literal["interval", "node"] | None:
    """Which text forms a column of text holds, or None where it is ordinary text.

    "interval": every value is an interval, a number (or every one a date) or ``*``, and not all are numbers.
    "node": there is a set of two or more values, or nothing but ``*``. A value that these forms would have
    escaped speaks against both, and words with ``*`` stay text, since a star can be a rating.
    Empty text is passed over.
    """
    distinct = text.drop_nulls().unique()
    distinct = distinct.filter(distinct != "")
    wild, boxed = distinct == WILDCARD, distinct.str.contains(_INTERVAL)
    if wild.all():
        return "node" if len(distinct) else None
    if (wild | boxed).any() and any(not _read_intervals(distinct, kind)["faulty"].any() for kind in _GUESSES):
        return "interval"
    sets = distinct.filter(distinct.str.contains(r"(?s)^\{.*\}$"))
    if sets.is_empty() or distinct.str.contains(r"(?s)^\[.*\]$").any():
        return None
    return "node" if all(len(_members(form) or ()) > 1 for form in sets) else None


# Geometry ----------------------------------------------------------------------------------------------


def covers(column: pl.Series, values: pl.Series, *, nodes: Nodes | None = None) -> Bools:
    """Whether each record's generalised value covers the exact value beside it.

    A missing value is covered by a missing one and by the wildcard (unbounded, or ``*``), by nothing else.
    """
    if len(column) != len(values):
        raise DataError(f"`{column.name}` must have {len(values)} records as the values, got {len(column)}")
    if nodes is not None:
        codes, found = nodes.codes(column), match_leaves(values, nodes.leaves)
        wild = (column.cast(pl.String) == WILDCARD).fill_null(value=False)
        beyond_leaves: Bools = wild.to_numpy() | ((codes == MISSING) & (found == MISSING))
        return nodes.contains(codes, found) | beyond_leaves
    lo, hi = ends(column)
    if _end_dtype(values.dtype) is None or values.dtype.is_numeric() != lo.dtype.is_numeric():
        raise DataError(f"`{values.name}` must be of its intervals' kind {lo.dtype}, got {values.dtype}")
    values = values.fill_nan(None) if values.dtype.is_float() else values
    known, unbounded = column.is_not_null(), lo.is_null() & hi.is_null()
    inside = (lo.is_null() | (lo <= values)) & (hi.is_null() | (values <= hi)) & values.is_not_null()
    covered = (known & (inside.fill_null(value=False) | unbounded)) | (~known & values.is_null())
    return covered.to_numpy()


def width(column: pl.Series, *, domain: tuple[Any, Any] | None = None, nodes: Nodes | None = None) -> Floats:
    """The share of the domain that each generalised value spans, in [0, 1]; NaN where it is missing.

    An interval spans (hi − lo) / (max − min) after it is cut to the ``domain`` (without one: the bounded ends
    of the column itself), a node (members − 1) / (leaves − 1). An exact value spans 0 and the wildcard 1.
    """
    if nodes is not None:
        shares = (nodes.sizes - 1) / max(len(nodes.leaves) - 1, 1)
        shares = np.where((nodes.labels == WILDCARD).to_numpy(), 1.0, shares)
        return np.append(shares, np.nan)[nodes.codes(column)]  # code −1 is the last: missing
    lo, hi = ends(column)
    # Halves throughout: the distance of two large ends would overflow.
    start, stop = (end.to_physical().cast(pl.Float64) / 2 for end in (lo, hi))
    if domain is not None:
        limits = pl.Series(domain, dtype=pl.Float64 if lo.dtype.is_numeric() else lo.dtype)
        low, high = (limits.to_physical().cast(pl.Float64) / 2).to_numpy()
    else:
        stated = pl.concat([start, stop]).drop_nulls().to_numpy()
        stated = stated[np.isfinite(stated)]
        low, high = (stated.min(), stated.max()) if len(stated) else (0.0, 0.0)
    if not -np.inf < low <= high < np.inf:
        raise ParameterError("`domain` must run from its least to its greatest value, got ends that do not")
    spans = stop.fill_null(high).clip(low, high) - start.fill_null(low).clip(low, high)
    shares = np.where((lo.is_null() & hi.is_null()).to_numpy(), 1.0, spans.to_numpy() / ((high - low) or 1.0))
    return np.where(column.is_null().to_numpy(), np.nan, shares)


def midpoint(column: pl.Series, *, domain: tuple[Any, Any] | None = None) -> pl.Series:
    """The middle of each interval: Float64 for numbers, rounded down to a day or a tick for dates and times.

    An unbounded end is taken from the ``domain``; without one such an interval has no middle and gives null.
    """
    lo, hi = ends(column)
    if domain is not None:
        known = column.is_not_null()
        bounds = (pl.Series([bound], dtype=lo.dtype) for bound in domain)
        lo, hi = (
            end.zip_with(end.is_not_null() | ~known, bound)
            for end, bound in zip((lo, hi), bounds, strict=True)
        )
    if lo.dtype.is_numeric():
        # Halves are added, not the ends: the sum of two large ends would overflow.
        middle = (lo / 2 + hi / 2).zip_with((lo != hi).fill_null(value=True), lo.cast(pl.Float64))
    else:
        start, stop = lo.to_physical().cast(pl.Int64), hi.to_physical().cast(pl.Int64)
        middle = (start + (stop - start) // 2).cast(lo.to_physical().dtype).cast(lo.dtype)
    return middle.alias(column.name)

"""A polars frame together with what its columns mean."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.data.classes.packing import blocks
from sfumato.data.column_store import (
    active_store,
    distinct_values,
    gather,
    map_pieces,
    series_of,
    store_columns,
)
from sfumato.data.digest import BLOCK_RECORDS, digest_of
from sfumato.data.generalised.intervals import is_interval
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.notebook import Tabular, as_html
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.errors import DataError, PlanError, UnknownNameError, count_noun
from sfumato.kernels.arrays import Flags, Floats, Ints

#: The types of text. A tuple: a set would miss an Enum, whose hash is that of its own list of values.
TEXTUAL = (pl.String, pl.Categorical, pl.Enum)

T = TypeVar("T")
A = TypeVar("A", Floats, Ints, Flags)

#: Of fewer categories a list of all is worth making for a look into it.
_FEW_CATEGORIES = 2**16

#: What a table remembers of its columns takes no more than so many bytes.
_KEPT_BYTES = 2**27

#: Whole numbers that fit into 64 bits with their sign.
_WHOLE = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)

#: From here on a whole number in double precision may stand for its neighbour.
_FIRST_INEXACT = 2**53


@dataclass(frozen=True)
class Codes:
    """A column as whole numbers: ``codes[i]`` points into ``categories``; −1 is missing."""

    codes: Ints
    categories: pl.Series

    def decode(self, codes: npt.NDArray[np.integer]) -> pl.Series:
        """Turn codes (−1: missing) back into values."""
        has_missing = codes.min(initial=0) < 0

        def value_of(places: pl.Series) -> pl.Series:
            return self.categories.gather(places.replace(-1, None) if has_missing else places)

        return map_pieces(series_of(codes), value_of)


@dataclass(frozen=True, eq=False)
class Table(Tabular):
    """Records and their schema; never changed in place.

    ``targets`` are the columns the present step is about (all columns when empty). ``nodes`` says, for
    each generalised text column, which values its labels cover. Of a table that was counted where it is, each
    row stands for as many equal records as ``counts`` says; only measures of classes know of these.
    """

    frame: pl.DataFrame
    schema: Schema
    nodes: Mapping[str, Nodes] = field(default_factory=dict, kw_only=True)
    targets: tuple[str, ...] = field(default=(), kw_only=True)
    counts: Ints | None = field(default=None, kw_only=True, repr=False)
    #: What was made of each column, and how many bytes it took; tables that share the column share it.
    _memory: dict[str, dict[Hashable, tuple[Any, int]]] = field(default_factory=dict, init=False, repr=False)

    def remember(self, name: str, what: Hashable, make: Callable[[], T]) -> T:
        """What was made of a column before, or made now: whoever asks again of this table has it at once.

        Tables that share the column share it. It must not be changed; large tables remember less of it.
        """
        of_column = self._memory.setdefault(name, {})
        known: tuple[T, int] | None = of_column.get(what)
        if known is not None:
            return known[0]
        made = make()
        size = _bytes_of(made)
        kept = sum(each for column in self._memory.values() for _, each in column.values())
        if made is not None and size + kept <= _KEPT_BYTES:
            of_column[what] = made, size
        return made

    def _array(self, name: str, what: str, make: Callable[[], A]) -> A:
        """An array that whoever asks may change, remembered as it was."""
        made = self.remember(name, what, make)
        return made.copy() if what in self._memory[name] or not made.flags.writeable else made

    def _with_parts(self, **parts: Any) -> Table:
        """The table with other parts that fit each other as its own do, so that nothing is checked again.

        What is known of the whole table stays where the frame does.
        """
        made = object.__new__(Table)
        if "frame" in parts:
            parts["frame"] = store_columns(parts["frame"])
        known = (
            self.__dict__
            if "frame" not in parts
            else {each.name: getattr(self, each.name) for each in fields(self)}
        )
        made.__dict__.update(known, **parts)
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_memory": {}}  # what can be made again need not travel

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", store_columns(self.frame))
        _require_fit(self.frame, self.schema)
        self._require_names(self.targets)

    def _require_names(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.schema:
                raise UnknownNameError.of("column", name, self.schema.names)

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:  # a table in a traceback must not show its cells
        return f"Table({len(self)} records, {len(self.schema.columns)} columns)"

    def _repr_html_(self) -> str:
        return as_html([repr(self)], self.schema.to_frame())

    def to_frame(self) -> pl.DataFrame:
        """The records, with all their columns."""
        return self.frame

    @property
    def n_records(self) -> int:
        """The number of records: of rows, unless these stand for several."""
        return len(self) if self.counts is None else int(self.counts.sum())

    def count(self, rows: Flags) -> int:
        """The number of records in these rows."""
        return int(rows.sum() if self.counts is None else self.counts[rows].sum())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns, in order."""
        return self.schema.names

    @property
    def chosen(self) -> tuple[str, ...]:
        """The columns the present step is about, in an order that does not depend on the file's."""
        return tuple(sorted(self.targets or self.names))

    def is_generalised(self, *names: str) -> bool:
        """Whether one of these columns holds intervals, or labels of sets of values."""
        return any(name in self.nodes or is_interval(self.frame[name].dtype) for name in names)

    def missing(self, name: str) -> Flags:
        """Which records lack a value: null, NaN, or one of the column's missing codes."""
        return self._array(name, "missing", lambda: self._missing(name))

    def _missing(self, name: str) -> Flags:
        series = self.frame[name]
        is_float = series.dtype.is_float()
        flags = series.is_nan().fill_null(value=True) if is_float else series.is_null()
        column, exact = self.schema[name], _exact_values(series)
        if column.missing_codes:
            flags |= _is_code(exact, column.missing_codes).fill_null(value=False)
        if column.missing_range is not None and exact.dtype.is_numeric():
            flags |= exact.is_between(*column.missing_range).fill_null(value=False)
        return flags.to_numpy()

    def numbers(self, name: str) -> Floats:
        """A continuous, ordinal or date column as numbers, NaN where missing (ordinal: its position)."""
        return self._array(name, "numbers", lambda: self._numbers(name, None))

    def _numbers(self, name: str, categories: pl.Series | None) -> Floats:
        column = self.schema[name]
        if column.kind is Kind.CONTINUOUS:
            return self._continuous(name)
        if column.kind in {Kind.ORDINAL, Kind.NOMINAL}:
            codes = self.codes(name, categories).codes
            return np.where(codes < 0, np.nan, codes.astype(np.float64))
        if column.kind is Kind.DATE:
            missing = self.missing(name)
            instants = _instants(self.frame[name], missing, name)
            return _with_nan(instants.to_physical().cast(pl.Float64), missing)
        raise DataError(f"column `{name}` is {column.kind}, and this step needs a kind with an order")

    def _continuous(self, name: str) -> Floats:
        series = self.frame[name]
        missing = self.missing(name)
        if isinstance(series.dtype, pl.Struct):
            raise DataError(f"column `{name}` holds intervals, and this step needs exact numbers")
        if series.dtype in TEXTUAL:
            values = series.cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
            wrong = int((values.fill_null(np.nan).is_nan().to_numpy() & ~missing).sum())
            if wrong:
                raise DataError(
                    f"column `{name}` has {count_noun(wrong, 'value')} that cannot be read as numbers",
                    hint=f"declare missing codes for `{name}`, or another kind",
                )
        else:  # what numpy converts lies in a file, if it is large
            values = series if series.dtype in _WHOLE and not series.null_count() else series.cast(pl.Float64)
        numbers = _with_nan(values, missing)
        if np.isinf(numbers).any():
            count = int(np.isinf(numbers).sum())
            raise DataError(f"column `{name}` has {count_noun(count, 'infinite value')}")
        if series.dtype.is_integer() and np.nanmax(np.abs(numbers), initial=0) >= _FIRST_INEXACT:
            raise DataError(
                f"column `{name}` has whole numbers from 2^53 on, which cannot be treated as numbers",
                hint=f"if they are account numbers or codes, declare `{name}` an identifier or nominal",
            )
        return numbers

    def categories(self, name: str) -> pl.Series:
        """The distinct values of a column, in the declared or natural order."""

        def make() -> pl.Series:
            values, missing = self.frame[name], self.missing(name)
            if missing.any():
                values = values.filter(pl.Series(~missing))
            return _sort_values(self.schema[name], _distinct(values), name)

        return self.remember(name, "categories", make)

    def codes(self, name: str, categories: pl.Series | None = None) -> Codes:
        """A column as codes into its distinct values (in the declared or natural order), −1 where missing.

        A part of a table is given the ``categories`` of the whole, among which its values are.
        """
        if categories is None:
            whole = self.categories(name)
            return Codes(self._array(name, "codes", lambda: self._codes(name, whole).codes), whole)
        return self._codes(name, categories)

    def narrow_codes(self, name: str) -> npt.NDArray[np.int32]:
        """The codes of a column in half the memory, made anew: for who needs them once."""
        return self._codes(name, self.categories(name), np.int32).codes.astype(np.int32, copy=False)

    def _codes(self, name: str, categories: pl.Series, dtype: type[np.integer] = np.int64) -> Codes:
        codes = _positions(_as_plain(self.frame[name]), categories, dtype)
        missing = self.missing(name)
        if missing.any():
            codes[missing] = -1
        return Codes(codes=codes, categories=categories)

    def matrix(self, names: Sequence[str], categories: Mapping[str, pl.Series] | None = None) -> Floats:
        """Several columns as numbers side by side, NaN where missing."""
        matrix = np.empty((len(self), len(names)), dtype=np.float64)
        for position, name in enumerate(names):
            known = (categories or {}).get(name)
            matrix[:, position] = (
                self._numbers(name, known)
                if known is not None
                else self.remember(name, "numbers", partial(self._numbers, name, None))  # copied once, here
            )
        return matrix

    @cached_property
    def weights(self) -> Floats | None:
        """The sampling weights, or None when no column is a weight."""
        name = self.schema.only_role(Role.WEIGHT)
        if name is None:
            return None
        weights = self._continuous(name)
        if bad := int((~(weights > 0)).sum()):
            raise DataError(f"the weight `{name}` is not a positive number in {count_noun(bad, 'record')}")
        return weights

    def with_values(self, name: str, series: pl.Series, *, column: Column | None = None) -> Table:
        """Replace one column's values (and its description, when the kind changes)."""
        frame = self.frame.with_columns(series.alias(name))
        schema = self.schema if column is None else self.schema.replace(column)
        _require_fit(frame, schema)
        known = {each: self._memory.setdefault(each, {}) for each in self.names if each != name}
        return self._with_parts(frame=frame, schema=schema, _memory=known)

    def with_nodes(self, name: str, series: pl.Series, nodes: Nodes) -> Table:
        """Replace one column by labels, and say which values each label covers."""
        return self._with_parts(nodes={**self.nodes, name: nodes}).with_values(name, series)

    def take(self, rows: npt.NDArray[np.integer]) -> Table:
        """Keep these records, in this order."""
        counts = None if self.counts is None else self.counts[rows]
        if active_store() is None:
            return self._with_parts(
                frame=self.frame[pl.Series(rows, dtype=pl.UInt32)], counts=counts, _memory={}
            )
        places = rows.astype(np.uint32)
        frame = pl.DataFrame([gather(series, places) for series in self.frame])  # one at a time in memory
        return self._with_parts(frame=frame, counts=counts, _memory={})

    def tell_apart(self, rows: Flags) -> Table:
        """Repeat these rows as often as they were counted: their records are equal, and yet not alike."""
        if self.counts is None or not rows.any():
            return self
        times = np.where(rows, self.counts, 1)
        spread = self.take(np.repeat(np.arange(len(self)), times))
        return replace(spread, counts=np.repeat(np.where(rows, 1, self.counts), times))

    def select(self, names: Iterable[str]) -> Table:
        """Keep these columns, in this order."""
        columns = list(names)
        return self._with_parts(
            # `select` takes the name * for a pattern
            frame=pl.DataFrame([self.frame[name] for name in columns]),
            schema=self.schema.select(columns),
            nodes={name: nodes for name, nodes in self.nodes.items() if name in columns},
            targets=tuple(name for name in self.targets if name in columns),
        )

    def aimed_at(self, targets: Iterable[str]) -> Table:
        """Set the columns the next step is about."""
        chosen = tuple(targets)
        self._require_names(chosen)
        return self._with_parts(targets=chosen)

    @cached_property
    def digest(self) -> bytes:
        """A fingerprint of the contents that does not depend on the order of the columns.

        It keys chance: two releases of different data never share noise.
        """
        return digest_of(self.names, self.frame.iter_slices(BLOCK_RECORDS))


def _require_fit(frame: pl.DataFrame, schema: Schema) -> None:
    faults = schema.faults_with(frame)
    if faults:
        raise PlanError.gather(
            "the schema", faults, hint="`sfumato inspect FILE` proposes a schema that fits"
        )


def _positions(values: pl.Series, categories: pl.Series, dtype: type[np.integer]) -> Ints:
    """Where each value stands among the categories, as a new array; anything for one that is missing."""
    if not len(categories):
        return np.full(len(values), -1, dtype=dtype)
    if values.dtype == pl.String and len(categories) < _FEW_CATEGORIES:  # several times as fast as a join
        found = values.cast(pl.Enum(categories.cast(pl.String)), strict=False).to_physical()
    elif (span := _span(values, categories)) is not None:
        low, high = span
        places, found_at = np.zeros(high - low + 1, dtype=dtype), np.empty(len(values), dtype=dtype)
        places[categories.cast(pl.Int64).to_numpy() - low] = np.arange(len(categories))
        for block, offsets in _above(low, values):
            found_at[block] = places[offsets]
        return found_at
    else:
        codes = pl.DataFrame({"value": categories}).with_row_index("code")
        joined = pl.DataFrame({"value": values}).join(
            codes, on="value", how="left", maintain_order="left", nulls_equal=False
        )
        found = joined["code"]
    return found.fill_null(0).to_numpy().astype(dtype)


def _distinct(values: pl.Series) -> pl.Series:
    """Each value once; whole numbers that lie close to each other are ticked off, and come in their order."""
    span = _span(values, values.clear())
    if span is None or values.null_count():
        return distinct_values(values)
    seen = np.zeros(span[1] - span[0] + 1, dtype=np.bool_)
    for _, offsets in _above(span[0], values):
        seen[offsets] = True
    return pl.Series(np.flatnonzero(seen) + span[0]).cast(values.dtype).set_sorted()


def _span(values: pl.Series, categories: pl.Series) -> tuple[int, int] | None:
    """Two numbers between which all lie, if they are whole numbers close to each other."""
    if any(each.dtype not in _WHOLE for each in (values, categories)):
        return None
    ends = [end for each in (values, categories) for end in (each.min(), each.max()) if isinstance(end, int)]
    near = ends and max(ends) - min(ends) < max(_FEW_CATEGORIES, 2 * len(values))
    if not near:
        return None
    return min(ends), max(ends)


def _above(low: int, values: pl.Series) -> Iterator[tuple[slice, Ints]]:
    """By how much whole numbers are greater, block by block; a missing one is any of them."""
    if values.null_count():
        least = values.min()
        values = values.cast(pl.Int64).fill_null(low) if least is None else values.fill_null(least)
    numbers = values.to_numpy()
    for block in blocks(len(numbers)):
        yield block, numbers[block].astype(np.int64) - low


def _bytes_of(made: object) -> int:
    """About how much memory something takes that was made of a column."""
    if isinstance(made, pl.Series):
        return int(made.estimated_size())
    parts = [made, *getattr(made, "__dict__", {}).values()]
    return sum(part.nbytes for part in parts if isinstance(part, np.ndarray))


def _with_nan(values: pl.Series, missing: Flags) -> Floats:
    present = values.fill_null(np.nan) if values.null_count() else values
    lacking = bool(missing.any())
    numbers: Floats = present.to_numpy().astype(np.float64, copy=lacking)
    if lacking:
        numbers[missing] = np.nan
    return numbers


def _instants(series: pl.Series, missing: Flags, name: str) -> pl.Series:
    if series.dtype.is_temporal():
        return series
    if isinstance(series.dtype, pl.Struct):
        raise DataError(f"column `{name}` holds intervals, and this step needs exact dates")
    texts = series.cast(pl.String).str.strip_chars()
    texts = texts.set(~texts.str.contains(r"^\d{4}"), None)  # 80-11-15 is no day of the first century
    parsed = texts.str.to_date("%Y-%m-%d", strict=False)
    if wrong := int((parsed.is_null().to_numpy() & ~missing).sum()):
        number = count_noun(wrong, "value")
        raise DataError(f"column `{name}` has {number} that cannot be read as dates", hint="write 2026-11-15")
    return parsed


def _exact_values(series: pl.Series) -> pl.Series:
    """What is exact in a column: of intervals, those of one value."""
    if not is_interval(series.dtype):
        return series
    low, high = (series.struct.field(end) for end in ("lo", "hi"))
    return low.set((low != high).fill_null(value=True), None)


def _is_code(series: pl.Series, codes: Sequence[object]) -> pl.Series:
    """Which values are one of the codes that a column of this type can hold: −9, -9.0 and "-9" are one."""
    dtype = series.dtype
    if dtype.is_integer():
        whole = [int(number) for number in map(_number, codes) if number is not None and number % 1 == 0]
        return series.is_in(pl.Series(whole, dtype=dtype, strict=False).drop_nulls().implode())
    if dtype.is_numeric():
        numbers = pl.Series([_number(code) for code in codes], dtype=pl.Float64, strict=False)
        return series.is_in(numbers.cast(dtype, strict=False).drop_nulls().implode())
    if dtype in TEXTUAL or dtype.is_temporal():
        texts = series.cast(pl.String).str.strip_chars().str.replace(r" 00:00:00(\.0+)?$", "")
        wanted = {str(code).strip() for code in codes}
        wanted |= {str(int(code)) for code in codes if isinstance(code, float) and code.is_integer()}
        return texts.is_in(sorted(wanted))
    return pl.repeat(value=False, n=len(series), eager=True)


def _number(code: object) -> float | int | None:
    if isinstance(code, int | float):
        return code
    try:
        return float(str(code))
    except ValueError:
        return None


def _as_plain(series: pl.Series) -> pl.Series:
    """Make text of categories: their codes mean something only beside their own table."""
    return series.cast(pl.String) if series.dtype in TEXTUAL else series


def _sort_values(column: Column, values: pl.Series, name: str) -> pl.Series:
    if not column.order:
        return _as_plain(values.sort())  # an Enum is sorted as it lists its values, other text by alphabet
    values = _as_plain(values)
    declared = pl.Series(_to_one_type(column.order)).cast(values.dtype, strict=False).drop_nulls()
    repeated = len(declared) - declared.n_unique()
    if repeated:
        raise DataError(f"the declared order of `{name}` lists {count_noun(repeated, 'value')} again")
    if unknown := int((~values.is_in(declared.implode())).sum()):
        raise DataError(
            f"`{name}` has {count_noun(unknown, 'value')} outside its declared order",
            hint="complete `order`, or declare the code as missing",
        )
    return declared


def _to_one_type(order: Sequence[object]) -> list[object]:
    """Make the values of one type: a list such as 1, 2, "10+" is meant as text."""
    for kind in (str, float):
        if any(isinstance(value, kind) for value in order):
            return [kind(value) for value in order]  # type: ignore[arg-type]
    return list(order)

"""Generalisation hierarchies: which coarser label each value of a column climbs to.

A hierarchy is a table of text with one row per leaf value and one column per level, from the value itself
(level 0) to a single root, by convention the wildcard ``*``. ARX keeps its hierarchies in the same form, one
file per column, so they are read and written as they are.
"""

from __future__ import annotations

import csv
import io
import os
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl

from sfumato.data.generalised import (
    MISSING,
    UNSEEN,
    WILDCARD,
    Codes,
    Nodes,
    Values,
    canonical_text,
    intervals,
    match_leaves,
    to_text,
)
from sfumato.errors import DataError, ParameterError, PlanError, ReadError, WriteError

Unseen: TypeAlias = Literal["raise", "root"]
Bin: TypeAlias = tuple[Fraction | None, Fraction | None]

_SEPARATORS = ";,\t|"
_HEADING = re.compile(r"old|new|from|to|values?|leaf|labels?|codes?|groups?", re.IGNORECASE)
_LEVEL_HEADING = re.compile(r"level[ _.-]?\d+", re.IGNORECASE)
_DATE_PARTS: dict[str, Callable[[pl.Series], pl.Series]] = {
    "day": lambda dates: dates.dt.strftime("%Y-%m-%d"),
    "month": lambda dates: dates.dt.strftime("%Y-%m"),
    "quarter": lambda dates: dates.dt.strftime("%Y-Q") + dates.dt.quarter().cast(pl.String),
    "year": lambda dates: dates.dt.strftime("%Y"),
}


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The levels of generalisation of one column.

    The constructor takes any table of text, so that a faulty one can be shown and mended; `check` lists what
    is wrong with it, and whatever climbs it refuses while anything is. `read` and the ``from_`` builders add
    the root where there is none and return sound hierarchies only.

    Parameters
    ----------
    name : str
        What it is called in messages, usually the column's name.
    levels : polars.DataFrame
        One row per leaf value, one column of text per level; null where a row has fewer levels.
    """

    name: str
    levels: pl.DataFrame

    def __post_init__(self) -> None:
        if self.levels.width == 0:
            raise DataError(f"the hierarchy `{self.name}` must have at least one level, got none")
        columns = [canonical_text(level).alias(str(i)) for i, level in enumerate(self.levels)]
        object.__setattr__(self, "levels", pl.DataFrame(columns))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hierarchy):
            return NotImplemented
        return self.name == other.name and self.levels.equals(other.levels)

    def __hash__(self) -> int:
        return hash((self.name, self.levels.shape))

    def __repr__(self) -> str:
        # Counts only: leaves are values of the data, and a traceback may show this.
        return f"Hierarchy({self.name!r}, {self.n_leaves} leaves, {self.height} levels)"

    # What it is ----------------------------------------------------------------------------------------

    @property
    def height(self) -> int:
        """The number of levels, the values themselves and the root included."""
        return self.levels.width

    @property
    def n_leaves(self) -> int:
        """The number of leaf values."""
        return self.levels.height

    @property
    def root(self) -> str:
        """The single label of the last level."""
        return str(self._coded[-1][0][0])

    def labels(self, level: int) -> pl.Series:
        """The distinct labels of a level, in the order of its rows; `codes` are positions in it.

        A label that also stands on a lower level and covers other leaves there ("Other" under "Other") has
        its level added, ``Other (level 1)``: in a table of mixed levels nobody could tell the two apart.
        """
        return self._at(level)[0]

    def _at(self, level: int) -> tuple[pl.Series, Codes]:
        if not 0 <= level < self.height:
            raise ParameterError(
                f"`level` of the hierarchy `{self.name}` must be from 0 to {self.height - 1}, got: `{level}`"
            )
        return self._coded[level]

    @cached_property
    def _coded(self) -> list[tuple[pl.Series, Codes]]:
        """The labels of each level and, for each leaf, the position of its label among them."""
        self.require()
        coded = []
        taken = set(pl.concat([level.alias("") for level in self.levels]).unique())
        for i, level in enumerate(self.levels):
            renamed = {}
            for label in self._ambiguous(i):
                suffixed = f"{label} (level {i})"
                while suffixed in taken:
                    suffixed += "'"
                renamed[label] = suffixed
            taken.update(renamed.values())
            shown = level.replace(list(renamed), list(renamed.values())) if renamed else level
            labels = shown.unique(maintain_order=True).alias("labels")
            coded.append((labels, match_leaves(shown, labels)))
        return coded

    def _ambiguous(self, level: int) -> list[str]:
        """The labels of a level that cover other leaves on a lower one; the wildcard covers all on any."""
        here = self.levels[:, level]
        labels = here.unique()
        clashes: set[str] = set()
        for lower in self.levels[:, :level]:
            # A label covers the same leaves on both levels unless it stands in a row where they differ.
            apart = (
                self.levels.select(here.alias("here"), lower.alias("lower")).filter(here != lower).unique()
            )
            shared = labels.filter(labels.is_in(lower.unique().implode()))
            standing = shared.is_in(apart["here"].implode()) | shared.is_in(apart["lower"].implode())
            clashes |= set(shared.filter(standing))
        return sorted(clashes - {WILDCARD})

    # What is wrong with it -----------------------------------------------------------------------------

    def check(self, values: pl.Series | None = None, column: str = "") -> list[str]:
        """The faults of the hierarchy, and of the ``values`` of a ``column`` that it does not hold."""
        faults = list(self._faults)
        if values is not None:
            found = match_leaves(values, self.levels[:, 0].drop_nulls().unique())
            unseen = values.filter(pl.Series(found == UNSEEN))
            if len(unseen):
                faults.append(
                    f"{_count(unseen.n_unique(), 'value')} of `{column or values.name}` "
                    f"({_count(len(unseen), 'record')}) not among its {self.n_leaves} leaves"
                )
        return faults

    @cached_property
    def _faults(self) -> tuple[str, ...]:
        leaves, faults = self.levels[:, 0], []
        if not self.n_leaves:
            faults.append("no values")
        if n_short := self.levels.select(pl.any_horizontal(pl.all().is_null()).sum()).item():
            faults.append(f"{_count(n_short, 'row')} with fewer levels than the {self.height} of the deepest")
        if n_twice := leaves.drop_nulls().value_counts().filter(pl.col("count") > 1).height:
            faults.append(f"{_count(n_twice, 'value')} on more than one row")
        if (leaves == WILDCARD).any():
            faults.append(f"a value called `{WILDCARD}`, which is the wildcard's name")
        n_narrowed = 0
        for level in range(self.height - 1):
            steps = self.levels[:, level : level + 2].drop_nulls().unique()
            if level:
                n_narrowed += steps.filter(steps[:, 0] == WILDCARD, steps[:, 1] != WILDCARD).height
            if n_split := steps[:, 0].value_counts().filter(pl.col("count") > 1).height:
                faults.append(
                    f"{_count(n_split, 'label')} of level {level} with several parents at level {level + 1}"
                )
        if n_narrowed:
            faults.append(f"{_count(n_narrowed, 'label')} above `{WILDCARD}`, which nothing can be above")
        if (n_roots := self.levels[:, -1].drop_nulls().n_unique()) > 1:
            faults.append(f"{n_roots} roots instead of one at level {self.height - 1}")
        return tuple(faults)

    def require(self, values: pl.Series | None = None, column: str = "") -> None:
        """Raise what `check` finds: a PlanError, or a DataError if only the data are at fault."""
        faults = self.check(values, column)
        if self._faults:
            raise PlanError.gather(
                f"the hierarchy `{self.name}`",
                faults,
                hint="each row leads from a distinct value through labels with one parent each to the root",
            )
        if faults:
            raise DataError(
                f"the hierarchy `{self.name}` must hold every value of its column, got {faults[0]}",
                hint='add the rows, or let unseen values climb to the root with unseen="root"',
            )

    # Climbing ------------------------------------------------------------------------------------------

    def codes(self, values: pl.Series, level: int, *, unseen: Unseen = "raise") -> Codes:
        """The position of each value's label among `labels(level)`, −1 where it is missing.

        Numbers match by value: the leaf ``25`` is both 25 and 25.0. With ``unseen="root"`` a value that is no
        leaf has the code of the root, which follows the labels of the level where it is not one of them.
        """
        labels, of_leaf = self._at(level)
        found = match_leaves(values, self.levels[:, 0])
        if unseen != "root" and (found == UNSEEN).any():
            self.require(values)
        root = labels.index_of(self.root)
        # Codes −2 and −1, unseen and missing, are the last two places.
        ends = np.array([len(labels) if root is None else root, MISSING], dtype=np.int32)
        return np.concatenate([of_leaf, ends])[found]

    def climb(self, values: pl.Series, level: int, *, unseen: Unseen = "raise") -> pl.Series:
        """The labels of ``values`` at a level, as an Enum; what is missing stays missing.

        A value that is no leaf is a fault, or with ``unseen="root"`` climbs to the root at any level.
        """
        codes = self.codes(values, level, unseen=unseen)
        labels = self.labels(level)
        if unseen == "root" and self.root not in labels:
            labels = pl.concat([labels, pl.Series([self.root])])
        shown = labels.cast(pl.Enum(labels))
        return shown.gather(pl.Series(codes).replace(MISSING, None)).alias(values.name)

    def parents(self, level: int, *, unseen: Unseen = "raise") -> Codes:
        """The code at ``level + 1`` of each code at ``level``; with ``unseen="root"`` the root's code too."""
        if level == self.height - 1:
            raise ParameterError(f"`level` must be below the root's to have parents, got: `{level}`")
        (labels, below), (next_labels, above) = self._at(level), self._at(level + 1)
        parents = np.empty(len(labels), dtype=np.int32)
        parents[below] = above
        if unseen == "root" and self.root not in labels:
            root = next_labels.index_of(self.root)
            parents = np.append(parents, np.int32(len(next_labels) if root is None else root))
        return parents

    def nodes(self) -> Nodes:
        """Every label of every level, and the wildcard, with the leaves that it covers."""
        shown = [labels.gather(codes) for labels, codes in self._coded]
        stacked = pl.concat(shown)
        labels = pl.concat([stacked, pl.Series("labels", [WILDCARD])]).unique(maintain_order=True)
        rows = np.tile(np.arange(self.n_leaves, dtype=np.int32), self.height)
        return Nodes.of_pairs(self.levels[:, 0].alias("leaves"), labels, match_leaves(stacked, labels), rows)

    # Files ---------------------------------------------------------------------------------------------

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        name: str | None = None,
        separator: str | None = None,
        header: bool | None = None,
        encoding: str | None = None,
    ) -> Hierarchy:
        """Read a table of levels (ARX) or of two columns, old value and new (sdcMicro), from a CSV file.

        What is not given is found out: the separator (``;``, ``,``, tab or ``|``), a header (where the first
        row alone does not end in ``*``, or has names like "old" and "new" or "level1"), the encoding (UTF-8,
        else Latin-1). Nothing is stripped but line ends and empty cells at a row's end.
        """
        path = Path(path)
        name = path.stem if name is None else name
        rows = _read_rows(path, separator=separator, encoding=encoding)
        if header or (header is None and _has_header(rows)):
            rows = rows[1:]
        if not rows:
            raise ReadError(f"the hierarchy file `{path.name}` must have at least one row, got none")
        depth = max(len(row) for row in rows)
        columns = [[row[i] if i < len(row) else None for row in rows] for i in range(depth)]
        return cls.from_levels(pl.DataFrame({str(i): column for i, column in enumerate(columns)}), name=name)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the levels as ARX reads them: separated by ``;``, without a header, in UTF-8."""
        path = Path(path)
        unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        # The csv module quotes a carriage return only where it is part of the line end.
        has_return = self.levels.select(pl.any_horizontal(pl.all().str.contains("\r").any())).item()
        line_end = "\r\n" if has_return else "\n"
        try:
            with unfinished.open("x", encoding="utf-8", newline="") as file:
                csv.writer(file, delimiter=";", lineterminator=line_end).writerows(self.levels.iter_rows())
            unfinished.replace(path)
        except OSError as error:
            raise WriteError(
                f"the hierarchy file `{path.name}` cannot be written: {error.strerror}"
            ) from error
        finally:
            unfinished.unlink(missing_ok=True)

    # Builders ------------------------------------------------------------------------------------------

    @classmethod
    def from_levels(cls, levels: pl.DataFrame, *, name: str = "") -> Hierarchy:
        """Build from a table of levels; a root ``*`` is added where the last level is not a single label."""
        if levels.width == 1 or levels.to_series(-1).drop_nulls().n_unique() != 1:
            levels = levels.with_columns(pl.lit(WILDCARD).alias("root of all"))
        hierarchy = cls(name, levels)
        hierarchy.require()
        return hierarchy

    @classmethod
    def from_intervals(
        cls, values: Values, *, widths: Sequence[float] = (5, 10, 20), origin: float = 0, name: str = ""
    ) -> Hierarchy:
        """Build levels of intervals of equal width from numbers (or a ``range`` of them).

        A value on a cut belongs to the interval above it. Whole numbers have labels like ``[20;24]``; for
        decimals the label ``[20;25]`` names its two cuts, and 25 itself climbs to ``[25;30]``.
        """
        steps, start = [_exactly(width) for width in widths], _exactly(origin)
        if min(steps, default=0) <= 0 or any(wide % narrow for narrow, wide in pairwise(steps)):
            raise ParameterError(
                f"`widths` must be above 0 and each a multiple of the one before, got: `{list(widths)}`",
                hint="levels must nest: 5, 10, 20 do, 5, 12 do not",
            )

        def binned(step: Fraction) -> Callable[[Fraction], Bin]:
            return lambda value: (lo := start + (value - start) // step * step, lo + step)

        return _from_bins(values, [binned(step) for step in steps], marks=[*steps, start], name=name)

    @classmethod
    def from_cuts(cls, values: Values, *, cuts: Sequence[Sequence[float]], name: str = "") -> Hierarchy:
        """Build levels of intervals from the cut points of each level, as in `from_intervals`.

        The lowest and the highest interval of a level are unbounded: ``[;17]``, ``[18;64]``, ``[65;]``.
        """
        levels = [[_exactly(cut) for cut in level] for level in cuts]
        unordered = any(low >= high for level in levels for low, high in pairwise(level))
        if not all(levels) or unordered or any(not set(high) <= set(low) for low, high in pairwise(levels)):
            raise ParameterError(
                "`cuts` must be ascending in each level and each level's be among those of the level before, "
                f"got: `{[list(level) for level in cuts]}`",
                hint="levels must nest: leave out cuts from one level to the next",
            )

        def binned(level: list[Fraction]) -> Callable[[Fraction], Bin]:
            bounded: list[Fraction | None] = [None, *level, None]
            return lambda value: (bounded[place := bisect_right(level, value)], bounded[place + 1])

        marks = [cut for level in levels for cut in level]
        return _from_bins(values, [binned(level) for level in levels], marks=marks, name=name)

    @classmethod
    def from_prefix(
        cls, values: Values, *, lengths: Sequence[int] = (3, 2), mark: str = "*", name: str = ""
    ) -> Hierarchy:
        """Build levels that keep ever shorter beginnings of codes: 93721, ``937**``, ``93***``."""
        if (
            min(lengths, default=0) < 1
            or any(short >= long for long, short in pairwise(lengths))
            or len(mark) != 1
        ):
            raise ParameterError(
                "`lengths` must be whole, above 0 and descending and `mark` one character, "
                f"got: `{list(lengths)}` and `{mark}`"
            )
        leaves = _distinct(values)
        kept = {str(n): [leaf[:n] + mark * (len(leaf) - n) for leaf in leaves] for n in lengths}
        table = pl.DataFrame({"leaf": leaves, **kept, "root": [WILDCARD] * len(leaves)})
        return cls.from_levels(table, name=_named(name, values))

    @classmethod
    def from_tree(cls, tree: Mapping[str, Any], *, name: str = "") -> Hierarchy:
        """Build from nested mappings, ``{"Europe": {"Iberia": ["Spain", "Portugal"]}}``, or child → parent.

        A leaf that is nearer to the root than others stands on the levels below its parent as itself.
        """
        if tree and all(isinstance(parent, str) for parent in tree.values()):
            paths = _climbs(tree, name)
        else:
            paths = list(_branches(tree))
        depth = max((len(path) for path in paths), default=1)
        rows = [[path[0]] * (depth - len(path)) + path for path in paths]
        return cls.from_levels(
            pl.DataFrame(rows, schema=[str(i) for i in range(depth)], orient="row"), name=name
        )

    @classmethod
    def from_dates(
        cls, values: pl.Series, *, levels: Sequence[str] = ("month", "quarter", "year"), name: str = ""
    ) -> Hierarchy:
        """Build from dates: 2020-05-17, ``2020-05``, ``2020-Q2``, ``2020``; times climb to the day first."""
        if not (values.dtype == pl.Date or isinstance(values.dtype, pl.Datetime)):
            raise DataError(f"the values of `{values.name}` must be dates, got {values.dtype}")
        if values.dtype == pl.Datetime and "day" not in levels:
            levels = ("day", *levels)
        if [part for part in _DATE_PARTS if part in levels] != list(levels):
            raise ParameterError(
                f"`levels` must be some of {list(_DATE_PARTS)} in this order, got: `{list(levels)}`"
            )
        dates = values.drop_nulls().unique().sort()
        parts = {level: _DATE_PARTS[level](dates) for level in levels}
        root = pl.Series([WILDCARD] * len(dates), dtype=pl.String)
        return cls.from_levels(
            pl.DataFrame({"leaf": canonical_text(dates), **parts, "root": root}), name=name
        )


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _named(name: str, values: Values) -> str:
    return name or (values.name if isinstance(values, pl.Series) else "")


def _distinct(values: Values) -> pl.Series:
    """The distinct values in their own order, as text."""
    series = values if isinstance(values, pl.Series) else pl.Series(values, strict=False)
    return canonical_text(series.unique().sort()).drop_nulls()


def _exactly(number: Any) -> Fraction:
    """A number as it is written in decimals: 0.1 is a tenth, so that 0.3 lies on a cut of width 0.1."""
    try:
        return Fraction(str(number))
    except ValueError:
        raise ParameterError("widths, origins and cuts must be finite numbers, got one that is not") from None


def _from_bins(
    values: Values, bins: Sequence[Callable[[Fraction], Bin]], *, marks: Sequence[Fraction], name: str
) -> Hierarchy:
    """Build the levels that label each value with its bin; ``marks`` are the numbers bins are made of."""
    leaves, name = _distinct(values), _named(name, values)
    real = leaves.cast(pl.Float64, strict=False)
    if n_odd := int((~real.is_finite()).fill_null(value=True).sum()):
        raise DataError(f"the values of `{name}` must be finite numbers, got {_count(n_odd, 'value')} others")
    numbers = [Fraction(leaf) for leaf in leaves]
    whole = all(number.denominator == 1 for number in (*numbers, *marks))
    levels = {"leaf": leaves}
    for level, binned in enumerate(bins, start=1):
        lo, hi = ([end[side] for end in map(binned, numbers)] for side in (0, 1))
        highs = [None if end is None else end - whole for end in hi]
        levels[str(level)] = to_text(intervals(_ends(lo, whole=whole), _ends(highs, whole=whole)))
    return Hierarchy.from_levels(
        pl.DataFrame({**levels, "root": pl.repeat(WILDCARD, len(leaves), eager=True)}), name=name
    )


def _ends(ends: Sequence[Fraction | None], *, whole: bool) -> pl.Series:
    if whole and all(end is None or abs(end) < 2**63 for end in ends):
        return pl.Series([None if end is None else int(end) for end in ends], dtype=pl.Int64)
    return pl.Series([None if end is None else float(end) for end in ends], dtype=pl.Float64)


def _climbs(parents: Mapping[str, str], name: str) -> list[list[str]]:
    """The way from each leaf to its root, where ``parents`` names the parent of each label."""
    inner = set(parents.values())
    paths = []
    for leaf in (label for label in parents if label not in inner):
        path = [leaf]
        while path[-1] in parents and len(path) <= len(parents):
            path.append(parents[path[-1]])
        paths.append(path)
    on_the_way = {label for path in paths for label in path}
    n_circling = len(parents.keys() - on_the_way) + sum(path[-1] in parents for path in paths)
    if n_circling:
        raise PlanError.gather(
            f"the tree `{name}`", [f"{_count(n_circling, 'label')} that lead round in a circle"]
        )
    return paths


def _branches(tree: Any) -> Iterator[list[str]]:
    """The way from each leaf to its root in nested mappings; a leaf has nothing under it."""
    for label in tree:
        below = tree[label] if isinstance(tree, Mapping) else None
        if below:
            yield from ([*path, label] for path in _branches(below))
        else:
            yield [label]


def _read_rows(path: Path, *, separator: str | None, encoding: str | None) -> list[list[str]]:
    try:
        raw = path.read_bytes()
        try:
            text = raw.decode(encoding or "utf-8-sig")
        except UnicodeDecodeError:
            if encoding is not None:
                raise
            text = raw.decode("latin-1")
        found = separator or max(_SEPARATORS, key=lambda mark: _fit(text, mark))
        return [_trimmed(row) for row in csv.reader(io.StringIO(text, newline=""), delimiter=found) if row]
    except (OSError, UnicodeError, LookupError, csv.Error) as error:
        why = getattr(error, "strerror", None) or "it is not text in this encoding and form"
        raise ReadError(f"the hierarchy file `{path.name}` must be readable, got: {why}") from None


def _trimmed(row: list[str]) -> list[str]:
    # A spreadsheet pads short rows with empty cells; the value itself may be empty.
    while len(row) > 1 and not row[-1]:
        row = row[:-1]
    return row


def _fit(text: str, separator: str) -> tuple[float, float, int]:
    """How well a separator cuts the text: rows that end in the wildcard, rows of equal length, columns."""
    rows = [row for row in islice(csv.reader(io.StringIO(text, newline=""), delimiter=separator), 200) if row]
    width, n_equal = Counter(map(len, rows)).most_common(1)[0] if rows else (1, 0)
    if width == 1:
        return 0.0, 0.0, 1
    return sum(row[-1] == WILDCARD for row in rows) / len(rows), n_equal / len(rows), width


def _has_header(rows: list[list[str]]) -> bool:
    if not rows[1:] or not rows[0][1:]:
        return False
    first, ends = rows[0], {row[-1] for row in rows[1:]}
    if first[-1] in ends:
        return False
    named = all(map(_LEVEL_HEADING.fullmatch, first[1:])) or all(map(_HEADING.fullmatch, first))
    return ends == {WILDCARD} or named

"""Builds hierarchies from the values of a column: by intervals, beginnings of codes, a tree or the calendar.

A table of levels that is there already is a hierarchy by `Hierarchy.from_levels`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

import polars as pl

from sfumato.data.generalised import intervals
from sfumato.data.hierarchy import Hierarchy, counted
from sfumato.data.nodes import WILDCARD, Values, canonical_text
from sfumato.data.text_forms import to_text
from sfumato.errors import DataError, ParameterError, PlanError

Bin: TypeAlias = tuple[Fraction | None, Fraction | None]

_DATE_PARTS: dict[str, Callable[[pl.Series], pl.Series]] = {
    "day": lambda dates: dates.dt.strftime("%Y-%m-%d"),
    "month": lambda dates: dates.dt.strftime("%Y-%m"),
    "quarter": lambda dates: dates.dt.strftime("%Y-Q") + dates.dt.quarter().cast(pl.String),
    "year": lambda dates: dates.dt.strftime("%Y"),
}


def from_intervals(
    values: Values, *, widths: Sequence[float] = (5, 10, 20), origin: float = 0, name: str = ""
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


def from_cuts(values: Values, *, cuts: Sequence[Sequence[float]], name: str = "") -> Hierarchy:
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


def from_prefix(
    values: Values, *, lengths: Sequence[int] = (3, 2), mark: str = "*", name: str = ""
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
    return Hierarchy.from_levels(table, name=_named(name, values))


def from_tree(tree: Mapping[str, Any], *, name: str = "") -> Hierarchy:
    """Build from nested mappings, ``{"Europe": {"Iberia": ["Spain", "Portugal"]}}``, or child → parent.

    A leaf that is nearer to the root than others stands on the levels below its parent as itself.
    """
    if tree and all(isinstance(parent, str) for parent in tree.values()):
        paths = _climbs(tree, name)
    else:
        paths = list(_branches(tree))
    depth = max((len(path) for path in paths), default=1)
    rows = [[path[0]] * (depth - len(path)) + path for path in paths]
    return Hierarchy.from_levels(
        pl.DataFrame(rows, schema=[str(i) for i in range(depth)], orient="row"), name=name
    )


def from_dates(
    values: pl.Series, *, levels: Sequence[str] = ("month", "quarter", "year"), name: str = ""
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
    return Hierarchy.from_levels(
        pl.DataFrame({"leaf": canonical_text(dates), **parts, "root": root}), name=name
    )


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
        raise DataError(
            f"the values of `{name}` must be finite numbers, got {counted(n_odd, 'value')} others"
        )
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
            f"the tree `{name}`", [f"{counted(n_circling, 'label')} that lead round in a circle"]
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

"""Mends what protection broke of the schema's promises: whole numbers, ranges, totals.

It is a last step before a release is judged, in this order:

1. columns declared integer are rounded, a half to the even neighbour, so that no chance is needed;
2. values outside their range move to its nearer end (for whole numbers the nearest whole one inside);
3. totals are summed again from their parts, those that are parts of other totals first.

A sum comes last and wins: where the new total is not whole or leaves its own range, that is counted. Other
rules (``age >= 16 OR marital = 'single'``) have no one repair; they are counted too.

What is missing stays missing, and no value is mended into a missing code. Generalised values stay as they
are. A total of which a part is missing cannot be summed; it stays, and is counted.

**What was broken before protection is not repaired.** With the original beside it, a promise is mended only
in the records that kept it there: an error of the data belongs to the data, and mending it here would change
values that no step of the plan has touched. Cells of which nothing was changed are then never written, but
for totals whose parts were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

import numpy as np
import polars as pl

from sfumato.data import checks
from sfumato.data.rules import Rule, Sum
from sfumato.data.schema import Column, Kind
from sfumato.data.table import Table
from sfumato.errors import ParameterError, PlanError, quoted
from sfumato.kernels.arrays import Flags, Floats

#: Digits of a sum of decimals that mean something: 0.1 + 0.2 is written 0.3.
_DIGITS = 15


@dataclass(frozen=True)
class RemainingViolation:
    """A promise that is still broken or could not be looked at, and in how many records.

    ``inherited`` of the ``broken`` records broke it in the original; in ``unknown`` ones a sum lacks its
    total or a part, or has a generalised one.
    """

    promise: str
    broken: int
    inherited: int = 0
    unknown: int = 0


@dataclass(frozen=True)
class RepairResult:
    """The table after repair, the number of cells changed by what was done, and what is left broken."""

    table: Table
    counts: Mapping[str, int]
    left: tuple[RemainingViolation, ...]


def repair(table: Table, original: Table | None = None) -> RepairResult:
    """Make a table keep its schema's promises where that can be done.

    Parameters
    ----------
    table
        The protected table.
    original
        The original record of each record beside it (``original.take(release.source_rows)``). What was
        broken there is left as it is. Without it every broken promise is mended.
    """
    mending = _RepairState(table, _broken_in(original, table))
    sums = sums_in_order(table)
    for column in table.schema.columns:
        if checks.is_counted(table, column):
            mending.column(column)
    unknown = {
        checks.rule_promise(rule): mending.total(rule, equation, total) for rule, equation, total in sums
    }
    table = mending.table
    for column in table.schema.columns:
        if column.integer and checks.is_counted(table, column):
            table = _as_whole(table, column.name, original)
    return RepairResult(table, mending.counts(), _remaining_violations(table, mending.before, unknown))


def _broken_in(original: Table | None, table: Table) -> dict[str, Flags]:
    """The records that broke each promise before protection."""
    if original is None:
        return {}
    if len(original) != len(table):
        raise ParameterError(
            f"`original` has {len(original):,} records and the table {len(table):,}",
            hint="take the original of each record: original.take(release.source_rows)",
        )
    return dict(checks.breaches(original.select([name for name in table.names if name in original.schema])))


def _remaining_violations(
    table: Table, before: Mapping[str, Flags], unknown: Mapping[str, int]
) -> tuple[RemainingViolation, ...]:
    after = {promise: broken for promise, broken in checks.breaches(table) if broken.any()}
    none = np.zeros(len(table), dtype=np.bool_)
    left = []
    for promise in dict.fromkeys([*after, *unknown]):
        broken = after.get(promise, none)
        inherited = int((broken & before.get(promise, none)).sum())
        left.append(RemainingViolation(promise, int(broken.sum()), inherited, unknown.get(promise, 0)))
    return tuple(each for each in left if each.broken or each.unknown)


class _RepairState:
    """A table under repair, with the records that broke each promise before, and what was done so far."""

    def __init__(self, table: Table, before: Mapping[str, Flags]) -> None:
        self.start = self.table = table
        self.before = before
        self.done: dict[tuple[str, str], Flags] = {}

    def column(self, column: Column) -> None:
        """Round a column and bring it into its range."""
        name, (lower, upper) = column.name, _ends(column)
        if column.integer:
            values = _numbers(self.table, name)
            nearest = np.rint(values)
            broken = (values != nearest) & np.isfinite(values)
            # The neighbour on the other side is for a value whose nearest whole number is a missing code.
            other = nearest + np.sign(values - nearest)
            self._write(name, checks.whole_promise(column), "rounded", broken, nearest, other)
        if column.lower is not None:
            broken = _numbers(self.table, name) < column.lower
            end = np.full(len(broken), lower)
            self._write(name, checks.lower_promise(column), "raised to its lower end", broken, end)
        if column.upper is not None:
            broken = _numbers(self.table, name) > column.upper
            end = np.full(len(broken), upper)
            self._write(name, checks.upper_promise(column), "lowered to its upper end", broken, end)

    def total(self, rule: Rule, equation: Sum, total: str) -> int:
        """Sum a total again where it is not what its parts make; count where that cannot be known."""
        if self.table.is_generalised(*rule.columns):
            return len(self.table)
        frame = checks.without_missing(self.table, rule.columns)
        sums = frame.select(equation.value(total)).to_series()
        meant = sums.zip_with(sums == sums.round(), sums.round_sig_figs(_DIGITS))
        new = meant.fill_null(np.nan).to_numpy()
        broken = rule.breaks(frame).to_numpy() & np.isfinite(new)
        # The tolerance of sums may leave room for the whole number or the end of the range beside the sum.
        column = self.table.schema[total]
        beside = np.clip(np.rint(new) if column.integer else new, *_ends(column))
        apart = rule.breaks(frame.with_columns(pl.Series(total, beside))).to_numpy()
        best = np.where(apart, new, beside)
        self._write(total, checks.rule_promise(rule), "summed again", broken, best, new)
        lacking = pl.any_horizontal(pl.col(name).is_null() for name in rule.columns)
        return int(frame.select(lacking.sum()).item())

    def _write(self, name: str, promise: str, what: str, broken: Flags, *candidates: Floats) -> None:
        """Write the first candidate that does not read as missing into each cell broken by protection."""
        series, still = self.table.frame[name], broken & ~self.before.get(promise, np.False_)
        new, written = np.zeros(len(broken)), np.zeros(len(broken), dtype=np.bool_)
        for candidate in candidates:
            if still.any():
                tried = self.table.with_values(name, _put(series, candidate, still))
                fine = still & ~tried.missing(name)
                new, written, still = np.where(fine, candidate, new), written | fine, still & ~fine
        if written.any():
            self.table = self.table.with_values(name, _put(series, new, written))
            self.done[name, what] = written

    def counts(self) -> dict[str, int]:
        """The number of cells changed, each under what was done to it last."""
        counts: dict[str, int] = {}
        changed: dict[str, Flags] = {}
        for (name, what), written in reversed(self.done.items()):
            if name not in changed:
                changed[name] = _numbers(self.start, name) != _numbers(self.table, name)
            counts[f"`{name}` {what}"] = int((written & changed[name]).sum())
            changed[name] = changed[name] & ~written
        return {what: count for what, count in reversed(counts.items()) if count}


def _ends(column: Column) -> tuple[float, float]:
    """The ends of a column's range: of an integer one the least and the greatest whole number in it."""
    lower = -np.inf if column.lower is None else float(column.lower)
    upper = np.inf if column.upper is None else float(column.upper)
    if not column.integer:
        return lower, upper
    if np.ceil(lower) > np.floor(upper):
        raise PlanError(
            f"the range of the integer column `{column.name}`, {lower:g} to {upper:g}, has no whole number"
        )
    return float(np.ceil(lower)), float(np.floor(upper))


def _numbers(table: Table, name: str) -> Floats:
    """The values of a column of numbers, NaN where missing; infinite ones too, as a range can mend them."""
    values = table.frame[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
    return np.where(table.missing(name), np.nan, values)


def _put(series: pl.Series, values: Floats, where: Flags) -> pl.Series:
    """Put values into some cells; the dtype changes only where it cannot hold them."""
    if not where.any():
        return series
    new = pl.Series(np.where(where, values, 0.0) + 0.0)  # adding 0 makes 0 of −0, which a file would show
    wider = pl.Int64 if series.dtype.is_integer() else pl.Float64
    for dtype in (series.dtype, wider, pl.Float64):
        fitted, old = new.cast(dtype, strict=False), series.cast(dtype, strict=False)
        if (fitted.cast(pl.Float64) == new).fill_null(value=False).all() and (
            old.null_count() == series.null_count()
        ):
            break
    return fitted.zip_with(pl.Series(where), old).alias(series.name)


def _as_whole(table: Table, name: str, original: Table | None) -> Table:
    """Make a column of decimals one of whole numbers, if all are and the original's were."""
    series = table.frame[name]
    model = pl.Int64() if original is None else original.frame.schema.get(name, pl.Int64())
    if series.dtype.is_integer() or not model.is_integer():
        return table
    values = series.cast(pl.Float64).fill_nan(None)  # whole numbers have no NaN: missing stays missing
    whole = values.cast(pl.Int64, strict=False)
    alike = whole.null_count() == values.null_count() and (whole.cast(pl.Float64) == values).all()
    return table.with_values(name, whole) if alike else table


# Sums --------------------------------------------------------------------------------------------------


def sums_in_order(table: Table) -> list[tuple[Rule, Sum, str]]:
    """The rules that say how a total is made up, totals that are parts of others first.

    A column is the total of the first rule that can tell; further ones about it are only counted.
    """
    chosen: dict[str, tuple[Rule, Sum, str]] = {}
    for rule in table.schema.rules:
        if rule.sum is None or not all(_is_summable(table, name) for name in rule.columns):
            continue
        able = [name for name in rule.sum.totals if table.schema[name].kind is Kind.CONTINUOUS]
        total = next((name for name in able if name not in chosen), None)
        if total is not None:
            chosen[total] = (rule, rule.sum, total)
    parts = {total: equation.parts(total) for total, (_, equation, _) in chosen.items()}
    try:
        order = list(TopologicalSorter(parts).static_order())
    except CycleError as error:
        circle = dict.fromkeys(error.args[1])
        raise PlanError.gather(
            "the set of rules",
            [f"the totals {quoted(circle)} are parts of each other"],
            hint="write each sum once, with its total alone on one side",
        ) from None
    return [chosen[name] for name in order if name in chosen]


def _is_summable(table: Table, name: str) -> bool:
    return table.frame.schema[name].is_numeric() or table.is_generalised(name)

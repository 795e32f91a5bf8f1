"""Coarseness: what is lost when exact values become ranges, sets of values or wildcards."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.core.measure import Measure, Score
from sfumato.core.params import Columns, param
from sfumato.core.run import Run
from sfumato.data.codings import codes_of_both, microseconds, numbers_of_both
from sfumato.data.evidence import Evidence
from sfumato.data.generalised.intervals import ends, is_interval
from sfumato.data.generalised.nodes import WILDCARD, match_leaves
from sfumato.data.schema import Column, Kind
from sfumato.data.table import Floats, Ints, Table
from sfumato.errors import DataError


class GeneralisationLoss(Measure):
    r"""Mean distance from each record to the farthest values that its release may stand for.

    .. math::

        IL(D, D') = \frac{1}{n\,m} \sum_{i=1}^{n} \sqrt{\sum_{j=1}^{m}
            \left(\frac{a_{ij} - a'_{ij}}{\sigma_j}\right)^2}

    where :math:`\sigma_j` is the standard deviation of column :math:`j` in the original, and
    :math:`a'_{ij}` is the end of the released range that is farthest from the original value
    :math:`a_{ij}`; of a wildcard, the farthest end of the column's domain. An exact value is a range of one
    value. Ordinal columns count by position; a nominal value is 0 from itself and 1 from all others (so
    :math:`\sigma^2` is half the chance that two records differ, as for numbers it is half their mean
    squared difference), and a set of values is 1 from each.

    See Also
    --------
    EarthMoversDistance : what is lost of the distribution, not of the records.

    Notes
    -----
    **How to read it.** 0 means that nothing was changed in columns that vary; the unit is about one standard
    deviation of one column. It is the worst case: the mean of a range is nearer. It compares releases of
    one original. ``by_column`` is the mean loss of each column in its standard deviations, ``by_record``
    that of each record.

    **Doubt.** Exact. The paper takes all columns for numbers, codes of counties as well: to follow it,
    declare them so.

    **Missing.** A value that is missing in the release only is a wildcard, and so is every value of a
    record that was left out. One that is missing in the original cannot be lost, and counts as 0. Columns
    that do not vary in the original have no unit and are left out.

    **Cost.** :math:`O(n)` for each column.
    """

    name = "generalisation-loss"
    title = "Loss by generalisation"
    aspect = "utility"
    better = "low"
    bounds = (0.0, np.inf)
    kinds = frozenset({Kind.CONTINUOUS, Kind.ORDINAL, Kind.NOMINAL, Kind.DATE})
    references = ("sanchez2016",)
    cost = "n"

    about: Columns = param(("@key",), "Columns whose loss counts; where there are none, all.")

    def columns(self, evidence: Evidence) -> tuple[str, ...]:
        """The columns asked for, as far as both tables have them."""
        shared = evidence.shared_columns
        wanted = set(evidence.original.schema.resolve(self.about))
        chosen = tuple(name for name in shared if name in wanted) or shared
        return evidence.of_kinds(chosen, self.kinds)

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse where it is not known what was released for whom, or the original is coarse itself."""
        reason = super().refuses(evidence)
        if reason is not None:
            return reason
        if evidence.source_rows is None:
            return f"{self.name} must know what was released for whom, got: records that do not map"
        original = evidence.original
        coarse = [
            name
            for name in self.columns(evidence)
            if name in original.nodes or is_interval(original.frame.schema[name])
        ]
        if coarse:
            return f"{self.name} must be given exact values in the original, got: `{coarse[0]}`"
        return None

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Take the farthest value column by column."""
        assert evidence.source_rows is not None  # `refuses` saw to it
        names = self.columns(evidence)
        if not len(evidence.original):
            return Score.not_estimable("the original has no records")
        released = np.flatnonzero(evidence.source_rows >= 0)
        sources = evidence.source_rows[released]
        left_out = np.setdiff1d(np.arange(len(evidence.original)), sources)
        sources = np.concatenate((sources, left_out))
        released = np.concatenate((released, np.full(len(left_out), -1)))
        squares, by_column = np.zeros(len(sources)), {}
        for name in run.track(self.title, names, len(names)):
            distances = _standardised(evidence, name, sources, released)
            if distances is not None:
                squares += distances**2
                by_column[name] = float(distances.mean())
        if not by_column:
            return Score.not_estimable("no column of the original varies")
        losses = np.sqrt(squares) / len(by_column)
        totals = np.bincount(sources, weights=losses, minlength=len(evidence.original))
        return Score(
            value=float(losses.mean()),
            by_column=by_column,
            by_record=totals / np.bincount(sources, minlength=len(evidence.original)),
            details={
                "columns": len(by_column),
                "columns_left_out": len(names) - len(by_column),
                "records": len(sources),
                "records_left_out": len(left_out),
            },
        )


def _standardised(evidence: Evidence, name: str, sources: Ints, released: Ints) -> Floats | None:
    """How far the farthest value is from each original one, in standard deviations; None if all are alike."""
    assert evidence.protected is not None  # measures see to it
    original, protected = evidence.original, evidence.protected
    if original.schema[name].kind is Kind.NOMINAL:
        values, exact = _nominal(original, protected, name)
        codes = original.codes(name).codes
        counts = np.bincount(codes[codes >= 0])
        share = counts / max(counts.sum(), 1)
        varies = np.count_nonzero(counts) > 1  # nothing but missing values does not
        deviation = float(np.sqrt(max(1.0 - (share**2).sum(), 0.0) / 2)) if varies else 0.0
        distances = (np.append(exact, -2)[released] != values[sources]).astype(np.float64)
        known = values[sources] >= 0
    else:
        numbers, lows, highs = _ordered(original, protected, name)
        domain = np.array(_domain(original.schema[name], numbers[~np.isnan(numbers)]))
        # A power of two off, so that no square overflows or vanishes: the unit does not count.
        sizes = [float(np.nanmax(np.abs(each), initial=0.0)) for each in (numbers, lows, highs, domain)]
        exponent = int(np.frexp(max(sizes))[1])
        numbers, lows, highs, domain = (np.ldexp(each, -exponent) for each in (numbers, lows, highs, domain))
        low, high = domain
        there = numbers[~np.isnan(numbers)]
        deviation = float(there.std()) if len(there) and np.ptp(there) > 0 else 0.0
        own = numbers[sources]
        least, greatest = np.append(lows, np.nan)[released], np.append(highs, np.nan)[released]
        least, greatest = np.where(np.isnan(least), low, least), np.where(np.isnan(greatest), high, greatest)
        distances = np.maximum(np.abs(own - least), np.abs(own - greatest))
        known = ~np.isnan(own)
    if deviation == 0:
        return None
    return np.where(known, distances, 0.0) / deviation


def _domain(column: Column, values: Floats) -> tuple[float, float]:
    """From where to where a column's values go: declared, or else as seen."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    return (
        low if column.lower is None or np.isinf(column.lower) else min(low, column.lower),
        high if column.upper is None or np.isinf(column.upper) else max(high, column.upper),
    )


def _nominal(original: Table, protected: Table, name: str) -> tuple[Ints, Ints]:
    """The codes of the original values (−1: missing) and of those released exactly (−2: not so)."""
    series = protected.frame[name]
    if is_interval(series.dtype):
        lo, hi = ends(series)
        exact = (lo == hi).fill_null(value=False)
        lone = Table(
            pl.DataFrame({name: lo.zip_with(exact, pl.Series([None], dtype=lo.dtype))}),
            original.schema.select([name]),
        )
        values, codes = codes_of_both(original, lone, name)
    elif name in protected.nodes:
        nodes = protected.nodes[name]
        labels = nodes.codes(series).astype(np.int64)
        firsts = np.append(nodes.members, 0)[nodes.starts[:-1]]  # a wildcard of no leaves has none
        only = np.where(nodes.sizes == 1, firsts, -2).astype(np.int64)
        only[(nodes.labels == WILDCARD).to_numpy()] = -2
        found = match_leaves(original.frame[name], nodes.leaves).astype(np.int64)
        strange = found < -1  # a value that no label covers: as good as any other that is not there
        values = np.where(strange, len(nodes.leaves), found)
        values = np.where(original.missing(name), -1, values)
        codes = np.append(only, -2)[labels]
    else:
        values, codes = codes_of_both(original, protected, name)
    return values, np.where(codes < 0, -2, codes)


def _ordered(original: Table, protected: Table, name: str) -> tuple[Floats, Floats, Floats]:
    """The original numbers, and the ends of what was released for them; NaN where missing or open."""
    series = protected.frame[name]
    if name in protected.nodes:
        return _positions(original, protected, name)
    if not is_interval(series.dtype):
        values, exact = numbers_of_both(original, protected, name)
        return values, exact, exact
    if original.schema[name].kind is Kind.ORDINAL:
        values = _as_written(original, name)
    else:
        values = original.numbers(name)
    lo, hi = ends(series)
    if original.schema[name].kind is Kind.DATE:
        values = values * (microseconds(original.frame.schema[name]) / microseconds(lo.dtype))
    low, high = (side.to_physical().cast(pl.Float64).fill_null(np.nan).to_numpy() for side in (lo, hi))
    return values, low, high


def _as_written(table: Table, name: str) -> Floats:
    """An ordinal column's own numbers: ranges are of values, not of positions."""
    series = table.frame[name]
    if not series.dtype.is_numeric():
        raise DataError(
            f"column `{name}` must hold numbers to lie in ranges, got: {series.dtype.base_type()}"
        )
    return np.where(table.missing(name), np.nan, series.cast(pl.Float64).fill_null(np.nan).to_numpy())


def _positions(original: Table, protected: Table, name: str) -> tuple[Floats, Floats, Floats]:
    """Sets of ordered values: from the position of the least to that of the greatest."""
    nodes = protected.nodes[name]
    coded = original.codes(name)
    places = match_leaves(coded.categories, nodes.leaves)
    leaf = np.full(len(nodes.leaves), np.nan)
    leaf[places[places >= 0]] = np.flatnonzero(places >= 0)
    members = np.repeat(np.arange(len(nodes.labels)), nodes.sizes)
    low, high = np.full(len(nodes.labels) + 1, np.nan), np.full(len(nodes.labels) + 1, np.nan)
    np.fmin.at(low, members, leaf[nodes.members])
    np.fmax.at(high, members, leaf[nodes.members])
    wild = np.append((nodes.labels == WILDCARD).to_numpy(), [True])  # the last: missing
    low[wild], high[wild] = np.nan, np.nan
    labels = nodes.codes(protected.frame[name])
    values = np.where(coded.codes < 0, np.nan, coded.codes.astype(np.float64))
    return values, low[labels], high[labels]

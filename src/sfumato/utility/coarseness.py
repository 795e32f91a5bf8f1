"""Coarseness: what is lost when exact values become ranges, sets of values or wildcards."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Needs, Score
from sfumato.core.params import Columns, param
from sfumato.core.run import Run
from sfumato.data.generalised.cover import cover_of, extent
from sfumato.data.schema import COMPARABLE, Kind
from sfumato.kernels.arrays import Floats, Ints


class GeneralisationLoss(Measure):
    r"""Mean distance from each record to the farthest values that its released cells may stand for.

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
    vetted = "brute-forced: unit/utility/test_coarseness.py::test_against_a_plain_loop"
    family = "coarseness"
    title = "Loss by generalisation"
    aspect = "utility"
    better = "low"
    bounds = (0.0, np.inf)
    kinds = COMPARABLE
    references = ("sanchez2016",)
    cost = "n"
    needs = Needs(mapping=True, exact_original=True)

    about: Columns = param(("@key",), "Columns whose loss counts; if the table has none of them, all.")

    def columns(self, evidence: Evidence) -> tuple[str, ...]:
        """The columns asked for, as far as both tables have them."""
        shared = evidence.shared_columns
        wanted = set(evidence.original.schema.resolve(self.about))
        chosen = tuple(name for name in shared if name in wanted) or shared
        return evidence.of_kinds(chosen, self.kinds)

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
            distances = _standardised_distances(evidence, name, sources, released)
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


def _standardised_distances(evidence: Evidence, name: str, sources: Ints, released: Ints) -> Floats | None:
    """How far the farthest value is from each original one, in standard deviations; None if all are alike."""
    assert evidence.protected is not None  # measures see to it
    original = evidence.original
    values, cover = cover_of(original, evidence.protected, name)
    cover = replace(cover, domain=extent(values, column=original.schema[name])).close_ends().take(released)
    own = values[sources]
    if original.schema[name].kind is Kind.NOMINAL:
        codes = original.codes(name).codes
        counts = np.bincount(codes[codes >= 0])
        share = counts / max(counts.sum(), 1)
        varies = np.count_nonzero(counts) > 1  # nothing but missing values does not
        deviation = float(np.sqrt(max(1.0 - (share**2).sum(), 0.0) / 2)) if varies else 0.0
        distances = 1.0 - ((cover.lows == own) & (cover.highs == own))
    else:
        low, high = cover.domain
        lows, highs = np.where(cover.missing, low, cover.lows), np.where(cover.missing, high, cover.highs)
        # A power of two off, so that no square overflows or vanishes: the unit does not count.
        sizes = [float(np.nanmax(np.abs(each), initial=0.0)) for each in (values, lows, highs)]
        exponent = int(np.frexp(max(sizes))[1])
        values, own, lows, highs = (np.ldexp(each, -exponent) for each in (values, own, lows, highs))
        there = values[~np.isnan(values)]
        deviation = float(there.std()) if len(there) and np.ptp(there) > 0 else 0.0
        distances = np.maximum(np.abs(own - lows), np.abs(own - highs))
    if deviation == 0:
        return None
    return np.where(np.isnan(own), 0.0, distances) / deviation

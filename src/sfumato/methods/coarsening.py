"""Naive coarsening: every column in fixed intervals, independent of the data. A baseline."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.core.method import Gives, Method, Randomness
from sfumato.core.params import PerColumn, param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import DType
from sfumato.data.generalised.ranges import RecordGroups, is_categorical, numbers_and_type, with_ranges
from sfumato.data.generalised.round_ends import round_outwards
from sfumato.data.schema import Column, Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.methods._analyst_notes import GROUPED
from sfumato.methods.sorted_generalisation import as_numbers

Numbers = Ints | Floats

#: Numbers from here on are cut as those with decimals are: 64 bits may not hold what is beside them.
_LARGEST_WHOLE = 2**62


class NaiveCoarsening(Method):
    r"""Replace each value by one of r intervals of equal length.

    Algorithm S3 of Sánchez, Martínez and Domingo-Ferrer, after de Montjoye and others. The domain of a
    column, from :math:`a` to :math:`b`, is cut into :math:`r` intervals that begin at

    .. math::

        b_i = a + \left\lfloor \frac{i\,(b - a + 1)}{r} \right\rfloor, \qquad i = 0, \dots, r - 1

    and end where the next begins, less one; ages from 0 to 85 with :math:`r = 4` become [0, 20], [21, 42],
    [43, 63] and [64, 85]. Days and instants are whole numbers too. For numbers with decimals the intervals
    begin at :math:`a + i (b - a)/r` and end where the next begins; a value at the border is in the upper one.
    The domain is the declared one (``lower``, ``upper``), or else the range of the values, widened to round
    ends: with the lowest and highest value themselves every border would reveal these two.

    Ordered categories are coarsened by their rank; nominal ones by their number where they are numbers, as in
    the paper, or else in alphabetical order. They show the categories that occur in their interval.

    See Also
    --------
    SortedGeneralisation : ranges that follow the data, with a guarantee.
    TopBottomCoding : hides only the extremes.

    Notes
    -----
    **When to use.** As a baseline for comparisons. The paper shows why not to use it for protection: it loses
    more information than k-anonymity, and still leaves people unique.

    **Guarantees.** Every interval contains the original value. The number of people who share one is not
    guaranteed.

    **Risk to know.** An interval in a sparse part of a column may contain only one person.

    **Ties, missing, weights.** Equal values stay equal. Missing values stay missing. Weights are not used.

    **Cost.** :math:`O(n \log r)` per column.

    Examples
    --------
    >>> from sfumato.data.generalised.text_forms import to_text
    >>> ages = pl.DataFrame({"age": [0, 20, 21, 50, 85]})
    >>> table = Table(ages, Schema((Column("age", Kind.CONTINUOUS, lower=0, upper=85),)))
    >>> to_text(NaiveCoarsening(share=25).protect(table, Run(seed=1)).table.frame["age"]).to_list()
    ['[0;20]', '[0;20]', '[21;42]', '[43;63]', '[64;85]']
    """

    name = "naive-coarsening"
    vetted = "published: reference/test_paper_local_recoding.py::test_coarsened_ages"
    synonyms = ("discretisation", "binning")
    family = "recoding"
    nature = "non-perturbative"
    title = "Naive coarsening"
    analyst_note = GROUPED
    kinds = frozenset({Kind.CONTINUOUS, Kind.ORDINAL, Kind.NOMINAL, Kind.DATE})
    references = ("sanchez2016", "demontjoye2015")
    gives = Gives(generalised=True)
    randomness = Randomness(stochastic=False)

    share: float = param(
        12.5,
        "Share of the domain that an interval covers; there are 100 / share intervals, rounded.",
        ge=0.01,
        le=100,
        unit="%",
        log=True,
        tune=(0.5, 50),
        drive=True,
        hint="12.5 makes 8 intervals",
    )
    resolution: PerColumn[int] | None = param(
        None, "Number of intervals, instead of a share.", ge=1, le=100_000, symbol="r"
    )

    def refuses(self, table: Table) -> str | None:
        """Refuse columns that were generalised before."""
        return self.refuses_generalised(table) or super().refuses(table)

    def protect(self, table: Table, run: Run) -> Release:
        """Coarsen each column by itself."""
        protected = table
        for name in run.track(self.title, table.chosen, total=len(table.chosen)):
            given = None if self.resolution is None else self.resolution[name]
            parts = round(100 / self.share) if given is None else given
            protected = _coarsen_column(protected, name, parts)
        return Release.record_by_record(protected)


def _coarsen_column(table: Table, name: str, parts: int) -> Table:
    missing = table.missing(name)
    numbers = None if is_categorical(table, name) else numbers_and_type(table, name)
    if numbers is not None:
        values, dtype = numbers
        if missing.all():
            return table.with_values(name, intervals(values, values, missing=missing).cast(_struct(dtype)))
        return table.with_values(name, _in_intervals(table.schema[name], numbers, missing, parts))
    if missing.all():
        return with_ranges(table, [name], RecordGroups.of(np.zeros(len(table), dtype=np.int64)))
    places = _places(table, name, parts)
    return with_ranges(table, [name], RecordGroups.of(np.where(missing, -1, places)))


def _struct(dtype: DType) -> pl.Struct:
    return pl.Struct({"lo": dtype, "hi": dtype})


def _in_intervals(column: Column, numbers: tuple[Numbers, DType], missing: Flags, parts: int) -> pl.Series:
    """The interval of each value, as a column of intervals."""
    values, dtype = numbers
    whole = values.dtype.kind == "i" or (column.integer and _are_whole(values))
    known = values[~missing]
    low, high = known.min(), known.max()
    (outer_low,), (outer_high,) = round_outwards(
        known.min(keepdims=True), known.max(keepdims=True), known, dtype
    )
    if column.lower is not None and np.isfinite(column.lower):
        outer_low = min(low, np.ceil(column.lower) if whole else column.lower)
    if column.upper is not None and np.isfinite(column.upper):
        outer_high = max(high, np.floor(column.upper) if whole else column.upper)
    low, high = outer_low, outer_high
    begins = begins_of(low, high, parts, whole=whole)
    ends = np.append(begins[1:] - 1, int(high)) if whole else np.append(begins[1:], high)
    places = np.clip(np.searchsorted(begins, values, side="right") - 1, 0, len(begins) - 1)
    shown = [pl.Series(each[places]).cast(dtype) for each in (begins, ends)]
    return intervals(shown[0], shown[1], missing=missing)


def _are_whole(values: npt.NDArray[np.number]) -> bool:
    """Whether all are whole numbers that 64 bits can hold, the number after the last of them too."""
    return bool((values == np.rint(values)).all() and np.abs(values).max(initial=0) < _LARGEST_WHOLE)


def begins_of(low: float, high: float, parts: int, *, whole: bool) -> Numbers:
    """Where the intervals from low to high begin, those left out that would be empty."""
    if not whole:
        steps = np.arange(parts) / parts
        return np.unique(low * (1 - steps) + high * steps)
    first, span = int(low), int(high) - int(low) + 1
    parts = min(parts, span)
    return np.array([first + index * span // parts for index in range(parts)], dtype=np.int64)


def _places(table: Table, name: str, parts: int) -> Ints:
    """The number of the interval of each category: by its number where it has one, else by its place."""
    if table.schema[name].kind is Kind.NOMINAL and table.frame.schema[name].is_numeric():
        values = as_numbers(table, name)
        known = values[~np.isnan(values)]
        begins = begins_of(known.min(), known.max(), parts, whole=_are_whole(known))
        return (np.searchsorted(begins, values, side="right") - 1).astype(np.int64)
    coded = table.codes(name)
    begins = begins_of(0, max(len(coded.categories) - 1, 0), parts, whole=True)
    return (np.searchsorted(begins, coded.codes, side="right") - 1).astype(np.int64)

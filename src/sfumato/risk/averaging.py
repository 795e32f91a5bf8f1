"""Averaging: who has several noisy releases takes the mean of what they say of a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Counting, Score, Tells
from sfumato.core.origin import Origin
from sfumato.core.release import Release, concatenate_releases
from sfumato.core.run import Run
from sfumato.core.waves import Wave
from sfumato.data.generalised.cover import Cover
from sfumato.data.generalised.intervals import ends, intervals, is_interval
from sfumato.data.generalised.nodes import canonical_text
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Floats, Ints
from sfumato.risk._series import waves_of, why_not_traceable
from sfumato.risk.linkage import DistanceLinkage


class AveragingRisk(DistanceLinkage):
    r"""Share of records linked to their own by averaging each person's values over all releases.

    Whoever can put the records of one person in several releases together, as by a pseudonym or a value that
    stays, takes for each column the mean of the numbers and dates, or the commonest category:

    .. math::

        \bar y_{pj} = \frac{1}{|T_p|} \sum_{t \in T_p} y_{tpj}

    over the releases :math:`T_p` that the person is in, and links these to what is known of people, as
    `DistanceLinkage` does. Of ranges what they have in common counts (where nothing is, the last), of groups
    of values and ranges beside exact values the narrowest. The score is the worse of that and of the last
    release alone, since an intruder may do without the others.

    Notes
    -----
    **How to read it.** 0 is safe; 1 means every record is found. ``baseline`` is what the last release alone
    gives away: what is above it is gained by the mean. Little is where chance is keyed by person, as in a
    plan with a part ``[series]``; there look at `DifferenceRisk` as well.

    **Doubt.** Exact, ties shared, for an intruder who puts all releases together without a fault.

    **Missing.** As in `DistanceLinkage`; what is missing in one release is taken from the others.

    **Units.** As in `DistanceLinkage`; if persons have several records, ``record`` of the series must say
    which is which.

    **Cost.** Twice that of `DistanceLinkage`.

    Examples
    --------
    >>> from sfumato.core.waves import Waves
    >>> schema = Schema((Column("who", Kind.NOMINAL, Role.PERSON), Column("x", Kind.CONTINUOUS, Role.KEY)))
    >>> original = Table(pl.DataFrame({"who": [1, 2, 3], "x": [1.0, 2.0, 3.0]}), schema)
    >>> def released(*values):
    ...     table = original.with_values("x", pl.Series(values))
    ...     return Evidence(original, Release.of(table, source_rows=np.arange(3)))
    >>> last = released(2.0, 1.0, 3.5)
    >>> last.resources["series"] = Waves.of([released(0.0, 3.0, 2.5)])
    >>> score = AveragingRisk().score(last, Run(seed=1))
    >>> round(score.value, 2), round(score.baseline, 2)
    (1.0, 0.33)
    """

    name = "averaging-risk"
    vetted = "brute-forced: property/test_series_measures.py::test_the_mean_links_what_is_the_mean"
    family = "longitudinal releases"
    title = "Linkage by the mean of releases"
    tells = Tells(places={"series": 2}, intruder="averages all releases and takes the nearest record")
    references = ("domingoferrer2001", "carvalho2023")
    # What lies between columns of one release is not what the mean of several says.
    counts = Counting(pools_copies=True, intruder_records_only=True, opens_suppressed=True)

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse where nobody can be found again."""
        return super().refuses(evidence) or why_not_traceable(self.name, evidence)

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Link the last release alone, then the mean of all."""
        waves, release = waves_of(evidence), evidence.release
        assert waves is not None and release is not None  # noqa: PT018  — `refuses` saw to it
        now = waves.now(evidence)
        last = super().measure(evidence, run)
        mean = last
        if waves.earlier:
            made = average_releases(now, waves.earlier, self.columns(evidence))
            mean = super().measure(replace(evidence, release=release.with_table(made)), run)
        worse = mean if mean.value >= last.value else last
        details = {"releases": len(waves.earlier) + 1, "by_the_mean": mean.value}
        details |= {"by_the_last_alone": last.value}
        return replace(worse, baseline=last.value, details={**worse.details, **details})


def average_releases(now: Wave, earlier: Sequence[Wave], names: Sequence[str]) -> Table:
    """The last release with what all of them say of each record in some columns."""
    made = now.reading
    for name in names:
        others = [wave for wave in reversed(earlier) if name in wave.reading.schema]
        if not others:
            continue
        tables = [now.reading, *(wave.reading for wave in others)]
        places = [np.arange(len(now.units)), *(now.places_in(wave) for wave in others)]
        made = _put(made, name, tables, places)
    return made


def _put(made: Table, name: str, tables: Sequence[Table], places: Sequence[Ints]) -> Table:
    """One column of what all releases say, the last release first."""
    kind, dtypes = tables[0].schema[name].kind, [table.frame.schema[name] for table in tables]
    if any(table.is_generalised(name) for table in tables):
        if all(is_interval(dtype) for dtype in dtypes) and len(set(dtypes)) == 1:
            return made.with_values(name, _in_common(name, tables, places))
        return _narrowest(made, name, tables, places)
    free = replace(made.schema[name], integer=False)
    if kind is Kind.CONTINUOUS:
        mean = _mean([table.numbers(name) for table in tables], places)
        return made.with_values(name, pl.Series(mean).fill_nan(None), column=free)
    if kind is Kind.DATE and dtypes[0].is_temporal() and len(set(dtypes)) == 1:
        ticks = (table.frame[name].to_physical().cast(pl.Float64) for table in tables)
        mean = _mean([each.fill_null(np.nan).to_numpy() for each in ticks], places)
        days = pl.Series(mean).fill_nan(None).round().cast(pl.Int64)
        return made.with_values(name, days.cast(dtypes[0]))
    return made.with_values(name, _commonest(name, tables, places))


def _mean(columns: Sequence[Floats], places: Sequence[Ints]) -> Floats:
    """The mean of what is there at these places, NaN where nothing is."""
    numbers = np.stack([np.append(each, np.nan)[own] for each, own in zip(columns, places, strict=True)])
    there = ~np.isnan(numbers)
    counts = there.sum(axis=0)
    sums = np.where(there, numbers / np.maximum(counts, 1), 0.0).sum(axis=0)
    return np.where(counts > 0, sums, np.nan)


def _commonest(name: str, tables: Sequence[Table], places: Sequence[Ints]) -> pl.Series:
    """The category that most releases show, of equally many that of the latest."""
    texts = pl.concat([canonical_text(table.frame[name]).cast(pl.String) for table in tables])
    codes = texts.rank("dense").fill_null(0).to_numpy().astype(np.int64)
    stops = np.cumsum([0, *map(len, tables)])
    parts = zip(np.split(codes, stops[1:-1]), places, strict=True)
    own = np.stack([np.append(part, 0)[rows] for part, rows in parts])
    counts = np.stack([(own == each).sum(axis=0) for each in own])
    chosen = np.where(own > 0, counts, 0).argmax(axis=0)
    dtype = tables[0].frame.schema[name]
    stacked = pl.concat([table.frame[name].cast(pl.String) for table in tables])
    rows = np.stack([start + each for start, each in zip(stops, places, strict=False)])
    found = stacked.gather(rows[chosen, np.arange(own.shape[1])])
    back = found.cast(dtype, strict=False)
    return back if back.null_count() == found.null_count() else found


def _in_common(name: str, tables: Sequence[Table], places: Sequence[Ints]) -> pl.Series:
    """What the ranges of each record have in common, from the last release back as long as something is."""
    low, high = ends(tables[0].frame[name])
    missing = tables[0].frame[name].is_null()
    for table, rows in zip(tables[1:], places[1:], strict=True):
        there = pl.Series(rows).replace(-1, None)
        own = table.frame[name].gather(there)
        more = own.is_not_null()
        left, right = (end.gather(there) for end in ends(table.frame[name]))
        lows, highs = pl.DataFrame({"a": low, "b": left}), pl.DataFrame({"a": high, "b": right})
        lowest, highest = lows.max_horizontal(), highs.min_horizontal()
        apart = (lowest > highest).fill_null(value=False)
        take = more & ~apart & ~missing
        low = pl.select(pl.when(missing & more).then(left).when(take).then(lowest).otherwise(low)).to_series()
        high = pl.select(
            pl.when(missing & more).then(right).when(take).then(highest).otherwise(high)
        ).to_series()
        missing = missing & ~more
    return intervals(low, high, missing=missing, name=name)


def _narrowest(made: Table, name: str, tables: Sequence[Table], places: Sequence[Ints]) -> Table:
    """The cell of each record that spans least, of equal ones that of the latest release."""
    pieces = [(Origin.unknown(), Release.of(table.select([name]))) for table in tables]
    stacked = concatenate_releases(pieces, keep_order=False).table
    spread = np.append(np.nan_to_num(Cover.of(stacked, name).share_of_domain(), nan=np.inf), np.inf)
    starts = np.cumsum([0, *map(len, tables)])
    rows = np.stack(
        [np.where(own >= 0, own + start, len(stacked)) for own, start in zip(places, starts, strict=False)]
    )
    chosen = rows[spread[rows].argmin(axis=0), np.arange(rows.shape[1])]
    column = stacked.take(chosen)
    whole = made.with_values(name, column.frame[name], column=column.schema[name])
    return replace(whole, nodes={**{k: v for k, v in made.nodes.items() if k != name}, **column.nodes})

"""Round ends: an interval is widened until it ends at round numbers, not at two people's values.

How round depends on the width: the ends of an interval lie on the coarsest scale whose steps are at most a
fifth of it. Scales of numbers go by 1, 2 and 5 with noughts, scales of dates by months, quarters and years.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from sfumato.data.generalised.nodes import DType
from sfumato.kernels.arrays import Codes, Flags, Floats, Ints, Values

#: An end moves by less than this share of its interval's width.
_STEP_SHARE = 0.2
#: Where two groups were cut apart, an end stays on its side if a number this round lies between them.
_CUT_SHARE = 0.02
_SECONDS = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 10800, 21600, 43200)
_MONTHS = (1, 3, 6, 12, 24, 60, 120, 240, 600, 1200)
_DAY, _DAYS_A_MONTH, _YEAR_ZERO = 86_400, 30.436875, 1970 * 12
_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_FARTHEST = 2.0**62  # numbers beyond have no rounder neighbour that 64 bits hold


class Cuts(NamedTuple):
    """Where the groups were cut apart in one column: the values on both sides, by their rank from 1.

    A rank of 0 says that nothing was cut there.
    """

    below: Codes  # [groups, 2] the highest value that was cut off below, and the lowest that was kept
    above: Codes  # [groups, 2] the highest value that was kept, and the lowest that was cut off above


@dataclass(frozen=True, eq=False)
class Scales:
    """Where the round numbers of a column lie: of each scale its step, ascending."""

    dtype: DType
    whole: bool
    largest: float

    @cached_property
    def steps(self) -> Floats:
        """The step of each scale; that of months is their mean."""
        if self.dtype == pl.Date:
            return np.array([1.0, *(_DAYS_A_MONTH * months for months in _MONTHS)])
        if isinstance(self.dtype, pl.Datetime):
            days = [_DAY, *(_DAYS_A_MONTH * _DAY * months for months in _MONTHS)]
            return np.array([1.0 / self._unit, *_SECONDS, *days]) * self._unit
        return np.array([digit * 10.0**power for power in self._powers for digit in (1, 2, 5)])

    @property
    def _unit(self) -> int:
        return _PER_SECOND[getattr(self.dtype, "time_unit", "us")]

    @cached_property
    def _powers(self) -> range:
        top = int(np.ceil(np.log10(max(self.largest, 1e-300)))) + 1
        return range(0 if self.whole else top - 17, max(top, 1))

    @cached_property
    def has_closed_intervals(self) -> bool:
        """Whether an interval ends before the next begins, as 29 before 30; else both end at one number."""
        return self.whole and not isinstance(self.dtype, pl.Datetime)

    def below(self, values: Values, scale: int) -> Values:
        """The highest round number of a scale that is at most each value."""
        if self.dtype == pl.Date:
            return values if scale == 0 else _month_floor(values, _MONTHS[scale - 1], 0)
        if isinstance(self.dtype, pl.Datetime):
            return self._time(values, scale, 0)
        return self._multiple(np.floor_divide(values, self._divisor(scale)), scale)

    def after(self, values: Values, scale: int) -> Values:
        """The lowest round number of a scale that is above each value."""
        if self.dtype == pl.Date:
            return values + 1 if scale == 0 else _month_floor(values, _MONTHS[scale - 1], 1)
        if isinstance(self.dtype, pl.Datetime):
            return self._time(values, scale, 1)
        return self._multiple(np.floor_divide(values, self._divisor(scale)) + 1, scale)

    def last(self, values: Values, scale: int) -> Values:
        """The end of the step of a scale in which each value lies."""
        if self.has_closed_intervals:
            return self.after(values, scale) - 1
        at_end = self.below(values, scale) == values
        return np.where(at_end, values, self.after(values, scale))

    def _divisor(self, scale: int) -> Any:
        return int(self.steps[scale]) if self.integers else self.steps[scale]

    @property
    def integers(self) -> bool:
        """Whether the numbers are held as such of 64 bits."""
        return self.dtype.is_integer()

    def _multiple(self, times: Values, scale: int) -> Values:
        if self.integers:
            return times * int(self.steps[scale])
        power, digit = self._powers[scale // 3], (1, 2, 5)[scale % 3]
        # A tenth is no number of ours, but 3 / 10 is the one nearest to 0.3, as it is read from a file.
        return times * digit / 10.0**-power if power < 0 else times * (digit * 10.0**power)

    def _time(self, values: Values, scale: int, more: int) -> Values:
        finer = len(_SECONDS) + 2
        if scale < finer - 1:
            return self._step(values, scale, more)
        clocks, day = self._local_times(values), _DAY * self._unit
        if scale < finer:
            return self._start_of_day(self._step(clocks, scale, more))
        return self._start_of_day(
            _month_floor(np.floor_divide(clocks, day), _MONTHS[scale - finer], more) * day
        )

    def _step(self, values: Values, scale: int, more: int) -> Values:
        step = round(self.steps[scale])
        bounds: Values = (np.floor_divide(values, step) + more) * step
        return bounds

    def _local_times(self, times: Values) -> Values:
        """What the clocks of the column's zone show at these times: days begin where they do."""
        assert isinstance(self.dtype, pl.Datetime)
        unit, zone = self.dtype.time_unit, self.dtype.time_zone
        if zone is None:
            return times
        local = pl.Series(times).cast(pl.Datetime(unit, "UTC")).dt.convert_time_zone(zone)
        clocks: Values = local.dt.replace_time_zone(None).to_physical().to_numpy()
        return clocks

    def _start_of_day(self, midnights: Values) -> Values:
        """When a day of the column's zone begins; where clocks pass over midnight, an hour later by them."""
        assert isinstance(self.dtype, pl.Datetime)
        zone = self.dtype.time_zone
        if zone is None:
            return midnights
        clocks = pl.Series(midnights).cast(pl.Datetime(self.dtype.time_unit))
        there, later = (
            each.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
            for each in (clocks, clocks.dt.offset_by("1h"))
        )
        times: Values = there.fill_null(later).to_physical().to_numpy()
        return times

    def roundest(self, value: Any, beyond: Any, *, upwards: bool = False) -> Any:
        """The number of the coarsest scale between a value, included, and another below it; or above it."""
        for scale in reversed(range(len(self.steps))):
            if not upwards:
                found = self.below(np.array([value]), scale)[0]
            elif self.dtype.is_temporal():
                found = self.after(np.array([value - 1]), scale)[0]
            else:
                found = -self.below(np.array([-value]), scale)[0]
            if value <= found < beyond if upwards else beyond < found <= value:
                return found
        return value

    def of_width(self, widths: Floats, finest: int) -> Ints:
        """The coarsest scale whose steps are at most a fifth of a width, but none finer than the finest."""
        found = np.searchsorted(self.steps, _STEP_SHARE * widths, side="right") - 1
        return np.maximum(found, finest).astype(np.int64)

    def of_spacing(self, values: Values) -> int:
        """The finest scale to use: its steps are at least half as long as people are apart.

        What counts is the middle half of the values, since a few may lie far out.
        """
        low, high = np.quantile(values.astype(np.float64), [0.25, 0.75])
        apart = (high - low) / (len(values) / 2)
        return min(int(np.searchsorted(self.steps, apart / 2)), len(self.steps) - 1)


def _month_floor(days: Values, months: int, more: int) -> Values:
    """The first day of so many months, counted from the year 0, in which a day lies; or of the next."""
    number = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) + _YEAR_ZERO
    first = (number // months + more) * months - _YEAR_ZERO
    return first.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def roundest(value: Any, beyond: Any, values: Values, dtype: DType) -> Any:
    """The roundest number between a value of a column, included, and another, which it does not reach."""
    scales = scales_of(values, dtype) if np.isfinite(values.astype(np.float64)).all() else None
    if scales is None or not 0 < scales.largest < _FARTHEST:
        return value
    return scales.roundest(value, beyond, upwards=beyond > value)


def scales_of(values: Values, dtype: DType) -> Scales:
    """The scales for the known values of a column."""
    whole = values.dtype.kind == "i" or bool((values == np.rint(values)).all())
    return Scales(dtype, whole, float(np.abs(values.astype(np.float64)).max(initial=1.0 if whole else 0.0)))


def round_outwards(
    lows: Values, highs: Values, values: Values, dtype: DType, cuts: Cuts | None = None
) -> tuple[Values, Values]:
    """Move the ends of intervals outwards to round numbers; an exact value stays.

    ``values`` are those of the column, which say how fine it is. Where ``cuts`` say that groups were cut
    apart, their ends stay apart, unless no round number lies between: then they overlap by less than a step.
    """
    if not len(values) or not np.isfinite(values.astype(np.float64)).all():
        return lows, highs
    scales = scales_of(values, dtype)
    if not 0 < scales.largest < _FARTHEST:
        return lows, highs
    widths = highs.astype(np.float64) - lows.astype(np.float64)
    moved, finest = widths > 0, scales.of_spacing(values)
    chosen = scales.of_width(widths, finest)
    new_lows, new_highs = lows.copy(), highs.copy()
    for scale in np.unique(chosen[moved]).tolist():
        here = moved & (chosen == scale)
        new_lows[here] = scales.below(lows[here], scale)
        new_highs[here] = scales.last(highs[here], scale)
    if cuts is not None:
        least, distinct = _CUT_SHARE * widths, np.unique(values)
        bounds, steps = _roundest_between(distinct, scales, cuts.below, finest)
        np.maximum(new_lows, bounds, out=new_lows, where=(steps > 0) & (steps >= least))
        bounds, steps = _roundest_between(distinct, scales, cuts.above, finest)
        np.minimum(
            new_highs,
            bounds - scales.has_closed_intervals,
            out=new_highs,
            where=(steps > 0) & (steps >= least),
        )
    return np.where(moved, np.minimum(new_lows, lows), lows), np.where(
        moved, np.maximum(new_highs, highs), highs
    )


def _roundest_between(distinct: Values, scales: Scales, pairs: Codes, finest: int) -> tuple[Values, Floats]:
    """The roundest number between the two values of each pair, and the step of its scale; 0 for none."""
    places = np.maximum(pairs.astype(np.int64) - 1, 0)
    low, high = distinct[places[:, 0]], distinct[places[:, 1]]
    found, steps = low.copy(), np.zeros(len(low))
    last = high
    if not scales.has_closed_intervals:  # no value may lie where two intervals meet
        last = np.nextafter(high, -np.inf) if high.dtype.kind == "f" else high - 1
    open_: Flags = (pairs > 0).all(axis=1) & (low < high)
    for scale in range(len(scales.steps) - 1, finest - 1, -1):
        if not open_.any():
            break
        bounds = scales.below(last[open_], scale)
        fits = (bounds > low[open_]) & (bounds <= high[open_])
        here = np.flatnonzero(open_)[fits]
        found[here], steps[here] = bounds[fits], scales.steps[scale]
        open_[here] = False
    return found, steps

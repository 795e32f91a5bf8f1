"""Date shifting: all dates of a person move together, so that the intervals between them stay."""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl

from sfumato.core.method import Gives, Method, set_protected_values
from sfumato.core.params import param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.pseudonyms import keyed_numbers
from sfumato.data.schema import Kind, Role
from sfumato.data.table import TEXTUAL, Table
from sfumato.errors import DataError
from sfumato.kernels.arrays import Codes, Values

#: How many units of a type make a day.
_DAY = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


class DateShifting(Method):
    r"""Shift all dates of a person by the same random number of days.

    .. math::

        y_{ij} = x_{ij} + \delta_{p(i)}, \qquad
        \delta_p \in \{ -D, \dots, -1, 1, \dots, D \} \text{ with the same chance}

    where :math:`p(i)` is the person of record :math:`i`, :math:`D` the largest shift in ``days``, and the
    shifts are multiples of ``step``: with 7 the day of the week is kept. No shift is zero.

    See Also
    --------
    UncorrelatedNoise : moves each date independently.
    NaiveCoarsening : replaces a date by an interval.

    Notes
    -----
    **When to use.** Histories of patients or customers, in which the time between events matters and the
    calendar does not. Name all date columns of the person: one that is left out reveals the shift of all
    others.

    **Guarantees.** The time between any two dates of a person (``by="household"``: of a household) stays
    exactly as it was, also across the tables of one plan that have the same numbers of people. Every date
    moves, by at most ``days``.

    **Risk to know.** A sequence of intervals can be as unique as the dates themselves. One date that is known
    exactly, such as a public accident, gives the shift and with it all the person's dates. Without a column
    of persons each record has its own shift. Season and weekday blur by as much as the shift; ages that are
    computed from the dates stay.

    **Ties, missing, weights.** Equal dates of one person stay equal. Missing dates stay missing; records
    without a person number have their own shift. Times of day stay. Weights are not used.

    **Cost.** :math:`O(n)`: the shift of a person is a keyed hash of their number (SipHash), so that no list
    is needed, and the shift cannot be computed without the seed.

    Examples
    --------
    >>> from datetime import date
    >>> stays = pl.DataFrame({"came": [date(2026, 3, 1)], "left": [date(2026, 3, 9)]})
    >>> shifted = protect(stays, DateShifting(days=30), columns=["came", "left"], seed=1).data
    >>> (shifted["left"] - shifted["came"]).dt.total_days().to_list(), shifted["came"].to_list()
    ([8], [datetime.date(2026, 2, 22)])
    """

    name = "date-shifting"
    vetted = (
        "brute-forced: unit/methods/test_date_shifting.py::"
        "test_intervals_of_a_person_stay_and_every_date_moves"
    )
    synonyms = ("date offset",)
    family = "noise"
    title = "Date shifting"
    analyst_note = (
        "Intervals between the dates of one person hold; the season and the order of dates of different "
        "persons do not."
    )
    analyst_extras = (("step=1", "Weekdays do not hold."), ("step=7", "Weekdays hold."))
    kinds = frozenset({Kind.DATE})
    gives = Gives(kept=("differences",))
    references = ("hripcsak2016",)
    cost = "n"

    days: int = param(
        182,
        "Largest shift of a person's dates.",
        ge=1,
        le=36_500,
        unit="days",
        symbol="D",
        log=True,
        tune=(1, 1_000),
        drive=True,
        hint="182 blurs the season; 30 keeps it",
        label="Largest shift",
    )
    step: int = param(
        1,
        "Shifts are multiples of this: 7 keeps the day of the week.",
        ge=1,
        le=366,
        unit="days",
        label="Step of shifts",
    )
    by: Literal["person", "household"] = param(
        "person",
        "Whose dates move together.",
        choices={
            "person": "Those of a person; without a column of persons, those of a record.",
            "household": "Those of a household.",
        },
        label="Move together",
    )

    def by_person(self) -> bool:
        """Shifts are keyed by the person already."""
        return True

    def refuses(self, table: Table) -> str | None:
        """Refuse no records, a step longer than the largest shift, and households that nobody tells."""
        if not len(table):
            return f"{self.name} must be given records, got: none"
        if self.step > self.days:
            return f"`step` of {self.name} must be at most `days`, got: {self.step} and {self.days}"
        if self.by == "household" and table.schema.only_role(Role.HOUSEHOLD) is None:
            return f"{self.name} by household needs a column with the role household, got: none"
        return self.refuses_generalised(table) or super().refuses(table)

    def protect(self, table: Table, run: Run) -> Release:
        """Draw the shift of each person, and move their dates."""
        shifts = self._shifts(table, run)
        protected = table
        for name in run.track(self.title, table.chosen, total=len(table.chosen)):
            missing = table.missing(name)
            if missing.all():
                continue
            there = shifts if not missing.any() else shifts[~missing]
            protected = protected.with_values(
                name, set_protected_values(table, name, _shift_dates(table, name, there))
            )
        return Release.record_by_record(protected)

    def _shifts(self, table: Table, run: Run) -> Codes:
        """[n] by how many days each record moves."""
        name = table.schema.only_role(Role.PERSON if self.by == "person" else Role.HOUSEHOLD)
        steps, alone = self.days // self.step, None if name is None else table.missing(name)
        places = np.zeros(0, dtype=np.int32)
        if alone is None or alone.any():
            places = run.rng("records").integers(-steps, steps, len(table), dtype=np.int32)
        if name is not None and alone is not None:
            # Outside of this table, so that a person's dates in another one move alike.
            key = run.randomness.outside_tables().key(self.name, table.schema[name].pseudonym or self.by).key
            drawn = keyed_numbers(table.frame[name], key) % np.uint64(2 * steps)
            keyed = drawn.astype(np.int32) - np.int32(steps)  # from −steps to steps − 1
            places = np.where(alone, places, keyed) if alone.any() else keyed
        places += places >= 0  # nobody stays
        places *= np.int32(self.step)
        return places


def _shift_dates(table: Table, name: str, shifts: Codes) -> Values:
    """The dates that are there, moved by as many days, in the unit of their type."""
    series, missing = table.frame[name], table.missing(name)
    if series.dtype in TEXTUAL:
        return table.numbers(name)[~missing].astype(np.int64) + shifts
    if not isinstance(series.dtype, pl.Date | pl.Datetime):
        raise DataError(f"column `{name}` must contain dates, got: {series.dtype.base_type()}")
    days = (
        shifts * np.int64(_DAY[series.dtype.time_unit]) if isinstance(series.dtype, pl.Datetime) else shifts
    )
    instants = series.to_physical()
    values = (instants.filter(pl.Series(~missing)) if missing.any() else instants).to_numpy()
    room = np.iinfo(days.dtype).max - int(np.abs(days).max(initial=0))
    if values.max(initial=0) > room or values.min(initial=0) < -room:
        raise DataError(f"shifted dates of `{name}` exceed the range of their type")
    moved: Values = values + days
    return moved

"""Differences: who knows how amounts move takes the noise out of several releases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Counting, Score, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.core.waves import Wave, Waves
from sfumato.data.persons import best_by_person
from sfumato.data.schema import Kind, Role
from sfumato.data.series import NOBODY
from sfumato.kernels.arrays import Floats
from sfumato.risk._series import waves_of, why_not_traceable
from sfumato.risk.averaging import average_releases
from sfumato.risk.linkage import DistanceLinkage

#: Which share of the noise the intruder takes for one that stays: from all new to all but the same.
_OWN_SHARES = (0.0, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1 - 1e-6, 1 - 1e-10)
#: A course is what at least this share of people keep to; estimates are compared by what they do for these.
_FOLLOWERS = 0.2
#: Rounds in which a line is fitted to those who are nearest to it.
_ROUNDS = 5
#: What is left of a number that two others of its size were subtracted for.
_NOTHING = 1e-8


class DifferenceRisk(DistanceLinkage):
    r"""Share of records linked, or amounts disclosed, when the intruder knows how amounts change over time.

    Amounts often keep to a course that everybody knows: all pensions rise by 3 %, all wages by 100, or by
    both. Then release :math:`t` says of the amount :math:`x` of a person in the last one

    .. math::

        y_t = c_t\,x + a_t + e_t \qquad \text{or} \qquad y_t = e_t\,(c_t\,x + a_t)

    and an intruder takes the best linear unbiased estimate of :math:`x` from all of them (of the second form,
    of :math:`x` and the factor :math:`e` that has mean one). Noise that stays the same is gone in a
    difference, noise that is new each time in a mean: estimates are made for noise of which any share stays,
    for proportional, absolute and mixed courses, and of each column the one that serves best is taken. With
    these, and with the means of the other columns as in `AveragingRisk`, records are linked as by
    `DistanceLinkage`. The score is the largest of the share linked, of that by the last release alone, and of
    the share of persons of whom an amount, sensitive ones among them, is told to within ``within`` per cent
    by all releases, less that by the last one alone.

    Notes
    -----
    **How to read it.** 0 is safe; 1 means everybody is found, or told an amount of. ``baseline`` is what the
    last release alone gives away by links. ``by_column`` has the share of persons whose amount is told beyond
    it. ``course`` in the details is the most telling one.

    **Doubt.** The course is that of the originals, so far as these are at hand, kept to by at least a fifth
    of the people; where the original of an earlier release is not, that of the means of what was released.
    An intruder who knows an own course of each person learns more. Estimates are linear: noise with a bound,
    as that of `UniformNoise`, tells a little more by its ends.

    **Missing.** As in `DistanceLinkage`; who is in one release only is found by that one.

    **Units.** As in `DistanceLinkage`; if persons have several records, ``record`` of the series must say
    which is which. Of told amounts, persons count, each by the record that is told best.

    **Cost.** Twice that of `DistanceLinkage`, and :math:`O(T n \log n)` for each column.

    Examples
    --------
    >>> from sfumato.core.waves import Waves
    >>> schema = Schema((Column("who", Kind.NOMINAL, Role.PERSON), Column("x", Kind.CONTINUOUS, Role.KEY)))
    >>> def released(rise):
    ...     amounts = np.array([10.0, 20, 30, 40]) * rise
    ...     original = Table(pl.DataFrame({"who": range(4), "x": amounts}), schema)
    ...     noisy = original.with_values("x", original.frame["x"] + pl.Series([14.0, 3, -17, 2]))
    ...     return Evidence(original, Release.of(noisy, source_rows=np.arange(4)))
    >>> last = released(1.1)
    >>> last.resources["series"] = Waves.of([released(1.0)])
    >>> score = DifferenceRisk().score(last, Run(seed=1))
    >>> round(score.value, 2), round(score.baseline, 2)
    (1.0, 0.38)
    """

    name = "difference-risk"
    family = "longitudinal releases"
    title = "Linkage by the difference of releases"
    tells = Tells(places={"series": 3}, intruder="compares releases and knows how amounts change")
    references = ("domingoferrer2001", "hundepool2012")
    # What lies between columns of one release is not what the difference of several says.
    counts = Counting(pools_copies=True, intruder_records_only=True, opens_suppressed=True)

    within: float = param(1.0, "How close an estimate discloses an amount.", ge=0, le=100, unit="%")

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse where nobody can be found again."""
        return super().refuses(evidence) or why_not_traceable(self.name, evidence)

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Link the last release alone, then what all of them tell of each amount."""
        waves, release = waves_of(evidence), evidence.release
        assert waves is not None and release is not None  # noqa: PT018  — `refuses` saw to it
        last = super().measure(evidence, run)
        details: dict[str, float | str] = {"releases": len(waves.earlier) + 1}
        details |= {"by_the_last_alone": last.value}
        if not waves.earlier:
            return replace(last, baseline=last.value, details={**last.details, **details})
        now, keys = waves.now(evidence), self.columns(evidence)
        made = average_releases(now, waves.earlier, keys)
        gains, course = {}, ("", 0.0)
        for name in _amounts(evidence, keys):
            history = _History.of(name, evidence, now, waves)
            best = history.best()
            both = best.values, history.released[0]
            by_all, by_last = (self._share_estimated(each, history, now) for each in both)
            gains[name] = by_all - by_last
            course = max(course, (best.course, gains[name]), key=lambda each: each[1])
            if name in keys:
                free = replace(made.schema[name], integer=False)
                made = made.with_values(name, pl.Series(best.values).fill_nan(None), column=free)
        linked = super().measure(replace(evidence, release=release.with_table(made)), run)
        worse = max(linked, last, key=lambda each: each.value)
        gain = max(gains.values(), default=0.0)
        details |= {"by_differences": linked.value, "amounts_told": max(gain, 0.0)}
        if course[0]:
            details["course"] = course[0]
        return replace(
            worse,
            value=max(worse.value, gain),
            baseline=last.value,
            by_column={name: max(each, 0.0) for name, each in gains.items()},
            details={**worse.details, **details},
        )

    def _share_estimated(self, values: Floats, history: _History, now: Wave) -> float:
        """The share of persons of whom an estimate is near enough."""
        truth = history.truth[0]
        there = ~np.isnan(truth) & (now.persons != NOBODY)
        if not there.any():
            return 0.0
        near = np.abs(values - truth) <= self.within / 100 * np.abs(truth)
        people = np.unique(now.persons[there], return_inverse=True)[1]
        return float(best_by_person(people, near[there].astype(np.float64)).mean())


def _amounts(evidence: Evidence, keys: Sequence[str]) -> Iterator[str]:
    """The numbers that are released as such: keys, and what is sensitive."""
    protected, original = evidence.protected, evidence.original
    assert protected is not None  # `refuses` saw to it
    for column in original.schema.columns:
        asked = column.name in keys or column.role is Role.SENSITIVE
        shown = column.name in protected.schema and not protected.is_generalised(column.name)
        exact = not original.is_generalised(column.name)
        if asked and shown and exact and column.kind is Kind.CONTINUOUS:
            yield column.name


@dataclass(frozen=True, eq=False)
class _AmountEstimate:
    """What an intruder takes the amounts of the last release for, and by which course."""

    values: Floats
    course: str = ""


@dataclass(frozen=True, eq=False)
class _AmountCourse:
    """A course: in release t an amount is ``factors[t]`` times that of the last, and ``steps[t]``."""

    name: str
    factors: Floats
    steps: Floats


@dataclass(frozen=True, eq=False)
class _History:
    """One amount of each record of the last release in all releases, the last first: NaN where it is not.

    ``released[t]`` is what a release says of it, ``truth[t]`` what it was, where the original is at hand.
    """

    released: Floats
    truth: Floats

    @classmethod
    def of(cls, name: str, evidence: Evidence, now: Wave, waves: Waves) -> _History:
        """Look a column up in the releases that show it as numbers."""
        rows = evidence.source_rows
        assert rows is not None  # `refuses` saw to it
        released = [now.reading.numbers(name)]
        truth = [np.append(evidence.original.numbers(name), np.nan)[rows]]
        for wave in reversed(waves.earlier):
            if name not in wave.reading.schema or wave.reading.is_generalised(name):
                continue
            if wave.reading.schema[name].kind is not Kind.CONTINUOUS:
                continue
            released.append(np.append(wave.reading.numbers(name), np.nan)[now.places_in(wave)])
            truth.append(_truth(name, now, wave, waves))
        return cls(np.stack(released), np.stack(truth))

    def best(self) -> _AmountEstimate:
        """The estimate that serves best; what the last release says if none does better."""
        found, least = _AmountEstimate(self.released[0]), self._error(self.released[0])
        for line in self._lines():
            for values in self._estimates(line):
                error = self._error(values)
                if error < least:
                    found, least = _AmountEstimate(values, line.name), error
        return found

    def _error(self, values: Floats) -> float:
        """How far an estimate is off for those whom it serves best, who are in several releases."""
        several = (~np.isnan(self.released)).sum(axis=0) > 1
        off = np.abs(values - self.truth[0])[several]
        off = off[~np.isnan(off)]
        return float(np.quantile(off, _FOLLOWERS)) if len(off) else np.inf

    def _lines(self) -> Iterator[_AmountCourse]:
        """The courses that an intruder may know."""
        turns = range(len(self.released))
        ones, zeros = np.ones(len(turns)), np.zeros(len(turns))
        pairs = [self._pair(turn) for turn in turns]
        factors = np.array([_ratio(now, then) for now, then in pairs])
        steps = np.array([_densest(then - now) for now, then in pairs])
        yield _AmountCourse("proportional", factors, zeros)
        yield _AmountCourse("absolute", ones, steps)
        for name, start in (("proportional", (factors, zeros)), ("absolute", (ones, steps))):
            fits = [_fit_line(*pair, start[0][turn], start[1][turn]) for turn, pair in enumerate(pairs)]
            yield _AmountCourse(f"mixed, from {name}", *np.array(fits).T)

    def _pair(self, turn: int) -> tuple[Floats, Floats]:
        """The amounts of people now and then; as released on average, where the truth is not at hand."""
        for table in (self.truth, self.released):
            both = ~np.isnan(table[0]) & ~np.isnan(table[turn])
            if both.any():
                now, then = table[0][both], table[turn][both]
                if table is self.truth:
                    return now, then
                return now.mean(keepdims=True), then.mean(keepdims=True)  # noise is gone in the mean of all
        return np.ones(1), np.ones(1)

    def _estimates(self, line: _AmountCourse) -> Iterator[Floats]:
        """Best linear unbiased estimates for noise that is added, and for noise that multiplies."""
        there = ~np.isnan(self.released)
        factors, steps = (np.where(there, each[:, None], 0.0) for each in (line.factors, line.steps))
        rest = np.where(there, self.released, 0.0) - steps
        counts = np.maximum(there.sum(axis=0), 1)
        squares, products = (factors**2).sum(axis=0), (factors * rest).sum(axis=0)
        sums, rests = factors.sum(axis=0), rest.sum(axis=0)
        crossed, stepped = (factors * steps).sum(axis=0), (steps**2).sum(axis=0)
        pulled = (steps * rest).sum(axis=0)
        sizes = np.where(there, self.released, 0.0) ** 2
        for share in _OWN_SHARES:
            common = share / (1 + (counts - 1) * share)
            yield self._ratio_or_last(products - common * sums * rests, squares - common * sums**2, squares)
            prior = stepped + (1 - share) * sizes.sum(axis=0) / counts
            whole = squares * prior - crossed**2
            level = products * prior - crossed * pulled
            factor = whole + squares * pulled - crossed * products
            yield self._ratio_or_last(level, factor, squares * prior)

    def _ratio_or_last(self, above: Floats, below: Floats, scale: Floats) -> Floats:
        """A quotient; where there is none, or who is in one release only, what the last one says."""
        sure = (np.abs(below) > _NOTHING * np.abs(scale)) & ((~np.isnan(self.released)).sum(axis=0) > 1)
        last = self.released[0]
        return np.where(sure & ~np.isnan(last), above / np.where(sure, below, 1.0), last)


def _truth(name: str, now: Wave, wave: Wave, waves: Waves) -> Floats:
    """What an amount was in an earlier original, NaN where that is not at hand."""
    table = wave.original
    if table is None or name not in table.schema or table.is_generalised(name):
        return np.full(len(now.units), np.nan)
    identity = waves.identity
    then = Wave(wave.name, table, identity.persons(table), identity.units(table))
    return np.append(table.numbers(name), np.nan)[now.places_in(then)]


def _ratio(now: Floats, then: Floats) -> float:
    """By which factor most moved; 1 where nobody has an amount."""
    there = now != 0
    return _densest(then[there] / now[there]) if there.any() else 1.0


def _densest(values: Floats) -> float:
    """The median of the fifth of the values that lie closest together: what a known course is."""
    ordered = np.sort(values)
    size = max(int(np.ceil(_FOLLOWERS * len(ordered))), 1)
    widths = ordered[size - 1 :] - ordered[: len(ordered) - size + 1]
    start = int(widths.argmin())
    return float(np.median(ordered[start : start + size]))


def _fit_line(now: Floats, then: Floats, factor: float, step: float) -> tuple[float, float]:
    """The line that the people nearest to it keep to, from a first guess."""
    for _ in range(_ROUNDS):
        off = np.abs(then - factor * now - step)
        near = off <= np.quantile(off, _FOLLOWERS)
        centred = now[near] - now[near].mean()
        spread = float(centred @ centred)
        if spread == 0:
            break
        factor = float(centred @ then[near]) / spread
        step = float(then[near].mean() - factor * now[near].mean())
    return factor, step

"""Singling out: conditions taken from a release that exactly one person of the original meets."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import owners_of
from sfumato.core.measure import Laws, Score, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.generalised.cover import cover_of
from sfumato.data.persons import persons_of
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags, Floats, Ints, count_distinct
from sfumato.risk._attack import (
    MIN_PEOPLE_PER_SIDE,
    AttackMeasure,
    AttackTrial,
    drawn_persons,
    is_suppressed,
    stack_tables,
)
from sfumato.risk.linkage import deviation

if TYPE_CHECKING:
    from sfumato.kernels.predicates import SortedRecords

#: Candidates drawn for each query; those that fewest released records meet are asked.
_CANDIDATES = 3

#: Where too few of them are met by fewest, as among few categories, so many times more, up to a limit.
_MORE, _MOST_CANDIDATES = 10, 200_000

#: From so many released records on nobody counts how many meet a condition.
_COMMON = 20

#: Times that the original may be as large as the control: what it would tell of more people is not known.
_MOST_TIMES = 20.0

#: Half the width of a range, as a share of the distance to the nearest other released person: as wide as it
#: can be, which bears noise; and narrow, which bears that most people are not in the release.
_RANGES = {"ranges": 0.5, "narrow ranges": 0.01}

#: Ranges drawn for each released person, of which the widest is asked; of these the surer half.
_RANGES_DRAWN, _SURER = 5, 2

#: Why there are no more of them.
_ONE_EACH = "one claim for each released person; the surer half of them is used"

#: Claims that values of some columns alone must have, or half as many as people: of fewer the interval would
#: hide what the others tell.
_FEWEST_ALONE = 30

#: Forms that ask of one sort of columns alone.
_CATEGORIES, _NUMBERS = " of categories", " of numbers"

#: Below all numbers, and above what stands for a missing one.
_SMALLEST, _LARGEST = np.finfo(np.float64).min, np.finfo(np.float64).max


class ReleasedCells(NamedTuple):
    """The released cells, from where to where each is; which columns have an order, and the unit of each."""

    lows: Floats  # [d, m]
    highs: Floats
    ordered: Flags  # [d]

    @property
    def units(self) -> Floats:
        """The standard deviation of each column that has an order; 0 where values are equal or not."""
        with np.errstate(invalid="ignore"):
            middles = self.lows / 2 + self.highs / 2
        middles = np.where(np.isfinite(middles), middles, np.nan)
        return np.array([
            float(is_ordered) * (deviation(each) or 1.0)
            for each, is_ordered in zip(middles, self.ordered, strict=True)
        ])  # fmt: skip


class Predicates(NamedTuple):
    """Conditions: each on some columns (−1: none) whose values must lie from low to high."""

    asked: Ints  # [q, k]
    lows: Floats
    highs: Floats

    def take(self, rows: Ints) -> Predicates:
        """Keep these."""
        return Predicates(self.asked[rows], self.lows[rows], self.highs[rows])

    def distinct(self, rng: np.random.Generator) -> Predicates:
        """Each once, in an order by lot."""
        asked = np.sort(np.where(self.asked < 0, 1 << 20, self.asked), axis=1)
        order = np.argsort(np.where(self.asked < 0, 1 << 20, self.asked), axis=1, kind="stable")
        ends = [
            np.take_along_axis(np.where(self.asked < 0, 0.0, e), order, 1) for e in (self.lows, self.highs)
        ]
        rows = np.hstack((asked, *ends))
        place = np.lexsort(rows.T[::-1])  # as `np.unique` by rows, and much faster
        is_new = np.append(True, (rows[place[1:]] != rows[place[:-1]]).any(axis=1))[: len(place)]
        first = place[is_new]
        return self.take(first[rng.permutation(len(first))])

    def widen(self, by: Floats) -> Predicates:
        """The same from so much below to so much above; what is missing stays missing."""
        gone = np.isneginf(self.highs)
        with np.errstate(over="ignore"):
            low, high = self.lows - np.where(gone, 0.0, by), self.highs + np.where(gone, 0.0, by)
        low, high = np.maximum(low, _SMALLEST), np.minimum(high, _LARGEST)
        return Predicates(self.asked, np.where(gone, self.lows, low), np.where(gone, self.highs, high))

    def count_people(self, among: SortedRecords, *, most: int, run: Run, task: str) -> Ints:
        """How many people meet each."""
        counts: Ints = kernels.predicates.count_matches(*self, among, most=most, tick=run.ticker(task))
        return counts


class PredicateSource(NamedTuple):
    """What conditions are drawn from: which columns and records, how many columns, on which as limits."""

    cells: ReleasedCells
    columns: Ints
    rows: Ints
    halved: Flags
    depths: tuple[int, int]  # the least and the largest number of columns in a condition

    def draw_predicates(self, size: int, run: Run) -> Predicates:
        """Conditions on values of records by lot, on columns by lot."""
        rng, (lows, highs, _) = run.rng("conditions"), self.cells
        least, depth = (min(each, len(self.columns)) for each in self.depths)
        asked = self.columns[np.argsort(rng.random((size, len(self.columns))), axis=1)[:, :depth]]
        lot = rng.permutation(max(size, len(self.rows)))[:size] % len(self.rows)  # all before any again
        taken = np.broadcast_to(self.rows[lot][:, None], asked.shape)
        low, high = lows[asked, taken], highs[asked, taken]
        middles = np.array([_median(*each) for each in zip(lows, highs, strict=True)])
        halves = self.halved[asked] & np.isfinite(low) & np.isfinite(high)
        left = halves & (high <= middles[asked])
        low, high = np.where(left, _SMALLEST, low), np.where(halves & ~left, _LARGEST, high)
        width = rng.integers(least, depth + 1, size=size)
        silent = np.isneginf(low) & np.isposinf(high)
        out = (np.arange(depth) >= width[:, None]) | silent
        made = Predicates(np.where(out, -1, asked), low, high)
        return made.take(np.flatnonzero(~out.all(axis=1))).distinct(run.rng("order"))


class SinglingOut(AttackMeasure):
    r"""Share of conditions from a release that single out one person, beyond their share in a control group.

    The intruder takes values of a released record in one or several columns and claims that exactly one
    person is so. Three forms are tried: that all these values are the same (*values*); that numbers, dates
    and ranks are at least as large or at most as large (*limits*); and that they lie round the released ones
    (*ranges*), which bears noise. Values and limits ask what one released record meets, or as few as there
    are. The claim is right if exactly one person of the original meets it. A condition may isolate somebody
    by chance: :math:`\tau_c` is how often exactly one of as many strangers meets it, and

    .. math:: R = \frac{\tau - \tau_c}{1 - \tau_c}.

    Notes
    -----
    **How to read it.** 0 means that the release isolates nobody better than chance; 1 that every claim is
    right. ``baseline`` is what conditions on values drawn from the domain give, without the release.

    Values and limits are the published attack. Ranges are added to it, as a value that was changed by 0.01 %
    is no longer the same, though anybody would recognise it: each released person gets the widest range of
    several that no other released person comes near, from half of the way to the nearest other (in standard
    deviations, the farthest column) below to as much above; the surer half of these claims is made. *Narrow
    ranges* are a fiftieth as wide, for samples, where people lie between who are not in the release. Of mixed
    columns the sorts are asked alone, too, and of more columns than ``depth`` all together. The form that
    does best is the score.

    Of few categories there are few such conditions: ``fewer_queries`` in the details says why fewer than
    ``queries`` were asked. Commoner ones would be weaker claims, and are not.

    **Doubt.** Estimated, with an interval of the stated confidence. If the control is smaller than the
    original, how often one of more strangers would meet a condition is told by a model of how rare the
    conditions are (negative binomial, fitted to those that none and one of the control meet); a control of
    less than a twentieth tells nothing. A generalised cell is the condition to be one of the values it stands
    for; one that says nothing is none.

    **Missing.** That a value is missing is a condition like another, unless it was suppressed: that is none.

    **Units.** Persons are counted: what several records of one person meet and nobody else's isolates them.

    **Cost.** At most one look at each record for each condition.
    """

    name = "singling-out"
    counts = replace(
        AttackMeasure.counts,
        laws=Laws(reads_names="Its draws follow the order of the columns, which is that of their names."),
    )
    family = "attacks"
    threat = "singling out"
    tells = Tells(
        places={"report": 20},
        not_seen="It does not test every condition: none on more columns than its depth but not all, none on "
        "only the numbers that were changed least, and none on columns that the scenario's intruder does not "
        "know.",
    )
    title = "Singling out"
    references = ("giomi2023", "cohen2020")

    depth: int = param(3, "Largest number of columns in a condition, beside all columns.", ge=1, le=20)

    def why_not_estimable(self, evidence: Evidence) -> str | None:
        """Say where the control is too small to tell of as many people as the original has."""
        assert evidence.control is not None  # `refuses` saw to it
        reason = super().why_not_estimable(evidence)
        n, n_control = (count_distinct(persons_of(each)) for each in (evidence.original, evidence.control))
        if reason is None and n > _MOST_TIMES * n_control:
            return f"the control group of {self.name} must be at least a twentieth of the original, got: less"
        return reason

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Ask what fewest released records meet."""
        assert evidence.protected is not None  # `refuses` saw to it
        assert evidence.control is not None
        names, n = self.columns(evidence), len(evidence.original)
        known = stack_tables(evidence.original, evidence.control, names)
        values, cells = _cells(known, evidence.protected, names)
        order = np.lexsort((*cells.lows, *cells.highs))  # the order of the file decides nothing
        cells = ReleasedCells(cells.lows[:, order], cells.highs[:, order], cells.ordered)
        of = kernels.predicates.SortedRecords.of
        original_records = of(values[:, :n], values[:, :n], persons_of(evidence.original))
        others = of(values[:, n:], values[:, n:], persons_of(evidence.control))
        sizes = (original_records.n_groups, others.n_groups)
        trials, drawn_from = dict[str, AttackTrial](), dict[str, str]()
        claims = self._claims(cells, owners_of(evidence)[order], original_records.n_groups, run)
        for form, found, halved, drawn_from[form] in claims:
            if len(found.asked) >= MIN_PEOPLE_PER_SIDE:
                blind = _blind(original_records.starts, found, (halved, cells.ordered), run.at(form))
                hits, guessed = (
                    each.count_people(original_records, most=2, run=run, task=self.title) == 1
                    for each in (found, blind)
                )
                met = found.count_people(others, most=len(known), run=run, task=self.title)
                trials[form] = _against_strangers(hits, met, sizes, float(guessed.mean()))
        if not trials:
            few = f"the release gives fewer than {MIN_PEOPLE_PER_SIDE} different conditions"
            return Score.not_estimable(few)
        score = self.score_of_trials(trials, details={"columns": len(names)})
        asked, best = score.details.get("queries", 0), str(score.details.get("attack", next(iter(trials))))
        if math.isnan(score.value) or int(asked) >= self.queries:
            return score
        why = "as many claims as the original has people" if int(asked) >= sizes[0] else drawn_from[best]
        return replace(score, details={**score.details, "fewer_queries": why})

    def _claims(
        self, cells: ReleasedCells, owners: Ints, n: int, run: Run
    ) -> Iterator[tuple[str, Predicates, Flags, str]]:
        """Each form: its name, its conditions, the columns on which they are limits, why they are no more."""
        nowhere, pools = np.zeros_like(cells.ordered), self._pools(cells.ordered)
        rows = np.arange(cells.lows.shape[1])
        released = kernels.predicates.SortedRecords.of(cells.lows, cells.highs, owners)
        forms = {
            f"values{suffix}": PredicateSource(cells, columns, rows, nowhere, depths)
            for suffix, (columns, depths) in pools.items()
            if suffix != _NUMBERS
        }
        if cells.ordered.any():
            forms["limits"] = PredicateSource(cells, pools[""][0], rows, cells.ordered, (1, self.depth))
        for form, source in forms.items():
            found, halved, why = self._rarest(source, released, n, run.at(form))
            if form in {"values", "limits"} or len(found.asked) >= min(_FEWEST_ALONE, n // 2):
                yield form, found, halved, why
        for suffix, (columns, depths) in pools.items():
            if not cells.ordered[columns].any():
                continue
            here = run.at(f"ranges{suffix}")
            rows = drawn_persons(owners, _SURER * min(self.queries, n), here.rng("people"))
            source = PredicateSource(cells, columns, rows, nowhere, depths)
            found, room = self._roomiest(source, released, n, here)
            for form, share in _RANGES.items():
                yield form + suffix, found.widen(share * room), nowhere, _ONE_EACH

    def _pools(self, ordered: Flags) -> dict[str, tuple[Ints, tuple[int, int]]]:
        """Of which columns conditions are made, and on how many of them; those of all come first.

        Where some have an order and some not, each sort is also asked alone: if one was changed much more
        than the other, conditions on both would hide what the other tells. And where there are more columns
        than ``depth``, conditions on all: many may be alike in few columns and nobody in all.
        """
        every = np.arange(len(ordered))
        pools = {"": (every, (1, self.depth))}
        if ordered.any() and not ordered.all():
            pools[_CATEGORIES] = (np.flatnonzero(~ordered), (1, self.depth))
            pools[_NUMBERS] = (np.flatnonzero(ordered), (1, self.depth))
        if len(every) > self.depth:
            pools[" of all columns"] = (every, (len(every), len(every)))
        return pools

    def _rarest(
        self, source: PredicateSource, released: SortedRecords, n: int, run: Run
    ) -> tuple[Predicates, Flags, str]:
        """What fewest of the released people meet, one unless the release hides everybody; and why no more.

        No more claims than people: they would look surer than they are.
        """
        wanted, size = min(self.queries, n), _CANDIDATES * self.queries
        for each in (size, max(size, min(_MORE * size, _MOST_CANDIDATES))):
            drawn = source.draw_predicates(each, run)
            rare = drawn.count_people(released, most=_COMMON, run=run, task=self.title)
            order = np.argsort(rare, kind="stable")
            rarest = order[rare[order] == rare.min(initial=_COMMON)]
            if len(rarest) >= wanted:
                break
        chosen = (rarest if len(rarest) >= MIN_PEOPLE_PER_SIDE else order[:MIN_PEOPLE_PER_SIDE])[:wanted]
        why = f"only these of {len(order):,} different conditions are met by the fewest released people"
        return drawn.take(chosen), source.halved, why

    def _roomiest(
        self, source: PredicateSource, released: SortedRecords, n: int, run: Run
    ) -> tuple[Predicates, Floats]:
        """For each released person the condition that is farthest from all others; the surer half of them.

        With each comes, by column, how far that is.
        """
        drawn, units = source.draw_predicates(_RANGES_DRAWN * len(source.rows), run), source.cells.units
        with np.errstate(divide="ignore"):
            per_unit, tick = 1 / units, run.ticker(self.title)
        away, person = kernels.predicates.find_isolation(*drawn, released, per_unit=per_unit, tick=tick)
        far = np.argsort(-away, kind="stable")
        first = np.sort(np.unique(person[far], return_index=True)[1])  # the widest of each, the widest first
        surer = far[first[: max(len(first) // _SURER, MIN_PEOPLE_PER_SIDE)]][: min(self.queries, n)]
        surer = surer[away[surer] > 0]
        unit = np.append(units, 0.0)[drawn.asked[surer]]
        room = np.where(unit > 0, away[surer][:, None], 0.0) * unit
        return drawn.take(surer), room


def _blind(values: Floats, found: Predicates, sorts: tuple[Flags, Flags], run: Run) -> Predicates:
    """Conditions on the same columns, as wide, on values that are drawn from all there are, each alike."""
    rng, low, high = run.rng("blind"), found.lows.copy(), found.highs.copy()
    for column, (halved, is_ordered) in enumerate(zip(*sorts, strict=True)):
        here = found.asked == column
        domain = np.unique(values[column])
        domain = domain[np.isfinite(domain)] if np.isfinite(domain).any() else domain
        drawn = domain[rng.integers(len(domain), size=int(here.sum()))]
        left = rng.random(len(drawn)) < 0.5  # noqa: PLR2004  — at most or at least
        with np.errstate(invalid="ignore"):
            half = high[here] / 2 - low[here] / 2 if is_ordered and not halved else np.zeros(len(drawn))
        half = np.where(np.isfinite(drawn) & (half > 0), half, 0.0)
        low[here] = np.where(halved & left, _SMALLEST, drawn - half)
        high[here] = np.where(halved & ~left, _LARGEST, drawn + half)
    return Predicates(found.asked, low, high)


def _median(lows: Floats, highs: Floats) -> float:
    there = np.isfinite(lows) & np.isfinite(highs)
    return float(np.median(lows[there] / 2 + highs[there] / 2)) if there.any() else 0.0


def _cells(known: Table, released: Table, names: tuple[str, ...]) -> tuple[Floats, ReleasedCells]:
    """The known values of each column (missing: −∞), and the released cells.

    A cell that says nothing is open at both ends; one that is missing as a value of its own is −∞ at both.
    """
    ordered = np.array([known.schema[name].kind is not Kind.NOMINAL for name in names])
    values, lows, highs = [], [], []
    for name, is_ordered in zip(names, ordered, strict=True):
        own, cover = cover_of(known, released, name, nested=not is_ordered)
        values.append(np.where(np.isnan(own), -np.inf, own))
        open_below = np.isneginf(cover.lows) & np.isfinite(cover.highs)  # and not missing, which is −∞
        lows.append(np.where(cover.missing, -np.inf, np.where(open_below, _SMALLEST, cover.lows)))
        highs.append(
            np.where(cover.missing, np.where(is_suppressed(own, cover), np.inf, -np.inf), cover.highs)
        )
    return np.array(values), ReleasedCells(np.array(lows), np.array(highs), ordered)


def _against_strangers(hits: Flags, met: Ints, sizes: tuple[int, int], guessed: float) -> AttackTrial:
    """How often exactly one person meets a condition, and would of as many strangers.

    Of a larger control as many are drawn, in expectation. To a smaller one the model is fitted.
    """
    from scipy.stats import hypergeom

    n, n_control = sizes
    tries, strangers = len(met), min(len(met), n_control)  # no more claims than people
    if n <= n_control:
        expected = min(float(hypergeom.pmf(1, n_control, met, n).mean()), 1.0)
        return AttackTrial(hits.sum(), tries, expected * strangers, strangers, guessed)
    ones = float((met == 1).mean())
    grown = singles_among(float((met == 0).mean()), ones, n / n_control)
    return AttackTrial(
        hits.sum(), tries, ones * strangers, strangers, guessed, grown / ones if ones else n / n_control
    )


def singles_among(none: float, one: float, times: float) -> float:
    r"""The share of conditions that exactly one of ``times`` as many people meets.

    The number who meet a condition is taken as negative binomial: Poisson with a mean that differs from
    condition to condition. With :math:`u` the mean of a size-:math:`r` variable over :math:`r`,

    .. math:: P_0 = (1 + u)^{-r}, \qquad P_1 = P_0 \, \frac{r u}{1 + u},
        \qquad \frac{-\ln P_0}{P_1 / P_0} = \frac{(1 + u) \ln (1 + u)}{u},

    which gives :math:`u` and then :math:`r`; for ``times`` as many people :math:`u` is as many times larger.
    """
    from scipy.optimize import brentq

    if not 0 < none < 1 or one <= 0:
        return one if none > 0 else 0.0
    depth, odds = -np.log(none), one / none

    def apart(u: float) -> float:
        return float((1 + u) * np.log1p(u) / u - depth / odds)

    if apart(1e-6) >= 0:  # no more spread out than Poisson
        return float(times * depth * np.exp(-times * depth))
    u = brentq(apart, 1e-6, 1e12) if apart(1e12) > 0 else 1e12
    r = depth / np.log1p(u)
    return float((1 + times * u) ** -r * r * times * u / (1 + times * u))

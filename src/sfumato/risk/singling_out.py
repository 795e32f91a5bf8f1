"""Singling out: conditions taken from a release that exactly one person of the original meets."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import owners_of
from sfumato.core.measure import Score, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.generalised.cover import cover_of
from sfumato.data.persons import persons_of
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.risk._attack import FEWEST, AttackMeasure, Trial, stacked, suppressed

#: Candidates drawn for each query; those that fewest released records meet are asked.
_CANDIDATES = 3

#: Where too few of them are met by fewest, as among few categories, so many times more, up to a limit.
_MORE, _MOST_CANDIDATES = 10, 200_000

#: From so many released records on nobody counts how many meet a condition.
_COMMON = 20

#: Times that the original may be as large as the control: what it would tell of more people is not known.
_MOST_TIMES = 20.0

#: Below all numbers, and above what stands for a missing one.
_LEAST, _MOST = np.finfo(np.float64).min, np.finfo(np.float64).max


class Crowd(NamedTuple):
    """Records and whose they are, those of one person side by side."""

    columns: Floats  # [d, n]
    persons: Ints  # [n]

    @classmethod
    def of(cls, columns: Floats, persons: Ints) -> Crowd:
        """Put them so."""
        order = np.argsort(persons, kind="stable")
        return cls(columns[:, order], persons[order])

    def __len__(self) -> int:
        return 1 + int((np.diff(self.persons) != 0).sum())


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

    def counted(self, among: Crowd, *, most: int, run: Run, task: str) -> Ints:
        """How many people meet each."""
        counts: Ints = kernels.predicates.count_matches(
            among.columns, *self, groups=among.persons, most=most, tick=run.ticker(task)
        )
        return counts


class SinglingOut(AttackMeasure):
    r"""Share of conditions taken from a release that single out one person, beyond what chance does.

    The intruder takes values of a released record in one or several columns and claims that exactly one
    person is so. Two forms are tried: that all these values are the same (*values*), and that numbers, dates
    and ranks are at least as large or at most as large (*limits*), which bears noise. They ask what one
    released record meets, or as few as there are. The claim is right if exactly one person of the original
    meets it. A condition may isolate somebody by chance: :math:`\tau_c` is how often exactly one of as many
    strangers meets it, and

    .. math:: R = \frac{\tau - \tau_c}{1 - \tau_c}.

    Notes
    -----
    **How to read it.** 0 means that the release isolates nobody better than chance; 1 that every claim is
    right. ``baseline`` is what conditions on values drawn from the domain give, without the release.

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
    family = "attacks"
    threat = "singling out"
    tells = Tells(places={"report": 20})
    title = "Singling out"
    references = ("giomi2023", "cohen2020")

    depth: int = param(3, "Largest number of columns in a condition.", ge=1, le=20)

    def undefined(self, evidence: Evidence) -> str | None:
        """Say where the control is too small to tell of as many people as the original has."""
        assert evidence.control is not None  # `refuses` saw to it
        reason = super().undefined(evidence)
        n, n_control = (len(np.unique(persons_of(each))) for each in (evidence.original, evidence.control))
        if reason is None and n > _MOST_TIMES * n_control:
            return f"the control of {self.name} must be a twentieth of the original or more, got: less"
        return reason

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Ask what fewest released records meet."""
        assert evidence.protected is not None  # `refuses` saw to it
        assert evidence.control is not None
        names, n = self.columns(evidence), len(evidence.original)
        known = stacked(evidence.original, evidence.control, names)
        values, lows, highs, ordered = _cells(known, evidence.protected, names)
        order = np.lexsort((*lows, *highs))  # by what they hold: the order of the file decides nothing
        lows, highs = lows[:, order], highs[:, order]
        released = Crowd.of(lows, owners_of(evidence)[order])
        mine = Crowd.of(values[:, :n], persons_of(evidence.original))
        others = Crowd.of(values[:, n:], persons_of(evidence.control))
        trials, pools = {}, {}
        for form, halves in (("values", np.zeros_like(ordered)), ("limits", ordered)):
            if form == "limits" and not ordered.any():
                continue
            here = run.at(form)
            found, pools[form] = self._rarest((lows, highs, halves), released, len(mine), here)
            if len(found.asked) >= FEWEST:
                blind = self._blind(mine.columns, found, halves, here)
                hits, guessed = (
                    each.counted(mine, most=2, run=run, task=self.title) == 1 for each in (found, blind)
                )
                met = found.counted(others, most=len(known), run=run, task=self.title)
                trials[form] = _against_strangers(hits, met, len(mine), len(others), float(guessed.mean()))
        if not trials:
            return Score.not_estimable(f"the release gives fewer than {FEWEST} different conditions")
        score = self.estimated(trials, details={"columns": len(names)})
        pool = pools[str(score.details.get("attack", next(iter(trials))))]
        return replace(score, details={**score.details, **self._fewer(score, pool, len(mine))})

    def _fewer(self, score: Score, pool: int, n: int) -> dict[str, str]:
        """Why fewer conditions were asked than wanted, if they were."""
        asked = int(score.details.get("queries", self.queries))
        if asked >= self.queries:
            return {}
        drawn = f"only these are met by fewest released people, of {pool:,} different conditions drawn"
        return {"fewer_queries": "no more claims than people of the original" if asked >= n else drawn}

    def _rarest(
        self, cells: tuple[Floats, Floats, Flags], released: Crowd, n: int, run: Run
    ) -> tuple[Predicates, int]:
        """What fewest of the released people meet, one unless the release hides everybody; of how many.

        No more claims than people: they would look surer than they are.
        """
        wanted, size = min(self.queries, n), _CANDIDATES * self.queries
        for each in (size, max(size, min(_MORE * size, _MOST_CANDIDATES))):
            drawn = self._drawn(*cells, each, run).distinct(run.rng("order"))
            rare = drawn.counted(released, most=_COMMON, run=run, task=self.title)
            order = np.argsort(rare, kind="stable")
            rarest = order[rare[order] == rare.min(initial=_COMMON)]
            if len(rarest) >= wanted:
                break
        return drawn.take((rarest if len(rarest) >= FEWEST else order[:FEWEST])[:wanted]), len(order)

    def _drawn(self, lows: Floats, highs: Floats, halved: Flags, size: int, run: Run) -> Predicates:
        """Conditions on values of released records, on columns by lot; on those ``halved`` to be beyond."""
        (d, m), rng = lows.shape, run.rng("conditions")
        depth = min(self.depth, d)
        asked = np.argsort(rng.random((size, d)), axis=1)[:, :depth]
        rows = np.broadcast_to(rng.integers(m, size=size)[:, None], asked.shape)
        low, high = lows[asked, rows], highs[asked, rows]
        middles = np.array([_median(lows[c], highs[c]) for c in range(d)])
        halves = halved[asked] & np.isfinite(low) & np.isfinite(high)
        left = halves & (high <= middles[asked])
        low, high = np.where(left, _LEAST, low), np.where(halves & ~left, _MOST, high)
        width = rng.integers(1, depth + 1, size=size)
        silent = np.isneginf(low) & np.isposinf(high)
        out = (np.arange(depth) >= width[:, None]) | silent
        made = Predicates(np.where(out, -1, asked), low, high)
        return made.take(np.flatnonzero(~out.all(axis=1)))

    def _blind(self, values: Floats, found: Predicates, halved: Flags, run: Run) -> Predicates:
        """Conditions on the same columns, on values that are drawn from all there are, each alike."""
        rng, low, high = run.rng("blind"), found.lows.copy(), found.highs.copy()
        for column in range(len(values)):
            here = found.asked == column
            domain = np.unique(values[column])
            domain = domain[np.isfinite(domain)] if np.isfinite(domain).any() else domain
            drawn = domain[rng.integers(len(domain), size=int(here.sum()))]
            left = rng.random(len(drawn)) < 0.5  # noqa: PLR2004  — at most or at least
            low[here] = np.where(halved[column] & left, _LEAST, drawn)
            high[here] = np.where(halved[column] & ~left, _MOST, drawn)
        return Predicates(found.asked, low, high)


def _median(lows: Floats, highs: Floats) -> float:
    there = np.isfinite(lows) & np.isfinite(highs)
    return float(np.median(lows[there] / 2 + highs[there] / 2)) if there.any() else 0.0


def _cells(known: Table, released: Table, names: tuple[str, ...]) -> tuple[Floats, Floats, Floats, Flags]:
    """The known values of each column (missing: −∞), both ends of the released cells, and what is ordered.

    A cell that says nothing is open at both ends; one that is missing as a value of its own is −∞ at both.
    """
    ordered = np.array([known.schema[name].kind is not Kind.NOMINAL for name in names])
    values, lows, highs = [], [], []
    for name, is_ordered in zip(names, ordered, strict=True):
        own, cover = cover_of(known, released, name, nested=not is_ordered)
        values.append(np.where(np.isnan(own), -np.inf, own))
        lows.append(np.where(cover.missing, -np.inf, cover.lows))
        highs.append(np.where(cover.missing, np.where(suppressed(own, cover), np.inf, -np.inf), cover.highs))
    return np.array(values), np.array(lows), np.array(highs), ordered


def _against_strangers(hits: Flags, met: Ints, n: int, n_control: int, guessed: float) -> Trial:
    """How often exactly one person meets a condition, and would of as many strangers.

    Of a larger control as many are drawn, in expectation. To a smaller one the model is fitted.
    """
    from scipy.stats import hypergeom

    tries, strangers = len(met), min(len(met), n_control)  # no more claims than people
    if n <= n_control:
        expected = min(float(hypergeom.pmf(1, n_control, met, n).mean()), 1.0)
        return Trial(hits.sum(), tries, expected * strangers, strangers, guessed)
    ones = float((met == 1).mean())
    grown = singles_among(float((met == 0).mean()), ones, n / n_control)
    return Trial(
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

"""Intersection: what is left of the candidates for a person after all releases they are in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Needs, Score, Tells
from sfumato.core.params import Resource, param
from sfumato.core.run import Run
from sfumato.core.waves import SERIES, Wave, Waves
from sfumato.data.classes.classes import alike_in_all
from sfumato.data.persons import best_by_person, persons_of
from sfumato.data.schema import Role
from sfumato.data.series import NOBODY, Identity
from sfumato.data.table import Table
from sfumato.errors import DataError
from sfumato.kernels.arrays import Flags, Floats, Ints, Words, distinct_numbers
from sfumato.risk._key_measures import KeyMeasure, SensitiveMeasure, by_original
from sfumato.risk._series import (
    DisclosedValues,
    common_values,
    evidence_of,
    left_out,
    number_rows,
    slices_of,
    values_of_releases,
    waves_of,
    why_not_traceable,
)


class IntersectionRisk(SensitiveMeasure):
    r"""Share of persons with fewer than k candidates left after intersecting all releases they are in.

    In release :math:`t` a person :math:`p` is in a class :math:`C_t(p)` of records alike in the keys (or in a
    bucket). Whoever finds the class knows that the person's sensitive value is one of those in it,
    :math:`V_t(p)`; whoever has several releases, that it is in all of them:

    .. math::

        V(p) = \bigcap_{t \,:\, p \in R_t} V_t(p), \qquad
        I = \frac{|\{p : |V(p)| < k\}|}{|\{p\}|}

    over the persons of the last release. Releases are intersected from the last one back, as long as
    something is left: where nothing is, the value has changed before, and what is older tells nothing of it.
    If most of those who are among other values than in an earlier release have a value that was not among
    them (as where :math:`V_t(p)` is kept as long as it can be), a reader takes it that all have changed: what
    is left is then also counted without the values of that release. And of a class with counterfeits, which
    have values that others have or had, a value that stands nowhere else is somebody's. The fewest count.

    With ``candidates`` *persons*, who is left are the persons that are in the same class in every release,
    and in the same releases: an intruder who can put the records of one person together, as by a pseudonym
    that stays, tells the others apart.

    ``other`` is what another owner has released of some of the same persons, as a table that tells whose each
    record is: it is intersected before all others.

    Notes
    -----
    **How to read it.** 0 is safe; at k = 2 it is the share of persons whose value is known for sure.
    ``baseline`` is the same from the last release alone: what is above it, the earlier ones have added.

    **Doubt.** Exact for an intruder who knows in which class of each release a person is, as for k-anonymity
    and l-diversity. One who knows less has more candidates, so that the risk is not above it.

    **Missing.** Keys as in k-anonymity. A sensitive value that is missing or suppressed says nothing and
    hides nobody: it is no candidate, and a class of nothing else excludes none. A range or group of values
    stands for all values in it that an original or a release has exactly.

    **Units.** Persons are counted, each by the worst of their records and sensitive columns. If persons have
    several records, ``record`` of the series must say which is which; else candidate values are refused.

    **Cost.** That of the classes of all releases, and a search of the candidates of each class in the
    others.

    Examples
    --------
    >>> schema = Schema((
    ...     Column("who", Kind.NOMINAL, Role.PERSON), Column("area", Kind.NOMINAL, Role.KEY),
    ...     Column("ill", Kind.NOMINAL, Role.SENSITIVE),
    ... ))
    >>> def wave(who, area, ill):
    ...     table = Table(pl.DataFrame({"who": who, "area": area, "ill": ill}), schema)
    ...     return Evidence(table, Release.unchanged(table))
    >>> first = wave([1, 2, 3, 4], ["n", "n", "s", "s"], ["flu", "gout", "flu", "gout"])
    >>> second = wave([1, 5, 3, 4], ["n", "n", "s", "s"], ["flu", "cold", "flu", "gout"])
    >>> second.resources["series"] = Waves.of([first])
    >>> score = IntersectionRisk().score(second, Run(seed=1))
    >>> score.value, score.baseline
    (0.25, 0.0)
    """

    name = "intersection-risk"
    vetted = (
        "brute-forced: property/test_series_measures.py::test_candidate_values_are_what_all_releases_leave"
    )
    synonyms = ("intersection attack",)
    family = "longitudinal releases"
    title = "Intersection of releases"
    better = "low"
    bounds = (0.0, 1.0)
    needs = Needs()
    counts = KeyMeasure.counts  # the other releases are taken as they read
    tells = Tells(
        places={"series": 1},
        record_sentence="a guess among the candidates left by all releases is right with probability {:.0%}",
    )
    references = ("xiao2007minvariance", "ganta2008", "carvalho2023")

    k: int = param(2, "Candidates below which a person is at risk.", ge=2, le=1000, symbol="k")
    candidates: Literal["values", "persons"] = param(
        "values",
        "What the candidates are.",
        choices={
            "values": "The sensitive values that a person may have.",
            "persons": "The persons who are in the same class in every release.",
        },
    )
    other: Resource | None = param(
        None, "Another owner's release of common persons, with the column of persons.", holds="table"
    )

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse where nobody can be found again, or keys cannot be compared."""
        values = self.candidates == "values"
        reason = super().refuses(evidence) if values else KeyMeasure.refuses(self, evidence)
        if reason is not None:
            return reason
        if evidence.protected is None:
            return f"{self.name} needs a release beside the original"
        seen = self._with_waves(evidence)
        reason = why_not_traceable(self.name, seen, by_record=values) or self._no_other(evidence)
        return reason or left_out(self, self._earlier(seen), seen)

    def _with_waves(self, evidence: Evidence) -> Evidence:
        """With another owner's release there are several even without a series."""
        if self.other is None or waves_of(evidence) is not None:
            return evidence
        there: dict[str, Any] = {**evidence.resources, SERIES: Waves(Identity.of())}
        return evidence.remember("another owner", lambda: replace(evidence, resources=there))

    def _no_other(self, evidence: Evidence) -> str | None:
        if self.other is None:
            return None
        table = evidence.resources.get(str(self.other))
        person = evidence.original.schema.only_role(Role.PERSON)
        if not isinstance(table, Table) or person not in table.schema:
            return f"`other` of {self.name} must name a table with the column of persons, got: `{self.other}`"
        return None

    def _earlier(self, evidence: Evidence) -> list[Wave]:
        waves = waves_of(evidence)
        assert waves is not None  # `why_not_traceable` saw to it
        if self.other is None:
            return list(waves.earlier)
        table: Table = evidence.resources[str(self.other)]
        person = evidence.original.schema.only_role(Role.PERSON) or ""
        persons = waves.identity.persons(table, person)
        return [Wave("the other owner's release", table, persons, persons), *waves.earlier]

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002  — no chance is used
        """Count the candidates that are left for each released record."""
        seen = self._with_waves(evidence)
        try:
            alone, left = (self._persons if self.candidates == "persons" else self._values)(seen)
        except DataError as error:
            return Score.not_estimable(error.message)
        rows, people = evidence.source_rows, persons_of(evidence.original)
        assert rows is not None  # `why_not_traceable` saw to it
        real = rows >= 0
        few = [(each < self.k)[real].astype(np.float64) for each in (left, alone)]
        risky = [best_by_person(people[rows[real]], each) for each in few]
        if not len(risky[0]):
            return Score.not_estimable("the release has nobody of the original")
        value, baseline = (float(each.mean()) for each in risky)
        chances = np.divide(1.0, left, out=np.zeros(len(left)), where=np.isfinite(left))
        return Score(
            value=value,
            baseline=baseline,
            by_record=by_original(evidence, chances, worst="high"),
            details={
                "releases": len(self._earlier(seen)) + 1,
                "persons": len(risky[0]),
                "persons_at_risk": int(risky[0].sum()),
                "persons_at_risk_by_the_last_alone": int(risky[1].sum()),
                "fewest_candidates": float(left[real].min())
                if np.isfinite(left[real]).any()
                else "none told",
            },
        )

    def _persons(self, evidence: Evidence) -> tuple[Floats, Floats]:
        """How many persons are alike with each record's in the last release, and in all."""
        waves = waves_of(evidence)
        assert waves is not None  # `why_not_traceable` saw to it
        everyone = [*self._earlier(evidence), waves.now(evidence)]
        seen = [*(evidence_of(wave, evidence) for wave in everyone[:-1]), evidence]
        numbers, n_persons = _numbers_of([wave.persons for wave in everyone])
        classes = []
        for wave, own, who in zip(everyone, seen, numbers, strict=True):
            of_record = KeyMeasure.classes(self, own).of_record
            alike = np.full(n_persons + 1, -1, dtype=np.int64)
            alike[who] = alike_in_all(of_record, who) if wave.further else of_record
            classes.append(alike[:-1])  # who is nobody is the last
        found = []
        for columns in ([classes[-1]], classes):
            together, _ = number_rows(columns)
            counts = np.append(np.bincount(together)[together], n_persons + 1)
            found.append(counts[numbers[-1]].astype(np.float64))
        return found[0], found[1]

    def _values(self, evidence: Evidence) -> tuple[Floats, Floats]:
        """How many values the last release, and all, leave of the worst column; infinite if nothing tells."""
        waves = waves_of(evidence)
        assert waves is not None  # `why_not_traceable` saw to it
        earlier, now = self._earlier(evidence), waves.now(evidence)
        places = [*(now.places_in(wave) for wave in earlier), np.arange(len(now.units))]
        alone = left = np.full(len(now.units), np.inf)
        for name in self.sensitive_columns(evidence):
            *disclosed, own = values_of_releases(self, earlier, evidence, name, with_own=True)
            assert own is not None  # it is of the original
            pairs = [
                (each.without_missing(), rows)
                for each, rows in zip(disclosed, places, strict=True)
                if each is not None
            ]
            last = pairs[-1][0]
            alone = np.minimum(alone, np.where(last.sizes > 0, last.sizes, np.inf)[last.of_record])
            left = np.minimum(left, count_candidates(pairs))
            if evidence.source_rows is not None and (evidence.source_rows < 0).any():
                left = np.minimum(left, _somebodys(pairs, evidence.source_rows))
            leaving = _leaving(pairs, own, evidence.source_rows)
            if any(leaving):
                left = np.minimum(left, count_candidates(pairs, leaving))
        return alone, left


def _numbers_of(persons: Sequence[Words]) -> tuple[list[Ints], int]:
    """Persons of several releases as numbers from 0 on, who is nobody as the last, and how many there are."""
    words = np.concatenate(persons)
    order = np.argsort(words)
    ordered = words[order]
    opens = np.ones(len(order), dtype=np.bool_)
    opens[1:] = ordered[1:] != ordered[:-1]
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.cumsum(opens) - 1 - int((words == NOBODY).any())
    count = int(numbers.max(initial=-1)) + 1
    numbers[words == NOBODY] = count
    return np.split(numbers, np.cumsum([len(each) for each in persons])[:-1]), count


def _somebodys(disclosed: Sequence[tuple[DisclosedValues, Ints]], rows: Ints) -> Floats:
    """How many values are left where classes of the same values have as many new values as people.

    Counterfeits have values that others have or had: what stands in no other classes is somebody's, and as
    those of a value are put into as many classes as they are, the fullest of them has each such value.
    """
    last, earlier = disclosed[-1][0], [each.values for each, _ in disclosed[:-1]]
    n = len(last.sizes)
    real, false = (np.bincount(last.of_record[each], minlength=n) for each in (rows >= 0, rows < 0))
    owners = np.repeat(np.arange(n), last.sizes)
    pairs = pl.DataFrame({"class": owners, "value": last.values})
    words = pairs.group_by("class", maintain_order=True).agg(pl.col("value").cast(pl.String).str.join(","))
    alike = np.zeros(n, dtype=np.int64)  # 0 of those that tell nothing
    alike[last.sizes > 0] = words["value"].rank("dense").to_numpy()
    places, values = np.divmod(distinct_numbers(alike[owners] * last.space + last.values), max(last.space, 1))
    single = np.bincount(values, minlength=last.space) == 1
    single[np.concatenate([last.values[:0], *earlier])] = False
    new, false = np.bincount(places[single[values]], minlength=n + 1), np.bincount(alike, false, n + 1)
    most = np.zeros(n + 1, dtype=np.int64)
    np.maximum.at(most, alike, real)
    found: Floats = np.where((false > 0) & (new > 0) & (new >= most), new, np.inf)[alike[last.of_record]]
    return found


def _leaving(
    disclosed: Sequence[tuple[DisclosedValues, Ints]], own: DisclosedValues, rows: Ints | None
) -> list[bool]:
    """Whether who has other values than in each earlier release mostly has a value that was not there.

    So it is where people keep their values as long as their own is one of them, as by m-invariance.
    """
    assert rows is not None  # `why_not_traceable` saw to it
    last, found = disclosed[-1][0], []
    values = np.append(own.values[own.starts[own.of_record]], -1)[rows]
    for each, places in disclosed[:-1]:
        there = np.flatnonzero((places >= 0) & (values >= 0))
        classes = each.of_record[places[there]]
        other = _differ(each, classes, last, last.of_record[there])
        gone = ~each.holds(classes[other], values[there[other]])
        found.append(bool(2 * gone.sum() > len(gone)))
    return [*found, False]


def _differ(one: DisclosedValues, classes: Ints, other: DisclosedValues, others: Ints) -> Flags:
    """Which pairs of classes that both tell something have other values."""
    common = common_values(one, classes, other, others)
    first_sizes, second_sizes = one.sizes[classes], other.sizes[others]
    found: Flags = (first_sizes > 0) & (second_sizes > 0) & ((common < first_sizes) | (common < second_sizes))
    return found


def count_candidates(
    disclosed: Sequence[tuple[DisclosedValues, Ints]], leaving: Sequence[bool] = ()
) -> Floats:
    """How many values each record's classes have in common, from the last release back.

    Each release is given with the places of the records in it, −1 where they are not. A release that would
    leave nothing ends it; infinite where no release tells anything. Of a release that is ``leaving``, values
    are ruled out where they are not those of the last: who has others now has none of them.
    """
    classes = [np.where(places >= 0, each.of_record[places], -1) for each, places in disclosed]
    of_record, examples = number_rows(classes)
    heads = [each[examples] for each in classes]
    counts = np.full(len(examples), np.inf)
    widest = np.zeros(len(examples), dtype=np.int64)
    for (each, _), own in zip(disclosed, heads, strict=True):
        widest = np.maximum(widest, np.where(own >= 0, np.append(each.sizes, 0)[own], 0))
    for part in slices_of(widest):
        some = [(each, own[part]) for (each, _), own in zip(disclosed, heads, strict=True)]
        counts[part] = _left_of(some, leaving or [False] * len(disclosed))
    found: Floats = counts[of_record]
    return found


def _left_of(disclosed: Sequence[tuple[DisclosedValues, Ints]], leaving: Sequence[bool]) -> Floats:
    """The same for some combinations of classes, one of each release."""
    n = len(disclosed[0][1])
    counts, going = np.full(n, np.inf), np.ones(n, dtype=np.bool_)
    owners, values = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    for (each, classes), rules_out in zip(reversed(disclosed), reversed(leaving), strict=True):
        tells = classes >= 0
        tells[tells] = each.sizes[classes[tells]] > 0
        fresh = tells & np.isinf(counts)
        other = tells & ~fresh & rules_out
        other[other] = _differ(each, classes[other], disclosed[-1][0], disclosed[-1][1][other])
        old = tells & ~fresh & (going | other)
        is_old = old[owners]
        remaining = np.ones(len(owners), dtype=np.bool_)
        remaining[is_old] = each.holds(classes[owners[is_old]], values[is_old]) != other[owners[is_old]]
        after = np.bincount(owners[remaining], minlength=n)
        ended = old & (after == 0)
        remaining |= ended[owners]
        going &= ~ended & ~other
        counts = np.where(old & ~ended, after, counts)
        rows = np.flatnonzero(fresh)
        places, more = each.laid_out(classes[rows])
        counts[rows] = each.sizes[classes[rows]]
        owners, values = np.append(owners[remaining], rows[places]), np.append(values[remaining], more)
    return counts

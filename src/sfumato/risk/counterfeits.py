"""What an intruder who knows how frequent values are learns of people beside counterfeits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Needs, Score, Tells
from sfumato.core.run import Run
from sfumato.core.waves import Wave
from sfumato.data.persons import best_by_person, persons_of
from sfumato.data.series import NOBODY
from sfumato.data.shares import wilson
from sfumato.kernels.arrays import Floats, Ints
from sfumato.risk._key_measures import KeyMeasure, SensitiveMeasure, by_original
from sfumato.risk._series import (
    DisclosedValues,
    left_out,
    values_of_releases,
    waves_of,
    why_not_traceable,
    why_values_coarse,
)

_Z_95 = 1.959964
#: The number of people that a value of an earlier release counts for which nobody has now.
_NOBODY_NOW = 1e-6


class CounterfeitInference(SensitiveMeasure):
    r"""Share of the people beside counterfeits whose sensitive value is inferred from frequencies.

    A class (or bucket) of values :math:`S`, each once, has :math:`n` people; the other values are those of
    counterfeits. m-invariance takes each value to be equally likely. An intruder who knows how frequent each
    value is in the population, :math:`\pi_v`, and how many counterfeits there are, knows more: the values of
    the people are a set :math:`R \subseteq S` with

    .. math::

        P(R) \propto \prod_{v \in R} \pi_v, \quad |R| = n, \qquad
        P(v) = \frac{1}{n} \sum_{R \ni v} P(R)

    where :math:`P(v)` is the probability that one of them has value :math:`v`. Of a person in earlier
    releases the factors :math:`P(v) / \pi_v` of all releases are multiplied; a value that one of them does
    not have has the factor 0, and a release in which the person had another value is left out. The intruder
    guesses the most probable value of each person; the score is the share of people beside counterfeits, in
    this release or an earlier one, for whom this is right.

    See Also
    --------
    MInvariance : whether everybody is among the same values in all releases.

    Notes
    -----
    **How to read it.** Lower is safer. ``baseline`` is the success of a guess among equally likely values,
    which is at most :math:`1 / m` for :math:`m`-invariant releases. 0 if no one is beside counterfeits.

    **Doubt.** The attack is carried out and its hits are counted, with Wilson's interval of 95 %. The
    frequencies are those of the original, so no intruder knows them better; one who also knows the algorithm
    or other people may guess better.

    **Missing.** A missing sensitive value is a value of its own; keys as in k-anonymity. Generalised
    sensitive values, and values that occur twice in a class beside counterfeits, are refused.

    **Units.** Persons are counted, each by the worst of their records. Of several sensitive columns the worst
    counts.

    **Cost.** That of the classes of all releases, and :math:`|S|^2 n` for each class beside counterfeits.

    Examples
    --------
    Most have the flu; the second class has one person and a counterfeit:

    >>> from sfumato.core.origin import Origin
    >>> from sfumato.core.waves import Waves
    >>> schema = Schema((
    ...     Column("who", Kind.NOMINAL, Role.PERSON), Column("area", Kind.NOMINAL, Role.KEY),
    ...     Column("ill", Kind.NOMINAL, Role.SENSITIVE),
    ... ))
    >>> def table(who, area, ill):
    ...     return Table(pl.DataFrame({"who": who, "area": area, "ill": ill}), schema)
    >>> original = table([1, 2, 3], ["n", "n", "s"], ["flu", "gout", "flu"])
    >>> released = table([1, 2, 3, None], ["n", "n", "s", "s"], ["flu", "gout", "flu", "gout"])
    >>> release = Release.of(released, source_rows=np.array([0, 1, 2, -1]))
    >>> evidence = Evidence(original, release, resources={"series": Waves.of([])})
    >>> score = CounterfeitInference().score(evidence, Run(seed=1))
    >>> score.value, score.baseline
    (1.0, 0.5)
    """

    name = "counterfeit-inference"
    family = "longitudinal releases"
    title = "Inference among counterfeits"
    better = "low"
    bounds = (0.0, 1.0)
    needs = Needs(mapping=True)
    counts = KeyMeasure.counts  # the other releases are taken as they read
    tells = Tells(
        places={"series": 4},
        record_sentence="an intruder who knows frequencies infers its value (1: yes): {:.0f}",
        not_seen="It does not test an intruder who knows the algorithm or other people of the bucket, or "
        "puts several sensitive columns together.",
    )
    references = ("xiao2007minvariance",)
    vetted = "brute-forced: property/test_m_invariance.py::test_inference_among_counterfeits_by_all_sets"

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse where nobody can be found again, and values that may be several."""
        reason = super().refuses(evidence) or why_not_traceable(self.name, evidence)
        if reason is not None:
            return reason
        waves = waves_of(evidence)
        assert waves is not None  # `why_not_traceable` saw to it
        return why_values_coarse(self, waves.earlier, evidence) or left_out(self, waves.earlier, evidence)

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002  — no chance is used
        """Guess the value of everybody beside counterfeits, column by column."""
        waves, rows = waves_of(evidence), evidence.source_rows
        assert waves is not None  # `why_not_traceable` saw to it
        assert rows is not None
        everyone = [*waves.earlier, waves.now(evidence)]
        scores = dict[str, Score]()
        for name in self.sensitive_columns(evidence):
            *disclosed, own = values_of_releases(self, waves.earlier, evidence, name, with_own=True)
            assert own is not None  # it is of the original
            attack = _FrequencyAttack.of(disclosed, everyone, own, rows)
            if attack is None:
                return Score.not_estimable(f"a value of `{name}` occurs twice in a class beside counterfeits")
            scores[name] = self._count_hits(evidence, attack)
        worst = max(scores.values(), key=lambda each: each.value)
        return replace(worst, by_column={name: each.value for name, each in scores.items()})

    def _count_hits(self, evidence: Evidence, attack: _FrequencyAttack) -> Score:
        """The share of the persons attacked whose value is guessed."""
        rows = evidence.source_rows
        assert rows is not None  # `why_not_traceable` saw to it
        hits, by_lot = np.zeros((2, len(rows)))
        hits[attack.records], by_lot[attack.records] = attack.hits(), attack.by_lot()
        people = persons_of(evidence.original)[rows[attack.records]]
        right, baseline = (best_by_person(people, each[attack.records]) for each in (hits, by_lot))
        if not len(right):
            return Score(
                0.0, baseline=0.0, by_record=np.zeros(len(evidence.original)), details={"persons": 0}
            )
        return Score(
            value=float(right.mean()),
            interval=wilson(float(right.sum()), len(right), _Z_95),
            baseline=float(baseline.mean()),
            by_record=by_original(evidence, hits, worst="high"),
            details={"persons": len(right), "inferred": float(right.sum())},
        )


@dataclass(frozen=True, eq=False)
class _FrequencyAttack:
    """The records beside counterfeits, and how probable each value of their class is for them."""

    records: Ints
    owners: Ints  # [pairs] whose each value may be, by place among the records
    values: Ints  # [pairs]
    logs: Floats  # [pairs] logarithms of what the probability is proportional to
    truth: Ints  # [records]

    @classmethod
    def of(
        cls,
        disclosed: Sequence[DisclosedValues | None],
        waves: Sequence[Wave],
        own: DisclosedValues,
        rows: Ints,
    ) -> _FrequencyAttack | None:
        """Look at all releases of a column; None if a value is twice beside counterfeits."""
        last = disclosed[-1]
        assert last is not None  # it is learnt from the release
        truths = own.values[own.starts[own.of_record]]
        counts = np.bincount(truths + 1, minlength=own.space + 1)
        frequency = np.maximum(counts, _NOBODY_NOW) / len(truths)
        pairs, places = list[tuple[DisclosedValues, Floats]](), list[Ints]()
        attacked = np.zeros(len(rows), dtype=np.bool_)
        for each, wave in zip(disclosed, waves, strict=True):
            if each is None:
                continue
            real = np.bincount(each.of_record[wave.persons != NOBODY], minlength=len(each.sizes))
            factors = _factors(each, real, frequency)
            if factors is None:
                return None
            there = waves[-1].places_in(wave) if wave is not waves[-1] else np.arange(len(rows))
            met = np.flatnonzero((there >= 0) & (rows >= 0))
            classes = each.of_record[there[met]]
            known = met if each is last else met[each.holds(classes, truths[rows[met]])]
            attacked[known] |= (real < each.sizes)[each.of_record[there[known]]]
            pairs.append((each, factors))
            places.append(np.full(len(rows), -1))
            places[-1][known] = there[known]
        records = np.flatnonzero(attacked & (rows >= 0))
        owners, values = last.laid_out(last.of_record[records])
        logs = np.log(frequency)[values + 1]
        for (each, factors), there in zip(pairs, places, strict=True):
            seen = there[records]
            known = np.flatnonzero(seen[owners] >= 0)
            found = each.find(each.of_record[seen[owners[known]]], values[known])
            logs[known] += np.where(found >= 0, factors[found], -np.inf)
        return cls(records, owners, values, logs, truths[rows[records]])

    def hits(self) -> Floats:
        """The share of equally probable guesses that is right, for each record."""
        most = np.full(len(self.records), -np.inf)
        np.maximum.at(most, self.owners, self.logs)
        best = self.logs >= most[self.owners] - 1e-9
        right = best & (self.values == self.truth[self.owners])
        n_best, n_right = (np.bincount(self.owners[each], minlength=len(most)) for each in (best, right))
        return np.divide(n_right, n_best, out=np.zeros(len(most)), where=n_best > 0)

    def by_lot(self) -> Floats:
        """The chance of a guess that takes all values for equally probable, for each record."""
        return 1 / np.bincount(self.owners[np.isfinite(self.logs)], minlength=len(self.records))


def _factors(disclosed: DisclosedValues, real: Ints, frequency: Floats) -> Floats | None:
    """For each class and value of it, the logarithm of P(v) / π(v); None if a value is twice in a class.

    Where there are no counterfeits each value is as probable as it is often there.
    """
    owners = np.repeat(np.arange(len(disclosed.sizes)), disclosed.sizes)
    beside = (real < np.bincount(owners, disclosed.counts, len(disclosed.sizes))) & (real > 0)
    if (disclosed.counts[beside[owners]] > 1).any():
        return None
    factors = np.log(disclosed.counts / frequency[disclosed.values + 1])
    for size in np.unique(disclosed.sizes[beside]).tolist():
        classes = np.flatnonzero(beside & (disclosed.sizes == size))
        pairs = disclosed.starts[classes][:, None] + np.arange(size)
        weights = frequency[disclosed.values[pairs] + 1]
        factors[pairs] = _log_others(weights / weights.max(1, keepdims=True), real[classes])
    return factors


def _log_others(weights: Floats, real: Ints) -> Floats:
    """For each value of each class, how probable it makes the other values of the people, as a logarithm.

    That is the elementary symmetric polynomial of degree ``real`` − 1 in the weights of the others.
    """
    n, size = weights.shape
    logs = np.empty_like(weights)
    for value in range(size):
        sums = np.zeros((n, size + 1))
        sums[:, 0] = 1.0
        for other in range(size):
            if other != value:
                sums[:, 1:] += weights[:, other, None] * sums[:, :-1]
        with np.errstate(divide="ignore"):
            logs[:, value] = np.log(sums[np.arange(n), real - 1])
    return logs

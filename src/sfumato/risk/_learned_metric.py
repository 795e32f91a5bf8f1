r"""Learned metrics: what is near as a part of the true links tells it, and the strongest linkage of several.

An intruder who knows how a file was protected can rehearse it on people of their own; another one knows some
of the links. Both have true pairs of records, and see how far apart the values of one person are, column by
column and together. A pair is worth its likelihood ratio (Fellegi and Sunter), and so its distance is

.. math:: d^2 = 2 \log \frac{p(y - x \mid \text{strangers})}{p(y - x \mid \text{one person})}

With normal differences that is, up to a constant, a quadratic form. `LearnedMetric` maps points so that it
becomes a Euclidean distance, and the kernels and their proofs take it as they take any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Score, Status
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.persons import best_by_person
from sfumato.kernels.arrays import Flags, Floats, Ints, distinct_numbers
from sfumato.risk._coordinates import FixedMetric, Metric, Scale, whitening
from sfumato.risk._spaces import METRIC_HELP, METRICS, SCALE_HELP, SCALES, LinkageMeasure, LinkageSpace

#: The metrics with which the learned ones compete.
FIXED: tuple[FixedMetric, ...] = ("euclidean", "manhattan", "mahalanobis")

#: The spaces in which metrics are learned, and what they are called.
_BASES: tuple[tuple[FixedMetric, Scale, str], ...] = (
    ("euclidean", "deviation", "values"),
    ("euclidean", "rank", "ranks"),
    ("hamming", "deviation", "equalities"),
)

#: True pairs below which nothing is learned, and for each column below which no form of all of them is.
LEAST_PAIRS = 20

#: Persons learned from at most, records by which metrics are ranked, and metrics that then link everybody.
_MOST_LEARNED, _MOST_JUDGED, _MOST_TRIED = 5000, 2000, 3

#: Strangers that each record learned from is compared with.
_STRANGERS = 5

#: Of what strangers differ by: a direction in which true pairs differ less weighs no more than with this.
_LEAST_RATIO = 1e-8


@dataclass(frozen=True, eq=False)
class LearnedMetric:
    r"""The Euclidean distance of :math:`B'x + b` and :math:`A'y`, plus weights of unequal codes.

    With ``known_map`` and ``released_map`` alike it is a bilinear form, with both diagonal a weight for each
    column.
    """

    title: str
    metric: FixedMetric  # that and the scale give the space it is learned in
    scale: Scale
    known_map: Floats  # [measured columns, r]
    released_map: Floats
    origin: Floats  # [r]
    codes: Ints  # those that count
    weights: Floats  # of these, at most 1

    def tells_something(self) -> bool:
        """Whether anything counts, and by how much is a number."""
        parts = self.known_map, self.released_map, self.origin
        return len(self.origin) + len(self.codes) > 0 and all(np.isfinite(each).all() for each in parts)

    def place(self, space: LinkageSpace) -> LinkageSpace:
        """The space with points where this distance is that of the kernels."""
        n_measured = space.known_points.shape[1] - space.n_codes

        def moved(points: Floats, turned: Floats) -> Floats:
            # By no library of algebra: identical records stay so, whatever the number of threads.
            product: Floats = np.einsum("ij,jk->ik", points[:, :n_measured], turned)
            return product

        def beside(numbers: Floats, points: Floats) -> Floats:
            return np.ascontiguousarray(np.hstack((numbers, points[:, n_measured + self.codes])))

        return replace(
            space,
            known_points=beside(moved(space.known_points, self.known_map) + self.origin, space.known_points),
            released_points=beside(moved(space.released_points, self.released_map), space.released_points),
            metric="euclidean" if len(self.origin) else "manhattan",
            n_codes=len(self.codes),
            weights=self.weights,
        )


class TruePairs(NamedTuple):
    """True links, as places of the intruder's records, in an order that says nothing."""

    learned: Ints
    held_out: Ints

    @classmethod
    def draw(cls, space: LinkageSpace, rng: np.random.Generator) -> TruePairs:
        """Draw half of the persons whose records were released, and of these as many as are learned from."""
        assert space.truth is not None  # measures of true links see to it
        there = rng.permutation(np.flatnonzero(space.truth >= 0))
        persons = rng.permutation(distinct_numbers(space.persons[there]))
        is_learned = np.isin(space.persons[there], persons[: min(len(persons) // 2, _MOST_LEARNED)])
        return cls(there[is_learned], there[~is_learned])


class _Differences(NamedTuple):
    """The numbers and codes of known records beside those of released ones."""

    known: Floats
    released: Floats
    unequal: Flags

    @classmethod
    def of(cls, space: LinkageSpace, known_rows: Ints, released_rows: Ints) -> _Differences:
        n = space.known_points.shape[1] - space.n_codes
        known, released = space.known_points[known_rows], space.released_points[released_rows]
        return cls(known[:, :n], released[:, :n], known[:, n:] != released[:, n:])


def learn_metrics(
    space: LinkageSpace, pairs: TruePairs, metric: FixedMetric, scale: Scale
) -> Iterator[LearnedMetric]:
    """Learn weights, and where pairs suffice a bilinear form and a regression, in the space of a metric."""
    assert space.truth is not None  # measures of true links see to it
    assert space.owners is not None
    known_rows, own = pairs.learned, space.truth[pairs.learned]
    if len(known_rows) < LEAST_PAIRS:
        return
    again = np.tile(known_rows, _STRANGERS)
    others = np.concatenate([np.roll(own, shift + 1) for shift in range(_STRANGERS)])
    apart = space.persons[again] != space.owners[others]
    true, strange = (
        _Differences.of(space, *each) for each in ((known_rows, own), (again[apart], others[apart]))
    )
    n_measured = true.known.shape[1]
    forms: list[tuple[str, Floats, Floats]] = [
        ("weights", np.eye(n_measured), (true.released - true.known).mean(axis=0))
    ]
    if n_measured > 1 and len(known_rows) >= LEAST_PAIRS * n_measured:
        design = np.column_stack((true.known, np.ones(len(known_rows))))
        fitted = np.asarray(np.linalg.lstsq(design, true.released, rcond=_LEAST_RATIO)[0], dtype=np.float64)
        forms += [("bilinear form", *forms[0][1:]), ("regression", fitted[:-1], fitted[-1])]
    for title, predict, offset in forms:
        gaps = [each.released - each.known @ predict - offset for each in (true, strange)]
        turned = _ratio_map(*gaps, full=title != "weights")
        weights = _code_weights(true.unequal, strange.unequal)
        codes, most = np.flatnonzero(weights > 0), weights.max(initial=0.0) or 1.0
        turned = turned / np.sqrt(most)  # no code may weigh more than 1
        made = LearnedMetric(
            title, metric, scale, predict @ turned, turned, offset @ turned, codes, weights[codes] / most
        )
        if made.tells_something():
            yield made


def _ratio_map(matched: Floats, strange: Floats, *, full: bool) -> Floats:
    r"""The map whose squared lengths are :math:`d'(\Sigma_m^{-1} - \Sigma_u^{-1})d`, where that is above 0.

    :math:`\Sigma_m` has the second moments of differences within true pairs, :math:`\Sigma_u` those between
    strangers; a direction in which these are alike tells nothing and is left out.
    """
    moments = [each.T @ each / max(len(each), 1) for each in (matched, strange)]
    if not full:
        moments = [np.diag(np.diagonal(each)) for each in moments]
    white = whitening(moments[1])
    ratios, vectors = np.linalg.eigh(white.T @ moments[0] @ white)
    gains = 1.0 / np.maximum(ratios, _LEAST_RATIO) - 1.0
    useful = gains > 0
    turned: Floats = (white @ vectors)[:, useful] * np.sqrt(gains[useful])
    return turned


def _code_weights(matched: Flags, strange: Flags) -> Floats:
    """Twice the log of how much likelier strangers differ; 0 where true pairs differ as often."""
    odds = [(each.sum(axis=0) + 0.5) / ((~each).sum(axis=0) + 0.5) for each in (strange, matched)]
    weights: Floats = np.maximum(2.0 * np.log(odds[0] / odds[1]), 0.0)
    return weights


class LearningLinkage(LinkageMeasure):
    """A measure of links by distance that can learn from a part of the true links what is near."""

    metric: Metric = param(  # type: ignore[assignment]  # one choice more
        "euclidean",
        METRIC_HELP,
        choices={
            **METRICS,
            "learned": "The one that finds most: of three fixed ones and those learned from true links.",
        },
        synonyms=dict.fromkeys(
            ("metric learning", "learned metric", "supervised linkage", "bilinear form"), "learned"
        ),
    )
    scale: Scale = param(
        "deviation", SCALE_HELP, choices=SCALES, when="metric=euclidean|manhattan|chebyshev|learned"
    )

    def is_coarse(self, evidence: Evidence) -> bool:
        """Whether released values are ranges or groups: they have no coordinates, and nothing is learned."""
        assert evidence.protected is not None  # `refuses` saw to it
        return evidence.protected.is_generalised(*self.columns(evidence))

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Score the links by the metric, or by the strongest."""
        if self.metric == "learned" and not self.is_coarse(evidence):
            return self.of_strongest(evidence, run)
        names = () if self.is_coarse(evidence) else self.columns(evidence)
        return self.of_space(evidence, self.space(evidence, run, names), run)

    def of_space(self, evidence: Evidence, space: LinkageSpace, run: Run) -> Score:
        """Score the links in a space, which has no columns if values are generalised."""
        raise NotImplementedError  # abstract: measures that learn have their own

    def of_strongest(self, evidence: Evidence, run: Run) -> Score:
        """Link by fixed and by learned metrics: the one that finds most counts.

        What a requirement takes for the worst is never better than by a fixed one.
        """
        tried = {metric: replace(self, metric=metric).measure(evidence, run) for metric in FIXED}
        numeric = {name: score for name, score in tried.items() if np.isfinite(score.value)}
        if not numeric:
            return tried[FIXED[0]]
        worst = max(numeric.values(), key=self._worst_of)
        space = self.space(evidence, run, ())
        pairs = TruePairs.draw(space, run.rng("learning"))
        learned = self._by_learned(evidence, pairs, run)
        title, best = max([*numeric.items(), *learned.items()], key=lambda named: named[1].value)
        shares: dict[str, float] = {f"share_{name}": score.value for name, score in numeric.items()}
        if learned:
            shares |= _shares_learned(space, pairs, max(learned.values(), key=lambda score: score.value))
        shares["learned_from"] = len(pairs.learned) if learned else 0
        best = replace(best, details={**best.details, "metric": title, **shares})
        if (end := self._worst_of(worst)) <= self._worst_of(best):
            return best
        best = replace(best, status=Status.APPROXIMATE, reason=worst.reason, interval_is_proved=False)
        return replace(best, bound=end if np.isfinite(end) else None)

    def _worst_of(self, score: Score) -> float:
        """What a requirement takes for the worst; infinite if nothing is certain enough."""
        end = score.value if score.status is Status.OK else self._far_end(score)
        return np.inf if np.isnan(end) else end

    def _by_learned(self, evidence: Evidence, pairs: TruePairs, run: Run) -> dict[str, Score]:
        """The scores by the learned metrics that put the records held out nearest to their own."""
        names, found = self.columns(evidence), []
        for metric, scale, what in _BASES:
            by = replace(self, metric=metric, scale=scale)
            space = by.space(evidence, run, names)
            for form in learn_metrics(space, pairs, metric, scale):
                near = _closeness(form.place(space), pairs.held_out[:_MOST_JUDGED])
                found.append((near, by, replace(form, title=f"{form.title} of {what}")))
        found.sort(key=lambda each: -each[0])
        return {
            form.title: _with_metric(
                by.of_space(evidence, form.place(by.space(evidence, run, names)), run), form
            )
            for _, by, form in found[:_MOST_TRIED]
        }


def _closeness(space: LinkageSpace, rows: Ints) -> float:
    """The mean chance of records to draw one of their own among all that are no farther than it."""
    links = kernels.linking.closer_counts(
        space.known_points[rows], space.released_points, space.persons[rows], space.owners, **space.distance,
        cap=None,
    )  # fmt: skip
    return float((links.own / np.maximum(links.nearer + links.tied, 1)).mean()) if len(rows) else 0.0


def _with_metric(score: Score, learned: LearnedMetric) -> Score:
    """The score with a proof, if it has one, that names the metric."""
    proof: Any = score.proof
    return score if proof is None else replace(score, proof=replace(proof, learned=learned))


def _shares_learned(space: LinkageSpace, pairs: TruePairs, score: Score) -> dict[str, float]:
    """What is found by a learned metric, of all and of those who were not learned from."""
    assert score.by_record is not None  # links have it
    chances = score.by_record[space.rows[pairs.held_out]]
    apart = best_by_person(space.persons[pairs.held_out], chances)
    return {"share_learned": score.value, "share_held_out": float(apart.mean())}

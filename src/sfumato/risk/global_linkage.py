"""Risk by global linkage: all records are linked at once, one to one, at the least total distance.

An intruder who holds many records knows that no two of them are the same released record, and so rules out
links that a look at single records would leave. See `LinkageSpace` for what is compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from sfumato import kernels
from sfumato.core.approaches import approaches
from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import why_pairs_unknown
from sfumato.core.measure import Laws, Scaling, Score, Status, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.persons import best_by_person
from sfumato.kernels.arrays import Floats, Ints, count_distinct, distinct_numbers
from sfumato.risk._box_distances import nearness_of
from sfumato.risk._global_coverage import (
    CandidatePairs,
    CertifiedLinkage,
    boxes_of,
    linked_boxes,
    ties_of_boxes,
    tight_pairs,
)
from sfumato.risk._learned_metric import LearnedMetric, LearningLinkage
from sfumato.risk._spaces import LinkageSpace, why_generalised
from sfumato.risk.linkage import expected_links

#: Distances at a time when the (h+1)-th nearest is looked for.
_BLOCK_OF_DISTANCES = 4_000_000


class GlobalLinkage(LearningLinkage):
    r"""Share of records linked to their own when all records are linked at once, one to one (GDBRL).

    .. math::

        P_G(T, \langle T', \Delta \rangle) = \frac{|\{n : \pi(n) = n\}|}{N}, \qquad
        \pi = \arg\min_\pi \sum_{n=1}^{N} d(v_n, v'_{\pi(n)})

    over all one-to-one maps with :math:`d(v_n, v'_{\pi(n)}) \le \Delta`. Which pairs are possible is said by
    ``pairs``:

    - *all*: every one (:math:`\Delta = \infty`);
    - *delta*: those no farther than :math:`\delta = \max_n d(v_n, v'_n)`, the most that any record moved
      (GDBRL-:math:`\delta`);
    - *published*: those no farther than ``bound``, a :math:`\Delta \ge \delta` released with the file;
    - *rank*: for each record its :math:`h + 1` nearest, where :math:`h = \max_n h(n)` and :math:`h(n)` counts
      the released records nearer than the own one (AGDBRL¹);
    - *own*: for each record those no farther than its own (AGDBRL²).

    The last two use what only the owner knows, :math:`h(n)`; AGDBRL² leaks so much of it into the graph that
    it can be far above what any intruder reaches.

    Where released values are intervals or groups, records are linked to some that cover them at the least
    total information loss, if all of them can be; ``metric`` and ``scale`` do not matter then. If not, since
    values were perturbed too, the distance is as in `dbrl`, to the nearest values that are meant, plus the
    loss. ``pairs`` must be *all*.

    With ``metric`` *learned* records are linked by three fixed metrics (*euclidean* and *manhattan* by
    ``scale``, *mahalanobis*) and by those three, of up to seven learned ones, that put records nearest to
    their own; the linkage that finds most counts. Half of the persons (at most 5,000) are learned from: of
    their true pairs and of pairs of strangers the second moments of the differences :math:`e`,
    :math:`\Sigma_m` and :math:`\Sigma_u`, give

    .. math:: d^2 = e' (\Sigma_m^{-1} - \Sigma_u^{-1}) e + 2 \sum_c w_c [x_c \ne y_c]

    where it is above 0, with :math:`w_c` the log odds ratio by which strangers differ in category :math:`c`:
    as *weights* of columns, if both matrices are diagonal; as a *bilinear form*; or by a *regression*, which
    compares with what the records would be released as. That is done of values, of ranks and of equalities.

    Notes
    -----
    **How to read it.** 0 is safe, 1 means every record is found. Look at it beside `dbrl`: either may be the
    greater, and an intruder takes the better. ``baseline`` is what guessing finds.

    **Doubt.** Exact and proved: the score carries prices :math:`u, v` of all records with
    :math:`u_i + v_j \le c_{ij}` for *every* pair and equality for the linked ones, so no other linkage costs
    less; ``score.proof.verify(evidence, run)`` checks that from the data alone. Without a complete proof the
    status is *approximate* and ``gap`` says how much less another linkage could cost. Several linkages may
    cost the least, up to the rounding of their sums: identical records are interchangeable, so the value is
    the expectation over their exchanges; ``interval`` has the fewest and the most correct links of all
    linkages of least cost, which ``verify`` checks too, and ``links_certain`` counts those that are in all.
    Where they differ by more than such exchanges, as they do where values were generalised or are few, the
    one that is counted is drawn by chance: then the status is *approximate*, and a requirement is met only
    if all linkages of least cost meet it. Of persons with several records no interval is known, but a
    ``bound``: nobody is found with a larger chance than their share of the records that are alike.

    The proof of a learned linkage is of the metric that it names: it says that no linkage is nearer by it,
    not that no other metric finds more. ``share_euclidean`` and so on say what the others find, and
    ``share_held_out`` what the best learned one finds of those whom it was not learned from; the value counts
    all, so it errs upwards. With fewer than 40 persons, and of generalised values, nothing is learned, and
    the best fixed one counts (``learned_from`` is 0), of generalised values *euclidean*.

    **Missing.** As in `dbrl`: a value of its own, and where cells were suppressed any value, too.

    **Units.** Where a column tells whose record it is, a link to any record of the same person is right, and
    persons are counted, each by the record that is linked best. An intruder who holds fewer or more records
    than were released leaves some unlinked: those that would cost most.

    **Cost.** Between :math:`n` and :math:`n^2` per round; 30,000 records of 13 columns take five to fifteen
    seconds, 100,000 a minute or two, 300,000 some minutes, a million most of an hour and 3 GB. Generalised
    releases: points times distinct released records. *learned* takes six such linkages.

    Examples
    --------
    >>> schema = Schema((Column("x", Kind.CONTINUOUS), Column("y", Kind.CONTINUOUS)))
    >>> original = Table(pl.DataFrame({"x": [1.0, 0.0, -1.0, 0.0], "y": [0.0, 1.0, 0.0, -1.0]}), schema)
    >>> released = Table(pl.DataFrame({"x": [0.0, 0.0, -2.1, 0.0], "y": [0.0, 2.1, 0.0, -2.1]}), schema)
    >>> evidence = Evidence(original, Release.of(released, source_rows=np.arange(4)))
    >>> GlobalLinkage().score(evidence, Run(seed=1)).value
    1.0
    """

    name = "gdbrl"
    counts = replace(
        LearningLinkage.counts,
        laws=Laws(
            reads_names="Of linkages that cost the same one is drawn, in the order of the names of columns.",
            coarser_is_safer=True,
        ),
    )
    vetted = "proved: proofs/global-linkage.md"
    synonyms = ("record linkage", "global distance-based record linkage")
    family = "linkage"
    tells = Tells(places={"default": 0, "comparison": 4, "report": 15}, intruder="links all records at once")
    scales = Scaling(exact_up_to=50_000)
    title = "Global record linkage"
    references = ("herranz2015", "tassa2012", "abril2012", "abril2015", "kostinger2012")
    cost = "n²"

    pairs: Literal["all", "delta", "published", "rank", "own"] = param(
        "all",
        "Which pairs of records can be linked.",
        choices={
            "all": "Every pair.",
            "delta": "Those no farther apart than the record that moved most.",
            "published": "Those no farther apart than `bound`.",
            "rank": "For each record its h + 1 nearest, where at most h are nearer than its own.",
            "own": "Those no farther from a record than its own released one.",
        },
    )
    bound: float | None = param(
        None, "The bound on distances that is published with the file.", gt=0, when="pairs=published"
    )
    rounds: int | None = param(None, "Rounds after which the search stops without a proof.", ge=1)

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse a bound that is missing, or that belongs to no `pairs`."""
        if (self.pairs == "published") != (self.bound is not None):
            return f"`bound` of {self.name} must be given with pairs=published, and only with it"
        reason = self.why_unsuitable(evidence) or why_pairs_unknown(self.name, evidence)
        if reason:
            return reason
        if self.metric == "learned" and self.pairs == "published":
            return f"`metric` of {self.name} must be fixed with pairs=published: the bound is by it"
        if self.pairs != "all" and self.is_coarse(evidence):
            return f"`pairs` of {self.name} must be all for generalised values, got: {self.pairs}"
        return why_generalised(self.name, self.columns(evidence), evidence.known_table)

    def of_space(self, evidence: Evidence, space: LinkageSpace, run: Run) -> Score:
        """Solve the assignment, prove it, and count."""
        names, space = self.columns(evidence), space.shuffle(run.rng("shuffle"))
        if not len(space.known_points) or not len(space.released_points):
            return Score.not_estimable(space.why_empty)
        if self.is_coarse(evidence):
            return self._of_boxes(evidence, space, names, run)
        radii = self.radii(space, run)
        found = kernels.assignment.solve(
            *space.points, **space.distance, radii=radii, tick=run.ticker(self.title), limit=self.rounds
        )
        if not found.complete and found.certified is False and self.bound is not None:
            return Score.not_estimable("no one-to-one linkage keeps to the published bound: it is too small")
        details = {
            **self.count_details(space, evidence, names),
            "mean_distance": found.distance / max(min(map(len, space.points)), 1),
            "gap": found.gap * found.unit,
        }
        score = _expected_links(evidence, space, chances(space, found.partners), details)
        if found.certified:
            score = self.with_tie_bounds(score, space, self.ties(space, found, radii, run))
        proof = Certificate(self, found.partners, found.row_prices, found.column_prices, space.rows,
                            space.released_rows, score.value, score.interval)  # fmt: skip
        if not found.certified:
            reason = "the search ended without a proof that no linkage costs less"
            score = replace(score, status=Status.APPROXIMATE, reason=reason)
        return replace(score, proof=proof)

    def _of_boxes(self, evidence: Evidence, space: LinkageSpace, names: tuple[str, ...], run: Run) -> Score:
        """Link records to what released ones may stand for."""
        made = self.boxes(evidence, space, names)
        linked = None if made is None else linked_boxes(made, space.right_links(), run)
        if linked is None:
            return Score.not_estimable("the pairs of records that may belong together are too many to list")
        boxes, found = linked
        is_linked = found.partners >= 0
        n_linked = max(int(is_linked.sum()), 1)
        cost = int(found.row_prices[is_linked].sum() + found.column_prices[found.partners[is_linked]].sum())
        details = {
            **self.count_details(space, evidence, names),
            "metric": "information loss of those that cover"
            if boxes.only_covering
            else f"{space.metric} to what released values stand for, and information loss",
            "mean_distance": cost / boxes.pricing.scale / n_linked,
            "gap": 0.0,
            "unlinked": int((~is_linked).sum()),
        }
        groups = boxes.points, boxes.classes
        score = _expected_links(evidence, space, chances(space, found.partners, groups), details)
        pairs = tight_pairs(boxes, found, run)
        if pairs is None:
            reason = "the prices do not prove that no linkage costs less"
            score = replace(score, status=Status.APPROXIMATE, reason=reason)
        else:
            tied = ties_of_boxes(boxes, found, pairs, space.right_links())
            score = self.with_tie_bounds(score, space, tied, boxes.classes)
        proof = Certificate(self, found.partners, found.row_prices, found.column_prices, space.rows,
                            space.released_rows, score.value, score.interval)  # fmt: skip
        return replace(score, proof=proof)

    def boxes(self, evidence: Evidence, space: LinkageSpace, names: tuple[str, ...]) -> CandidatePairs | None:
        """The released records as boxes, in the order of a space; None if they are too many."""
        nearness = nearness_of(evidence, names, space.rows, metric=self.metric, scale=self.scale)
        return boxes_of(nearness, space.released_rows)

    @staticmethod
    def ties(space: LinkageSpace, found: Any, radii: Floats | None, run: Run) -> Any:
        """The fewest and the most correct links of all linkages of least cost, and which are certain."""
        return kernels.assignment.ties(
            *space.points, found=found, right=space.right_links(), **space.distance, radii=radii,
            tick=run.ticker("other linkages"),
        )  # fmt: skip

    @staticmethod
    def with_tie_bounds(score: Score, space: LinkageSpace, tied: Any, classes: Ints | None = None) -> Score:
        """Write down what holds in all linkages of least cost, and whether the one found tells of all.

        The ``classes`` number the released records that are identical, where it is not by where they lie.
        """
        if not tied.settled:
            reason = "several linkages cost the least and differ in what they find: one was drawn by chance"
            score = replace(score, status=Status.APPROXIMATE, reason=reason)
        if count_distinct(space.persons) < len(
            space.rows
        ):  # of several records of a person nothing is proved
            return replace(score, bound=max(_most_found(space, classes), score.value))
        interval = (tied.fewest / len(space.rows), tied.most / len(space.rows))
        if tied.expected is not None:
            score = replace(score, bound=max(tied.expected / len(space.rows), score.value))
        details = {**score.details, "links_certain": tied.certain}
        if not tied.exact:
            details["ties"] = "not all examined: the interval may be wider than necessary"
        return replace(score, interval=interval, interval_is_proved=True, details=details)

    def radii(self, space: LinkageSpace, run: Run) -> Floats | None:
        """How far the partner of each record may be; None: any distance."""
        if self.pairs == "all":
            return None
        if self.bound is not None:
            return np.full(len(space.known_points), self.bound)
        if self.pairs == "delta":
            return np.full(len(space.known_points), distortion(space))
        rivals = _rivals(space, run, cap=None if self.pairs == "rank" else 1)
        if self.pairs == "own":
            own: Floats = rivals.references
            return own
        return nth_distances(space, int(rivals.nearer.max(initial=0)) + 1, run)


def _expected_links(
    evidence: Evidence, space: LinkageSpace, chances: Floats, details: Mapping[str, float | int | str]
) -> Score:
    """The score of a linkage; that a record is linked to its own in one says not that it is in all others."""
    score = expected_links(evidence, space, chances, details)
    kept = {key: value for key, value in score.details.items() if key != "links_certain"}
    return replace(score, details=kept)


def _rivals(space: LinkageSpace, run: Run, *, cap: int | None) -> Any:
    tick = run.ticker("nearer records")
    return kernels.linking.closer_counts(
        *space.points, space.persons, space.owners, **space.distance, cap=cap, tick=tick
    )


def distances(space: LinkageSpace, known_rows: Ints, released_rows: Ints) -> Floats:
    """Distances of pairs of one of mine and one of theirs."""
    gaps = np.abs(space.known_points[known_rows] - space.released_points[released_rows])
    n_measured = gaps.shape[-1] - space.n_codes if space.metric != "hamming" else 0
    measured, unequal = gaps[..., :n_measured], (gaps[..., n_measured:] > 0) * space.weights
    if space.metric == "euclidean":
        far: Floats = np.sqrt((measured**2).sum(axis=-1) + unequal.sum(axis=-1))
    elif space.metric == "chebyshev":
        far = np.maximum(measured.max(axis=-1, initial=0.0), unequal.max(axis=-1, initial=0.0))
    else:
        far = measured.sum(axis=-1) + unequal.sum(axis=-1)
    return far


def distortion(space: LinkageSpace) -> float:
    """The most that any record moved: δ, the largest distance between a record and its own released one."""
    assert space.truth is not None  # measures of true links see to it
    there = np.flatnonzero(space.truth >= 0)
    return float(distances(space, there, space.truth[there]).max(initial=0.0))


def nth_distances(space: LinkageSpace, count: int, run: Run) -> Floats | None:
    """Distance from each of mine to the ``count``-th nearest of theirs; None if that is all of them."""
    n_theirs = len(space.released_points)
    if count >= n_theirs:
        return None
    step = max(1, _BLOCK_OF_DISTANCES // (n_theirs * max(space.known_points.shape[1], 1)))
    nth = np.empty(len(space.known_points))
    everyone = np.arange(n_theirs)
    for start in run.track("nearest records", range(0, len(nth), step), total=-(-len(nth) // step)):
        rows = np.arange(start, min(start + step, len(nth)))
        far = distances(space, rows[:, None], everyone[None, :])
        nth[rows] = np.partition(far, count - 1, axis=1)[:, count - 1]
    return nth


def chances(space: LinkageSpace, partners: Ints, groups: tuple[Ints, Ints] | None = None) -> Floats:
    r"""Chance of each of mine to be linked to one of its own, if identical records change places at random.

    With :math:`f_{RC}` of the linked pairs between the identical records :math:`R` and :math:`C`, a record of
    :math:`R` is linked to a given one of :math:`C` with probability :math:`f_{RC} / (|R| |C|)`. Who is
    identical to whom is said by ``groups``, else by where they lie.
    """
    if groups is None:
        groups = _identical(space.known_points), _identical(space.released_points)
    (known_rows, released_rows), (n_mine, n_theirs) = groups, (np.bincount(each) for each in groups)
    linked = np.flatnonzero(partners >= 0)
    between = known_rows[linked] * len(n_theirs) + released_rows[partners[linked]]
    kinds, counts = np.unique(between, return_counts=True)
    first, second = space.right_links()
    wanted = known_rows[first] * len(n_theirs) + released_rows[second]
    places = np.minimum(np.searchsorted(kinds, wanted), max(len(kinds) - 1, 0))
    flows = np.where(kinds[places] == wanted, counts[places], 0) if len(kinds) else np.zeros(len(wanted))
    shares = flows / (n_mine[known_rows[first]] * n_theirs[released_rows[second]])
    return np.minimum(np.bincount(first, weights=shares, minlength=len(known_rows)), 1.0)


def _most_found(space: LinkageSpace, classes: Ints | None) -> float:
    """The largest share of persons that any linkage finds, if identical records change places at random.

    A record is linked into one class of identical ones at a time, and is there with the chance of those that
    are of its person; a person counts by the best record.
    """
    assert space.owners is not None  # measures of true links see to it
    classes = _identical(space.released_points) if classes is None else classes
    counts = pl.DataFrame({"person": space.owners, "class": classes}).group_by("person", "class").len()
    shares = counts.with_columns(share=pl.col("len") / pl.col("len").sum().over("class"))
    best = shares.group_by("person").agg(pl.col("share").max())
    persons = pl.DataFrame({"person": distinct_numbers(space.persons)}).join(best, on="person", how="left")
    return float(persons["share"].fill_null(0.0).sum() / len(persons))


def _identical(points: Floats) -> Ints:
    """Number the distinct records."""
    if not points.shape[1]:
        return np.zeros(len(points), dtype=np.int64)
    group: Ints = np.unique(points + 0.0, axis=0, return_inverse=True)[1].reshape(-1)
    return group


@dataclass(frozen=True, eq=False)
class Certificate:
    """A linkage of least cost and the prices that prove it, for whoever holds both tables.

    ``rows`` and ``released`` say which records of the intruder's table and of the release the linkage is
    about, in its order. A ``learned`` metric is part of what is proved, not of what must be believed: whoever
    checks takes it as it is, however it was found.
    """

    measure: GlobalLinkage
    partners: Ints
    row_prices: Ints
    column_prices: Ints
    rows: Ints
    released: Ints
    value: float
    interval: tuple[float, float] | None = None
    learned: LearnedMetric | None = None

    def verify(self, evidence: Evidence, run: Run) -> str | None:
        """Check linkage, prices, value and interval against the data alone; None if they hold, else what not.

        An interval is looked at again where it is said to hold: it must contain all linkages of least cost.
        The linkage is that of one of the approaches to the evidence.
        """
        whole = replace(
            evidence.with_known_values.with_people_only, scenario=replace(evidence.scenario, records=1.0)
        )
        faults = (self._fault(each.evidence, run) for each in approaches(whole))
        first = next(faults)
        return None if first is None or any(fault is None for fault in faults) else first

    def _fault(self, whole: Evidence, run: Run) -> str | None:
        """What does not hold by one approach; None if all does."""
        names, coarse = self.measure.columns(whole), self.measure.is_coarse(whole)
        placed = self.measure.space(whole, run, () if coarse else names)
        if self.learned is not None:
            placed = self.learned.place(placed)
        space = _order_by_certificate(placed, self)
        if space is None:
            return "the records of the certificate are not those of the tables"
        groups = None
        if coarse:
            boxes = self.measure.boxes(whole, space, names)
            tied = None if boxes is None else self._ties_of_boxes(boxes, space, run)
            groups = None if boxes is None else (boxes.points, boxes.classes)
        else:
            tied = self._ties_of_points(space, run)
        if tied is None:
            return "the prices do not prove that no linkage costs less"
        value = float(best_by_person(space.persons, chances(space, self.partners, groups)).mean())
        if value != self.value:
            return "the share of correct links differs"
        wide = self.measure.with_tie_bounds(Score(value), space, tied).interval
        holds = wide is None or (
            self.interval is not None and self.interval[0] <= wide[0] and wide[1] <= self.interval[1]
        )
        return None if holds else "the interval leaves out linkages of least cost"

    def _ties_of_boxes(self, boxes: CandidatePairs, space: LinkageSpace, run: Run) -> Any:
        """What linkages of least cost have in common; None if the prices prove none."""
        linked = CertifiedLinkage(self.partners, self.row_prices, self.column_prices)
        # To boxes that cover, if all can be: then that is the least, however near others are.
        for each in (boxes, boxes.with_distances()):
            pairs = tight_pairs(each, linked, run)
            if pairs is not None:
                return ties_of_boxes(each, linked, pairs, space.right_links())
        return None

    def _ties_of_points(self, space: LinkageSpace, run: Run) -> Any:
        """The same, of points."""
        radii = self.measure.radii(space, run)
        verdict = kernels.assignment.verify(
            *space.points, row_prices=self.row_prices, column_prices=self.column_prices,
            partners=self.partners, **space.distance, radii=radii, tick=run.ticker("checking"),
        )  # fmt: skip
        found = kernels.assignment.Assignment(
            self.partners, self.row_prices, self.column_prices, verdict.cost, verdict.bound, 0.0,
            verdict.certified, verdict.is_matching,
        )  # fmt: skip
        return self.measure.ties(space, found, radii, run) if verdict.certified else None


def _order_by_certificate(space: LinkageSpace, certificate: Certificate) -> LinkageSpace | None:
    """Put the records of a space into the order of a certificate; None if they are not the same ones."""
    places = np.searchsorted(space.rows, certificate.rows)
    same = len(certificate.released) == len(space.released_rows) and places.max(initial=-1) < len(space.rows)
    same = same and np.array_equal(np.sort(certificate.released), space.released_rows)
    if not same or not np.array_equal(space.rows[places], certificate.rows):
        return None
    back = np.empty(len(space.released_rows) + 1, dtype=np.int64)
    back[certificate.released], back[-1] = np.arange(len(space.released_rows)), -1
    return replace(
        space,
        known_points=space.known_points[places], rows=space.rows[places], persons=space.persons[places],
        released_points=space.released_points[certificate.released], released_rows=certificate.released,
        owners=None if space.owners is None else space.owners[certificate.released],
        truth=None if space.truth is None else back[space.truth[places]],
    )  # fmt: skip

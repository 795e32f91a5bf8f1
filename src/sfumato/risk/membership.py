"""Membership: whether a release tells who was in the file it was made of."""

from __future__ import annotations

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Score, Tells
from sfumato.core.run import Run
from sfumato.kernels.arrays import Floats
from sfumato.risk._attack import (
    MIN_PEOPLE_PER_SIDE,
    AttackMeasure,
    AttackTrial,
    arena_of,
    difference,
    sides_of,
)


class MembershipInference(AttackMeasure):
    r"""How much more often an intruder takes people of the file for members than people of a control group.

    The intruder knows a person and wants to know whether they were in the file. Two tests are tried. By
    *distance*: who is nearer to a released record than some threshold is taken for a member. By *density
    ratio*: who is nearer to the release than to other people of the population, for whom one half of the
    control stands, so that common people are not taken for members because they are common. The threshold is
    the best on one half of the people and used on the other, so that it is not flattered. With
    :math:`\tau` and :math:`\tau_c` the shares of members and of strangers who are taken for members, the
    advantage is

    .. math:: R = \tau - \tau_c.

    Notes
    -----
    **How to read it.** 0 means that nobody can tell, 1 that everybody can. ``auc`` is the chance that a
    member looks more like one than a stranger does, ½ being none; ``baseline`` is the advantage of a guess,
    0. The better test is the score. Under differential privacy the advantage is at most
    :math:`(e^\varepsilon - 1)/(e^\varepsilon + 1)`.

    **Doubt.** Estimated, with an interval of the stated confidence. Better tests may exist: it is no bound.

    **Missing.** As in `Linkability`.

    **Units.** Persons are counted, each by the record that looks most like a member's.

    **Cost.** A look at each released record for each one attacked, and at half of the control.
    """

    name = "membership"
    synonyms = ("MIA", "membership disclosure")
    family = "attacks"
    threat = "inference"
    tells = Tells(
        places={"report": 23},
        not_seen="It tests only whether a person is near a released record: a test made for the method that "
        "was used may reveal more.",
    )
    title = "Membership inference"
    references = ("vanbreugel2023", "yeom2018")

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Try both tests."""
        assert evidence.protected is not None  # `refuses` saw to it
        assert evidence.control is not None
        names, n = self.columns(evidence), len(evidence.original)
        sides = sides_of(evidence, names, self.queries, run)
        arena = arena_of(sides.known, evidence.protected, names, sides.order)
        near = arena.nearest(sides.targets, run=run, task=self.title)[1][:, 0]
        aucs, trials = {}, {}
        of_people, others = sides.best(-near)
        trials["distance"], aucs["distance"] = _test_membership(-of_people, -others, run.rng("distance"))
        strangers = np.unique(sides.persons[n:])  # one half of them stand for the population
        halves = run.rng("reference").permutation(strangers)
        reference, tested = np.split(halves, [len(strangers) // 2])
        tested = np.intersect1d(tested, sides.persons[sides.strangers])
        if min(len(reference), len(tested)) >= MIN_PEOPLE_PER_SIDE:
            rows = np.flatnonzero(np.isin(sides.persons[n:], reference))
            far = arena_of(sides.known, evidence.control.take(rows), names, np.arange(len(rows)))
            beyond = far.nearest(sides.targets, run=run, task=self.title)[1][:, 0]
            of_people, others = sides.best(-_ratio(near, beyond))
            others = others[np.isin(np.unique(sides.persons[sides.strangers]), tested)]
            trials["density ratio"], aucs["density ratio"] = _test_membership(
                -of_people, -others, run.rng("ratio")
            )
        best = max(aucs, key=lambda name: aucs[name])
        details = {"columns": len(names), "auc": aucs[best]}
        return self.score_of_trials(trials, rated=difference, details=details)


def _ratio(near: Floats, beyond: Floats) -> Floats:
    """How near somebody is to the release, against the population; small for members."""
    both = np.concatenate((near, beyond))
    least = both[both > 0].min(initial=1.0) / 2  # so that a distance of 0 has a logarithm
    ratio: Floats = np.log(np.maximum(near, least)) - np.log(np.maximum(beyond, least))
    return ratio


def _test_membership(
    of_people: Floats, others: Floats, rng: np.random.Generator
) -> tuple[AttackTrial, float]:
    """Who is taken for a member by the other half's threshold; and the chance to tell a pair apart."""
    from scipy.stats import rankdata

    halves = [rng.permutation(len(side)) % 2 for side in (of_people, others)]
    hits = wrong = 0
    for half in (0, 1):
        limit = _threshold(of_people[halves[0] != half], others[halves[1] != half])
        hits += int((of_people[halves[0] == half] <= limit).sum())
        wrong += int((others[halves[1] == half] <= limit).sum())
    ranks = rankdata(np.concatenate((others, of_people)))
    n, m = len(of_people), len(others)
    auc = (ranks[:m].sum() - m * (m + 1) / 2) / (n * m)
    return AttackTrial(hits, n, wrong, m, 0.0), float(auc)


def _threshold(of_people: Floats, others: Floats) -> float:
    """Up to where most more members than strangers lie; below all if nowhere."""
    limits = np.unique(np.concatenate((of_people, others)))
    shares: list[Floats] = [
        np.searchsorted(np.sort(side), limits, side="right") / len(side) for side in (of_people, others)
    ]
    gains = shares[0] - shares[1]
    best = int(np.argmax(gains))
    return float(limits[best]) if gains[best] > 0 else -np.inf

"""Membership: whether a release tells who was in the file it was made of."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Counting, Laws, Score, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.kernels.arrays import Floats, Ints
from sfumato.risk._attack import AttackMeasure, AttackSides, AttackTrial, arena_of, difference, sides_of
from sfumato.risk._membership_tests import TESTS, MembershipCase, look_for_members

#: How often members and strangers are dealt anew to see what chance does.
_PERMUTATIONS = 199


class MembershipInference(AttackMeasure):
    r"""How much more often an intruder takes people of the file for members than people of a control group.

    The intruder knows a person and wants to know whether they were in the file. Many tests are tried
    (``test``), each of which says how much a person looks like a member: by distances to released records, by
    densities of the release against the population, by histograms of columns and of pairs of them, by rare
    values, and by trees grown to tell the release from the population. The test and the threshold from which
    on somebody is taken for a member are the best on one half of the people and used on the other half, and
    the other way round, so that the number is not flattered by the choice. With :math:`\tau` and
    :math:`\tau_c` the shares of members and of strangers who are taken for members, the advantage is

    .. math:: R = \tau - \tau_c.

    Notes
    -----
    **How to read it.** 0 means that nobody can tell, 1 that everybody can. ``auc`` is the chance that a
    member looks more like one than a stranger does, ½ being none; ``baseline`` is the advantage of a guess,
    0. ``attack`` names the test that was chosen, or both where the halves choose different ones. ``p_value``
    is how often the best of all tests would separate members and strangers as well if they were dealt at
    random: of releases that tell nothing at most 5 % have one of 0.05 or less. Under differential privacy the
    advantage is at most :math:`(e^\varepsilon - 1)/(e^\varepsilon + 1)`.

    The population is the people of both groups: for one half of them the other half stands for it. So nobody
    is compared with themselves, and all of the control group is tested.

    **Doubt.** Estimated, with an interval of the stated confidence, which also holds the advantage of each
    single test. Better tests may exist: it is no bound.

    **Missing.** As in `Linkability`. In histograms a missing value is a value of its own, unless it was
    suppressed: that says nothing.

    **Units.** Persons are counted, each by the record that looks most like a member's; with several records
    of a person each test is tried by their mean, too. Tables that a plan releases together are judged each
    alone and side by side, each record of a person beside those of the others; the worst counts.

    **Cost.** A look at each released record for each one attacked, twice, and at up to 10,000 people.
    """

    name = "membership"
    synonyms = (
        "MIA", "membership disclosure", "DOMIAS", "LOGAN", "GAN-leaks",
        "nearest-neighbour adversarial accuracy",
    )  # fmt: skip
    family = "attacks"
    threat = "inference"
    tells = Tells(
        places={"report": 23},
        not_seen="It tests only what distances, densities, histograms and trees show of a person: a test "
        "made for the method that was used may reveal more.",
    )
    title = "Membership inference"
    counts = Counting(
        pools_copies=True,
        compares_kept_relations=True,
        sees_joined_rows=True,
        laws=Laws(reads_names="Its draws follow the order of the columns, which is that of their names."),
    )
    references = (
        "vanbreugel2023", "yeom2018", "hayes2019", "chen2020", "hilprecht2019", "yale2020", "westfall1993",
    )  # fmt: skip

    test: Literal[
        "worst", "distance", "distance-of-several", "distance-ratio", "density-ratio", "distance-difference",
        "local-density-ratio", "kernel-density", "neighbour-count", "rank-distance", "rank-density-ratio",
        "column-histograms", "pair-histograms", "rare-values", "classifier",
    ] = param(
        "worst",
        "By what people are taken for members.",
        choices={"worst": "By the test that does best, of all.", **TESTS},
    )  # fmt: skip

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Try the tests."""
        assert evidence.protected is not None  # `refuses` saw to it
        names = self.columns(evidence)
        sides = sides_of(evidence, names, self.queries, run)
        arena = arena_of(sides.known, evidence.protected, names, sides.order)
        case = MembershipCase.of(sides, arena, run.rng("reference"))
        wanted = tuple(TESTS) if self.test == "worst" else (self.test,)
        looks = _by_person(sides, look_for_members(case, wanted, run, self.title), each_mean=len(wanted) > 1)
        of_people, others = (np.column_stack([each[side] for each in looks.values()]) for side in (0, 1))
        trial, auc, chosen, largest = choose_and_test(of_people, others, run.rng("distance"))
        details: dict[str, float | int | str] = {
            "attack": " and ".join(dict.fromkeys(tuple(looks)[each] for each in chosen)) or "none",
            "tests": len(looks),
            "columns": len(names),
            "auc": auc,
            "p_value": p_value_of_best(of_people, others, run.rng("permutations")),
        }
        score = self.score_of_trials({self.test: trial}, rated=difference, details=details)
        if score.interval is None:
            return score
        low, high = score.interval
        return replace(score, interval=(low, max(high, largest)))


def _by_person(
    sides: AttackSides, looks: dict[str, Floats], *, each_mean: bool
) -> dict[str, tuple[Floats, Floats]]:
    """How much each person looks like a member; small for members."""
    found = {name: sides.best(each) for name, each in looks.items()}
    if each_mean and sum(map(len, found["distance"])) < len(sides.targets):
        everybody = np.ones(len(sides.targets), dtype=np.bool_)
        found |= {f"{name} (mean)": sides.mean(each, everybody) for name, each in looks.items()}
    return {name: (-one, -other) for name, (one, other) in found.items()}


class ChosenTest(NamedTuple):
    """What came of choosing a test on one half and using it on the other, both ways."""

    trial: AttackTrial
    auc: float  # the chance to tell a pair apart by what was chosen
    chosen: list[int]  # the tests, by half
    largest: float  # the advantage of the test that did best where nothing was chosen but its threshold


def choose_and_test(of_people: Floats, others: Floats, rng: np.random.Generator) -> ChosenTest:
    """Who is taken for a member by the test and the threshold that are best on the other half.

    Parameters
    ----------
    of_people : float64[n, tests]
    others : float64[m, tests]
        Small for who looks like a member.
    """
    halves = [rng.permutation(len(side)) % 2 for side in (of_people, others)]
    taken, found = np.zeros((2, of_people.shape[1]), dtype=np.int64), []
    for half in (0, 1):
        learnt = zip(of_people[halves[0] != half].T, others[halves[1] != half].T, strict=True)
        gains, limits = np.array([_threshold(*each) for each in learnt]).T
        members, strangers = of_people[halves[0] == half], others[halves[1] == half]
        hits = np.array([(side <= limits).sum(axis=0) for side in (members, strangers)])
        best = int(np.argmax(gains))
        found.append((best, hits[:, best], _chance_to_tell(members[:, best], strangers[:, best])))
        taken += hits
    chosen, hits_of_chosen, aucs = zip(*found, strict=True)
    n, m = len(of_people), len(others)
    right, wrong = (int(each) for each in np.sum(hits_of_chosen, axis=0))
    largest = float((taken[0] / n - taken[1] / m).max())
    return ChosenTest(AttackTrial(right, n, wrong, m, 0.0), float(np.mean(aucs)), list(chosen), largest)


def _threshold(of_people: Floats, others: Floats) -> tuple[float, float]:
    """By how much more members than strangers lie up to the best limit, and the limit; below all if none."""
    limits = np.unique(np.concatenate((of_people, others)))
    shares: list[Floats] = [
        np.searchsorted(np.sort(side), limits, side="right") / len(side) for side in (of_people, others)
    ]
    gains = shares[0] - shares[1]
    best = int(np.argmax(gains))
    return (float(gains[best]), float(limits[best])) if gains[best] > 0 else (0.0, -np.inf)


def _chance_to_tell(of_people: Floats, others: Floats) -> float:
    """The chance that of a member and a stranger the member looks more like one."""
    from scipy.stats import rankdata

    n, m = len(of_people), len(others)
    ranks = rankdata(np.concatenate((others, of_people)))
    return float((ranks[:m].sum() - m * (m + 1) / 2) / (n * m))


def p_value_of_best(of_people: Floats, others: Floats, rng: np.random.Generator) -> float:
    """How often the best test separates two groups dealt at random as well as members and strangers."""
    everybody = np.concatenate((of_people, others))
    order = np.argsort(everybody, axis=0, kind="stable")
    sorted_looks = np.take_along_axis(everybody, order, axis=0)
    is_last = np.ones(order.shape, dtype=np.bool_)  # of equals
    is_last[:-1] = sorted_looks[1:] > sorted_looks[:-1]
    steps = np.repeat([1 / len(of_people), -1 / len(others)], [len(of_people), len(others)])

    def largest_gain(dealt: Ints) -> float:
        return float(np.where(is_last, np.cumsum(steps[dealt][order], axis=0), 0.0).max())

    seen = largest_gain(np.arange(len(everybody))) - 1e-9  # sums of the same numbers in another order
    as_good = sum(largest_gain(rng.permutation(len(everybody))) >= seen for _ in range(_PERMUTATIONS))
    return (1 + as_good) / (1 + _PERMUTATIONS)

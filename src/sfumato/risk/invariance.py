"""m-invariance: everybody is among the same sensitive values in every release."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Needs, Score, Tells
from sfumato.core.run import Run
from sfumato.core.waves import Wave
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.risk._key_measures import KeyMeasure, SensitiveMeasure, by_original
from sfumato.risk._series import (
    DisclosedValues,
    common_values,
    left_out,
    values_of_releases,
    waves_of,
    why_not_traceable,
    why_values_coarse,
)


class MInvariance(SensitiveMeasure):
    r"""Largest m for which a series of releases is m-invariant.

    In release :math:`t` a person :math:`p` is in a class :math:`C_t(p)` of records alike in the keys (or in a
    bucket); the *signature* :math:`S_t(p)` is the set of sensitive values in it. A series is m-invariant if

    1. in every release every class has at least :math:`m` records, and no two of them the same value;
    2. whoever is in several releases has the same signature in all of them.

    Then no number of releases tells a person's value with a chance above :math:`1 / m`, if all values are
    equally likely to the intruder; ``counterfeit-inference`` tells what frequencies reveal beside
    counterfeits. A person whose value has changed may have another signature that has *no* value in common
    with the one before: it says that the value has changed, and is again one of :math:`m`. Where something
    breaks, :math:`m` is 1. Records that are nobody's (counterfeits) count in the classes like others.

    Notes
    -----
    **How to read it.** Higher is safer; 1 protects nothing. ``persons_with_other_signatures`` are those whom
    the second rule fails, ``values_twice_in_a_class`` break the first. A release that stands alone is
    judged by the first rule.

    **Doubt.** Exact, for an intruder who knows in which class of each release a person is, but
    not how frequent values are.

    **Missing.** Keys as in k-anonymity. A missing sensitive value is a value of its own. Generalised
    sensitive values are refused: nobody could tell whether two of them are the same.

    **Units.** Persons who have several records in a release are refused, unless ``record`` of the series
    tells which is which. Of several sensitive columns the worst counts.

    **Cost.** That of the classes of all releases, and of each pair of them.

    Examples
    --------
    >>> from sfumato.core.waves import Waves
    >>> schema = Schema((
    ...     Column("who", Kind.NOMINAL, Role.PERSON), Column("area", Kind.NOMINAL, Role.KEY),
    ...     Column("ill", Kind.NOMINAL, Role.SENSITIVE),
    ... ))
    >>> def wave(who, area, ill):
    ...     table = Table(pl.DataFrame({"who": who, "area": area, "ill": ill}), schema)
    ...     return Evidence(table, Release.unchanged(table))
    >>> first = wave([1, 2, 3, 4], ["n", "n", "s", "s"], ["flu", "gout", "flu", "gout"])
    >>> second = wave([1, 5, 3, 4], ["n", "n", "s", "s"], ["flu", "gout", "flu", "gout"])
    >>> second.resources["series"] = Waves.of([first])
    >>> MInvariance().score(second, Run(seed=1)).value
    2.0
    """

    name = "m-invariance"
    vetted = "brute-forced: property/test_series_measures.py::test_the_m_that_holds"
    aliases = ("m",)
    family = "longitudinal releases"
    title = "m-invariance"
    better = "high"
    bounds = (1.0, math.inf)
    needs = Needs()
    counts = KeyMeasure.counts  # the other releases are taken as they read
    tells = Tells(
        places={"series": 3},
        record_sentence="all releases leave {:.0f} equally likely values",
    )
    references = ("xiao2007minvariance", "carvalho2023")

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse where nobody can be found again, and values that may be several."""
        reason = super().refuses(evidence) or why_not_traceable(self.name, evidence)
        if reason is not None:
            return reason
        waves = waves_of(evidence)
        assert waves is not None  # `why_not_traceable` saw to it
        return why_values_coarse(self, waves.earlier, evidence) or left_out(self, waves.earlier, evidence)

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002  — no chance is used
        """Find the smallest class, and whose signature has changed."""
        waves = waves_of(evidence)
        assert waves is not None  # `why_not_traceable` saw to it
        everyone = [*waves.earlier, waves.now(evidence)]
        by_column, worst = dict[str, float](), np.full(len(everyone[-1].units), np.inf)
        twice, changed = 0, np.zeros(len(worst), dtype=np.bool_)
        for name in self.sensitive_columns(evidence):
            disclosed = values_of_releases(self, waves.earlier, evidence, name)
            sizes = {i: _m_of_classes(each) for i, each in enumerate(disclosed) if each is not None}
            twice += sum(int((each.counts > 1).sum()) for each in disclosed if each is not None)
            broken = _changed_signatures(disclosed, everyone)
            least = min(float(own.min(initial=math.inf)) for own in sizes.values())
            by_column[name] = 1.0 if any(each.any() for each in broken) else least
            last = disclosed[-1]
            assert last is not None  # it is learnt from the release
            worst = np.minimum(worst, np.where(broken[-1], 1.0, sizes[len(disclosed) - 1][last.of_record]))
            changed |= broken[-1]
        return Score(
            value=min(by_column.values()),
            by_column=by_column,
            by_record=by_original(evidence, worst, worst="low"),
            details={
                "releases": len(everyone),
                "persons_with_other_signatures": int(changed.sum()),
                "values_twice_in_a_class": twice,
            },
        )


def _changed_signatures(disclosed: Sequence[DisclosedValues | None], waves: Sequence[Wave]) -> list[Flags]:
    """Which records of each release have another signature in some other, though not a wholly new one."""
    broken = [np.zeros(len(wave.units), dtype=np.bool_) for wave in waves]
    for (i, one), (j, other) in combinations(enumerate(disclosed), 2):
        if one is None or other is None:
            continue
        places = waves[j].places_in(waves[i])
        there = np.flatnonzero(places >= 0)
        wrong = _overlapping(one, one.of_record[places[there]], other, other.of_record[there])
        broken[j][there[wrong]] = True
        broken[i][places[there[wrong]]] = True
    return broken


def _m_of_classes(disclosed: DisclosedValues) -> Floats:
    """The number of records of each class if all have values of their own, else 1."""
    most = np.zeros(len(disclosed.sizes), dtype=np.int64)
    owners = np.repeat(np.arange(len(disclosed.sizes)), disclosed.sizes)
    np.maximum.at(most, owners, disclosed.counts)
    return np.where(most > 1, 1.0, disclosed.sizes.astype(np.float64))


def _overlapping(one: DisclosedValues, classes: Ints, other: DisclosedValues, others: Ints) -> Flags:
    """Which pairs of classes have some values in common and not all."""
    common = common_values(one, classes, other, others)
    found: Flags = (common > 0) & ((common < one.sizes[classes]) | (common < other.sizes[others]))
    return found

"""k-map without a table of the population: how few people a class of a sample may stand for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import seen_table
from sfumato.core.measure import Counting, EstimatedMeasure, Score, Status, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.generalised.cover import wildcards
from sfumato.kernels.arrays import Flags, Floats
from sfumato.risk._key_measures import CLASS_LAWS, by_original, counted_in, of_records
from sfumato.risk._sampling import SampledMeasure, n_drawn, with_original_weights

#: Halvings in which the rate of a truncated Poisson distribution is found.
_HALVINGS = 60
#: No class of a population has more people.
_MOST_PEOPLE = 2.0**50


class EstimatedKMap(SampledMeasure, EstimatedMeasure):
    r"""Smallest number of people in the population who are like a record of the sample, estimated.

    .. math::

        k = \min_C \hat F_C, \qquad \hat F_C = \frac{f_C}{\pi} \quad\text{or}\quad
        \hat F_C = \frac{\lambda}{\pi} \text{ with } \frac{\lambda}{1 - e^{-\lambda}} = f_C

    where :math:`f_C` people of class :math:`C` were drawn with the chance :math:`\pi` each: as a *Poisson*
    number, or as one *truncated* at zero, since of a class of which nobody was drawn nobody knows. No
    estimate is below :math:`f_C`.

    See Also
    --------
    KMap : with a table of the population, none is estimated.
    PopulationUniqueness : how many are unique in the population.

    Notes
    -----
    **How to read it.** Higher is safer. Give the share of the population that was drawn (``fraction``), or
    its size; else sampling weights tell, each class by the least of its own. A requirement must say that an
    estimate will do: ``k-map-estimate >= 5 at 95%``. ``by_record`` is the estimate of each record's class. Of
    a class that must have at least :math:`k` people by itself (El Emam and Dankar), ``details`` have the
    number that the worst class has (``smallest_by_itself``) under the ``estimator``.

    **Doubt.** An estimate: *approximate*. The interval does not rest on the ``estimator``. Its lower end is
    the largest number of people that *every* class has, said wrongly with half of the doubt: for each class
    the fewest people of whom so many are drawn with more than that chance, divided by the number of classes,

    .. math:: P(X \ge f_C \mid X \ge t), \qquad X \sim \mathrm{Bin}(F, \pi)

    Classes are seen only if somebody was drawn, so that :math:`t = 1`; where records or cells were suppressed
    small classes are not seen either, and :math:`t` is the size of the smallest that is left: then the lower
    end is that size. Of somebody who is unique in the sample the lower end is 1. That levels were chosen by
    the same sample is not accounted for. Exact for a whole population.

    **Missing.** A missing key is a value of its own by default (``category``). At ``worst`` who lacks a key
    is alone in the population. As ``any`` classes overlap, and the result is not estimable.

    **Units.** Where a column joins records, persons (or households) alike in all their records are counted,
    and the population is of these.

    **Cost.** That of grouping by the keys.

    Examples
    --------
    >>> schools = {"region": ["north"] * 9 + ["south"] * 4}
    >>> score = sfumato.assess(schools, measures=["k-map-estimate(fraction=0.1)"])
    >>> found = score["k-map-estimate(fraction=0.1)"]
    >>> round(found.value, 1), found.interval[0]
    (39.2, 9.0)
    """

    name = "k-map-estimate"
    synonyms = ("estimated k-map", "KMap with a population model", "k-map without a population")
    family = "equivalence classes"
    title = "k-map, estimated"
    tells = Tells(record_sentence="about {:.3g} people of the population are estimated to have its keys")
    better = "high"
    bounds = (1.0, math.inf)
    counts = Counting(people=True, joins_person_records=True, laws=CLASS_LAWS)
    references = ("elemam2008",)

    estimator: Literal["poisson", "truncated-poisson"] = param(
        "truncated-poisson",
        "How the number of people drawn of a class is distributed.",
        choices={
            "poisson": "As a Poisson number, which may be none: larger estimates.",
            "truncated-poisson": "As a Poisson number above zero, since classes of none are not seen.",
        },
        synonyms={"zero-truncated Poisson": "truncated-poisson"},
    )

    @property
    def estimates(self) -> str:
        """What is estimated of all records."""
        return "people of the smallest class in the population"

    def true_value(self, alike: Floats, people: Floats) -> float | None:  # noqa: ARG002
        """The smallest of the population's classes of which somebody was drawn."""
        return float(people.min())

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002  — no chance is used
        """Estimate each class, and bound all of them together."""
        evidence = with_original_weights(evidence)
        classes = self.classes(evidence)
        alike, shares = classes.persons.astype(np.float64), self._shares(evidence, classes)
        estimates = self._estimates_of(alike, shares)
        certain = bool((shares >= 1).all())
        value = float(estimates.min())
        interval = None
        if not certain:
            low = float(self._fewest(evidence, classes).min())
            high = float(_most(alike, shares, self._tail / len(classes)).min())
            interval = (min(low, value), max(high, value))
        return Score(
            value=value,
            status=Status.OK if certain else Status.APPROXIMATE,
            interval=interval,
            confidence=None if certain else self.confidence,
            reason="" if certain else "estimated from the sample" + self.weights_note(evidence),
            by_record=by_original(evidence, of_records(classes, estimates), worst="low"),
            details={
                "counted": counted_in(seen_table(evidence)),
                "classes": len(classes),
                "smallest_class": int(alike.min()),
                "people": self.people(evidence),
                "smallest_by_itself": float(self._fewest_by_itself(alike, shares).min()),
            },
        )

    def far_of_records(self, evidence: Evidence) -> Floats | None:
        """The fewest people of each record's class, all of them at once."""
        evidence = with_original_weights(evidence)
        classes = self.classes(evidence)
        return by_original(evidence, of_records(classes, self._fewest(evidence, classes)), worst="low")

    @property
    def _tail(self) -> float:
        return 0.5 - self.confidence / 200

    def _shares(self, evidence: Evidence, classes: Classes) -> Floats:
        """The chance to be drawn in each class; by weights the highest of its people, 1 if none is known."""
        shares = np.full(len(classes), min(self.share(evidence), 1.0))
        weights = seen_table(evidence).weights
        if self.fraction is None and self.population_size is None and weights is not None:
            shares = np.zeros(len(classes))
            np.maximum.at(shares, classes.of_record, np.minimum(1 / weights, 1.0))
        shares[self.unknown(classes)] = 1.0
        return shares

    def _estimates_of(self, alike: Floats, shares: Floats) -> Floats:
        rates = alike if self.estimator == "poisson" else _truncated_rates(alike)
        return np.where(shares < 1, np.maximum(rates / shares, alike), alike)

    def _fewest(self, evidence: Evidence, classes: Classes) -> Floats:
        """How few people each class may have, all of them at once."""
        alike, shares = classes.persons.astype(np.float64), self._shares(evidence, classes)
        seen_from = float(alike.min()) if _is_cut(evidence, classes) else 1.0
        return _fewest(alike, shares, self._tail / len(classes), _binomial_tail, seen_from)

    def _fewest_by_itself(self, alike: Floats, shares: Floats) -> Floats:
        """How few people each class may have, by the test of El Emam and Dankar of one class."""
        seen_from = 0.0 if self.estimator == "poisson" else 1.0
        return _fewest(alike, shares, 1 - self.confidence / 100, _poisson_tail, seen_from)


def _is_cut(evidence: Evidence, classes: Classes) -> bool:
    """Whether records or cells were suppressed, so that small classes may not be seen."""
    table, original = seen_table(evidence), evidence.original
    if evidence.protected is None:
        return False

    def partly(flags: Flags) -> bool:
        return bool(flags.any() and not flags.all())

    return len(table) < len(original) or n_drawn(evidence) > int(classes.persons.sum()) or any(
        partly(wildcards(table, name)) or table.missing(name).sum() > original.missing(name).sum()
        for name in classes.keys
    )  # fmt: skip


def _truncated_rates(alike: Floats) -> Floats:
    """The rates of Poisson distributions whose means above zero are these; 0 for a mean of one."""
    low, high = np.zeros(len(alike)), alike.copy()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = np.where(middle > 0, middle / -np.expm1(-np.maximum(middle, 1e-300)), 1.0) > alike
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.where(alike > 1, (low + high) / 2, 0.0)


def _binomial_tail(least: Floats | float, people: Floats, shares: Floats) -> Floats:
    """The chance that so many or more are drawn."""
    from scipy.special import betainc  # slow to import

    least = np.broadcast_to(np.asarray(least, dtype=np.float64), people.shape)
    found = betainc(np.maximum(least, 1.0), np.maximum(people - least + 1, 1e-300), shares)
    return np.where(least <= 0, 1.0, np.where(least > people, 0.0, found))


def _poisson_tail(least: Floats | float, people: Floats, shares: Floats) -> Floats:
    """The same, if the number drawn is a Poisson one."""
    from scipy.special import gammainc  # slow to import

    least = np.broadcast_to(np.asarray(least, dtype=np.float64), people.shape)
    return np.where(least <= 0, 1.0, gammainc(np.maximum(least, 1.0), people * shares))


def _fewest(
    alike: Floats,
    shares: Floats,
    tail: float,
    chance: Callable[[Floats | float, Floats, Floats], Floats],
    seen_from: float,
) -> Floats:
    """The fewest people of whom so many are drawn with a chance above ``tail``, if it is seen at all."""
    low, high = alike - 1, np.maximum(np.ceil(alike / shares), alike)
    while (high - low > 1).any():
        middle = np.ceil((low + high) / 2)  # the high end where both are next to each other: it stays
        likely = chance(alike, middle, shares) > tail * chance(seen_from, middle, shares)
        low, high = np.where(likely, low, middle), np.where(likely, middle, high)
    return np.where(shares < 1, high, alike)


def _most(alike: Floats, shares: Floats, tail: float) -> Floats:
    """The most people of whom so few are drawn with a chance above ``tail``, if somebody is."""
    low = np.maximum(np.ceil(alike / shares), alike)
    high = np.full(len(alike), _MOST_PEOPLE)
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        seen = _binomial_tail(1.0, middle, shares)
        likely = seen - _binomial_tail(alike + 1, middle, shares) > tail * seen
        low, high = np.where(likely, middle, low), np.where(likely, high, middle)
    return np.where(shares < 1, low, alike)

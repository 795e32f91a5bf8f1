"""Samples of a known population: how far each estimator of population risk is off, and which to trust here.

A table is taken for a whole population. Samples are drawn from it, each estimator is asked as if nothing but
the sample were known, and its number is held against that of the population.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from sfumato.core import registry
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Score
from sfumato.core.run import Run, Stopwatch
from sfumato.data.classes.classes import Classes
from sfumato.data.persons import persons_of
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Role
from sfumato.data.table import Table
from sfumato.errors import ParameterError
from sfumato.kernels.arrays import Ints
from sfumato.risk._sampling import SampledMeasure
from sfumato.study.evaluate import NUMERIC_STATUSES, EvaluationCase, evaluate

#: A sample has at least so many people.
_MIN_PEOPLE = 2


@dataclass
class Estimator:
    """What one estimator said of each sample, and what is so."""

    measure: SampledMeasure
    truths: list[float] = field(default_factory=list)  # of the draws of which it gave a number
    estimates: list[float] = field(default_factory=list)
    held: list[bool] = field(default_factory=list)  # whether the interval held the truth, where there is one
    reasons: list[str] = field(default_factory=list)  # why it gave none

    def add(self, score: Score, truth: float) -> None:
        """Keep what was said of one more sample."""
        if score.status not in NUMERIC_STATUSES:
            self.reasons.append(score.reason)
            return
        found = self.measure.estimate_of(score)
        self.truths.append(truth)
        self.estimates.append(found)
        if score.interval is not None and found == score.value:  # that of another number tells nothing
            self.held.append(score.interval[0] <= truth <= score.interval[1])

    @property
    def truth(self) -> float:
        """The mean of what is so."""
        return _mean(self.truths)

    @property
    def bias(self) -> float:
        """The mean error: above 0 it overstates the risk."""
        return _mean(self._errors)

    @property
    def error_deviation(self) -> float:
        """The standard deviation of the error."""
        return float(np.std(self._errors)) if self._errors else math.nan

    @property
    def error(self) -> float:
        """The root of the mean squared error: what counts in the end."""
        return math.hypot(self.bias, self.error_deviation)

    @property
    def _errors(self) -> list[float]:
        return [found - so for found, so in zip(self.estimates, self.truths, strict=True)]

    @property
    def _interval_coverage(self) -> float | None:
        return float(np.mean(self.held)) if self.held else None

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON."""
        numbers = {
            "truth": self.truth, "estimate": _mean(self.estimates), "bias": self.bias,
            "spread": self.error_deviation, "error": self.error,
        }  # fmt: skip
        return {
            "measure": _label(self.measure),
            "estimates": self.measure.estimates,
            "draws": len(self.estimates),
            **{name: value if math.isfinite(value) else None for name, value in numbers.items()},
            "interval_held": self._interval_coverage,
            "not_estimable": len(self.reasons),
            "reason": self.reasons[-1] if self.reasons else "",
        }


@dataclass(frozen=True)
class Simulation:
    """What came of all samples; the best of each number that is estimated come first."""

    people: int
    sample: int
    fraction: float
    draws: int
    asked: int
    estimators: tuple[Estimator, ...]

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON: nothing per record, no seed."""
        return {
            "people": self.people,
            "sample": self.sample,
            "fraction": self.fraction,
            "draws": self.draws,
            "asked": self.asked,
            "verdict": self.verdict(),
            "estimators": [each.to_dict() for each in self.estimators],
        }

    def verdict(self) -> list[str]:
        """Which to trust here, a sentence for each number that is estimated."""
        sentences = []
        for what in dict.fromkeys(each.measure.estimates for each in self.estimators):
            rivals = [each for each in self.estimators if each.measure.estimates == what and each.estimates]
            whole = [each for each in rivals if not each.reasons] or rivals
            if not whole:
                sentences.append(f"{what}: none of the estimators gave a number")
                continue
            best = min(whole, key=lambda each: each.error)
            side = "above" if best.bias > 0 else "below"
            sentences.append(
                f"{what}: {best.truth:.4g} of them in truth; {_label(best.measure)} comes nearest, "
                f"{abs(best.bias):.2g} {side} on average, ± {best.error_deviation:.2g}"
            )
        return sentences


def estimators() -> list[SampledMeasure]:
    """All measures that estimate a number of the population which can be told, by each of their models."""
    found = []
    for cls in registry.measures().values():
        if issubclass(cls, SampledMeasure) and cls().estimates:
            models = [each for each in cls.parameters() if each.name == "model"]
            choices = models[0].choices if models else ()
            found += [cls.from_dict({"model": choice}) for choice in choices] or [cls()]
    return found


def simulate(
    population: Table,
    run: Run,
    *,
    fraction: float = 0.05,
    draws: int = 100,
    measures: Sequence[Measure] = (),
    scenario: Scenario | None = None,
    seconds: float = math.inf,
) -> Simulation:
    """Draw samples of a population that is known, and hold each estimator against it.

    Parameters
    ----------
    population
        The whole population: all of its persons are drawn from, with all of their records.
    fraction, draws
        Which share is drawn, and how often.
    measures
        Estimators; all of them with each of their models if none is named.
    seconds
        After so many no further sample is drawn.
    """
    asked = _estimators_at_fraction(measures, fraction)
    population = _drop_weights(population)
    persons = np.unique(persons_of(population), return_inverse=True)[1]
    people = int(persons.max(initial=-1)) + 1
    size = round(fraction * people)
    if not 0 < fraction < 1 or size < _MIN_PEOPLE or draws < 1:
        raise ParameterError(
            f"a simulation must draw at least {_MIN_PEOPLE} of the people, and not all, at least once, "
            f"got: {fraction:g} of {people}, {draws} times"
        )
    found, watch = [Estimator(each) for each in asked], Stopwatch()
    done = 0
    for draw in range(draws):
        tick = partial(_tell, run, draw, draws)
        chosen = np.zeros(people, dtype=np.bool_)
        chosen[run.rng("sample", draw).choice(people, size, replace=False)] = True
        _score(population, np.flatnonzero(chosen[persons]), found, run, scenario or Scenario(), tick=tick)
        done = draw + 1
        if watch.seconds > seconds:
            break
    run.tell("Samples", draws, draws)
    order = {what: place for place, what in enumerate(dict.fromkeys(e.measure.estimates for e in found))}
    found.sort(key=lambda each: (order[each.measure.estimates], not each.estimates, each.error))
    return Simulation(people, size, fraction, done, draws, tuple(found))


def _tell(run: Run, draw: int, draws: int, done: int, total: int) -> None:
    """Report how many samples are drawn, and how many estimators were asked of the present one."""
    run.tell("Samples", draw, draws, f"{done} of {total} estimators")


def _estimators_at_fraction(measures: Sequence[Measure], fraction: float) -> list[SampledMeasure]:
    """The estimators, told which share was drawn."""
    wrong = [each.name for each in measures if not (isinstance(each, SampledMeasure) and each.estimates)]
    if wrong:
        raise ParameterError(
            f"a simulation must be given estimators of population risk, got: {', '.join(wrong)}",
            hint="such as population-uniqueness, log-linear-risk, copula-risk, individual-risk or dis-suda",
        )
    chosen = [each for each in measures if isinstance(each, SampledMeasure)] or estimators()
    return [replace(each, fraction=fraction, population_size=None) for each in chosen]


def _drop_weights(population: Table) -> Table:
    """The table without sampling weights: everybody is in it once."""
    weights = population.schema.with_role(Role.WEIGHT)
    return population.select([name for name in population.names if name not in weights])


def _score(
    population: Table,
    rows: Ints,
    found: list[Estimator],
    run: Run,
    scenario: Scenario,
    *,
    tick: Callable[[int, int], None],
) -> None:
    """Ask every estimator of one sample, and tell of each."""
    case = EvaluationCase(population.take(rows), scenario)
    evidence = case.evidence(None)
    everyone: dict[tuple[tuple[str, ...], str], Classes] = {}
    for done, each in enumerate(found):
        tick(done, len(found))
        score = evaluate(None, case, [each.measure], run.silent()).scores[str(each.measure)]
        truth = math.nan
        if score.status in NUMERIC_STATUSES:
            truth = _truth(each.measure, evidence, population, rows, everyone)
        each.add(score, truth)


def _truth(
    measure: SampledMeasure,
    evidence: Evidence,
    population: Table,
    rows: Ints,
    everyone: dict[tuple[tuple[str, ...], str], Classes],
) -> float:
    """What is so: how many there are of each class of the sample in the population."""
    sample, keys = measure.classes(evidence), measure.keys(evidence)
    place = (keys, measure.missing)
    if place not in everyone:
        everyone[place] = Classes.of(population, keys, missing=measure.missing)
    whole = everyone[place]
    people = whole.persons[whole.of_record[rows[sample.examples]]]
    truth = measure.true_value(sample.persons.astype(np.float64), people.astype(np.float64))
    assert truth is not None  # it estimates something
    return truth


def _label(measure: SampledMeasure) -> str:
    """The measure without the share that was drawn, which is the same for all."""
    return str(replace(measure, fraction=None))


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan

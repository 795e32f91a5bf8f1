"""What part of the population a table is: told as a share, as a number of people, or by sampling weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import seen_table
from sfumato.core.measure import Score
from sfumato.core.params import param
from sfumato.data.classes.classes import Classes
from sfumato.data.persons import best_by_person, persons_of
from sfumato.data.schema import Role
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags, Floats, count_distinct
from sfumato.risk._key_measures import KeyMeasure

#: What the weights of a whole population may add up to beside its number, by rounding.
_FLOAT_TOLERANCE = 1e-9

#: Weights whose sum makes the population so many times larger than their mean chance does are noted.
_UNEQUAL = 2.0
_WEIGHTS_DIFFER = (
    "; some weights are so large that their sum would hide the others, so the sampled share is estimated "
    "by the mean of one over each weight: check the largest weights"
)

#: What most estimate; who is unique in the population is so in the sample.
UNIQUE = "records unique in the population"


class SampledMeasure(KeyMeasure):
    """Looks at a table as a sample; how much of the population was drawn must be told."""

    fraction: float | None = param(
        None, "Share of the population that was sampled; by default from the weights.", gt=0, le=1, symbol="π"
    )
    population_size: float | None = param(
        None, "Number of people in the population, instead of the share.", ge=1, le=1e12, symbol="N"
    )

    def refuses(self, evidence: Evidence) -> str | None:
        """Say that nobody told how much was drawn: any number taken instead could understate the risk."""
        reason = super().refuses(evidence)
        if reason is not None:
            return reason
        if self.fraction is not None and self.population_size is not None:
            return f"{self.name} must be given `fraction` or `population_size`, got: both"
        is_told = self.fraction or self.population_size
        if not is_told and seen_table(with_original_weights(evidence)).weights is None:
            return f"{self.name} needs the sampled share: give `fraction`, `population_size` or weights"
        return None

    def why_not_estimable(self, evidence: Evidence) -> str | None:
        """Say that classes overlap, or that the population is smaller than its sample."""
        reason = super().why_not_estimable(evidence)
        if reason is not None:
            return reason
        classes = self.classes(evidence)
        if classes.overlap:
            return "a missing key counts for any value, so equivalence classes overlap and have no size"
        n, people = int(classes.persons.sum()), self.people(evidence)
        if people < n * (1 - _FLOAT_TOLERANCE):
            return f"the population must not be smaller than its sample of {n}, got: {people:.6g} people"
        return None

    def unknown(self, classes: Classes) -> Flags:
        """The classes that lack a key where the worst is to be thought of it: no model says less."""
        lacking: Flags = (classes.codes == 0).any(axis=1)
        return lacking if self.missing == "worst" else np.zeros(len(classes), dtype=np.bool_)

    @property
    def estimates(self) -> str:
        """What is estimated, in words: those who estimate the same are held against each other."""
        return ""

    def true_value(self, alike: Floats, people: Floats) -> float | None:  # noqa: ARG002  — many have none
        """What is estimated, if it is known how many of the sample and of the population each class has.

        None where nothing is that could be held against it.
        """
        return None

    def estimate_of(self, score: Score) -> float:
        """The number of a score that is held against what is known."""
        return score.value

    def people(self, evidence: Evidence) -> float:
        """How many people there are in the population; by weights, no more than their mean chance tells."""
        classes = self.classes(with_original_weights(evidence))
        if self.population_size is not None:
            return self.population_size * _n_persons(seen_table(evidence)) / n_drawn(evidence)
        people = int(classes.persons.sum()) / self.share(evidence)
        return people if self.fraction is not None else min(people, float(classes.weights.sum()))

    def share(self, evidence: Evidence) -> float:
        """Which share of the population was drawn.

        By weights it is the mean chance to be drawn, of one over each weight: the same as by their sum where
        all are equal, and no single huge weight can take it to 0 and hide everybody else.
        """
        if self.fraction is not None:
            return self.fraction
        if self.population_size is not None:
            return n_drawn(evidence) / self.population_size
        table = seen_table(with_original_weights(evidence))
        assert table.weights is not None  # else it was refused
        return float(best_by_person(persons_of(table), np.minimum(1 / table.weights, 1.0)).mean())

    def weights_note(self, evidence: Evidence) -> str:
        """That weights differ so much that their sum was not taken; empty where that changes little."""
        if self.fraction is not None or self.population_size is not None:
            return ""
        by_sum = float(self.classes(with_original_weights(evidence)).weights.sum())
        return _WEIGHTS_DIFFER * (by_sum > _UNEQUAL * self.people(evidence))


def n_drawn(evidence: Evidence) -> int:
    """How many persons were drawn from the population: who was suppressed since was drawn, too."""
    return max(_n_persons(seen_table(evidence)), _n_persons(evidence.original))


def _n_persons(table: Table) -> int:
    return len(table) if table.schema.only_role(Role.PERSON) is None else count_distinct(persons_of(table))


def with_original_weights(evidence: Evidence) -> Evidence:
    """The evidence with the original's weights beside the released records, if these came without."""
    released, rows, original = evidence.protected, evidence.source_rows, evidence.original
    name = original.schema.only_role(Role.WEIGHT)
    if released is None or rows is None or name is None or name in released.schema or (rows < 0).any():
        return evidence
    known = original.schema.resolve(evidence.scenario.columns)
    if released.schema.only_role(Role.WEIGHT) is not None or name in known:
        return evidence

    def beside() -> Evidence:
        frame = released.frame.with_columns(original.frame[name].gather(pl.Series(rows)))
        schema = released.schema.replace(original.schema[name])
        return evidence.read_as(replace(released, frame=frame, schema=schema))

    return evidence.remember("weighted", beside)

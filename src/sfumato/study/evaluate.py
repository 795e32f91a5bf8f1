"""One evaluation: follow a recipe (or take a release, or the raw table) and score what comes of it.

Everybody who applies a recipe and scores the release does it here, so that the same release, seed and measure
give the same number whoever asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sfumato.core.measure import Measure, Score, Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.evidence import Evidence, Scenario
from sfumato.data.table import Table
from sfumato.errors import (
    DataError,
    MissingDependencyError,
    ParameterError,
    PlanError,
    RefusedError,
    UnjudgedError,
    UnknownNameError,
    UnreachableError,
)
from sfumato.recipes.demand import Demand, labelled
from sfumato.recipes.recipe import Recipe
from sfumato.study.spread import Spread

#: What is raised by a method that cannot protect these data, or a measure that cannot score them: other
#: methods, or other settings of it, may.
CANNOT = (
    RefusedError, DataError, ParameterError, PlanError, UnknownNameError, MissingDependencyError,
    UnreachableError,
)  # fmt: skip

#: The statuses of a score that has a number.
NUMBERS = (Status.OK, Status.APPROXIMATE)


@dataclass(frozen=True)
class Case:
    """What is asked about: the original, the intruder, and other tables by the names measures call them."""

    table: Table
    scenario: Scenario = field(default_factory=Scenario)
    resources: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def evidence(self, release: Release | None, scenario: Scenario | None = None) -> Evidence:
        """Put a release (None: the raw table itself) beside the original, before this or another intruder."""
        intruder = scenario or self.scenario
        if release is None:
            return Evidence(original=self.table, scenario=intruder, resources=self.resources)
        return release.against(self.table, scenario=intruder, resources=self.resources)


@dataclass(frozen=True)
class Evaluation:
    """What came of it: the release (None: the raw table), and the scores by their labels.

    The label of a measure is ``str(measure)``; that of a demand is what ``labelled`` says.
    """

    release: Release | None
    scores: Mapping[str, Score]


def evaluate(
    what: Recipe | Release | None,
    case: Case,
    asked: Sequence[Measure] | Sequence[Demand],
    run: Run,
    *,
    replicate: int | None = None,
) -> Evaluation:
    """Follow a recipe once, or take a release as it is, and score it by all that is asked.

    Parameters
    ----------
    what
        A recipe, followed with the chance of the ``replicate``; a release; or None for the raw table.
    asked
        Measures, which are asked in the scenario of the case, or demands, each in its own.
    """
    if isinstance(what, Recipe):
        what = what.apply(case.table, run if replicate is None else run.at("replicate", replicate))
    evidence: dict[Scenario, Evidence] = {}  # what the measures find of one intruder they share
    scores: dict[str, Score] = {}
    for label, measure, scenario in _labelled(asked, case):
        if scenario not in evidence:
            evidence[scenario] = case.evidence(what, scenario)
        scores[label] = score_of(measure, evidence[scenario], run)
    return Evaluation(what, scores)


def _labelled(
    asked: Sequence[Measure] | Sequence[Demand], case: Case
) -> Iterator[tuple[str, Measure, Scenario]]:
    demands = dict(labelled([each for each in asked if isinstance(each, Demand)]))
    yield from ((label, each.measure, each.scenario) for label, each in demands.items())
    yield from ((str(each), each, case.scenario) for each in asked if isinstance(each, Measure))


def score_of(measure: Measure, evidence: Evidence, run: Run) -> Score:
    """Score evidence with the chance that this measure always has on this original."""
    return measure.score(evidence, chance_of(measure, evidence.original, run))


def chance_of(measure: Measure, original: Table, run: Run) -> Run:
    """The chance of a measure: keyed by the original and the measure alone, from the root of the run.

    Neither the replicate nor the step, the trial or the caller changes it. So one seed gives one number
    whoever asks, and the same queries, samples and folds are put to every method and replicate: comparisons
    are paired, and differ by what the methods did. A release that is made without chance has one score.
    """
    return replace(run, place=()).at(original.digest).at("measure", str(measure))


def repeated(
    recipe: Recipe,
    case: Case,
    asked: Sequence[Measure] | Sequence[Demand],
    run: Run,
    replicates: Iterable[int],
) -> Iterator[Evaluation]:
    """Evaluate a recipe once for each replicate, telling nobody; just once if it leaves nothing to chance."""
    for replicate in replicates:
        yield evaluate(recipe, case, asked, run.silent(), replicate=replicate)
        if not recipe.stochastic:
            return


def usable(measure: Measure, score: Score) -> float:
    """The value of a score that a comparison may use, or an error that says why there is none."""
    if score.status is Status.REFUSED:
        raise UnjudgedError(score.reason)
    if score.status is Status.NOT_ESTIMABLE:
        raise UnjudgedError(f"{measure.name} must be estimable to compare by it, got: {score.reason}")
    return score.value


def spread_of(scores: Sequence[Score]) -> Spread | None:
    """Summarise the scores of one measure over repeated runs; None if one of them has no number."""
    if not scores or any(score.status not in NUMBERS for score in scores):
        return None
    estimated = any(score.status is Status.APPROXIMATE for score in scores)
    return Spread.of([score.value for score in scores], approximate=estimated)


def spreads_of(runs: Sequence[Mapping[str, Score]]) -> dict[str, Spread]:
    """Summarise the scores of repeated runs; a measure without a number in one of them is left out."""
    found = {label: spread_of([scores[label] for scores in runs]) for label in (runs[0] if runs else ())}
    return {label: spread for label, spread in found.items() if spread is not None}

"""One trial: follow a recipe once, and score the release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    UnknownNameError,
    UnreachableError,
)
from sfumato.recipes.demand import Labelled
from sfumato.recipes.recipe import Recipe
from sfumato.study.spread import Spread

#: What is raised by a method that cannot protect these data, or a measure that cannot score them: other
#: methods, or other settings of it, may.
CANNOT = (
    RefusedError, DataError, ParameterError, PlanError, UnknownNameError, MissingDependencyError,
    UnreachableError,
)  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """What came of following a recipe once; each score under its measure as it is set, ``str(measure)``."""

    recipe: Recipe
    replicate: int
    release: Release
    scores: Mapping[str, Score]


def attempt(
    recipe: Recipe,
    table: Table,
    measures: Sequence[Measure],
    run: Run,
    *,
    replicate: int = 0,
    scenario: Scenario | None = None,
    resources: Mapping[str, Any] | None = None,
) -> Trial:
    """Protect once and score once; each replicate has chance of its own."""
    here = run.at("replicate", replicate)
    release = recipe.apply(table, here)
    evidence = release.against(table, scenario=scenario, resources=resources)
    scores = {str(each): each.score(evidence, here.at("measure", str(each))) for each in measures}
    return Trial(recipe=recipe, replicate=replicate, release=release, scores=scores)


def usable(measure: Measure, score: Score) -> float:
    """The value of a score that a comparison may use, or an error that says why there is none."""
    if score.status is Status.REFUSED:
        raise RefusedError(score.reason)
    if score.status is Status.NOT_ESTIMABLE:
        raise DataError(f"{measure.name} must be estimable to compare by it, got: {score.reason}")
    return score.value


def assess(
    original: Table,
    release: Release | None,
    measures: Sequence[Measure],
    run: Run,
    *,
    scenario: Scenario | None = None,
    resources: Mapping[str, Any] | None = None,
) -> dict[str, Score]:
    """Score a release (or the raw table itself) by several measures, each under the name it is set by."""
    if release is None:
        evidence = Evidence(original=original, scenario=scenario or Scenario(), resources=resources or {})
    else:
        evidence = release.against(original, scenario=scenario, resources=resources)
    here = run.at(original.digest)
    return {str(measure): measure.score(evidence, here.at("measure", str(measure))) for measure in measures}


def scores_of(
    release: Release, original: Table, demands: Labelled, run: Run, *, resources: Mapping[str, Any] | None
) -> dict[str, Score]:
    """Score a release once for every label; what the measures find of one intruder they share."""
    evidence = {
        scenario: release.against(original, scenario=scenario, resources=resources)
        for scenario in dict.fromkeys(demand.scenario for _, demand in demands)
    }
    return {
        label: demand.measure.score(evidence[demand.scenario], run.at("measure", str(demand.measure)))
        for label, demand in dict(demands).items()
    }


def spreads_of(runs: Sequence[Mapping[str, Score]]) -> dict[str, Spread]:
    """Summarise the scores of repeated runs; a measure without a number in one of them is left out."""
    found = {}
    for label in runs[0] if runs else ():
        scores = [scores[label] for scores in runs]
        if all(score.status in {Status.OK, Status.APPROXIMATE} for score in scores):
            estimated = any(score.status is Status.APPROXIMATE for score in scores)
            found[label] = Spread.of([score.value for score in scores], approximate=estimated)
    return found

"""The owner's protocol (Herranz, Nin, Rodríguez and Tassa 2015, section 3.3): protect until few are linked.

1. Protect the table by the first step. 2. Find δ, the most that any record moved, and a bound Δ ≥ δ that may
be published with the file. 3. Measure local linkage (DBRL); if it is too high, protect anew. 4. Measure
global linkage (GDBRL). 5. If it is too high, protect anew; otherwise release the file and Δ.

Protecting anew draws fresh chance; after so many attempts the next, stronger step is taken, and when there is
none nothing is released.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Score, Status
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.table import Table
from sfumato.errors import ParameterError, RefusedError, count_noun
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.risk.global_linkage import GlobalLinkage, distortion
from sfumato.risk.linkage import DistanceLinkage
from sfumato.study.evaluate import EvaluationCase, chance_of, evaluate
from sfumato.study.requirements import settings_from_mildest

_ACCEPTED = "accepted"


@dataclass(frozen=True)
class LinkageLimits:
    """The largest share of records that may be linked, one by one and all at once."""

    local: float = 0.05
    everywhere: float = 0.05

    def __post_init__(self) -> None:
        for name in ("local", "everywhere"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise ParameterError(f"the limit `{name}` must be a share from 0 to 1, got: `{value}`")

    @property
    def requirements(self) -> tuple[Requirement, Requirement]:
        """The limits as requirements of a plan, on the measures as they are set by default."""
        one_by_one = Requirement(DistanceLinkage(), "<=", self.local)
        return one_by_one, Requirement(GlobalLinkage(), "<=", self.everywhere)


@dataclass(frozen=True)
class Attempt:
    """One round of the protocol; ``everywhere`` is absent where ``local`` was too high already."""

    step: Step
    replicate: int
    distortion: float
    local: Score
    everywhere: Score | None
    verdict: str

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON; δ tells how far the farthest record moved, so it stays with the owner."""
        return {
            "step": self.step.to_dict(),
            "attempt": self.replicate + 1,
            "distortion": self.distortion,
            "local": self.local.to_dict(),
            "everywhere": self.everywhere.to_dict() if self.everywhere else None,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Protocol:
    """How the protocol ended: with a release and its published bound Δ, or without one, and the reason."""

    release: Release | None
    bound: float | None
    attempts: tuple[Attempt, ...]
    reason: str

    @property
    def accepted(self) -> bool:
        """Whether there is a release."""
        return self.release is not None

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON: nothing per record, no seed."""
        attempts = [attempt.to_dict() for attempt in self.attempts]
        return {"accepted": self.accepted, "bound": self.bound, "reason": self.reason, "attempts": attempts}


def carry_out_protocol(
    table: Table,
    steps: Sequence[Step],
    run: Run,
    *,
    limits: LinkageLimits | None = None,
    attempts: int = 3,
    local: DistanceLinkage | None = None,
    everywhere: GlobalLinkage | None = None,
    scenario: Scenario | None = None,
    resources: Mapping[str, Any] | None = None,
) -> Protocol:
    """Protect, measure, and protect again until both linkages are low enough.

    Parameters
    ----------
    table
        The original.
    steps
        What to protect by: the first is tried ``attempts`` times (a method without chance once), then the
        next, which should protect more.
    limits
        Largest shares of linked records; 5 % each if not given.
    local, everywhere
        The two measures, set as wished; by default in Euclidean distance by standard deviations.
    """
    if not steps or attempts < 1:
        raise ParameterError(f"the protocol needs a step and an attempt, got: {len(steps)} and {attempts}")
    limits, case = limits or LinkageLimits(), EvaluationCase(table, scenario or Scenario(), resources or {})
    one_by_one = Requirement(local or DistanceLinkage(), "<=", limits.local)
    all_at_once = Requirement(everywhere or GlobalLinkage(), "<=", limits.everywhere)
    tried: list[Attempt] = []
    most = sum(attempts if step.method.randomness.stochastic else 1 for step in steps)
    for step in steps:
        for replicate in range(attempts if step.method.randomness.stochastic else 1):
            run.tell("attempts", len(tried), most, str(step.method))
            here = run.at("protocol", len(tried)).silent()
            release, attempt = _attempt(step, case, one_by_one, all_at_once, here)
            tried.append(replace(attempt, replicate=replicate))
            if attempt.verdict == _ACCEPTED:
                bound = rounded_up(attempt.distortion)
                return Protocol(release, bound, tuple(tried), "both linkages are low enough")
    reason = f"not released after {count_noun(len(tried), 'attempt')}: {tried[-1].verdict}"
    return Protocol(None, None, tuple(tried), reason)


def _attempt(
    step: Step, case: EvaluationCase, local: Requirement, everywhere: Requirement, run: Run
) -> tuple[Release | None, Attempt]:
    """Protect once, and measure what came of it as far as that is needed."""
    found = evaluate(Recipe((step,)), case, [local.measure], run)
    moved = _distortion(everywhere.measure, case.evidence(found.release), run)
    near, far = found.scores[str(local.measure)], None
    verdict = _too_high(local, near)
    if not verdict:
        far = evaluate(found.release, case, [everywhere.measure], run).scores[str(everywhere.measure)]
        verdict = _too_high(everywhere, far)
    return found.release, Attempt(step, 0, moved, near, far, verdict or _ACCEPTED)


def strengthen_in_rungs(
    step: Step,
    table: Table,
    run: Run,
    *,
    limits: LinkageLimits | None = None,
    rungs: int = 9,
    scenario: Scenario | None = None,
    resources: Mapping[str, Any] | None = None,
) -> tuple[Step, ...]:
    """The step as it is, and then with its drive raised rung by rung to the strong end of its range.

    Which end is strong is seen from the local linkage at both; a step without a drive stands alone.
    """
    local = Requirement(DistanceLinkage(), "<=", (limits or LinkageLimits()).local)
    case = EvaluationCase(table, scenario or Scenario(), resources or {})
    values = settings_from_mildest(step, case, [local], run.at("protocol", "ends"), count=rungs)
    drive = step.method.drive()
    if drive is None or not values:
        return (step,)
    now, upwards = getattr(step.method, drive.name), values[0] <= values[-1]
    beyond = [value for value in values if (value > now if upwards else value < now)]
    return (step, *(step.with_drive(value) for value in beyond))


def _distortion(measure: Measure, evidence: Evidence, run: Run) -> float:
    assert isinstance(measure, GlobalLinkage)
    reason = measure.refuses(evidence)
    if reason is not None:
        raise RefusedError(reason)
    chance = chance_of(measure, evidence.original, run)
    return distortion(measure.space(evidence, chance, measure.columns(evidence)))


def _too_high(limit: Requirement, score: Score) -> str:
    """Say why a score does not let a release pass; empty if it does. Only a number that is certain passes."""
    if score.status is Status.REFUSED:
        raise RefusedError(score.reason)
    worst, name = limit.worst(score), limit.measure.name
    if math.isnan(worst):
        return f"{name} is {score.status}: {score.reason}"
    verb = "is" if score.status is Status.OK else "may be"
    return "" if limit.met_by(score) else f"{name} {verb} {worst:.4g}, above {limit.level:g}"


def rounded_up(distance: float) -> float:
    """Round δ up to two digits, so that Δ does not give the distance of the farthest record away."""
    if distance <= 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(distance)) - 1)
    upper = float(f"{math.ceil(distance / step) * step:.2g}")
    return upper if upper >= distance else float(f"{upper + step:.2g}")

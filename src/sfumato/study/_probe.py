"""A probe: what a step scores at settings of its drive, for searches that stop by different rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sfumato.core.measure import Measure, Score
from sfumato.core.params import Param
from sfumato.core.run import Run
from sfumato.errors import SfumatoError
from sfumato.recipes.demand import Demand
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.study.evaluate import EXPECTED_ERRORS, EvaluationCase, evaluate_replicates, usable

#: Settings over the range that are looked at before the gap between two is narrowed.
SCAN_POINTS = 9


@dataclass
class ProbeResult:
    """One setting (None: the step as it is): the scores of each run by label, and why there are no more."""

    value: float | None
    step: Step
    runs: list[Mapping[str, Score]] = field(default_factory=list)
    refused: SfumatoError | None = None


class Probe:
    """Scores a step at settings of its drive, each once; the same replicates at each, so chance is common."""

    def __init__(
        self,
        step: Step,
        case: EvaluationCase,
        asked: Sequence[Measure] | Sequence[Demand],
        run: Run,
        *,
        repeats: int,
        task: str = "",
    ) -> None:
        self.step, self.case, self.asked, self.run = step, case, asked, run
        self.repeats, self.task = repeats, task
        self.seen: dict[float | None, ProbeResult] = {}

    def at(self, value: float | None) -> ProbeResult:
        """What is seen at a setting of the drive; None is the step as it is."""
        if value not in self.seen:
            task = "its settings as they are" if value is None else f"trying {value:.4g}"
            if self.task:
                self.run.tell(self.task, len(self.seen), 0, f"{self.step.method.title}: {task}")
            step = self.step if value is None else self.step.with_drive(value)
            seen = self.seen[value] = ProbeResult(value, step)
            self.go_on(seen, self.run, self.repeats)
        return self.seen[value]

    def go_on(self, seen: ProbeResult, run: Run, repeats: int) -> None:
        """Run a setting so many times (more), until it is refused or has told enough."""
        try:
            for found in evaluate_replicates(
                Recipe((seen.step,)), self.case, self.asked, run, range(repeats)
            ):
                seen.runs.append(found.numbers)
                del found  # before the next release is made
                if self.has_told_enough(seen.runs[-1]):
                    return
        except EXPECTED_ERRORS as error:
            seen.refused = error

    def has_told_enough(self, scores: Mapping[str, Score]) -> bool:  # noqa: ARG002  — a search may look at it
        """Whether one run tells enough of a setting, so that no other is needed."""
        return False

    def mean(self, measure: Measure, value: float | None) -> float:
        """The mean of a measure at a setting, or the error that says why there is none."""
        seen = self.at(value)
        if seen.refused is not None:
            raise seen.refused
        return float(np.mean([usable(measure, scores[str(measure)]) for scores in seen.runs]))

    @property
    def drive(self) -> Param | None:
        """The parameter that is moved; None where there is none with a range."""
        drive = self.step.method.drive()
        return drive if drive is not None and drive.tune is not None else None

    def grid(self, count: int = SCAN_POINTS) -> list[float | int]:
        """Settings over the range worth searching on this table, lowest first."""
        low, high = self.step.method.drive_range(self.case.table)
        return [] if self.drive is None else self.drive.grid(count, low=low, high=high)

    def setting_between(
        self, first: float, second: float, fineness: float, share: float | None = None
    ) -> float | None:
        """The setting midway, or a share of the way, from one to another; None where they are too near.

        ``fineness`` is how finely the drive is set, as a share of the range worth searching.
        """
        drive = self.drive
        assert drive is not None
        low, high = map(drive.position, drive.tune or (first, second))
        left, right = drive.position(first), drive.position(second)
        middle = drive.at((left + right) / 2)
        value = middle if share is None else drive.at(left + share * (right - left))
        value = middle if value in {first, second} else value
        too_near = value in {first, second} or abs(right - left) < fineness * abs(high - low)
        return None if too_near else value

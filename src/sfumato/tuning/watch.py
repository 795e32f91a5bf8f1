"""A search keeps to its time: what is left for each of its stages, and whether a piece of work may begin."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from sfumato.core.run import Run
from sfumato.recipes.recipe import Recipe
from sfumato.study.growth import Growth, Timings

#: The share of the time by which a stage must have ended; the last one is the utility of the best.
#: What must be done though time is up has no end.
SAMPLING, SEARCHING, CONFIRMING, ENDING, LATE = "sampling", "searching", "confirming", "ending", "late"
_ENDS: Final = {SAMPLING: 0.25, SEARCHING: 0.7, CONFIRMING: 0.85, ENDING: 1.0, LATE: math.inf}


@dataclass
class Watch:
    """Knows the time of a search, and how long recipes took so far; the clock may be another."""

    seconds: float = math.inf
    clock: Callable[[], float] = time.monotonic
    stage: str = ENDING
    took: dict[tuple[str, ...], Timings] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.started = self.clock()

    @property
    def left(self) -> float:
        """Seconds until the present stage must end."""
        return self.started + _ENDS[self.stage] * self.seconds - self.clock()

    def limited(self, run: Run, share: float = 1.0) -> Run:
        """The run that is stopped when the present stage must end, or after a share of what is left of it."""
        return run if math.isinf(self.seconds) else run.within(share * self.left, self.clock)

    def may_begin(self, recipe: Recipe, records: int, share: float = 1.0) -> bool:
        """Whether a share of the time that is left will do for one run of a recipe on so many records."""
        return self.expected(recipe, records) <= share * self.left

    def note(self, recipe: Recipe, records: int, seconds: float) -> None:
        """Remember what one run of a recipe took; the longest on the most records counts."""
        growth = max((Growth.declared_as(step.method.cost) for step in recipe.steps), default=Growth(0))
        known = self.took.setdefault(_methods(recipe), Timings(growth))
        known.points = [max([*known.points, (records, seconds)])]

    def expected(self, recipe: Recipe, records: int) -> float:
        """Seconds that a run of a recipe is likely to take: as before, or from fewer records.

        Then between what it took there, much of which does not grow, and that grown as its methods declare.
        """
        known = self.took.get(_methods(recipe))
        return known.between(records, Growth(0)) if known else 0.0


def _methods(recipe: Recipe) -> tuple[str, ...]:
    return tuple(step.method.name for step in recipe.steps)

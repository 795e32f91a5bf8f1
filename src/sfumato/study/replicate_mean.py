"""The mean of repeated runs with its doubt, and whether two such means differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

#: How sure one must be to call one method better than another.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class ReplicateMean:
    """The mean of repeated runs with its doubt; one run without any chance has none.

    ``approximate`` says that the measure itself was estimated in at least one of the runs.
    """

    mean: float
    deviation: float
    runs: int
    approximate: bool = False

    @classmethod
    def of(cls, values: Sequence[float], *, approximate: bool = False) -> ReplicateMean:
        """Summarise the values of repeated runs."""
        # Equal values have no spread; the rounding of their mean would give them one.
        deviation = float(np.std(values, ddof=1)) if min(values) < max(values) else 0.0
        return cls(float(np.mean(values)), deviation, len(values), approximate)

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return self.deviation / math.sqrt(self.runs)

    @property
    def interval(self) -> tuple[float, float]:
        """Interval that holds the mean with 95 % confidence (Student's t)."""
        if self.runs == 1 or not self.deviation:
            return (self.mean, self.mean)
        from scipy.special import stdtrit

        half = float(stdtrit(self.runs - 1, (1 + CONFIDENCE) / 2)) * self.error
        return (self.mean - half, self.mean + half)

    def differs_from(self, other: ReplicateMean) -> bool:
        """Whether two means differ by more than chance explains (Welch's test)."""
        gap, variance = abs(self.mean - other.mean), self.error**2 + other.error**2
        if not variance:
            return gap > 0
        from scipy.special import stdtrit

        parts = [(spread.error**2) ** 2 / (spread.runs - 1) for spread in (self, other) if spread.error]
        freedom = variance**2 / sum(parts)
        return bool(gap / math.sqrt(variance) > stdtrit(freedom, (1 + CONFIDENCE) / 2))

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON."""
        payload = {"mean": self.mean, "deviation": self.deviation, "interval": list(self.interval)}
        return {**payload, "runs": self.runs, "approximate": self.approximate}

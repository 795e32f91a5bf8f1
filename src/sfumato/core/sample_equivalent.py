"""A utility in words that everybody knows: a release is as good as a random sample of so many per cent."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal


@dataclass(frozen=True)
class SampleEquivalent:
    """The share of a simple random sample of the original that scores as a release does.

    Between the ends of the ``interval`` lie the shares of which single samples score so, 95 in 100. A release
    that scores worse than all samples that were drawn has the least of their shares and is ``beyond`` it
    (*less*), one that is better than they the greatest (*more*). Where there is none the ``reason`` says why.
    """

    share: float
    interval: tuple[float, float] | None = None
    beyond: Literal["", "less", "more"] = ""
    reason: str = ""

    @classmethod
    def missing(cls, reason: str) -> SampleEquivalent:
        """There is none, for this reason."""
        return cls(math.nan, reason=reason)

    @property
    def words(self) -> str:
        """Say it as people do: like a sample of 7 % (5–10 %); nothing where there is none."""
        if math.isnan(self.share):
            return ""
        if self.share == 1.0:
            words = "like all records"
        else:
            words = f"like {self.beyond} than a" if self.beyond else "like a"
            words = f"{words} sample of {_per_cent(self.share)} %"
        if self.interval is None:
            return words
        low, high = (_per_cent(end) for end in self.interval)
        return words if low == high else f"{words} ({low}–{high} %)"

    def rounded(self) -> SampleEquivalent:
        """The same in two digits, as everybody may know it."""
        ends = self.interval and (_two_digits(self.interval[0]), _two_digits(self.interval[1]))
        return replace(self, share=_two_digits(self.share), interval=ends)

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON."""
        found = not math.isnan(self.share)
        return {
            "share": self.share if found else None,
            "interval": list(self.interval) if self.interval else None,
            "beyond": self.beyond,
            "words": self.words,
            "reason": self.reason,
        }


def _two_digits(share: float) -> float:
    return float(f"{share:.2g}")


def _per_cent(share: float) -> str:
    return f"{100 * _two_digits(share):.3g}"

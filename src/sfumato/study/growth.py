r"""How long something takes on many records, from what it took on fewer: one model for trials and searches.

Seconds are taken to be

.. math:: t(n) = a + b\,n^p

where three sizes :math:`n_0, n_1 = r n_0, n_2 = r n_1` give :math:`p = \log_r \frac{t_2 - t_1}{t_1 - t_0}`.
What a method declares as its ``cost`` bounds the growth from above: it may do better in these data, never
worse.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from sfumato.errors import ParameterError

#: At least this share of the time of the largest trial is taken to grow with the records.
_GROWING = 0.1

_FACTOR = re.compile(r"log\s+(?P<logged>[a-z]+)|(?P<word>(?![a-z]*log)[a-z]+)(?P<power>[²³⁴⁵]|\^[2-5])?|·")
_POWERS = {"²": 2, "³": 3, "⁴": 4, "⁵": 5}


@dataclass(frozen=True, order=True)
class Growth:
    r"""How a cost grows with the records: like :math:`n^p (\log n)^q`."""

    power: int
    logs: int = 0

    @classmethod
    def parse(cls, text: str) -> Growth:
        """Read what is declared: ``n``, ``n log n``, ``n²``, ``n d²``, ``n + nodes``.

        Letters and words other than n are taken for constant; of a sum the steepest term counts.

        Examples
        --------
        >>> Growth.parse("n log n")
        Growth(power=1, logs=1)
        """
        steepest = max(cls._term(term, text) for term in text.split(" + "))
        if not steepest.power and not steepest.logs:
            raise _unreadable(text)
        return steepest

    @classmethod
    def declared_as(cls, text: str) -> Growth:
        """What is declared; of what cannot be read the worst that is usual."""
        try:
            return cls.parse(text)
        except ParameterError:  # somebody else's method may write as it likes
            return cls(2)

    @classmethod
    def _term(cls, term: str, text: str) -> Growth:
        power, logs = 0, 0
        for factor in re.findall(r"log\s+\S+|\S+", term.strip()) or [""]:
            found = _FACTOR.fullmatch(factor)
            if found is None:
                raise _unreadable(text)
            if found["word"] == "n":
                exponent = (found["power"] or "1").lstrip("^")
                power += int(_POWERS.get(exponent, exponent))
            logs += found["logged"] == "n"
        return cls(power, logs)

    def at(self, n: float) -> float:
        """How much it is for n records, up to a constant."""
        return math.pow(n, self.power) * math.pow(math.log(max(n, 2)), self.logs)


def _unreadable(text: str) -> ParameterError:
    return ParameterError(
        f"a cost must be written such as `n log n`, `n d²` or `n + nodes`, got: `{text}`",
        hint="factors are words with a power, and `log n`, with spaces between; one of them must be n",
    )


@dataclass
class Timings:
    """The seconds that something took on more and more records, and what they tell of others."""

    growth: Growth
    points: list[tuple[int, float]] = field(default_factory=list)

    def expected_seconds(self, n: int) -> tuple[float, float]:
        """Seconds expected for n records, and the most if all grows as declared."""
        if not self.points:
            return 0.0, 0.0
        last, seconds = self.points[-1]
        if n <= last or self.growth.at(last) == self.growth.at(n):
            return seconds, seconds
        declared = self.growth.at(n) / self.growth.at(last)
        if len(self.points) == 1:
            return seconds * declared, seconds * declared
        before, earlier = self.points[-2]
        ratio = last / before
        steepest = math.log(self.growth.at(last) / self.growth.at(before)) / math.log(ratio)
        gained = seconds - earlier
        power = steepest
        if len(self.points) > 2:  # noqa: PLR2004
            power = _power(self.points[-3:], ratio)
        power = min(max(power, min(1.0, steepest)), steepest)

        def grown(exponent: float, times: float) -> float:
            growing = min(max(gained / (1 - math.pow(ratio, -exponent)), _GROWING * seconds), seconds)
            return seconds - growing + growing * times

        high = grown(steepest, declared)
        return min(grown(power, min(math.pow(n / last, power), declared)), high), high

    def at_most(self, n: int) -> float:
        """What n records may take by the last size alone, if all of it grows as declared."""
        if not self.points:
            return math.inf
        last, seconds = self.points[-1]
        return seconds * self.growth.at(n) / self.growth.at(last)

    def seconds_between(self, n: int, least: Growth) -> float:
        """Seconds for n records between what they are if it grows no more than this, and as declared."""
        return math.sqrt(Timings(least, self.points).expected_seconds(n)[0] * self.expected_seconds(n)[1])


def _power(points: Sequence[tuple[int, float]], ratio: float) -> float:
    """The exponent that three sizes show, each the same times as large as the one before."""
    (_, first), (_, second), (_, third) = points
    if second <= first or third <= second:
        return 1.0
    return math.log((third - second) / (second - first)) / math.log(ratio)

"""Rounding: where values lie between two multiples of a base, and which of the two they become."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from sfumato.kernels.arrays import Flags, Floats

#: By how many units in the last place a value may miss a multiple (or the middle of two) that it stands for:
#: 0.15 and 0.05 are no binary fractions, and 0.15 / 0.05 is not quite 3.
_FLOAT_TOLERANCE = 4 * np.finfo(np.float64).eps

#: From this number of bases on, double precision has no fractions of one.
_NO_FRACTIONS = 2.0**52

#: Steps of the wheel that `turns` rolls round: one per number that 64 bits hold.
_WHEEL = 2**64


@dataclass(frozen=True, slots=True, eq=False)
class RoundingCell:
    r"""Values as :math:`x = b\,(l + f)`: a whole number of bases below, and the share of a base above it.

    Attributes
    ----------
    values : float64[n]
    base : float
    lower : float64[n]
        Whole numbers :math:`l`.
    share : float64[n]
        :math:`0 \le f < 1`; exactly 0 for a multiple, exactly ½ in the middle, also where decimals cannot be
        written in binary.
    too_fine : bool[n]
        Values of so many bases that double precision has no fractions of one: they stay as they are.
    """

    values: Floats
    base: float
    lower: Floats
    share: Floats
    too_fine: Flags

    @classmethod
    def of(cls, values: Floats, base: float) -> RoundingCell:
        """Find the multiples of ``base`` between which each value lies."""
        with np.errstate(over="ignore"):
            quotients = values / base
        too_fine = np.abs(quotients) >= _NO_FRACTIONS
        quotients[too_fine] = 0.0
        slack = _FLOAT_TOLERANCE * np.maximum(np.abs(quotients), 1.0)
        nearest = np.rint(quotients)
        quotients = np.where(np.abs(quotients - nearest) <= slack, nearest, quotients)
        lower = np.floor(quotients)
        share = quotients - lower
        share[np.abs(share - 0.5) <= slack] = 0.5
        return cls(values, base, lower, share, too_fine)

    def round_to_base(self, up: Flags) -> Floats:
        """Give each value the multiple above (``up``) or below it, as near to its decimals as can be."""
        steps = self.lower + up
        step = Decimal(repr(self.base)).normalize().as_tuple()
        exponent = int(step.exponent)
        if exponent < 0:
            # 3 · 0.05 is 0.15000000000000002; 3 · 5 / 100 is 0.15, since a division is rounded only once.
            digits = float(int("".join(map(str, step.digits))))
            multiples: Floats = steps * digits / 10.0**-exponent
        else:
            multiples = steps * self.base
        multiples += 0.0  # makes 0 of −0, which a file would show
        multiples[self.too_fine] = self.values[self.too_fine]
        return multiples

    def nearer_up(self) -> Flags:
        """Which values lie nearer to the multiple above; from the middle to the even one."""
        up: Flags = (self.share > 0.5) | ((self.share == 0.5) & (self.lower % 2 == 1))  # noqa: PLR2004
        return up

    def margin(self) -> float:
        """How far the sum of the shares may be off, as each is known only to double precision."""
        return float(_FLOAT_TOLERANCE * np.maximum(np.abs(self.lower), 1.0).sum())


def turns(share: Floats, rng: np.random.Generator, *, margin: float = 0.0) -> Flags:
    r"""Choose which values go up: each with its share as probability, and as many as the shares add up to.

    A wheel that starts at a random place :math:`u` is turned by each share after the other; where it passes
    its start of a turn, the value goes up (systematic selection):

    .. math::

        a_i = \lfloor u + f_1 + \dots + f_i \rfloor - \lfloor u + f_1 + \dots + f_{i-1} \rfloor

    Hence :math:`P(a_i = 1) = f_i`, and the sum over any run of neighbours is one of the two whole numbers
    next to the sum of their shares. The wheel has 2⁶⁴ steps and whole numbers are added, so nothing is lost
    however many values there are.

    Parameters
    ----------
    share : float64[n]
        From 0 to below 1.
    rng : numpy.random.Generator
        Advanced by one draw.
    margin : float
        The start keeps this share of a turn away from both ends, so that shares whose sum is a whole number
        up to this error give exactly that number. The probabilities change by no more than about as much.

    Returns
    -------
    bool[n]
    """
    keep = int(min(margin, 0.25) * _WHEEL)
    start = rng.integers(keep, _WHEEL - keep, dtype=np.uint64)
    parts = (share * float(_WHEEL)).astype(np.uint64)
    places = np.cumsum(parts, dtype=np.uint64)
    places += start  # unsigned whole numbers run over from the last step to the first, as the wheel does
    return places < parts

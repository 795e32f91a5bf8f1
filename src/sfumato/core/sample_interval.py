"""What a sample of persons tells of all: the interval in which their mean lies."""

from __future__ import annotations

import math

from sfumato.kernels.arrays import Floats

#: How sure an interval is to hold the mean of all.
CONFIDENCE = 0.95


def mean_interval(values: Floats, bounds: tuple[float, float]) -> tuple[float, float]:
    r"""Where the mean of all lies if these are a sample of them, with 95 % confidence.

    Between finite bounds, here put at 0 and 1, these are the means :math:`p` with

    .. math:: n\left(x \ln\frac{x}{p} + (1 - x) \ln\frac{1 - x}{1 - p}\right) \le \ln\frac{2}{0.05}

    where :math:`x` is the mean of the :math:`n` values (Hoeffding 1963, theorem 1, which holds for draws
    without replacement, too): narrow where nearly all are 0, and it never promises more than it holds.
    Without bounds it is Student's interval.
    """
    mean, n = float(values.mean()), len(values)
    low, high = bounds
    if not math.isfinite(low) or not math.isfinite(high):
        from scipy.special import stdtrit

        far = (
            float(stdtrit(n - 1, (1 + CONFIDENCE) / 2) * values.std(ddof=1) / math.sqrt(n))
            if n > 1
            else math.inf
        )
        return max(low, mean - far), min(high, mean + far)
    share = min(max((mean - low) / (high - low), 0.0), 1.0)
    reach = math.log(2 / (1 - CONFIDENCE)) / n
    ends = (_farthest_mean(share, end, reach) for end in (0.0, 1.0))
    first, last = (low + end * (high - low) for end in ends)
    return first, last


def _farthest_mean(share: float, end: float, reach: float) -> float:
    """The mean farthest towards an end of 0 to 1 that the divergence from a share does not rule out."""
    inside, outside = share, end
    for _ in range(60):
        middle = (inside + outside) / 2
        if _divergence(share, middle) <= reach:
            inside = middle
        else:
            outside = middle
    return outside


def _divergence(share: float, mean: float) -> float:
    pairs = ((share, mean), (1 - share, 1 - mean))
    return sum(0.0 if not part else math.inf if not of else part * math.log(part / of) for part, of in pairs)

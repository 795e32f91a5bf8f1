"""Dominance: whether a sum or a mean hides each of those who make it up."""

from __future__ import annotations

import numpy as np

from sfumato.data.hidden_content import MIN_PERSONS_NAMED
from sfumato.kernels.arrays import Floats, Ints

#: One contributor has less than this share of the sum, the (1, k) rule.
_LARGEST = 0.5
#: The second contributor, who knows the own, misses the first by at least this share of it, the p % rule.
_MISSED = 0.1


def hides_each(contributions: Floats, persons: Ints | None = None, *, least: int = MIN_PERSONS_NAMED) -> bool:
    """Whether nobody's contribution follows from the mean or sum of these, which are not negative.

    At least ``least`` people contribute, and none of them dominates. ``persons`` says whose each is; records
    of one person count as one. What is 0 contributes nothing.
    """
    own: Floats = contributions
    if persons is not None:
        own = np.bincount(np.unique(persons, return_inverse=True)[1], weights=own).astype(np.float64)
    return bool(np.count_nonzero(own) >= least) and not is_dominated(own)


def is_dominated(contributions: Floats) -> bool:
    """Whether one contribution is half of the sum, or follows from the sum and the second within a tenth."""
    total = contributions.sum()
    second, largest = np.sort(np.append(contributions, [0.0, 0.0]))[-2:]
    hidden = largest < _LARGEST * total and total - largest - second >= _MISSED * largest
    return bool(total > 0 and not hidden)

"""Shares, and how far the truth may be from one that was counted."""

from __future__ import annotations

import math


def wilson(hits: float, tries: int, z: float) -> tuple[float, float]:
    """The interval of a share, by Wilson: within 0 and 1, and of some width where all or none are hits."""
    share, square = float(hits) / tries, z * z / tries
    middle = (share + square / 2) / (1 + square)
    half = z / (1 + square) * math.sqrt(share * (1 - share) / tries + square / (4 * tries))
    return max(min(middle - half, share), 0.0), min(max(middle + half, share), 1.0)

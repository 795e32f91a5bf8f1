"""Assignment: the matching of two files at the least total distance, proved, with no matrix of all pairs."""

from __future__ import annotations

from numba import njit  # noqa: F401  — by this `kernels` sees that it should listen for compilations

from sfumato.kernels.assignment.assign import Assignment, solve
from sfumato.kernels.assignment.matchable import Matchable, matchable
from sfumato.kernels.assignment.ties import Ties, ties
from sfumato.kernels.assignment.verification import Verdict, verify

__all__ = ["Assignment", "Matchable", "Ties", "Verdict", "matchable", "solve", "ties", "verify"]

"""Assignment: the matching of two files at the least total distance, proved, with no matrix of all pairs."""

from __future__ import annotations

from sfumato.kernels.assignment.assign import Assignment, solve
from sfumato.kernels.assignment.covers import Cover, cover
from sfumato.kernels.assignment.matchable import Matchable, matchable
from sfumato.kernels.assignment.nearest import nearest
from sfumato.kernels.assignment.ties import Ties, ties, ties_among
from sfumato.kernels.assignment.tight import Tight
from sfumato.kernels.assignment.verification import Verdict, verify

__all__ = [
    "Assignment", "Cover", "Matchable", "Ties", "Tight", "Verdict", "cover", "matchable", "nearest", "solve",
    "ties", "ties_among", "verify",
]  # fmt: skip

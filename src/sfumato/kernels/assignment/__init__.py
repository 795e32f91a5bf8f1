"""Assignment: the matching of two files at the least total distance, proved, with no matrix of all pairs."""

from __future__ import annotations

from sfumato.kernels.assignment.assign import Assignment, solve
from sfumato.kernels.assignment.covers import GroupAssignment, cover
from sfumato.kernels.assignment.matchable import MatchablePairs, matchable
from sfumato.kernels.assignment.nearest import nearest
from sfumato.kernels.assignment.ties import TiedLinks, ties, ties_among
from sfumato.kernels.assignment.tight import TightPairs
from sfumato.kernels.assignment.verification import OptimalityCheck, verify

__all__ = [
    "Assignment",
    "GroupAssignment",
    "MatchablePairs",
    "OptimalityCheck",
    "TiedLinks",
    "TightPairs",
    "cover",
    "matchable",
    "nearest",
    "solve",
    "ties",
    "ties_among",
    "verify",
]  # fmt: skip

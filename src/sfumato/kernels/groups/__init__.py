"""Microaggregation: groups of near records, of at least k, and their centres."""

from __future__ import annotations

from sfumato.kernels.groups import centres, partitions, sorted_clusters
from sfumato.kernels.groups.centres import group_means
from sfumato.kernels.groups.farthest import cbfs, mdav, vmdav
from sfumato.kernels.groups.least_loss import lower_bound
from sfumato.kernels.groups.parts import PART_RECORDS, mdav_in_parts
from sfumato.kernels.groups.relocation import sequential
from sfumato.kernels.groups.variable import spanning_tree, ward

__all__ = [
    "PART_RECORDS", "cbfs", "centres", "group_means", "lower_bound", "mdav", "mdav_in_parts", "partitions",
    "sequential", "sorted_clusters", "spanning_tree", "vmdav", "ward",
]  # fmt: skip

"""Changes a hierarchy by hand: put values together, call groups otherwise, add and drop levels.

Labels are named by their codes at a level (see `Hierarchy.labels`). What is changed is whole again: a group
has one parent, and those that nothing is in any more are gone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np
import polars as pl

from sfumato.data.generalised.nodes import WILDCARD
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.errors import ParameterError
from sfumato.kernels.arrays import Flags

#: What parts the values that a label names: {Kern|Tulare}, low … high.
_BETWEEN = re.compile(r"[{}|]| … ")
#: Labels that list or count what is in a group, and those that say what can be: [20;24], 937**.
_LISTS = re.compile(r"\{.*\}|.* … .*|other: \d+ values?'*", re.DOTALL)
_RANGES = re.compile(r"\[.*;.*\]|.+\*", re.DOTALL)


def put_into(hierarchy: Hierarchy, level: int, codes: Sequence[int], label: str) -> Hierarchy:
    """Put labels of a level into a group of the next: one of this name, or a new one.

    A new group climbs as the first of its labels did. Below the root a level is added for it.
    """
    _require(hierarchy, level, codes, label)
    if level == hierarchy.height - 2:
        hierarchy = add_level(hierarchy, level)
    return _join(hierarchy, level + 1, np.isin(hierarchy.leaf_codes(level), codes), label)


def rename(hierarchy: Hierarchy, level: int, codes: Sequence[int], label: str) -> Hierarchy:
    """Call labels of a level by one name: several are one group then, and climb as the first of them did."""
    _require(hierarchy, level, codes, label)
    if level == 0:
        raise ParameterError("The values themselves keep their names.", hint="put them into a group")
    return _join(hierarchy, level, np.isin(hierarchy.leaf_codes(level), codes), label)


def add_level(hierarchy: Hierarchy, level: int) -> Hierarchy:
    """Add a level above another, with the same labels: a place for groups of these."""
    _require_level(hierarchy, level)
    levels = hierarchy.levels.get_columns()
    return _rebuild(hierarchy, [*levels[: level + 1], *levels[level:]])


def drop_level(hierarchy: Hierarchy, level: int) -> Hierarchy:
    """Take out a level between the values and the root."""
    _require_level(hierarchy, level)
    if level == 0:
        raise ParameterError("The values themselves cannot be taken out.")
    levels = hierarchy.levels.get_columns()
    return _rebuild(hierarchy, [*levels[:level], *levels[level + 1 :]])


def without_rare_names(hierarchy: Hierarchy, rare: Collection[str]) -> Hierarchy:
    """The same hierarchy in which no label of several values names one of those that are ``rare``."""
    few, columns = set(rare), hierarchy.levels.get_columns()
    for level in range(1, hierarchy.height - 1):
        sizes = pl.DataFrame({"label": columns[level]}).group_by("label", maintain_order=True).len()
        shared = sizes.filter(pl.col("len") > 1)["label"]
        naming = [each for each in shared if few.intersection(part.strip() for part in _BETWEEN.split(each))]
        columns[level] = _count_instead(columns[level], naming)
    return _rebuild(hierarchy, columns)


def _count_instead(level: pl.Series, labels: Sequence[str]) -> pl.Series:
    """A level on which some labels say no more than how many values are in their group."""
    taken, names = set(level), list[str]()
    for label in labels:
        count = int((level == label).sum())
        name = f"other: {count} value{'s' if count > 1 else ''}"
        while name in taken:
            name += "'"
        taken.add(name)
        names.append(name)
    return level.replace(list(labels), names) if names else level


def _join(hierarchy: Hierarchy, level: int, chosen: Flags, label: str) -> Hierarchy:
    """One group of a level of all chosen leaves and those that it has; it climbs as the first of them did."""
    levels = hierarchy.levels
    there = (levels[:, level] == label).to_numpy()
    row = int(np.flatnonzero(there if there.any() else chosen)[0])
    inside = pl.Series(chosen | there)
    columns = levels.get_columns()
    for each in range(level, hierarchy.height):
        name = label if each == level else str(levels[row, each])
        joined = pl.select(pl.when(inside).then(pl.lit(name)).otherwise(columns[each])).to_series()
        own = label if each == level and not there.any() else None
        last = each == hierarchy.height - 1
        columns[each] = joined if last else _count_instead(joined, _untrue_labels(columns[each], joined, own))
    return _rebuild(hierarchy, columns)


def _untrue_labels(before: pl.Series, after: pl.Series, own: str | None) -> list[str]:
    """The labels that no longer say what is in their group; what somebody calls it just now is true."""
    moved = before != after
    gaining, losing = after.filter(moved).unique(), before.filter(moved).unique()
    found = {each for each in gaining if _LISTS.fullmatch(each) or _RANGES.fullmatch(each)}
    found |= {each for each in losing if _LISTS.fullmatch(each)}
    return sorted(found & set(after) - {own})


def _rebuild(hierarchy: Hierarchy, columns: Sequence[pl.Series]) -> Hierarchy:
    table = pl.DataFrame([each.alias(str(place)) for place, each in enumerate(columns)])
    return Hierarchy.from_levels(table, name=hierarchy.name)


def _require(hierarchy: Hierarchy, level: int, codes: Sequence[int], label: str) -> None:
    """Check what is to be put together, and what it is to be called."""
    _require_level(hierarchy, level)
    if not codes or not all(0 <= code < len(hierarchy.labels(level)) for code in codes):
        raise ParameterError("Choose at least one value or group first.")
    if not label.strip() or label == WILDCARD:
        raise ParameterError("A group needs a name, which is not `*`.")


def _require_level(hierarchy: Hierarchy, level: int) -> None:
    """Check that a level is below the root."""
    if not 0 <= level < hierarchy.height - 1:
        raise ParameterError("There is no such level below the root.", hint="reload this page")

"""Sizes of equivalence classes by what the intruder knows, before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.data.classes.classes import Classes
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.errors import DataError
from sfumato.kernels.arrays import Ints
from sfumato.report.values import ChartRules, merge_neighbours, merged_shares

#: Groups of sizes begin at these numbers of each decade, and at 3.
_STEPS = (1, 2, 5)
#: So many groups are shown even if the larger ones are empty: 1, 2, 3–4, 5–9.
_MIN_GROUPS_SHOWN = 4


def class_sizes(
    original: Table, releases: Mapping[str, Table], scenario: Scenario, *, public: bool
) -> dict[str, Any] | None:
    """Say which share of the records is in classes of 1, of 2, of 3–4 … records; None without any column.

    A class is the records that are equal in every column the intruder knows and the table still has; a
    missing value is a value of its own. ``groups`` are the first and the last size of each group. In the
    public form groups are merged until each holds no record, or as many as `ChartRules` asks for, of the
    original and of every release; a release is ``suppressed`` where that would leave nothing to see.
    """
    known = _known_columns(original, scenario)
    if not known or not len(original):
        return None
    rules = ChartRules.of(public=public)
    sizes = {"original": _sizes(original, known)}
    for key, table in releases.items():
        with suppress(DataError):  # a release with columns of another kind, which do not compare
            sizes[key] = _sizes(table, known)
    limits = _limits(max(int(each.max(initial=1)) for each in sizes.values()))
    counts = {key: _counts(each, limits) for key, each in sizes.items()}
    payload: dict[str, Any] = {"columns": list(known), "groups": [], "shares": {}, "suppressed": []}
    shown, merged = _tables_to_show(counts, rules)
    if not shown:
        few = f"groups of fewer than {rules.floor} records"
        return {**payload, "note": f"Suppressed: class sizes cannot be shown without {few}."}
    shares = merged_shares(np.stack([counts[key] for key in shown]), merged, rules)
    return {
        **payload,
        "groups": [[int(limits[start]), int(limits[stop]) - 1] for start, stop in merged],
        "shares": dict(zip(shown, shares, strict=True)),
        "suppressed": [key for key in counts if key not in shown],
    }


def _known_columns(original: Table, scenario: Scenario) -> tuple[str, ...]:
    known = Evidence(original, scenario=scenario).known_columns
    return tuple(name for name in known if original.schema[name].kind is not Kind.SET)


def _sizes(table: Table, known: Sequence[str]) -> Ints:
    """The sizes of the classes of a table, by the columns it still has."""
    return Classes.of(table, [name for name in known if name in table.schema]).members


def _limits(largest: int) -> Ints:
    """Where the groups begin, and where the last one ends: 1, 2, 3, 5, 10, 20, 50, 100 and so on."""
    decades = range(len(str(largest)) + 1)
    starts = sorted({3, *(step * 10**decade for decade in decades for step in _STEPS)})
    groups = max(_MIN_GROUPS_SHOWN, sum(start <= largest for start in starts))
    return np.array(starts[: groups + 1], dtype=np.int64)


def _counts(sizes: Ints, limits: Ints) -> Ints:
    """How many records are in classes of each group of sizes."""
    places = np.searchsorted(limits, sizes, side="right") - 1
    return np.bincount(places, weights=sizes, minlength=len(limits) - 1).astype(np.int64)


def _tables_to_show(counts: Mapping[str, Ints], rules: ChartRules) -> tuple[list[str], list[tuple[int, int]]]:
    """The tables that can be shown together, the original and the best methods first, and their groups."""
    shown: list[str] = []
    groups: list[tuple[int, int]] = []
    for key in counts:
        together = np.stack([counts[each] for each in (*shown, key)])
        merged = merge_neighbours(together, lambda some: rules.allow(some.sum(axis=1)))
        if len(merged) > 1:
            shown, groups = [*shown, key], merged
        elif not shown:
            break  # not even the original
    return shown, groups


def size_group(group: Sequence[int]) -> str:
    """A group of sizes in words: 1, 2, 3–4, 5–9."""
    first, last = group
    return f"{first:,}" if first == last else f"{first:,}–{last:,}"

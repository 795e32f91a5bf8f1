"""Before and after: how each protected column is distributed in the original and in the releases."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sfumato.data.dominance import is_dominated
from sfumato.data.generalised.nodes import WILDCARD, Nodes
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.errors import DataError
from sfumato.kernels.arrays import Floats, Ints
from sfumato.report.values import (
    MOST_BARS,
    OTHERS,
    ChartRules,
    counts_of,
    is_measured,
    merge_neighbours,
    merged_shares,
    numbers_of,
    order_of,
)

_DAY = 86_400_000.0
_MOST_BINS = 40
#: How far, in spans of the original, a release may stretch the axis.
_STRETCH = 0.5
#: An axis is logarithmic when the tails of the original lie this many times apart, and half of the records
#: crowd in this share of what lies between.
_LOG_FROM, _CROWDED = 100.0, 0.15
#: The round numbers of a decade, from coarse to fine.
_SERIES = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8))


def distributions(
    original: Table, releases: Mapping[str, Table], columns: Sequence[str], *, public: bool
) -> list[dict[str, Any]]:
    """Summarise the columns of the original and of the releases (by key), ready to be drawn."""
    rules = ChartRules.of(public=public)
    return [_distribution(original, releases, name, rules) for name in columns]


def _distribution(
    original: Table, releases: Mapping[str, Table], name: str, rules: ChartRules
) -> dict[str, Any]:
    column = original.schema[name]
    payload: dict[str, Any] = {"column": name, "label": column.label, "kind": column.kind.value, "drawn": ""}
    tables = {"original": original, **{k: t for k, t in releases.items() if name in t.schema}}
    payload["missing"] = {
        key: rules.share(int(table.missing(name).sum()), len(table)) for key, table in tables.items()
    }
    try:
        found = (
            _numeric_distribution(tables, name, rules)
            if is_measured(original, name)
            else _category_counts(tables, name, rules)
        )
    except DataError:
        found = {"note": "A release has values of another kind, which cannot be drawn on the same axis."}
    return {**payload, **found}


# Numbers and dates -------------------------------------------------------------------------------------


def _numeric_distribution(tables: Mapping[str, Table], name: str, rules: ChartRules) -> dict[str, Any]:
    original = tables["original"]
    columns = {key: numbers_of(table, name, like=original) for key, table in tables.items()}
    columns = {key: np.sort(values[~np.isnan(values)]) for key, values in columns.items()}
    values = columns["original"]
    if not len(values):
        return {"note": "The original has no values in this column."}
    if values[0] == values[-1]:
        return {"note": "The original has the same value in every record."}
    axis = _axis(columns, rules, date=original.schema[name].kind is Kind.DATE)
    counts = np.stack([_count(sorted_values, axis.edges) for sorted_values in columns.values()])
    groups = _groups(counts, rules)
    if len(groups) < 2:  # noqa: PLR2004  — one bar is no distribution
        return {"note": _too_few(rules)}
    edges = axis.edges[[start - 1 for start, _ in groups[1:]]]
    shares = merged_shares(counts, groups, rules)
    return {
        "drawn": "histogram",
        "axis": axis.kind,
        "whole": axis.whole,
        "edges": [_plain(edge) for edge in edges],
        "step": axis.step,
        "shares": dict(zip(columns, shares, strict=True)),
        "quantiles": _quantiles(columns, rules, axis),
    }


@dataclass(frozen=True)
class _BinnedAxis:
    """Where the bins are cut; the first and the last bin are open.

    ``step`` is the usual distance of two edges (their ratio on a logarithmic axis). An edge of ``whole``
    numbers lies between two of them.
    """

    kind: Literal["number", "log", "date"]
    edges: Floats
    step: float
    whole: bool = False

    def round_value(self, value: float, rules: ChartRules) -> float:
        """A value, no finer than an eye can see; in public two digits, as of a mean that hides its parts."""
        if self.kind == "log":
            return float(f"{value:.{2 if rules.coarse else 4}g}")
        unit = 10.0 ** math.floor(math.log10(self.step / (10 if rules.coarse else 1000)))
        return _plain(round(value / unit) * unit)


def _axis(columns: Mapping[str, Floats], rules: ChartRules, *, date: bool) -> _BinnedAxis:
    """Cut at round numbers between the tails of the original, logarithmically when these are far apart.

    An edge lies strictly inside, so that none can be the smallest or the largest value.
    """
    values = columns["original"]
    bins = min(_MOST_BINS, max(8, math.ceil(2 * len(values) ** (1 / 3))))
    low, middle, high = (float(end) for end in np.quantile(values, [rules.tail, 0.5, 1 - rules.tail]))
    if not date and low > 0 and high / low >= _LOG_FROM and middle - low < _CROWDED * (high - low):
        edges, ratio = _log_edges(low, high, bins)
        return _BinnedAxis("log", edges, ratio)
    low, high = _limits(columns, rules)
    unit = _DAY if date else 1.0
    step = _round_step((high - low) / unit / bins) * unit
    whole = not date and bool((values == np.rint(values)).all())
    if whole:
        step = max(step, 1.0)
    shift = 0.5 if whole else 0.0
    first, last = math.floor(low / step), math.ceil(high / step)
    edges = np.array([_plain(place * step - shift) for place in range(first, last + 2)])
    return _BinnedAxis("date" if date else "number", edges[(edges > low) & (edges < high)], step, whole)


def _log_edges(low: float, high: float, bins: int) -> tuple[Floats, float]:
    """Round numbers with about the same ratio, and that ratio: 1, 2, 5, 10 or a finer or coarser series."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    wanted = bins / math.log10(high / low)
    series = min(_SERIES, key=lambda factors: abs(len(factors) - wanted))
    edges = np.array([float(f"{factor}e{decade}") for decade in decades for factor in series])
    return edges[(edges > low) & (edges < high)], 10.0 ** (1 / len(series))


def _limits(columns: Mapping[str, Floats], rules: ChartRules) -> tuple[float, float]:
    tails = [rules.tail, 1 - rules.tail]
    ends = {key: np.quantile(values, tails) for key, values in columns.items() if len(values)}
    low, high = ends["original"]
    if rules.coarse:
        return float(low), float(high)
    if low == high:
        low, high = columns["original"][0], columns["original"][-1]
    reach = _STRETCH * (high - low)
    lowest = max(low - reach, min(end[0] for end in ends.values()))
    highest = min(high + reach, max(end[1] for end in ends.values()))
    return float(min(low, lowest)), float(max(high, highest))


def _round_step(raw: float) -> float:
    """The next of 1, 2, 5, 10, 20 … that is not smaller."""
    if raw <= 0:
        return 1.0
    magnitude = 10.0 ** math.floor(math.log10(raw))
    return next(factor * magnitude for factor in (1, 2, 5, 10) if factor * magnitude >= raw * (1 - 1e-9))


def _count(sorted_values: Floats, edges: Floats) -> Ints:
    """How many values lie below the first edge, between each two, and from the last one on."""
    places = np.searchsorted(sorted_values, edges, side="left")
    return np.diff(np.concatenate([[0], places, [len(sorted_values)]])).astype(np.int64)


def _groups(counts: Ints, rules: ChartRules) -> list[tuple[int, int]]:
    """Merge neighbouring bins until all may be shown; the first row of ``counts`` is the original."""
    if not rules.coarse:
        return [(place, place + 1) for place in range(counts.shape[1])]
    return merge_neighbours(counts, lambda some: _enough(some, rules))


def _enough(counts: Ints, rules: ChartRules) -> bool:
    totals = counts.sum(axis=1)
    return bool(totals[0] >= rules.floor) and rules.allow(totals)


def _quantiles(columns: Mapping[str, Floats], rules: ChartRules, axis: _BinnedAxis) -> dict[str, Any] | None:
    """Quantiles of each table that is large enough; in the coarse form the mean of the values around each."""
    large = {key: values for key, values in columns.items() if len(values) >= rules.records}
    if "original" not in large:
        return None
    levels = np.arange(1, rules.quantiles + 1) / (rules.quantiles + 1)
    found = {}
    for key, values in large.items():
        if rules.coarse:
            places = np.rint(levels * len(values)).astype(np.int64) - rules.floor // 2
            exact = np.array([_level(values[place : place + rules.floor]) for place in places])
        else:
            exact = np.quantile(values, levels)
        found[key] = [axis.round_value(value, rules) for value in exact.tolist()]
    return {"levels": [_plain(level) for level in levels], "values": found}


def _level(sorted_values: Floats) -> float:
    """The mean of neighbouring values; the median where the farthest would follow from the mean."""
    dominated = is_dominated(sorted_values - sorted_values[0])
    return float(np.median(sorted_values) if dominated else sorted_values.mean())


def _plain(value: float) -> float:
    """Without the dust of binary fractions."""
    return float(f"{value:.10g}")


# Values one by one -------------------------------------------------------------------------------------


def _category_counts(tables: Mapping[str, Table], name: str, rules: ChartRules) -> dict[str, Any]:
    by_table = {key: counts_of(table, name) for key, table in tables.items()}
    if rules.coarse:
        enough = (value for value, count in by_table["original"].items() if count >= rules.floor)
        frequent = frozenset(enough)
        by_table |= {
            key: _discreet(by_table[key], table.nodes.get(name), frequent)
            for key, table in tables.items()
            if table.is_generalised(name)
        }
    values = sorted(set().union(*by_table.values()))
    if not by_table["original"]:
        return {"note": "The original has no values in this column."}
    counts = np.array([[by_table[key].get(value, 0) for value in values] for key in tables], dtype=np.int64)
    shown, others = _values_to_show(counts, rules)
    if not shown or (len(shown) == 1 and not others):
        same = len(values) == 1 and not rules.coarse
        return {"note": "The original has the same value in every record." if same else _too_few(rules)}
    ordered = sorted(shown, key=_sort_key(tables["original"], name, values, counts))
    rows = counts[:, ordered]
    if others:
        rows = np.concatenate([rows, counts[:, others].sum(axis=1, keepdims=True)], axis=1)
    # Rounded as well: shares of an exact number of records would tell how few are missing.
    present = rules.round_counts(np.array([int((~each.missing(name)).sum()) for each in tables.values()]))
    rounded = rules.round_counts(rows) / np.maximum(present, 1)[:, None]
    return {
        "drawn": "bars",
        "categories": [values[place] for place in ordered] + ([OTHERS] if others else []),
        "shares": dict(zip(tables, np.minimum(np.round(rounded, 4), 1).tolist(), strict=True)),
    }


def _discreet(counts: Mapping[str, int], nodes: Nodes | None, frequent: frozenset[str]) -> Mapping[str, int]:
    """The counts of groups under names in which no value stands that few have in the original."""
    found = Counter[str]()
    for label, count in counts.items():
        found[_name(label, nodes, frequent)] += count
    return found


def _name(label: str, nodes: Nodes | None, frequent: frozenset[str]) -> str:
    if label in frequent or label == WILDCARD:
        return label
    if nodes is None:
        ends = label.strip("[]").split(";")
        return "[" + ";".join(end if end in frequent or not end else "…" for end in ends) + "]"
    members = nodes.members_of(nodes.labels.index_of(label) or 0)
    if not any(value in label for value in members if value not in frequent):
        return label
    return "{" + "|".join([*(value for value in members if value in frequent), "…"]) + "}"


def _values_to_show(counts: Ints, rules: ChartRules) -> tuple[list[int], list[int]]:
    """The values to show, most frequent first, and those to put together as others."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    frequent = np.argsort(-shares.max(axis=0), kind="stable")
    shown = [int(place) for place in frequent[:MOST_BARS] if rules.allow(counts[:, place])]
    others = sorted(set(range(counts.shape[1])) - set(shown))
    while shown and not rules.allow(counts[:, others].sum(axis=1)):  # a few others could be told apart
        others.append(shown.pop())
    return shown, others


def _sort_key(original: Table, name: str, values: Sequence[str], counts: Ints) -> Any:
    """Sort ordinal values by their order, nominal ones by how frequent they are in the original."""
    if original.schema[name].kind is not Kind.ORDINAL:
        return lambda place: (-counts[0, place], values[place])
    places = {value: place for place, value in enumerate(order_of(original, name))}
    return lambda place: (places.get(values[place], len(places)), values[place])


def _too_few(rules: ChartRules) -> str:
    if not rules.coarse:
        return "There are too few records to draw a distribution."
    return f"Suppressed: a chart would show fewer than {rules.floor} records or the ends of the distribution."

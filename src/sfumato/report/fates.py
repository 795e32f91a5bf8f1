"""What happened to the columns of a release: each under one heading, of what the twin tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.core import registry
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Role
from sfumato.study.losses import named

Column = Mapping[str, Any]

CHANGED, MENDED, WEIGHTS = "Changed in several ways", "Mended", "Weights smoothed"
RENAMED, AS_THEY_WERE, LEFT_OUT = "Replaced by pseudonyms", "As they were", "Left out"
_DRAWN = "Drawn anew"
#: The headings of what `Loss.outcome` says, in the order in which they are told.
_HEADINGS = {
    "ranges": "Shown as ranges",
    "groups": "Shown as groups of values",
    "made anew": _DRAWN,
    "suppressed": "Some cells suppressed",
    "renamed": RENAMED,
    "untouched": AS_THEY_WERE,
    "left out": LEFT_OUT,
}
#: The headings of values that changed, by the family of the method that changed them.
_BY_FAMILY = {
    "noise": "Noise added",
    "differential privacy": "Noise added",
    "swapping and shuffling": "Exchanged between records, or for other values",
    "microaggregation": "Replaced by means of records alike",
    "rounding and coding": "Rounded, or cut at the ends",
    "drawing anew": _DRAWN,
}
#: Headings of which nothing more is to be said of a column.
ONLY_NAMED = frozenset({RENAMED, AS_THEY_WERE, LEFT_OUT})
_ORDER = (
    "Shown as ranges", "Shown as groups of values", *dict.fromkeys(_BY_FAMILY.values()), CHANGED, MENDED,
    WEIGHTS, "Some cells suppressed", RENAMED, AS_THEY_WERE, LEFT_OUT,
)  # fmt: skip
#: So many columns are named in a sentence; more are counted.
_MOST_NAMED = 4


def by_fate(columns: Sequence[Column], steps: Sequence[Mapping[str, Any]]) -> dict[str, list[Column]]:
    """The columns under headings of what happened to them, each under one."""
    found: dict[str, list[Column]] = {heading: [] for heading in _ORDER}
    for column in columns:
        found[_heading(column, steps)].append(column)
    return {heading: own for heading, own in found.items() if own}


def steps_on(columns: Sequence[Column], steps: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The steps that were taken on any of these columns."""
    names = {each["column"] for each in columns}
    return [step for step in steps if not names.isdisjoint(step["columns"])]


def _heading(column: Column, steps: Sequence[Mapping[str, Any]]) -> str:
    if column["outcome"] != "changed":
        return _HEADINGS[column["outcome"]]
    own = steps_on([column], steps)
    if not own:
        return WEIGHTS if column["role"] == Role.WEIGHT else MENDED
    families = {registry.method(step["method"]).family for step in own}
    headings = {_BY_FAMILY.get(family, CHANGED) for family in families}
    return headings.pop() if len(headings) == 1 else CHANGED


def loss_sentence(columns: Sequence[Column], steps: Sequence[Mapping[str, Any]]) -> str:
    """What was lost, in one sentence: the columns by what happened to them."""
    parts = []
    for heading, own in by_fate(columns, steps).items():
        is_told = heading not in ONLY_NAMED and len(own) <= _MOST_NAMED
        names = [each["column"] for each in own]
        said = "; ".join(each["became"] for each in own) if is_told else named_or_counted(names)
        parts.append(f"{heading[:1].lower()}{heading[1:]} ({said})")
    return f"What was lost: {', '.join(parts)}."


def intruder_sentence(
    scenarios: Sequence[Mapping[str, Any]], requirements: Sequence[Mapping[str, Any]]
) -> str:
    """Against whom the release was judged, in one sentence."""
    if all(each["judges"] != "risk" for each in requirements):
        return "Against nobody: nothing was required of its risk."
    judged = [
        f"{_called(each['name'])} who knows {named_or_counted(each['columns'])}"
        for each in scenarios
        if each["judged"]
    ]
    return f"Judged against {'; '.join(judged)}."


def _called(name: str) -> str:
    return "somebody" if name == Scenario().name else f"“{name}”,"


def named_or_counted(names: Sequence[str]) -> str:
    """A few columns by their names, more by their number."""
    if not names:
        return "nothing"
    return named(names) if len(names) <= _MOST_NAMED else f"{len(names)} columns"

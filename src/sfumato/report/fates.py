"""What happened to the columns of a release: each under one heading, of what the twin tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.core import registry
from sfumato.core.release import Provenance
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Role, Schema
from sfumato.methods._centres import centre_for
from sfumato.study.column_sentences import join_names

Column = Mapping[str, Any]

CHANGED, MENDED, WEIGHTS = "Changed in several ways", "Mended", "Weights smoothed"
RENAMED, AS_THEY_WERE, LEFT_OUT = "Replaced by pseudonyms", "As they were", "Left out"
EMPTIED, _DRAWN, _BY_CHANCE = "Emptied", "Drawn anew", "Changed to other categories by chance"
_NOISE, _EXCHANGED, _ROUNDED = "Noise added", "Exchanged between records", "Rounded, or cut at the ends"
_NOISY_MEAN = "Replaced by means of records alike, with noise"
_RANGES, _GROUPS, _SUPPRESSED = "Shown as ranges", "Shown as groups of values", "Some cells suppressed"
#: The headings of what `Loss.outcome` says.
_HEADINGS = {
    "ranges": _RANGES, "groups": _GROUPS, "made anew": _DRAWN, "suppressed": _SUPPRESSED, "emptied": EMPTIED,
    "renamed": RENAMED, "untouched": AS_THEY_WERE, "left out": LEFT_OUT,
}  # fmt: skip
#: The headings of values that changed: by what stands for records alike, by the method, or by its family.
_BY_CENTRE = {
    "mean": "Replaced by the mean of records alike",
    "median": "Replaced by the median of records alike",
    "mode": "Replaced by the most frequent value of records alike",
}
_BY_METHOD = {
    "pram": _BY_CHANCE, "private-response": _BY_CHANCE, "private-microaggregation": _NOISY_MEAN,
}  # fmt: skip
_BY_FAMILY = {
    "noise": _NOISE, "differential privacy": _NOISE, "swapping and shuffling": _EXCHANGED,
    "rounding and coding": _ROUNDED, "drawing anew": _DRAWN,
}  # fmt: skip
#: What a value of the release is, under each heading.
VALUES: Mapping[str, str] = {
    _BY_CENTRE["mean"]: "Each value is the mean of several people: nobody’s own, unless they share it.",
    _BY_CENTRE["median"]: "Each value is the middle one of several people: often somebody’s own.",
    _BY_CENTRE["mode"]: "Each value is the most frequent one of several people: as a rule somebody’s own.",
    _NOISY_MEAN: "Each value is the mean of several people, moved by chance.",
    _NOISE: "Each value is the person’s own, moved by chance.",
    _EXCHANGED: "Each value is somebody’s own, mostly somebody else’s.",
    _BY_CHANCE: "Each value is the person’s own category, or another one by chance.",
    _ROUNDED: "Each value is the person’s own, rounded or cut.",
    _DRAWN: "Each value was drawn, from a model or from the values that were there: somebody may have it.",
}
#: What to correct for where the centre of records alike is not their mean, of which methods say it.
CORRECTIONS: Mapping[str, str] = {
    _BY_CENTRE["median"]: (
        "The middle of a small group stands for all of it: medians nearly hold; means, tails and rare values "
        "do not, variances shrink, and what was grouped together is more alike than it was."
    ),
    _BY_CENTRE["mode"]: (
        "The most frequent value of a small group stands for all of it: frequent values gain, rare ones lose "
        "or are gone, and what was grouped together is more alike than it was."
    ),
}
#: Headings of which nothing more is to be said of a column.
ONLY_NAMED = frozenset({EMPTIED, RENAMED, AS_THEY_WERE, LEFT_OUT})
_ORDER = (
    _RANGES, _GROUPS, *_BY_CENTRE.values(), _NOISY_MEAN, _NOISE, _EXCHANGED, _BY_CHANCE, _ROUNDED, _DRAWN,
    CHANGED, MENDED, WEIGHTS, _SUPPRESSED, EMPTIED, RENAMED, AS_THEY_WERE, LEFT_OUT,
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
    headings = {_heading_of(step, column["column"]) for step in own}
    return headings.pop() if len(headings) == 1 else CHANGED


def _heading_of(step: Mapping[str, Any], column: str) -> str:
    """What a step makes of the values of a column, as a heading."""
    if centre := step.get("centres", {}).get(column):
        return _BY_CENTRE[centre]
    method = registry.method(step["method"])
    return _BY_METHOD.get(method.name) or _BY_FAMILY.get(method.family, CHANGED)


def centres_of(taken: Provenance, schema: Schema) -> dict[str, str]:
    """Which centre of records alike a step shows by column: mean, median or mode; empty for other steps."""
    became = taken.parameters.get("centre", "auto" if taken.parameters.get("show") == "centre" else None)
    if became is None:
        return {}
    wishes = {"default": "auto", **(became if isinstance(became, Mapping) else {"default": became})}
    there = [schema[name] for name in taken.columns if name in schema]
    found = {each.name: centre_for(each, wishes.get(each.name, wishes["default"])) for each in there}
    return {name: centre for name, centre in found.items() if centre}


def more_than_fate(column: Column) -> bool:
    """Whether there is more to say of a column than what happened to all under its heading."""
    return bool(column["became"] != f"{column['column']} {column['outcome']}")


def happened(heading: str, column: Column) -> str:
    """What happened to a column, in a line that stands alone."""
    return f"{heading}: {column['became']}" if more_than_fate(column) else heading


def loss_sentences(columns: Sequence[Column], steps: Sequence[Mapping[str, Any]]) -> str:
    """What was lost, in a sentence for each thing that happened to columns."""
    parts = ["What was lost."]
    for heading, own in by_fate(columns, steps).items():
        is_told = len(own) <= _MOST_NAMED and any(map(more_than_fate, own))
        names = [each["column"] for each in own]
        became = "; ".join(each["became"] for each in own) if is_told else names_or_count(names)
        parts.append(f"{heading}: {became}.")
    return " ".join(parts)


def intruder_sentence(
    scenarios: Sequence[Mapping[str, Any]], requirements: Sequence[Mapping[str, Any]]
) -> str:
    """Against whom the release was judged, in one sentence."""
    if all(each["judges"] != "risk" for each in requirements):
        return "Against nobody: nothing was required of its risk."
    judged = [
        f"{_scenario_name(each['name'])} who knows {names_or_count(each['columns'])}"
        for each in scenarios
        if each["judged"]
    ]
    return f"Judged against {'; '.join(judged)}."


def _scenario_name(name: str) -> str:
    return "somebody" if name == Scenario().name else f"“{name}”,"


def names_or_count(names: Sequence[str]) -> str:
    """A few columns by their names, more by their number."""
    if not names:
        return "nothing"
    return join_names(names) if len(names) <= _MOST_NAMED else f"{len(names)} columns"

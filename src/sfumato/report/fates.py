"""What happened to the columns of a release: each under one heading, from what the twin holds."""

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

CHANGED, CORRECTED, WEIGHTS = "Changed in several ways", "Corrected", "Weights smoothed"
RENAMED, UNCHANGED, REMOVED = "Replaced by pseudonyms", "Unchanged", "Removed"
EMPTIED, _SYNTHETIC, _AT_RANDOM = "All cells suppressed", "Synthetic values", "Categories changed at random"
_NOISE, _SWAPPED, _ROUNDED = "Noise added", "Swapped between records", "Rounded, or top- and bottom-coded"
_NOISY_MEAN = "Replaced by noisy means of similar records"
_RANGES, _GROUPS, _SUPPRESSED = "Shown as ranges", "Shown as groups of values", "Some cells suppressed"
#: The headings of what `Loss.outcome` says.
_HEADINGS = {
    "ranges": _RANGES, "groups": _GROUPS, "made anew": _SYNTHETIC, "suppressed": _SUPPRESSED,
    "emptied": EMPTIED, "renamed": RENAMED, "untouched": UNCHANGED, "left out": REMOVED,
}  # fmt: skip
#: The headings of values that changed: by the centre of similar records, the method, or its family.
_BY_CENTRE = {
    "mean": "Replaced by the mean of similar records",
    "median": "Replaced by the median of similar records",
    "mode": "Replaced by the most frequent value of similar records",
    "trimmed": "Replaced by the trimmed mean of similar records",
}
_BY_METHOD = {
    "pram": _AT_RANDOM, "private-response": _AT_RANDOM, "private-microaggregation": _NOISY_MEAN,
}  # fmt: skip
_BY_FAMILY = {
    "noise": _NOISE, "differential privacy": _NOISE, "swapping and shuffling": _SWAPPED,
    "rounding and coding": _ROUNDED, "synthetic data": _SYNTHETIC,
}  # fmt: skip
#: What a value of the release is, under each heading.
VALUES: Mapping[str, str] = {
    _BY_CENTRE["mean"]: "Each value is the mean of several people, a person’s own only if they share it.",
    _BY_CENTRE["median"]: "Each value is the median of several people, often one person’s own.",
    _BY_CENTRE["mode"]: "Each value is the most frequent one of several people, usually one person’s own.",
    _BY_CENTRE[
        "trimmed"
    ]: "Each value is the mean of those in the middle of several people, or one person’s own.",
    _NOISY_MEAN: "Each value is the mean of several people, with random noise.",
    _NOISE: "Each value is the person’s own, with random noise.",
    _SWAPPED: "Each value is a real person’s, mostly another person’s.",
    _AT_RANDOM: "Each value is the person’s own category or, at random, another one.",
    _ROUNDED: "Each value is the person’s own, rounded or limited to a range.",
    _SYNTHETIC: "Each value was drawn from a model or from the original values; real people may have it.",
}
#: What to correct for where the centre of similar records is not their mean, for which methods say it.
CORRECTIONS: Mapping[str, str] = {
    _BY_CENTRE["median"]: (
        "The median of a small group replaces all its values: medians nearly hold; means, tails and rare "
        "values do not, variances shrink, and records of one group are more similar than they were."
    ),
    _BY_CENTRE["trimmed"]: (
        "The trimmed mean of a small group replaces all its values: means, tails and rare values do not "
        "hold, variances shrink, and records of one group are more similar than they were."
    ),
    _BY_CENTRE["mode"]: (
        "The most frequent value of a small group replaces all its values: frequent values gain, rare ones "
        "lose or disappear, and records of one group are more similar than they were."
    ),
}
_ORDER = (
    _RANGES, _GROUPS, *_BY_CENTRE.values(), _NOISY_MEAN, _NOISE, _SWAPPED, _AT_RANDOM, _ROUNDED, _SYNTHETIC,
    CHANGED, CORRECTED, WEIGHTS, _SUPPRESSED, EMPTIED, RENAMED, UNCHANGED, REMOVED,
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
        return WEIGHTS if column["role"] == Role.WEIGHT else CORRECTED
    headings = {_heading_of(step, column["column"]) for step in own}
    return headings.pop() if len(headings) == 1 else CHANGED


def _heading_of(step: Mapping[str, Any], column: str) -> str:
    """What a step makes of the values of a column, as a heading."""
    if centre := step.get("centres", {}).get(column):
        return _BY_CENTRE[centre]
    method = registry.method(step["method"])
    return _BY_METHOD.get(method.name) or _BY_FAMILY.get(method.family, CHANGED)


def centres_of(taken: Provenance, schema: Schema) -> dict[str, str]:
    """Which centre of similar records a step shows by column: mean, median or mode; empty for other steps."""
    became = taken.parameters.get("centre", "auto" if taken.parameters.get("show") == "centre" else None)
    if became is None:
        return {}
    wishes = {"default": "auto", **(became if isinstance(became, Mapping) else {"default": became})}
    there = [schema[name] for name in taken.columns if name in schema]
    found = {each.name: centre_for(each, wishes.get(each.name, wishes["default"])) for each in there}
    return {name: centre for name, centre in found.items() if centre}


def more_than_fate(column: Column) -> bool:
    """Whether more happened to a column than to all under its heading."""
    return bool(column["became"] != f"{column['column']} {column['outcome']}")


def happened(heading: str, column: Column) -> str:
    """What happened to a column, in a line that stands alone."""
    return _under(heading, column["became"]) if more_than_fate(column) else heading


def _under(heading: str, became: str) -> str:
    """A sentence under its heading; ranges, groups and suppressed cells say it themselves."""
    return became if heading in {_RANGES, _GROUPS, _SUPPRESSED} else f"{heading}: {became}"


def loss_sentences(columns: Sequence[Column], steps: Sequence[Mapping[str, Any]]) -> str:
    """What was lost, in a sentence for each thing that happened to columns."""
    parts = ["Information loss."]
    for heading, own in by_fate(columns, steps).items():
        sentence = f"{heading}: {names_or_count([each['column'] for each in own])}"
        if len(own) <= _MOST_NAMED and any(map(more_than_fate, own)):
            sentence = _under(heading, "; ".join(each["became"] for each in own))
        parts.append(f"{sentence}.")
    return " ".join(parts)


def intruder_sentence(
    scenarios: Sequence[Mapping[str, Any]], requirements: Sequence[Mapping[str, Any]]
) -> str:
    """Against whom the release was judged, in one sentence."""
    if all(each["judges"] != "risk" for each in requirements):
        return "Not judged: there is no requirement on risk."
    judged = [
        f"{_scenario_name(each['name'])} who knows {names_or_count(each['columns'])}"
        for each in scenarios
        if each["judged"]
    ]
    return f"Judged against {' and '.join(judged)}."


def _scenario_name(name: str) -> str:
    return "an intruder" if name == Scenario().name else f"the intruder “{name}”,"


def names_or_count(names: Sequence[str]) -> str:
    """A few columns by their names, more by their number."""
    if not names:
        return "nothing"
    return join_names(names) if len(names) <= _MOST_NAMED else f"{len(names)} columns"

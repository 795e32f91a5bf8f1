"""No group left behind: a measure that is scored on each group of records alone, and the worst group counts.

A group are the original's records with one value in a column, or in several, whatever the release did to
these. So ``k >= 5 in every region`` asks what ``k >= 5`` would if the original's region were one more key.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import polars as pl

from sfumato.core.approaches import Approach
from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import joining
from sfumato.core.measure import APPROACH, Measure, Score, Status
from sfumato.core.origin import Origin
from sfumato.core.parameter_types import EVERY, Resource
from sfumato.core.release import Release, reorder
from sfumato.core.run import Run
from sfumato.core.waves import SERIES
from sfumato.data.scenario import CONTROL
from sfumato.data.schema import Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import PlanError, quoted
from sfumato.kernels.arrays import Ints, count_distinct

#: The name of all groups together that are too small to be judged alone, and a value that is not there.
POOLED, NO_VALUE = "all smaller groups", "(missing)"

#: What is said of the groups by each key alone, the keys being named by nobody.
UNNAMED = ("group",)

#: What stands between the values of several columns, and in place of a missing one.
_BETWEEN, _MISSING = "\x1f", "\x00"

_EVERY = re.compile(EVERY + r"\s*$")

#: What would not be read back if it stood in the name of a column.
_UNREADABLE = re.compile(r"[+,<>=]|\sand\s|(^|\s)of\s+\d+\s*$|^\s|\s$|^$")

#: What it has of the measure that it scores in each group.
_INHERITED = (
    "name", "title", "aspect", "better", "bounds", "threat", "needs", "counts", "tells", "kinds",
    "references", "cost", "state", "family", "parameters", "summary", "description", "describe", "side",
    "places", "computed_from",
)  # fmt: skip


@dataclass(frozen=True)
class Groups:
    """The columns whose values make groups; those of fewer records than ``at_least`` are judged as one."""

    columns: tuple[str, ...]
    at_least: int = 1

    def __post_init__(self) -> None:
        wrong = [name for name in self.columns if _UNREADABLE.search(name)]
        if wrong or not self.columns or len(set(self.columns)) < len(self.columns) or self.at_least < 1:
            raise PlanError(
                f"`{self}` does not name groups: one or more columns, each once",
                hint="write it like `in every region` or `in every region+sex of 200`",
            )

    @classmethod
    def cut(cls, text: str) -> tuple[str, Self | None]:
        """Take the groups off a requirement or measure, if it names some."""
        form = _EVERY.search(text)
        if form is None:
            return text, None
        columns = tuple(name.strip() for name in form["every"].split("+"))
        return text[: form.start()], cls(columns, int(form["at_least"] or 1))

    def __str__(self) -> str:
        size = f" of {self.at_least}" if self.at_least > 1 else ""
        return f"in every {'+'.join(self.columns)}{size}"

    def sorts_in(self, schema: Schema) -> tuple[Self, ...]:
        """These groups; of *every group*, which is no column, those by each key alone."""
        if self.columns != UNNAMED or UNNAMED[0] in schema:
            return (self,)
        return tuple(replace(self, columns=(name,)) for name in schema.known_columns())

    def refuses(self, table: Table) -> str | None:
        """Why the records of a table are not of these groups; None if they are."""
        sorts = self.sorts_in(table.schema)
        if sorts != (self,):
            reasons = (each.refuses(table) for each in sorts)
            nothing = f"a score {self} takes the values of each key, and no column is a key"
            return next(filter(None, reasons), None) if sorts else nothing
        lacking = [name for name in self.columns if name not in table.schema]
        if lacking:
            return f"a score {self} needs {quoted(lacking, ' and ')}, which is no column"
        coarse = [n for n in self.columns if table.is_generalised(n) or table.schema[n].kind is Kind.SET]
        if coarse:
            return f"a score {self} needs one value in each cell of {quoted(coarse, ' and ')}"
        return None

    def of_records(self, table: Table) -> pl.Series:
        """The group of each record, as text; missing values and codes for them are one value."""
        texts = [_as_text(table, name) for name in self.columns]
        return pl.DataFrame([each.alias(str(place)) for place, each in enumerate(texts)]).select(
            group=pl.concat_str(pl.all(), separator=_BETWEEN)
        )["group"]


@dataclass(frozen=True, eq=False)
class Grouping:
    """The groups of an original: which are judged ``alone``, the others being pooled."""

    groups: Groups
    alone: pl.Series = field(repr=False)

    @classmethod
    def of(cls, table: Table, groups: Groups) -> Self:
        """Count the records of each group."""
        counts = np.ones(len(table), dtype=np.int64) if table.counts is None else table.counts
        found = pl.DataFrame({"group": groups.of_records(table), "n": counts}).group_by("group").sum()
        return cls(groups, found.filter(pl.col("n") >= groups.at_least)["group"])

    def rows_in(self, table: Table) -> dict[str, Ints]:
        """The rows of each group in a table, in an order that is not that of the file."""
        names = self.groups.of_records(table)
        if self.groups.at_least > 1:
            names = names.set(~names.is_in(self.alone.implode()), POOLED)
        found = pl.DataFrame({"group": names}).with_row_index("row").group_by("group", maintain_order=True)
        return {str(name): part["row"].to_numpy().astype(np.int64) for (name,), part in sorted(found)}


def _as_text(table: Table, name: str) -> pl.Series:
    """A column as text, in which 1 and 1.0 are the same."""
    series = table.frame[name]
    texts = series.cast(pl.String)
    texts = texts.str.strip_suffix(".0") if series.dtype.is_float() else texts
    return texts.set(pl.Series(table.missing(name)), _MISSING).fill_null(_MISSING)


def shown_name(group: str) -> str:
    """The name of a group for people."""
    return group.replace(_BETWEEN, " × ").replace(_MISSING, NO_VALUE)


class GroupMeasure(Measure):
    r"""Scores a measure on the records of each group alone; the worst group counts.

    .. math:: M_G(X, Y) = \operatorname{worst}_{g \in G}\; M(X_g, Y_g)

    where :math:`X_g` are the original's records of group :math:`g` and :math:`Y_g` those released of them.
    It is made by a requirement, as of ``k >= 5 in every region``. A group of which there is no number leaves
    the whole without one.
    """

    inner: Measure
    groups: Groups

    def __post_init__(self) -> None:
        for name in _INHERITED:
            object.__setattr__(self, name, getattr(self.inner, name))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)  # its settings

    def __str__(self) -> str:
        return f"{self.inner} {self.groups}"

    @property
    def ungrouped(self) -> Measure:
        """What is scored in each group."""
        return self.inner

    def with_settings(self, **settings: Any) -> Measure:
        """The same with other settings of what is scored."""
        return replace(self, inner=self.inner.with_settings(**settings))

    def quick(self) -> Measure:
        """The quick form of what is scored, in every group."""
        return replace(self, inner=self.inner.quick())

    @property
    def worst(self) -> float:
        """The worst number that a group can have."""
        return self.inner.worst

    def columns(self, evidence: Evidence) -> tuple[str, ...]:
        """The columns that are looked at within a group."""
        return self.inner.columns(evidence)

    def sentence(self, value: float) -> str:
        """Say in words what its number means for one record."""
        return f"among the records of its group, {self.inner.sentence(value)}"

    def sees_joined_records(self, evidence: Evidence) -> bool:
        """Whether records that are joined are judged as one unit within a group."""
        return self.inner.sees_joined_records(evidence)

    def concerns(self, original: Table) -> bool:
        """Whether it is shown unasked: where what is scored is, and there are such groups."""
        return self.groups.refuses(original) is None and self.inner.concerns(original)

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse what has no such groups, and a release whose records are not known to be of one."""
        return (
            self.groups.refuses(evidence.original)
            or self.inner.refuses(evidence)
            or self._why_indivisible(evidence)
            or self._why_ungrouped(evidence)
        )

    def _why_indivisible(self, evidence: Evidence) -> str | None:
        """Why evidence cannot be divided: several tables, a series, or a table that lacks the groups."""
        if evidence.release is not None and not evidence.release.plain:
            return f"a score {self.groups} needs a release of one table, whose values are their records' own"
        if SERIES in evidence.resources and "series" in self.inner.places():
            return f"{self.inner.name} judges several releases together, and cannot be scored {self.groups}"
        settings = (getattr(self.inner, declared.name) for declared in self.inner.parameters())
        used = {each for each in settings if isinstance(each, Resource)} | {evidence.scenario.external}
        used |= {CONTROL} if self.needs.control else set()
        sorts = self.groups.sorts_in(evidence.original.schema)
        for name, table in _tables_in(evidence):
            reasons = (each.refuses(table) for each in sorts if name in used)
            if (reason := next(filter(None, reasons), None)) is not None:
                return f"of `{name}`: {reason}"
        return None

    def _why_ungrouped(self, evidence: Evidence) -> str | None:
        """Why nobody can tell of which group the released records are; to a utility they may say it."""
        released = evidence.protected
        if released is None or (evidence.release is not None and evidence.release.origin.is_complete):
            return None
        why = f"{self.inner.name} {self.groups} must know the group of each released record"
        if self.aspect == "risk":
            return f"{why}, got: records that do not map to original ones"
        columns = dict.fromkeys(
            name for each in self.groups.sorts_in(evidence.original.schema) for name in each.columns
        )
        lacking = [name for name in columns if not _is_readable(released, evidence.original, name)]
        return f"{why}, and the release does not show {quoted(lacking, ' and ')}" if lacking else None

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Score every group, and return the worst; a group without a number is the worst there is."""
        parts = evidence.remember(("groups", self.groups), lambda: dict(_parts(evidence, self.groups)))
        if not parts:
            return Score.not_estimable("there is no group: the original has no records")
        scores = {
            name: self.inner.score(part.evidence, run.at("group", name)) for name, part in parts.items()
        }
        worst = self._worst_of(scores)
        by_record, worse = np.full(len(evidence.original), np.nan), self._worse_of_two
        for name, part in parts.items():
            own = scores[name].by_record
            if own is not None and len(own) == len(part.rows):
                by_record[part.rows] = worse(by_record[part.rows], own)
        score = replace(
            scores[worst],
            by_record=None if all(each.by_record is None for each in scores.values()) else by_record,
            by_value=_by_group(scores, parts),
            reason=scores[worst].reason and f"in one of the groups, {scores[worst].reason}",
            details={
                "groups": len(parts),
                **{k: v for k, v in scores[worst].details.items() if k == APPROACH},
            },
            proof=None,
        )
        return self._doubt_if_split(score, evidence, parts)

    @property
    def _worse_of_two(self) -> np.ufunc:
        """What is worse for a record that is in several groups; a number is worse than none."""
        return np.fmax if self.better == "low" else np.fmin

    def worst_group(self, values: Mapping[str, float]) -> str:
        """The name of the group with the worst value; one without is worse than any."""
        sign = 1.0 if self.better == "low" else -1.0
        return max(values, key=lambda name: math.inf if math.isnan(values[name]) else sign * values[name])

    def _worst_of(self, scores: Mapping[str, Score]) -> str:
        """The group that does worst: one without a number, one whose number is not sure, the worst number."""
        doubts = (Status.REFUSED, Status.NOT_ESTIMABLE)

        def badness(name: str) -> tuple[int, float]:
            score = scores[name]
            end = self._far_end(score)
            if score.status in doubts or math.isnan(end):
                return (3 - doubts.index(score.status) if score.status in doubts else 1), 0.0
            return 0, end if self.better == "low" else -end

        return max(scores, key=badness)

    def _doubt_if_split(self, score: Score, evidence: Evidence, parts: Mapping[str, GroupEvidence]) -> Score:
        """Call a risk uncertain where an intruder joins records of several groups: each shows only some."""
        links = joining(evidence) if self.aspect == "risk" and math.isfinite(score.value) else {}
        split = [
            name
            for name, numbers in links.items()
            for sort in {part.sort for part in parts.values()}
            if sum(count_distinct(numbers[part.places]) for part in parts.values() if part.sort == sort)
            > count_distinct(numbers)
        ]
        if not split:
            return score
        names = quoted(dict.fromkeys(split), " and ")
        reason = f"{names} joins records of several groups, and each group shows some of them"
        return self._with_doubt(score, reason)

    def _mark_as_estimate(self, score: Score, evidence: Evidence) -> Score:
        return self._doubt_if_joined(score, evidence)  # of a sample each group has said so

    def takes(self, approach: Approach) -> bool:
        """Whether a further approach may tell more of a group."""
        return self.inner.takes(approach)


@dataclass(frozen=True, eq=False)
class GroupEvidence:
    """The evidence of a group: its ``rows`` of the original, and the ``places`` of its released records."""

    sort: Groups
    rows: Ints
    places: Ints
    evidence: Evidence


def _parts(evidence: Evidence, groups: Groups) -> Iterator[tuple[str, GroupEvidence]]:
    """The evidence of each group; records that left none behind are of a group nonetheless."""
    for sort in groups.sorts_in(evidence.original.schema):
        of = "" if sort == groups else f"{sort.columns[0]} = "
        for name, part in _parts_of(evidence, sort):
            yield f"{of}{name}", part


def _parts_of(evidence: Evidence, groups: Groups) -> Iterator[tuple[str, GroupEvidence]]:
    """The same of groups of one sort."""
    original, release = evidence.original, evidence.release
    grouping = Grouping.of(original, groups)
    others = {name: grouping.rows_in(t) for name, t in _tables_in(evidence) if groups.refuses(t) is None}
    own, nobody = grouping.rows_in(original), np.empty(0, dtype=np.int64)
    places = {} if release is None else _places_of(release, grouping, own)
    for group, rows in own.items():
        there = places.get(group, nobody)
        tables = {
            name: evidence.resources[name].take(each.get(group, nobody)) for name, each in others.items()
        }
        part = replace(
            evidence,
            original=original.take(rows),
            release=None if release is None else _release_part(release, there, rows),
            resources={**evidence.resources, **tables},
            joined=evidence.joined and replace(evidence.joined, numbers=evidence.joined.numbers[there]),
        )
        yield group, GroupEvidence(groups, rows, there, part)


def _places_of(release: Release, grouping: Grouping, own: Mapping[str, Ints]) -> dict[str, Ints]:
    """Where the released records of each group stand: by their originals, else by what they show."""
    sources = release.source_rows
    if sources is None or not release.origin.is_complete:
        return grouping.rows_in(release.reading())
    number = np.empty(sum(map(len, own.values())), dtype=np.int64)
    for place, rows in enumerate(own.values()):
        number[rows] = place
    order = np.argsort(number[sources], kind="stable")
    ends = np.searchsorted(number[sources][order], np.arange(len(own) + 1))
    return {group: order[ends[place] : ends[place + 1]] for place, group in enumerate(own)}


def _release_part(release: Release, places: Ints, rows: Ints) -> Release:
    """The records in these places of a release, each with its number among these rows of the original."""
    part = reorder(release, places)
    sources = part.source_rows
    if sources is None:
        return part
    found = np.minimum(np.searchsorted(rows, sources), len(rows) - 1)
    own = np.where(rows[found] == sources, found, -1)
    is_identity = len(own) == len(rows) and bool((own == np.arange(len(own))).all())
    return replace(part, origin=Origin.identity(len(own)) if is_identity else Origin.of_rows(own))


def _tables_in(evidence: Evidence) -> Iterator[tuple[str, Table]]:
    """The other tables; hierarchies and the like are of every group."""
    for name, each in evidence.resources.items():
        if isinstance(each, Table):
            yield name, each


def _is_readable(released: Table, original: Table, name: str) -> bool:
    """Whether a release shows the values of a column one by one."""
    if name not in released.schema or released.is_generalised(name):
        return False
    return not released.missing(name).all() or bool(original.missing(name).all()) or not len(released)


def _by_group(scores: Mapping[str, Score], parts: Mapping[str, GroupEvidence]) -> dict[str, dict[str, float]]:
    """The score of each group and its records by its name: as private as cells."""
    return {
        "score": {shown_name(name): score.value for name, score in scores.items()},
        "records": {
            shown_name(name): float(part.evidence.original.n_records) for name, part in parts.items()
        },
    }

"""The hierarchy of a column: shown with counts, changed by hand, and written to a file that the plan names.

Values that few people have are counted together and never named; the file, which only you can read, has all.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sfumato.data.generalised.rare_values import known_of
from sfumato.data.hidden_content import MIN_PERSONS_NAMED
from sfumato.data.hierarchy import edit
from sfumato.data.hierarchy.grow import present_values, propose
from sfumato.data.hierarchy.proposals import proposals_for, propose_by
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.persons import persons_of
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.errors import ParameterError, SfumatoError, UnknownNameError
from sfumato.io.hierarchies import read_hierarchy, write_hierarchy
from sfumato.kernels.arrays import Codes
from sfumato.recipes.parts import Source, fingerprint
from sfumato.recipes.plan import Plan
from sfumato.releasing.request import hierarchy_resource
from sfumato.web.fields import Texts, text_of
from sfumato.web.tasks.base import Desk, read_plan, task

#: Labels of a level that are listed, those of most records.
_MOST_LISTED = 200
#: What stands for the labels of a parent that are not listed; digits of a code and of a level.
_REST, _CODE_DIGITS, _LEVEL_DIGITS = "rest-", 9, 2
#: What can be done to a hierarchy.
_CHANGES = ("put", "move", "rename", "add", "drop", "propose")


def require_number(number: int, table: Table) -> int:
    """The number of a column, if there is one."""
    if not 0 <= number < len(table.names):
        raise UnknownNameError("There is no such column.", hint="go back to the desk")
    return number


def view_hierarchy(plan: Plan, table: Table, name: str) -> dict[str, Any] | None:
    """The levels of a column's hierarchy with counts of records; None where it can have none."""
    column = table.schema[name]
    if column.kind is Kind.SET or table.is_generalised(name) or table.missing(name).all():
        return None
    content = {
        "declared": bool(column.hierarchy), "proposals": proposals_for(column), "levels": [], "note": "",
        "fewest": MIN_PERSONS_NAMED,
    }  # fmt: skip
    try:
        hierarchy = _hierarchy_of(plan, table, name)
        hierarchy.require(present_values(column, table.frame[name]), name)
    except SfumatoError as error:
        return {**content, "note": error.message}
    return {**content, "levels": _LevelCounts(hierarchy, table, name).levels()}


def _hierarchy_of(plan: Plan, table: Table, name: str) -> Hierarchy:
    """The hierarchy that the plan names for a column, or else what is proposed; it names no rare value."""
    column = table.schema[name]
    if column.hierarchy:
        hierarchy = read_hierarchy(str(plan.resources[column.hierarchy].check(plan.folder)), name=name)
    else:
        hierarchy = propose(column, present_values(column, table.frame[name]))
    return _without_rare_names(hierarchy, table, name)


def _without_rare_names(hierarchy: Hierarchy, table: Table, name: str) -> Hierarchy:
    known = known_of(table, name)
    numeric = table.schema[name].kind in {Kind.CONTINUOUS, Kind.DATE}  # there ends are round, nobody's value
    return hierarchy if known is None or numeric else edit.without_rare_names(hierarchy, known.few)


class _LevelCounts:
    """How many records and people have each label of a hierarchy."""

    def __init__(self, hierarchy: Hierarchy, table: Table, name: str) -> None:
        present, known = pl.Series(~table.missing(name)), known_of(table, name)
        self._hierarchy = hierarchy
        self._leaves = hierarchy.codes(table.frame[name].filter(present), 0)
        self._persons = pl.Series(persons_of(table)).filter(present)
        self._declared = sorted({*known.values}.difference(known.few)) if known else []

    def levels(self) -> list[dict[str, Any]]:
        """Each level with its labels in their order; those of fewest records are counted by parent."""
        counts = [self._counts(level) for level in range(self._hierarchy.height)]
        listed = [self._labels_to_name(level, each) for level, each in enumerate(counts)]
        last = len(counts) - 1
        return [
            self._level(level, each, listed[level], listed[level + 1] if level < last else None)
            for level, each in enumerate(counts)
        ]

    def _counts(self, level: int) -> pl.DataFrame:
        """Records and people of each label that somebody has, in the order of the labels."""
        codes = pl.Series(self._hierarchy.leaf_codes(level)[self._leaves])
        held = pl.DataFrame({"code": codes, "person": self._persons}).group_by("code")
        counts = held.agg(records=pl.len(), people=pl.col("person").n_unique()).sort("code")
        return counts.with_columns(label=self._hierarchy.labels(level).gather(counts["code"]))

    def _labels_to_name(self, level: int, counts: pl.DataFrame) -> pl.DataFrame:
        """The labels that enough people have, or something declares; and the root."""
        declared = pl.col("label").is_in(self._declared) & (level == 0)
        enough = pl.col("people") >= MIN_PERSONS_NAMED
        named = counts.filter(enough | declared | (level == self._hierarchy.height - 1))
        return named.sort("records", descending=True, maintain_order=True).head(_MOST_LISTED).sort("code")

    def _parents(self, level: int) -> Codes:
        """The code of the parent of each label of a level."""
        own, above = self._hierarchy.leaf_codes(level), self._hierarchy.leaf_codes(level + 1)
        found = np.zeros(len(self._hierarchy.labels(level)), dtype=np.int32)
        found[own] = above
        return found

    def _level(
        self, level: int, counts: pl.DataFrame, listed: pl.DataFrame, groups: pl.DataFrame | None
    ) -> dict[str, Any]:
        """One level; ``groups`` are those of the next that may be named, None above the root."""
        above = {} if groups is None else dict(groups.select("code", "label").iter_rows())
        parents = None if groups is None else self._parents(level)
        rest = counts.filter(~pl.col("code").is_in(listed["code"].implode()))
        labels = [
            {
                "code": str(code), "label": label, "records": records,
                "parent": "" if parents is None else above.get(int(parents[code]), ""),
            }
            for code, label, records in listed.select("code", "label", "records").iter_rows()
        ]  # fmt: skip
        return {
            "level": level,
            "count": len(counts),
            "labels": labels,
            "rest": [] if parents is None else self._rest(rest, parents, above),
            "groups": [{"code": str(code), "label": label} for code, label in above.items()],
            "is_values": level == 0,
            "is_root": groups is None,
        }

    def _rest(self, rest: pl.DataFrame, parents: Codes, above: dict[int, str]) -> list[dict[str, Any]]:
        """What is not listed, by parent: how many labels, how many records."""
        owner = pl.Series("parent", parents[rest["code"].to_numpy()])
        groups = rest.with_columns(owner).group_by("parent", maintain_order=True)
        return [
            {
                "code": f"{_REST}{parent}",
                "labels": labels,
                "records": records,
                "parent": above.get(parent, ""),
            }
            for parent, labels, records in groups.agg(pl.len(), pl.col("records").sum()).iter_rows()
        ]

    def codes_of(self, level: int, ticked: Sequence[str]) -> list[int]:
        """The codes of what was ticked; the rest of a parent with all that nobody listed there."""
        own = [int(each) for each in ticked if each.isdecimal() and len(each) <= _CODE_DIGITS]
        rest = [each.removeprefix(_REST) for each in ticked if each.startswith(_REST)]
        if rest:
            parents = self._parents(level)
            listed = set(self._labels_to_name(level, self._counts(level))["code"])
            own += [
                code
                for code, parent in enumerate(parents.tolist())
                if str(parent) in rest and code not in listed
            ]
        return own


# Changes ------------------------------------------------------------------------------------------------


@task
def edit_hierarchy(desk: Desk, toml: str, *, number: int, texts: Texts) -> dict[str, Any]:
    """A plan whose column has another hierarchy, in a file that is written here; or why not."""
    plan = read_plan(toml)
    table = desk.table(plan)
    name = table.names[require_number(number, table)]
    try:
        changed = _without_rare_names(_change(plan, table, name, texts), table, name)
    except SfumatoError as error:
        level = text_of(texts, "level") if text_of(texts, "do") != "propose" else ""
        return {
            "refusal": {"sentence": error.message, "hint": error.hint, "level": level, "texts": dict(texts)}
        }
    path = _write(changed, plan, name)
    resource = hierarchy_resource(name)
    source = Source(path, holds="hierarchy", sha256=fingerprint(Path(path)))
    assert plan.schema is not None
    schema = plan.schema.replace(replace(plan.schema[name], hierarchy=resource))
    plan = replace(plan, schema=schema, resources={**plan.resources, resource: source})
    return {"toml": plan.to_toml(), "action": f"changed the hierarchy of {name}"}


def _change(plan: Plan, table: Table, name: str, texts: Texts) -> Hierarchy:
    """The hierarchy that a form asks for."""
    column, do = table.schema[name], text_of(texts, "do")
    if column.kind is Kind.SET or table.is_generalised(name):
        raise ParameterError("This column cannot have a hierarchy: its values are not single ones.")
    if do == "propose":
        values = present_values(column, table.frame[name])
        if values.is_empty():
            raise ParameterError("All values of this column are missing.")
        return propose_by(text_of(texts, "way"), column, values, _numbers(text_of(texts, "numbers")))
    hierarchy, level = _hierarchy_of(plan, table, name), _level_of(texts)
    if do in {"add", "drop"}:
        return (edit.add_level if do == "add" else edit.drop_level)(hierarchy, level)
    if do not in _CHANGES:
        raise UnknownNameError.of("change of a hierarchy", do, _CHANGES)
    if not 0 <= level < hierarchy.height - 1:
        raise ParameterError("There is no such level.", hint="reload this page")
    codes = _LevelCounts(hierarchy, table, name).codes_of(level, texts.get("labels", ()))
    label = _group(hierarchy, level + 1, texts) if do == "move" else text_of(texts, "name").strip()
    return (edit.rename if do == "rename" else edit.put_into)(hierarchy, level, codes, label)


def _group(hierarchy: Hierarchy, level: int, texts: Texts) -> str:
    """The group that a form chooses by its code."""
    into, groups = text_of(texts, "into"), hierarchy.levels[:, level].unique(maintain_order=True)
    if not into.isdecimal() or len(into) > _CODE_DIGITS or int(into) >= len(groups):
        raise ParameterError("Choose the group to move them into.")
    return str(groups[int(into)])


def _level_of(texts: Texts) -> int:
    text = text_of(texts, "level")
    return int(text) if text.isdecimal() and len(text) <= _LEVEL_DIGITS else -1


def _numbers(text: str) -> list[float]:
    """Widths or lengths, parted by commas or blanks."""
    try:
        return [float(part) for part in re.split(r"[,;\s]+", text.strip()) if part]
    except ValueError:
        raise ParameterError(
            "Widths and lengths must be numbers.", hint="write them like 5, 10, 20"
        ) from None


def _write(hierarchy: Hierarchy, plan: Plan, name: str) -> str:
    """Write a hierarchy to a file of its own, so that an undo finds the one before; and where it is."""
    assert plan.schema is not None
    rows = hierarchy.levels.rows()
    digest = hashlib.sha256(repr(rows).encode()).hexdigest()[:12]
    stem = re.sub(r"\W+", "-", name).strip("-") or f"column-{plan.schema.names.index(name)}"
    folder = Path("hierarchies")
    folder.mkdir(mode=0o700, exist_ok=True)
    place = folder / f"{stem[:40]}-{digest}.csv"
    if not place.is_file():
        write_hierarchy(hierarchy, place, private=True)
    return place.as_posix()

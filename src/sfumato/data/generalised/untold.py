"""Values that few have: a set does not name them, or the file would tell that they occur.

A set names the values that many have and those that are declared (labels, an order, a hierarchy). The others
are three dots, ``{DE|TR|...}``: whoever reads that learns that the value may be any that few have. Sets that
differ in those alone are then one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import polars as pl

from sfumato.data.generalised.nodes import WILDCARD, Nodes, canonical_text, match_leaves
from sfumato.data.generalised.text_forms import Known, set_text, stands_for_all
from sfumato.data.persons import persons_of
from sfumato.data.shown import ENOUGH
from sfumato.data.table import Table


def known_of(table: Table, name: str) -> Known | None:
    """The values of a column, and those that few people have and nothing declares; None if it is coarse."""
    if table.is_generalised(name) or table.frame.schema[name].is_nested():
        return None
    column = table.schema[name]
    held = pl.DataFrame({"value": canonical_text(table.frame[name]), "person": persons_of(table)})
    held = held.filter(pl.Series(~table.missing(name)))
    counts = held.group_by("value").agg(n=pl.col("person").n_unique()).drop_nulls().sort("value")
    declared = [canonical_text(pl.Series([value])).item() for value in column.order]
    declared += [canonical_text(pl.Series([value])).item() for value, _ in column.labels]
    few = counts.filter(pl.col("n") < ENOUGH, ~pl.col("value").is_in(declared))
    return Known(counts["value"].to_list(), few["value"].to_list())


def without_naming(table: Table, name: str, few: Collection[str]) -> tuple[Table, int]:
    """Show sets of a column without the values that ``few`` have; and how many cells that changed."""
    nodes = table.nodes[name]
    codes = nodes.codes(table.frame[name])
    rare = nodes.leaves.is_in(list(few)).to_numpy()
    owners = np.repeat(np.arange(len(nodes.labels)), nodes.sizes)
    n_rare = np.bincount(owners[rare[nodes.members]], minlength=len(nodes.labels))
    used = np.unique(codes[codes >= 0])
    telling = [
        code
        for code in used[(n_rare[used] > 0) & (nodes.sizes[used] > 1)].tolist()
        if nodes.labels[code] != WILDCARD and not stands_for_all(nodes, code)
    ]
    if not telling:
        return table, 0
    all_few = nodes.leaves.filter(pl.Series(rare)).to_list()
    shown, members = nodes.labels.to_list(), dict[str, list[str]]()
    for code in used.tolist():
        group = nodes.members_of(code).to_list()
        if code in telling:
            named = [value for value in group if value not in few]
            shown[code], group = set_text(named, rest=True), [*named, *all_few]
        members[shown[code]] = group
    new = Nodes.of(members, leaves=nodes.leaves.to_list())
    if nodes.levels is not None:
        levels = np.full(len(new.labels), nodes.levels.max())
        np.minimum.at(levels, match_leaves(pl.Series(shown).gather(used), new.labels), nodes.levels[used])
        new = replace(new, levels=levels)
    labels = pl.Series(name, shown).gather(pl.Series(codes).replace(-1, None))
    return table.with_nodes(name, labels.cast(new.dtype), new), int(np.isin(codes, telling).sum())

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
    telling = np.zeros(len(nodes.labels), dtype=np.bool_)
    for code in used[(n_rare[used] > 0) & (nodes.sizes[used] > 1)].tolist():
        telling[code] = nodes.labels[code] != WILDCARD and not stands_for_all(nodes, code)
    if not telling.any():
        return table, 0
    leaves, shown = nodes.leaves.to_list(), nodes.labels.to_list()
    members = {code: nodes.members[nodes.starts[code] : nodes.starts[code + 1]] for code in used.tolist()}
    for code in np.flatnonzero(telling).tolist():
        own = members[code]
        shown[code] = set_text([leaves[place] for place in own[~rare[own]]], rest=True)
    first = {shown[code]: code for code in used.tolist()}  # sets that differ in rare values alone are one
    labels = pl.Series("labels", list(dict.fromkeys([*first, WILDCARD])), dtype=pl.String)
    owner = np.repeat(np.arange(len(first)), nodes.sizes[list(first.values())])
    member = np.concatenate([members[code] for code in first.values()])
    hiding = telling[list(first.values())]
    named = ~(hiding[owner] & rare[member])
    all_rare = np.flatnonzero(rare)
    owner = np.concatenate([owner[named], np.repeat(np.flatnonzero(hiding), len(all_rare))])
    member = np.concatenate([member[named], np.tile(all_rare, int(hiding.sum()))])
    new = Nodes.of_pairs(nodes.leaves.rename("leaves"), labels, owner.astype(np.int32), member)
    if nodes.levels is not None:
        levels = np.full(len(new.labels), nodes.levels.max())
        np.minimum.at(levels, match_leaves(pl.Series(shown).gather(used), new.labels), nodes.levels[used])
        new = replace(new, levels=levels)
    labels = pl.Series(name, shown).gather(pl.Series(codes).replace(-1, None))
    return table.with_nodes(name, labels.cast(new.dtype), new), int(np.append(telling, False)[codes].sum())

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
from sfumato.data.generalised.text_forms import KnownValues, set_text, stands_for_all
from sfumato.data.hidden_content import MIN_PERSONS_NAMED
from sfumato.data.persons import count_by_value, persons_of
from sfumato.data.schema import Kind
from sfumato.data.table import Table


def known_of(table: Table, name: str, further: Collection[str] = ()) -> KnownValues | None:
    """The values of a column, and those that few people have and nothing declares; None if it is coarse.

    What its order or type declares is a value, too, though nobody has it, and so are ``further`` ones.
    """
    if table.is_generalised(name) or table.frame.schema[name].is_nested():
        return None
    column = table.schema[name]
    counts = _people_by_text(table, name)
    declared = [canonical_text(pl.Series([value])).item() for value in column.order]
    declared += [canonical_text(pl.Series([value])).item() for value, _ in column.labels]
    few = counts.filter(pl.col("n") < MIN_PERSONS_NAMED, ~pl.col("value").is_in(declared))
    domain = canonical_text(table.categories(name)) if column.kind in {Kind.NOMINAL, Kind.ORDINAL} else ()
    return KnownValues(sorted({*counts["value"], *domain, *further}), few["value"].to_list())


def _people_by_text(table: Table, name: str) -> pl.DataFrame:
    """How many people have each value, by its text."""
    there, persons, values = ~table.missing(name), persons_of(table), table.frame[name]
    if not there.all():
        values, persons = values.filter(pl.Series(there)), persons[there]
    counts = count_by_value(values, persons)
    texts = canonical_text(counts["value"])
    if texts.is_duplicated().any():  # several values are written alike
        held = canonical_text(values)
        counts, texts = (found := count_by_value(held, persons)), found["value"]
    return counts.select(texts.alias("value"), n=pl.col("people")).drop_nulls().sort("value")


def read_released_column(table: Table, name: str, original: Table, domain: Collection[str]) -> Table:
    """A generalised column as who has the original reads it from a file: of its values, not of a step's.

    Sets are of the values that they name and the ``domain`` of the original, whatever earlier steps made of
    it; where every cell is one value of the original the column is exact.
    """
    exact = _exact_values(table, name, original)
    if exact is not None:
        others = {each: nodes for each, nodes in table.nodes.items() if each != name}
        return replace(table, nodes=others).with_values(name, exact, column=original.schema[name])
    return _with_domain(table, name, domain) if name in table.nodes else table


def _exact_values(table: Table, name: str, original: Table) -> pl.Series | None:
    """The cells of a column as values of the original; None if one is coarser, or no value of it."""
    column, values = table.frame[name], original.categories(name)
    if name in table.nodes:
        nodes = table.nodes[name]
        codes = nodes.codes(column)
        used = nodes.occurring(codes)
        if (nodes.sizes[used] != 1).any() or nodes.lone[used].any():
            return None
        texts = nodes.leaves.gather(nodes.members[nodes.starts[used]])
        shown = texts.gather(pl.Series(np.searchsorted(used, codes)).set(pl.Series(codes < 0), None))
    else:
        low, high = column.struct.unnest().get_columns()
        if not (column.is_null() | (low == high).fill_null(value=False)).all():
            return None
        shown = canonical_text(low)
    found = shown.replace_strict(canonical_text(values), values, default=None, return_dtype=values.dtype)
    return found if found.null_count() == shown.null_count() else None


def _with_domain(table: Table, name: str, domain: Collection[str]) -> Table:
    nodes = table.nodes[name]
    codes = nodes.codes(table.frame[name])
    wild = (nodes.labels == WILDCARD).to_numpy()
    shown = wild.copy()
    shown[nodes.occurring(codes)] = True
    owners = np.repeat(np.arange(len(wild)), nodes.sizes)
    named = np.isin(np.arange(len(nodes.leaves)), nodes.members[(shown & ~wild)[owners]])
    keep = named | nodes.leaves.is_in(list(domain)).to_numpy()
    more = sorted(set(domain).difference(nodes.leaves.to_list()))
    if keep.all() and not more:
        return table
    leaves = pl.Series("leaves", [*nodes.leaves.filter(keep), *more], dtype=pl.String)
    labels, is_shown_exactly = nodes.labels.filter(shown).rename("labels"), (shown & ~wild)[owners]
    pairs = (
        (np.cumsum(shown) - 1)[owners[is_shown_exactly]],
        (np.cumsum(keep) - 1)[nodes.members[is_shown_exactly]],
    )
    new = Nodes.of_pairs(leaves, labels, pairs[0].astype(np.int32), pairs[1].astype(np.int32))
    levels = None if nodes.levels is None else nodes.levels[shown]
    places = pl.Series((np.cumsum(shown) - 1)[codes]).set(pl.Series(codes < 0), None)
    column = labels.cast(new.dtype).gather(places).alias(name)
    return table.with_nodes(name, column, replace(new, levels=levels))


def hide_rare_values(table: Table, name: str, few: Collection[str]) -> tuple[Table, int]:
    """Show sets of a column without the values that ``few`` have; and how many cells that changed."""
    nodes = table.nodes[name]
    codes = nodes.codes(table.frame[name])
    rare = nodes.leaves.is_in(list(few)).to_numpy()
    owners = np.repeat(np.arange(len(nodes.labels)), nodes.sizes)
    n_rare = np.bincount(owners[rare[nodes.members]], minlength=len(nodes.labels))
    used = nodes.occurring(codes)
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

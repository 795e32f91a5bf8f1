"""Generalisation of sets: items are generalised until a few of them single out no one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from sfumato.core.method import Gives
from sfumato.core.params import PerColumn, Resource, param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.classes.packing import MAX_PACKED_CODE
from sfumato.data.generalised.nodes import match_leaves
from sfumato.data.hierarchy.grow import propose
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.itemsets import Itemsets, Occurrences
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import count_noun
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.methods._enforcing import EnforcingMethod, Guarantee
from sfumato.methods._resources import declared_hierarchy


class ItemsetGeneralisation(EnforcingMethod):
    r"""Generalise items of sets until at least k people share every combination of up to m items.

    A table of sets is :math:`k^m`-anonymous if every combination of up to :math:`m` items that occurs is
    shared by at least :math:`k` people. The release shows a cut through the hierarchy of items: each item is
    replaced by its label in the cut, the same in all sets, together with all other items below that label.
    From single items to combinations of :math:`m` (a combination can only be rarer than its parts), as long
    as there are rare ones,

    .. math::

        \mathrm{supp}(X) = |\{ r : X \subseteq r \}| < k, \quad |X| = 1, 2, \dots, m,

    one item of each is generalised by one level, the one that loses least for the rare combinations it is in:
    a label of :math:`c` out of :math:`C` items loses :math:`c / C` for each occurrence. An item that would
    exceed ``level`` (by default the last level below the root) is suppressed: it is removed from all sets.
    This is the apriori anonymisation of Terrovitis and others, with all rare combinations of one size treated
    together.

    See Also
    --------
    KmAnonymity : what is enforced.
    RecordSuppression : suppresses whole sets instead of items.

    Notes
    -----
    **When to use.** Purchases, diagnoses, places visited: a person has many items, of which an intruder knows
    a few. Use a meaningful hierarchy (ICD chapters, shelves); otherwise one is built from the items.

    **Guarantees.** The release is measured: :math:`k^m`-anonymity holds under the policy ``missing``, and all
    requirements in ``also`` are met, or nothing is released. Labels are true: each label covers the item it
    replaces, and no set gains an item.

    **Risk to know.** An intruder who knows more than :math:`m` items may re-identify a person. Labels of a
    hierarchy that was built from the items reveal which items occur. The size of a set is not protected.

    **Ties, missing, weights.** A missing set, and a missing item, count as ``missing`` says: as an item of
    their own, which cannot be generalised. If too few people have it, it is suppressed like other items, and
    a missing set is shown as an empty one. With a column of persons, people are counted instead of records.
    Weights are not used.

    **Cost.** Several rounds, each of which counts all combinations of up to :math:`m` items.

    Examples
    --------
    >>> items, groups = ["beer", "wine", "bread", "rice"], ["drinks", "drinks", "food", "food"]
    >>> shelves = Hierarchy.from_levels(pl.DataFrame({"item": items, "group": groups}))
    >>> baskets = pl.DataFrame({"basket": [["beer", "rice"], ["wine", "rice"], ["rice"], ["beer"]]})
    >>> schema = Schema((Column("basket", Kind.SET, Role.KEY, hierarchy="shelves"),))
    >>> method = ItemsetGeneralisation(k=2, m=2)
    >>> release = protect(Table(baskets, schema), method, resources={"shelves": shelves})
    >>> release.data["basket"].to_list()
    [['drinks', 'rice'], ['drinks', 'rice'], ['rice'], ['drinks']]
    """

    name = "itemset-generalisation"
    vetted = (
        "brute-forced: unit/methods/test_itemset_generalisation.py::"
        "test_any_few_items_are_shared_and_every_label_is_true"
    )
    synonyms = ("transaction generalisation", "Apriori anonymisation", "set-valued generalisation")
    family = "recoding"
    nature = "non-perturbative"
    title = "Generalisation of sets"
    analyst_note = (
        "Items are replaced by wider groups or suppressed: counts of single items are lower bounds, and sets "
        "look more similar than they were."
    )
    kinds = frozenset({Kind.SET})
    references = ("terrovitis2008",)
    gives = Gives(generalised=True, suppressed=True)

    m: int = param(2, "Largest number of items an intruder knows.", ge=1, le=5, symbol="m")
    hierarchies: PerColumn[Resource] | None = param(
        None, "Resource with the hierarchy of the items, where the schema names none.", holds="hierarchy"
    )
    level: int | None = param(
        None,
        "Highest level of an item before it is suppressed; by default the last below the root.",
        ge=0,
        le=99,
        advanced=True,
    )

    def refuses(self, table: Table) -> str | None:
        """Refuse a table of nobody."""
        if not len(table):
            return f"{self.name} must be given records, got: none"
        return super().refuses(table)

    def guarantee(self, schema: Schema, keys: Sequence[str]) -> Guarantee:  # noqa: ARG002
        """That k people have any m items that somebody has."""
        also = [*self.also, *([f"km-anonymity(m={self.m}) >= {self.k}"] if self.k > 1 else [])]
        return Guarantee.of(keys, k=1, also=also, missing=self.missing)

    def enforce(self, table: Table, guarantee: Guarantee, run: Run) -> Release:  # noqa: ARG002  — proved after
        """Climb and suppress until nothing is rare."""
        found = Occurrences.of(table, table.chosen, missing=self.missing)
        trees, notes = self._trees(table, found, run)
        cut = _HierarchyCut.of(trees, found, self.level)
        for size in range(1, self.m + 1):
            while True:
                sets = found.become(cut.shown_nodes, cut.column_of_node).sets()
                rare = _to_climb(
                    sets, cut, self.k, size, run.ticker(f"{self.title}, {count_noun(size, 'item')}")
                )
                if not rare.any():
                    break
                cut = cut.climb(rare)
        n_coarser, n_gone = cut.changes()
        note = f"{n_coarser} items generalised and {n_gone} suppressed, of {len(found.items)}"
        shown = table
        for place, name in enumerate(table.chosen):
            shown = cut.write(shown, place, name)
        return Release.record_by_record(
            shown,
            notes=(*notes, note) if n_coarser + n_gone else notes,
            figures={"items_generalised": n_coarser, "items_suppressed": n_gone},
        )

    def _trees(
        self, table: Table, found: Occurrences, run: Run
    ) -> tuple[list[Hierarchy | None], tuple[str, ...]]:
        """The hierarchy of the items of each column: given, or declared, or else grown, which is noted."""
        trees: list[Hierarchy | None] = []
        notes = []
        for name, values in zip(table.chosen, found.values, strict=True):
            given = None if self.hierarchies is None else self.hierarchies[name]
            named = given or table.schema[name].hierarchy
            if named:
                trees.append(tree := declared_hierarchy(run, named, name))
                tree.require(values, name)
                continue
            items = table.frame[name].explode().drop_nulls() if len(values) else values
            trees.append(propose(Column(name, Kind.NOMINAL), items) if len(values) else None)
            notes.append(f"no hierarchy is declared for the items of `{name}`: one was built from the items")
        return trees, tuple(notes)


@dataclass(frozen=True, eq=False)
class _HierarchyCut:
    """At which level of its hierarchy each item is shown.

    A node is a label of a level of a hierarchy, numbered over all levels and columns. A hole has a node of
    its own, which does not climb but can be suppressed.
    """

    trees: list[Hierarchy | None]
    found: Occurrences
    nodes: Ints  # [items, levels] the node of each item at each level; the last again where there is none
    tops: Ints  # [items] the highest level each may climb to
    shares: Floats  # [nodes] share of all items of the column that are below
    column_of_node: Ints  # [nodes]
    counts: Ints  # [items] how often each occurs
    levels: Ints  # [items] where each is shown
    gone: Flags  # [items]

    @classmethod
    def of(cls, trees: list[Hierarchy | None], found: Occurrences, highest: int | None) -> _HierarchyCut:
        """Show every item as it is."""
        n_levels = max((tree.height for tree in trees if tree is not None), default=1)
        nodes: list[Ints] = []
        tops: list[Ints] = []
        shares: list[Floats] = []
        columns: list[Ints] = []
        for place, (tree, values) in enumerate(zip(trees, found.values, strict=True)):
            start = sum(map(len, shares))
            own = np.full((len(values) + 1, n_levels), start, dtype=np.int64)  # the first is the hole
            below, top = [np.zeros(1)], 0
            if tree is not None:
                leaves = match_leaves(values, tree.levels[:, 0])
                top = tree.height - 2 if highest is None else min(highest, tree.height - 1)
                for level in range(n_levels):
                    at = min(level, tree.height - 1)
                    if at == level:
                        first = start + sum(map(len, below))
                        below.append(np.bincount(tree.leaf_codes(at)) / tree.n_leaves)
                    own[1:, level] = first + tree.leaf_codes(at)[leaves]
            nodes.append(own)
            tops.append(np.r_[0, np.full(len(values), max(top, 0))])
            shares.append(np.concatenate(below))
            columns.append(np.full(len(shares[-1]), place, dtype=np.int64))
        n_items = sum(map(len, nodes))
        return cls(
            trees, found, np.concatenate(nodes), np.concatenate(tops), np.concatenate(shares),
            np.concatenate(columns), np.bincount(found.items, minlength=n_items),
            np.zeros(n_items, dtype=np.int64), np.zeros(n_items, dtype=np.bool_),
        )  # fmt: skip

    @property
    def shown_nodes(self) -> Ints:
        """[items] the node that each is shown by; −1: it is suppressed."""
        return np.where(self.gone, -1, self.nodes[np.arange(len(self.nodes)), self.levels])

    @property
    def costs(self) -> Floats:
        """[nodes] what is lost if what is shown by a node climbs or is suppressed; infinite if nothing is."""
        n_nodes, now = len(self.shares), self.shown_nodes
        losses = self.counts * np.where(self.gone, 1.0, self.shares[now])
        costs = np.full(n_nodes, np.inf)
        last = self.levels >= self.tops
        before = np.bincount(now[~self.gone], weights=losses[~self.gone], minlength=n_nodes)
        everyone = np.bincount(now[~self.gone], weights=self.counts[~self.gone], minlength=n_nodes)
        for level in range(1, self.nodes.shape[1]):
            at = self.nodes[:, level]
            above = np.bincount(at, weights=self.counts, minlength=n_nodes) * self.shares
            above -= np.bincount(at, weights=losses, minlength=n_nodes)
            climbs = ~self.gone & ~last & (self.levels == level - 1)
            costs[now[climbs]] = above[at[climbs]]
        ends = ~self.gone & last
        costs[now[ends]] = (everyone - before)[now[ends]]
        positive: Floats = np.maximum(costs, 1e-9)
        return positive

    def climb(self, rare: Flags) -> _HierarchyCut:
        """The cut in which what these nodes show has climbed a level, with all else below the same label."""
        now = self.shown_nodes
        marked = ~self.gone & rare[now]
        last = self.levels >= self.tops
        levels, rows = self.levels.copy(), np.flatnonzero(marked & ~last)
        reached = np.zeros(len(self.shares), dtype=np.bool_)
        reached[self.nodes[rows, self.levels[rows] + 1]] = True
        for level in range(1, self.nodes.shape[1]):
            levels[reached[self.nodes[:, level]] & (levels < level) & (level <= self.tops)] = level
        return replace(self, levels=levels, gone=self.gone | (marked & last))

    def changes(self) -> tuple[int, int]:
        """How many occurrences of items are shown by a coarser label, and how many are left out."""
        coarser = ~self.gone & (self.levels > 0)
        return int(self.counts[coarser].sum()), int(self.counts[self.gone].sum())

    def write(self, table: Table, place: int, name: str) -> Table:
        """The table with the sets of a column as the cut shows them."""
        first = sum(len(values) + 1 for values in self.found.values[:place])
        values, tree = self.found.values[place], self.trees[place]
        own = slice(first + 1, first + 1 + len(values))
        levels, gone = self.levels[own], self.gone[own]
        sets = table.frame[name]
        if self.gone[first]:  # too few lack a set, or an item of it
            sets = sets.zip_with(sets.is_not_null(), pl.Series([[]], dtype=sets.dtype)).list.drop_nulls()
        if tree is None or not (levels.any() or gone.any()):
            return table.with_values(name, sets)
        leaves = match_leaves(values, tree.levels[:, 0])
        texts = np.empty(len(values), dtype=object)
        for level in np.unique(levels):
            here = levels == level
            texts[here] = tree.labels(int(level)).gather(tree.leaf_codes(int(level))[leaves[here]]).to_list()
        return table.with_values(name, _replace_items(sets, values, pl.Series(texts, dtype=pl.String), gone))


def _replace_items(sets: pl.Series, values: pl.Series, texts: pl.Series, gone: Flags) -> pl.Series:
    """Sets with texts in place of their items, each once; a missing item stays, one that is gone does not."""
    frame = pl.DataFrame({"row": np.arange(len(sets)), "item": sets})
    filled = frame.filter((sets.list.len() > 0).fill_null(value=False)).explode("item")
    item = filled["item"].cast(values.dtype)
    shown = item.replace_strict(values, texts, default=None, return_dtype=pl.String)
    left_out = item.is_in(values.filter(pl.Series(gone)).implode())
    made = (
        filled.select("row", item=shown)
        .filter(~left_out.fill_null(value=False))
        .unique(maintain_order=True)
        .group_by("row", maintain_order=True)
        .agg("item")
    )
    joined = frame.select("row").join(made, on="row", how="left", maintain_order="left")["item"]
    empty = pl.Series([[]], dtype=pl.List(pl.String))
    return joined.zip_with(joined.is_not_null() | sets.is_null(), empty).alias(sets.name)


def _to_climb(
    sets: Itemsets, cut: _HierarchyCut, k: int, size: int, tick: Callable[[int, int], None]
) -> Flags:
    """[nodes] of each combination of ``size`` that fewer than k have, what loses least by climbing."""
    climbs, costs = np.zeros(len(cut.shares), dtype=np.bool_), cut.costs
    for found in sets.combinations(size, tick):
        if len(found.members) < size:
            continue
        rare = _distinct(sets.numbers[found.members[:, found.supports < k]], len(costs))
        rare = rare[:, ~climbs[rare].any(axis=0)]
        if rare.shape[1]:
            shares = costs / np.maximum(np.bincount(rare.reshape(-1), minlength=len(costs)), 1)
            best = rare[np.argmin(shares[rare], axis=0), np.arange(rare.shape[1])]
            climbs[best] = True
    return climbs


def _distinct(members: Ints, n_nodes: int) -> Ints:
    """The distinct columns of members."""
    if n_nodes ** len(members) > MAX_PACKED_CODE:
        return np.unique(members, axis=1)
    factors = n_nodes ** np.arange(len(members))
    packed = np.unique(factors @ members)
    return packed // factors[:, None] % n_nodes

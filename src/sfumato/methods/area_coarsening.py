"""Area coarsening: areas with few inhabitants are replaced by larger ones."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.core.method import Gives, Method, Randomness
from sfumato.core.params import PerColumn, Resource, param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.nodes import MISSING, UNSEEN, match_leaves
from sfumato.data.generalised.suppressing import to_wildcard
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.persons import persons_of
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.errors import DataError, count_noun
from sfumato.kernels.arrays import Codes, Floats, Ints
from sfumato.methods._analyst_notes import GROUPED
from sfumato.methods._resources import columns_of
from sfumato.methods.recoding import hierarchies_of

#: The column of a table of areas that says how many people live there.
_POPULATION = "population"


class AreaCoarsening(Method):
    r"""Replace areas by larger ones until every area shown has enough inhabitants.

    Areas are generalised along the hierarchy of their column. Where an area that occurs in the records has
    fewer than :math:`N` inhabitants,

    .. math::

        P(a) = \sum_{b \preceq a} p_b < N

    it and all its siblings within the same larger area are shown as that larger area, and so on upwards. All
    siblings are generalised, not only the small one: if they stayed, the larger area would stand for the
    small one alone.

    See Also
    --------
    Recoding : all values at a fixed level.
    GlobalRecoding : the levels that give k-anonymity in all keys.

    Notes
    -----
    **When to use.** Rules of statistical offices and of HIPAA on the smallest area of a release: 20,000
    people for the first three digits of a zip code, 10,000 or 200,000 for regions of European files for
    researchers or the public.

    **Guarantees.** Every area shown has at least ``threshold`` inhabitants; if all areas together have fewer,
    none is shown. Labels are true: an area lies within the area that is shown for it, and in no other area
    shown.

    **Risk to know.** Inhabitants must be counted in the population, and the threshold does not protect other
    columns: require k-anonymity as well. Columns that reveal the area too (a hospital, a phone number) must
    be generalised as well.

    **Ties, missing, weights.** ``population`` names a table with a column of the same name as each column
    that is protected, and the column *population*. Without it the weights of the records are summed, and
    without weights the persons of the file are counted, which is noted: they are fewer than the inhabitants,
    so areas become larger than necessary. Missing areas stay missing.

    **Cost.** :math:`O(n)` per column.

    Examples
    --------
    >>> towns, states = ["Ely", "Bath", "Rome", "Bari"], ["UK", "UK", "Italy", "Italy"]
    >>> tree = Hierarchy.from_levels(pl.DataFrame({"town": towns, "state": states}))
    >>> people = pl.DataFrame({"town": towns, "population": [20_000, 90_000, 2_800_000, 320_000]})
    >>> schema = Schema((Column("town", Kind.NOMINAL, Role.KEY),))
    >>> table = Table(pl.DataFrame({"town": ["Ely", "Bath", "Rome"]}), schema)
    >>> method = AreaCoarsening(threshold=50_000, population="people", hierarchies="tree")
    >>> protect(table, method, resources={"tree": tree, "people": people}).data["town"].to_list()
    ['UK', 'UK', 'Rome']
    """

    name = "area-coarsening"
    vetted = (
        "brute-forced: unit/methods/test_area_coarsening.py::"
        "test_enough_people_live_in_what_is_shown_and_no_area_could_be_finer"
    )
    synonyms = ("geographic aggregation", "geographic masking")
    family = "recoding"
    nature = "non-perturbative"
    title = "Area coarsening"
    analyst_note = GROUPED
    kinds = frozenset({Kind.NOMINAL, Kind.ORDINAL})
    references = ("hipaa2000", "hundepool2012")
    gives = Gives(generalised=True, suppressed=True)
    randomness = Randomness(stochastic=False)

    threshold: int = param(
        20_000,
        "Smallest number of inhabitants of an area that is shown.",
        ge=1,
        le=10**10,
        unit="people",
        symbol="N",
        log=True,
        tune=(10, 1_000_000),
        drive=True,
        hint="20,000 under HIPAA; 10,000 and 200,000 for regions of European files",
    )
    population: Resource | None = param(
        None, "Table of areas with the column population; else weights or persons are counted.", holds="table"
    )
    hierarchies: PerColumn[Resource] | None = param(
        None, "Resource with the hierarchy of each column, where the schema names none.", holds="hierarchy"
    )

    def refuses(self, table: Table) -> str | None:
        """Refuse no records, and keys that were generalised before: labels are no values of a hierarchy."""
        if not len(table):
            return f"{self.name} must be given records, got: none"
        return super().refuses(table) or self.refuses_generalised(table)

    def protect(self, table: Table, run: Run) -> Release:
        """Let the areas of each column climb."""
        hierarchies, notes = hierarchies_of(table, run, self.hierarchies)
        known = columns_of(self, "population", run, (_POPULATION, *table.chosen))
        if known is None and table.weights is None:
            notes = (*notes, "no population was given: the persons of the file were counted")
        protected, n_coarser = table, 0
        for name in run.track(self.title, table.chosen, total=len(table.chosen)):
            tree = hierarchies[name]
            if tree is None:  # nobody has a value
                continue
            leaves = _leaves(table, name, tree)
            levels = _levels(tree, leaves, self._people(table, name, tree, known, leaves), self.threshold)
            if levels is None:
                notes = (*notes, f"all areas of `{name}` together have too few inhabitants: no area is shown")
            n_coarser += int(
                (leaves >= 0).sum() if levels is None else (levels[leaves[leaves >= 0]] > 0).sum()
            )
            protected = _show_areas(protected, name, tree, leaves, levels)
        return Release.record_by_record(protected, notes=notes, figures={"values_coarser": n_coarser})

    def _people(
        self, table: Table, name: str, tree: Hierarchy, known: pl.DataFrame | None, leaves: Codes
    ) -> Floats:
        """[leaves] how many people live in each."""
        there = leaves >= 0
        if known is None and table.weights is not None:
            return np.bincount(leaves[there], weights=table.weights[there], minlength=tree.n_leaves).astype(
                float
            )
        if known is None:
            lived = np.unique(
                leaves[there] * np.int64(len(table)) + _person_numbers(persons_of(table))[there]
            )
            return np.bincount(lived // max(len(table), 1), minlength=tree.n_leaves).astype(np.float64)
        people = known[_POPULATION].cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
        wrong = int((~((people >= 0) & np.isfinite(people))).sum())
        if wrong:
            raise DataError(f"numbers of inhabitants must be 0 or more, got: {count_noun(wrong, 'other')}")
        places = match_leaves(known[name].alias(name), tree.levels[:, 0])
        listed = np.zeros(tree.n_leaves, dtype=np.bool_)
        listed[places[places >= 0]] = True
        unlisted = len(np.unique(leaves[there][~listed[leaves[there]]]))
        if unlisted:
            raise DataError(
                f"`population` of {self.name} must list every area of `{name}` that occurs, got: "
                f"{count_noun(unlisted, 'area')} without a number of inhabitants"
            )
        return np.bincount(places[places >= 0], weights=people[places >= 0], minlength=tree.n_leaves).astype(
            float
        )


def _person_numbers(persons: Ints) -> Ints:
    return np.unique(persons, return_inverse=True)[1].astype(np.int64)


def _leaves(table: Table, name: str, tree: Hierarchy) -> Codes:
    """[n] the leaf of each record, −1 where its area is missing."""
    series, missing = table.frame[name], table.missing(name)
    values = series.set(pl.Series(missing), None) if missing.any() else series
    leaves = match_leaves(values, tree.levels[:, 0])
    if (leaves == UNSEEN).any():
        tree.require(values, name)
    return np.where(missing, MISSING, leaves).astype(np.int32)


def _levels(tree: Hierarchy, leaves: Codes, people: Floats, threshold: int) -> Ints | None:
    """[leaves] the level at which each is shown; None if nothing but the root would do, and not even that."""
    some = np.bincount(leaves[leaves >= 0], minlength=tree.n_leaves) > 0
    levels = np.zeros(tree.n_leaves, dtype=np.int64)
    for level in range(tree.height):
        nodes = tree.leaf_codes(level)
        small = np.bincount(nodes, weights=people) < threshold
        at_stake = some & (levels == level) & small[nodes]
        if not at_stake.any():
            continue
        if level == tree.height - 1:
            return None
        above = tree.leaf_codes(level + 1)
        climbing = np.zeros(int(above.max()) + 1, dtype=np.bool_)
        climbing[above[at_stake]] = True
        levels[climbing[above]] = level + 1
    return levels


def _show_areas(table: Table, name: str, tree: Hierarchy, leaves: Codes, levels: Ints | None) -> Table:
    """The table with the areas of a column at their levels; None: not at all."""
    if levels is None:
        return to_wildcard(table, name, leaves >= 0)
    if not levels[leaves[leaves >= 0]].any():
        return table
    texts = np.empty(tree.n_leaves, dtype=object)
    for level in np.unique(levels):
        here = levels == level
        texts[here] = tree.labels(int(level)).gather(tree.leaf_codes(int(level))[here]).to_list()
    shown = pl.Series(texts, dtype=pl.String).gather(pl.Series(leaves).replace(-1, None))
    nodes = tree.nodes()
    return table.with_nodes(name, shown.cast(nodes.dtype).alias(name), nodes)

"""Recoding along hierarchies: every record of a key at the same level."""

from __future__ import annotations

import polars as pl

from sfumato.core.method import Gives, Method, Randomness
from sfumato.core.params import PerColumn, Resource, param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.levels import KeyLevels
from sfumato.data.hierarchy.grow import propose
from sfumato.data.hierarchy.tree import Hierarchy, Unseen
from sfumato.data.schema import Column
from sfumato.data.table import Table
from sfumato.errors import quoted
from sfumato.methods._analyst_notes import GROUPED
from sfumato.methods._enforcing import COMPARABLE
from sfumato.methods._resources import built_hierarchy, declared_hierarchy


def hierarchies_of(
    table: Table, run: Run, given: PerColumn[Resource] | None = None
) -> tuple[dict[str, Hierarchy | None], tuple[str, ...]]:
    """The hierarchy of each chosen column: given, or declared, or else grown, which is noted."""
    found: dict[str, Hierarchy | None] = {}
    grown = []
    for name in table.chosen:
        column = table.schema[name]
        resource = (given[name] if given is not None else None) or column.hierarchy
        if resource:
            found[name] = hierarchy = declared_hierarchy(run, resource, name)
            hierarchy.require()
            continue
        found[name] = built_hierarchy(table, name, _proposed_hierarchy)
        grown.append(name)
    if not grown:
        return found, ()
    return found, (f"no hierarchy is declared for {quoted(grown)}: one was built from the values",)


def _proposed_hierarchy(column: Column, present: pl.Series) -> Hierarchy | None:
    return propose(column, present) if len(present) else None


class Recoding(Method):
    r"""Show each key at a fixed level of its hierarchy.

    .. math::

        y_{ij} = g_j^{(\ell_j)}(x_{ij})

    where :math:`g_j^{(\ell)}` maps a value of key :math:`j` to its label at level :math:`\ell` of the
    hierarchy: level 0 are the values themselves, the last level is the root; a number above that is the
    root too. Numbers and dates become ranges, categories become labels that stand for several values.

    See Also
    --------
    global-recoding : finds the levels, and guarantees k-anonymity and other models.
    Rounding : for numbers, without a hierarchy.

    Notes
    -----
    **When to use.** Levels that were chosen beforehand, by a rule or by global-recoding on another table: its
    result is a recoding (``release.fitted``), so that a later file gets the same labels.

    **Guarantees.** None: the sizes of equivalence classes depend on the data, so measure them. Labels are
    true: each label covers the value it replaces.

    **Risk to know.** A hierarchy that was built from the data has limits and groups that depend on the data;
    for recurring data declare one.

    **Ties, missing, weights.** Equal values have equal labels. Missing values stay missing, except at a root
    that is the wildcard, which stands for any value or none. A value that is not in the hierarchy is an
    error, or with ``unseen="root"`` shown as the root. Weights are not used.

    **Cost.** :math:`O(n)` per column.

    Examples
    --------
    >>> people = pl.DataFrame({"age": [21, 23, 28, 35, 38, 64]})
    >>> release = sfumato.protect(people, Recoding(levels=1), columns=["age"])
    >>> release.data["age"].to_list()[:2]
    [{'lo': 20, 'hi': 21}, {'lo': 22, 'hi': 23}]
    """

    name = "recoding"
    vetted = "brute-forced: property/test_recoding.py::test_every_label_covers_its_value"
    synonyms = ("globalRecode", "groupAndRename", "generalisation", "generalisation to a level")
    family = "recoding"
    nature = "non-perturbative"
    title = "Recoding"
    analyst_note = GROUPED
    kinds = COMPARABLE
    references = ("samarati2001", "willenborg2001", "hundepool2012")
    gives = Gives(generalised=True, suppressed=True)
    randomness = Randomness(stochastic=False)

    levels: PerColumn[int] = param(
        1,
        (
            "Level of the hierarchy to show: 0 is the values themselves, numbers above the last level mean "
            "the root."
        ),
        ge=0,
        le=99,
        symbol="ℓ",
        tune=(0, 6),
        drive=True,
    )
    hierarchies: PerColumn[Resource] | None = param(
        None, "Resource with the hierarchy of each column, where the schema names none.", holds="hierarchy"
    )
    unseen: Unseen = param(
        "raise",
        "How values that are not in the hierarchy are treated.",
        choices={"raise": "As an error: nothing is released.", "root": "They are shown as its root."},
        label="Unseen values",
    )

    def refuses(self, table: Table) -> str | None:
        """Refuse keys that were generalised before: their labels are no values of a hierarchy."""
        return super().refuses(table) or self.refuses_generalised(table)

    def protect(self, table: Table, run: Run) -> Release:
        """Write each column at its level."""
        hierarchies, notes = hierarchies_of(table, run, self.hierarchies)
        protected = table
        for name in run.track(self.title, table.chosen, len(table.chosen)):
            key = KeyLevels.of(table, name, hierarchies[name], self.unseen)
            protected = key.write(protected, min(self.levels[name], key.height - 1))
        return Release.record_by_record(protected, notes=notes)

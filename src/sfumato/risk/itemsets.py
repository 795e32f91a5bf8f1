"""Sets of items: who is rare in a few of the items of a set-valued column (purchases, diagnoses, places)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import seen_table
from sfumato.core.measure import Counting, Laws, Measure, Needs, Score
from sfumato.core.params import Columns, param
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.itemsets import Occurrences
from sfumato.data.schema import COMPARABLE, Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import count_distinct
from sfumato.risk._key_measures import EMPTY, by_original, counted_in

#: Occurrences of combinations that are counted at most, in all and of those that share their rarest item.
MAX_COMBINATIONS = 1_000_000_000
MAX_COMBINATIONS_OF_ONE = 100_000_000


class KmAnonymity(Measure):
    r"""Smallest number of records that share any combination of up to m items that occurs.

    .. math::

        k = \min_{X : |X| \le m,\ \mathrm{supp}(X) > 0} \mathrm{supp}(X), \qquad
        \mathrm{supp}(X) = |\{r : X \subseteq r\}|

    A table of sets is :math:`k^m`-anonymous if an intruder who knows up to :math:`m` items of a person
    cannot narrow them down to fewer than :math:`k` records. Of several set-valued columns the items are
    known together, an item of one column being different from the same in another. With the columns in
    ``given`` known besides, combinations are counted among the records that are equal in all of these, the
    empty one too: the table is then :math:`(k, k^m)`-anonymous.

    See Also
    --------
    KAnonymity : columns of single values, all of them known.
    LkcPrivacy : columns of single values, a few of them known.

    Notes
    -----
    **How to read it.** 1 means that somebody is pointed out by m items. ``by_record`` is the
    smallest number that share one of the record's combinations, so it says whose set must be changed;
    ``details`` has the smallest support and the number of combinations for each number of items
    (``smallest_1``, ``combinations_1``, …).

    **Doubt.** Exact.

    **Missing.** A set that is missing is an item of its own by default (``category``), and so is a missing
    item. As ``any`` such a set counts for every combination of items of its column (but not together with
    items of other columns), and a set of which some items are missing for those that are there; at ``worst``
    a record without its set, or an item of it, is alone. An empty set is not missing: nothing of it can be
    known.

    **Units.** Where a column tells whose record it is, persons are counted that have all the items in one
    record; as ``any`` those whose sets are all missing are added.

    **Cost.** Grows with the number of combinations in the sets: a set of :math:`s` items has
    :math:`\binom{s}{m}` of :math:`m`. More than a thousand million occurrences are refused.

    Examples
    --------
    >>> baskets = [["beer", "wine"], ["beer", "milk"], ["beer", "milk"], ["beer", "wine"]]
    >>> frame = pl.DataFrame({"basket": baskets})
    >>> table = Table(frame, Schema((Column("basket", Kind.SET, Role.KEY),)))
    >>> KmAnonymity(m=2).score(Evidence(table), Run(seed=1)).value
    2.0
    """

    name = "km-anonymity"
    vetted = "brute-forced: property/test_combinations.py::test_km_by_enumeration"
    family = "equivalence classes"
    title = "kᵐ-anonymity"
    aspect = "risk"
    threat = "singling out"
    better = "high"
    bounds = (1.0, np.inf)
    kinds = frozenset({Kind.SET})
    needs = Needs(release=False)
    counts = Counting(laws=Laws(knowledge_is_risk=True, copies_hide_nobody=True))
    synonyms = ("(k, k^m)-anonymity", "k,km-anonymity", "RT-dataset")
    references = ("terrovitis2008", "poulis2013")
    cost = "n"

    m: int = param(2, "Largest number of items an intruder knows.", ge=1, le=5)
    given: Columns = param(
        Columns(),
        "Columns of single values that the intruder knows as well: records equal in all of them are counted.",
        label="Known besides",
    )
    missing: Literal["category", "any", "worst"] = param(
        "category",
        "How a missing set is counted.",
        choices={
            "category": "An item of its own.",
            "any": "Any items: it has every combination of its column.",
            "worst": "As the worst case: its record is unique.",
        },
    )

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse sets that may be any among records that are equal in something else."""
        reason = super().refuses(evidence)
        if reason is None and self.given and self.missing == "any":
            return f"{self.name} with `given` must count missing as category or worst, got: any"
        return reason

    def _known_besides(self, evidence: Evidence, table: Table) -> Classes | None:
        """The classes of records that are equal in what else is known; None if that is nothing."""
        named = evidence.original.schema.resolve(self.given)
        names = [each for each in named if each in table.schema and table.schema[each].kind in COMPARABLE]
        return Classes.of(table, names, missing=self.missing) if names else None

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Count who has each combination."""
        table, names = seen_table(evidence), self.columns(evidence)
        if not len(table):
            return Score.not_estimable(EMPTY)
        classes = self._known_besides(evidence, table)
        items = Occurrences.of(table, names, missing=self.missing)
        sets = (items if classes is None else items.among(classes.of_record)).sets()
        work = sets.work(self.m)
        if work.sum() > MAX_COMBINATIONS or work.max(initial=0) > MAX_COMBINATIONS_OF_ONE:
            return Score.not_estimable(
                f"the sets must hold at most {MAX_COMBINATIONS:,} combinations of up to {self.m} items, and "
                f"{MAX_COMBINATIONS_OF_ONE:,} with the same rarest item, got: {work.sum():.3g} and "
                f"{work.max():.3g}; ask for fewer items at a time, or group items"
            )
        found = sets.supports(self.m, run.ticker(self.title))
        by_record = found.by_record
        if self.missing == "worst":
            by_record = np.where(sets.unknown, 1, by_record)
        if not by_record.any():
            return Score.not_estimable("no record has an item")
        # Of whom no item can be known, nothing is: everybody has no item at least.
        by_record = np.where(by_record > 0, by_record, count_distinct(sets.persons))
        if classes is not None:
            by_record = np.minimum(by_record, classes.persons[classes.of_record][sets.order])
        details: dict[str, float | int | str] = {
            "columns": len(names),
            "columns_left_out": len(evidence.known_columns) - len(names),
            "items": sets.n_items,
        }
        for size in range(1, self.m + 1):
            details |= {
                f"combinations_{size}": int(found.combinations[size - 1]),
                f"smallest_{size}": int(found.smallest[size - 1]),
            }
        in_turn = by_record[np.argsort(sets.order)].astype(np.float64)
        return Score(
            value=float(by_record.min()),
            by_record=by_original(evidence, in_turn, worst="low"),
            details=details | {"counted": counted_in(table)},
        )

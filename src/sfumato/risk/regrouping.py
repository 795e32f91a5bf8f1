"""Units put together again: whose records an intruder joins without a column that is said to join them."""

from __future__ import annotations

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import regroupings_of
from sfumato.core.measure import Counting, Laws, Measure, Needs, Score, Tells
from sfumato.core.run import Run
from sfumato.data.relations.joining import units_of
from sfumato.data.relations.regrouping import HOW, Regrouping, released_units, right_by_chance, right_sets
from sfumato.data.schema import UNIT_ROLES, Kind, Role
from sfumato.data.shares import wilson
from sfumato.data.table import Table
from sfumato.errors import quoted
from sfumato.kernels.arrays import Floats, Ints

_Z_95 = 1.959964  # standard deviations of an interval of 95 %


class RegroupedUnits(Measure):
    r"""Share of persons, households or groups whose separate records an intruder joins again.

    .. math:: R = \max_g \frac{|\{u : \text{two records of } u \text{ at least are in a right set of } g\}|}
              {|\{u : u \text{ has two released records or more}\}|}

    over all ways :math:`g` to put released records into sets that an intruder would trust. A set is right if
    more than half of its records, and two at least, are of one unit. A way is trusted if more than a quarter
    of its sets are right (lower end of Wilson's interval of 95 %), and it cannot be chance among all ways
    that are tried: records that are equal in one column, in two, or in all that hardly change within a unit;
    records whose numbers are nearly equal; and chains of records whose numbers are nearest from wave to wave
    (year, visit) once the common drift is taken off.

    See Also
    --------
    Linkability : whether facts from two places are of one person.

    Notes
    -----
    **How to read it.** Leaving out the number of a household hides nothing if its exact weight puts its
    members together again. 0 means that no way is worth trusting. ``unit``, ``columns`` and ``how`` say what
    comes back, by which released columns, and whether these are equal, near or chained. Round or recode
    those columns, or leave them out. Columns that are declared to join records do not count: other measures
    judge their records together anyhow.

    ``baseline`` is about what records that are put into sets of the same sizes at random would give.

    **Doubt.** Exact for the ways that are tried; who knows a better one puts more together. The interval is
    Wilson's of 95 %. Of more than 5,000 units the ways are chosen by those that succeed with some of them.

    **Missing.** A missing value is a value of its own in a combination; a record that lacks all columns of a
    way is in no set. A unit that is missing is nobody's.

    **Units.** Those of the column of which most come back; units with a single released record do not count.

    **Cost.** A sort of the records for each way that promises something.

    Examples
    --------
    Four households left their number behind, and kept an exact weight:

    >>> household, weight = [1, 1, 2, 2, 3, 3, 4, 4], [9.5, 9.5, 7.1, 7.1, 8.8, 8.8, 6.4, 6.4]
    >>> columns = Column("household", Kind.NOMINAL, Role.HOUSEHOLD), Column("w", Kind.CONTINUOUS, Role.WEIGHT)
    >>> original = Table(pl.DataFrame({"household": household, "w": weight}), Schema(columns))
    >>> evidence = Evidence(original, Release.of(original.select(["w"]), source_rows=np.arange(8)))
    >>> score = RegroupedUnits().score(evidence, Run(seed=1))
    >>> score.value, score.details["columns"], score.details["how"]
    (1.0, 'w', 'equal')
    """

    name = "regrouped"
    vetted = (
        "brute-forced: property/test_regrouping.py::"
        "test_the_measure_is_the_worst_way_and_no_less_than_any_trusted_column"
    )
    family = "linkage"
    title = "Units put together again"
    aspect = "risk"
    better = "low"
    bounds = (0.0, 1.0)
    threat = "linkability"
    kinds = frozenset(Kind)
    needs = Needs(mapping=True, columns=0)
    counts = Counting(
        people=True,
        joins_person_records=True,
        laws=Laws(knowledge_is_risk=True),  # it looks at all that is released, whatever is known
    )
    tells = Tells(
        places={"default": 1, "report": 24},
        record_sentence="an intruder joins the records of its person, household or group (1: yes): {:.0f}",
    )
    references = ("hundepool2012",)
    cost = "n log n"

    def columns(self, evidence: Evidence) -> tuple[str, ...]:
        """All columns that are released: whatever leaves may put records together."""
        table = evidence.original if evidence.protected is None else evidence.protected
        return tuple(sorted(name for name in table.names if name in evidence.original.schema))

    def concerns(self, original: Table) -> bool:
        """Whether some records of a table belong together."""
        return bool(units_of(original))

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse where no column tells which records belong together."""
        if not evidence.original.schema.with_role(*UNIT_ROLES, Role.IDENTIFIER):
            needed = "a column that tells which records belong together"
            return f"{self.name} needs {needed}: give it the role person, household or group"
        return super().refuses(evidence)

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002  — no chance is used
        """Take the way that puts most units together again."""
        rows = evidence.source_rows
        assert rows is not None  # `refuses` saw to it
        units = released_units(evidence.original, rows)
        by_record: Floats = np.zeros(len(evidence.original))
        best = max(regroupings_of(evidence), key=lambda each: each.share, default=None)
        if best is None:
            count = max(map(_units_with_several, units.values()), default=0)
            interval = wilson(0, count, _Z_95) if count else None
            return Score(0.0, interval=interval, by_record=by_record, details={"units": count})
        by_record[np.isin(units_of(evidence.original)[best.unit], _units_of_regrouping(best, units))] = 1.0
        return Score(
            value=best.share,
            interval=wilson(best.regrouped, best.units, _Z_95),
            by_record=by_record,
            reason=f"by {HOW[best.how]} {quoted(best.columns, ' and ')}: round, recode or leave out",
            baseline=min(right_by_chance(best.numbers, units[best.unit]) / best.units, 1.0),
            details={
                "unit": best.unit, "columns": ", ".join(best.columns), "how": best.how, "sets": best.sets,
                "right": best.right, "regrouped": best.regrouped, "units": best.units,
            },
        )  # fmt: skip


def _units_of_regrouping(best: Regrouping, units: dict[str, Ints]) -> Ints:
    """The units that a regrouping puts together again."""
    return right_sets(best.numbers, units[best.unit])[1]


def _units_with_several(units: Ints) -> int:
    return int((np.bincount(units[units >= 0]) > 1).sum())

"""Risk of outliers: people of extreme values, who stay easy to find when others are hidden in the crowd."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import belonging, owners_of
from sfumato.core.measure import Counting, Measure, Needs, Score, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.codings import numbers_of_both
from sfumato.data.persons import best_by_person, persons_of
from sfumato.data.points import standardise
from sfumato.data.schema import ORDERED
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.risk._spaces import why_generalised, why_incomparable
from sfumato.risk.linkage import DistanceLinkage, mean_of_best, shares_by_person

#: What is left of a difference by rounding, against the values themselves.
_DISTANCE_TOLERANCE = 2.0**-40


class OutlierDisclosure(DistanceLinkage):
    r"""Share of the original's outliers that distance-based linkage links to their own released record.

    .. math:: \frac{1}{|E|} \sum_{n \in E} \frac{\chi_n}{|B_n|}

    where :math:`E` are the extreme records by one ``rule`` of four, :math:`B_n` the released records at the
    least distance from record :math:`n`, and :math:`\chi_n` is 1 if its own is among them. A record is
    extreme

    - by *quantile*, if a value of it is in the lowest or highest ``tail`` of its column;
    - by *deviations*, if a value of it is more than ``beyond`` standard deviations from the column's mean;
    - by *mahalanobis*, if its distance from a robust middle, made a standard normal score, is above
      ``beyond``: outliers cannot hide themselves by moving the middle, and odd combinations of ordinary
      values are seen;
    - by *density*, if its ``neighbours`` are ``farther`` away than theirs are, as in `density-isolation`.

    See Also
    --------
    dbrl : the same for everybody.
    rmdid1 : whether what was released for an outlier still tells its values.

    Notes
    -----
    **How to read it.** Lower is safer; compare with `dbrl`: protection that hides the crowd may leave
    outliers in plain sight. ``baseline`` is what guessing finds. Where nobody is extreme it is 0.

    **Doubt.** Exact, as `dbrl`.

    **Missing.** A missing value is not extreme; in distances it is as in `dbrl`.

    **Units.** Persons are counted, each by the extreme record that is linked best.

    **Cost.** That of `dbrl`.
    """

    name = "outlier-disclosure"
    synonyms = ("outliers",)
    family = "isolation"
    threat = "singling out"
    tells = Tells(intruder="knows that it is an outlier and takes the nearest released record")
    title = "Outliers found again"
    references = ("domingoferrer2001", "templ2008", "ichim2009", "hubert2012", "breunig2000")

    rule: Literal["quantile", "deviations", "mahalanobis", "density"] = param(
        "mahalanobis",
        "When a record is an outlier.",
        choices={
            "quantile": "One of its values is in the lowest or highest `tail` of its column.",
            "deviations": "One of its values is more than `beyond` standard deviations from the mean.",
            "mahalanobis": "Its distance from a robust centre, as a normal score, is above `beyond`.",
            "density": "Its neighbours are `farther` times as far away as their own neighbours.",
        },
        synonyms={"density-based intervals": "density", "distance-based intervals": "mahalanobis"},
    )
    tail: float = param(1.0, "Extreme share at each end.", gt=0, lt=50, unit="%", when="rule=quantile")
    beyond: float = param(
        3.0,
        "How far from the centre a record must be.",
        gt=0,
        le=1e6,
        unit="deviations",
        when="rule=deviations|mahalanobis",
    )
    neighbours: int = param(
        10, "Neighbours by which density is judged.", ge=1, le=1000, symbol="k", when="rule=density"
    )
    farther: float = param(
        1.5,
        "How many times as far as their own its neighbours must be.",
        gt=1,
        le=1e6,
        symbol="λ",
        when="rule=density",
    )

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse columns none of which has an order: nothing is extreme there."""
        reason = super().refuses(evidence)
        if reason is None and not self._ordered_columns(evidence):
            kinds = " or ".join(sorted(ORDERED))
            reason = f"{self.name} needs at least one {kinds} column, and there is none"
        return reason

    def _ordered_columns(self, evidence: Evidence) -> tuple[str, ...]:
        return evidence.of_kinds(self.columns(evidence), ORDERED)

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Link everybody, and count those who are extreme."""
        table = evidence.known_table
        values = np.column_stack([table.numbers(name) for name in self._ordered_columns(evidence)])
        if np.isnan(values).all():
            return Score.not_estimable("all values that could be extreme are missing")
        linked = super().measure(evidence, run)
        if linked.by_record is None:
            return linked
        extreme = self._extreme(values, persons_of(table), run) & ~np.isnan(linked.by_record)
        persons, owners, _ = belonging(evidence)
        assert owners is not None  # `refuses` saw to it
        found = best_by_person(persons[extreme], linked.by_record[extreme])
        guessed = best_by_person(persons[extreme], shares_by_person(persons[extreme], owners))
        dropped = {"links_expected", "links_certain", "ties_shared", "persons"}
        return Score(
            value=float(found.mean()) if len(found) else 0.0,
            by_record=np.where(extreme, linked.by_record, np.nan),
            baseline=float(guessed.mean()) if len(guessed) else 0.0,
            details={
                **{key: value for key, value in linked.details.items() if key not in dropped},
                "extreme": len(found),
                "links_expected": float(found.sum()),
                "everybody": linked.value,
            },
        )

    def _extreme(self, values: Floats, persons: Ints, run: Run) -> Flags:
        """Which records are extreme by the rule."""
        if self.rule == "quantile":
            there = values[:, ~np.isnan(values).all(axis=0)]
            low, high = np.nanquantile(there, [self.tail / 100, 1 - self.tail / 100], axis=0)
            return np.asarray(((there < low) | (there > high)).any(axis=1))
        if self.rule == "deviations":
            columns = [standardise(column, "deviation") for column in values.T]
            return np.asarray((np.abs(np.column_stack(columns)) > self.beyond).any(axis=1))
        if self.rule == "mahalanobis":
            middle = kernels.outlyingness.RobustCentre.of(values)
            scores = kernels.outlyingness.scores(*middle.distances(values))
            return np.asarray(scores > self.beyond)
        count = min(self.neighbours, len(values) - 2)
        if count < 1:
            return np.zeros(len(values), dtype=np.bool_)
        points = np.column_stack([standardise(column, "deviation") for column in values.T])
        crowd = kernels.neighbours.crowd(points, persons, count, tick=run.ticker("density"))
        return np.asarray(crowd.sparsity > self.farther)


class RobustIntervals(Measure):
    r"""Share of records with all values near the released ones, within wider limits for outliers (RMDID1).

    .. math::

        \frac{1}{N} \left|\left\{i : |x_{ij} - y_{ij}| \le k \, d_i^2 \, s_j
            \text{ for all } j\right\}\right|

    where :math:`y_i` is what was released for record :math:`i`, :math:`d_i` its robust Mahalanobis distance
    from the middle of the original, :math:`s_j` the robust deviation of column :math:`j`, and :math:`k` the
    ``width``. What is near enough to tell an outlier would not tell anyone in the crowd.

    See Also
    --------
    rmdid2 : counts as safe who has others near it in the release.
    interval-disclosure : intervals of one width.

    Notes
    -----
    **How to read it.** Lower is safer. ``weighted`` counts each record by its squared distance, as the
    authors' RMDID1w does.

    **Doubt.** Exact, given the middle; that is a robust estimate which outliers cannot move, not the authors'
    minimum covariance determinant.

    **Missing.** The columns count that a record has in both tables; if it has none, nothing is disclosed.
    Columns of one value are left out.

    **Units.** Persons are counted, each by the record that is disclosed.

    **Cost.** A few passes.
    """

    name = "rmdid1"
    vetted = "brute-forced: unit/risk/test_isolation.py::test_robust_intervals_are_those_of_all_pairs"
    synonyms: ClassVar[tuple[str, ...]] = ("dRiskRMD", "distance-based intervals")
    family = "isolation"
    title = "Robust interval disclosure (RMDID1)"
    tells = Tells(
        record_sentence="its values are near the released ones, given how extreme it is (1: yes): {:.0f}"
    )
    aspect = "risk"
    threat = "inference"
    better = "low"
    bounds = (0.0, 1.0)
    kinds = ORDERED
    cost = "n log n"
    needs = Needs(mapping=True)
    counts = Counting(averages_columns=True, compares_kept_relations=True)
    references = ("templ2008", "hubert2012")

    width: float = param(
        1.0, "Half the interval for each unit of squared distance, as a share of a deviation.", gt=0, le=1000,
        unit="%", symbol="k",
    )  # fmt: skip

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse where it is not known what was released for whom, or values are not exact."""
        reason = why_incomparable(self.name, evidence, self.kinds) or super().refuses(evidence)
        return reason or why_generalised(
            self.name, self.columns(evidence), evidence.original, evidence.protected
        )

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Look into the intervals, and count persons."""
        assert evidence.protected is not None  # `refuses` saw to it
        assert evidence.source_rows is not None
        both = [
            numbers_of_both(evidence.original, evidence.protected, name) for name in self.columns(evidence)
        ]
        original, released = (np.column_stack([pair[side] for pair in both]) for side in (0, 1))
        middle = kernels.outlyingness.RobustCentre.of(original)
        varies = middle.scale > 0
        squares, sizes = middle.distances(original)
        pairs = np.flatnonzero(evidence.source_rows >= 0)
        pairs = pairs[sizes[evidence.source_rows[pairs]] > 0]
        if not len(pairs):
            return Score.not_estimable("no record with a value in a column that varies was released")
        rows = evidence.source_rows[pairs]
        original_points, released_points = (
            (side[:, varies] - middle.centre[varies]) / middle.scale[varies] for side in (original, released)
        )
        apart = np.abs(original_points[rows] - released_points[pairs])
        reach = self.width / 100 * squares[rows][:, None] + _DISTANCE_TOLERANCE * (
            1 + np.abs(original_points[rows])
        )
        inside = (np.isnan(apart) | (apart <= reach)).all(axis=1) & ~np.isnan(apart).all(axis=1)
        inside &= ~self.is_in_crowd(released_points, evidence, run)[pairs]
        found = np.full(len(original), np.nan)
        np.fmax.at(found, rows, inside.astype(np.float64))
        there = ~np.isnan(found)
        weight = squares[there].sum()
        return Score(
            value=mean_of_best(persons_of(evidence.original), found),
            by_record=found,
            details={
                "columns": int(varies.sum()),
                "columns_left_out": len(evidence.known_columns) - int(varies.sum()),
                "records": int(there.sum()),
                "weighted": float(squares[there] @ found[there] / weight) if weight > 0 else 0.0,
            },
        )

    def is_in_crowd(self, points: Floats, evidence: Evidence, run: Run) -> Flags:  # noqa: ARG002
        """Which released records are told from nobody near them: of this measure none."""
        return np.zeros(len(points), dtype=np.bool_)


class RobustIntervalsInCrowds(RobustIntervals):
    r"""Share of records that RMDID1 counts and that have few others near them in the release (RMDID2).

    A record that `rmdid1` counts is safe all the same if at least ``neighbours`` released records of others
    lie within ``near`` of what was released for it: then it cannot be told from them.

    See Also
    --------
    rmdid1 : without regard to the crowd; never below this.

    Notes
    -----
    **How to read it.** Lower is safer; never above `rmdid1`.

    **Doubt.** As `rmdid1`.

    **Missing.** As in `rmdid1`; who lacks a value is not taken for one of a crowd.

    **Units.** Persons are counted; records of one person are no crowd.

    **Cost.** A k-d tree: :math:`O(n \log n)` in few columns, up to :math:`O(n^2)` in many.
    """

    name = "rmdid2"
    vetted = "brute-forced: unit/risk/test_isolation.py::test_robust_intervals_are_those_of_all_pairs"
    synonyms = ("dRiskRMD",)
    family = "isolation"
    title = "Robust interval disclosure outside crowds (RMDID2)"
    cost = "n²"
    tells = Tells(
        record_sentence="its values are near the released ones, and few other records are (1: yes): {:.0f}"
    )

    near: float = param(
        5.0, "How near others must be, by Euclidean distance, as a share of a deviation.", gt=0, le=1000,
        unit="%",
    )  # fmt: skip
    neighbours: int = param(3, "Number of others near a record that hide it.", ge=1, le=1000, symbol="m")

    def is_in_crowd(self, points: Floats, evidence: Evidence, run: Run) -> Flags:
        """Those that have enough others near them."""
        whole, owners = ~np.isnan(points).any(axis=1), owners_of(evidence)
        crowded = np.zeros(len(points), dtype=np.bool_)
        tick = run.ticker(self.title)
        found = kernels.neighbours.crowd(points[whole], owners[whole], self.neighbours, tick=tick)
        crowded[whole] = found.radii <= self.near / 100 * (1 + _DISTANCE_TOLERANCE)
        return crowded

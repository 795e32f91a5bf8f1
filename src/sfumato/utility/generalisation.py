"""Generalisation: how coarse the released cells have become, by width or by level.

These measures see ranges, sets and suppressed values. A value that was exchanged or moved by noise is still
an exact one, and costs nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Needs, Score
from sfumato.core.run import Run
from sfumato.data.classes.classes import MAX_WHOLE
from sfumato.data.generalised.cover import Cover
from sfumato.data.generalised.levels import KeyLevels
from sfumato.data.hierarchy.grow import cuts_of, propose
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import COMPARABLE, Kind
from sfumato.data.table import Table
from sfumato.errors import SfumatoError
from sfumato.kernels.arrays import Flags, Floats
from sfumato.utility._readings import Rows, by_original, n_left_out, pairs_of, spans_of


class CoarseCells(Measure):
    """A mean over cells of how coarse each has become, from 0 (exact) to 1 (it says nothing)."""

    aspect = "utility"
    better = "low"
    bounds = (0.0, 1.0)
    kinds = COMPARABLE
    cost = "n"
    needs = Needs(exact_original=True)

    @abstractmethod
    def coarseness(self, spans: Cover, evidence: Evidence, name: str, sources: Rows | None) -> Floats:
        """How coarse the cells of a column are, where they say something, and whose they are if known."""

    def count_details(self, spans: Cover, losses: Floats) -> Counter[str]:  # noqa: ARG002
        """What else is to be counted in a column."""
        return Counter()

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Average over the cells that had a value."""
        released, sources, weights = rows_of(evidence)
        by_column: dict[str, float] = {}
        sums: Floats = np.zeros(1)
        counts: Floats = np.zeros(1)
        counted: Counter[str] = Counter(generalised_cells=0, suppressed_cells=0)
        names = self.columns(evidence)
        for name in run.track(self.title, names, len(names)):
            known, spans = cells_of(evidence, name, released, sources)
            if not known.any():
                continue
            losses = np.where(spans.uninformative, 1.0, self.coarseness(spans, evidence, name, sources))
            share = known if weights is None else known * weights
            by_column[name] = float((losses * share).sum() / share.sum())
            sums, counts = sums + losses * known, counts + known
            counted["generalised_cells"] += int((known & (spans.lows < spans.highs)).sum())
            counted["suppressed_cells"] += int((known & spans.uninformative).sum())
            counted += self.count_details(spans, losses * known)
        if not by_column:
            return Score.not_estimable("no released cell stands for a value of the original")
        return Score(
            value=float(np.mean(list(by_column.values()))),
            by_column=by_column,
            by_record=_by_record(evidence, sums, counts, sources),
            details={
                "columns": len(by_column),
                "records": len(sums),
                "records_left_out": n_left_out(released),
                **counted,
                "weighted": "no" if weights is None else "yes",
            },
        )


def rows_of(evidence: Evidence) -> tuple[Rows, Rows | None, Floats | None]:
    """Which released records are looked at, their originals where they map, and how much each counts."""
    assert evidence.protected is not None
    if evidence.source_rows is None:
        return slice(None), None, evidence.protected.weights
    released, sources = pairs_of(evidence)
    weights = evidence.original.weights
    return released, sources, None if weights is None else weights[sources]


def cells_of(evidence: Evidence, name: str, released: Rows, sources: Rows | None) -> tuple[Flags, Cover]:
    """Which cells of a column had a value (all, where nobody can tell), and what they stand for now."""
    assert evidence.protected is not None
    numbers, spans = spans_of(evidence.original, evidence.protected, name)
    spans = spans.take(released)
    known = np.ones(len(spans.lows), dtype=np.bool_) if sources is None else ~np.isnan(numbers[sources])
    return known, spans


def _by_record(evidence: Evidence, sums: Floats, counts: Floats, sources: Rows | None) -> Floats | None:
    if sources is None:
        return None
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return by_original(means, sources, len(evidence.original))


class GeneralisedInformationLoss(CoarseCells):
    r"""Mean share of its column's range that a released value spans (GenILoss).

    .. math::

        \frac{1}{n\,m} \sum_{i=1}^{n} \sum_{j=1}^{m} \frac{U_{ij} - L_{ij}}{U_j - L_j}

    where a released value may stand for anything from :math:`L_{ij}` to :math:`U_{ij}` and the column goes
    from :math:`L_j` to :math:`U_j` (declared, or else as seen in the original). A set of :math:`s` out of
    :math:`S` values counts :math:`(s - 1)/(S - 1)`; so does a range of an ordinal or nominal column.

    See Also
    --------
    precision-loss : by the levels of a hierarchy.
    non-uniform-entropy : by how many records have the values.
    generalisation-loss : by distance from the truth.

    Notes
    -----
    **How to read it.** 0 means that all released values are exact (though they need not be
    true: noise and swapping cost nothing here), 1 that none says anything. ``by_column`` and ``by_record``
    show where.

    **Doubt.** Exact. Where the original has weights, means are weighted.

    **Missing.** A value missing in the original does not count. One missing only in the release, a
    wildcard, and all values of a record that was left out count as 1. Where records do not map, nobody can
    tell a suppressed value from one that never was there: all count as 1.

    **Cost.** A few passes.

    Examples
    --------
    >>> from sfumato.data.generalised.intervals import intervals
    >>> schema = Schema((Column("age", Kind.CONTINUOUS),))
    >>> original = Table(pl.DataFrame({"age": [20, 30, 40, 60]}), schema)
    >>> released = Table(pl.DataFrame([intervals([20, 20, 40, 60], [30, 30, 60, 60], name="age")]), schema)
    >>> evidence = Evidence(original, Release.of(released, source_rows=np.arange(4)))
    >>> GeneralisedInformationLoss().score(evidence, Run(seed=1)).value  # (10 + 10 + 20 + 0) / 40 / 4
    0.25
    """

    name = "generalised-information-loss"
    vetted = "brute-forced: property/test_losses.py::test_possibilities_and_bits_against_enumeration"
    synonyms = ("GenILoss", "loss", "loss metric", "normalised certainty penalty", "NCP")
    family = "coarseness"
    title = "Generalised information loss (GenILoss)"
    references = ("iyengar2002", "carvalho2023")

    def coarseness(self, spans: Cover, *_: object) -> Floats:
        """The share of the range that each cell spans."""
        return spans.share_of_domain()


class PrecisionLoss(CoarseCells):
    r"""Mean level of the released values in their hierarchies, as a share of the height (1 − Prec).

    .. math::

        1 - \mathrm{Prec} = \frac{1}{n\,m} \sum_{i=1}^{n} \sum_{j=1}^{m} \frac{h_{ij}}{H_j}

    where :math:`h_{ij}` is the level of the released label, counted from the values (0) to the root
    (:math:`H_j`). The number of steps taken altogether, :math:`\sum h_{ij}`, is Samarati's minimal
    distortion; it is in ``details`` for columns that have levels. The hierarchy of ranges is the one that the
    column names, or else the one that is grown from the original; a range on none of its levels (Mondrian's)
    counts with the share of its column that it spans, as in generalised-information-loss.

    See Also
    --------
    generalised-information-loss : by the number of values that a label covers, whatever the levels between.

    Notes
    -----
    **How to read it.** 0 means that all released values are exact (though they need not be
    true: noise and swapping cost nothing here), 1 that none says anything. It depends on how many levels a
    hierarchy has: two hierarchies of one column do not compare.

    **Doubt.** Exact. A label that stands on several levels has the lowest, and one of a single value is as
    good as the value, 0. Labels that are of no hierarchy, as those read from a file, have the level that the
    labels around them make: a step that adds nothing to what a label covers is none there. Where the original
    has weights, means are weighted.

    **Missing.** A value missing in the original does not count. One missing only in the release, a
    wildcard, all values of a record that was left out and those of a dropped column count as the root, 1.
    Where records do not map,
    nobody can tell a suppressed value from one that never was there: all count as the root.

    **Cost.** A few passes.

    Examples
    --------
    >>> from sfumato.data.generalised.nodes import Nodes
    >>> schema = Schema((Column("county", Kind.NOMINAL),))
    >>> original = Table(pl.DataFrame({"county": ["Kern", "Kings", "Lake", "Kern"]}), schema)
    >>> nodes = Nodes.of({"Lake": ["Lake"], "south": ["Kern", "Kings"]}, leaves=["Kern", "Kings", "Lake"])
    >>> labels = pl.Series("county", ["south", "south", "Lake", "*"], dtype=nodes.dtype)
    >>> released = Table(pl.DataFrame([labels]), schema, nodes={"county": nodes})
    >>> evidence = Evidence(original, Release.of(released, source_rows=np.arange(4)))
    >>> PrecisionLoss().score(evidence, Run(seed=1)).value  # levels 1, 1, 0 and 2 of 2
    0.5
    """

    name = "precision-loss"
    vetted = "published: reference/test_recoding_adult.py::test_losses_of_nodes"
    synonyms = ("precision", "Prec", "minimal distortion", "height")
    family = "coarseness"
    title = "Precision loss (1 − Prec)"
    references = ("sweeney2002generalization", "samarati2001")

    def coarseness(self, spans: Cover, evidence: Evidence, name: str, sources: Rows | None) -> Floats:
        """The level of each cell as a share of the height."""
        if spans.sets is not None and spans.codes is not None:
            levels = spans.sets.levels
            return np.append(levels / max(int(levels.max(initial=0)), 1), 1.0)[spans.codes]
        shares = spans.share_of_domain()
        if not spans.exact and sources is not None:
            for share, climbed in _climb(evidence, name, spans, sources):
                shares[(climbed.lows == spans.lows) & (climbed.highs == spans.highs)] = share
        return shares

    def count_details(self, spans: Cover, losses: Floats) -> Counter[str]:
        """The number of steps up, where there are levels."""
        height = 0 if spans.sets is None else int(spans.sets.levels.max(initial=0))
        return Counter(steps=round(float(losses.sum()) * height))


def _climb(evidence: Evidence, name: str, spans: Cover, sources: Rows) -> Iterator[tuple[float, Cover]]:
    """The range of each original value on each level of its hierarchy, highest first, and the level's share.

    That is the hierarchy which the column names, or else the one that grows from it.
    """
    column, original = evidence.original.schema[name], evidence.original
    given: object = evidence.resources.get(column.hierarchy) if column.hierarchy else None
    try:
        if not isinstance(given, Hierarchy) and _has_plain_numbers(original, name):
            yield from _climb_cuts(original.numbers(name), spans, sources)
            return
        hierarchy = given if isinstance(given, Hierarchy) else propose(column, original.frame[name])
        key = KeyLevels.of(original, name, hierarchy, "root")
    except SfumatoError:  # no hierarchy grows from such values
        return
    for level in reversed(range(key.height - 1)):
        climbed = spans_of(original, key.write(original, level), name)[1].take(sources)
        yield level / (key.height - 1), climbed


def _has_plain_numbers(table: Table, name: str) -> bool:
    """Whether cuts part the values of a column as they part the texts of them."""
    dtype = table.frame.schema[name]
    if table.schema[name].kind is not Kind.CONTINUOUS or not (dtype.is_integer() or dtype == pl.Float64):
        return False
    return bool(np.nanmax(np.abs(table.numbers(name)), initial=0.0) < MAX_WHOLE)


def _climb_cuts(numbers: Floats, spans: Cover, sources: Rows) -> Iterator[tuple[float, Cover]]:
    """The same of numbers whose hierarchy would grow from them: it is not written."""
    present = numbers[~np.isnan(numbers)]
    levels = [np.array(cuts, dtype=np.float64) for cuts in cuts_of(pl.Series(present))]
    is_whole = all((each == np.floor(each)).all() for each in (present, *levels))
    if not levels:
        return
    places = np.searchsorted(levels[0], numbers, side="right")[sources]
    for level in reversed(range(len(levels))):
        cuts, finest = levels[level], np.append(-np.inf, levels[0])
        bins = np.searchsorted(cuts, finest, side="right")
        lows, highs = np.append(-np.inf, cuts)[bins], np.append(cuts - is_whole, np.inf)[bins]
        climbed = Cover(lows, highs, spans.domain, spans.step).close_ends()
        yield (level + 1) / (len(levels) + 1), climbed.take(places)

"""Risk in the permutation model: whatever a method does to a column, what protects is the change of ranks.

Ranks are mid-ranks within their own table. Between an original column :math:`X` and its release :math:`Y`
stands :math:`Z`, the values of :math:`X` in the order of :math:`Y` (`reverse_mapping`): from :math:`X` to
:math:`Z` ranks are permuted, from :math:`Z` to :math:`Y` values change and ranks do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Counting, Measure, Needs, Score, Status, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.codings import numbers_of_both
from sfumato.data.hierarchy.likeness import labels_of, marginality, why_not_covered
from sfumato.data.persons import best_by_person, persons_of
from sfumato.data.schema import COMPARABLE, Kind
from sfumato.kernels.arrays import Floats, Ints
from sfumato.risk._spaces import why_generalised, why_incomparable


def reverse_mapping(values: Floats, released: Floats, *, rng: np.random.Generator | None = None) -> Floats:
    """Give each released value the original value of its rank: the Z between X and Y.

    Parameters
    ----------
    values, released : float64[n]
        NaN has no rank. Released values that are equal share their mid-rank, and so the original value there,
        or the mean of the two that it falls between.
    rng
        Where there are more of one, as many of it are drawn as there are of the other (004, section 4);
        released values that are not drawn have no Z.

    Examples
    --------
    >>> reverse_mapping(np.array([10.0, 20.0, 30.0, 40.0]), np.array([7.0, 5.0, 5.0, 9.0]))
    array([30., 15., 15., 40.])
    """
    ordered = np.sort(values[~np.isnan(values)])
    places = np.argsort(released)[: int((~np.isnan(released)).sum())]  # so that no order of a file matters
    size = min(len(ordered), len(places))
    if len(ordered) != len(places):
        if rng is None:
            raise ValueError(
                "as many values must be there as released ones unless `rng` draws from the more, "
                f"got: {len(ordered)} and {len(places)}"
            )
        rows = np.sort(rng.choice(max(len(ordered), len(places)), size, replace=False))
        ordered = ordered if len(ordered) == size else ordered[rows]
        places = places if len(places) == size else places[rows]
    mapped = np.full(len(released), np.nan)
    ranks = kernels.ranks.midranks(released[places]) - 1
    low, high = np.floor(ranks).astype(np.int64), np.ceil(ranks).astype(np.int64)
    mapped[places] = ordered[low] / 2 + ordered[high] / 2
    return mapped


def numbers_in_order(evidence: Evidence, name: str) -> tuple[Floats, Floats]:
    """A column of both tables as numbers whose order is that of the values; NaN where they are missing.

    Nominal values stand in the order of their marginality in the original: two that are as marginal tie.
    """
    assert evidence.protected is not None  # `refuses` saw to it
    tables = evidence.original, evidence.protected
    if evidence.original.schema[name].kind is not Kind.NOMINAL:
        return numbers_of_both(*tables, name)
    hierarchy = evidence.hierarchy_of(name)
    assert hierarchy is not None  # `refuses` saw to it
    original, released = (labels_of(hierarchy, table, name) for table in tables)
    return marginality(original, original), marginality(released, original)


class _PermutationMeasure(Measure):
    """Compares the ranks of the original with those of the release, column by column or all together."""

    aspect = "risk"
    threat = "linkability"
    better = "high"
    bounds = (0.0, 1.0)
    kinds = COMPARABLE
    needs = Needs(mapping=True)
    counts = Counting(averages_columns=True, compares_kept_relations=True)

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse columns without ranks, ranges and groups of values, and records of nobody knows whom."""
        reason = why_incomparable(self.name, evidence, self.kinds) or super().refuses(evidence)
        if reason is not None:
            return reason
        assert evidence.protected is not None  # that was a reason
        names = self.columns(evidence)
        return why_generalised(self.name, names, evidence.original, evidence.protected) or _why_unranked(
            self.name, evidence, names
        )


def _why_unranked(measure: str, evidence: Evidence, names: tuple[str, ...]) -> str | None:
    """Why nominal columns have no ranks; None if their hierarchies give them."""
    assert evidence.protected is not None
    tables = evidence.original, evidence.protected
    nominal = [name for name in names if evidence.original.schema[name].kind is Kind.NOMINAL]
    found = (why_not_covered(evidence.hierarchy_of(name), name, *tables) for name in nominal)
    faults = [fault for fault in found if fault]
    if not faults:
        return None
    return f"{measure} needs a hierarchy to rank each nominal column: {'; '.join(faults)}"


@dataclass(frozen=True)
class _RankedTables:
    """Two tables of as many complete records, ranked."""

    original: RankBasis
    released: RankBasis
    names: tuple[str, ...]
    details: dict[str, float | int | str]

    @property
    def reason(self) -> str | None:
        """Why their correlations say nothing; None if they do."""
        n_records, ranks = (
            len(self.original.basis),
            [each.basis.shape[1] for each in (self.original, self.released)],
        )
        if not all(ranks):
            table = "the release" if ranks[0] else "the original"
            return f"no column of {table} varies in the complete records"
        if n_records < sum(ranks) + 2:
            return (
                f"{n_records} complete records are too few for {len(self.names)} columns: any two tables of "
                "that size would correlate"
            )
        return None


def _rank_tables(measure: Measure, evidence: Evidence, run: Run) -> _RankedTables | str:
    """Make two tables of as many records (004, section 4), or say why there are none.

    Where records map, the originals that were not released are left out; else the larger table is sampled.
    Records that lack a value are set aside, and before them columns of which a table has no value at all.
    """
    names = measure.columns(evidence)
    columns = [numbers_in_order(evidence, name) for name in names]
    there = [not any(np.isnan(side).all() for side in column) for column in columns]
    ranked_names = tuple(name for name, has in zip(names, there, strict=True) if has)
    if not ranked_names:
        return "no column has a value in both tables"
    original, released = (
        np.column_stack([column[side] for column, has in zip(columns, there, strict=True) if has])
        for side in (0, 1)
    )
    rows, sampled = evidence.source_rows, 0
    if rows is not None:
        original, released = original[rows[rows >= 0]], released[rows >= 0]
        whole = ~(np.isnan(original).any(axis=1) | np.isnan(released).any(axis=1))
        incomplete = int((~whole).sum())
        original, released = original[whole], released[whole]
    else:
        n_all = len(original) + len(released)
        original, released = (side[~np.isnan(side).any(axis=1)] for side in (original, released))
        incomplete = n_all - len(original) - len(released)
        sampled = max(len(original), len(released)) if len(original) != len(released) else 0
        original, released = _same_size(original, released, run)
    if not len(original):
        return "every record lacks some value"
    details: dict[str, float | int | str] = {
        "columns": len(ranked_names),
        "columns_left_out": len(evidence.known_columns) - len(ranked_names),
        "records": len(original),
        "incomplete": incomplete,
        **({"sampled": f"of {sampled}"} if sampled else {}),
    }
    pair = _RankedTables(rank_basis(original), rank_basis(released), ranked_names, details)
    details |= _constant_columns(pair)
    return pair


def _same_size(original: Floats, released: Floats, run: Run) -> tuple[Floats, Floats]:
    """Sample the larger of two tables, by what its records are: their order in the file is no evidence."""
    size, rng = min(len(original), len(released)), run.rng("sample")
    first, second = (
        side if len(side) == size else side[np.lexsort(side.T)[rng.choice(len(side), size, replace=False)]]
        for side in (original, released)
    )
    return first, second


def _constant_columns(pair: _RankedTables) -> dict[str, str]:
    """Which columns say nothing, in words."""
    reasons = {}
    for word, which in (("constant", "constant"), ("redundant", "redundant")):
        for where, side in (("original", pair.original), ("release", pair.released)):
            if found := getattr(side, which):
                reasons[f"{word}_in_{where}"] = ", ".join(pair.names[each] for each in found)
    return reasons


class _CanonicalMeasure(_PermutationMeasure):
    """One minus squared canonical correlations of ranks, of records that belong together."""

    cost = "n log n"
    references = ("domingoferrer2020", "domingoferrer2016", "hotelling1936")

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Correlate the ranks of both tables."""
        pair = evidence.remember("permutation model, pairs", lambda: _rank_tables(self, evidence, run))
        if isinstance(pair, str) or pair.reason:
            return Score.not_estimable(pair if isinstance(pair, str) else str(pair.reason))
        left = protection(inner_products(pair.original.basis, pair.released.basis))
        return Score(
            value=self.of(left),
            by_column=_by_column(pair),
            details={**pair.details, "largest_correlation": float(np.sqrt(1 - left[0]))},
        )

    def of(self, left: Floats) -> float:
        """The number, from one minus each squared correlation, the least first."""
        raise NotImplementedError  # abstract


def _by_column(pair: _RankedTables) -> dict[str, float]:
    """1 − ρ² of each column with its own release."""
    both = np.einsum(
        "ij,ij->j",
        pair.original.parts,
        inner_products(pair.original.basis, pair.released.basis) @ pair.released.parts,
    )
    varies = set(range(len(pair.names))) - set(pair.original.constant) - set(pair.released.constant)
    return {pair.names[i]: float(np.clip(1 - both[i] ** 2, 0.0, 1.0)) for i in sorted(varies)}


class LargestCorrelation(_CanonicalMeasure):
    r"""Confidentiality by the largest canonical correlation of the ranks of original and release (CM1).

    .. math:: CM_1(X, Y) = 1 - \rho_1^2

    where :math:`\rho_1` is the largest correlation that any combination of the original's columns of ranks
    has with any combination of the release's.

    See Also
    --------
    cm2 : counts all canonical correlations; never above this.
    cm3 : needs no pairs, for synthetic data.
    rank-utility : the utility in the same model.

    Notes
    -----
    **How to read it.** Higher is safer. 0 means that some column, or combination of columns, can be read off
    the release by its ranks: one column that is left as it was is enough. 1 means that ranks say nothing;
    independent records have a little less. ``by_column`` gives
    :math:`1 - \rho^2` of each column with its own release.

    **Doubt.** Exact; by QR and SVD of centred ranks. Columns that are constant or a combination of others are
    set aside and named: they change nothing.

    **Missing.** Records that lack a value in either table are set aside and counted, and so are originals
    that were not released. Columns without any value are left out.

    **Ties** share their mean rank. Nominal columns are ranked by their marginality in their hierarchy.

    **Cost.** A sort of each column and a few passes.

    Examples
    --------
    >>> schema = Schema((Column("x", Kind.CONTINUOUS),))
    >>> original = Table(pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]}), schema)
    >>> released = Table(pl.DataFrame({"x": [10.0, 30.0, 20.0, 40.0]}), schema)  # correlation of ranks .8
    >>> evidence = Evidence(original, Release.of(released, source_rows=np.arange(4)))
    >>> round(LargestCorrelation().score(evidence, Run(seed=1)).value, 3)
    0.36
    """

    name = "cm1"
    vetted = "published: reference/test_paper_permutation.py::test_confidentiality_of_synthetic_census"
    family = "permutation model"
    title = "Confidentiality by the largest rank correlation (CM1)"

    def of(self, left: Floats) -> float:
        """The least."""
        return float(left[0])


class AllCorrelations(_CanonicalMeasure):
    r"""Confidentiality by all canonical correlations of the ranks of original and release (CM2).

    .. math:: CM_2(X, Y) = \prod_{i=1}^{m} \left(1 - \rho_i^2\right)

    where :math:`\rho_1 \ge \rho_2 \ge \dots` are the canonical correlations of the ranks. For elliptical
    distributions it is :math:`e^{-I(X; Y)}` with the mutual information :math:`I`.

    See Also
    --------
    cm1 : counts the largest only.
    cm3 : needs no pairs, for synthetic data.

    Notes
    -----
    **How to read it.** Higher is safer; never above `cm1`, and 0 where that is 0. Independent records of
    :math:`m` columns have about :math:`1 - m^2 / (n - 1)`.

    **Doubt.** Exact, as `cm1`.

    **Missing.** As in `cm1`.

    **Cost.** A sort of each column and a few passes.
    """

    name = "cm2"
    vetted = "published: reference/test_paper_permutation.py::test_confidentiality_of_synthetic_census"
    family = "permutation model"
    tells = Tells(places={"epsilon": 2})
    title = "Confidentiality by all rank correlations (CM2)"

    def of(self, left: Floats) -> float:
        """The product."""
        return float(np.prod(left))


class SortedCorrelations(_PermutationMeasure):
    r"""Confidentiality against an intruder who sorts both tables by one column (CM3).

    .. math:: CM_3(X, Y) = \min_{1 \le j \le m} CM_2(X^{-j}, Y^{-j})

    where :math:`X^{-j}` and :math:`Y^{-j}` are the tables without their :math:`j`-th column, each sorted by
    it: no record needs to be known to belong to another, so synthetic data can be measured.

    See Also
    --------
    cm2 : what is found where the pairs are known.

    Notes
    -----
    **How to read it.** Higher is safer. 0 means that sorting by some column lays other columns side by side
    again; a release of whole records in another order has 0 always. ``by_column`` gives what each column
    yields when both tables are sorted by it.

    **Doubt.** Exact where the column that decides has no ties. Else the order among equals is drawn as often
    as ``draws`` says, the mean counts, and if draws differ the number is an estimate with the least and the
    greatest of them as interval. Of two tables of different size, whose records do not map, the larger is
    sampled: an estimate too.

    **Missing.** As in `cm1`; where records do not map, each table without its incomplete records.

    **Cost.** For each column a pass over all others; that times ``draws`` for those with ties.
    """

    name = "cm3"
    vetted = "published: reference/test_paper_permutation.py::test_confidentiality_of_synthetic_census"
    family = "permutation model"
    title = "Confidentiality after sorting (CM3)"
    references = ("domingoferrer2020", "domingoferrer2016")
    cost = "n log n"
    needs = Needs(columns=2)  # one to sort by and one to compare

    draws: int = param(5, "How often the order of equal values is drawn at random.", ge=1, le=1000)

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Sort by each column in turn, and correlate the others."""
        pair = evidence.remember("permutation model, pairs", lambda: _rank_tables(self, evidence, run))
        if isinstance(pair, str) or pair.reason:
            return Score.not_estimable(pair if isinstance(pair, str) else str(pair.reason))
        found = {
            pair.names[j]: drawn
            for j in run.track(self.title, range(len(pair.names)), len(pair.names))
            if len(drawn := self._sorted_by(pair, j, run))
        }
        if not found:
            return Score.not_estimable("no column is left to compare when both tables are sorted by another")
        if _same_records(pair):  # whose equal values were drawn apart
            found = {name: np.zeros(1) for name in found}
        means = {name: float(drawn.mean()) for name, drawn in found.items()}
        least = min(float(drawn.min()) for drawn in found.values())
        value, most = min(means.values()), min(float(drawn.max()) for drawn in found.values())
        score = Score(value, by_column=means, details=pair.details)
        return _mark_as_random(score, (least, most), sampled="sampled" in pair.details)

    def _sorted_by(self, pair: _RankedTables, j: int, run: Run) -> Floats:
        """CM2 of the other columns if both tables are sorted by one, in each draw; none if it is mute."""
        if j in pair.original.constant or j in pair.released.constant:
            return np.empty(0)
        spans = [span(np.delete(each.parts, j, axis=1)) for each in (pair.original, pair.released)]
        if not all(each.shape[1] for each in spans):
            return np.empty(0)
        tied = any(_has_ties(each.ranks[j]) for each in (pair.original, pair.released))
        drawn = []
        for draw in range(self.draws if tied else 1):
            rng = run.rng("ties", pair.names[j], str(draw))
            original, released = (_places(each.ranks, j, rng) for each in (pair.original, pair.released))
            order = np.empty(len(released), dtype=np.int64)
            order[released] = np.arange(len(released))
            products = inner_products(pair.original.basis, pair.released.basis, order[original])
            drawn.append(np.prod(protection(spans[0].T @ products @ spans[1])))
        return np.array(drawn)


def _mark_as_random(score: Score, between: tuple[float, float], *, sampled: bool) -> Score:
    """Say of a number that chance had a part in it."""
    least, most = between
    if least == most and not sampled:
        return score
    reason = "the order of equal values was drawn at random" if least < most else ""
    if sampled:
        reason = " and ".join(filter(None, ("the larger table was sampled", reason)))
    return Score(
        score.value, status=Status.APPROXIMATE, interval=(least, most) if least < most else None,
        by_column=score.by_column, details=score.details, reason=reason,
    )  # fmt: skip


def _has_ties(ranks: Floats) -> bool:
    """Whether mid-ranks are other than the numbers from 1 to n."""
    seen = np.zeros(len(ranks) + 1, dtype=np.bool_)
    seen[ranks.astype(np.int64)] = True
    return int(seen.sum()) < len(ranks)


def _places(ranks: Floats, j: int, rng: np.random.Generator) -> Ints:
    """The place of each record if all are sorted by one column, from 0, in a drawn order among equals."""
    if not _has_ties(ranks[j]):
        return np.asarray(ranks[j] - 1, dtype=np.int64)
    # What is drawn goes by what a record is, not by where it stands: the order of a file is no evidence.
    keys = np.zeros(ranks.shape[1])
    for number, column in enumerate(ranks, start=1):
        keys += np.sin(number) * column  # no sum of whole multiples of these is 0
    drawn = np.empty(len(keys))
    drawn[np.argsort(keys)] = rng.random(len(keys))
    places = np.empty(len(keys), dtype=np.int64)
    # Twice a mid-rank is a whole number, so what is drawn decides among equals only.
    places[np.argsort(2 * ranks[j] + drawn)] = np.arange(len(keys))
    return places


def _same_records(pair: _RankedTables) -> bool:
    """Whether both tables have the same records of ranks, in whatever order: then nothing is protected.

    A column without ties shows it by itself; this is for tables of which every column has some.
    """
    original, released = pair.original.ranks, pair.released.ranks
    for first, second in zip(original, released, strict=True):
        if not _has_ties(first) or (np.sort(first) != np.sort(second)).any():
            return False
    sides = [side[:, np.lexsort(side)] for side in (original, released)]
    return np.array_equal(sides[0], sides[1])


# How far values moved ------------------------------------------------------------------------------------


class RankMove(NamedTuple):
    """How far one value of a record moved.

    ``as_if`` is the original value that has the released one's rank (Z, of numbers only): what its move comes
    to without the change of values that no longer alters any rank.
    """

    column: str
    rank: float  # in the original
    released_rank: float  # of what was released for it
    of_ranks: int  # values that have a rank
    as_if: float | None

    @property
    def rank_distance(self) -> float:
        """By how many ranks."""
        return self.released_rank - self.rank

    def to_dict(self) -> dict[str, float | int | str | None]:
        """As a dictionary for JSON; it is private."""
        return {**self._asdict(), "moved": self.rank_distance}


def _original_and_released_values(evidence: Evidence, name: str) -> tuple[Floats, Floats]:
    """A column of the records that were released and of what became of them; NaN where one lacks it."""
    assert evidence.source_rows is not None
    has_source = evidence.source_rows >= 0
    original, released = numbers_in_order(evidence, name)
    original, released = original[evidence.source_rows[has_source]], released[has_source]
    gone = np.isnan(original) | np.isnan(released)
    return np.where(gone, np.nan, original), np.where(gone, np.nan, released)


def moves_of(evidence: Evidence, row: int) -> tuple[RankMove, ...]:
    """How far each value of a record of the original moved, in the first record released of it.

    Columns without ranks, and values that are missing in either table, are not told of.
    """
    rows, protected = evidence.source_rows, evidence.protected
    if rows is None or protected is None or row not in rows:
        return ()
    names = (
        name
        for name in evidence.of_kinds(evidence.shared_columns, COMPARABLE)
        if why_generalised("", (name,), evidence.original, protected) is None
        and _why_unranked("", evidence, (name,)) is None
    )
    place = int(np.flatnonzero(rows[rows >= 0] == row)[0])
    moves = (_move(evidence, name, place) for name in names)
    return tuple(move for move in moves if not np.isnan(move.rank))


def _move(evidence: Evidence, name: str, place: int) -> RankMove:
    values = _original_and_released_values(evidence, name)
    rank, released_rank = (float(kernels.ranks.midranks(side)[place]) for side in values)
    is_number = evidence.original.schema[name].kind is Kind.CONTINUOUS
    as_if = float(reverse_mapping(*values)[place]) if is_number and not np.isnan(rank) else None
    return RankMove(name, rank, released_rank, int((~np.isnan(values[0])).sum()), as_if)


class PowerMean(_PermutationMeasure):
    r"""Power mean of the rank changes in a column, for the column whose ranks changed least (J).

    .. math::

        J(\alpha) = \frac{1}{n - 1} \left(\frac{1}{n} \sum_{i=1}^{n} p_i^\alpha\right)^{1/\alpha}, \qquad
        J(0) = \frac{1}{n - 1} \prod_{i=1}^{n} p_i^{1/n}

    where :math:`p_i = |\mathrm{rank}(x_i) - \mathrm{rank}(y_i)|` is the permutation distance of record
    :math:`i` in a column. Divided by the greatest distance there is, it compares across tables.

    See Also
    --------
    permutation-distance : to the nearest released record, in all columns together.
    cm1 : all columns together, bounded too.

    Notes
    -----
    **How to read it.** Higher is safer. The lower :math:`\alpha`, the more those values count that hardly
    moved: 1 is the mean, 0 the geometric mean, which is 0 if a single value kept its rank, and far below 0
    only the least distance counts. Above 1 it is those that moved far: then it tells of the loss of utility.
    ``by_column`` has each column, the score is the least.

    **Doubt.** Exact.

    **Missing.** A value that is missing in either table has no rank and does not count. Columns of one value
    are left out: nothing there could move.

    **Units.** Persons are counted, each by the record that moved least. A record released twice counts by the
    nearer.

    **Ties** share their mean rank; the slightest noise parts them, and ranks move though values hardly do.

    **Cost.** A sort of each column.
    """

    name = "power-mean"
    family = "permutation model"
    title = "Power mean of permutation distances"
    tells = Tells(record_sentence="the value that moved least changed its rank by {:.2%} of all ranks")
    references = ("ruiz2018", "domingoferrer2020")
    cost = "n log n"

    alpha: float = param(
        0.5,
        "The power: a lower one gives more weight to values that hardly moved.",
        ge=-100,
        le=100,
        symbol="α",
    )

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002
        """Average over persons, column by column."""
        assert evidence.source_rows is not None  # `refuses` saw to it
        names, persons = self.columns(evidence), persons_of(evidence.original)
        rows = evidence.source_rows[evidence.source_rows >= 0]
        by_column, least = {}, np.full(len(evidence.original), np.inf)
        for name in names:
            original, released = (
                kernels.ranks.midranks(side) for side in _original_and_released_values(evidence, name)
            )
            there = ~np.isnan(original)
            if not there.any() or np.ptp(original[there]) == 0:  # nothing can move
                continue
            apart = np.abs(original - released)[there] / (int(there.sum()) - 1)
            np.minimum.at(least, rows[there], apart)
            by_column[name] = power_mean(-best_by_person(persons[rows[there]], -apart), self.alpha)
        if not by_column:
            return Score.not_estimable("no column has two different values in records that both tables have")
        return Score(
            value=min(by_column.values()),
            by_column=by_column,
            by_record=np.where(np.isinf(least), np.nan, least),
            details={
                "columns": len(by_column),
                "columns_left_out": len(evidence.known_columns) - len(by_column),
                "records": len(rows),
            },
        )


def power_mean(values: Floats, alpha: float) -> float:
    """The power mean of values that are not negative; 0 for a power of 0 or less if one of them is."""
    if alpha <= 0 and not values.all():
        return 0.0
    if alpha == 0:
        return float(np.exp(np.log(values).mean()))
    greatest = float(values.max() if alpha > 0 else values.min())
    if greatest == 0:
        return 0.0
    # As shares of what decides, so that no power overflows or vanishes.
    return float(greatest * np.mean((values / greatest) ** alpha) ** (1 / alpha))


# Ranks of a table as a basis: canonical correlations by QR and SVD ---------------------------------------


#: A column that differs from a combination of others by less than this share of itself says nothing new.
REDUNDANT = 1e-8

#: What is left of 1 − ρ² by rounding alone.
NOTHING = 1e-9

#: Records at a time: what a block needs stays in the cache.
BLOCK = 4096


class RankBasis(NamedTuple):
    """The ranks of a table as an orthonormal basis, and each column in it."""

    ranks: Floats  # [m, n] mid-ranks, column by column
    basis: Floats  # [n, k] columns of length 1 around 0, independent of each other
    parts: Floats  # [k, m] each column of ranks, of length 1, as a combination of them
    constant: tuple[int, ...]
    redundant: tuple[int, ...]


def rank_basis(values: Floats) -> RankBasis:
    """Rank complete columns and make a basis of them, by QR: of blocks, then of what is left of each."""
    n, m = values.shape
    ranks = np.stack([kernels.ranks.midranks(column) for column in np.ascontiguousarray(values.T)])
    centred = np.ascontiguousarray(ranks.T) - (n + 1) / 2
    lengths = np.sqrt(np.einsum("ij,ij->j", centred, centred))
    centred /= np.where(lengths > 0, lengths, 1.0)
    blocks = [np.linalg.qr(centred[start : start + BLOCK], mode="r") for start in range(0, n, BLOCK)]
    triangle, pivots = qr(np.vstack(blocks), mode="r", pivoting=True, check_finite=False)
    size = min(triangle.shape)
    rank = int((np.abs(np.diagonal(triangle)[:size]) > REDUNDANT).sum())
    parts = np.zeros((rank, m))
    parts[:, pivots] = triangle[:rank]
    inverse = solve_triangular(triangle[:rank, :rank], np.eye(rank))
    basis = np.empty((n, rank))
    for start in range(0, n, BLOCK):
        basis[start : start + BLOCK] = centred[start : start + BLOCK, pivots[:rank]] @ inverse
    constant = tuple(np.flatnonzero(lengths == 0).tolist())
    redundant = tuple(sorted(set(pivots[rank:].tolist()) - set(constant)))
    return RankBasis(ranks, basis, parts, constant, redundant)


def protection(correlations: Floats) -> Floats:
    """1 − ρ² of each canonical correlation, the least first; 0 where rounding is all there is."""
    left = 1.0 - np.minimum(np.linalg.svd(correlations, compute_uv=False), 1.0) ** 2
    return np.where(left < NOTHING, 0.0, left)


def inner_products(first: Floats, second: Floats, partner: Ints | None = None) -> Floats:
    """The inner products of two bases, the second in the order of the partners of the first."""
    total = np.zeros((first.shape[1], second.shape[1]))
    for start in range(0, len(first), BLOCK):
        part = slice(start, start + BLOCK)
        total += first[part].T @ second[part if partner is None else partner[part]]
    return total


def span(parts: Floats) -> Floats:
    """An orthonormal basis of what some columns span, in the coordinates of all."""
    directions, sizes, _ = np.linalg.svd(parts, full_matrices=False)
    basis: Floats = directions[:, sizes > REDUNDANT]
    return basis

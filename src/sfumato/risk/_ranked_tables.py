"""Two tables by their ranks: of which columns, of how many records, in which space."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import qr, solve_triangular

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Counting, Measure, Needs
from sfumato.core.run import Run
from sfumato.data.codings import numbers_of_both
from sfumato.data.hierarchy.likeness import labels_of, marginality, why_not_covered
from sfumato.data.schema import COMPARABLE, Kind
from sfumato.kernels.arrays import Floats, Ints
from sfumato.risk._spaces import why_generalised, why_incomparable


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


class PermutationMeasure(Measure):
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
        return why_generalised(self.name, names, evidence.original, evidence.protected) or why_unranked(
            self.name, evidence, names
        )


def why_unranked(measure: str, evidence: Evidence, names: tuple[str, ...]) -> str | None:
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
class RankedTables:
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


def rank_tables(measure: Measure, evidence: Evidence, run: Run) -> RankedTables | str:
    """Make two tables of as many records (004, section 4), or say why there are none.

    Where records map, the originals that were not released are left out; else the larger table is sampled.
    Records that lack a value are set aside, and before them columns of which a table has no value at all.
    """
    names = measure.columns(evidence)
    columns = {name: numbers_in_order(evidence, name) for name in names}
    columns = {name: both for name, both in columns.items() if not any(np.isnan(each).all() for each in both)}
    if not columns:
        return "no column has a value in both tables"
    original, released = ([both[side] for both in columns.values()] for side in (0, 1))
    rows, sampled = evidence.source_rows, 0
    if rows is not None:
        original = _rows_of(original, rows[rows >= 0])
        released = _rows_of(released, np.flatnonzero(rows >= 0))
        whole = _whole_rows(original + released)
        incomplete = len(original[0]) - len(whole)
        original, released = (_rows_of(side, whole) for side in (original, released))
    else:
        n_all = len(original[0]) + len(released[0])
        original, released = (_rows_of(side, _whole_rows(side)) for side in (original, released))
        sizes = len(original[0]), len(released[0])
        incomplete = n_all - sum(sizes)
        sampled = max(sizes) if sizes[0] != sizes[1] else 0
        original, released = _same_size(original, released, run)
    if not len(original[0]):
        return "every record lacks some value"
    details: dict[str, float | int | str] = {
        "columns": len(columns),
        "columns_left_out": len(evidence.known_columns) - len(columns),
        "records": len(original[0]),
        "incomplete": incomplete,
        **({"sampled": f"of {sampled}"} if sampled else {}),
    }
    pair = RankedTables(rank_basis(original), rank_basis(released), tuple(columns), details)
    details |= _constant_columns(pair)
    return pair


def _rows_of(columns: list[Floats], rows: Ints) -> list[Floats]:
    """Some rows of all columns; the columns as they are if these are all of them."""
    n = len(columns[0])
    is_all = len(rows) == n and np.array_equal(rows, np.arange(n))
    return columns if is_all else [column[rows] for column in columns]


def _whole_rows(columns: list[Floats]) -> Ints:
    """The records that have a value in every column."""
    whole = np.ones(len(columns[0]), dtype=np.bool_)
    for column in columns:
        whole &= ~np.isnan(column)
    return np.flatnonzero(whole)


def _same_size(original: list[Floats], released: list[Floats], run: Run) -> tuple[list[Floats], list[Floats]]:
    """Sample the larger of two tables, by what its records are: their order in the file is no evidence."""
    sizes = len(original[0]), len(released[0])
    size, rng = min(sizes), run.rng("sample")
    first, second = (
        side if n == size else _rows_of(side, np.lexsort(side)[rng.choice(n, size, replace=False)])
        for side, n in zip((original, released), sizes, strict=True)
    )
    return first, second


def _constant_columns(pair: RankedTables) -> dict[str, str]:
    """Which columns say nothing, in words."""
    reasons = {}
    for word, which in (("constant", "constant"), ("redundant", "redundant")):
        for where, side in (("original", pair.original), ("release", pair.released)):
            if found := getattr(side, which):
                reasons[f"{word}_in_{where}"] = ", ".join(pair.names[each] for each in found)
    return reasons


#: A column that differs from a combination of others by less than this share of itself says nothing new.
REDUNDANT = 1e-8


#: What is left of 1 − ρ² by rounding alone.
NOTHING = 1e-9


#: Records at a time: what a block needs stays in the cache.
BLOCK = 4096


@dataclass(frozen=True, eq=False)
class RankBasis:
    """The ranks of a table as an orthonormal basis, and each column in it."""

    ranks: Floats  # [m, n] mid-ranks, column by column
    basis: Floats  # [n, k] columns of length 1 around 0, independent of each other
    parts: Floats  # [k, m] each column of ranks, of length 1, as a combination of them
    constant: tuple[int, ...]
    redundant: tuple[int, ...]

    @cached_property
    def tied(self) -> tuple[bool, ...]:
        """Of each column, whether some records share a rank."""
        return tuple(_has_ties(row) for row in self.ranks)

    @cached_property
    def order(self) -> Ints:
        """The records by what they are, not by where they stand: the order of a file is no evidence."""
        keys = np.zeros(self.ranks.shape[1])
        for number, column in enumerate(self.ranks, start=1):
            keys += np.sin(number) * column  # no sum of whole multiples of these is 0
        return np.argsort(keys)


def _has_ties(ranks: Floats) -> bool:
    """Whether mid-ranks are other than the numbers from 1 to n."""
    seen = np.zeros(len(ranks) + 1, dtype=np.bool_)
    seen[ranks.astype(np.int64)] = True
    return int(seen.sum()) < len(ranks)


def rank_basis(columns: list[Floats]) -> RankBasis:
    """Rank complete columns and make a basis of them, by QR: of blocks, then of what is left of each."""
    m, n = len(columns), len(columns[0])
    ranks = np.empty((m, n))
    for place, column in enumerate(columns):
        ranks[place] = kernels.ranks.midranks(column)
    lengths = np.array([np.linalg.norm(row - (n + 1) / 2) for row in ranks])
    scales = np.where(lengths > 0, lengths, 1.0)
    parts = [slice(start, start + BLOCK) for start in range(0, n, BLOCK)]

    def centred(part: slice, chosen: Ints) -> Floats:
        """Some columns of a block of records, of length 1 around 0."""
        return ((ranks[chosen, part] - (n + 1) / 2) / scales[chosen, None]).T

    blocks = [np.linalg.qr(centred(part, np.arange(m)), mode="r") for part in parts]
    triangle, pivots = qr(np.vstack(blocks), mode="r", pivoting=True, check_finite=False)
    rank = int((np.abs(np.diagonal(triangle)[: min(triangle.shape)]) > REDUNDANT).sum())
    weights = np.zeros((rank, m))
    weights[:, pivots] = triangle[:rank]
    inverse = solve_triangular(triangle[:rank, :rank], np.eye(rank))
    basis = np.empty((n, rank))
    for part in parts:
        basis[part] = centred(part, pivots[:rank]) @ inverse
    constant = tuple(np.flatnonzero(lengths == 0).tolist())
    redundant = tuple(sorted(set(pivots[rank:].tolist()) - set(constant)))
    return RankBasis(ranks, basis, weights, constant, redundant)


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

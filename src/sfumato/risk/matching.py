"""Risk by direct matching: the intruder looks for a released record that says the same of a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Score, Tells
from sfumato.core.params import Columns, param
from sfumato.core.run import Run
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.risk._spaces import NOISE_NOT_SEEN, LinkageSpace, TrueLinkMeasure, space_of, unknown_block
from sfumato.risk.linkage import expected_links


class DirectMatching(TrueLinkMeasure):
    r"""Share of people re-identified by looking for a released record with equal values in known columns.

    A released record matches a person whom the intruder knows if it agrees with them in all known columns
    but at most ``differ``, and in all of ``block``. With :math:`B_i` the released records that match
    person :math:`i`, one of which is taken by chance,

    .. math::

        P = \frac{1}{n} \sum_{i=1}^{n} \frac{|\{b \in B_i : b \text{ is of person } i\}|}{|B_i|}.

    Notes
    -----
    **How to read it.** The share of people an intruder finds who only looks for equal values; lower is safer.
    ``unique`` in the details counts the records that one released record matches, ``unique_correct`` those of
    them for which it is the right one.

    **Doubt.** Exact: agreements are counted by combinations of columns, not by looking at pairs. Numbers are
    also read as finely as the original has them. Against methods that change every number by more it says
    nothing (nobody agrees): use `dbrl` there.

    **Missing.** A missing value is a value of its own: it agrees with a missing one only. Where cells were
    suppressed the score is no more than an estimate: look at `exact-match`.

    **Units.** Where a column tells whose record it is, persons are counted, each by the record that is found
    most surely.

    **Cost.** One grouping of all records for each set of ``differ`` columns: quick for ``differ`` up to 2.
    """

    name = "direct-matching"
    vetted = "brute-forced: unit/risk/test_matching.py::test_against_a_look_at_every_pair"
    family = "linkage"
    title = "Direct matching"
    counts = replace(TrueLinkMeasure.counts, compares_equal=True)
    tells = Tells(intruder="looks for a record with equal values", not_seen=NOISE_NOT_SEEN)
    references = ("carvalho2023", "herzog2007")
    cost = "n log n"

    differ: int = param(0, "Known columns in which a match may differ.", ge=0, le=3, unit="columns")
    block: Columns = param(Columns(), "Columns in which a match must agree in any case.")

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse to look at columns that cannot be compared."""
        names = self.columns(evidence)
        return super().refuses(evidence) or unknown_block(self.name, evidence, self.block, names)

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Count who agrees with whom."""
        names = self.columns(evidence)
        space = space_of(evidence, names, run, metric="hamming", scale="range")
        if not len(space.known_points):
            return Score.not_estimable(space.why_empty)
        blocked = set(evidence.original.schema.resolve(self.block))
        loose = [position for position, name in enumerate(names) if name not in blocked]
        rule = _MatchRule(*space.points, loose, min(self.differ, len(loose)))
        n_matches, n_right = rule.counts(), _right(space, rule)
        details = {
            **self.count_details(space, evidence, names),
            "matched": int((n_matches > 0).sum()),
            "unique": int((n_matches == 1).sum()),
            "unique_correct": int(((n_matches == 1) & (n_right == 1)).sum()),
        }
        return expected_links(evidence, space, n_right / np.maximum(n_matches, 1), details)


class _MatchRule:
    """Two tables as codes, and in how many of the ``loose`` columns two records may differ to match."""

    def __init__(
        self, known_codes: Floats, released_codes: Floats, loose: Sequence[int], differ: int
    ) -> None:
        self.known_codes, self.released_codes = known_codes.astype(np.int64), released_codes.astype(np.int64)
        self.loose, self.differ = list(loose), differ

    def counts(self) -> Ints:
        r"""How many of theirs match each of mine.

        With :math:`N_r` the number that differ in exactly r of the d loose columns and agree in the others,
        and :math:`S_t` the sum, over all sets of t loose columns, of how many agree in the rest,

        .. math:: S_t = \sum_{r \le t} \binom{d-r}{t-r} N_r.
        """
        exactly: list[Ints] = []
        for left_out in range(self.differ + 1):
            total = np.zeros(len(self.known_codes), dtype=np.int64)
            for columns in self._column_subsets(left_out):
                total += self._equal_in(columns)
            for fewer, count in enumerate(exactly):
                total -= comb(len(self.loose) - fewer, left_out - fewer) * count
            exactly.append(total)
        matches: Ints = np.sum(exactly, axis=0, dtype=np.int64)
        return matches

    def _column_subsets(self, left_out: int) -> Iterator[list[int]]:
        for gone in combinations(self.loose, left_out):
            yield [column for column in range(self.known_codes.shape[1]) if column not in gone]

    def _equal_in(self, columns: Sequence[int]) -> Ints:
        """How many of theirs have the same codes in these columns, for each of mine."""
        groups = np.zeros(len(self.known_codes) + len(self.released_codes), dtype=np.int64)
        for column in columns:
            both = self.known_codes[:, column], self.released_codes[:, column]
            codes = np.concatenate(both) + 1  # −1 is missing
            # Dense again after each column, so the product stays below n², which 64 bits hold.
            groups = np.unique(groups * (codes.max(initial=0) + 1) + codes, return_inverse=True)[1]
        n_mine = len(self.known_codes)
        counts = np.bincount(groups[n_mine:], minlength=int(groups.max(initial=0)) + 1)
        return counts[groups[:n_mine]].astype(np.int64)

    def match(self, known_rows: Ints, released_rows: Ints) -> Flags:
        """Whether each pair of one of mine and one of theirs matches."""
        apart = self.known_codes[known_rows] != self.released_codes[released_rows]
        is_loose = np.zeros(self.known_codes.shape[1], dtype=np.bool_)
        is_loose[self.loose] = True
        agree: Flags = (apart[:, is_loose].sum(axis=1) <= self.differ) & ~apart[:, ~is_loose].any(axis=1)
        return agree


def _right(space: LinkageSpace, rule: _MatchRule) -> Ints:
    """How many of the released records of the same person match each of mine."""
    known_rows, released_rows = space.right_links()
    matching = known_rows[rule.match(known_rows, released_rows)]
    return np.bincount(matching, minlength=len(space.known_points)).astype(np.int64)

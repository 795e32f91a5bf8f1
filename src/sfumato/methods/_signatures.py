"""Signatures of m-invariant buckets: who gets which, and how few counterfeits balance them.

How few is proved in ``docs/proofs/counterfeits.md``: what is an integer programme over all signatures, for
which columns would have to be generated, has a closed form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sfumato.errors import UnreachableError
from sfumato.kernels.arrays import Ints

#: Values of a signature, by their codes in ascending order.
Signature = tuple[int, ...]

#: New people for each value of a signature below which all of them are put among others by lot.
_FEW_NEW = 10


def plan_filling(new: Ints, gaps: Ints, m: int) -> tuple[Ints, int]:
    r"""How many new records of each value fill gaps, and how many counterfeits any release has at least.

    .. math::

        \max\Bigl(\sum_v (g_v - f_v)^+,\; \sum_v (g_v - f_v) + m \max_v (f_v - g_v)^+\Bigr)

    for :math:`f_v` new records and :math:`g_v` gaps of value :math:`v`.

    As many fill gaps as leave the others able to have buckets of their own, those first of which most would
    be left; if they are not able to, only as many as make the most frequent value as rare as can be.
    """
    fillable = np.minimum(new, gaps)
    most = int((new - fillable).max(initial=0))
    spare = int(new.sum()) - m * most
    fewest = int(gaps.sum()) - min(int(fillable.sum()), spare)
    if int(fillable.sum()) <= spare:
        return fillable, fewest
    left = np.minimum(new, most)
    surplus = spare - int((new - left).sum())
    if surplus > 0:
        left = _lower_highest(left, new - fillable, surplus)
    return new - left, fewest


def _lower_highest(heights: Ints, floors: Ints, total: int) -> Ints:
    """Lower the highest by a total, none below its floor; of equal ones the first by one more."""
    low, high = 0, int(heights.max())
    while low < high:  # the least level to which all can be lowered
        level = (low + high) // 2
        removed = int((heights - np.maximum(floors, np.minimum(heights, level))).sum())
        low, high = (low, level) if removed <= total else (level + 1, high)
    lowered = np.maximum(floors, np.minimum(heights, low))
    rest = total - int((heights - lowered).sum())
    lowered[np.flatnonzero((lowered == low) & (lowered > floors))[:rest]] -= 1
    return lowered


class Division:
    """Gives every record a signature, and every signature the counterfeits that balance it.

    ``members`` of a signature are the records of each of its values, −1 for a counterfeit; ``fewest`` is how
    many of these there are at least, whatever signatures new records get.
    """

    def __init__(self, m: int, values: Ints, n_values: int, rng: np.random.Generator) -> None:
        self.m, self.values, self.n_values, self.rng = m, values, n_values, rng
        self.free: list[list[int]] = [[] for _ in range(n_values)]  # new records of each value
        self.counts = np.zeros(n_values, dtype=np.int64)
        self.members: dict[Signature, dict[int, list[int]]] = {}
        self.parts: dict[frozenset[int], dict[int, Signature]] = {}  # by what may not be in them
        self.to_fill, self.fewest = np.zeros_like(self.counts), 0

    def assign_signatures(
        self, before: Mapping[int, Sequence[Signature]]
    ) -> dict[Signature, dict[int, list[int]]]:
        """Divide, balance and assign."""
        changed = list[int]()
        for row in self.rng.permutation(len(self.values)).tolist():
            value, history = int(self.values[row]), before.get(row, ())
            latest = next((each for each in reversed(history) if value in each), None)
            if latest is None and history:
                changed.append(row)
            elif latest is None:
                self.free[value].append(row)
                self.counts[value] += 1
            else:
                self._put(latest, value, [row])
        frequent = np.bincount(np.delete(self.values, changed), minlength=self.n_values)
        for row in changed:
            banned, value = frozenset(each for own in before[row] for each in own), int(self.values[row])
            self._put(self._fresh(value, banned, frequent), value, [row])
        self.to_fill, self.fewest = plan_filling(self.counts, self._count_gaps(), self.m)
        is_few = self.counts.sum() < _FEW_NEW * self.m  # not how many are left: that tells of their values
        for signature in list(self.members):
            self._balance(signature)
        if self.members and (is_few or self.m * self.counts.max(initial=0) > self.counts.sum()):
            self._join_holders()
        self._make_eligible()
        self._assign()
        return self.members

    def _put(self, signature: Signature, value: int, rows: Sequence[int]) -> None:
        own = self.members.setdefault(signature, {each: [] for each in signature})
        own[value].extend(rows)

    def _fresh(self, value: int, banned: frozenset[int], frequent: Ints) -> Signature:
        """The signature of a value among those that have nothing in common with earlier ones.

        Values that someone never had are parted once for all with the same past, whatever those who changed
        have now: each value of a signature would have led to it alike. Those about as frequent among the
        others are together, so that none is much likelier; ties are by lot.
        """
        if banned not in self.parts:
            others = np.setdiff1d(np.arange(self.n_values), list(banned))
            if len(others) < self.m:
                raise UnreachableError(
                    f"a changed value needs {self.m - 1} other values that the person never had, got: "
                    f"{len(others) - 1}",
                    hint="choose a smaller m",
                )
            lot = self.rng.permutation(others)
            ordered = lot[np.argsort(-frequent[lot], kind="stable")]
            parts = np.array_split(ordered, len(others) // self.m)
            self.parts[banned] = {
                each: tuple(sorted(part.tolist())) for part in parts for each in part.tolist()
            }
        return self.parts[banned][value]

    def _balance(self, signature: Signature) -> None:
        """Give each value of a signature as many records, new ones or counterfeits."""
        own = self.members[signature]
        most = max(len(rows) for rows in own.values())
        for value in sorted(signature, key=lambda each: len(own[each])):
            lacking = most - len(own[value])
            taken = self._take_records(value, lacking)
            own[value].extend([*taken, *[-1] * (lacking - len(taken))])

    def _count_gaps(self) -> Ints:
        """How many records each value lacks in all signatures that people have."""
        gaps = np.zeros(self.n_values, dtype=np.int64)
        for own in self.members.values():
            most = max(map(len, own.values()))
            for value, rows in own.items():
                gaps[value] += most - len(rows)
        return gaps

    def _take_records(self, value: int, wanted: int) -> list[int]:
        """New records of a value for the gaps of a signature, as far as was planned."""
        many = min(wanted, int(self.to_fill[value]))
        self.to_fill[value] -= many
        self.counts[value] -= many
        return [self.free[value].pop() for _ in range(many)]

    def _join_holders(self) -> None:
        """Give new records the signature of someone of their value, by lot, where anyone has it.

        As each signature has its values equally often, each could as well be theirs: who knows how frequent
        values are, and every rule, guesses no better than by lot. If only those were put among others who
        are too many of a value, to stand among counterfeits would tell it.
        """
        sizes = {signature: len(next(iter(own.values()))) for signature, own in self.members.items()}
        touched = set[Signature]()
        for value in np.flatnonzero(self.counts).tolist():
            found = [signature for signature in sizes if value in signature]
            if not found:
                continue
            chances = np.array([sizes[each] for each in found], dtype=np.float64)
            drawn = self.rng.choice(len(found), len(self.free[value]), p=chances / chances.sum())
            for place in np.unique(drawn).tolist():
                own, new = self.members[found[place]], np.array(self.free[value])[drawn == place].tolist()
                real = [row for row in own[value] if row >= 0] + new  # in place of counterfeits, if any
                own[value] = real + [-1] * (len(own[value]) - len(real))
                touched.add(found[place])
            self.free[value], self.counts[value] = [], 0
        for signature in sorted(touched):
            self._balance(signature)

    def _assign(self) -> None:
        """Give new records signatures of the most frequent values among those that are left."""
        while (left := int(self.counts.sum())) > 0:
            order = np.argsort(-self.counts, kind="stable")
            next_most = int(self.counts[order[self.m]]) if len(order) > self.m else 0
            many, size = min(int(self.counts[order[self.m - 1]]), left // self.m - next_most), self.m
            if many < 1:  # more than m values are equally frequent, and each must be taken once
                many, size = 1, int((self.counts == self.counts.max()).sum())
            signature = tuple(sorted(order[:size].tolist()))
            for value in signature:
                rows = self.free[value][-many:]
                self.free[value] = self.free[value][:-many]
                self.counts[value] -= many
                self._put(signature, value, rows)

    def _make_eligible(self) -> None:
        """Add counterfeits until no value is that of more than one in m of the new records."""
        most = int(self.counts.max(initial=0))
        lacking = self.m * most - int(self.counts.sum())
        lot = self.rng.permutation(self.n_values)  # else who is alone would be with the same values always
        for value in lot[np.argsort(-self.counts[lot], kind="stable")].tolist():
            more = max(min(lacking, most - int(self.counts[value])), 0)
            self.free[value].extend([-1] * more)
            self.counts[value] += more
            lacking -= more

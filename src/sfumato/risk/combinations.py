"""Rare combinations: who stands out in a few of the keys already, whichever few an intruder may know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from math import comb

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import seen_table
from sfumato.core.measure import Score, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.errors import count_noun
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.risk._key_measures import (
    CLASS_LAWS,
    KeyMeasure,
    SensitiveMeasure,
    by_original,
    counted_in,
    worst_by_person,
    yes_or_no,
)
from sfumato.risk._subsets import CodedColumn, KeyCodes, KeyPartition, SmallestUnsafe, code_column, too_many

#: What a confidence may be above the one allowed because of rounding.
_FLOAT_TOLERANCE = 1e-12


class UnsafeCombinations(KeyMeasure):
    r"""Share of records with a combination of a few keys that fewer than k records share.

    .. math::

        \frac{1}{n} \left|\left\{ r : \min_{S \subseteq Q,\ |S| \le d} f_S(r) < k \right\}\right|

    where :math:`f_S(r)` is the number of records that agree with :math:`r` in all keys of :math:`S`, and
    :math:`d` is the ``dimension``. An unsafe combination is *smallest* if no part of it is unsafe: that is
    where suppressing one value or recoding one key helps.

    See Also
    --------
    KAnonymity : all keys at once.
    Uniqueness : all keys at once, with ranges and wildcards.

    Notes
    -----
    **How to read it.** An intruder rarely knows all keys; this is the rule of thumb of
    statistical offices, that no combination of two or three may be rare. ``by_column`` is the number of
    records in whose smallest unsafe combinations a key takes part, so it says which key to recode.
    ``by_record`` is the number of a record's smallest unsafe combinations. ``details`` has for each number
    of keys how many records have an unsafe combination (``unsafe_1``, …), a smallest one (``smallest_1``,
    …), and how many combinations of values are unsafe (``combinations_1``, …).

    **Doubt.** Exact for the file. A combination that is rare in a sample need not be so in the population. A
    generalised value is a value like others: ranges that overlap are different.

    **Missing.** A missing key is a value of its own by default (``category``). As ``any`` it agrees with
    every value. At ``worst`` every combination with a missing value is unsafe, and helps nobody else.

    **Units.** Where a column tells whose record it is, :math:`f` counts persons, and so does the share.

    **Cost.** One pass for each subset of up to ``dimension`` keys: 129 for up to three of nine, at about
    20 ns for each record. More than 20,000 subsets are refused.

    Examples
    --------
    >>> jobs = ["cook", "cook", "cook", "smith", "cook"]
    >>> frame = pl.DataFrame({"sex": ["m", "m", "f", "f", "f"], "job": jobs})
    >>> table = Table(frame, Schema(tuple(Column(name, Kind.NOMINAL, Role.KEY) for name in ("sex", "job"))))
    >>> score = UnsafeCombinations(dimension=2).score(Evidence(table), Run(seed=1))
    >>> score.value, dict(score.by_column), score.details["combinations_2"]
    (0.2, {'job': 1.0, 'sex': 0.0}, 1)
    """

    name = "unsafe-combinations"
    vetted = "brute-forced: property/test_combinations.py::test_unsafe_combinations_by_enumeration"
    synonyms = ("riskyCells", "combination tables")
    family = "equivalence classes"
    tells = Tells(places={"report": 8, "combinations": 1})
    title = "Unsafe combinations"
    better = "low"
    bounds = (0.0, 1.0)
    references = ("dewaal1996", "willenborg2001", "hundepool2012")
    cost = "n"

    dimension: int = param(3, "Largest number of keys in a combination.", ge=1, le=6, symbol="d")
    k: int = param(2, "Combinations that fewer records share are unsafe.", ge=2, le=1_000_000, unit="records")

    def sentence(self, value: float) -> str:
        """Say in words what its number means for one record."""
        if value <= 0:
            return "it has no rare combination of a few keys"
        return f"it has {count_noun(round(value), 'smallest rare combination')} of a few keys"

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse more subsets than can be gone through."""
        n_keys = len(self.keys(evidence))
        sizes = range(1, min(self.dimension, n_keys) + 1)
        return super().refuses(evidence) or too_many(self.name, n_keys, sizes)

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Go through the subsets, small ones first."""
        table = seen_table(evidence)
        keys = KeyCodes.of(table, self.keys(evidence))
        n_keys = len(keys.names)
        details: dict[str, float | int | str] = {"columns": n_keys, "records": len(table)}
        unsafe, smallest = np.zeros(len(table), dtype=np.bool_), np.zeros(len(table), dtype=np.int64)
        part_of = np.zeros((n_keys, len(table)), dtype=np.bool_)
        search = SmallestUnsafe(keys, k=self.k, missing=self.missing, dimension=self.dimension)
        # Who is like so many in all keys is like as many in any few of them: then none need be looked at.
        is_safe = self.missing != "any" and self.classes(evidence).persons.min() >= self.k
        for size in search.sizes:
            before, n_combinations = smallest.copy(), 0
            subsets = () if is_safe else search.of_size(size)
            for found in run.track(f"{self.title} of {size}", subsets, comb(n_keys, size)):
                unsafe |= found.unsafe
                smallest += found.smallest
                part_of[list(found.subset)] |= found.smallest
                n_combinations += found.n_combinations
            details |= {
                f"unsafe_{size}": int(unsafe.sum()),
                f"smallest_{size}": int((smallest > before).sum()),
                f"combinations_{size}": n_combinations,
            }
        return Score(
            value=float(worst_by_person(table, keys.in_table_order(unsafe).astype(np.float64)).mean()),
            by_column={name: float(part.sum()) for name, part in zip(keys.names, part_of, strict=True)},
            by_record=by_original(evidence, keys.in_table_order(smallest).astype(np.float64), worst="high"),
            details=details | {"counted": counted_in(table)},
        )


class LkcPrivacy(SensitiveMeasure):
    r"""Smallest group of records that agree in L keys, or 0 if some group makes a sensitive value too sure.

    A table is LKC-private if every combination :math:`q` of values of at most :math:`L` keys that occurs in
    it

    .. math::

        |T(q)| \ge K \quad\text{and}\quad \max_s \frac{|T(q) \cap T(s)|}{|T(q)|} \le C

    where :math:`T(q)` are the records with these values and :math:`T(s)` those with the sensitive value
    :math:`s`. The score is the largest :math:`K` for which that holds with the given ``l`` and ``c``: the
    smallest :math:`|T(q)|`, or 0 if for some :math:`q` a value is surer than ``c``.

    See Also
    --------
    KAnonymity : all keys known.
    UnsafeCombinations : which keys make whom rare.

    Notes
    -----
    **How to read it.** It protects against an intruder who knows up to L keys of a person,
    which in files of many keys is more realistic, and asks for less, than all. ``details`` has the smallest
    group and the highest confidence apart; ``by_column`` is the highest confidence for each sensitive
    column, ``by_record`` the smallest group of a record, or 0 if a value is told too surely in one of its
    groups of L keys.

    **Doubt.** Exact. Groups of fewer than L keys are never smaller, nor surer, than the smallest and surest
    among those of L, so that only the latter are looked at (where records are counted and groups do not
    overlap).

    **Missing.** A missing key is a value of its own by default (``category``), and so is a missing sensitive
    value. As ``any`` a missing key agrees with every value, and a missing sensitive value tells nothing. At
    ``worst`` a record with a missing key is a group of its own, and a missing sensitive value may be any.

    **Units.** Where a column tells whose record it is, persons are counted.

    **Cost.** One pass for each subset of L keys and each sensitive column. More than 20,000 subsets are
    refused.

    Examples
    --------
    >>> frame = pl.DataFrame({
    ...     "sex": ["m", "m", "f", "f"], "job": ["cook", "smith", "smith", "cook"],
    ...     "illness": ["flu", "flu", "flu", "angina"],
    ... })
    >>> roles = {"sex": Role.KEY, "job": Role.KEY, "illness": Role.SENSITIVE}
    >>> table = Table(frame, Schema(tuple(Column(name, Kind.NOMINAL, role) for name, role in roles.items())))
    >>> score = LkcPrivacy(l=1, c=0.9).score(Evidence(table), Run(seed=1))
    >>> score.value, score.details["smallest_group"], score.details["highest_confidence"]
    (0.0, 2, 1.0)
    """

    name = "lkc-privacy"
    vetted = "brute-forced: property/test_combinations.py::test_lkc_by_enumeration"
    family = "equivalence classes"
    title = "LKC-privacy"
    better = "high"
    bounds = (0.0, np.inf)
    counts = replace(SensitiveMeasure.counts, laws=CLASS_LAWS)
    references = ("mohammed2009",)
    cost = "n"

    l: int = param(2, "Largest number of keys an intruder knows.", ge=1, le=6, symbol="L")  # noqa: E741
    c: float = param(0.5, "Highest share a sensitive value may have in a group.", gt=0, le=1, symbol="C")

    @property
    def worst(self) -> float:
        """No group, where a value is told too surely; a person where none can be."""
        return 0.0 if self.c < 1 else 1.0

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse more subsets than can be gone through."""
        reason = super().refuses(evidence)
        if reason is not None:
            return reason
        apart = () if evidence.buckets is None else evidence.buckets.names
        if set(self.sensitive_columns(evidence)) & set(apart):
            return f"{self.name} cannot judge sensitive values that the release links to buckets only"
        return too_many(self.name, len(self.keys(evidence)), self._sizes(evidence), by="l")

    def _sizes(self, evidence: Evidence) -> range:
        """How many keys at a time are looked at: as many as are known, if fewer cannot be surer.

        Where groups overlap, or persons have several records, a group may be surer than all its parts.
        """
        most = min(self.l, len(self.keys(evidence)))
        disjoint = self.missing != "any" and counted_in(seen_table(evidence)) == "records"
        return range(most if disjoint else 1, most + 1)

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Go through the subsets of as many keys as are known."""
        table = seen_table(evidence)
        keys, names = KeyCodes.of(table, self.keys(evidence)), self.sensitive_columns(evidence)
        learnt = {name: code_column(table, name, keys.order) for name in names}
        sizes = self._sizes(evidence)
        groups = np.full(len(table), np.iinfo(np.int64).max)
        surest = np.zeros((len(names), len(table)))
        n_subsets = sum(comb(len(keys.names), size) for size in sizes)
        every = chain.from_iterable(keys.subsets(size) for size in sizes)
        for subset, cut in run.track(self.title, every, n_subsets):
            of_group, confidences = self._looked_at(keys, subset, cut, learnt)
            groups = np.minimum(groups, of_group)
            surest = np.maximum(surest, confidences)
        smallest, highest = int(groups.min()), float(surest.max())
        holds = highest <= self.c + _FLOAT_TOLERANCE
        safe = np.where((surest <= self.c + _FLOAT_TOLERANCE).all(axis=0), groups, 0)
        return Score(
            value=float(smallest) if holds else 0.0,
            by_column=dict(zip(names, surest.max(axis=1).tolist(), strict=True)),
            by_record=by_original(evidence, keys.in_table_order(safe).astype(np.float64), worst="low"),
            details={
                "columns": len(keys.names),
                "subsets": n_subsets,
                "smallest_group": smallest,
                "highest_confidence": highest,
                "feasible": yes_or_no(holds=holds),
                "counted": counted_in(table),
            },
        )

    def _looked_at(
        self, keys: KeyCodes, subset: tuple[int, ...], cut: KeyPartition, learnt: Mapping[str, CodedColumn]
    ) -> tuple[Ints, Floats]:
        """The size of each record's group, and for each sensitive column the highest confidence in it."""
        holes = keys.incomplete(subset)
        if self.missing == "any" and holes is not None:
            classes = keys.overlapping(subset)
            surest = [keys.forth(_surest_of_classes(classes, name)) for name in learnt]
            return keys.forth(classes.persons[classes.of_record]).astype(np.int64), np.array(surest)
        counts = keys.count(cut)
        sizes = counts[cut.of_record]
        alone = holes if self.missing == "worst" else None
        if alone is not None:
            sizes = np.where(alone, 1, sizes)
        surest = [self._surest(keys, cut, counts, column, alone) for column in learnt.values()]
        return sizes, np.array(surest)

    def _surest(
        self, keys: KeyCodes, cut: KeyPartition, counts: Ints, learnt: CodedColumn, alone: Flags | None
    ) -> Floats:
        """The highest share of one value in each record's group; those ``alone`` are groups of their own."""
        values, gone = learnt
        cells = keys.cut(cut, values)
        persons = keys.count(cells)[cells.of_record]
        if gone is not None and self.missing == "worst":  # whoever lacks the value may have any
            persons = np.where(gone, 0, persons) + keys.count(cut, only=gone)[cut.of_record]
        shares = np.minimum(persons / counts[cut.of_record], 1.0)
        if gone is not None and self.missing == "any":
            shares = np.where(gone, 0.0, shares)
        highest = np.zeros(cut.n_classes)
        np.maximum.at(highest, cut.of_record, shares if alone is None else np.where(alone, 0.0, shares))
        return highest[cut.of_record] if alone is None else np.where(alone, 1.0, highest[cut.of_record])


def _surest_of_classes(classes: Classes, name: str) -> Floats:
    """The highest share of a value that is there, of each record's class where classes overlap."""
    counts = classes.counts(name)
    there = counts.values > 0
    highest = np.zeros(len(classes))
    which = counts.classes[there]
    np.maximum.at(highest, which, counts.counts[there] / classes.persons[which])
    return highest[classes.of_record]

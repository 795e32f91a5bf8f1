"""Uniqueness: who is alone in what an intruder knows, where released values may be ranges or sets."""

from __future__ import annotations

import numpy as np

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import classes_of, seen_table
from sfumato.core.measure import Counting, Score, Status, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes, Missing
from sfumato.data.generalised.cover import wildcards
from sfumato.data.persons import persons_of
from sfumato.kernels.arrays import Flags, Ints
from sfumato.risk._key_measures import (
    CLASS_LAWS,
    KeyMeasure,
    by_original,
    count_records,
    of_records,
    share_of_people,
)
from sfumato.risk._pieces import boxes_of


class Uniqueness(KeyMeasure):
    r"""Share of records that are unique in what an intruder knows; ranges are read at their worst.

    .. math::

        \mathrm{risk}(D, Q) = \frac{|\{r \in D : \exists\, v \in r[Q] \text{ such that }
            v \notin s[Q] \text{ for all } s \in D,\ s \ne r\}|}{|D|}

    where :math:`r[Q]` is the set of all combinations of exact values that the released keys :math:`Q` of
    record :math:`r` may stand for. An exact record is unique if nobody else has these values or ranges into
    which they fit. A generalised record is unique if at least one combination of exact values fits into it
    and into no other record: the true one may be just this one. By this definition a wildcard stands for all
    values of the column, so that a single record of wildcards would hide everybody; it covers nobody here,
    unless ``missing`` is *any*. What the definition gives is in ``details`` (``unique_by_definition``).

    See Also
    --------
    KAnonymity : how many are alike, not only whether somebody is alone.
    UnsafeCombinations : who is rare in a few keys already.

    Notes
    -----
    **How to read it.** The share of people whom an intruder who knows these keys, and knows
    that they are in the file, can point out with certainty. 0 does not mean safe: two who look alike give a
    chance of one half each, and people who look alike may share what is to be kept from the intruder.
    Uniqueness in a sample overstates that in the population. ``by_record`` is 1 for unique records.
    ``details`` says how many records have a combination of released values of their own (``alone``), and
    how many of these are not unique because others fit them (``fitted``).

    **Doubt.** Exact, by taking away from a generalised record what others cover. In many columns that can
    take long: after ``effort`` comparisons of one record it is undecided and *counts as unique*; if there
    is any such record the status is approximate, and the interval goes down to what is certain. Where sets
    of values fall apart into too many ranges, all that are alone are undecided. Ranges of whole numbers
    (columns of integers, or declared so) and of dates hold whole numbers only, other ranges all numbers.
    The values of a column lie in its declared range, or else between the least and the greatest that were
    seen.

    **Missing.** A missing key, and a wildcard, is a value of its own by default (``category``): who lacks it
    is like others who lack it in the same way. As ``any`` both stand for all values, as the definition has
    it. At ``worst`` a record with a missing key is unique, and helps nobody else.

    **Units.** Where a column tells whose record it is, persons are counted: unique is who has a record that
    nobody else's fit.

    **Cost.** That of grouping by the keys where they are exact or lie on a grid of fixed ranges; where
    ranges overlap, about :math:`O(\log n)` for each record that is alone, more where many ranges overlap it.

    Examples
    --------
    A record of age 26 hides behind one that says 24 to 28; of the latter nobody knows whether it is 25:

    >>> from sfumato.data.generalised.intervals import intervals
    >>> frame = pl.DataFrame([intervals([26, 24], [26, 28], name="age")])
    >>> table = Table(frame, Schema((Column("age", Kind.CONTINUOUS, Role.KEY),)))
    >>> score = Uniqueness().score(Evidence(table), Run(seed=1))
    >>> score.value, score.by_record.tolist()
    (0.5, [0.0, 1.0])
    """

    name = "uniqueness"
    vetted = "proved: proofs/box-subtraction.md"
    synonyms = ("sample uniqueness", "sample uniques", "record uniqueness")
    family = "equivalence classes"
    counts = Counting(people=True, joins_person_records=True, classes_only=True, laws=CLASS_LAWS)
    tells = Tells(places={"default": 0, "comparison": 1, "report": 2})
    title = "Uniqueness"
    better = "low"
    bounds = (0.0, 1.0)
    references = ("sanchez2016", "dalenius1986")

    effort: int = param(20_000, "Comparisons per record, after which it counts as unique.", ge=1, le=10**9)

    def sentence(self, value: float) -> str:
        """Say in words what its number means for one record."""
        return "it is unique in the known columns" if value > 0 else "other records may have the same keys"

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Find who is alone, and of these who is fitted by others."""
        table = seen_table(evidence)
        policy: Missing = "worst" if self.missing == "worst" else "category"
        classes = classes_of(evidence, self.keys(evidence), missing=policy, joined=True)
        alone = classes.persons == 1
        silent = (wildcards(table, name) for name in classes.keys if self.missing != "any")
        wild = np.zeros(len(classes), dtype=np.bool_)
        for hidden in (each for each in silent if each.any()):
            wild |= hidden[classes.examples]
        unique, undecided = self._find_uniques(evidence, run, classes, alone, wild)
        defined = self._find_uniques(evidence, run, classes, alone, wild & False)[0] if wild.any() else unique
        flags = of_records(classes, unique)
        value, certain = (share_of_people(classes, found) for found in (unique, unique & ~undecided))
        doubt = bool(undecided.any())
        return Score(
            value=value,
            status=Status.APPROXIMATE if doubt else Status.OK,
            interval=(certain, value) if doubt else None,
            by_record=by_original(evidence, flags, worst="high"),
            reason="some records are undecided and count as unique" if doubt else "",
            details={
                "columns": len(classes.keys),
                "records": table.n_records,
                "classes": len(classes),
                "unique": count_records(classes, unique),
                "alone": count_records(classes, alone),
                "fitted": count_records(classes, alone & ~unique),
                "undecided": count_records(classes, undecided),
                **({"unique_by_definition": count_records(classes, defined)} if wild.any() else {}),
            },
        )

    def _find_uniques(
        self, evidence: Evidence, run: Run, classes: Classes, alone: Flags, silent: Flags
    ) -> tuple[Flags, Flags]:
        """Which classes are unique, and which of them are undecided, if ``silent`` ones cover nobody."""
        unique, undecided = alone.copy(), np.zeros(len(classes), dtype=np.bool_)
        if alone.any() and self._may_fit(classes):
            states = self._states(evidence, run, classes, alone, silent)
            unique[states == kernels.trees.fitting.COVERED] = False
            undecided = states == kernels.trees.fitting.UNDECIDED
        return unique, undecided

    def _may_fit(self, classes: Classes) -> bool:
        """Whether a value may stand for others than its equals; of joined records nobody asks that."""
        if classes.joined is not None:
            return False
        if self.missing == "any" and classes.incomplete:
            return True
        return classes.table.is_generalised(*classes.keys)

    def _states(self, evidence: Evidence, run: Run, classes: Classes, alone: Flags, silent: Flags) -> Ints:
        """Of each class that is alone: whether others cover all that it may stand for."""
        incomplete = silent | (classes.codes == 0).any(axis=1) & (self.missing == "worst")
        looked_at = np.flatnonzero(~incomplete)
        states = np.full(len(classes), kernels.trees.fitting.OPEN, dtype=np.int64)
        states[~alone] = kernels.trees.fitting.COVERED
        boxes = boxes_of(
            classes.table, classes.keys, classes.examples[looked_at],
            original=evidence.original, holes="category" if self.missing == "category" else "any",
        )  # fmt: skip
        if boxes is None:
            states[alone & ~incomplete] = kernels.trees.fitting.UNDECIDED
            return states
        persons = persons_of(classes.table)
        owners = np.where(alone, persons[classes.examples], kernels.trees.fitting.SEVERAL)[looked_at]
        asked = np.flatnonzero(alone[looked_at][boxes.records])
        # Groups of one box, or with nobody to ask for, need no place in the tree.
        groups = boxes.lows[:, 0]
        wanted = np.zeros(int(groups.max(initial=0)) + 1, dtype=np.bool_)
        wanted[groups[asked]] = True
        wanted &= np.bincount(groups, minlength=1) > 1
        rows = np.flatnonzero(wanted[groups])
        asked = asked[wanted[groups[asked]]]
        found = kernels.trees.fitting.fits(
            boxes.lows[rows], boxes.highs[rows], owners[boxes.records[rows]], np.searchsorted(rows, asked),
            effort=self.effort, tick=run.ticker(self.title),
        )  # fmt: skip
        # A record of several boxes is covered if all are, and open if one is.
        records = looked_at[boxes.records[asked]]
        badness = np.zeros(len(classes), dtype=np.int64)
        np.maximum.at(badness, records, np.array([0, 2, 1])[found])
        states[records] = np.array(
            [kernels.trees.fitting.COVERED, kernels.trees.fitting.UNDECIDED, kernels.trees.fitting.OPEN]
        )[badness[records]]
        return states

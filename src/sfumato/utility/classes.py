"""Classes: how much is lost because records can no longer be told apart by their keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Score
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.generalised.cover import suppressed_records
from sfumato.data.schema import COMPARABLE
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags, Ints
from sfumato.utility._readings import n_left_out, pairs_of


class ClassLoss(Measure):
    """Looks at the sizes of the classes of records that are alike in the keys, in both tables."""

    aspect = "utility"
    better = "low"
    kinds = COMPARABLE
    cost = "n"

    k: int = param(1, "Class size below which records count as suppressed.", ge=1, le=10**9, symbol="k")

    def columns(self, evidence: Evidence) -> tuple[str, ...]:
        """The keys that both tables have: those of the scenario, or the columns with that role, or all."""
        return evidence.of_kinds(evidence.known_columns, self.kinds)

    def refuses(self, evidence: Evidence) -> str | None:
        """Say which keys cannot be compared: without one of them other records are alike."""
        reason = super().refuses(evidence)
        if reason is not None:
            return reason
        usable = self.columns(evidence)
        others = [name for name in evidence.known_columns if name not in usable]
        if not others:
            return None
        listed = ", ".join(f"`{name}` ({evidence.original.schema[name].kind})" for name in others)
        return f"the keys of {self.name} must be {' or '.join(sorted(self.kinds))}, got: {listed}"


@dataclass(frozen=True)
class ClassSizes:
    """How many records each class has, and how many records were to be released."""

    sizes: Ints
    n: int

    def classes_of_at_least(self, k: int) -> Ints:
        """The classes that are not too small."""
        return self.sizes[self.sizes >= k]


def class_sizes(evidence: Evidence, names: tuple[str, ...]) -> tuple[ClassSizes, ClassSizes]:
    """The classes of the original and of the release, found once for all measures of the same evidence."""

    def count() -> tuple[ClassSizes, ClassSizes]:
        assert evidence.protected is not None
        original, released, rows = evidence.original, evidence.protected, evidence.source_rows
        # Records that were left out of a release whose records map are suppressed; of others nobody can tell.
        # So are those of which no key says anything any more.
        wanted, suppressed = len(released), suppressed_records(released, names, original, rows)
        if rows is not None:
            wanted += n_left_out(pairs_of(evidence)[0])
        original_sizes, released_sizes = _sizes(original, names), _sizes(released, names, ~suppressed)
        return ClassSizes(original_sizes, len(original)), ClassSizes(released_sizes, wanted)

    return evidence.remember(("sizes of classes", names), count)


def _sizes(table: Table, names: tuple[str, ...], rows: Flags | None = None) -> Ints:
    """The number of records (of ``rows``) of each combination of values; a missing one is one of its own."""
    keys = [
        pl.select(pl.when(pl.Series(~table.missing(name))).then(table.frame[name]).alias(str(i))).to_series()
        for i, name in enumerate(names)
    ]
    frame = pl.DataFrame(keys) if rows is None else pl.DataFrame(keys).filter(pl.Series(rows))
    return frame.group_by(pl.all()).len()["len"].to_numpy().astype(np.int64)


class Discernibility(ClassLoss):
    r"""Probability that the keys no longer distinguish a record from one drawn at random.

    .. math::

        \frac{1}{n^2} \Bigl( \sum_{|E| \ge k} |E|^2 + \sum_{|E| < k} n\,|E| \Bigr)

    over the classes :math:`E` of released records with the same keys, where :math:`n` is the number of
    records. The sum, which the literature calls the discernibility metric, is in ``details``; divided by
    :math:`n^2` tables of different size compare. With ``k`` above 1 the records of smaller classes count as
    suppressed, that is as alike to all; so does a record that was left out, or whose keys were all made
    missing or wildcards.

    See Also
    --------
    average-class-size : each class counts once, however large.
    k-anonymity : the same classes, as a risk.

    Notes
    -----
    **How to read it.** :math:`1/n` means that everybody is unlike all others, 1 that all are
    alike. It says only how many are alike, not how much they differed before. What the release tells apart
    that the original does not, because noise was added, is no information: the value is never below that of
    the original, which is in ``details``.

    **Doubt.** Exact. Weights are not used: records are counted.

    **Missing.** A value of its own: who lacks a key is like others who lack it. Who lacked all keys before
    was not suppressed.

    **Cost.** That of grouping both tables by the keys.

    Examples
    --------
    >>> schema = Schema((Column("age", Kind.CONTINUOUS, Role.KEY),))
    >>> original = Table(pl.DataFrame({"age": [21, 23, 35, 37, 39]}), schema)
    >>> released = Table(pl.DataFrame({"age": [22, 22, 37, 37, 37]}), schema)
    >>> score = Discernibility().score(Evidence(original, Release.of(released)), Run(seed=1))
    >>> score.value, score.details["discernibility"]  # 2² + 3² of 5²
    (0.52, 13)
    """

    name = "discernibility"
    vetted = "brute-forced: unit/utility/test_class_losses.py::test_pairs_that_are_alike"
    synonyms = ("discernability", "discernibility metric", "discernability metric")
    family = "coarseness"
    title = "Discernibility"
    bounds = (0.0, 1.0)
    references = ("bayardo2005", "carvalho2023")

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002
        """Sum up the squares of the classes."""
        names = self.columns(evidence)
        original, release = class_sizes(evidence, names)
        if not original.n or not release.n:
            return Score.not_estimable("one of the tables has no records")
        sums = [_squares(each, self.k) for each in (original, release)]
        return Score(
            value=max(sums[0] / original.n**2, sums[1] / release.n**2),
            details={
                "discernibility": sums[1],
                "discernibility_of_original": sums[0],
                "value_of_original": sums[0] / original.n**2,
                "classes": len(release.classes_of_at_least(self.k)),
                "records": release.n,
                "records_suppressed": release.n - int(release.classes_of_at_least(self.k).sum()),
                "columns": len(names),
            },
        )


def _squares(classes: ClassSizes, k: int) -> int:
    """The sum of squared sizes; who is suppressed counts as alike to all. In whole numbers of any size."""
    class_sizes = classes.classes_of_at_least(k)
    sizes, counts = np.unique(class_sizes, return_counts=True)
    together = sum(int(size) ** 2 * int(count) for size, count in zip(sizes, counts, strict=True))
    return together + classes.n * (classes.n - int(class_sizes.sum()))


class AverageClassSize(ClassLoss):
    r"""Mean number of records in an equivalence class.

    .. math::

        C = \frac{n}{|\{E : |E| \ge k\}| \cdot k}

    where :math:`E` are the classes of released records with the same keys and :math:`n` is the number of
    records. With ``k`` at 1 it is the mean size; with the :math:`k` of a k-anonymous release it is the mean
    size as a multiple of what is needed, and 1 is best. Smaller classes count as suppressed; their records,
    and those that were left out are still among the :math:`n`. Records whose keys were all suppressed are
    one class, as in ARX; those that were left out are none.

    See Also
    --------
    discernibility : large classes weigh more.

    Notes
    -----
    **How to read it.** The smaller, the more can be told apart. What the release tells apart
    that the original does not, because noise was added, is no information: the value is never below that of
    the original, which is in ``details``.

    **Doubt.** Exact. Weights are not used: records are counted.

    **Missing.** A value of its own: who lacks a key is like others who lack it. Who lacked all keys before
    was not suppressed.

    **Cost.** That of grouping both tables by the keys.

    Examples
    --------
    >>> schema = Schema((Column("age", Kind.CONTINUOUS, Role.KEY),))
    >>> original = Table(pl.DataFrame({"age": [21, 23, 35, 37, 39]}), schema)
    >>> released = Table(pl.DataFrame({"age": [22, 22, 37, 37, 37]}), schema)
    >>> AverageClassSize().score(Evidence(original, Release.of(released)), Run(seed=1)).value
    2.5
    >>> AverageClassSize(k=2).score(Evidence(original, Release.of(released)), Run(seed=1)).value
    1.25
    """

    name = "average-class-size"
    vetted = "brute-forced: unit/utility/test_class_losses.py::test_pairs_that_are_alike"
    synonyms = ("AECS", "average equivalence class size", "CAVG")
    family = "coarseness"
    title = "Average class size"
    bounds = (0.0, np.inf)
    references = ("lefevre2006", "carvalho2023")

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002
        """Divide the records by the classes."""
        names = self.columns(evidence)
        original, release = class_sizes(evidence, names)
        if not original.n or not release.n:
            return Score.not_estimable("one of the tables has no records")
        assert evidence.protected is not None
        # Whoever is shown with nothing but suppressed keys is alike: together they are one class, as in ARX.
        n_classes = len(release.classes_of_at_least(self.k)) + (
            int(release.sizes.sum()) < len(evidence.protected)
        )
        if not n_classes:
            return Score.not_estimable(f"no class has {self.k} records")
        # Of the original all classes count: it need not be k-anonymous.
        before = original.n / (len(original.sizes) * self.k)
        return Score(
            value=max(release.n / (n_classes * self.k), before),
            details={
                "classes": n_classes,
                "classes_of_original": len(original.sizes),
                "value_of_original": before,
                "largest_class": int(release.sizes.max(initial=0)),
                "records": release.n,
                "records_suppressed": release.n - int(release.classes_of_at_least(self.k).sum()),
                "columns": len(names),
            },
        )

"""Diversity: how varied the sensitive values are among people who are alike in the keys."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import classes_of
from sfumato.core.measure import ClassValues, Counting, Tells
from sfumato.core.params import param
from sfumato.data.classes.classes import Classes, Counts
from sfumato.kernels.arrays import Floats, Ints
from sfumato.risk._key_measures import CLASS_LAWS, Facts, WorstColumnMeasure, count_records, yes_or_no

#: A number of values that is so near to a whole one is that: logarithms round.
_FLOAT_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Profiles:
    """How often the values of each class occur, whatever they are."""

    classes: Ints  # [entries] ascending
    counts: Ints  # [entries]
    starts: Ints  # [classes + 1]

    @cached_property
    def totals(self) -> Ints:
        """The sum of the counts of each class."""
        return np.add.reduceat(self.counts, self.starts[:-1])

    @cached_property
    def most(self) -> Ints:
        """The count of the most frequent value of each class."""
        return np.maximum.reduceat(self.counts, self.starts[:-1])

    @cached_property
    def distinct(self) -> Ints:
        """The number of values of each class."""
        return np.diff(self.starts)

    @cached_property
    def tails(self) -> Ints:
        """The sums of the counts from each place to the end of its class, the most frequent value first."""
        in_order = self.counts[np.argsort(self.classes * self.counts.max() - self.counts, kind="stable")]
        sums: Ints = np.append(0, np.cumsum(in_order))
        tails: Ints = sums[self.starts[1:]][self.classes] - sums[:-1]
        return tails


def profiles(counts: Counts, *, fill: bool) -> Profiles:
    """Take the counts of each class; with ``fill`` a missing value is taken for the most frequent one.

    No other filling makes a class less diverse, by whatever measure.
    """
    if not fill or not counts.missing_counts.any():
        return Profiles(counts.classes, counts.counts, counts.starts)
    lone = counts.distinct == 1  # where nothing else stands, missing values may all be the same
    counted_entries = (counts.values > 0) | lone[counts.classes]
    classes, amounts = counts.classes[counted_entries], counts.counts[counted_entries]
    starts = np.searchsorted(classes, np.arange(len(counts.starts)))
    most = np.maximum.reduceat(amounts, starts[:-1])
    frequent = np.flatnonzero(amounts == most[classes])
    first = frequent[np.unique(classes[frequent], return_index=True)[1]]
    amounts[first] += np.where(lone, 0, counts.missing_counts)
    return Profiles(classes, amounts, starts)


def entropy_diversity(found: Profiles) -> Floats:
    """The exponential of the entropy of each class: as many values as equal shares would have."""
    shares = found.counts / found.totals[found.classes]
    entropies = -np.add.reduceat(shares * np.log(shares), found.starts[:-1])
    values = np.exp(entropies)
    whole = np.rint(values)
    return np.where(np.abs(values - whole) <= _FLOAT_TOLERANCE * whole, whole, values)


def recursive_diversity(found: Profiles, c: float) -> Ints:
    """The largest l for which each class is recursively (c, l)-diverse; 0 where none is."""
    holds = found.most[found.classes] < c * found.tails
    # Tails only get smaller, so what holds stands first.
    return np.add.reduceat(holds.astype(np.int64), found.starts[:-1])


def recursive_constants(found: Profiles, l: int) -> Floats:  # noqa: E741  — the model's own letter
    """The constant above which each class is recursively (c, l)-diverse; infinite below l values."""
    enough = found.distinct >= l
    tails = found.tails[np.where(enough, found.starts[:-1] + l - 1, 0)]
    return np.where(enough, found.most / tails, np.inf)


class _Diversity(WorstColumnMeasure):
    """Gives a number to the profile of each class."""

    class_values = ClassValues(independent=True, survive_merging=True)

    def of_profiles(self, found: Profiles, classes: Classes) -> Floats:
        """The number of each class."""
        raise NotImplementedError  # abstract

    def per_class(self, evidence: Evidence, classes: Classes, name: str) -> Floats:  # noqa: ARG002
        """The number of each class for a column."""
        return self.of_profiles(profiles(classes.counts(name), fill=self.missing == "worst"), classes)

    def share_failing(self, values: Floats, level: float) -> Floats:  # noqa: ARG002
        """The share of a class of such a value that is worse than a level however finely it is divided."""
        return np.zeros(len(values))

    def always_failing_by(self, evidence: Evidence, classes: Classes, name: str, level: float) -> Floats:
        """The share that the value of the class tells."""
        return self.share_failing(self.per_class(evidence, classes, name), level)

    def facts(self, evidence: Evidence, classes: Classes, worst: Floats) -> Facts:  # noqa: ARG002
        """How many records there are of whom some sensitive value is certain: all of their class have it."""
        certain = np.zeros(len(classes), dtype=np.bool_)
        for name in self.sensitive_columns(evidence):
            certain |= profiles(classes.counts(name), fill=self.missing == "worst").distinct == 1
        return {"records_with_certain_value": count_records(classes, certain)}


class LDiversity(_Diversity):
    r"""Smallest number of well represented sensitive values in an equivalence class.

    *Distinct*: the number of values in a class. *Entropy*: as many values as would have the same entropy if
    all were equally frequent,

    .. math::

        l = \min_{C} \exp\Bigl(-\sum_s p_C(s) \ln p_C(s)\Bigr),

    where :math:`p_C(s)` is the share of the value :math:`s` in class :math:`C`. *Recursive*: the largest
    :math:`l` for which every class has

    .. math::

        r_1 < c\,(r_l + r_{l+1} + \dots + r_m),

    where :math:`r_i` is the count of the :math:`i`-th most frequent of the :math:`m` values.

    Notes
    -----
    **How to read it.** Higher is safer; 1 means that everyone in some class has the same value, so that who
    finds the class learns it. In a requirement it is called ``l``: ``l >= 3``, ``l(kind=entropy) >= 2.5``.
    ``recursive`` gives 0 where not even :math:`l = 1` holds. Several sensitive columns: the worst counts,
    ``by_column`` has each; keys are never sensitive columns.

    **Doubt.** Exact; an entropy-l within 10⁻¹² of a whole number is that number, so that a class with
    counts 2, 2, 2 has 3. Values are different or not: nearby incomes count as diverse (see t-closeness), and
    so does a generalised value beside one that it covers.

    **Missing.** Keys as in k-anonymity. A missing sensitive value is a value of its own; under ``worst`` it
    is the most frequent one of its class, than which nothing is less diverse.

    **Units.** A person counts once for each class and value. Where records that belong together leave
    together, those are alike whose records all are, and each of their records is looked at by itself. A value
    that all of them have in some record is certain, so that l is 1; by entropy or recursively l is no more
    than one over the largest share of them that has a value.

    **Cost.** :math:`O(n \log n)`, one sparse count for each sensitive column.
    """

    name = "l-diversity"
    vetted = "brute-forced: property/test_anonymity.py::test_diversity"
    family = "attribute disclosure"
    aliases = ("l",)
    title = "l-diversity"
    tells = Tells(
        places={"report": 10, "sensitive": 1},
        record_sentence="the records with its keys have {:.3g} (effectively) different sensitive values",
    )
    better = "high"
    bounds = (0.0, math.inf)
    counts = Counting(
        people=True, joins_person_records=True, compares_equal=True, classes_only=True, laws=CLASS_LAWS
    )
    references = ("machanavajjhala2007",)

    kind: Literal["distinct", "entropy", "recursive"] = param(
        "distinct",
        "How well represented values are counted in a class.",
        choices={
            "distinct": "Each value that occurs counts as one.",
            "entropy": "The number of equally frequent values that would have the same entropy.",
            "recursive": "The largest l whose top value is rarer than c times the l-th and all rarer ones.",
        },
        synonyms={
            "distinct l-diversity": "distinct",
            "entropy l-diversity": "entropy",
            "recursive (c, l)-diversity": "recursive",
        },
    )
    c: float = param(
        3.0,
        "Constant of the recursive condition: the larger, the weaker the requirement.",
        gt=0,
        le=1e6,
        symbol="c",
        when="kind=recursive",
    )

    @property
    def worst(self) -> float:
        """One value; none where the recursive condition may fail for it."""
        return 0.0 if self.kind == "recursive" and self.c <= 1 else 1.0

    def share_failing(self, values: Floats, level: float) -> Floats:
        """All of a class that has too few values; by entropy, which its parts have no more of on average."""
        if self.kind == "recursive" or level <= 1:
            return np.zeros(len(values))
        if self.kind == "distinct":
            return (values < level).astype(np.float64)
        return np.maximum(1.0 - np.log(values) / math.log(level), 0.0)

    def of_profiles(self, found: Profiles, classes: Classes) -> Floats:  # noqa: ARG002
        """The diversity of each class."""
        if self.kind == "entropy":
            return entropy_diversity(found)
        if self.kind == "recursive":
            return recursive_diversity(found, self.c).astype(np.float64)
        return found.distinct.astype(np.float64)

    def per_class(self, evidence: Evidence, classes: Classes, name: str) -> Floats:
        """The diversity of each class; of units, that of their least diverse record, and of all together."""
        if classes.joined is None:
            return super().per_class(evidence, classes, name)
        records = classes_of(evidence, classes.keys, missing=self.missing)
        cells, of_class = classes.divide_by(records)
        least = np.full(len(classes), np.inf)
        np.minimum.at(least, of_class, super().per_class(evidence, cells, name))
        pooled = profiles(classes.counts(name), fill=self.missing == "worst")
        most = classes.persons / pooled.most
        return np.where(most <= 1, 1.0, least) if self.kind == "distinct" else np.minimum(least, most)


class RecursiveDiversity(_Diversity):
    r"""Smallest constant c for which the table is recursively (c, l)-diverse, for a given l.

    .. math::

        c = \max_C \frac{r_1}{r_l + r_{l+1} + \dots + r_m}

    where :math:`r_i` is the count of the :math:`i`-th most frequent of the :math:`m` values of class
    :math:`C`. The table is recursively (c, l)-diverse for every constant *above* that.

    Notes
    -----
    **How to read it.** Lower is safer: with a small c the most frequent value is not much more frequent than
    the rest together. It is l-diversity of the recursive kind read the other way round.

    **Doubt.** Exact. Not estimable if a class has fewer than l values, since then no constant will do.

    **Missing.** As in l-diversity.

    **Units.** A person counts once for each class and value.

    **Cost.** :math:`O(n \log n)`, one sparse count for each sensitive column.
    """

    name = "recursive-diversity"
    vetted = "brute-forced: property/test_anonymity.py::test_diversity"
    family = "attribute disclosure"
    title = "Recursive (c,l)-diversity"
    better = "low"
    bounds = (0.0, math.inf)
    references = ("machanavajjhala2007",)

    l: int = param(2, "Values that must be well represented.", ge=1, le=1000, symbol="l")  # noqa: E741

    @property
    def worst(self) -> float:
        """No constant is the worst; for l = 1 it is a share."""
        return math.inf if self.l > 1 else 1.0

    def of_profiles(self, found: Profiles, classes: Classes) -> Floats:  # noqa: ARG002
        """The constant of each class."""
        return recursive_constants(found, self.l)

    def facts(self, evidence: Evidence, classes: Classes, worst: Floats) -> Facts:
        """How many records stand in classes with fewer values than asked for."""
        few = {"records_with_fewer_values": count_records(classes, np.isinf(worst))}
        return {**super().facts(evidence, classes, worst), **few}

    def endless(self) -> str:
        """Why no constant will do."""
        return f"some class has fewer than {self.l} sensitive values, so no constant c is large enough"


class GrassbergerDiversity(_Diversity):
    r"""Smallest entropy-l of an equivalence class, its entropy estimated without the bias of small counts.

    .. math::

        l = \min_C \exp\Bigl(\ln n_C - \frac{1}{n_C} \sum_s n_s G(n_s)\Bigr), \qquad
        G(n) = \psi(n) + \frac{(-1)^n}{2}
        \Bigl(\psi\bigl(\tfrac{n+1}{2}\bigr) - \psi\bigl(\tfrac{n}{2}\bigr)\Bigr)

    where :math:`n_s` of the :math:`n_C` records of class :math:`C` have the value :math:`s`, and
    :math:`\psi` is the digamma function. It is no more than the number of values, and no less than 1.

    See Also
    --------
    l-diversity : of the values that are there (``kind`` entropy).

    Notes
    -----
    **How to read it.** Higher is safer. A class is taken for a sample: of few records the entropy of what
    they have is lower than that of the people they stand for, and this makes up for it. So it is nearly
    always above entropy-l, by more than a half in classes of few records: 2 for counts of 5 and 1, where
    entropy-l is 1.57.

    **Doubt.** An estimate of people nobody has seen: whoever finds a class learns by the values that are
    there. So no requirement accepts it: ask for ``l(kind=entropy)``.

    **Missing.** As in l-diversity.

    **Units.** A person counts once for each class and value.

    **Cost.** :math:`O(n \log n)`, one sparse count for each sensitive column.
    """

    name = "grassberger-diversity"
    vetted = "brute-forced: unit/risk/test_diversity.py::test_grassbergers_estimator_by_its_recursion"
    synonyms = ("Grassberger", "entropy l-diversity with Grassberger's estimator", "Grassberger estimator")
    family = "attribute disclosure"
    title = "Entropy l-diversity by Grassberger's estimator"
    tells = Tells(
        record_sentence="the records with its keys stand for about {:.3g} equally frequent sensitive values",
        why_not_required="it counts values of people who are not in the class: require l(kind=entropy)",
    )
    better = "high"
    bounds = (1.0, math.inf)
    class_values = ClassValues(independent=True)
    references = ("grassberger2003", "machanavajjhala2007")

    def of_profiles(self, found: Profiles, classes: Classes) -> Floats:  # noqa: ARG002
        """The estimate of each class."""
        from scipy.special import psi  # slow to import

        counts = found.counts.astype(np.float64)
        signs = np.where(found.counts % 2, -0.5, 0.5)
        terms = counts * (psi(counts) + signs * (psi((counts + 1) / 2) - psi(counts / 2)))
        entropies = np.log(found.totals) - np.add.reduceat(terms, found.starts[:-1]) / found.totals
        return np.clip(np.exp(entropies), 1.0, found.distinct)


class PSensitivity(_Diversity):
    r"""Smallest number of distinct sensitive values in an equivalence class (p-sensitive k-anonymity).

    .. math::

        p = \min_C \left|\{ s : s \text{ occurs in } C \}\right|

    where :math:`C` runs over the classes. A table is p-sensitive k-anonymous if it is k-anonymous and each
    class has at least p values of every sensitive column.

    Notes
    -----
    **How to read it.** Higher is safer. ``feasible`` says whether all classes have at least ``k`` too, and
    ``smallest_class`` the k that is reached. The number itself is that of distinct l-diversity.

    **Doubt.** Exact.

    **Missing.** Keys as in k-anonymity. A missing sensitive value is a value of its own; under ``worst`` it
    is one of the others.

    **Units.** Persons are counted where a column tells whose record it is.

    **Cost.** :math:`O(n \log n)`, one sparse count for each sensitive column.
    """

    name = "p-sensitivity"
    vetted = "brute-forced: property/test_anonymity.py::test_diversity"
    family = "attribute disclosure"
    aliases = ("p",)
    title = "p-sensitive k-anonymity"
    better = "high"
    bounds = (1.0, math.inf)
    references = ("truta2006",)

    k: int = param(2, "Smallest class size that the model requires.", ge=1, le=10**9, symbol="k")

    def share_failing(self, values: Floats, level: float) -> Floats:
        """All of a class that has too few values."""
        return (values < level).astype(np.float64)

    def of_profiles(self, found: Profiles, classes: Classes) -> Floats:  # noqa: ARG002
        """The number of values of each class."""
        return found.distinct.astype(np.float64)

    def facts(self, evidence: Evidence, classes: Classes, worst: Floats) -> Facts:
        """Whether the classes are large enough."""
        return {**super().facts(evidence, classes, worst), **large_enough(classes, self.k)}


class AlphaKAnonymity(_Diversity):
    r"""Largest share of one sensitive value in an equivalence class (the α of (α, k)-anonymity).

    .. math::

        \alpha = \max_C \max_s \frac{|\{ i \in C : x_i = s \}|}{|C|}

    where :math:`C` runs over the classes and :math:`s` over the sensitive values: how sure an intruder can
    be of a value who knows the keys. A table is (α, k)-anonymous if that is at most α and every class has at
    least k.

    Notes
    -----
    **How to read it.** Lower is safer; 1 means that some value is certain. ``feasible`` says whether all
    classes have at least ``k``, and ``smallest_class`` the k that is reached.

    **Doubt.** Exact. All values are held to be sensitive; that a value is as frequent everywhere (so that
    nothing is learnt) does not help: see t-closeness.

    **Missing.** Keys as in k-anonymity. A missing sensitive value is a value of its own; under ``worst`` it
    is the most frequent one of its class.

    **Units.** The share is that of the persons of a class who have the value in some record.

    **Cost.** :math:`O(n \log n)`, one sparse count for each sensitive column.
    """

    name = "alpha-k-anonymity"
    vetted = "brute-forced: property/test_anonymity.py::test_diversity"
    family = "attribute disclosure"
    aliases = ("alpha",)
    title = "(α,k)-anonymity"
    better = "low"
    bounds = (0.0, 1.0)
    references = ("wong2006",)

    k: int = param(2, "Smallest class size that the model requires.", ge=1, le=10**9, symbol="k")

    def share_failing(self, values: Floats, level: float) -> Floats:
        """What a class has too much of its most frequent value, if nothing else goes."""
        return np.maximum(values - level, 0.0) / max(1.0 - level, np.finfo(float).tiny)

    def of_profiles(self, found: Profiles, classes: Classes) -> Floats:
        """The share of the most frequent value of each class."""
        return np.minimum(found.most / classes.persons, 1.0)  # a person may have several values

    def facts(self, evidence: Evidence, classes: Classes, worst: Floats) -> Facts:
        """Whether the classes are large enough."""
        return {**super().facts(evidence, classes, worst), **large_enough(classes, self.k)}


def large_enough(classes: Classes, k: int) -> Facts:
    """Whether every class has at least k persons."""
    smallest = int(classes.persons.min())
    return {"smallest_class": smallest, "k": k, "feasible": yes_or_no(holds=smallest >= k)}

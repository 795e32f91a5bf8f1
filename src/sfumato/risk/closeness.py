"""Closeness: how far the sensitive values of people who are alike differ from those of everybody."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import ClassValues, Tells
from sfumato.core.params import param
from sfumato.data.classes.classes import Classes, Counts
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Floats, Ints
from sfumato.risk._key_measures import Facts, WorstColumnMeasure, count_records, yes_or_no

T = TypeVar("T")

# Distances between the distribution of a class and that of the table ------------------------------------


def equal_distances(classes: Ints, counts: Ints, totals: Ints, of_table: Ints, n: int) -> Floats:
    """Half the sum of absolute differences: what a class has more of some values than the table.

    ``counts`` are those of the entries, ``of_table`` of the same values among the ``n`` of the table.
    """
    of_class = totals[classes]
    surplus = np.maximum(counts * n - of_table * of_class, 0) / (of_class.astype(np.float64) * n)
    return np.bincount(classes, weights=surplus, minlength=len(totals)).astype(np.float64)


def share_to_go(pieces: Sequence[tuple[Counts, Floats]], spare: float = 0.0) -> Floats:
    r"""Find what share of each class must go so that the rest has little more than its caps allow.

    If the values S have shares :math:`p` above their caps :math:`c`, together by more than ``spare`` t, then
    a part without x of the class has at least :math:`(p(S) - x) / (1 - x)` of them, which is too much for

    .. math:: x < \frac{p(S) - c(S) - t}{1 - c(S) - t}.

    It does not matter into how many parts the rest is divided: if each is within the caps, so are all. Given
    are counts and the caps of their value codes; of several, as of levels of a hierarchy, means are taken.
    """
    n = len(pieces[0][0].totals)
    capped, held = np.full(n, spare), np.zeros(n)
    for counts, caps in pieces:
        shares, of_class = counts.counts / counts.totals[counts.classes], caps[counts.values]
        over = shares > of_class
        capped += np.bincount(counts.classes[over], weights=of_class[over], minlength=n) / len(pieces)
        held += np.bincount(counts.classes[over], weights=shares[over], minlength=n) / len(pieces)
    excess = held - capped
    room = np.where(excess > 0, np.maximum(1.0 - capped, excess), 1.0)
    to_go: Floats = np.maximum(excess, 0.0) / room
    return to_go


def shares_of(counts: Counts) -> Floats:
    """The share of each value code in the table."""
    shares: Floats = counts.of_values / counts.of_values.sum()
    return shares


def ordered_distances(counts: Counts, positions: Ints) -> Floats:
    """Mean absolute difference of cumulative shares, over the distinct values in their order.

    ``positions`` are the places of the value codes in that order (that of code 0, missing, means nothing).
    Sparse: between two values of a class its cumulative share stays the same, and that of the table is a
    sum known beforehand up to where it passes the class's.
    """
    known = counts.values > 0
    classes, places, amounts = counts.classes[known], positions[counts.values[known]], counts.counts[known]
    order = np.lexsort((places, classes))
    classes, places, amounts = classes[order], places[order], amounts[order]
    n_classes, n_places = len(counts.totals), int(positions[1:].max(initial=0)) + 1
    totals = counts.totals - counts.missing_counts
    table = np.bincount(positions[1:], weights=counts.of_values[1:], minlength=n_places)
    below = np.cumsum(table)  # of the table up to each place
    sums = np.append(0.0, np.cumsum(below))
    n = below[-1] if len(below) else 0.0
    running = np.cumsum(amounts)
    starts = np.searchsorted(classes, np.arange(n_classes + 1))
    of_class = running - np.append(0, running)[starts[:-1]][classes]
    shares = of_class / totals[classes]
    ends = np.append(places[1:], 0)
    last = np.append(classes[1:] != classes[:-1], True) if len(classes) else np.zeros(0, dtype=np.bool_)
    ends[last] = n_places - 1
    passing = np.clip(np.searchsorted(below, shares * n), places, ends)
    parts = shares * (2 * passing - places - ends) + (sums[places] + sums[ends] - 2 * sums[passing]) / n
    distances = np.bincount(classes, weights=parts, minlength=n_classes).astype(np.float64)
    held = np.flatnonzero(totals)
    distances[held] += sums[places[starts[held]]] / n  # before its first value a class has none
    return distances / max(n_places - 1, 1)


def with_holes(distances: Floats, counts: Counts) -> Floats:
    """Add what the shares of missing values differ; the distance counts for the share that both know."""
    n = int(counts.of_values.sum())
    of_class, all_ = counts.missing_counts / counts.totals, float(counts.of_values[0] / n)
    if not counts.of_values[0]:
        return distances
    known = 1.0 - np.maximum(of_class, all_)
    return np.abs(of_class - all_) + known * distances


def hierarchical_distances(counts: Counts, levels: list[Ints]) -> Floats:
    """The mean over the levels below the root of how far the shares of their labels differ.

    That is the cost of moving one distribution to the other if two values are as far apart as the height of
    their lowest common label says. ``levels`` give the label of each value code, missing being its own.
    """
    n = int(counts.of_values.sum())
    total = np.zeros(len(counts.totals))
    for labels in levels:
        found = counts.recode_values(labels)
        of_table = found.of_values[found.values]
        total += equal_distances(found.classes, found.counts, found.totals, of_table, n)
    return total / len(levels)


# Measures ----------------------------------------------------------------------------------------------


class TCloseness(WorstColumnMeasure):
    r"""Largest distance between the sensitive values of an equivalence class and those of the table.

    .. math::

        t = \max_C D(P_C, Q)

    where :math:`P_C` is the distribution of a sensitive column in class :math:`C`, :math:`Q` that in the
    table, and :math:`D` the earth mover's distance: the cost of moving one distribution to the other. With
    *equal* distance all values are 1 apart, and :math:`D = \frac12 \sum_s |P(s) - Q(s)|`. With *ordered*
    distance the i-th and j-th of :math:`m` distinct values are :math:`|i - j| / (m - 1)` apart, and

    .. math::

        D = \frac{1}{m - 1} \sum_{i=1}^{m-1} \Bigl| \sum_{j \le i} P(s_j) - Q(s_j) \Bigr|.

    With *hierarchy* two values are as far apart as the height of their lowest common label, the root being 1.

    Notes
    -----
    **How to read it.** Lower is safer: how much can be learnt from a class at most, on a scale from 0 to 1.
    In a requirement it is called ``t``: ``t <= 0.2``, ``t(distance=ordered) <= 0.15``. Equal distance is for
    names, ordered for numbers, dates and grades (of whom hardly two are alike), hierarchy for values whose
    column names one; *kind* takes order where a column has one, as the source does. ``by_record`` is the
    distance of each record's class.

    **Doubt.** Exact. Only values that occur count in the order, so that unused categories change nothing.
    Small classes are far from anything by chance: a class of one has nearly 1.

    **Missing.** Keys as in k-anonymity. A missing sensitive value is one of its own, as far from all others
    as can be; in the order, classes and table are compared where both have values, and the difference of
    their shares of missing values is added. Under ``worst`` the shares of missing values in the class and in
    the table are added, which no filling by values that occur exceeds.

    **Units.** A person counts once for each class and value.

    **Cost.** :math:`O(n \log n)`, one sparse count for each sensitive column; what a class does not have
    costs nothing.
    """

    name = "t-closeness"
    vetted = "brute-forced: property/test_anonymity.py::test_closeness"
    family = "attribute disclosure"
    aliases = ("t",)
    title = "t-closeness"
    tells = Tells(
        places={"report": 11, "sensitive": 2},
        record_sentence="the distribution of sensitive values in its class is {:.3g} (of at most 1) from "
        "that of the table",
    )
    class_values = ClassValues(survive_merging=True)
    better = "low"
    bounds = (0.0, 1.0)
    references = ("li2007",)

    distance: Literal["equal", "ordered", "hierarchy", "kind"] = param(
        "equal",
        "How the distance between two sensitive values is measured.",
        choices={
            "equal": "Any two values are 1 apart.",
            "ordered": "By their positions in the order of the distinct values.",
            "hierarchy": "By the height of their lowest common label in the hierarchy of the column.",
            "kind": "By order in a column that has one; otherwise any two are 1 apart.",
        },
        synonyms={
            "equal-distance t-closeness": "equal",
            "ordered-distance t-closeness": "ordered",
            "hierarchical-distance t-closeness": "hierarchy",
        },
    )

    def refuses(self, evidence: Evidence) -> str | None:
        """Say which column has no order or hierarchy."""
        reason = super().refuses(evidence)
        if reason is not None or self.distance in {"equal", "kind"}:
            return reason
        table = self.seen_values(evidence)
        reasons = (self._why_unsuitable(evidence, table, name) for name in self.sensitive_columns(evidence))
        return next((found for found in reasons if found is not None), None)

    def _why_unsuitable(self, evidence: Evidence, table: Table, name: str) -> str | None:
        if self.distance == "ordered":
            if _has_order(table, name):
                return None
            what = "has ranges" if table.is_generalised(name) else f"is a {table.schema[name].kind} column"
            return f"{self.name} needs an order of `{name}`, which {what}"
        hierarchy = evidence.hierarchy_of(name)
        if hierarchy is None:
            return f"{self.name} needs a hierarchy of `{name}`, and none is declared"
        present = table.frame[name].filter(~table.missing(name))
        faults = hierarchy.check(present.unique(), name)
        return f"{self.name} needs a hierarchy that fits: {faults[0]}" if faults else None

    def per_class(self, evidence: Evidence, classes: Classes, name: str) -> Floats:
        """The distance of each class."""
        counts = classes.counts(name)
        if self.distance == "ordered" or (self.distance == "kind" and _has_order(classes.table, name)):
            positions = _positions(evidence, classes.table, name, counts)
            distances = with_holes(ordered_distances(counts, positions), counts)
        elif self.distance == "hierarchy":
            distances = hierarchical_distances(counts, _labels(evidence, classes.table, name, counts))
        else:
            n = int(counts.of_values.sum())
            of_table = counts.of_values[counts.values]
            distances = equal_distances(counts.classes, counts.counts, counts.totals, of_table, n)
        if self.missing == "worst":
            distances = distances + counts.missing_counts / counts.totals
            distances += float(counts.of_values[0] / counts.of_values.sum())
        return np.clip(distances, 0.0, 1.0)

    def always_failing_by(self, evidence: Evidence, classes: Classes, name: str, level: float) -> Floats:
        """What a class has too much of some values, or labels; by order, as if what goes were 1 away.

        The distance of a class is at most the mean of those of its parts, and none is above 1.
        """
        counts = classes.counts(name)
        if self.distance == "equal":
            return share_to_go([(counts, shares_of(counts))], level)
        if self.distance == "hierarchy":
            labelled = map(counts.recode_values, _labels(evidence, classes.table, name, counts))
            return share_to_go([(each, shares_of(each)) for each in labelled], level)
        if level >= 1 or counts.of_values[0]:
            return np.zeros(len(classes))
        return np.maximum(self.per_class(evidence, classes, name) - level, 0.0) / (1.0 - level)

    def facts(self, evidence: Evidence, classes: Classes, worst: Floats) -> Facts:  # noqa: ARG002
        """The mean over the records."""
        return {"mean": float((classes.members * worst).sum() / classes.members.sum())}


def _has_order(table: Table, name: str) -> bool:
    return table.schema[name].kind is not Kind.NOMINAL and not table.frame.schema[name].is_nested()


def _examples(table: Table, name: str, counts: Counts) -> Table:
    """A record for each value that is not missing, in the order of the codes."""
    return table.select([name]).take(counts.examples[1:])


def _known_by(evidence: Evidence, what: str, counts: Counts, find: Callable[[], T]) -> T:
    """What depends on the value codes alone, found once for all classes that are joined from the same."""
    codes = counts.examples  # kept with what is found, so that no other has its place
    return evidence.remember((what, id(codes)), lambda: (codes, find()))[1]


def _positions(evidence: Evidence, table: Table, name: str, counts: Counts) -> Ints:
    """The place of each value code among the distinct values in their order."""

    def find() -> Ints:
        _, places = np.unique(_examples(table, name, counts).numbers(name), return_inverse=True)
        return np.append(0, places).astype(np.int64)

    return _known_by(evidence, "positions", counts, find)


def _labels(evidence: Evidence, table: Table, name: str, counts: Counts) -> list[Ints]:
    """The label of each value code on each level below the root; missing is a label of its own."""

    def find() -> list[Ints]:
        hierarchy = evidence.hierarchy_of(name)
        assert hierarchy is not None  # `refuses` saw to it
        values = _examples(table, name, counts).frame[name]
        return [
            np.append(0, hierarchy.codes(values, level).astype(np.int64) + 1)
            for level in range(max(hierarchy.height - 1, 1))  # of a single value the root is all there is
        ]

    return _known_by(evidence, "labels", counts, find)


class DeltaDisclosure(WorstColumnMeasure):
    r"""Largest log ratio between a sensitive value's shares in an equivalence class and in the table.

    .. math::

        \delta = \max_C \max_s \left| \ln \frac{p_C(s)}{q(s)} \right|

    where :math:`p_C(s)` is the share of the value :math:`s` in class :math:`C`, and :math:`q(s)` that in the
    table. The model bounds what can be learnt about *every* value: also that someone does not have it.

    Notes
    -----
    **How to read it.** Lower is safer; :math:`e^\delta` is the largest factor by which a share changes. A
    class that lacks some value of the table makes it infinite; then the score is not estimable, the details
    tell how many records that concerns, and ``finite`` is the largest among the values that are there.

    **Doubt.** Exact. Hardly any real table without large classes has a finite value; β-likeness, which
    bounds only what becomes more likely, mostly has.

    **Missing.** Keys as in k-anonymity. A missing sensitive value is one of its own; under ``worst`` it may
    be a value that no other class has, which makes the score infinite.

    **Units.** A person counts once for each class and value.

    **Cost.** :math:`O(n \log n)`, one sparse count for each sensitive column.
    """

    name = "delta-disclosure"
    vetted = "brute-forced: property/test_anonymity.py::test_closeness"
    synonyms = ("DDisclosurePrivacy", "sigma-disclosure privacy")
    family = "attribute disclosure"
    title = "δ-disclosure privacy"
    better = "low"
    bounds = (0.0, math.inf)
    references = ("brickell2008",)
    class_values = ClassValues(survive_merging=True)

    def per_class(self, evidence: Evidence, classes: Classes, name: str) -> Floats:  # noqa: ARG002
        """The largest change in each class, infinite where a value is lacking."""
        counts = classes.counts(name)
        lacking = counts.distinct < int((counts.of_values > 0).sum())
        if self.missing == "worst" and len(classes) > 1 and counts.missing_counts.any():
            lacking[:] = True
        return np.where(lacking, np.inf, _changes(counts, np.abs))

    def always_failing_by(self, evidence: Evidence, classes: Classes, name: str, level: float) -> Floats:  # noqa: ARG002
        """What a class has too much of, or what it has no room for beside a value it has too little of."""
        counts = classes.counts(name)
        factor = math.exp(min(level, 700.0))
        caps = shares_of(counts) * factor
        least = np.minimum.reduceat(_ratios(counts), counts.starts[:-1]) * factor
        least[counts.distinct < int((counts.of_values > 0).sum())] = 0.0
        return np.maximum(share_to_go([(counts, caps)]), 1.0 - np.minimum(least, 1.0))

    def facts(self, evidence: Evidence, classes: Classes, worst: Floats) -> Facts:
        """Whom it concerns, and what it would be among the values that are there."""
        finite = [_changes(classes.counts(name), np.abs).max() for name in self.sensitive_columns(evidence)]
        lacking = count_records(classes, np.isinf(worst))
        return {"records_lacking_a_value": lacking, "finite": float(max(finite))}

    def endless(self) -> str:
        """Why there is no bound."""
        return "some class lacks a sensitive value of the table, so δ is infinite"


def _changes(counts: Counts, size: Callable[[Floats], Floats]) -> Floats:
    """The largest change of the logarithm of a share in each class, among the values that it has."""
    changes = np.log(_ratios(counts))
    return np.maximum.reduceat(size(changes), counts.starts[:-1])


def _ratios(counts: Counts) -> Floats:
    """The share of each value in its class over that in the table."""
    n = int(counts.of_values.sum())
    ratios: Floats = (counts.counts * n) / (counts.totals[counts.classes] * counts.of_values[counts.values])
    return ratios


class BetaLikeness(WorstColumnMeasure):
    r"""Largest relative gain of a sensitive value's share in an equivalence class over that in the table.

    .. math::

        \beta = \max_C \max_s \frac{p_C(s) - q(s)}{q(s)}

    where :math:`p_C(s)` is the share of the value :math:`s` in class :math:`C`, and :math:`q(s)` that in the
    table. *Enhanced* β-likeness asks in addition that the gain is at most :math:`-\ln q(s)`, so that
    frequent values do not become near certain.

    Notes
    -----
    **How to read it.** Lower is safer: 1 means that some value is twice as likely for people of a class as
    for anyone. Rare values weigh as much as frequent ones. *Enhanced* has the same value where it holds for
    some β; where a gain is above :math:`-\ln q` it holds for none, and the score is not estimable.
    ``feasible`` says which.

    **Doubt.** Exact.

    **Missing.** Keys as in k-anonymity. A missing sensitive value is one of its own; under ``worst`` all that
    are missing in a class are the same value, the one that gains most: one that is nowhere else, or one of
    the class's.

    **Units.** A person counts once for each class and value.

    **Cost.** :math:`O(n \log n)`, one sparse count for each sensitive column.
    """

    name = "beta-likeness"
    vetted = "brute-forced: property/test_anonymity.py::test_closeness"
    family = "attribute disclosure"
    aliases = ("beta",)
    title = "β-likeness"
    better = "low"
    bounds = (0.0, math.inf)
    references = ("cao2012",)
    class_values = ClassValues(survive_merging=True)

    kind: Literal["basic", "enhanced"] = param(
        "basic",
        "Whether frequent values have a bound of their own.",
        choices={
            "basic": "Every value may gain the same relative share.",
            "enhanced": "In addition, the gain of a value is at most minus the logarithm of its share.",
        },
        synonyms={"basic b-likeness": "basic", "enhanced b-likeness": "enhanced"},
    )

    def per_class(self, evidence: Evidence, classes: Classes, name: str) -> Floats:  # noqa: ARG002
        """The largest gain in each class, infinite where the enhanced model holds for no β."""
        counts = classes.counts(name)
        gains, shares = self._gains(counts)
        if self.kind == "enhanced":
            gains = np.where(gains > -np.log(shares) * (1 + 1e-12), np.inf, gains)
        largest: Floats = np.maximum.reduceat(gains, counts.starts[:-1])
        if self.missing == "worst":
            n = int(counts.of_values.sum())
            alone = np.where(counts.missing_counts > 0, n / counts.totals - 1, 0.0)
            if self.kind == "enhanced":
                bounds = -np.log(np.maximum(counts.missing_counts, 1) / n)
                alone = np.where(alone > bounds * (1 + 1e-12), np.inf, alone)
            largest = np.maximum(largest, alone)
        return np.maximum(largest, 0.0)

    def always_failing_by(self, evidence: Evidence, classes: Classes, name: str, level: float) -> Floats:  # noqa: ARG002
        """What a class has too much of."""
        counts = classes.counts(name)
        shares = shares_of(counts)
        gains = np.full(len(shares), level)
        if self.kind == "enhanced":
            gains = np.minimum(gains, -np.log(np.maximum(shares, np.finfo(float).tiny)))
        return share_to_go([(counts, shares * (1.0 + gains))])

    def _gains(self, counts: Counts) -> tuple[Floats, Floats]:
        """The relative gain of each entry, and the share of its value in the table."""
        n = int(counts.of_values.sum())
        if self.missing != "worst":
            return _ratios(counts) - 1, counts.of_values[counts.values] / n
        more = counts.missing_counts[counts.classes]
        of_class, of_table = counts.counts + more, counts.of_values[counts.values] + more
        gains = (of_class * n) / (counts.totals[counts.classes] * of_table) - 1
        return np.where(counts.values == 0, 0.0, gains), of_table / n

    def facts(self, evidence: Evidence, classes: Classes, worst: Floats) -> Facts:  # noqa: ARG002
        """Whether the model holds for some β."""
        if self.kind == "basic":
            return {}
        beyond = np.isinf(worst)
        feasible = yes_or_no(holds=not beyond.any())
        return {"records_beyond_every_beta": count_records(classes, beyond), "feasible": feasible}

    def endless(self) -> str:
        """Why no β will do."""
        return "some value gains more than −ln of its share, so enhanced β-likeness holds for no β"

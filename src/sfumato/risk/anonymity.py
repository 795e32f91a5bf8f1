"""k-anonymity and its nearest relatives: how many are alike in what an intruder knows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import seen_table, why_persons_unknown
from sfumato.core.measure import ClassValues, Counting, Score, Status, Tells
from sfumato.core.params import Columns, Resource, param
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.persons import persons_of
from sfumato.data.table import Table
from sfumato.errors import count_noun, quoted
from sfumato.kernels.arrays import Floats, Ints
from sfumato.risk._key_measures import (
    CLASS_LAWS,
    EMPTY,
    Facts,
    KeyMeasure,
    WorstClassMeasure,
    by_original,
    count_records,
    counted_in,
    of_records,
)
from sfumato.risk._population import population_sizes, why_no_population

#: Sizes of classes that offices ask for.
_USUAL = (2, 3, 5, 10)


def class_facts(classes: Classes, sizes: Ints, table: Table) -> dict[str, float | int | str]:
    """How many records and classes there are, and how many records stand in small ones."""
    facts: dict[str, float | int | str] = {
        "counted": counted_in(table),
        "records": table.n_records,
        "classes": len(classes),
        "incomplete_records": classes.incomplete,
    }
    return facts | {f"records_below_{k}": count_records(classes, sizes < k) for k in _USUAL}


class KAnonymity(WorstClassMeasure):
    r"""Smallest number of persons with equal values in all quasi-identifiers (keys).

    .. math::

        k = \min_{i} f_i, \qquad
        f_i = \left|\{ j : x_j^q = x_i^q \text{ for every key } q \}\right|

    where :math:`f_i` is the size of the class of record :math:`i`. A table is k-anonymous for every k up to
    that number: whoever knows the keys of a person finds at least k who may be the one.

    Notes
    -----
    **How to read it.** Higher is safer; 1 means that somebody is unique. In a requirement it is called
    ``k``, as in ``k >= 5``. ``by_record`` is the size of each record's class, and the details tell how many
    records stand in classes below the usual sizes. The release is looked at if there is one, else the
    original. Generalised keys are alike if they are equal.

    **Doubt.** Exact. It says nothing of what the people of a class have in common: see l-diversity. With
    weights, the details give the smallest class as the population would have it, an estimate.

    **Missing.** Under ``category`` a missing key is a value of its own, and no record is left out. Under
    ``any`` it may be anything: a record is alike to all that agree with it wherever both have a value, which
    is what an intruder sees who knows only that the value was suppressed. Under ``worst`` the class is
    counted for those fillings of the holes that make it smallest: a record with a missing key is alone, and
    helps nobody.

    **Units.** Where a column tells whose record it is, persons are counted, not records; also if only the
    original has that column: leaving it out of the release makes no new persons. If the column is released,
    under a pseudonym too, it joins a person's records, and those are alike who are so in all of theirs; a
    released number of the household joins households, and these are counted. If records do not map to the
    original and persons have several, the fewest and the most persons that there can be are proved bounds.

    **Cost.** :math:`O(n \log n)`, one pass over the keys for all measures of classes; under ``any`` times
    the pairs of patterns of missing keys.

    Examples
    --------
    >>> score = sfumato.assess({"age": [30, 30, 41], "sex": ["f", "f", "m"]}, measures=["k-anonymity"])
    >>> score["k-anonymity"].value
    1.0
    """

    name = "k-anonymity"
    vetted = "brute-forced: property/test_anonymity.py::test_identity"
    synonyms = ("kAnon", "kAnon_violations", "freqCalc", "measure_risk", "minimum key size")
    family = "equivalence classes"
    counts = Counting(people=True, joins_person_records=True, classes_only=True, laws=CLASS_LAWS)
    tells = Tells(places={"default": 0, "comparison": 2, "report": 1})
    class_values = ClassValues(independent=True, survive_merging=True, are_sizes=True)
    aliases = ("k",)
    title = "k-anonymity"
    better = "high"
    bounds = (1.0, math.inf)
    references = ("samarati2001", "sweeney2002")

    def sentence(self, value: float) -> str:
        """Say in words what its number means for one record."""
        others = count_noun(round(value) - 1, "other") if value > 1 else "nobody else"
        return f"{others} {'have' if value > 2 else 'has'} the same keys"  # noqa: PLR2004

    def of_sizes(self, persons: Ints) -> Floats:
        """The number of persons of each class."""
        return persons.astype(np.float64)

    def why_not_estimable(self, evidence: Evidence) -> str | None:
        """Give bounds where nobody knows whose the records are."""
        return None if len(seen_table(evidence)) else EMPTY

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Find the smallest class; its fewest persons, where it is not known whose the records are."""
        score, doubt = super().measure(evidence, run), why_persons_unknown(evidence)
        if doubt is None:
            return score
        # No class has fewer persons than if its records were of those who have the most.
        most = np.sort(np.unique(persons_of(evidence.original), return_counts=True)[1])[::-1]
        fewest = float(np.searchsorted(np.cumsum(most), score.value) + 1)
        between = (1.0 if len(seen_table(evidence)) > len(evidence.original) else fewest, score.value)
        return replace(
            score, value=between[0], status=Status.APPROXIMATE, interval=between, interval_is_proved=True,
            by_record=None, reason=f"a class counts the fewest persons it can have: {doubt}",
        )  # fmt: skip

    def facts(self, evidence: Evidence, classes: Classes, worst: Floats) -> Facts:  # noqa: ARG002
        """How many records stand in small classes, and what those are in the population."""
        table, sizes = seen_table(evidence), classes.persons
        facts = class_facts(classes, sizes, table)
        facts["mean_size"] = float((classes.members * sizes).sum() / table.n_records)
        if table.weights is not None:
            facts["population_size"] = float(classes.weights.min())
        return facts


class KMap(KeyMeasure):
    r"""Smallest number of people in a population who match a released record in all keys.

    .. math::

        k = \min_{i} F_i, \qquad
        F_i = \left|\{ p \in P : p^q \in x_i^q \text{ for every key } q \}\right|

    where :math:`P` is a table of the population that the records were drawn from, and :math:`x_i^q` the
    exact value of a key or the values that a generalised one covers. A record that is unique in the release
    is safe if many in the population are like it and nobody knows which of them was drawn.

    Notes
    -----
    **How to read it.** Higher is safer. It may be lower than k-anonymity only if the population lacks people
    who were released; ``not_in_population`` counts the records that nobody in it is like, and with any of
    them the score is 0. ``by_record`` is the number of people like each record.

    **Doubt.** Exact for the population given. It is a protection only against an intruder who does not know
    who was drawn.

    **Missing.** Under ``category`` a missing key is like a missing one (and covered by the wildcard); under
    ``any`` it is like anything, on either side; under ``worst`` a record with a missing key is like itself
    alone, and a person with one is counted for no value.

    **Units.** Each record of the population is taken for a person; or, in a table of counts, for as many as
    its column ``population_count`` says.

    **Cost.** :math:`O((n + N) \log (n + N))` for exact keys; for generalised ones each class costs what the
    boundary of its box cuts of a tree over the population.
    """

    name = "k-map"
    vetted = "brute-forced: property/test_anonymity.py::test_k_map"
    family = "equivalence classes"
    title = "k-map"
    better = "high"
    bounds = (0.0, math.inf)
    references = ("elemam2008", "sweeney2002")

    counts = Counting(people=True, compares_kept_relations=True, classes_only=True, laws=CLASS_LAWS)

    population: Resource | None = param(None, "The table of the population.", holds="table")

    def refuses(self, evidence: Evidence) -> str | None:
        """Say that a population is needed, with all keys."""
        reason = super().refuses(evidence)
        if reason is None and self.population is None:
            return f"{self.name} needs a table of the population: give it as `population`"
        return reason or why_no_population(self.name, evidence, str(self.population), self.columns(evidence))

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002  — no chance is used
        """Count each class in the population."""
        table, classes = seen_table(evidence), self.classes(evidence)
        sizes = population_sizes(evidence, classes, str(self.population))
        facts = class_facts(classes, sizes, table)
        facts["counted"] = "people of the population"
        facts["not_in_population"] = count_records(classes, sizes == 0)
        return Score(
            value=float(sizes.min()),
            by_record=by_original(evidence, of_records(classes, sizes), worst="low"),
            details=facts,
        )


class XYAnonymity(WorstClassMeasure):
    r"""Smallest number of distinct values of the columns Y that occur with one value of the columns X.

    .. math::

        k = \min_{x} \left|\{ y : (x, y) \text{ occurs in the table} \}\right|

    where :math:`x` runs over the combinations of values of the columns ``x``, and :math:`y` over those of
    ``y``. With the number of a person as ``y`` it is k-anonymity counted in persons; with a sensitive column
    it is distinct l-diversity.

    Notes
    -----
    **How to read it.** Higher is safer. ``by_record`` is the number of values beside each record's.

    **Doubt.** Exact.

    **Missing.** In ``x`` as in k-anonymity. In ``y`` a missing value is one of its own; under ``worst`` it is
    one of the others.

    **Cost.** :math:`O(n \log n)`.
    """

    name = "xy-anonymity"
    vetted = "brute-forced: property/test_anonymity.py::test_xy_anonymity"
    family = "equivalence classes"
    title = "(X,Y)-anonymity"
    better = "high"
    bounds = (1.0, math.inf)
    references = ("wang2006",)
    counts = Counting(people=True, classes_only=True, laws=CLASS_LAWS)
    class_values = ClassValues(independent=True, survive_merging=True)

    x: Columns = param(("@key",), "Columns whose combinations of values make the classes.", symbol="X")
    y: Columns = param(("@sensitive",), "Columns whose values are counted in each class.", symbol="Y")

    def key_columns(self, evidence: Evidence) -> tuple[str, ...]:
        """The columns of ``x`` that the table still has."""
        return _released_columns(evidence, self.x)

    def refuses(self, evidence: Evidence) -> str | None:
        """Say why the two sets of columns do not do."""
        reason = super().refuses(evidence)
        if reason is not None:
            return reason
        counted, schema = _released_columns(evidence, self.y), seen_table(evidence).schema
        if not counted:
            return f"{self.name} needs a column of `y`, and the table has none"
        if twice := sorted(set(counted) & set(self.key_columns(evidence))):
            return f"`x` and `y` of {self.name} must share no column, got: {quoted(twice)}"
        if odd := [name for name in counted if schema[name].kind not in self.kinds]:
            return f"{self.name} cannot compare values of {quoted(odd)}"
        unknown = {*counted, *self.key_columns(evidence)} - set(evidence.known_columns)
        apart = () if evidence.buckets is None else unknown & set(evidence.buckets.names)
        if apart:
            return f"{self.name} cannot judge {quoted(sorted(apart))}: the release links them to buckets only"
        return None

    def _classes_of_y(self, evidence: Evidence) -> Classes:
        """The classes of ``y``; that a value is missing in one way or another makes no two values of it."""
        table, names = seen_table(evidence), _released_columns(evidence, self.y)
        return evidence.remember(("beside", names), lambda: Classes.of(table, names, apart=False))

    def of_classes(self, evidence: Evidence, classes: Classes) -> Floats:
        """The number of distinct combinations of ``y`` in each class of ``x``."""
        beside = self._classes_of_y(evidence)
        values = beside.of_record + 1
        if self.missing == "worst":
            values = np.where((beside.codes == 0).any(axis=1)[beside.of_record], 0, values)
        counts = classes.counts_of(values, len(beside) + 1)
        return np.maximum(counts.distinct - (counts.missing_counts > 0), 1).astype(np.float64)

    def facts(self, evidence: Evidence, classes: Classes, worst: Floats) -> Facts:  # noqa: ARG002
        """How many combinations of ``y`` there are."""
        return {"values": len(self._classes_of_y(evidence))}


def _released_columns(evidence: Evidence, words: Columns) -> tuple[str, ...]:
    schema = seen_table(evidence).schema
    return tuple(sorted(name for name in evidence.original.schema.resolve(words) if name in schema))

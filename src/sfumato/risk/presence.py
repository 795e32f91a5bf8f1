"""Presence and buckets: whether someone is in the release at all, and tables released in two parts."""

from __future__ import annotations

import math

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import classes_of, seen_table
from sfumato.core.measure import Counting, Score, Status
from sfumato.core.params import Columns, Resource, param
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.codings import codes_of_both
from sfumato.data.table import Table
from sfumato.errors import count_noun
from sfumato.kernels.arrays import Ints
from sfumato.risk._key_measures import (
    CLASS_LAWS,
    EMPTY,
    KeyMeasure,
    SensitiveMeasure,
    by_original,
    count_records,
    of_records,
    yes_or_no,
)
from sfumato.risk._pieces import pieces_of
from sfumato.risk._population import people_in, population_sizes, why_no_population
from sfumato.risk.diversity import profiles


class DeltaPresence(KeyMeasure):
    r"""Highest probability that a person of the population is in the release, given the person's keys.

    .. math::

        \delta_{\max} = \max_C \frac{f_C}{F_C}, \qquad \delta_{\min} = \min_C \frac{f_C}{F_C}

    where :math:`f_C` is the number of released records of class :math:`C`, and :math:`F_C` the number of
    people in the population whom the keys of the class cover. Being in a register of patients may be what
    must not be known.

    Notes
    -----
    **How to read it.** Lower is safer; 1 means that of some people it is certain that they are in. The
    lowest chance is ``delta_min`` in the details: 0 means that of some (``surely_absent``) it is certain that
    they are not, which may be as bad. ``by_record`` is the chance of each released record's class, infinite
    where the population has too few.

    **Doubt.** Exact where each person of the population is covered by one class. Where generalised keys
    overlap (local recoding, wildcards beside values), classes share people, who may be in by any of them:
    the chance is at least the score, which is *approximate*, and more may be surely absent than are counted.
    Not estimable if more records of a class were released than the population has people: then it is not the
    population they were drawn from.

    **Missing.** As in k-map: a value of its own, anything, or the worst it could be.

    **Units.** Persons are counted where a column of the release tells whose record it is; each record of the
    population is taken for a person, or for as many as its column ``population_count`` says.

    **Cost.** That of k-map.
    """

    name = "delta-presence"
    vetted = "brute-forced: property/test_anonymity.py::test_k_map"
    synonyms = ("DPresence",)
    family = "re-identification"
    threat = "inference"
    title = "δ-presence"
    better = "low"
    bounds = (0.0, 1.0)
    references = ("nergiz2007",)
    counts = Counting(people=True, compares_kept_relations=True, laws=CLASS_LAWS)

    population: Resource | None = param(None, "The table of the population.", holds="table")

    def refuses(self, evidence: Evidence) -> str | None:
        """Say that a population is needed, with all keys."""
        reason = super().refuses(evidence)
        if reason is None and self.population is None:
            return f"{self.name} needs a table of the population: give it as `population`"
        return reason or why_no_population(self.name, evidence, str(self.population), self.columns(evidence))

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002  — no chance is used
        """Compare each class with its people in the population."""
        classes = self.classes(evidence)
        sizes = population_sizes(evidence, classes, str(self.population))
        too_many = count_records(classes, classes.persons > sizes)
        fits = classes.persons <= sizes
        chances = np.where(fits, classes.persons / np.where(fits, sizes, 1), np.inf)
        if too_many:
            return Score(
                math.nan,
                status=Status.NOT_ESTIMABLE,
                by_record=by_original(evidence, of_records(classes, chances), worst="high"),
                reason="the population must contain everybody in the release, got: too few in classes of "
                f"{count_noun(too_many, 'record')}",
            )
        people = int(people_in(evidence.resources[str(self.population)], classes.keys).sum())
        absent = max(people - int(sizes.sum()), 0)
        value = float(chances.max())
        doubt = value < 1 and _share_people(evidence, classes)
        return Score(
            value=value,
            status=Status.APPROXIMATE if doubt else Status.OK,
            interval=(value, 1.0) if doubt else None,
            interval_is_proved=doubt and not classes.overlap,
            reason="classes overlap, and a person covered by several may be in any of them" if doubt else "",
            by_record=by_original(evidence, of_records(classes, chances), worst="high"),
            details={
                "delta_min": 0.0 if absent else float(chances.min()),
                "surely_absent": absent,
                "people": people,
                "classes": len(classes),
            },
        )


def _share_people(evidence: Evidence, classes: Classes) -> bool:
    """Whether somebody may be covered by several classes: generalised values of some key overlap."""
    varied = [name for name, codes in zip(classes.keys, classes.codes.T, strict=True) if np.ptp(codes) > 0]
    return not all(
        pieces_of(
            classes.table, name, classes.examples, original=evidence.original, holes="category"
        ).disjoint
        for name in varied
    )


class PKAngelisation(SensitiveMeasure):
    r"""Smallest number of sensitive values in a bucket of a release in two tables ((p, k)-angelisation).

    .. math::

        p = \min_B \left|\{ s : s \text{ stands in bucket } B \}\right|

    where the buckets :math:`B` join a table with the keys to one with the sensitive values. The model holds
    if every bucket has at least p values of each sensitive column, and at least k records.

    Notes
    -----
    **How to read it.** Higher is safer: whoever finds a person's bucket is left with at least p values.
    ``feasible`` says whether every bucket has at least ``k`` records, and ``smallest_bucket`` the k that is
    reached; ``smallest_class`` counts those who are alike in the keys, which no bucket hides. The bucket and
    the tables are those of the release. Tables that were made elsewhere are judged with the column that is
    named as ``bucket`` and the second table as a resource, a record for each value (a column of counts is not
    looked at); without it both parts are taken to be one table.

    **Doubt.** Exact. Values count as they stand; where values form categories, release the categories.

    **Missing.** A missing key is as in k-anonymity. A missing sensitive value is one of its own; under
    ``worst`` it is one of the others. Records of a missing bucket make up a bucket.

    **Cost.** :math:`O(n \log n)`.
    """

    name = "pk-angelisation"
    synonyms = ("angelisation",)
    family = "attribute disclosure"
    title = "(p,k)-angelisation"
    better = "high"
    bounds = (1.0, math.inf)
    references = ("anjum2018", "tao2009")

    bucket: Columns = param(
        (), "Columns that name the bucket of a record; by default those that link the released tables."
    )
    values: Resource | None = param(
        None, "The table with the buckets and their sensitive values; by default the release.", holds="table"
    )
    k: int = param(2, "Smallest number of records in a bucket.", ge=1, le=10**9, symbol="k")

    def sensitive_columns(self, evidence: Evidence) -> tuple[str, ...]:
        """The sensitive columns that the second table has."""
        if self.values is None or not isinstance(evidence.resources.get(str(self.values)), Table):
            return super().sensitive_columns(evidence)
        wanted = evidence.original.schema.resolve(self.sensitive)
        schema = evidence.resources[str(self.values)].schema
        return tuple(sorted(name for name in wanted if name in schema))

    def refuses(self, evidence: Evidence) -> str | None:
        """Say what the two tables lack."""
        joining = self._joining(evidence)
        if not joining:
            return f"{self.name} needs the column that links the two tables: name it as `bucket`"
        second = self._second(evidence)
        if not isinstance(second, Table):
            return f"`values` of {self.name} must name a table, got: `{self.values}`, which is none"
        absent = [name for name in joining if name not in seen_table(evidence).schema]
        absent += [name for name in joining if name not in second.schema and name not in absent]
        if absent:
            return f"{self.name} needs the bucket in both tables, and one lacks `{'`, `'.join(absent)}`"
        if self.values is None:
            return super().refuses(evidence)
        if not self.sensitive_columns(evidence):
            return f"{self.name} needs a sensitive column in `{self.values}`, which has none"
        return KeyMeasure.refuses(self, evidence)

    def _joining(self, evidence: Evidence) -> tuple[str, ...]:
        """What tells the bucket: as asked for, or as a release in several tables joins them."""
        layout = None if evidence.release is None else evidence.release.layout
        keys = [] if layout is None else [set(each) for each in layout.keys.values()]
        return tuple(self.bucket) or tuple(sorted(set.intersection(*keys) if keys else ()))

    def _second(self, evidence: Evidence) -> object:
        return self.seen_values(evidence) if self.values is None else evidence.resources.get(str(self.values))

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002  — no chance is used
        """Count the values of each bucket, and the records of each class."""
        table, second = self.seen_values(evidence), self._second(evidence)
        assert isinstance(second, Table)  # `refuses` saw to it
        if not len(second):
            return Score.not_estimable(EMPTY)
        joining = self._joining(evidence)
        alike = classes_of(evidence, self.keys(evidence), missing=self.missing)
        buckets = Classes.of(second, joining)
        places = _bucket_of(table, second, tuple(sorted(joining)), buckets)
        lost = int((places < 0).sum())
        if lost:
            return Score.not_estimable(
                f"the table of values lacks the bucket of {count_noun(lost, 'record')}"
            )
        fill = self.missing == "worst"
        by_column = {
            name: profiles(buckets.counts(name), fill=fill).distinct.astype(np.float64)
            for name in self.sensitive_columns(evidence)
        }
        fewest = np.minimum.reduce(list(by_column.values()))
        used, smallest = np.unique(places), int(np.bincount(places)[places].min())
        return Score(
            value=float(fewest[used].min()),
            by_column={name: float(found[used].min()) for name, found in by_column.items()},
            by_record=by_original(evidence, fewest[places], worst="low"),
            details={
                "buckets": len(used),
                "smallest_bucket": smallest,
                "k": self.k,
                "feasible": yes_or_no(holds=smallest >= self.k),
                "classes": len(alike),
                "smallest_class": int(alike.persons.min()),
            },
        )


def _bucket_of(table: Table, second: Table, names: tuple[str, ...], buckets: Classes) -> Ints:
    """The bucket of each record of the first table among those of the second; −1 where it is not there."""
    if table is second:
        return buckets.of_record
    known = np.zeros(len(table), dtype=np.int64)
    others = np.zeros(len(second), dtype=np.int64)
    for name in names:
        known_codes, released_codes = codes_of_both(table, second, name)
        both = np.concatenate((known, others)) * (max(known_codes.max(), released_codes.max()) + 2) + 1
        _, numbers = np.unique(both + np.concatenate((known_codes, released_codes)), return_inverse=True)
        known, others = numbers[: len(table)], numbers[len(table) :]
    places = np.full(int(max(known.max(), others.max())) + 1, -1, dtype=np.int64)
    places[others] = buckets.of_record
    return places[known]

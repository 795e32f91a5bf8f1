"""Disclosure without re-identification: what a release tells of people in whose class all are alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Score, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes, Counts
from sfumato.data.generalised.cover import Cover
from sfumato.data.generalised.intervals import is_interval, value_dtype
from sfumato.data.generalised.nodes import match_leaves
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags
from sfumato.risk._key_measures import (
    CLASS_LAWS,
    SensitiveMeasure,
    by_original,
    count_records,
    of_records,
    worst_by_person,
)


class AttributeDisclosure(SensitiveMeasure):
    r"""Share of the records with a sensitive value or range that are in a class where every record has it.

    .. math::

        \mathrm{risk}(D', z) = \frac{\sum_{C \in \mathcal{N}(z)} |C|}{|\{r \in D' : r \text{ has } z\}|}

    where :math:`z` is a value or range of the sensitive column, and :math:`\mathcal{N}(z)` are the classes of
    records with the same keys that are not diverse: *all* their records have :math:`z`. Who is known to be in
    such a class has :math:`z`, without anybody knowing which record is theirs.

    :math:`z` is the range from ``low`` to ``high``, both included, or one of the values ``value`` (several
    are divided by ``|``). Without any, each value is a :math:`z` of its own and their sums are divided: the
    share of all records in classes whose records have one and the same value.

    See Also
    --------
    Uniqueness : whoever is unique is disclosed, too.
    LDiversity : how many values there are in the class that has fewest.

    Notes
    -----
    **How to read it.** 0 means that nobody's class gives the value away with certainty; it may
    still make it very likely, which t-closeness measures. Ask for what would harm: a diagnosis, a charge
    above a limit. For a column of many numbers a range must be given: hardly two have the same.

    **Doubt.** Exact. A generalised sensitive value has :math:`z` only if all it stands for lies in :math:`z`.

    **Missing.** The policy ``missing`` is that of the keys. A missing sensitive value is not :math:`z`, and
    makes its class diverse; at ``worst`` it may be :math:`z`, and does not. Who lacks the value is not
    counted.

    **Units.** Where a column tells whose record it is, persons are counted: disclosed is who has a record
    with :math:`z` in such a class.

    **Cost.** That of grouping by the keys and the sensitive column.

    Examples
    --------
    >>> frame = pl.DataFrame({"ward": [1, 1, 2, 2], "charge": [300_000, 250_000, 400_000, 900]})
    >>> schema = Schema((
    ...     Column("ward", Kind.NOMINAL, Role.KEY), Column("charge", Kind.CONTINUOUS, Role.SENSITIVE)
    ... ))
    >>> score = AttributeDisclosure(low=100_000).score(Evidence(Table(frame, schema)), Run(seed=1))
    >>> round(score.value, 3), score.by_record.tolist()
    (0.667, [1.0, 1.0, 0.0, 0.0])
    """

    name = "attribute-disclosure"
    vetted = "published: reference/test_paper_coarsening.py::test_what_the_classes_of_table_s6_give_away"
    synonyms = ("homogeneity attack",)
    family = "attribute disclosure"
    counts = replace(SensitiveMeasure.counts, laws=CLASS_LAWS)
    tells = Tells(places={"report": 12, "sensitive": 3})
    title = "Attribute disclosure"
    better = "low"
    bounds = (0.0, 1.0)
    references = ("sanchez2016",)

    low: float | None = param(None, "Smallest value of the sensitive range.")
    high: float | None = param(None, "Largest value of the sensitive range.")
    value: str | None = param(None, "Sensitive value; several are separated by vertical bars.")

    def sentence(self, value: float) -> str:
        """Say in words what its number means for one record."""
        if value > 0:
            return "all records with its keys have the same sensitive value: whoever knows the keys learns it"
        return "the records with its keys differ in the sensitive columns"

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse two ways of saying what must not be told, and a range of what is no number."""
        reason = super().refuses(evidence)
        if reason is not None or not (self._has_bounds or self.value is not None):
            return reason
        return self._unclear() or self._why_unsuitable(evidence)

    def _unclear(self) -> str | None:
        """Why it is not clear what is sensitive."""
        if self._has_bounds and self.value is not None:
            return f"{self.name} must be given a range or a value, got: both"
        if self.low is not None and self.high is not None and self.low > self.high:
            return f"`low` of {self.name} must not be above `high`, got: {self.low:g} and {self.high:g}"
        return None

    def _why_unsuitable(self, evidence: Evidence) -> str | None:
        """Why the columns cannot have the sensitive value or range."""
        names = self.sensitive_columns(evidence)
        if len(names) > 1:
            return f"{self.name} of a range or value needs one column: name it by `sensitive`"
        if self._has_bounds and not _is_numeric(self.seen_values(evidence), names[0]):
            return f"`low` and `high` of {self.name} need a column of numbers, and `{names[0]}` is none"
        if not self._has_bounds and is_interval(self.seen_values(evidence).frame.schema[names[0]]):
            return f"`{names[0]}` has ranges: give {self.name} `low` and `high` instead of `value`"
        return None

    @property
    def _has_bounds(self) -> bool:
        return self.low is not None or self.high is not None

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Find the classes that tell, column by column, and who is in them."""
        table, classes = self.seen_values(evidence), self.classes(evidence)
        names = self.sensitive_columns(evidence)
        is_disclosed, by_column, concerned = np.zeros(len(table), dtype=np.bool_), {}, 0
        for name in run.track(self.title, names, len(names)):
            having, telling = self._of_column(table, classes, name)
            disclosed = having & of_records(classes, telling.astype(np.int64)).astype(np.bool_)
            is_disclosed |= disclosed
            at_stake = worst_by_person(table, having.astype(np.float64)) > 0
            concerned += int(having.sum())
            if at_stake.any():
                risks = worst_by_person(table, disclosed.astype(np.float64))
                by_column[name] = float(risks[at_stake].mean())
        if not by_column:
            return Score.not_estimable("no record has the sensitive value or range")
        return Score(
            value=max(by_column.values()),
            by_column=by_column,
            by_record=by_original(evidence, is_disclosed.astype(np.float64), worst="high"),
            details={
                "records": len(table),
                "records_concerned": concerned,
                "records_disclosed": int(is_disclosed.sum()),
                "classes": len(classes),
                "records_alone": count_records(classes, classes.persons == 1),
            },
        )

    def _of_column(self, table: Table, classes: Classes, name: str) -> tuple[Flags, Flags]:
        """Which records have what must not be told, and which classes tell it."""
        counts = classes.counts(name)
        there = counts.values > 0
        harmless = counts.missing_counts if self.missing == "worst" else np.zeros_like(counts.missing_counts)
        if not self._has_bounds and self.value is None:
            values = np.bincount(counts.classes[there], minlength=len(classes))
            return ~table.missing(name), (values == 1) & ((counts.missing_counts == 0) | (harmless > 0))
        having = self._having(table, name) & ~table.missing(name)
        has = _codes_that(having, counts)[counts.values]
        with_it = np.bincount(counts.classes[has], counts.counts[has], len(classes)).astype(np.int64)
        return having, (with_it > 0) & (with_it + harmless == counts.totals)

    def _having(self, table: Table, name: str) -> Flags:
        """Which records have for sure what must not be told."""
        series = table.frame[name]
        if self._has_bounds:
            cover, inside = Cover.of(table, name), np.ones(len(table), dtype=np.bool_)
            if self.low is not None:
                inside &= cover.lows >= self.low  # NaN, for what is missing, is not
            if self.high is not None:
                inside &= cover.highs <= self.high
            return inside
        wanted = pl.Series((self.value or "").split("|"), dtype=pl.String).unique(maintain_order=True)
        if name in table.nodes:
            nodes = table.nodes[name]
            asked = np.isin(np.arange(len(nodes.leaves)), match_leaves(wanted, nodes.leaves))
            members = np.repeat(np.arange(len(nodes.labels)), nodes.sizes)
            outside = np.bincount(members[~asked[nodes.members]], minlength=len(nodes.labels))
            only = np.append((outside == 0) & (nodes.sizes > 0), [False])  # code −1 is the last: missing
            return only[nodes.codes(series)]
        return match_leaves(series, wanted) >= 0


def _codes_that(having: Flags, counts: Counts) -> Flags:
    """Of each code of the column: whether its records have what must not be told."""
    flags: Flags = np.append(having, [False])[counts.examples]  # −1 is the last: a code that does not occur
    return flags


def _is_numeric(table: Table, name: str) -> bool:
    dtype = table.frame.schema[name]
    plain = name not in table.nodes and not is_interval(dtype)
    return (plain and table.schema[name].kind is Kind.CONTINUOUS) or value_dtype(dtype).is_numeric()

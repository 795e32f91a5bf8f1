"""Angelisation: sensitive values in batches that meet the requirements, generalised keys in buckets of k."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from sfumato.core.measure import ClassMeasure, Measure
from sfumato.core.method import Gives
from sfumato.core.params import Requirements, param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.generalised.ranges import RecordGroups
from sfumato.data.table import Table
from sfumato.errors import SfumatoError, quoted
from sfumato.kernels.arrays import Flags, Ints
from sfumato.methods._buckets import BucketMethod, deal_records, merge_failing_buckets, split_into_tables
from sfumato.methods._enforcing import Guarantee
from sfumato.methods.mondrian import Mondrian
from sfumato.methods.slicing import around, associations, sample_of


class Angelisation(BucketMethod):
    r"""Release k-anonymous keys and, in a second table, sensitive values in batches that meet a requirement.

    The records are partitioned twice. *Batches* hold the sensitive values: records are distributed as in
    anatomy, and batches that do not meet the requirements (``also``) are merged until all do. *Buckets* of at
    least :math:`k` people generalise the keys as Mondrian does, independently of the sensitive values. The
    first table (``gt``) has the records with generalised keys and the number of their batch, the second
    (``bt``) the values of each batch. Because batches and buckets are independent, keys are no coarser than
    :math:`k` requires, and batches no larger than ``also`` requires. With ``tables``, several sensitive
    columns are put into tables of their own (SLOMS), related ones into one, each in another random order: who
    knows the value of one column learns nothing of those in other tables but their batch.

    See Also
    --------
    Anatomy : exact keys.
    Mondrian : one partition for both purposes, in one table.
    PKAngelisation : measures the model of several buckets.

    Notes
    -----
    **When to use.** Both re-identification and attribute disclosure must be prevented, by models as strong as
    t-closeness, and keys in one table with the sensitive values would become too coarse.

    **Guarantees.** At least k people share their keys; in each batch, no value of a sensitive column makes up
    more than :math:`1/l` of the records, and the values of each batch meet all further requirements. The
    release is measured before it is returned.

    **Risk to know.** As with anatomy: several sensitive columns in one table stay together in one row, and an
    intruder who knows others in the batch guesses better. Batches are the same for all tables, and all
    sensitive columns are judged together.

    **Ties, missing, weights.** Keys as in Mondrian; keys that an earlier step generalised are taken as they
    are. Missing sensitive values are refused, or a value of their own. Several records of one person are
    refused. Weights stay with the keys.

    **Cost.** That of Mondrian, and of measuring the batches each time some are merged.

    Examples
    --------
    >>> from sfumato.data.generalised.text_forms import to_text
    >>> frame = pl.DataFrame({"age": [20, 24, 50, 58], "illness": ["flu", "flu", "ulcer", "angina"]})
    >>> schema = Schema((
    ...     Column("age", Kind.CONTINUOUS, Role.KEY), Column("illness", Kind.NOMINAL, Role.SENSITIVE)
    ... ))
    >>> release = Angelisation(l=2, k=2).protect(Table(frame, schema, targets=("age",)), Run(seed=1))
    >>> to_text(release.tables["gt"].frame["age"]).to_list()
    ['[20;29]', '[20;29]', '[50;59]', '[50;59]']
    """

    name = "angelisation"
    synonyms = ("SLOMS", "slicing on multiple sensitive", "multiple sensitive bucketisation")
    family = "de-associative methods"
    title = "Angelisation"
    references = ("tao2009", "anjum2018", "han2013")
    gives = Gives(generalised=True, suppressed=True, deassociated=True, new_columns=True)

    k: int = param(5, "Smallest number of people in an equivalence class (equal keys).", ge=1, symbol="k")
    also: Requirements = param(
        Requirements(),
        "Further requirements on the sensitive values of each batch, such as t <= 0.2.",
        label="Further requirements",
    )
    counts: bool = param(False, "Show each value of a batch once, with its count.", label="Show counts")
    tables: int = param(1, "Number of tables that the sensitive columns are put into.", ge=1, le=100)

    def table_names(self) -> tuple[str, ...]:
        """Keys made coarser, and batches of values, in as many tables as there are columns for."""
        numbers = [""] if self.tables == 1 else [str(number) for number in range(1, self.tables + 1)]
        return ("gt", *(f"bt{number}" for number in numbers))

    def refuses(self, table: Table) -> str | None:
        """Refuse requirements that do not read, or that are on something else than sensitive values."""
        reason = super().refuses(table)
        if reason is not None:
            return reason
        try:
            asked = self._guarantee_of(()).requirements
        except SfumatoError as error:
            return error.message
        others = [each.measure.name for each in asked if not _of_values(each.measure)]
        if others:
            return f"`also` of {self.name} must require models of sensitive values, got: {quoted(others)}"
        return None

    def _guarantee_of(self, keys: Sequence[str], k: int = 1) -> Guarantee:
        return Guarantee.of(keys, k=k, also=self.also, missing="category")

    def guarantee(self, keys: Sequence[str]) -> Guarantee:
        """What must hold of the batches, and of the keys."""
        asked = self._guarantee_of(keys, self.k)
        own_guarantee = super().guarantee(keys)
        return replace(own_guarantee, requirements=(*own_guarantee.requirements, *asked.requirements))

    def failing(self, table: Table, run: Run) -> Callable[..., Flags]:
        """Tell which batches may not stand, by their values and by what is asked for besides."""
        too_frequent, asked = super().failing(table, run), self._guarantee_of(table.chosen)
        evidence = asked.evidence(table, run)

        def fails(order: Ints, parts: Ints) -> Flags:
            groups = RecordGroups(
                order, np.append(parts[:, 0], len(table))
            )  # batches: all records are in one
            firsts = order[parts[:, 0]]
            classes = Classes.known(
                table, table.chosen, groups.of_record, groups.sizes, examples=firsts, counts={}
            )
            return too_frequent(order, parts) | asked.failing_classes(evidence, classes)

        return fails

    def part(self, table: Table, names: tuple[str, ...], run: Run) -> Release:
        """Deal the records out to batches, and cut them into buckets."""
        rng = run.rng("deal")
        batches = deal_records(table, names, self.l, rng)
        if len(names) > 1 or self.also:
            batches = merge_failing_buckets(batches, self.failing(table, run), rng)
        exact = [name for name in table.chosen if not table.is_generalised(name)]
        coarse = Mondrian(k=self.k).apply(table.aimed_at(exact), run) if exact else Release.unchanged(table)
        tables = dict(zip(self.table_names(), [(), *self._groups(table, names, run)], strict=False))
        release = split_into_tables(coarse.first.aimed_at(()), batches, tables, run, counts=self.counts)
        return release.with_notes(*coarse.notes, figures=coarse.figures)

    def _groups(self, table: Table, names: tuple[str, ...], run: Run) -> list[tuple[str, ...]]:
        """The sensitive columns of each table, those that tell most of each other in one."""
        if self.tables == 1 or len(names) == 1:
            return [names]
        first, *others = names
        ties = associations(sample_of(table, run), others, (first,))
        return [tuple(names[place] for place in group) for group in around(ties, self.tables)]


def _of_values(measure: Measure) -> bool:
    """Whether each class of a measure is told by the sensitive values in it."""
    return isinstance(measure, ClassMeasure) and any(
        each.name == "sensitive" for each in measure.parameters()
    )

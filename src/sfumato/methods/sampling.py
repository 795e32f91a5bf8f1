"""Sampling: a random part of the records is released."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import polars as pl

from sfumato.core.method import Gives, Method, Takes
from sfumato.core.params import param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.persons import households_of, persons_of
from sfumato.data.schema import Column, Kind, Role
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags, Ints

#: What a column of weights is called where there was none.
_WEIGHT = "weight"


class Sampling(Method):
    r"""Release a random sample of the records, with sampling weights.

    Of :math:`N` units (records, persons or households) :math:`n = \max(1, [s N / 100])` are drawn without
    replacement, each with the same probability

    .. math::

        \pi = \frac{n}{N}, \qquad w_i' = \frac{w_i}{\pi}

    and the weights of their records are divided by it; where there is no weight yet, a column is added in
    which every record has the weight :math:`1/\pi`. A *simple* sample makes every set of :math:`n` units as
    likely as any other; a *systematic* one takes every :math:`N/n`-th unit in the order of the file, from a
    random start, so that the sample spreads over whatever the file is sorted by. With ``within`` the sample
    is stratified: each combination of those columns is sampled separately, in proportion, and at least one
    unit of each is drawn.

    See Also
    --------
    RecordSuppression : drops the records at risk, after which the rest is no longer a sample.
    Pram : keeps all records and changes their categories.

    Notes
    -----
    **When to use.** Censuses and registers: an intruder who finds a matching record cannot know that the
    person is in the file at all. For categories; a number with many distinct values makes a match certain in
    a sample too, so other methods must follow.

    **Guarantees.** Exactly :math:`n` units are drawn, and all records of a unit or none. If units are records
    with equal weights, the sum of the weights is unchanged in every stratum; otherwise it is unchanged in
    expectation, and so are all weighted totals.

    **Risk to know.** Released values are exact, and a person who is unique in the sample may be unique in the
    population: measure the risk against the population. The weights reveal the sampling share, and with
    unequal shares the stratum. Several samples of one table add up: release only one.

    **Ties, missing, weights.** Records without a number of a person or household are units of their own.
    Missing values do not matter. Declared whole weights become decimals.

    **Cost.** :math:`O(n)`.

    Examples
    --------
    >>> people = pl.DataFrame({"job": ["cook", "smith", "king", "cook", "cook", "smith"]})
    >>> release = protect(people, Sampling(share=50), columns=["job"], seed=1)
    >>> release.data["job"].to_list(), release.data["weight"].to_list()
    (['smith', 'king', 'cook'], [2.0, 2.0, 2.0])
    """

    name = "sampling"
    vetted = (
        "brute-forced: unit/methods/test_sampling.py::test_weights_sum_to_the_population_in_every_stratum"
    )
    synonyms = ("subsampling", "research sample")
    family = "sampling"
    nature = "non-perturbative"
    title = "Sampling"
    analyst_note = (
        "This is a sample: use the weights, and variance estimates that fit the sampling design. Counts "
        "without weights describe the sample only."
    )
    kinds = frozenset(Kind)
    references = ("skinner1994", "willenborg2001", "hundepool2012", "carvalho2023")
    cost = "n"
    takes = Takes(generalised=True)
    gives = Gives(other_records=True, new_columns=True)

    share: float = param(
        10.0,
        "Share of the units to draw.",
        gt=0,
        le=100,
        unit="%",
        symbol="s",
        log=True,
        tune=(1, 99),
        drive=True,
        hint="it is a percentage; statistical offices release from 1 to 10 of a census",
    )
    design: Literal["simple", "systematic"] = param(
        "simple",
        "How units are drawn.",
        choices={
            "simple": "At random: every set of units is equally likely.",
            "systematic": "At equal steps in the order of the file, from a random start.",
        },
    )
    by: Literal["person", "household", "record"] = param(
        "person",
        "What is drawn as a whole.",
        choices={
            "person": "All records of a person; without a column of persons, each record.",
            "household": "All records of a household.",
            "record": "Each record, regardless of the person.",
        },
        label="Draw whole",
    )

    def refuses(self, table: Table) -> str | None:
        """Households can be drawn only where a column tells them, and nobody where nobody is."""
        if not len(table):
            return f"{self.name} must be given records, got: none"
        if self.by == "household" and table.schema.only_role(Role.HOUSEHOLD) is None:
            return f"{self.name} by household needs a column with the role household, got: none"
        return super().refuses(table)

    def protect(self, table: Table, run: Run) -> Release:
        """Draw the units, and weigh their records."""
        units = self._units(table)
        n_units = len(table) if units is None else int(units.max(initial=-1)) + 1
        n_drawn = max(1, int(self.share * n_units / 100 + 0.5))
        drawn = self._draw_units(n_units, n_drawn, run.rng("units"))
        rows = np.flatnonzero(drawn if units is None else drawn[units])
        run.tell(self.title, len(table), len(table))
        sample = _scale_weights(table.take(rows), n_units / n_drawn)
        return Release.of(sample, source_rows=rows, figures={"records_left_out": len(table) - len(rows)})

    def _units(self, table: Table) -> Ints | None:
        """Which unit each record belongs to, in the order in which they come; None: each is its own."""
        if self.by == "record" or (self.by == "person" and table.schema.only_role(Role.PERSON) is None):
            return None
        numbers = persons_of(table) if self.by == "person" else households_of(table)
        there = np.bincount(numbers, minlength=1) > 0
        if self.design == "simple":  # in whatever order
            return numbers if there.all() else (np.cumsum(there) - 1)[numbers]
        _, firsts, units = np.unique(numbers, return_index=True, return_inverse=True)
        turns = np.empty(len(firsts), dtype=np.int64)
        turns[np.argsort(firsts)] = np.arange(len(firsts))
        return turns[units]

    def _draw_units(self, n_units: int, n_drawn: int, rng: np.random.Generator) -> Flags:
        drawn = np.zeros(n_units, dtype=np.bool_)
        if self.design == "simple":
            drawn[rng.choice(n_units, n_drawn, replace=False, shuffle=False)] = True
        else:
            # Between two neighbours lies at least one unit, so that no two fall on the same.
            places = (np.arange(n_drawn) + rng.random()) * (n_units / n_drawn)
            drawn[np.minimum(places.astype(np.int64), n_units - 1)] = True
        return drawn


def _scale_weights(sample: Table, factor: float) -> Table:
    """Let each record stand for ``factor`` times as many."""
    name = sample.schema.only_role(Role.WEIGHT)
    if name is None:
        name = next(free for free in _names() if free not in sample.schema)
        column = Column(name, Kind.CONTINUOUS, Role.WEIGHT, label="Sampling weight")
        return sample.with_values(
            name, pl.repeat(factor, len(sample), dtype=pl.Float64, eager=True), column=column
        )
    weights = np.empty(0) if sample.weights is None else sample.weights
    column = replace(sample.schema[name], integer=False, upper=None)
    return sample.with_values(name, pl.Series(weights * factor, dtype=pl.Float64), column=column)


def _names() -> list[str]:
    return [_WEIGHT, f"sampling_{_WEIGHT}", *(f"{_WEIGHT}_{number}" for number in range(2, 1_000))]

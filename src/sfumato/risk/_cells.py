"""Cells: the cross of the values of the keys, of which a sample fills few: what models of it stand on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Counting
from sfumato.core.params import param
from sfumato.data.classes.classes import Classes
from sfumato.data.schema import Kind
from sfumato.data.table import TEXTUAL
from sfumato.kernels.arrays import Floats, Ints
from sfumato.risk._sampling import SampledMeasure

#: What is estimated of a record: that nobody else of the population is in its cell, or that a match is right.
ChanceOf = Literal["unique", "match"]


@dataclass(frozen=True, eq=False)
class ContingencyCells:
    """The cells that are filled: their place in the cross of the keys, and how many people are in each."""

    codes: Ints  # [cells, keys] from 0 without gaps
    counts: Floats  # [cells]
    sizes: tuple[int, ...]  # [keys] how many values each has
    of_class: Ints  # [classes] the cell of each

    @classmethod
    def of(cls, classes: Classes) -> ContingencyCells:
        """Number the values of each key in their order, missing ones first."""
        columns = [
            np.unique(_ranks(classes, name, codes), return_inverse=True)
            for name, codes in zip(classes.keys, classes.codes.T, strict=True)
        ]
        dense = np.stack([codes for _, codes in columns], axis=1)
        codes, of_class = np.unique(dense, axis=0, return_inverse=True)
        counts = sums(of_class, classes.persons.astype(np.float64))
        return cls(codes, counts, tuple(len(values) for values, _ in columns), of_class)

    @property
    def n(self) -> float:
        """How many people there are."""
        return float(self.counts.sum())

    @property
    def total(self) -> float:
        """How many cells there are, the empty ones too: a float, for it may be very large."""
        return math.prod(map(float, self.sizes))

    def margin(self, key: int) -> Floats:
        """How many people have each value of a key."""
        return sums(self.codes[:, key], self.counts)

    def pair(self, first: int, second: int) -> tuple[Ints, Ints, Floats]:
        """The pairs of values of two keys that occur, and how many people have each."""
        pairs = self.codes[:, first] * self.sizes[second] + self.codes[:, second]
        distinct, places = np.unique(pairs, return_inverse=True)
        counts = sums(places, self.counts)
        return distinct // self.sizes[second], distinct % self.sizes[second], counts


def sums(places: Ints, weights: Floats) -> Floats:
    """The sum of the weights at each place."""
    found: Floats = np.bincount(places, weights=weights).astype(np.float64)
    return found


def _ranks(classes: Classes, name: str, codes: Ints) -> Ints:
    """The place of each class's value among those of its key, in the declared or natural order."""
    table = classes.table
    distinct, first, places = np.unique(codes, return_index=True, return_inverse=True)
    examples = classes.examples[first]
    column, values = table.schema[name], table.frame[name].gather(examples)
    declared = np.zeros(len(distinct), dtype=np.int64)
    if column.kind is Kind.ORDINAL and not table.is_generalised(name):
        declared = table.codes(name).codes[examples]
    if values.dtype in TEXTUAL:
        values = values.cast(pl.String)  # categories are ordered by when they were met
    frame = pl.DataFrame({"there": distinct > 0, "declared": declared, "value": values})
    order = frame.with_row_index().sort("there", "declared", "value")["index"].to_numpy()
    return np.argsort(order)[places]


class CellMeasure(SampledMeasure):
    """Looks at the cross of the keys, of which a person must be in one cell."""

    better = "low"
    bounds = (0.0, 1.0)
    counts = Counting(people=True, joins_person_records=True)

    chance: ChanceOf = param(
        "unique",
        "What is estimated for records that are unique in the sample.",
        choices={
            "unique": "The probability that they are unique in the population.",
            "match": "The probability that a match with one is correct.",
        },
    )

    def sentence(self, value: float) -> str:
        """Say in words what its number means for one record."""
        what = "it is unique in the population" if self.chance == "unique" else "a match with it is correct"
        return f"{what} with a probability of {value:.3g}"

    def why_not_estimable(self, evidence: Evidence) -> str | None:
        """Say that joined records are in no one cell."""
        reason = super().why_not_estimable(evidence)
        if reason is None and self.classes(evidence).joined is not None:
            return f"{self.name} needs each person in one cell of the keys, and here a column links records"
        return reason

"""Cells: the cross of the values of the keys, of which a sample fills few; what models of all cells stand on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sfumato.core.params import param
from sfumato.data.classes.classes import Classes
from sfumato.data.evidence import Evidence
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.risk._sampling import SampledMeasure

#: What is estimated of a record: that nobody else of the population is in its cell, or that a match is right.
ChanceOf = Literal["unique", "match"]


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells that are filled: their place in the cross of the keys, and how many people are in each."""

    codes: Ints  # [cells, keys] from 0 without gaps
    counts: Floats  # [cells]
    sizes: tuple[int, ...]  # [keys] how many values each has
    of_class: Ints  # [classes] the cell of each

    @classmethod
    def of(cls, classes: Classes) -> Cells:
        """Number the values of each key in the order of their codes."""
        columns = [np.unique(column, return_inverse=True) for column in classes.codes.T]
        dense = np.stack([codes for _, codes in columns], axis=1)
        codes, of_class = np.unique(dense, axis=0, return_inverse=True)
        counts = np.bincount(of_class, weights=classes.persons)
        return cls(codes, counts, tuple(len(values) for values, _ in columns), of_class)

    @property
    def n(self) -> float:
        """How many people there are."""
        return float(self.counts.sum())

    @property
    def total(self) -> float:
        """How many cells there are, the empty ones too; it may be beyond every whole number of the machine."""
        return math.prod(map(float, self.sizes))

    def margin(self, key: int) -> Floats:
        """How many people have each value of a key."""
        return np.bincount(self.codes[:, key], weights=self.counts, minlength=self.sizes[key])

    def pair(self, first: int, second: int) -> tuple[Ints, Ints, Floats]:
        """The pairs of values of two keys that occur, and how many people have each."""
        pairs = self.codes[:, first] * self.sizes[second] + self.codes[:, second]
        distinct, places = np.unique(pairs, return_inverse=True)
        counts = np.bincount(places, weights=self.counts)
        return distinct // self.sizes[second], distinct % self.sizes[second], counts


class CellMeasure(SampledMeasure):
    """Looks at the cross of the keys, of which a person must be in one cell."""

    better = "low"
    bounds = (0.0, 1.0)
    sees_persons = True

    chance: ChanceOf = param(
        "unique", "What is estimated of records: that they are unique in the population, or a match is right."
    )

    def undefined(self, evidence: Evidence) -> str | None:
        """Say that joined records are in no one cell."""
        reason = super().undefined(evidence)
        if reason is None and self.classes(evidence).joined is not None:
            return f"records are joined, and {self.name} must find each person in one cell of the keys"
        return reason

    def unknown(self, classes: Classes) -> Flags:
        """The classes that lack a key where the worst is to be thought of it: no model says less."""
        lacking: Flags = (classes.codes == 0).any(axis=1)
        return lacking if self.missing == "worst" else np.zeros(len(classes), dtype=np.bool_)

"""What each release of a series shows, and whose its records are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.data.buckets import Buckets
from sfumato.data.series import NOBODY, Identity
from sfumato.data.table import Table
from sfumato.errors import DataError
from sfumato.kernels.arrays import Ints, Words

#: The resource that holds the earlier releases of the same people.
SERIES = "series"


@dataclass(frozen=True, eq=False)
class Wave:
    """One release of a series: the table as it reads, what stands apart in it, and whose each record is.

    ``persons`` are the numbers that an `Identity` gives, 0 for a record that is nobody's; ``units`` tell the
    records of one person apart. ``original`` is what it was made of, where that is still at hand; it is
    ``keyed`` if people have the chance in it that they have in the others.
    """

    name: str
    reading: Table
    persons: Words
    units: Words
    buckets: Buckets | None = None
    original: Table | None = None
    keyed: bool = True

    @cached_property
    def order(self) -> Ints:
        """The records in the order of their units."""
        return np.argsort(self.units)

    @property
    def further(self) -> int:
        """How many records are of persons who have others."""
        there = np.sort(self.persons[self.persons != NOBODY])
        return int((there[1:] == there[:-1]).sum())

    def places_in(self, other: Wave) -> Ints:
        """Where each of its records stands in another release, −1 if it does not."""
        found = np.full(len(self.units), -1, dtype=np.int64)
        there = other.units[other.order]
        if len(there):
            wanted = self.units[self.order]  # in their order they are found much faster
            places = np.minimum(np.searchsorted(there, wanted), len(there) - 1)
            found[self.order] = np.where(
                (there[places] == wanted) & (wanted != NOBODY), other.order[places], -1
            )
        return found


@dataclass(frozen=True, eq=False)
class Waves:
    """The earlier releases of a series, the oldest first, and who is who in all of them."""

    identity: Identity
    earlier: tuple[Wave, ...] = ()

    @classmethod
    def of(cls, earlier: Sequence[Evidence], *, record: str = "") -> Waves:
        """Take releases beside their originals (``Evidence(original, release)``), the oldest first."""
        identity = Identity.of(record=record)
        waves = [wave_of(each, identity, f"release {number}") for number, each in enumerate(earlier, start=1)]
        return cls(identity, tuple(waves))

    def now(self, evidence: Evidence) -> Wave:
        """The release that is judged, as one more of the series."""
        return evidence.remember("wave", lambda: wave_of(evidence, self.identity, "this release"))


def wave_of(evidence: Evidence, identity: Identity, name: str) -> Wave:
    """What a release shows, and whose its records are as the original says."""
    rows, reading = evidence.source_rows, evidence.protected
    if reading is None or rows is None:
        raise DataError("a release of the series lacks the private mapping of its records to persons")
    persons, units = (
        np.append(words, NOBODY)[rows]  # a source of −1 is nobody
        for words in (identity.persons(evidence.original), identity.units(evidence.original))
    )
    return Wave(name, reading, persons, units, evidence.buckets, evidence.original)

"""Where the records of a release come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from sfumato.data.table import Table
from sfumato.errors import DataError
from sfumato.kernels.arrays import Ints


@dataclass(frozen=True, eq=False)
class Origin:
    """Which original record each released one comes from.

    Records that stayed in their order are a ``span``, of which an array is made only if someone asks for
    ``rows``; others are ``given`` as rows of the original, −1 for a record that is nobody's. Synthetic ones
    are all nobody's. Of records from elsewhere nothing is known: they are people's.
    """

    span: range | None = None
    given: Ints | None = field(default=None, repr=False)
    is_synthetic: bool = False

    @classmethod
    def identity(cls, n: int) -> Origin:
        """Of ``n`` records, each in the place where it stood."""
        return cls(range(n))

    @classmethod
    def of_rows(cls, rows: Ints | None) -> Origin:
        """Of the records in these rows of the original; None: nobody knows."""
        return cls(given=rows)

    @classmethod
    def synthetic(cls) -> Origin:
        """Of records that are nobody's."""
        return cls(is_synthetic=True)

    @classmethod
    def unknown(cls) -> Origin:
        """Of records that do not map."""
        return cls()

    @cached_property
    def rows(self) -> Ints | None:
        """The original's row of each record, −1 for nobody's; None where records do not map."""
        return self.given if self.span is None else np.arange(self.span.start, self.span.stop, dtype=np.int64)

    @property
    def is_known(self) -> bool:
        """Whether records map."""
        return self.span is not None or self.given is not None

    @property
    def is_identity(self) -> bool:
        """Whether every record stands in the place where it stood."""
        return self.span is not None and self.span.start == 0

    @property
    def is_complete(self) -> bool:
        """Whether every record is known to be one of the original's."""
        return self.span is not None or (self.given is not None and bool((self.given >= 0).all()))

    @property
    def size(self) -> int:
        """The number of records that map."""
        known = self.given if self.span is None else self.span
        return 0 if known is None else len(known)

    def locate(self, places: Ints) -> Ints | None:
        """The original's rows of the records in these places; a place of −1 is nobody's."""
        if self.span is None:
            return None if self.given is None else np.append(self.given, -1)[places]
        return places if self.span.start == 0 else np.where(places < 0, -1, places + self.span.start)

    def records_of(self, original: Table) -> Table:
        """The original records of those that map; none of them may be nobody's."""
        if self.span == range(len(original)):
            return original
        if self.rows is None:
            raise DataError("records must map to have originals, got: records that do not")
        return original.take(self.rows)

    def take(self, places: Ints) -> Origin:
        """The origin of the records in these places."""
        return Origin.of_rows(self.locate(places)) if self.is_known else self

    def then(self, later: Origin) -> Origin:
        """The origin of records that come from these: what was nobody's stays so."""
        if self.is_synthetic or later.is_synthetic:
            return Origin.synthetic()
        if not (self.is_known and later.is_known):
            return Origin.unknown()
        if later.given is not None:
            return self.take(later.given)
        if later.span == range(self.size):
            return self
        cut = slice(later.span.start, later.span.stop) if later.span is not None else slice(0)
        if self.span is not None:
            return Origin(self.span[cut])
        return Origin.of_rows(None if self.given is None else self.given[cut])

    @classmethod
    def concatenate(cls, parts: Sequence[Origin]) -> Origin:
        """The origin of records one below the other."""
        if all(each.is_synthetic for each in parts):
            return cls.synthetic()
        if not all(each.is_known for each in parts):
            return cls.unknown()
        spans = [each.span for each in parts if each.span is not None]
        if len(spans) == len(parts) and all(a.stop == b.start for a, b in pairwise(spans)):
            return cls(range(spans[0].start, spans[-1].stop))
        return cls.of_rows(np.concatenate([each.rows for each in parts if each.rows is not None]))

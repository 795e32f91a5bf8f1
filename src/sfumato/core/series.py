"""A series of releases of the same people: the secret they share, and what earlier ones have fitted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sfumato.core.method import Method
from sfumato.core.run import SEED_BITS
from sfumato.data.series import Identity
from sfumato.data.strata import Stratum
from sfumato.data.table import Table


@dataclass(frozen=True)
class Series:
    """What the releases of a series have in common, known to their owner alone.

    The ``secret`` keys the chance of every person and column. ``record`` names the column that tells the
    records of one person apart, where there are several. ``kept`` are the tables that steps of earlier
    releases confided, by what is said of the step and the stratum.
    """

    secret: bytes = field(repr=False)
    record: str = ""
    kept: Mapping[tuple[str, Stratum], Mapping[str, Table]] = field(default_factory=dict, repr=False)

    @cached_property
    def identity(self) -> Identity:
        """Who is who in all releases."""
        return Identity.of(self.secret, self.record)


def secret_of(seed: int) -> bytes:
    """The secret of the series that begins with a release of this seed."""
    key = seed.to_bytes(SEED_BITS // 8, "little")
    return hashlib.blake2b(digest_size=32, key=key, person=b"series").digest()


def said_of(method: Method) -> str:
    """What tells a step in all releases: the method and its parameters.

    With other parameters its chance is another: the same draws times another number would tell themselves.
    """
    return json.dumps({"method": method.name, **method.to_dict()}, sort_keys=True)

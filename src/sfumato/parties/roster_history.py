"""What a party remembers of the sessions it joined: the same data never meet another roster unasked.

Two sums over rosters that differ by one party tell that party's counts. A file beside the key, for its owner
alone, has a digest of the data, of their place and of the roster of each session.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sfumato.data.table import Table
from sfumato.errors import ReadError, RefusedError, trouble_with
from sfumato.io import Staging


@dataclass(frozen=True)
class RosterHistory:
    """The sessions of the owner of a key."""

    path: Path

    @classmethod
    def beside(cls, key: Path) -> RosterHistory:
        """The file for a key: ``NAME.joined`` beside ``NAME.key``."""
        return cls(key.with_suffix(".joined"))

    def require_same_roster(self, data: Sequence[str], roster: str) -> None:
        """Refuse data that were counted with another roster before."""
        if any(set(before) & set(data) and other != roster for before, other in self._entries()):
            raise RefusedError(
                "these data were counted with another roster before: the difference of two sums can reveal "
                "the counts of one party",
                hint="join with the former roster; or add --another-roster if all parties accept that",
            )

    def add(self, data: Sequence[str], roster: str, *, another_roster: bool = False) -> None:
        """Remember a session, before any count leaves; refuse it if another began meanwhile."""
        entry = (list(data), roster)

        def grown() -> str:
            if not another_roster:
                self.require_same_roster(data, roster)
            return json.dumps([*self._entries(), entry])

        if entry not in self._entries():
            with Staging() as staging:
                staging.grow(self.path, grown)

    def _entries(self) -> list[tuple[list[str], str]]:
        try:
            return [(list(data), str(roster)) for data, roster in json.loads(self.path.read_bytes())]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ReadError(f"cannot read `{self.path}`: {trouble_with(error)}") from None
        except (ValueError, TypeError):
            raise ReadError(
                f"`{self.path}` is damaged, so nobody knows which sessions these data were in",
                hint="restore it from a copy",
            ) from None


def digests_of(table: Table, keys: Sequence[str], place: str) -> tuple[str, str]:
    """What the same data are known by: their contents in the keys, and where they lie."""
    return table.select(keys).digest.hex(), hashlib.sha256(place.encode()).hexdigest()

"""A ledger of finished work in SQLite, so that a search that was stopped goes on where it was.

A search is repeated from its beginning, and what the ledger knows is not computed again: the same seed and
data propose the same recipes in the same order, so a search that was killed ends as if it had not been.
The ledger holds recipes and scores. It never holds the seed, only a keyed fingerprint by which the ledger of
another search is noticed; the seed stands beside it in a private file.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from sfumato.core.run import Run
from sfumato.errors import ReadError, WriteError, trouble_with
from sfumato.io import write_text

#: What SQLite calls the application whose file this is: "sfum" in ASCII.
_APPLICATION: Final = 0x7366756D
_PRIVATE: Final = 0o600

_TABLES: Final = (
    "CREATE TABLE about (fingerprint TEXT NOT NULL)",
    "CREATE TABLE results (stage TEXT, recipe TEXT, steps TEXT, result TEXT, PRIMARY KEY (stage, recipe))",
)


class Ledger:
    """Results of finished work by stage and recipe; without a path they are kept in memory only."""

    def __init__(self, path: Path | None, fingerprint: str) -> None:
        self.path = path
        self.known: dict[tuple[str, str], Any] = {}
        self.replayed = 0
        self._file: sqlite3.Connection | None = None
        if path is not None:
            try:
                self._file = self._open_database(path, fingerprint)
                self._read()
            except ReadError:
                self.close()
                raise
            except (sqlite3.Error, ValueError, TypeError):
                self.close()
                raise _another_file(path) from None
            except OSError as error:
                raise _not_writable(path, error) from None

    def _open_database(self, path: Path, fingerprint: str) -> sqlite3.Connection:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, _PRIVATE))
        fresh = path.stat().st_size == 0
        # isolation_level None: a transaction begins and ends where it says so below.
        file = sqlite3.connect(path, isolation_level=None)
        self._file = file
        if fresh:
            file.execute("BEGIN IMMEDIATE")
            file.execute(f"PRAGMA application_id = {_APPLICATION}")
            for text in _TABLES:
                file.execute(text)
            file.execute("INSERT INTO about VALUES (?)", (fingerprint,))
            file.execute("COMMIT")
        (application,) = file.execute("PRAGMA application_id").fetchone()
        if application != _APPLICATION:
            raise sqlite3.DatabaseError
        ((found,),) = file.execute("SELECT fingerprint FROM about").fetchall()
        if found != fingerprint:
            raise ReadError(
                f"the ledger `{path}` is of another search: its data, requirements, methods or seed differ",
                hint="name another file, or repeat the first search exactly",
            )
        return file

    def _read(self) -> None:
        assert self._file is not None
        for stage, recipe, result in self._file.execute("SELECT stage, recipe, result FROM results"):
            self.known[stage, recipe] = json.loads(result)
        self.replayed = len(self.known)

    def get(self, stage: str, recipe: str) -> Any:
        """What is known of a recipe at a stage; None if nothing."""
        return self.known.get((stage, recipe))

    def keep(self, stage: str, recipe: str, steps: Any, result: Mapping[str, Any]) -> None:
        """Write one finished piece of work down, in one transaction: it is there whole or not at all."""
        text = json.dumps(result, allow_nan=False, sort_keys=True)
        # What is remembered is what a later search will read, so that both go on alike.
        self.known[stage, recipe] = json.loads(text)
        if self._file is not None:
            row = (stage, recipe, json.dumps(steps, sort_keys=True), text)
            try:
                self._file.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?)", row)
            except sqlite3.Error as error:
                raise _not_writable(self.path, error) from None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def fingerprint(run: Run, payload: Mapping[str, Any]) -> str:
    """A keyed fingerprint of a search: who does not have the seed learns nothing of it."""
    text = json.dumps(payload, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.blake2b(text.encode(), key=run.randomness.secret, digest_size=32).hexdigest()


def private_half(ledger: Path) -> Path:
    """Where the seed of a ledger's search stands."""
    return ledger.with_name(ledger.name + ".private.json")


def keep_seed(ledger: Path, run: Run, *, given: bool) -> None:
    """Write the seed of a search that begins beside its ledger, for its owner's eyes only."""
    if not ledger.exists():
        payload = {"seed": f"{run.randomness.seed:032x}", "seed_given": given}
        write_text(private_half(ledger), json.dumps(payload, indent=2), overwrite=True, private=True)


def kept_seed(ledger: Path) -> int | None:
    """The seed of the search whose ledger this is, or None where none stands beside it."""
    place = private_half(ledger)
    if not place.exists():
        return None
    try:
        return int(json.loads(place.read_text(encoding="utf-8"))["seed"], 16)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise ReadError(f"`{place}`, the private half of `{ledger.name}`, has no seed") from None


def _not_writable(path: Path | None, error: OSError | sqlite3.Error) -> WriteError:
    found = trouble_with(error) if isinstance(error, OSError) else "the database takes no data"
    return WriteError(f"cannot write the ledger `{path}`: {found}", hint="check free space and permissions")


def _another_file(path: Path) -> ReadError:
    return ReadError(f"`{path}` exists, but is not the ledger of a search", hint="name another file")

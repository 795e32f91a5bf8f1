"""Addresses of tables in databases: said as text, taken apart, never with a password.

::

    sqlite:people.db?table=persons              a file, beside the working folder
    sqlite:///data/people.db?table=persons      a file, from the root
    postgresql://user@host:5432/db?table=schema.persons

Signs that an address has a use for (``? & = @ %``) are written with a percent sign in names; a name of
PostgreSQL with a dot in it stands in double quotes. It is written into plans and reports, so it holds no
password: PostgreSQL takes that from the environment variable PGPASSWORD or from ~/.pgpass.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from urllib.parse import quote, unquote

from sfumato.errors import DataError, ReadError

SQLITE, POSTGRES = "sqlite", "postgresql"
TIMEOUT = "10"  # seconds until a server that is silent, or a table that others hold, is given up

_SYSTEM = re.compile(r"(sqlite|postgresql|postgres):", re.IGNORECASE)
_PASSWORD = re.compile(r"postgres(ql)?:.*:.*@", re.IGNORECASE | re.DOTALL)  # strict: an @ elsewhere is %40
_NAME = r'(?:"((?:[^"]|"")+)"|([^".]+))'
_QUALIFIED = re.compile(rf"(?:{_NAME}\.)?{_NAME}")


@dataclass(frozen=True)
class Address:
    """Where a table is: ``place`` is a file of SQLite or a server of PostgreSQL; ``schema`` may be empty."""

    system: str
    place: str
    table: str
    schema: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"sqlite:{self.place}" if self.system == SQLITE else self.place

    def means(self, relation: DatabaseRelation) -> bool:
        """Whether this is the address of a table; SQLite does not tell a from A."""
        if self.system == SQLITE:
            return relation.name.encode().lower() == self.table.encode().lower()
        there = relation.schema == self.schema if self.schema else relation.visible
        return there and relation.name == self.table

    def uri(self, *, writing: bool) -> str:
        """The place as the driver calls it; a file that is not there must not come to be by reading."""
        if self.system == SQLITE:
            return f"file:{quote(str(Path(self.place).absolute()))}?mode={'rwc' if writing else 'ro'}"
        waits = {} if "PGCONNECTTIMEOUT" in os.environ else {"connect_timeout": TIMEOUT}
        settings = {"application_name": "sfumato", **waits, **self.settings}
        return f"{self.place}?" + "&".join(f"{key}={quote(value)}" for key, value in settings.items())


@dataclass(frozen=True)
class DatabaseRelation:
    """A table or view; ``key`` is its number, and ``visible`` that its name is enough without a schema."""

    schema: str
    name: str
    kind: str
    key: int = 0
    visible: bool = True

    def __str__(self) -> str:
        return f"{sql_name(self.schema)}.{sql_name(self.name)}"


def is_address(text: str | Path) -> bool:
    """Whether a text is the address of a table in a database and not the name of a file."""
    return _SYSTEM.match(str(text)) is not None


def parse(text: str | Path, *, error: type[DataError] = ReadError) -> Address:
    """Take an address apart, or raise ``error``; one with a password is refused and never shown."""
    place, _, query = str(text).partition("?")
    pairs = [part.partition("=") for part in query.split("&") if part]
    settings = {unquote(key).lower(): unquote(value) for key, _, value in pairs}
    if _PASSWORD.match(str(text)) or not settings.keys().isdisjoint({"password", "sslpassword"}):
        raise error(
            "the address of the database seems to hold a password",
            hint="set the environment variable PGPASSWORD or write it into ~/.pgpass; an @ in a name is %40",
        )
    system, table = place.partition(":")[0].lower(), settings.pop("table", "")
    if not table:
        raise error(f"the address `{place}` names no table", hint=f"write {place}?table=NAME")
    if system == SQLITE:
        path = re.sub("^//(?=/)", "", unquote(place[len("sqlite:") :]))
        if path and path != ":memory:" and not path.startswith("//") and not settings:
            return Address(SQLITE, path, table)
        form = "sqlite:people.db?table=NAME or sqlite:///data/people.db?table=NAME"
    else:
        names = _QUALIFIED.fullmatch(table)
        if names is not None and re.match(r"\w+://", place):
            parts = [(part or "").replace('""', '"') for part in names.groups()]
            schema, name = parts[0] or parts[1], parts[2] or parts[3]
            return Address(POSTGRES, system + place[len(system) :], name, schema, settings)
        form = "postgresql://user@host/database?table=schema.NAME, as text and not as a Path"
    raise error(f"`{place}` is not the address of a table", hint=f"write {form}")


def resolve_in_folder(text: str, folder: Path) -> str:
    """The same address, with a file of SQLite taken from a folder, as the files of a plan are."""
    address = parse(text)
    path = quote(str((folder / address.place).absolute()))
    return f"sqlite:{path}?table={quote(address.table, safe='')}" if address.system == SQLITE else text


def sql_name(name: str) -> str:
    """Write a name as SQL does."""
    return '"' + name.replace('"', '""') + '"'


def name_beside(names: Collection[str]) -> str:
    """A short name that no column has."""
    return next(name for number in count() if (name := f"n{number}") not in names)

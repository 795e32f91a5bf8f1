"""What was done in a session: a tree of plans in SQLite, and what came of each; no cell and no seed."""

from __future__ import annotations

import difflib
import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sfumato.errors import SfumatoError, UnknownNameError
from sfumato.web.working import WORKING_PREFIX

_TABLES = """
create table if not exists session (
    id integer primary key, source text not null, plan_path text not null, at integer, opened text not null);
create table if not exists plan (
    id integer primary key, session integer not null references session, parent integer references plan,
    hash text not null, action text not null, toml text not null, made text not null);
create table if not exists result (
    plan integer not null references plan, name text not null, content text not null,
    primary key (plan, name));
"""
#: The largest number that SQLite knows.
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class PlanVersion:
    """A plan as it was after an action, which is told in words; its parent is the one before."""

    id: int
    parent: int | None
    hash: str
    action: str
    toml: str
    made: str


@dataclass(frozen=True)
class WebSession:
    """A file that was opened, and the plan that is written beside it."""

    id: int
    source: str
    plan_path: str
    opened: str

    @property
    def is_dropped(self) -> bool:
        """Whether the file was dropped on the page."""
        return self.source.startswith(WORKING_PREFIX)

    @property
    def name(self) -> str:
        """The file as its owner knows it: by its path, or by the name that it was dropped with."""
        return self.source.partition("/")[2] if self.is_dropped else self.source


class HistoryError(SfumatoError):
    """The history cannot be read or written."""

    exit_code = 3


class StalePlanError(SfumatoError):
    """A change was asked of a plan that is no longer the present one."""

    exit_code = 1


class PlanHistory:
    """The sessions of a user, each a tree of plans with one that is the present one."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600, exist_ok=True)
        path.chmod(0o600)
        self._path = path
        with self._open() as base:
            base.executescript(_TABLES)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        base = sqlite3.connect(self._path, isolation_level="IMMEDIATE", timeout=10)
        try:
            with base:
                base.execute("pragma foreign_keys = on")
                yield base
        except sqlite3.DatabaseError as error:  # it speaks of the file, never of what is in it
            message = f"What you do cannot be kept in the history of this page: {error}."
            raise HistoryError(message, hint="is there space? nothing was changed") from None
        finally:
            base.close()

    def open_session(self, source: str, plan_path: str) -> int:
        """Begin a session on a file; the same file and plan go on where they were."""
        with self._open() as base:
            found = base.execute(
                "select id from session where source = ? and plan_path = ?", (source, plan_path)
            ).fetchone()
            if found:
                return int(found[0])
            cursor = base.execute(
                "insert into session (source, plan_path, opened) values (?, ?, ?)",
                (source, plan_path, _now()),
            )
            return int(cursor.lastrowid or 0)

    def sessions(self) -> list[WebSession]:
        """All sessions, the newest first."""
        with self._open() as base:
            rows = base.execute("select id, source, plan_path, opened from session order by id desc")
            return [WebSession(*row) for row in rows]

    def session(self, number: int) -> WebSession:
        """One session by its number."""
        found = next((each for each in self.sessions() if each.id == number), None)
        if found is None:
            raise UnknownNameError(f"There is no session {number}.", hint="open the file again")
        return found

    def forget(self, number: int) -> None:
        """Delete a session and all its plans."""
        with self._open() as base:
            own = "select id from plan where session = ?"
            base.execute(f"delete from result where plan in ({own})", (number,))  # noqa: S608 — no value in it
            base.execute("update session set at = null where id = ?", (number,))
            base.execute("delete from plan where session = ?", (number,))
            base.execute("delete from session where id = ?", (number,))

    def add(self, session: int, toml: str, action: str, *, after: int | None = None) -> PlanVersion:
        """Make a plan the present one, as a child of what was; the same plan again adds nothing.

        If it was made of a plan that is no longer the present one (``after``), nothing is changed.
        """
        digest = hashlib.sha256(toml.encode()).hexdigest()
        with self._open() as base:
            base.execute("begin immediate")
            at = _place(base, session)
            if after is not None and at != after:
                raise StalePlanError(
                    "The plan has changed in another window. Nothing was changed here.",
                    hint="reload this page",
                )
            if at is not None and _version(base, at).hash == digest:
                return _version(base, at)
            cursor = base.execute(
                "insert into plan (session, parent, hash, action, toml, made) values (?, ?, ?, ?, ?, ?)",
                (session, at, digest, action, toml, _now()),
            )
            base.execute("update session set at = ? where id = ?", (cursor.lastrowid, session))
            return _version(base, int(cursor.lastrowid or 0))

    def note(self, session: int, action: str) -> PlanVersion:
        """Keep that something was done that leaves the plan as it is; what came of the plan stays known."""
        with self._open() as base:
            at = _place(base, session)
            cursor = base.execute(
                "insert into plan (session, parent, hash, action, toml, made) "
                "select session, id, hash, ?, toml, ? from plan where id = ?",
                (action, _now(), at),
            )
            base.execute(
                "insert into result select ?, name, content from result where plan = ?",
                (cursor.lastrowid, at),
            )
            base.execute("update session set at = ? where id = ?", (cursor.lastrowid, session))
            return _version(base, int(cursor.lastrowid or 0))

    def present(self, session: int) -> PlanVersion | None:
        """The present plan; None before the first."""
        with self._open() as base:
            at = _place(base, session)
            return None if at is None else _version(base, at)

    def versions(self, session: int) -> list[PlanVersion]:
        """All plans of a session, in the order in which they were made."""
        with self._open() as base:
            rows = base.execute("select id from plan where session = ? order by id", (session,)).fetchall()
            return [_version(base, int(row[0])) for row in rows]

    def version(self, session: int, number: int) -> PlanVersion:
        """One plan of a session by its number."""
        found = next((each for each in self.versions(session) if each.id == number), None)
        if found is None:
            raise UnknownNameError(f"There is no plan {number} in this session.")
        return found

    def line(self, session: int, version: PlanVersion) -> list[PlanVersion]:
        """A plan and all before it, back to the first."""
        known, line = {each.id: each for each in self.versions(session)}, [version]
        while line[-1].parent is not None:
            line.append(known[line[-1].parent])
        return line

    def go_to(self, session: int, version: int) -> PlanVersion:
        """Make an earlier, later or other plan the present one; what is done next branches off there."""
        with self._open() as base:
            own = base.execute("select id from plan where session = ?", (session,)).fetchall()
            if (version,) not in own:
                raise UnknownNameError("There is no such plan in this session.")
            base.execute("update session set at = ? where id = ?", (version, session))
            return _version(base, version)

    def undo(self, session: int) -> PlanVersion | None:
        """Go to the parent of the present plan; None where there is none."""
        now = self.present(session)
        return None if now is None or now.parent is None else self.go_to(session, now.parent)

    def redo(self, session: int) -> PlanVersion | None:
        """Go to the newest child of the present plan; None where there is none."""
        now = self.present(session)
        children = [each for each in self.versions(session) if now and each.parent == now.id]
        return self.go_to(session, children[-1].id) if children else None

    def keep_result(self, version: int, name: str, content: Mapping[str, Any]) -> None:
        """Keep what came of a plan."""
        with self._open() as base:
            base.execute(
                "insert or replace into result values (?, ?, ?)", (version, name, json.dumps(content))
            )

    def results(self, version: int) -> dict[str, Any]:
        """What came of a plan, by name."""
        with self._open() as base:
            rows = base.execute("select name, content from result where plan = ?", (version,)).fetchall()
            return {name: json.loads(content) for name, content in rows}

    def forget_result(self, version: int, name: str) -> None:
        """Forget what came of a plan, since it would be another today."""
        with self._open() as base:
            base.execute("delete from result where plan = ? and name = ?", (version, name))

    def difference(self, session: int, one: int, other: int) -> list[str]:
        """How two plans differ, line by line."""
        texts = {each.id: each.toml.splitlines() for each in self.versions(session)}
        if one not in texts or other not in texts:
            raise UnknownNameError("There is no such plan in this session.")
        return list(
            difflib.unified_diff(texts[one], texts[other], f"plan {one}", f"plan {other}", lineterm="", n=1)
        )


def _place(base: sqlite3.Connection, session: int) -> int | None:
    known = session <= _LARGEST
    found = known and base.execute("select at from session where id = ?", (session,)).fetchone()
    if not found:
        raise UnknownNameError(f"There is no session {session}.", hint="open the file again")
    return None if found[0] is None else int(found[0])


def _version(base: sqlite3.Connection, number: int) -> PlanVersion:
    columns = "id, parent, hash, action, toml, made"
    return PlanVersion(*base.execute(f"select {columns} from plan where id = ?", (number,)).fetchone())  # noqa: S608


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")

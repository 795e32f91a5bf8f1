"""What the server holds: the folder it serves, plans as text, a desk for each open file, and the jobs."""

from __future__ import annotations

import asyncio
import contextlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sfumato.errors import SfumatoError, UnknownNameError
from sfumato.web.history import PlanHistory, PlanVersion
from sfumato.web.workers import JobQueue, Worker, WorkerError
from sfumato.web.working import WorkingFolder, remove_leftovers

#: A name with settings, and nothing that a path could be made of.
_BUILTIN = re.compile(r"builtin:[\w-]+(\?[\w=&.,-]*)?")

#: Keys of a plan whose values are files.
_PATHS = frozenset({"path", "pseudonym_key", "earlier", "record"})


def read_plan_text(place: Path) -> str:
    """The text of a plan, which someone may have edited with any program."""
    return place.read_bytes().decode("utf-8-sig", errors="replace")


def _parts_of(toml: str) -> dict[str, Any]:
    """What a plan says; nothing where it is no TOML."""
    try:
        return tomllib.loads(toml)
    except (ValueError, RecursionError):
        return {}


def _paths_in(part: Any, name: str = "") -> Iterator[str]:
    """The files that a plan names."""
    if isinstance(part, dict | list):
        for key, value in part.items() if isinstance(part, dict) else ((name, each) for each in part):
            yield from _paths_in(value, key)
    elif name in _PATHS and isinstance(part, str):
        yield part.replace("\0", "")


class ServerState:
    """The folder that is served, the history, a desk for each open file, and the jobs."""

    def __init__(self, folder: Path, history: PlanHistory, *, keep: bool = False) -> None:
        self.folder, self.history = folder.resolve(), history
        self._working = None if keep else WorkingFolder(self.folder)
        remove_leftovers(self.folder)
        self._forget_deleted()
        self.jobs = JobQueue(str(self.folder))
        self.drawn: dict[
            tuple[int, str], Any
        ] = {}  # pictures show quantiles of cells: they are never written down
        self._desks: dict[int, Worker] = {}
        self._rehearsal: asyncio.Task[None] | None = None

    def desk(self, session: int) -> Worker:
        """The process that keeps the table of a session; one at a time."""
        if session not in self._desks:
            self.close_desks()
            self._desks[session] = Worker(str(self.folder))
        return self._desks[session]

    def rehearse(self, source: str, reading: Mapping[str, str]) -> None:
        """Have the kernels of a first answer compiled while the questions are read, once.

        It is done in a process of its own: the desk would take more memory for it, and answer later.
        """
        if self._rehearsal is None and not source.startswith("builtin:"):
            self._rehearsal = asyncio.create_task(self._rehearse(source, reading))

    async def _rehearse(self, source: str, reading: Mapping[str, str]) -> None:
        worker = Worker(str(self.folder))
        try:
            with contextlib.suppress(WorkerError):  # whoever answers will say what is wrong
                await worker.call("rehearse", source=source, reading=reading)
        finally:
            worker.close()

    @property
    def keeps(self) -> bool:
        """Whether files that are dropped on the page stay in the folder."""
        return self._working is None

    def drop_folder(self) -> Path:
        """Where a file goes that is dropped on the page: the folder itself if such files are kept."""
        return self.folder if self._working is None else self._working.open()

    def close(self) -> None:
        """End all processes, and delete what was dropped on the page."""
        self.jobs.close()
        if self._rehearsal is not None:
            self._rehearsal.cancel()
        self.close_desks()
        if self._working is not None:
            self._working.remove()
            self._forget_deleted()

    def _forget_deleted(self) -> None:
        """Forget the sessions on files that were dropped, and are deleted."""
        for each in self.history.sessions():
            if each.is_dropped and not (self.folder / each.source).exists():
                self.history.forget(each.id)

    def close_desks(self) -> None:
        """End the processes that keep tables."""
        for each in self._desks.values():
            each.close()
        self._desks.clear()

    def locate(self, text: str) -> str:
        """A path below the folder that is served, links resolved; a built-in data set as it is."""
        if text.startswith("builtin:"):
            if not _BUILTIN.fullmatch(text):
                raise WorkerError("There is no built-in data set of this name.", hint="try builtin:fair")
            return text
        try:
            place = (self.folder / text.replace("\0", "")).resolve()
        except RuntimeError:  # links that lead to each other
            raise WorkerError("This file cannot be reached: its links form a circle.") from None
        if not place.is_relative_to(self.folder):
            raise WorkerError(
                "This file lies outside the folder that is served.", hint="start `sfumato web` there"
            )
        if not place.is_file():
            raise WorkerError(f"File not found: {place.relative_to(self.folder)}")
        return str(place.relative_to(self.folder))

    def files(self) -> list[str]:
        """Files that may be opened: those of the folder itself, data before plans."""
        from sfumato.io.formats import FORMATS

        found = [
            each.name for each in self.folder.iterdir() if each.is_file() and not each.name.startswith(".")
        ]
        return sorted(
            name for name in found if Path(name).suffix.lower() in FORMATS or name.endswith(".toml")
        )

    def require_plan(self, session: int) -> PlanVersion:
        """The present plan of a session, with an edit of its file from outside taken in."""
        own, version = self.history.session(session), self.history.present(session)
        if version is None:
            raise UnknownNameError("This session has no plan yet.", hint="answer the questions first")
        place = self.folder / own.plan_path
        if place.is_file() and (text := read_plan_text(place)) != version.toml:
            version = self.history.add(session, text, "edited outside of this page")
        self._require_inside(version.toml)
        self._forget_if_changed(version)
        return version

    def _require_inside(self, toml: str) -> None:
        """Refuse a plan that names a file outside of the folder, or a database: it may be anybody's."""
        for path in _paths_in(_parts_of(toml)):
            place = (self.folder / path).resolve()
            if not path.startswith("builtin:") and ("://" in path or not place.is_relative_to(self.folder)):
                raise WorkerError(
                    "The plan names a file outside of the folder that is served.",
                    hint="start `sfumato web` in a folder that holds all its files, or use `sfumato run`",
                )

    def _forget_if_changed(self, version: PlanVersion) -> None:
        """Forget the scores of a plan whose file is no longer the one that they were made of."""
        path = next(_paths_in(_parts_of(version.toml).get("data")), "")
        place = self.folder / path
        if not path or not place.is_file():
            return
        now = {"changed": place.stat().st_mtime_ns, "bytes": place.stat().st_size}
        known = self.history.results(version.id).get("file")
        if known == now:
            return
        self.history.keep_result(version.id, "file", now)
        if known is not None:
            self.history.forget_result(version.id, "score")
            self.drawn = {key: each for key, each in self.drawn.items() if key[0] != version.id}

    def keep(self, session: int, toml: str, action: str, *, after: int | None = None) -> PlanVersion:
        """Make a plan the present one, and write it to its file (see `PlanHistory.add`)."""
        before = self.history.present(session)
        version = self.history.add(session, toml, action, after=after)
        try:
            self.write_plan(session, version)
        except (OSError, SfumatoError):  # a full disk: the file is as it was, and so is the plan
            if before is not None:
                self.history.go_to(session, before.id)
            raise
        return version

    def write_plan(self, session: int, version: PlanVersion) -> None:
        """Write a plan to the file of its session, whole or not at all."""
        from sfumato.io import write_text

        place = self.folder / self.history.session(session).plan_path
        write_text(place, version.toml, originals=[], overwrite=True)

"""What the server holds: the folder it serves, plans as text, a desk for each open file, and the jobs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from sfumato.errors import UnknownNameError
from sfumato.web.history import PlanHistory, PlanVersion
from sfumato.web.workers import JobQueue, Worker, WorkerError

#: A name with settings, and nothing that a path could be made of.
_BUILTIN = re.compile(r"builtin:[\w-]+(\?[\w=&.,-]*)?")


def read_plan_text(place: Path) -> str:
    """The text of a plan, which someone may have edited with any program."""
    return place.read_bytes().decode("utf-8-sig", errors="replace")


def _data_path(toml: str) -> str:
    """The file of a plan; none where the plan is at fault."""
    try:
        path = tomllib.loads(toml)["data"]["path"]
    except (tomllib.TOMLDecodeError, KeyError, TypeError):
        return ""
    return path.replace("\0", "") if isinstance(path, str) else ""


class ServerState:
    """The folder that is served, the history, a desk for each open file, and the jobs."""

    def __init__(self, folder: Path, history: PlanHistory) -> None:
        self.folder, self.history = folder.resolve(), history
        self.jobs = JobQueue(str(self.folder))
        self.drawn: dict[
            tuple[int, str], Any
        ] = {}  # pictures show quantiles of cells: they are never written down
        self._desks: dict[int, Worker] = {}

    def desk(self, session: int) -> Worker:
        """The process that keeps the table of a session; one at a time."""
        if session not in self._desks:
            self.close_desks()
            self._desks[session] = Worker(str(self.folder))
        return self._desks[session]

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
        self._forget_if_changed(version)
        return version

    def _forget_if_changed(self, version: PlanVersion) -> None:
        """Forget the scores of a plan whose file is no longer the one that they were made of."""
        path = _data_path(version.toml)
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
        version = self.history.add(session, toml, action, after=after)
        self.write_plan(session, version)
        return version

    def write_plan(self, session: int, version: PlanVersion) -> None:
        """Write a plan to the file of its session, whole or not at all."""
        from sfumato.io import write_text

        place = self.folder / self.history.session(session).plan_path
        write_text(place, version.toml, originals=[], overwrite=True)

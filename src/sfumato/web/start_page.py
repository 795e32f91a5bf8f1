"""Three questions: what could someone know, who gets it, how long may the search take."""

from __future__ import annotations

import asyncio
import math
import secrets
import shutil
from pathlib import Path
from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response

from sfumato.web.answers import go, show
from sfumato.web.state import ServerState, read_plan_text
from sfumato.web.workers import Job, WorkerError

#: Fields of the questions: two for each column.
_MAX_FIELDS, _MAX_MINUTES = 20_000, 600
_READING = ("delimiter", "decimal", "encoding", "sheet")


async def start(state: ServerState, request: Request) -> Response:
    """Which file? The sessions that there were, and the files of the folder."""
    sessions = [vars(each) for each in state.history.sessions()]
    content = {"sessions": sessions, "files": state.files(), "folder": state.folder.name}
    return show(request, "start", content)


async def open_file(state: ServerState, request: Request) -> Response:
    """Begin a session on a file."""
    async with request.form() as form:
        name = state.locate(str(form.get("source", "")).strip())
    is_plan = name.endswith(".toml")
    plan_path = name if is_plan else _free_plan(state, name)
    session = state.history.open_session(name, plan_path)
    if is_plan:
        text = read_plan_text(state.folder / name)
        state.history.add(session, text, "opened the plan")
        return go(request, f"/desk/{session}")
    return go(request, f"/questions/{session}")


def _free_plan(state: ServerState, source: str) -> str:
    """Where the plan of a file is written: the plan of its session, or a name that is free."""
    known = [each.plan_path for each in state.history.sessions() if each.source == source]
    if known:
        return known[0]
    stem = Path(source).stem if not source.startswith("builtin:") else source[8:].partition("?")[0]
    names = [f"{stem}-plan.toml", *(f"{stem}-plan-{number}.toml" for number in range(2, 1000))]
    return next(name for name in names if not (state.folder / name).exists())


async def upload(state: ServerState, request: Request) -> Response:
    """Take a file that was dropped on the page into the folder, if its name is free."""
    async with request.form(max_files=1) as form:
        given = form.get("file")
        if not isinstance(given, UploadFile) or not given.filename:
            raise WorkerError("No file came in.", hint="choose a file first")
        place = state.folder / Path(given.filename.replace("\0", "")).name
        if place.exists():
            raise WorkerError(
                f"There is a file `{place.name}` already.", hint="rename yours, or open that one"
            )
        await asyncio.to_thread(_store, given.file, place)
    session = state.history.open_session(place.name, _free_plan(state, place.name))
    return go(request, f"/questions/{session}")


def _store(file: Any, place: Path) -> None:
    partial = place.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with partial.open("xb") as target:
            shutil.copyfileobj(file, target, 1 << 20)
        partial.rename(place)
    finally:
        partial.unlink(missing_ok=True)


async def questions(state: ServerState, request: Request) -> Response:
    """Ask what someone could know, who gets it, and how long the search may take."""
    session = request.path_params["session"]
    own = state.history.session(session)
    reading = {name: value for name, value in request.query_params.items() if name in _READING and value}
    found = await state.desk(session).call("look_into", source=own.source, reading=reading)
    content = {"session": session, "source": own.source, "reading": reading, **found}
    return show(request, "questions", content)


async def answer_questions(state: ServerState, request: Request) -> Response:
    """Make a release of the answers, or a plan to go on with at the desk."""
    session = request.path_params["session"]
    own = state.history.session(session)
    async with request.form(max_fields=_MAX_FIELDS) as form:
        texts = {name: value for name, value in form.items() if isinstance(value, str)}
        matters = [str(each) for each in form.getlist("matters")]
    roles = {name[5:]: value for name, value in texts.items() if name.startswith("role:") and value}
    reading = {name: texts[name] for name in _READING if texts.get(name)}
    asked = {
        "source": own.source, "roles": roles, "profile": texts.get("profile") or None, "reading": reading,
        "matters": matters,
    }  # fmt: skip
    to_desk, minutes = texts.get("then") == "desk", _minutes(texts.get("minutes") or "2")
    made = await state.desk(session).call("draft", request=asked, with_step=to_desk)
    version = state.keep(session, made["toml"], "answered the questions")
    if to_desk:
        return go(request, f"/desk/{session}")
    folder = free_folder(state, own.source)
    job = state.jobs.add(
        session, "make_release", "Make a release", lambda done: keep_release(state, done, version.id),
        request=asked, minutes=minutes, folder=folder,
    )  # fmt: skip
    return go(request, f"/jobs/{job.id}")


def _minutes(text: str) -> float:
    """How long the search may take."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found <= _MAX_MINUTES:
        raise WorkerError(f"Minutes must be a number above 0, at most {_MAX_MINUTES}.", hint="2 is usual")
    return found


def free_folder(state: ServerState, source: str) -> str:
    """A name for the folder of a release that nothing has yet."""
    stem = Path(source.removeprefix("builtin:").partition("?")[0]).stem or "data"
    names = [f"{stem}-release", *(f"{stem}-release-{number}" for number in range(2, 1000))]
    return next(name for name in names if not (state.folder / name).exists())


def keep_release(state: ServerState, job: Job, version: int) -> None:
    """Keep what was released, and the plan by which it was."""
    made = state.keep(job.session, job.content["toml"], f"released as {job.content['folder']}")
    content = {name: job.content[name] for name in ("folder", "files", "sentences")}
    for number in {version, made.id}:
        state.history.keep_result(number, "release", content)

"""Three questions: what could someone know, who gets it, how long may the search take."""

from __future__ import annotations

import asyncio
import json
import math
import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response

from sfumato.web.answers import MAX_FIELDS, go, show
from sfumato.web.state import ServerState, read_plan_text
from sfumato.web.workers import Job, WorkerError

_MAX_MINUTES = 600
#: Columns that have a row of their own; of a wider table the others are asked about together.
_MAX_ROWS = 200
_READING = ("delimiter", "decimal", "encoding", "sheet")


async def start(state: ServerState, request: Request) -> Response:
    """Which file? The sessions that there were, and the files of the folder."""
    sessions = [{**vars(each), "name": each.name} for each in state.history.sessions()]
    content = {"sessions": sessions, "files": state.files(), "folder": state.folder.name, "kept": state.keeps}
    return show(request, "start", content)


async def open_file(state: ServerState, request: Request) -> Response:
    """Begin a session on a file."""
    async with request.form() as form:
        source = str(form.get("source", "")).strip()
    return go(request, begin_session(state, source))


def begin_session(state: ServerState, source: str) -> str:
    """Begin a session on a file below the folder; gives the page on which it goes on."""
    name = state.locate(source)
    is_plan = name.endswith(".toml")
    plan_path = name if is_plan else _free_plan(state, name)
    session = state.history.open_session(name, plan_path)
    if is_plan:
        state.history.add(session, read_plan_text(state.folder / name), "opened the plan")
    return f"/{'desk' if is_plan else 'questions'}/{session}"


def _free_plan(state: ServerState, source: str) -> str:
    """Where the plan of a file is written: the plan of its session, or a name that is free."""
    known = [each.plan_path for each in state.history.sessions() if each.source == source]
    if known:
        return known[0]
    stem = Path(source).stem if not source.startswith("builtin:") else source[8:].partition("?")[0]
    names = [f"{stem}-plan.toml", *(f"{stem}-plan-{number}.toml" for number in range(2, 1000))]
    return next(name for name in names if not (state.folder / name).exists())


async def upload(state: ServerState, request: Request) -> Response:
    """Take a file that was dropped on the page, if its name is free."""
    async with request.form(max_files=1) as form:
        given = form.get("file")
        if not isinstance(given, UploadFile) or not given.filename:
            raise WorkerError("No file came in.", hint="choose a file first")
        place = state.drop_folder() / Path(given.filename.replace("\0", "")).name
        if place.exists():
            raise WorkerError(
                f"There is a file `{place.name}` already.", hint="rename yours, or open that one"
            )
        await asyncio.to_thread(_store, given.file, place)
    return go(request, begin_session(state, str(place.relative_to(state.folder))))


def _store(file: Any, place: Path) -> None:
    partial = place.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with partial.open("xb") as target:
            partial.chmod(0o600)
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
    state.rehearse(own.source, reading)
    rows, groups = split_columns(found["overview"]["columns"])
    content = {
        "session": session, "source": own.name, "reading": reading, **found, "rows": rows, "groups": groups,
    }  # fmt: skip
    return show(request, "questions", content)


def split_columns(columns: Sequence[Mapping[str, Any]]) -> tuple[list[Any], list[dict[str, Any]]]:
    """Columns that have a row of their own, and of a wide table the others, by the role that is proposed.

    Those that need a decision or say something of people come first.
    """
    by_need = sorted(columns, key=lambda each: (bool(each["role"]), each["role"] == "other"))
    first = {each["name"] for each in by_need[:_MAX_ROWS]}
    others: dict[str, list[str]] = {}
    for each in columns:
        if each["name"] not in first:
            others.setdefault(each["role"] or "", []).append(each["name"])
    groups = [{"role": role, "names": names, "json": json.dumps(names)} for role, names in others.items()]
    return [each for each in columns if each["name"] in first], groups


async def answer_questions(state: ServerState, request: Request) -> Response:
    """Make a release of the answers, or a plan to go on with at the desk."""
    session = request.path_params["session"]
    own = state.history.session(session)
    async with request.form(max_fields=MAX_FIELDS) as form:
        texts = {name: value for name, value in form.items() if isinstance(value, str)}
        matters = [str(each) for each in form.getlist("matters")]
        groups = zip(form.getlist("group"), form.getlist("group-role"), strict=False)
    roles = {name: str(role) for names, role in groups if role for name in _names(str(names))}
    roles |= {name[5:]: value for name, value in texts.items() if name.startswith("role:") and value}
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


def _names(text: str) -> list[str]:
    """The columns of a group."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list):
        raise WorkerError("The columns of a group were not understood.", hint="reload the questions")
    return [str(each) for each in found]


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
    content = {name: job.content[name] for name in ("folder", "files", "sentences", "override")}
    for number in {version, made.id}:
        state.history.keep_result(number, "release", content)

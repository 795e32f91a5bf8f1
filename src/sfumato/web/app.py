"""The pages: what each shows is one dictionary, which is its JSON twin too; what they do is asked of workers."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from starlette.applications import Starlette
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from sfumato.errors import SfumatoError, UnknownNameError
from sfumato.version import __version__
from sfumato.web.history import PlanHistory, PlanVersion
from sfumato.web.workers import Job, JobQueue, Worker, WorkerError

_HERE = Path(__file__).parent
_STATIC = (_HERE / "static", _HERE.parent / "report" / "static")
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
#: Seconds after which a stream says that it is still there.
_HEARTBEAT_SECONDS = 15.0
_READING = ("delimiter", "decimal", "encoding", "sheet")
Handler = Callable[["Pages", Request], Awaitable[Response]]


class Pages:
    """What the server holds: the folder it serves, the history, a desk for each open file, the jobs."""

    def __init__(self, folder: Path, history: PlanHistory) -> None:
        self.folder, self.history = folder.resolve(), history
        self.jobs = JobQueue(str(self.folder))
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
            return text
        place = (self.folder / text).resolve()
        if not place.is_relative_to(self.folder):
            raise WorkerError("This file lies outside the folder that is served.", hint="start `sfumato web` there")
        if not place.is_file():
            raise WorkerError(f"File not found: {place.relative_to(self.folder)}")
        return str(place.relative_to(self.folder))

    def files(self) -> list[str]:
        """Files that may be opened: those of the folder itself, data before plans."""
        from sfumato.io.formats import FORMATS

        found = [each.name for each in self.folder.iterdir() if each.is_file() and not each.name.startswith(".")]
        return sorted(name for name in found if Path(name).suffix.lower() in FORMATS or name.endswith(".toml"))

    def require_plan(self, session: int) -> PlanVersion:
        """The present plan of a session, with an edit of its file from outside taken in."""
        own, version = self.history.session(session), self.history.present(session)
        if version is None:
            raise UnknownNameError("This session has no plan yet.", hint="answer the questions first")
        place = self.folder / own.plan_path
        if place.is_file() and (text := place.read_text(encoding="utf-8")) != version.toml:
            version = self.history.add(session, text, "edited outside of this page")
        return version

    def keep(self, session: int, toml: str, action: str) -> PlanVersion:
        """Make a plan the present one, and write it to its file."""
        version = self.history.add(session, toml, action)
        self.write_plan(session, version)
        return version

    def write_plan(self, session: int, version: PlanVersion) -> None:
        """Write a plan to the file of its session, whole or not at all."""
        from sfumato.io import write_text

        place = self.folder / self.history.session(session).plan_path
        write_text(place, version.toml, originals=[], overwrite=True)


# How a page is answered -----------------------------------------------------------------------------------


@cache
def _environment() -> jinja2.Environment:
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    found.globals.update(static=static_address, version=__version__)
    found.filters["figure"] = _figure
    found.policies["json.dumps_kwargs"] = {"sort_keys": False}
    return found


def _figure(value: Any) -> str:
    """A number in at most four digits that count."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None else str(value)
    return f"{value:,}" if isinstance(value, int) or value.is_integer() else f"{value:.4g}"


def wants_json(request: Request) -> bool:
    """Whether the JSON twin is asked for."""
    return "application/json" in request.headers.get("accept", "")


def show(request: Request, template: str, content: Mapping[str, Any], status: int = 200) -> Response:
    """A page, or the same as JSON."""
    if wants_json(request):
        return JSONResponse(dict(content), status)
    page = _environment().get_template(f"{template}.html.j2")
    return HTMLResponse(page.render(**content), status)


def _go(request: Request, address: str) -> Response:
    """Lead on after something was done: a redirect that works without scripts, or a word to htmx."""
    if request.headers.get("hx-request"):
        return Response(status_code=204, headers={"HX-Redirect": address})
    if wants_json(request):
        return JSONResponse({"next": address})
    return RedirectResponse(address, 303)


def _handled(handler: Handler) -> Handler:
    """A handler whose errors are sentences."""

    async def answer(pages: Pages, request: Request) -> Response:
        try:
            return await handler(pages, request)
        except SfumatoError as error:
            status = 404 if isinstance(error, UnknownNameError) else 422
            content = {"sentence": error.message, "hint": error.hint, "title": "That did not work"}
            return show(request, "error", content, status)

    return answer


def _texts(form: FormData, *names: str) -> dict[str, str]:
    """The texts of a form that were filled in."""
    return {name: value for name in names if isinstance(value := form.get(name), str) and value.strip()}


# Start ----------------------------------------------------------------------------------------------------


async def start(pages: Pages, request: Request) -> Response:
    """Which file? The sessions that there were, and the files of the folder."""
    sessions = [vars(each) for each in pages.history.sessions()]
    content = {"sessions": sessions, "files": pages.files(), "folder": pages.folder.name}
    return show(request, "start", content)


async def open_file(pages: Pages, request: Request) -> Response:
    """Begin a session on a file."""
    async with request.form() as form:
        name = pages.locate(str(form.get("source", "")).strip())
    is_plan = name.endswith(".toml")
    plan_path = name if is_plan else _free_plan(pages, name)
    session = pages.history.open_session(name, plan_path)
    if is_plan:
        text = (pages.folder / name).read_text(encoding="utf-8")
        pages.history.add(session, text, "opened the plan")
        return _go(request, f"/desk/{session}")
    return _go(request, f"/questions/{session}")


def _free_plan(pages: Pages, source: str) -> str:
    """Where the plan of a file is written: the plan of its session, or a name that is free."""
    known = [each.plan_path for each in pages.history.sessions() if each.source == source]
    if known:
        return known[0]
    stem = Path(source).stem if not source.startswith("builtin:") else source[8:].partition("?")[0]
    names = [f"{stem}-plan.toml", *(f"{stem}-plan-{number}.toml" for number in range(2, 1000))]
    return next(name for name in names if not (pages.folder / name).exists())


async def upload(pages: Pages, request: Request) -> Response:
    """Take a file that was dropped on the page into the folder, if its name is free."""
    async with request.form(max_files=1) as form:
        given = form.get("file")
        if not isinstance(given, UploadFile) or not given.filename:
            raise WorkerError("No file came in.", hint="choose a file first")
        place = pages.folder / Path(given.filename).name
        if place.exists():
            raise WorkerError(f"There is a file `{place.name}` already.", hint="rename yours, or open that one")
        await asyncio.to_thread(_store, given.file, place)
    session = pages.history.open_session(place.name, _free_plan(pages, place.name))
    return _go(request, f"/questions/{session}")


def _store(file: Any, place: Path) -> None:
    partial = place.with_name(f".{place.name}.part")
    with partial.open("xb") as target:
        while chunk := file.read(1 << 20):
            target.write(chunk)
    partial.rename(place)


async def questions(pages: Pages, request: Request) -> Response:
    """What could someone know, who gets it, how long may it search?"""
    session = request.path_params["session"]
    own = pages.history.session(session)
    reading = {name: value for name, value in request.query_params.items() if name in _READING and value}
    found = await pages.desk(session).call("look_into", source=own.source, reading=reading)
    content = {"session": session, "source": own.source, "reading": reading, **found}
    return show(request, "questions", content)


async def answer_questions(pages: Pages, request: Request) -> Response:
    """Make a release of the answers, or a plan to go on with at the desk."""
    session = request.path_params["session"]
    own = pages.history.session(session)
    async with request.form() as form:
        texts = {name: value for name, value in form.items() if isinstance(value, str)}
        matters = [str(each) for each in form.getlist("matters")]
    roles = {name[5:]: value for name, value in texts.items() if name.startswith("role:") and value}
    reading = {name: texts[name] for name in _READING if texts.get(name)}
    asked = {
        "source": own.source, "roles": roles, "profile": texts.get("profile") or None, "reading": reading,
        "matters": matters,
    }  # fmt: skip
    to_desk = texts.get("then") == "desk"
    made = await pages.desk(session).call("draft", request=asked, with_step=to_desk)
    version = pages.keep(session, made["toml"], "answered the questions")
    if to_desk:
        return _go(request, f"/desk/{session}")
    minutes = min(max(float(texts.get("minutes") or 2), 0.1), 600.0)
    folder = _free_folder(pages, own.source)
    job = pages.jobs.add(
        session, "make_release", "Make a release", lambda done: _keep_release(pages, done, version.id),
        request=asked, minutes=minutes, folder=folder,
    )  # fmt: skip
    return _go(request, f"/jobs/{job.id}")


def _free_folder(pages: Pages, source: str) -> str:
    stem = Path(source.removeprefix("builtin:").partition("?")[0]).stem or "data"
    names = [f"{stem}-release", *(f"{stem}-release-{number}" for number in range(2, 1000))]
    return next(name for name in names if not (pages.folder / name).exists())


def _keep_release(pages: Pages, job: Job, version: int) -> None:
    """Keep what was released, and the plan by which it was."""
    made = pages.keep(job.session, job.content["toml"], f"released as {job.content['folder']}")
    content = {name: job.content[name] for name in ("folder", "files", "sentences")}
    for number in {version, made.id}:
        pages.history.keep_result(number, "release", content)


# Desk -----------------------------------------------------------------------------------------------------


async def desk(pages: Pages, request: Request) -> Response:
    """The plan as it is now: its requirements, columns, steps, what came of it, and what was done."""
    session = request.path_params["session"]
    version, own = pages.require_plan(session), pages.history.session(session)
    worker = pages.desk(session)
    results = pages.history.results(version.id)
    if "score" not in results:
        results["score"] = await worker.call("score", toml=version.toml)
        pages.history.keep_result(version.id, "score", results["score"])
    parts = await worker.call("recipe", toml=version.toml)
    versions = [
        {"id": each.id, "parent": each.parent, "action": each.action, "made": each.made}
        for each in pages.history.versions(session)
    ]
    jobs = [each.to_dict() for each in pages.jobs.jobs.values() if each.session == session]
    content = {
        "session": session, "source": own.source, "plan_path": own.plan_path, "version_id": version.id,
        "results": results, "versions": versions, "jobs": jobs, **parts,
    }  # fmt: skip
    return show(request, "desk", content)


async def change_plan(pages: Pages, request: Request) -> Response:
    """Change one thing of the plan: a step, a role, the profile."""
    session = request.path_params["session"]
    version = pages.require_plan(session)
    async with request.form() as form:
        values: dict[str, Any] = {name: value for name, value in form.items() if isinstance(value, str)}
        if "columns" in form:
            values["columns"] = [str(each) for each in form.getlist("columns")]
    if values.pop("version", str(version.id)) != str(version.id):
        raise WorkerError(
            "The plan has changed in another window. Nothing was changed here.", hint="reload this page"
        )
    action = values.pop("action", "")
    made = await pages.desk(session).call("edit", toml=version.toml, action=action, values=values)
    pages.keep(session, made["toml"], made["action"])
    return _go(request, f"/desk/{session}")


async def move(pages: Pages, request: Request) -> Response:
    """Undo, redo, or go to any plan of the session."""
    session = request.path_params["session"]
    async with request.form() as form:
        to = str(form.get("to", ""))
    moves = {"undo": pages.history.undo, "redo": pages.history.redo}
    version = moves[to](session) if to in moves else pages.history.go_to(session, _as_int(to))
    if version is not None:
        pages.write_plan(session, version)
    return _go(request, f"/desk/{session}")


def _as_int(text: str) -> int:
    if not text.isdecimal():
        raise UnknownNameError("There is no such plan in this session.")
    return int(text)


async def difference(pages: Pages, request: Request) -> Response:
    """How two plans of a session differ."""
    session, query = request.path_params["session"], request.query_params
    one, other = _as_int(query.get("from", "")), _as_int(query.get("to", ""))
    lines = pages.history.difference(session, one, other)
    return show(request, "difference", {"session": session, "from": one, "to": other, "lines": lines})


async def explain(pages: Pages, request: Request) -> Response:
    """What a measure means."""
    session, name = request.path_params["session"], request.path_params["measure"]
    return show(
        request, "explain", await pages.desk(session).call("explain_measure", name=name) | {"session": session}
    )


async def begin_job(pages: Pages, request: Request) -> Response:
    """Put a long work on the present plan in line."""
    session, kind = request.path_params["session"], request.path_params["kind"]
    version, own = pages.require_plan(session), pages.history.session(session)
    async with request.form() as form:
        texts = _texts(form, "override", "folder")
        methods = [str(each) for each in form.getlist("methods")]

    def keep(name: str) -> Callable[[Job], None]:
        return lambda job: pages.history.keep_result(version.id, name, job.content)

    if kind == "compare":
        job = pages.jobs.add(
            session, "compare_methods", "Compare methods at equal risk", keep("comparison"),
            toml=version.toml, methods=methods,
        )  # fmt: skip
    elif kind == "pictures":
        job = pages.jobs.add(session, "pictures", "Measure and draw", keep("pictures"), toml=version.toml)
    elif kind == "release":
        job = pages.jobs.add(
            session, "carry_out_plan", "Make the release", lambda done: _keep_release(pages, done, version.id),
            toml=version.toml, folder=_free_folder(pages, own.source), override=texts.get("override", ""),
        )  # fmt: skip
    elif kind == "verify":
        release = pages.history.results(version.id).get("release")
        if release is None:
            raise WorkerError("There is no release of this plan yet.", hint="make it first")
        job = pages.jobs.add(
            session, "verify_folder", "Verify the release", keep("verification"), folder=release["folder"]
        )
    else:
        raise UnknownNameError(f"There is no job `{kind}`.")
    return _go(request, f"/jobs/{job.id}")


# Release --------------------------------------------------------------------------------------------------


async def release(pages: Pages, request: Request) -> Response:
    """May it leave? What blocks, what was written, and the session as a plan, Python and console lines."""
    session = request.path_params["session"]
    version, own = pages.require_plan(session), pages.history.session(session)
    results = pages.history.results(version.id)
    content = {
        "session": session, "source": own.source, "plan_path": own.plan_path, "version_id": version.id,
        "results": {name: results[name] for name in ("score", "release", "verification") if name in results},
        "toml": version.toml,
        "console": [f"sfumato release {own.plan_path}"],
        "python": f'import sfumato\n\nreleased = sfumato.release("{own.plan_path}")\nreleased.write("release")',
    }  # fmt: skip
    return show(request, "release", content)


async def released_page(pages: Pages, request: Request) -> Response:
    """The report of a release, internal or public, as it lies in its folder."""
    session, form = request.path_params["session"], request.path_params["form"]
    results = pages.history.results(pages.require_plan(session).id).get("release")
    if results is None:
        raise UnknownNameError("There is no release of this plan yet.")
    name = {"internal": "private/report.html", "public": "report.html"}.get(form, "")
    place = (pages.folder / results["folder"] / name).resolve()
    if not name or not place.is_relative_to(pages.folder) or not place.is_file():
        raise UnknownNameError("There is no such report.")
    text = place.read_text(encoding="utf-8")
    policy = text.partition('Content-Security-Policy" content="')[2].partition('"')[0]
    headers = {"content-security-policy": policy.replace("&#39;", "'")}  # that of the report itself, which is stricter
    return HTMLResponse(text, headers=headers)


# Jobs -----------------------------------------------------------------------------------------------------


def _job(pages: Pages, request: Request) -> Job:
    job = pages.jobs.jobs.get(request.path_params["job"])
    if job is None:
        raise UnknownNameError("There is no such job.", hint="the server may have been started again")
    return job


async def job_page(pages: Pages, request: Request) -> Response:
    """How far a job has come."""
    job = _job(pages, request)
    return show(request, "job", {"job": job.to_dict(), "next": _after(job)})


def _after(job: Job) -> str:
    """Where to go on once it is done."""
    done = {"make_release": "release", "carry_out_plan": "release", "verify_folder": "release"}
    return f"/{done.get(job.task, 'desk')}/{job.session}"


async def job_events(pages: Pages, request: Request) -> Response:
    """What a job tells, as it tells it."""
    job = _job(pages, request)

    async def stream() -> AsyncIterator[str]:
        seen = -1
        while True:
            if job.version > seen:
                seen = job.version
                page = _environment().get_template("progress.html.j2")
                text = page.render(job=job.to_dict(), next=_after(job))
                lines = "".join(f"data: {line}\n" for line in text.splitlines())
                yield f"{lines}\n"
            if job.is_over:
                yield "event: over\ndata: over\n\n"
                return
            await pages.jobs.wait_for(job, seen, _HEARTBEAT_SECONDS)
            if await request.is_disconnected():
                return
            yield ": still here\n\n"

    return StreamingResponse(stream(), media_type="text/event-stream")


async def stop_job(pages: Pages, request: Request) -> Response:
    """Stop a job."""
    job = _job(pages, request)
    asyncio.get_running_loop().create_task(pages.jobs.stop(job.id))  # noqa: RUF006  — it ends by itself
    return _go(request, f"/jobs/{job.id}")


async def charts(pages: Pages, request: Request) -> Response:
    """The charts of a result, for the script that draws them."""
    session, name = request.path_params["session"], request.path_params["name"]
    results = pages.history.results(pages.require_plan(session).id)
    if name not in results or "charts" not in results[name]:
        raise UnknownNameError("There is no such picture.")
    return JSONResponse(results[name]["charts"])


# What does not change -------------------------------------------------------------------------------------


@cache
def static_files() -> dict[str, tuple[bytes, str]]:
    """Scripts and styles by a name with their hash, so that a browser may keep them."""
    found = {}
    for folder in _STATIC:
        for path in sorted(folder.iterdir()):
            if path.suffix in _TYPES:
                data = path.read_bytes()
                found[f"{path.stem}.{hashlib.sha256(data).hexdigest()[:16]}{path.suffix}"] = data, _TYPES[path.suffix]
    return found


@cache
def static_address(name: str) -> str:
    """Where a script or style is."""
    stem, _, suffix = name.rpartition(".")
    found = [each for each in static_files() if each.startswith(f"{stem}.") and each.endswith(suffix)]
    return f"/static/{min(found, key=len)}"


async def static_file(pages: Pages, request: Request) -> Response:  # noqa: ARG001
    """A script or style."""
    found = static_files().get(request.path_params["name"])
    if found is None:
        raise UnknownNameError("There is no such file.")
    data, kind = found
    return Response(data, media_type=kind, headers={"cache-control": "private, max-age=31536000, immutable"})


_ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/", start),
    ("POST", "/open", open_file),
    ("POST", "/upload", upload),
    ("GET", "/questions/{session:int}", questions),
    ("POST", "/questions/{session:int}", answer_questions),
    ("GET", "/desk/{session:int}", desk),
    ("POST", "/desk/{session:int}", change_plan),
    ("POST", "/desk/{session:int}/move", move),
    ("GET", "/desk/{session:int}/difference", difference),
    ("GET", "/desk/{session:int}/explain/{measure:str}", explain),
    ("GET", "/desk/{session:int}/charts/{name:str}", charts),
    ("POST", "/desk/{session:int}/jobs/{kind:str}", begin_job),
    ("GET", "/release/{session:int}", release),
    ("GET", "/release/{session:int}/report/{form:str}", released_page),
    ("GET", "/jobs/{job:int}", job_page),
    ("GET", "/jobs/{job:int}/events", job_events),
    ("POST", "/jobs/{job:int}/stop", stop_job),
    ("GET", "/static/{name:str}", static_file),
)


def make_app(folder: Path, history: PlanHistory) -> Starlette:
    """The application that serves one folder; whoever runs it puts a `Guard` before it."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        pages = app.state.pages = Pages(folder, history)
        running = asyncio.create_task(pages.jobs.run())
        try:
            yield
        finally:
            running.cancel()
            pages.jobs.close()
            pages.close_desks()

    def endpoint(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        answer = _handled(handler)

        async def call(request: Request) -> Response:
            return await answer(request.app.state.pages, request)

        return call

    routes = [Route(path, endpoint(handler), methods=[verb]) for verb, path, handler in _ROUTES]
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _http_error})


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentences = {404: "There is no such page.", 405: "This page cannot be asked that way."}
    sentence = sentences.get(error.status_code, "This request was not understood.")
    content = {"title": "That did not work", "sentence": sentence, "hint": "go back to the start"}
    return show(request, "error", content, error.status_code)


def as_text(content: Mapping[str, Any]) -> str:
    """A dictionary as JSON text."""
    return json.dumps(content, ensure_ascii=False)

"""The plan as it is now: requirements, columns, steps, pictures, and what was done; each can be changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sfumato.errors import UnknownNameError
from sfumato.web.answers import go, show, texts_of
from sfumato.web.start_page import free_folder, keep_release
from sfumato.web.state import ServerState
from sfumato.web.workers import Job, WorkerError


async def desk(state: ServerState, request: Request) -> Response:
    """The plan as it is now: its requirements, columns, steps, what came of it, and what was done."""
    session = request.path_params["session"]
    version, own = state.require_plan(session), state.history.session(session)
    worker = state.desk(session)
    results = state.history.results(version.id)
    if "score" not in results:
        results["score"] = await worker.call("score", toml=version.toml)
        state.history.keep_result(version.id, "score", results["score"])
    results |= {name: found for (number, name), found in state.drawn.items() if number == version.id}
    parts = await worker.call("recipe", toml=version.toml)
    versions = [
        {"id": each.id, "parent": each.parent, "action": each.action, "made": each.made}
        for each in state.history.versions(session)
    ]
    jobs = [each.to_dict() for each in state.jobs.jobs.values() if each.session == session]
    content = {
        "session": session, "source": own.source, "plan_path": own.plan_path, "version_id": version.id,
        "results": results, "versions": versions, "jobs": jobs, **parts,
    }  # fmt: skip
    return show(request, "desk", content)


async def change_plan(state: ServerState, request: Request) -> Response:
    """Change one thing of the plan: a step, a role, the profile."""
    session = request.path_params["session"]
    version = state.require_plan(session)
    async with request.form() as form:
        values: dict[str, Any] = {name: value for name, value in form.items() if isinstance(value, str)}
        if "columns" in form:
            values["columns"] = [str(each) for each in form.getlist("columns")]
    if values.pop("version", str(version.id)) != str(version.id):
        raise WorkerError(
            "The plan has changed in another window. Nothing was changed here.", hint="reload this page"
        )
    action = values.pop("action", "")
    made = await state.desk(session).call("edit", toml=version.toml, action=action, values=values)
    state.keep(session, made["toml"], made["action"], after=version.id)
    return go(request, f"/desk/{session}")


async def move(state: ServerState, request: Request) -> Response:
    """Undo, redo, or go to any plan of the session."""
    session = request.path_params["session"]
    async with request.form() as form:
        to = str(form.get("to", ""))
    state.require_plan(session)  # an edit from outside becomes a plan of its own before it is left
    moves = {"undo": state.history.undo, "redo": state.history.redo}
    version = moves[to](session) if to in moves else state.history.go_to(session, _as_int(to))
    if version is not None:
        state.write_plan(session, version)
    return go(request, f"/desk/{session}")


def _as_int(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:  # noqa: PLR2004 — as many digits as any number of a plan
        raise UnknownNameError("There is no such plan in this session.")
    return int(text)


async def difference(state: ServerState, request: Request) -> Response:
    """How two plans of a session differ."""
    session, query = request.path_params["session"], request.query_params
    one, other = _as_int(query.get("from", "")), _as_int(query.get("to", ""))
    lines = state.history.difference(session, one, other)
    return show(request, "difference", {"session": session, "from": one, "to": other, "lines": lines})


async def explain(state: ServerState, request: Request) -> Response:
    """What a measure means."""
    session, name = request.path_params["session"], request.path_params["measure"]
    return show(
        request,
        "explain",
        await state.desk(session).call("explain_measure", name=name) | {"session": session},
    )


async def begin_job(state: ServerState, request: Request) -> Response:
    """Put a long work on the present plan in line."""
    session, kind = request.path_params["session"], request.path_params["kind"]
    version, own = state.require_plan(session), state.history.session(session)
    async with request.form() as form:
        texts = texts_of(form, "override", "folder")
        methods = [str(each) for each in form.getlist("methods")]

    def keep(name: str) -> Callable[[Job], None]:
        return lambda job: state.drawn.update({(version.id, name): job.content})

    if kind == "compare":
        job = state.jobs.add(
            session, "compare_methods", "Compare methods at equal risk", keep("comparison"),
            toml=version.toml, methods=methods,
        )  # fmt: skip
    elif kind == "pictures":
        job = state.jobs.add(session, "pictures", "Measure and draw", keep("pictures"), toml=version.toml)
    elif kind == "release":
        job = state.jobs.add(
            session, "carry_out_plan", "Make the release", lambda done: keep_release(state, done, version.id),
            toml=version.toml, folder=free_folder(state, own.source), override=texts.get("override", ""),
        )  # fmt: skip
    elif kind == "verify":
        release = state.history.results(version.id).get("release")
        if release is None:
            raise WorkerError("There is no release of this plan yet.", hint="make it first")
        job = state.jobs.add(
            session, "verify_folder", "Verify the release",
            lambda done: state.history.keep_result(version.id, "verification", done.content),
            folder=release["folder"],
        )  # fmt: skip
    else:
        raise UnknownNameError(f"There is no job `{kind}`.")
    return go(request, f"/jobs/{job.id}")


async def charts(state: ServerState, request: Request) -> Response:
    """The charts of a result, for the script that draws them."""
    session, name = request.path_params["session"], request.path_params["name"]
    drawn = state.drawn.get((state.require_plan(session).id, name))
    if drawn is None:
        raise UnknownNameError("There is no such picture.")
    return JSONResponse(drawn["charts"])

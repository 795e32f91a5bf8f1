"""The plan as it is now: requirements, columns, steps, pictures, and what was done; each can be changed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sfumato.errors import UnknownNameError
from sfumato.web.answers import go, show, texts_by_name, texts_of, wants_json
from sfumato.web.history import PlanVersion
from sfumato.web.map_page import comparison_of, map_at
from sfumato.web.start_page import free_folder, keep_release
from sfumato.web.state import ServerState
from sfumato.web.strip import strip_of
from sfumato.web.workers import Job, WorkerError

#: Minutes of a search where the form says nothing, and the most.
_MINUTES, _MOST_MINUTES = 2, 600
#: Columns that a page lists at once.
COLUMNS_SHOWN = 100


async def desk(state: ServerState, request: Request) -> Response:
    """The plan as it is now: its requirements, columns, steps, what came of it, and what was done."""
    return show(request, "desk", await _content(state, request))


async def _content(state: ServerState, request: Request) -> dict[str, Any]:
    """What the desk shows; of many columns some."""
    session, first = request.path_params["session"], request.query_params.get("first", "0")
    version, own = state.require_plan(session), state.history.session(session)
    results = {"score": await _score(state, session, version), **state.history.results(version.id)}
    for each in results["score"]["requirements"]:
        each["strip"] = strip_of(each)
    results |= _in_memory(state, session, version)
    if "comparison" in results:
        results["comparison"] = map_at(results["comparison"], request.query_params)
    parts = await state.desk(session).call("recipe", toml=version.toml)
    versions = [
        {"id": each.id, "parent": each.parent, "action": each.action, "made": each.made}
        for each in state.history.versions(session)
    ]
    jobs = [each.to_dict() for each in state.jobs.jobs.values() if each.session == session]
    return {
        "session": session, "source": own.name, "plan_path": own.plan_path, "version_id": version.id,
        "results": results, "versions": versions, "jobs": jobs, "refusal": None,
        "first": _as_int(first) // COLUMNS_SHOWN * COLUMNS_SHOWN, "columns_shown": COLUMNS_SHOWN, **parts,
    }  # fmt: skip


async def _score(state: ServerState, session: int, version: PlanVersion) -> dict[str, Any]:
    """What a plan makes, as it is known or else measured now."""
    known = state.history.results(version.id)
    if "score" not in known:
        known["score"] = await state.desk(session).call("score", toml=version.toml)
        state.history.keep_result(version.id, "score", known["score"])
    score: dict[str, Any] = known["score"]
    return score


def _in_memory(state: ServerState, session: int, version: PlanVersion) -> dict[str, Any]:
    """What is never written down: pictures of this plan, and the newest comparison on the way to it."""
    results = {name: found for (number, name), found in state.drawn.items() if number == version.id}
    comparison, earlier = comparison_of(state, session)
    if comparison is not None:
        results |= {"comparison": comparison, "comparison_of": earlier}
    return results


async def change_plan(state: ServerState, request: Request) -> Response:
    """Change one thing of the plan: a step, a role, the profile."""
    session = request.path_params["session"]
    version = state.require_plan(session)
    texts = await texts_by_name(request)
    require_present(version, texts)
    action = texts.pop("action", [""])[-1]
    made = await state.desk(session).call("edit", toml=version.toml, action=action, texts=texts)
    if "refusal" in made:
        content = made["refusal"] if wants_json(request) else {**await _content(state, request), **made}
        return show(request, "desk", content, 422)
    state.keep(session, made["toml"], made["action"], after=version.id)
    return go(request, f"/desk/{session}")


def require_present(version: PlanVersion, texts: dict[str, list[str]]) -> None:
    """Stop if a form was made of a plan that is not the present one; that it says so is taken out."""
    if texts.pop("version", [str(version.id)])[-1] != str(version.id):
        raise WorkerError(
            "The plan has changed in another window. Nothing was changed here.", hint="reload this page"
        )


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


async def beside(state: ServerState, request: Request) -> Response:
    """Two plans of a session side by side: each requirement, each column, and the lines that differ."""
    session, query = request.path_params["session"], request.query_params
    one, other = (state.history.version(session, _as_int(query.get(name, ""))) for name in ("one", "other"))
    scores = [await _score(state, session, each) for each in (one, other)]
    judged = [
        {(each["requirement"], each["scenario"]): each for each in score["requirements"]} for score in scores
    ]
    asked, columns = {**judged[1], **judged[0]}, {**scores[0]["changes"], **scores[1]["changes"]}
    content = {
        "session": session,
        "plans": [
            {"id": each.id, "action": each.action, "sampled": score["sampled"]}
            for each, score in zip((one, other), scores, strict=True)
        ],
        "requirements": [
            {
                "short": each["short"],
                "scenario": key[1],
                "one": judged[0].get(key),
                "other": judged[1].get(key),
            }
            for key, each in asked.items()
        ],
        "columns": [
            {
                "name": name,
                "one": scores[0]["changes"].get(name, ""),
                "other": scores[1]["changes"].get(name, ""),
            }
            for name in columns
        ],
        "lines": state.history.difference(session, one.id, other.id),
    }
    return show(request, "beside", content)


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
    if kind not in _JOBS:
        raise UnknownNameError(f"There is no job `{kind}`.")
    version = state.require_plan(session)
    async with request.form() as form:
        texts: dict[str, Any] = {**texts_of(form, "override", "minutes", "intruder")}
        texts["methods"] = [str(each) for each in form.getlist("methods")]
    cost = ""
    if kind in _CARRIED_OUT:
        with contextlib.suppress(WorkerError):  # what is wrong the job says itself
            cost = await state.desk(session).call("tell_cost", toml=version.toml)
    job = _JOBS[kind](state, session, version, texts)
    job.sentence = cost
    return go(request, f"/jobs/{job.id}")


def _keep_in_memory(state: ServerState, version: PlanVersion, name: str) -> Callable[[Job], None]:
    return lambda job: state.drawn.update({(version.id, name): job.content})


def _tune(state: ServerState, session: int, version: PlanVersion, texts: Mapping[str, Any]) -> Job:
    return state.jobs.add(
        session, "find_recipe", "Find the recipe that loses least",
        lambda done: _keep_search(state, done, version.id),
        toml=version.toml, minutes=_minutes(texts.get("minutes", "")),
    )  # fmt: skip


def _compare(state: ServerState, session: int, version: PlanVersion, texts: Mapping[str, Any]) -> Job:
    return state.jobs.add(
        session, "compare_methods", "Compare methods at equal risk",
        _keep_in_memory(state, version, "comparison"),
        toml=version.toml, methods=texts["methods"], intruder=texts.get("intruder", ""),
    )  # fmt: skip


def _draw(state: ServerState, session: int, version: PlanVersion, _texts: Mapping[str, Any]) -> Job:
    done = _keep_in_memory(state, version, "pictures")
    return state.jobs.add(session, "pictures", "Measure and draw", done, toml=version.toml)


def _list_riskiest(state: ServerState, session: int, version: PlanVersion, _texts: Mapping[str, Any]) -> Job:
    done = _keep_in_memory(state, version, "riskiest")
    return state.jobs.add(session, "find_riskiest", "Find the riskiest records", done, toml=version.toml)


def _release(state: ServerState, session: int, version: PlanVersion, texts: Mapping[str, Any]) -> Job:
    return state.jobs.add(
        session, "carry_out_plan", "Make the release", lambda done: keep_release(state, done, version.id),
        toml=version.toml, folder=free_folder(state, state.history.session(session).source),
        override=texts.get("override", ""),
    )  # fmt: skip


def _verify(state: ServerState, session: int, version: PlanVersion, _texts: Mapping[str, Any]) -> Job:
    release = state.history.results(version.id).get("release")
    if release is None:
        raise WorkerError("There is no release of this plan yet.", hint="make it first")
    return state.jobs.add(
        session, "verify_folder", "Verify the release",
        lambda done: state.history.keep_result(version.id, "verification", done.content),
        folder=release["folder"],
    )  # fmt: skip


_JOBS: dict[str, Callable[[ServerState, int, PlanVersion, Mapping[str, Any]], Job]] = {
    "tune": _tune,
    "compare": _compare,
    "pictures": _draw,
    "riskiest": _list_riskiest,
    "release": _release,
    "verify": _verify,
}


#: Jobs that take as long as one answer on all records at least.
_CARRIED_OUT = frozenset({"pictures", "riskiest", "release"})


def _minutes(text: str) -> float:
    """How long a search may take, by what a form says."""
    try:
        minutes = float(text.replace(",", ".") or _MINUTES)
    except ValueError:
        minutes = 0.0
    if not 0 < minutes <= _MOST_MINUTES:
        raise WorkerError(f"The minutes must be a number above 0 and up to {_MOST_MINUTES}.")
    return minutes


def _keep_search(state: ServerState, job: Job, version: int) -> None:
    """Make what a search found the present plan, as a child of the plan that was searched."""
    state.require_plan(job.session)  # an edit from outside is kept before the file is written
    state.history.go_to(job.session, version)
    made = state.keep(job.session, job.content["toml"], f"found by the search: {job.content['recipe']}")
    content = {name: job.content[name] for name in ("candidates", "rejected", "sentences")}
    state.history.keep_result(made.id, "search", content)


async def charts(state: ServerState, request: Request) -> Response:
    """The charts of a result, for the script that draws them."""
    session, name = request.path_params["session"], request.path_params["name"]
    drawn = _in_memory(state, session, state.require_plan(session)).get(name)
    if drawn is None:
        raise UnknownNameError("There is no such picture.")
    return JSONResponse(drawn["charts"])


async def riskiest(state: ServerState, request: Request) -> Response:
    """The records most at risk by their rows, and what would hide each; no value."""
    session = request.path_params["session"]
    version = state.require_plan(session)
    found = state.drawn.get((version.id, "riskiest"))
    return show(request, "riskiest", {"session": session, "version_id": version.id, "riskiest": found})


async def reveal(state: ServerState, request: Request) -> Response:
    """The values of one of the riskiest records, asked for on purpose: that is kept, the values are not."""
    session = request.path_params["session"]
    version = state.require_plan(session)
    async with request.form() as form:
        texts = texts_of(form, "row", "confirmation")
    row = texts.get("row", "")
    found = state.drawn.get((version.id, "riskiest")) or {"records": []}
    if row not in {str(each["row"]) for each in found["records"]}:
        raise UnknownNameError("This record is not among the riskiest that are listed.")
    if texts.get("confirmation", "").strip().lower() != f"reveal {row}":
        raise WorkerError(
            "Nothing was revealed.", hint=f"type `reveal {row}` to see the values of this record"
        )
    noted = state.history.note(session, f"revealed record {row}")
    for (number, name), content in [*state.drawn.items()]:
        if number == version.id:
            state.drawn[noted.id, name] = content
    values = await state.desk(session).call("reveal_record", toml=version.toml, row=int(row))
    return show(request, "revealed", {"session": session, "row": int(row), "values": values})

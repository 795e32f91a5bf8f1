"""May it leave? What blocks it, what was written, and how to do the same without the page."""

from __future__ import annotations

import tomllib
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from sfumato.errors import UnknownNameError
from sfumato.web.answers import go, show, texts_by_name
from sfumato.web.desk_page import require_present
from sfumato.web.history import PlanVersion
from sfumato.web.session_export import console_lines, python_file
from sfumato.web.start_page import free_folder
from sfumato.web.state import ServerState
from sfumato.web.workers import WorkerError

#: What the owner may say of a release, a question for each field of `About`; the first four come first.
ABOUT_QUESTIONS = {
    "title": "What is it called?",
    "purpose": "Why is it released?",
    "contact": "Whom can people ask about it?",
    "recipients": "Who receives it? Separate several by a semicolon",
    "description": "What does it contain?",
    "population": "Whom is it about?",
    "period": "Which time is it about?",
    "publisher": "Who publishes it?",
    "legal_basis": "What is the legal basis?",
    "terms": "What do recipients agree to?",
    "safeguards": "What protects it beside the release itself?",
    "threats": "Which threats were considered?",
    "transparency": "What were the people in it told?",
    "intruder_test": "Where is the log of attempts to find someone?",
    "basis": "What does the decision rest on?",
    "expert": "Who is responsible for the decision?",
    "review_date": "When is it reviewed, as in 2030-12-31?",
}
#: What to do about a finding, by the rule that it breaks, and where.
_NEXT_STEPS = {
    "identifier-left-in": ("Make the column an identifier: it is removed then", "desk", "columns"),
    "contact-left-in": ("Make the column an identifier: it is removed then", "desk", "columns"),
    "role-missing": ("Give the column a role", "desk", "columns"),
    "nothing-required": ("Say who gets it", "questions", "who"),
    "requirement-missed": ("Change a step, or let the search find a recipe", "desk", "recipe"),
    "rule-broken": ("Change the step that breaks it", "desk", "recipe"),
    "not-private": ("Change the steps", "desk", "recipe"),
}


async def release(state: ServerState, request: Request) -> Response:
    """May it leave? What blocks, what was written, and the session as a plan, Python and console lines."""
    session = request.path_params["session"]
    version, own = state.require_plan(session), state.history.session(session)
    results = state.history.results(version.id)
    findings = results["score"]["decision"]["findings"] if "score" in results else []
    content = {
        "session": session, "source": own.name, "plan_path": own.plan_path, "version_id": version.id,
        "results": {name: results[name] for name in ("score", "release", "verification") if name in results},
        "blocked": [_with_next_step(session, each) for each in findings],
        "about": _about(version), "exports": _exports(state, session, version),
    }  # fmt: skip
    return show(request, "release", content)


def _with_next_step(session: int, finding: dict[str, str]) -> dict[str, str]:
    """What blocks a release, what to do about it, and where."""
    step, page, part = _NEXT_STEPS.get(finding["rule"], ("Change the plan", "desk", "recipe"))
    return {**finding, "next_step": step, "address": f"/{page}/{session}#{part}"}


def _about(version: PlanVersion) -> list[dict[str, str]]:
    """What its owner said of the release, question by question."""
    try:
        known = tomllib.loads(version.toml).get("release", {})
    except (ValueError, RecursionError):
        known = {}
    values = {name: known.get(name, "") if isinstance(known, dict) else "" for name in ABOUT_QUESTIONS}
    return [
        {
            "name": name,
            "question": question,
            "value": "; ".join(map(str, value)) if isinstance(value := values[name], list) else str(value),
        }
        for name, question in ABOUT_QUESTIONS.items()
    ]


async def describe(state: ServerState, request: Request) -> Response:
    """Keep what the owner says of the release; no score depends on it."""
    session = request.path_params["session"]
    version = state.require_plan(session)
    texts = await texts_by_name(request)
    require_present(version, texts)
    made = await state.desk(session).call("edit", toml=version.toml, action="describe", texts=texts)
    if "refusal" in made:
        raise WorkerError(made["refusal"]["sentence"], hint=made["refusal"]["hint"])
    changed = state.keep(session, made["toml"], made["action"], after=version.id)
    for name, content in state.history.results(version.id).items():
        if name in {"score", "file"} and changed.id != version.id:
            state.history.keep_result(changed.id, name, content)
    return go(request, f"/release/{session}")


def _exports(state: ServerState, session: int, version: PlanVersion) -> dict[str, Any]:
    """The session as files that repeat it."""
    own, written = state.history.session(session), state.history.results(version.id).get("release", {})
    actions = [each.action for each in reversed(state.history.line(session, version))]
    folder, override = free_folder(state, own.source), written.get("override", "")
    console = console_lines(
        own.plan_path, folder=folder, written=written.get("folder", ""), override=override
    )
    python = python_file(version.toml, actions, folder=folder, override=override)
    return {"plan.toml": version.toml, "session.py": python, "console.txt": "\n".join(console) + "\n"}


async def export(state: ServerState, request: Request) -> Response:
    """The session as a file: its plan, Python, or lines for the console."""
    session, name = request.path_params["session"], request.path_params["name"]
    found = _exports(state, session, state.require_plan(session)).get(name)
    if found is None:
        raise UnknownNameError("There is no such file of a session.")
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(found, media_type="text/plain", headers=headers)


async def released_page(state: ServerState, request: Request) -> Response:
    """The report of a release, internal or public, as it lies in its folder."""
    session, form = request.path_params["session"], request.path_params["form"]
    results = state.history.results(state.require_plan(session).id).get("release")
    if results is None:
        raise UnknownNameError("There is no release of this plan yet.")
    name = {"internal": "private/report.html", "public": "report.html"}.get(form, "")
    place = (state.folder / results["folder"] / name).resolve()
    if not name or not place.is_relative_to(state.folder) or not place.is_file():
        raise UnknownNameError("There is no such report.")
    text = place.read_text(encoding="utf-8")
    policy = text.partition('Content-Security-Policy" content="')[2].partition('"')[0]
    headers = {
        "content-security-policy": policy.replace("&#39;", "'")
    }  # that of the report itself, which is stricter
    return HTMLResponse(text, headers=headers)

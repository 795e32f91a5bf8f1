"""May it leave? What blocks it, what was written, and how to do the same without the page."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from sfumato.errors import UnknownNameError
from sfumato.web.answers import show
from sfumato.web.state import ServerState


async def release(state: ServerState, request: Request) -> Response:
    """May it leave? What blocks, what was written, and the session as a plan, Python and console lines."""
    session = request.path_params["session"]
    version, own = state.require_plan(session), state.history.session(session)
    results = state.history.results(version.id)
    content = {
        "session": session, "source": own.source, "plan_path": own.plan_path, "version_id": version.id,
        "results": {name: results[name] for name in ("score", "release", "verification") if name in results},
        "toml": version.toml,
        "console": [f"sfumato release {own.plan_path}"],
        "python": f'import sfumato\n\nsfumato.release("{own.plan_path}").write("release")',
    }  # fmt: skip
    return show(request, "release", content)


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

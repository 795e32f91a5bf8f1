"""The drawer of one column: what became of it, whom it singles out, and its hierarchy, to be changed."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from sfumato.web.answers import go, show, texts_by_name, wants_json
from sfumato.web.desk_page import require_present
from sfumato.web.history import PlanVersion
from sfumato.web.state import ServerState


async def column(state: ServerState, request: Request) -> Response:
    """One column before and after, and its hierarchy."""
    version = state.require_plan(request.path_params["session"])
    return show(request, "column", await _content(state, request, version))


async def _content(state: ServerState, request: Request, version: PlanVersion) -> dict[str, Any]:
    session, number = request.path_params["session"], request.path_params["number"]
    content = await state.desk(session).call("describe_column", toml=version.toml, number=number)
    pictures = state.drawn.get((version.id, "pictures"), {"columns": {}})
    return {
        "session": session, "number": number, "version_id": version.id, "column": content,
        "picture": pictures["columns"].get(content["name"]), "refusal": None,
    }  # fmt: skip


async def change_hierarchy(state: ServerState, request: Request) -> Response:
    """Change the hierarchy of a column; the plan then names the file that it is written to."""
    session, number = request.path_params["session"], request.path_params["number"]
    version, texts = state.require_plan(session), await texts_by_name(request)
    require_present(version, texts)
    made = await state.desk(session).call("edit_hierarchy", toml=version.toml, number=number, texts=texts)
    if "refusal" in made:
        content = (
            made["refusal"] if wants_json(request) else {**await _content(state, request, version), **made}
        )
        return show(request, "column", content, 422)
    state.keep(session, made["toml"], made["action"], after=version.id)
    return go(request, f"/desk/{session}/columns/{number}")

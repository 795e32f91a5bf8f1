"""The map of a comparison: its ranking at a level that you move, candidates picked, and a map that fills."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sfumato.errors import UnknownNameError
from sfumato.web.answers import show
from sfumato.web.state import ServerState
from sfumato.web.workers import WorkerError

#: Candidates that stand side by side.
_BESIDE = 2


def comparison_of(state: ServerState, session: int) -> tuple[dict[str, Any] | None, str]:
    """The newest comparison on the way to the present plan, and what made its plan if that is earlier."""
    version = state.require_plan(session)
    line = state.history.line(session, version)
    source = next((each for each in line if (each.id, "comparison") in state.drawn), None)
    if source is None:
        return None, ""
    return state.drawn[source.id, "comparison"], "" if source.id == version.id else source.action


def map_at(found: Mapping[str, Any], query: QueryParams) -> dict[str, Any]:
    """A comparison at the level that a form asks for, or at its own, and up to two candidates picked."""
    levels: Sequence[float] = found["levels"]
    asked = _level(query["level"]) if query.get("level", "").strip() else found["level"]
    place = min(range(len(levels)), key=lambda each: abs(levels[each] - asked))
    ranking = found["rankings"][place]
    candidates = {each["id"]: each for each in (*ranking, *found["marks"], *found["points"])}
    names = list(dict.fromkeys(query.getlist("candidate")))
    if any(name not in candidates for name in names):
        raise UnknownNameError("There is no such candidate on this map.", hint="compare again")
    shared = {name: each for name, each in found.items() if name not in {"rankings", "charts"}}
    return {
        **shared,
        "at": levels[place],
        "place": place,
        "ranking": ranking,
        "names": names,
        "picked": [candidates[name] for name in names[:_BESIDE]],
        "estimates": [_row(each) for each in ranking if each["estimated"]],
        "rings": [
            _row(candidates[name]) for name in names[:_BESIDE] if candidates[name]["value"] is not None
        ],
    }


def _level(text: str) -> float:
    try:
        level = float(text.replace(",", "."))
    except ValueError:
        level = math.nan
    if not math.isfinite(level):
        raise WorkerError("The level must be a number.")
    return level


def _row(candidate: Mapping[str, Any]) -> dict[str, Any]:
    """A candidate as data of the chart."""
    risk, utility = candidate["risk"]["value"], candidate["value"]
    return {
        "id": candidate["id"], "label": candidate["label"], "rank": candidate["rank"], "risk": risk,
        "utility": utility, "risk_text": f"{risk:.4g}", "utility_text": f"{utility:.4g}",
    }  # fmt: skip


async def show_map(state: ServerState, request: Request) -> Response:
    """The map alone, at a level."""
    session = request.path_params["session"]
    found, earlier = comparison_of(state, session)
    if found is None:
        raise UnknownNameError("Nothing was compared yet.", hint="compare methods on the desk first")
    content = {
        "session": session, "version_id": state.require_plan(session).id, "comparison_of": earlier,
        "map": map_at(found, request.query_params),
    }  # fmt: skip
    return show(request, "map", content)


async def settled_chart(state: ServerState, request: Request) -> Response:
    """The map of a comparison that is running, as a chart; null while nothing is settled."""
    job = state.jobs.jobs.get(request.path_params["job"])
    if job is None or job.task != "compare_methods":
        raise UnknownNameError("There is no such comparison.", hint="the server may have been started again")
    return JSONResponse(await state.desk(job.session).call("draw_settled", found=list(job.found)))

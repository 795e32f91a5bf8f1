"""The pages by their addresses, and what starts and ends with the server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sfumato.web import column_page, desk_page, job_page, map_page, release_page, start_page
from sfumato.web.answers import HANDLERS, Handler, answering, static_file
from sfumato.web.history import PlanHistory
from sfumato.web.state import ServerState

_ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/", start_page.start),
    ("POST", "/open", start_page.open_file),
    ("POST", "/upload", start_page.upload),
    ("GET", "/questions/{session:int}", start_page.questions),
    ("POST", "/questions/{session:int}", start_page.answer_questions),
    ("GET", "/desk/{session:int}", desk_page.desk),
    ("POST", "/desk/{session:int}", desk_page.change_plan),
    ("POST", "/desk/{session:int}/move", desk_page.move),
    ("GET", "/desk/{session:int}/columns/{number:int}", column_page.column),
    ("POST", "/desk/{session:int}/columns/{number:int}/hierarchy", column_page.change_hierarchy),
    ("GET", "/desk/{session:int}/difference", desk_page.difference),
    ("GET", "/desk/{session:int}/beside", desk_page.beside),
    ("GET", "/desk/{session:int}/explain/{measure:str}", desk_page.explain),
    ("GET", "/desk/{session:int}/charts/{name:str}", desk_page.charts),
    ("GET", "/desk/{session:int}/map", map_page.show_map),
    ("GET", "/desk/{session:int}/riskiest", desk_page.riskiest),
    ("POST", "/desk/{session:int}/riskiest", desk_page.reveal),
    ("POST", "/desk/{session:int}/jobs/{kind:str}", desk_page.begin_job),
    ("GET", "/release/{session:int}", release_page.release),
    ("POST", "/release/{session:int}", release_page.describe),
    ("GET", "/release/{session:int}/session/{name:str}", release_page.export),
    ("GET", "/release/{session:int}/report/{form:str}", release_page.released_page),
    ("GET", "/jobs/{job:int}", job_page.job_page),
    ("GET", "/jobs/{job:int}/events", job_page.job_events),
    ("GET", "/jobs/{job:int}/map", map_page.settled_chart),
    ("POST", "/jobs/{job:int}/stop", job_page.stop_job),
    ("GET", "/static/{name:str}", static_file),
)


def make_app(folder: Path, history: PlanHistory, *, keep: bool = False) -> Starlette:
    """The application that serves one folder; whoever runs it puts a `Guard` before it.

    Files that are dropped on the page are deleted when it ends, unless they are to be ``keep``-ed.
    """
    own = ServerState(folder, history, keep=keep)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        running = asyncio.create_task(own.jobs.run())
        try:
            yield
        finally:
            running.cancel()
            own.close()

    def endpoint(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        answer = answering(handler)

        async def call(request: Request) -> Response:
            return await answer(request.app.state.own, request)

        return call

    routes = [Route(path, endpoint(handler), methods=[verb]) for verb, path, handler in _ROUTES]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=HANDLERS)
    app.state.own = own
    return app

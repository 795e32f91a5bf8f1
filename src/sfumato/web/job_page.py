"""How far a job has come, told as it goes, and how to stop it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from sfumato.errors import UnknownNameError
from sfumato.web.answers import go, render, show
from sfumato.web.state import ServerState
from sfumato.web.workers import Job

#: What is being stopped: a task that nobody holds may vanish.
_STOPPING: set[asyncio.Task[None]] = set()
#: Seconds after which a stream says that it is still there.
_HEARTBEAT_SECONDS = 15.0


def _job(state: ServerState, request: Request) -> Job:
    job = state.jobs.jobs.get(request.path_params["job"])
    if job is None:
        raise UnknownNameError("There is no such job.", hint="the server may have been started again")
    return job


async def job_page(state: ServerState, request: Request) -> Response:
    """How far a job has come."""
    job = _job(state, request)
    return show(request, "job", {"job": job.to_dict(), "next": _after(job)})


def _after(job: Job) -> str:
    """Where to go on once it is done."""
    if job.task == "find_riskiest":
        return f"/desk/{job.session}/riskiest"
    done = {"make_release": "release", "carry_out_plan": "release", "verify_folder": "release"}
    return f"/{done.get(job.task, 'desk')}/{job.session}"


async def job_events(state: ServerState, request: Request) -> Response:
    """What a job tells, as it tells it."""
    job = _job(state, request)

    async def stream() -> AsyncIterator[str]:
        seen = -1
        while True:
            over = job.is_over  # it may end while this is sent: the last word must have the way on
            if over or job.version > seen:
                seen = job.version
                text = render("progress", {"job": job.to_dict(), "next": _after(job)})
                lines = "".join(f"data: {line}\n" for line in text.splitlines())
                yield f"{lines}\n"
            if over:
                yield "event: over\ndata: over\n\n"
                return
            await state.jobs.wait_for(job, seen, _HEARTBEAT_SECONDS)
            if await request.is_disconnected():
                return
            yield ": still here\n\n"

    return StreamingResponse(stream(), media_type="text/event-stream")


async def stop_job(state: ServerState, request: Request) -> Response:
    """Stop a job."""
    job = _job(state, request)
    _STOPPING.add(stopping := asyncio.create_task(state.jobs.stop(job.id)))
    stopping.add_done_callback(_STOPPING.discard)
    return go(request, f"/jobs/{job.id}")

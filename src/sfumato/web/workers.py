"""Processes of their own: a *desk* keeps a table and answers at once; a *job* is one long work.

They are spawned, since a fork of a process that has used polars hangs. The server talks to them by a pipe:
a task of `tasks` by its name with plain arguments, and back its progress, and its result or a sentence.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import multiprocessing
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from sfumato.errors import Cancelled, SfumatoError

_SPAWN = multiprocessing.get_context("spawn")
#: Seconds that a job has to end by itself once it is asked to.
_SECONDS_TO_STOP = 5.0
#: Jobs that may stand in line.
MAX_JOBS_WAITING = 20

Tell = Callable[[Mapping[str, Any]], None]


class WorkerError(SfumatoError):
    """A task could not be done: what is wrong, in the words of the room that found it."""

    exit_code = 1


class WorkerGoneError(WorkerError):
    """The process of a desk or job is gone."""


def _ignore(_event: Mapping[str, Any]) -> None:
    pass


class Worker:
    """A process that does one task after the other."""

    def __init__(self, folder: str) -> None:
        self._folder, self._lock = folder, threading.Lock()
        self._closing, self._closed = threading.Lock(), False
        self._start()

    def _start(self) -> None:
        self._pipe, there = _SPAWN.Pipe()
        self._stop = _SPAWN.RawValue("b", 0)  # without a lock, which a killed process would keep for ever
        self._process = _SPAWN.Process(target=_work, args=(there, self._stop, self._folder), daemon=True)
        self._process.start()
        there.close()

    async def call(self, task: str, tell: Tell = _ignore, **arguments: Any) -> Any:
        """Do a task and give its result; ``tell`` hears of its progress, in another thread."""
        return await asyncio.to_thread(self._call, task, tell, arguments)

    def _call(self, task: str, tell: Tell, arguments: Mapping[str, Any]) -> Any:
        with self._lock:
            try:
                self._pipe.send((task, dict(arguments)))
                while (message := self._pipe.recv())["kind"] not in {"result", "error"}:
                    tell(message)
            except (EOFError, OSError, TypeError):  # a pipe that another thread closes has no handle
                self._start_again()
                raise WorkerGoneError(
                    "The process that did this has ended, perhaps for lack of memory.",
                    hint="try it again, with a smaller file or fewer columns; your plan is kept",
                ) from None
        if message["kind"] == "error":
            raise WorkerError(message["sentence"], hint=message["hint"])
        return message["content"]

    def _start_again(self) -> None:
        with self._closing:
            if self._closed:
                raise WorkerGoneError("This was stopped, since its file was closed.", hint="open it again")
            self._process.kill()
            self._process.join(1)
            self._start()

    def stop(self) -> None:
        """Ask the present task to end."""
        self._stop.value = 1

    def close(self) -> None:
        """End the process, now; it is not started again."""
        with self._closing:
            self._closed = True
            self._process.kill()
            self._process.join(2)
        if self._lock.acquire(timeout=2):  # a pipe is not closed while another thread reads from it
            self._pipe.close()
            self._lock.release()


def _work(pipe: Connection, stop: Any, folder: str) -> None:
    """What a process does until its pipe is closed."""
    import signal

    from sfumato.web import tasks

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which closes the pipe
    desk = tasks.Desk(tell=pipe.send, stopped=lambda: bool(stop.value))
    with contextlib.suppress(EOFError, OSError):
        while True:
            name, arguments = pipe.recv()
            pipe.send(_answer(desk, folder, name, arguments))


def _answer(desk: Any, folder: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The result of a task, or the sentence that it ended with; never a cell."""
    import os

    from sfumato.web import tasks

    try:
        os.chdir(folder)  # each time: it may have been removed, or made anew
        return {"kind": "result", "content": tasks.TASKS[name](desk, **arguments)}
    except Cancelled:
        return {"kind": "error", "sentence": "Stopped. Nothing was written.", "hint": ""}
    except SfumatoError as error:
        return {"kind": "error", "sentence": error.message, "hint": error.hint}
    except MemoryError:
        return {
            "kind": "error",
            "sentence": "There is not enough memory for this.",
            "hint": "take fewer records",
        }
    except OSError as error:
        sentence = f"The file system says: {error.strerror}."
        return {"kind": "error", "sentence": sentence, "hint": "your plan is kept"}
    except Exception as error:  # noqa: BLE001  — its text may quote cells: its type is told, no more
        sentence = f"Something went wrong inside sfumato ({type(error).__name__} in {name})."
        return {"kind": "error", "sentence": sentence, "hint": "please report it; your plan is kept"}


# Jobs -----------------------------------------------------------------------------------------------------


@dataclass
class Job:
    """One long work of a session: what it is, how far it has come, and what came of it."""

    id: int
    session: int
    task: str
    title: str
    arguments: Mapping[str, Any] = field(repr=False)
    state: str = "waiting"
    progress: dict[str, Any] = field(default_factory=dict)
    found: list[Mapping[str, Any]] = field(default_factory=list)
    content: Any = field(default=None, repr=False)
    sentence: str = ""
    hint: str = ""
    version: int = 0

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state in {"done", "failed", "stopped"}

    def end(self, sentence: str, hint: str) -> None:
        """Note that nothing came of it: it was asked to stop, or there is a reason."""
        stopped = self.state == "stopping"
        self.state = "stopped" if stopped else "failed"
        self.sentence, self.hint = ("Stopped.", "") if stopped else (sentence, hint)

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON, without what came of it."""
        return {
            "id": self.id, "session": self.session, "task": self.task, "title": self.title,
            "state": self.state, "progress": self.progress, "found": list(self.found),
            "sentence": self.sentence, "hint": self.hint,
        }  # fmt: skip


class JobQueue:
    """Jobs one at a time, in the order in which they were asked for."""

    def __init__(self, folder: str) -> None:
        self._folder, self._numbers = folder, itertools.count(1)
        self.jobs: dict[int, Job] = {}
        self._done: dict[int, Callable[[Job], None]] = {}
        self._changed, self._waiting = asyncio.Condition(), asyncio.Queue[int]()
        self._worker: Worker | None = None
        self._running = 0

    def add(self, session: int, task: str, title: str, done: Callable[[Job], None], **arguments: Any) -> Job:
        """Put a job in line; ``done`` is called with it when it ends well."""
        if sum(each.state == "waiting" for each in self.jobs.values()) >= MAX_JOBS_WAITING:
            raise WorkerError("Too many jobs are waiting.", hint="stop one, or wait until one has ended")
        job = Job(next(self._numbers), session, task, title, arguments)
        self.jobs[job.id], self._done[job.id] = job, done
        self._waiting.put_nowait(job.id)
        return job

    async def run(self) -> None:
        """Do the jobs as they come, until cancelled."""
        while True:
            job = self.jobs[await self._waiting.get()]
            if job.state == "waiting":
                try:
                    await self._do(job)
                except OSError:
                    job.end("No process could be started for it.", "try it again")
                    await self._tell_all(job)

    async def _do(self, job: Job) -> None:
        loop, worker = asyncio.get_running_loop(), Worker(self._folder)
        job.state, self._worker, self._running = "running", worker, job.id

        def tell(event: Mapping[str, Any]) -> None:
            asyncio.run_coroutine_threadsafe(self._note(job, event), loop)

        try:
            job.content = await worker.call(job.task, tell, **job.arguments)
            self._done.pop(job.id)(job)
            job.state, job.sentence = "done", ""
        except SfumatoError as error:
            job.end(error.message, error.hint)
        except Exception as error:  # noqa: BLE001  — the next in line must not wait for ever
            job.end(f"What came of it could not be kept ({type(error).__name__}).", "is the disk full?")
        finally:
            self._running = 0
            worker.close()
            await self._tell_all(job)

    async def _note(self, job: Job, event: Mapping[str, Any]) -> None:
        if event["kind"] == "found":
            job.found.append(event["content"])
        elif event["kind"] == "cost":
            job.sentence = event["content"]
        else:
            job.progress = dict(event["content"])
        await self._tell_all(job)

    async def _tell_all(self, job: Job) -> None:
        async with self._changed:
            job.version += 1
            self._changed.notify_all()

    async def wait_for(self, job: Job, seen: int, seconds: float) -> None:
        """Wait until a job has more to tell than was seen, at most so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(lambda: job.version > seen)

    async def stop(self, number: int) -> None:
        """Stop a job: by asking, and after some seconds by force."""
        job = self.jobs[number]
        if job.state == "waiting":
            job.state, job.sentence = "stopped", "Stopped before it began."
            await self._tell_all(job)
        elif job.state == "running" and self._worker is not None:
            job.state = "stopping"
            worker = self._worker
            worker.stop()
            await self._tell_all(job)
            for _ in range(int(_SECONDS_TO_STOP * 10)):
                if self._running != number:
                    return
                await asyncio.sleep(0.1)
            worker.close()

    def close(self) -> None:
        """End what is running, now."""
        if self._worker is not None and self._running:
            self._worker.close()

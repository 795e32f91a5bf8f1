"""Where a command works: ``--engine``, ``--memory`` and ``--scratch``; and the process that watches it.

A command that may go past the memory, by an engine or since the system limits it (``ulimit -v``), works in a
child. Where the child is killed, or a library aborts it for lack of memory, its parent says so in a sentence;
nothing is half-written, since files are renamed last.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

#: In the environment of the child, so that it does the work itself: the number of its parent.
_IN_CHILD = "SFUMATO_ENGINE_CHILD"
_SECONDS_BETWEEN_LOOKS = 0.1
#: Less address space than this is used up by the libraries themselves, some of which then wait for ever.
_LEAST_BYTES = 2**30
_DIES_WITH_PARENT = 1  # what Linux calls PR_SET_PDEATHSIG

F = TypeVar("F", bound=Callable[..., Any])


def engine_options(command: F) -> F:
    """Add the options of engines to a command; its callback does not see them."""
    scratch = click.option(
        "--scratch", expose_value=False, is_eager=True, callback=_note, metavar="DIR",
        help="Folder for columns that do not fit into memory; all is removed at the end.",
    )  # fmt: skip
    memory = click.option(
        "--memory", expose_value=False, is_eager=True, callback=_note, metavar="SIZE",
        help="Memory to use at most, such as 4GB (with --engine stream).",
    )  # fmt: skip
    name = click.option(
        "--engine", "engine_name", expose_value=False, callback=_open, metavar="NAME",
        help="Where to work: memory (default), stream (tables larger than memory), local:N (processes of "
        "this machine) or tls://HOST:PORT (a dask cluster).",
    )  # fmt: skip
    return name(memory(scratch(command)))


def _note(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    context.meta[f"sfumato.{parameter.name}"] = value


def _open(context: click.Context, parameter: click.Parameter, name: str | None) -> None:  # noqa: ARG001
    from sfumato.engines.opening import bytes_of, engine

    memory, scratch = (context.meta.get(f"sfumato.{each}") for each in ("memory", "scratch"))
    if name is None and (memory or scratch):
        name = "stream"
    if context.resilient_parsing or name in {None, "memory"}:
        return
    limit = bytes_of(memory) if memory else None
    if _IN_CHILD in os.environ or context.find_root().obj is None:
        _end_with_parent(os.environ.get(_IN_CHILD, ""))
        context.with_resource(engine(str(name), memory=limit, scratch=scratch))
        return
    context.exit(_watch(context.find_root().obj, limit))


def work_within_limit(arguments: list[str]) -> int | None:
    """Do a command in a child where the system limits the memory of processes: there libraries abort.

    Returns its exit code; None where there is no limit.
    """
    import resource

    limits = (resource.getrlimit(each)[0] for each in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    limit = min((each for each in limits if each != resource.RLIM_INFINITY), default=None)
    if limit is None or _IN_CHILD in os.environ:
        return None
    if limit < _LEAST_BYTES:
        from sfumato.errors import MemoryLimitError

        raise MemoryLimitError(
            f"The system allows a process {limit / 1e9:.1f} GB of memory, and the libraries need more.",
            hint="allow more: see `ulimit -v` and `ulimit -d`, in kB",
        )
    return _watch(arguments, None)


def _watch(arguments: list[str], limit: int | None) -> int:
    """Do a command in a child, and say in a sentence how it ended if it could not."""
    from sfumato.errors import DataError, MemoryLimitError

    own = {**os.environ, _IN_CHILD: str(os.getpid()), "RUST_BACKTRACE": "0"}
    child = subprocess.Popen([sys.executable, "-m", "sfumato", *arguments], env=own)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child hears Ctrl-C too, and ends as it should
    try:
        while True:
            try:
                code = child.wait(_SECONDS_BETWEEN_LOOKS)
                break
            except subprocess.TimeoutExpired:
                used = 0 if limit is None else _memory_in_use(child.pid)
                if limit is not None and used > limit:
                    child.kill()
                    child.wait()
                    raise MemoryLimitError.of(used, limit) from None
    finally:
        signal.signal(signal.SIGINT, before)
    if code < 0:
        raise DataError(
            f"The work was ended by the system ({signal.Signals(-code).name}), perhaps for lack of memory. "
            "Nothing was written.",
            hint="allow more memory, take fewer columns or records, or add --engine stream",
        )
    return code


def _memory_in_use(process: int) -> int:
    from sfumato.engines.stream import memory_in_use

    return memory_in_use(process)


def _end_with_parent(parent: str) -> None:
    """Have the child of a command end when its parent does; it may have ended already.

    The child asks for it itself: what runs between fork and exec may wait for ever for a lock of a thread.
    """
    if not parent or sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGTERM)
    if os.getppid() != int(parent):
        raise SystemExit(128 + signal.SIGTERM)

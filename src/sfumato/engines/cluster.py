"""On a cluster: the blocks of a table on the workers of a dask scheduler, with the same bytes.

A task carries the name of a file in the scratch folder, which all workers see, and derived keys; it gives
back the name of another. Frames never travel, and neither does the seed. What goes wrong in a worker becomes
a sentence there: dask would log its text, which may quote cells.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from pickle import PicklingError
from typing import Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from sfumato.data.column_store import ColumnStore
from sfumato.engines.interface import Stopped, active
from sfumato.engines.parcel import Parcel, StaysHereError, Tables
from sfumato.engines.stream import StreamEngine
from sfumato.errors import DataError, MissingDependencyError, ParameterError, SfumatoError

A = TypeVar("A")
B = TypeVar("B")
#: What a worker gives back: results in a file, or why there are none.
Answer: TypeAlias = Parcel | SfumatoError | StaysHereError

#: Records of one task, beside which what a task costs is nothing.
_RECORDS_PER_TASK = 2**20
#: Tasks that are sent ahead for each worker.
_TASKS_AHEAD = 2
_RETRIES = 3
_SECONDS_TO_CONNECT = 20
#: How often is looked whether long work is still awaited.
_SECONDS_BETWEEN_LOOKS = 0.5
#: How often is looked whether any worker is left, while nothing is answered.
_SECONDS_WITHOUT_WORKERS = 30.0
_ONE_THREAD = {f"{name}_THREADS": "1" for name in ("POLARS_MAX", "OPENBLAS_NUM", "OMP_NUM", "NUMBA_NUM")}
#: What dask must not do: pause a worker whose own arrays are large, write its memory to disk, show a page.
_SETTINGS = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.multiprocessing-method": "spawn",
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.nanny.pre-spawn-environ": _ONE_THREAD,
    "distributed.comm.timeouts.connect": f"{_SECONDS_TO_CONNECT}s",
}


@dataclass(frozen=True)
class ClusterEngine(StreamEngine):
    """Blocks, columns and parts on the workers of a cluster, a million records at a time."""

    client: Any = field(default=None, kw_only=True, repr=False)
    folder: Path = field(default=Path(), kw_only=True)
    tables: Tables = field(default_factory=WeakKeyDictionary, kw_only=True, repr=False, compare=False)

    def map(self, work: Callable[[A], B], items: Iterable[A], *, records: int = 0) -> Iterator[B]:
        """Apply ``work`` to every item on some worker; results come in the order of the items."""
        rest, waiting = iter(items), deque[tuple[Parcel, Any]]()
        per_task = max(_RECORDS_PER_TASK // (records or self.block_records), 1)
        n_ahead = _TASKS_AHEAD * self.n_workers
        while True:
            while len(waiting) < n_ahead and (some := list(islice(rest, per_task))):
                waiting.append(self._send(work, some))
            if not waiting:
                return
            yield from self._receive(*waiting.popleft())

    @property
    def n_workers(self) -> int:
        """How many workers the scheduler knows; one, if there is none for a moment."""
        return max(self._count_workers(), 1)

    def spread(
        self,
        work: Callable[[A, Stopped], B],
        items: Sequence[A],
        here: Callable[[A], B],
        check: Callable[[], None],
    ) -> Iterator[B]:
        """Do each piece on some worker; who is no longer awaited sees that the parcel is gone."""
        try:
            parcel = Parcel.pack((work, items), self.folder, self.tables)
        except (PicklingError, AttributeError, TypeError):  # made by functions that have no name
            yield from map(here, items)
            return
        tasks = list[Any]()
        try:
            with _translate_losses():
                for number in range(len(items)):
                    tasks.append(self._submit(carry_out_piece, parcel, number, self.memory))
            for item, task in zip(items, tasks, strict=True):
                answer = self._await(task, check)
                yield here(item) if isinstance(answer, StaysHereError) else self._open(answer)
        finally:
            parcel.remove()
            self.client.cancel(tasks)

    def _submit(self, task: Callable[..., Any], parcel: Parcel, *more: int | None) -> Any:
        name = "-".join(map(str, ("sfumato", Path(parcel.path).stem, *more[:1])))
        return self.client.submit(
            task, parcel, *more, str(self.folder), fingerprint(), pure=False, retries=_RETRIES, key=name
        )

    def _send(self, work: Callable[[A], B], items: list[A]) -> tuple[Parcel, Any]:
        parcel = Parcel.pack((work, items), self.folder)
        with _translate_losses():
            return parcel, self._submit(carry_out_task, parcel)

    def _receive(self, parcel: Parcel, task: Any) -> Any:
        answer = self._await(task)
        parcel.remove()
        return self._open(answer)

    def _await(self, task: Any, check: Callable[[], None] = lambda: None) -> Any:
        """What a task answers, unless somebody stops the work before, or nobody is left to do it."""
        with _translate_losses():
            seen = time.monotonic()
            while True:
                check()
                try:
                    return task.result(timeout=_SECONDS_BETWEEN_LOOKS)
                except TimeoutError:
                    now = time.monotonic()
                    if now - seen > _SECONDS_WITHOUT_WORKERS:
                        if not self._count_workers():
                            raise _workers_killed_error() from None
                        seen = now

    def _count_workers(self) -> int:
        """How many workers the scheduler knows; there may be none for a moment."""
        with _translate_losses():
            return len(self.client.scheduler_info().get("workers", ()))

    def _open(self, answer: Any) -> Any:
        if isinstance(answer, SfumatoError):
            raise answer
        results = answer.open()
        answer.remove()
        return results


@contextmanager
def _translate_losses() -> Iterator[None]:
    """Say in a sentence that a worker or the scheduler is lost."""
    from distributed.client import ClosedClientError
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    try:
        yield
    except KilledWorker:
        raise _workers_killed_error() from None
    except (CancelledError, ClosedClientError, CommClosedError, OSError, TimeoutError):
        raise DataError(
            "The connection to the scheduler was lost. Nothing was written.",
            hint="start it again, and then this command",
        ) from None


def _workers_killed_error() -> DataError:
    return DataError(
        "The workers that did this were killed, perhaps for lack of memory. Nothing was written.",
        hint="start workers with more memory",
    )


def carry_out_task(parcel: Parcel, folder: str, expected: tuple[str, ...]) -> Answer:
    """Work on the items of a parcel, in a worker; the results are a parcel, or the sentence it ended with."""
    return _answer(parcel, folder, expected, lambda work, items: [work(item) for item in items])


def carry_out_piece(
    parcel: Parcel, number: int, memory: int | None, folder: str, expected: tuple[str, ...]
) -> Answer:
    """Do one of the long pieces of work of a parcel, in a worker, with large columns in files.

    ``memory`` limits each worker as it limits the process that sends the work.
    """
    with ColumnStore(Path(folder), memory=memory).active(), active(StreamEngine(memory=memory)):
        stopped = _IsGone(Path(parcel.path))
        return _answer(parcel, folder, expected, lambda work, items: work(items[number], stopped))


class _IsGone:
    """Whether a file is gone, looked up now and then."""

    def __init__(self, path: Path) -> None:
        self._path, self._looked, self._gone = path, time.monotonic(), False

    def __call__(self) -> bool:
        if not self._gone and time.monotonic() - self._looked > _SECONDS_BETWEEN_LOOKS:
            self._looked, self._gone = time.monotonic(), not self._path.is_file()
        return self._gone


def _answer(
    parcel: Parcel, folder: str, expected: tuple[str, ...], carry_out: Callable[[Any, Any], Any]
) -> Answer:
    if (own := fingerprint()) != expected:
        differing = ", ".join(sorted({*own} - {*expected}))
        return DataError(
            f"A worker differs from this machine ({differing}), so its results could too.",
            hint="install the same versions on all machines",
        )
    if not Path(parcel.path).is_file():
        return DataError(
            "A worker does not see the scratch folder.",
            hint="name one that all machines share, `--scratch DIR`",
        )
    try:
        return Parcel.pack(carry_out(*parcel.open()), Path(folder))
    except (SfumatoError, StaysHereError) as error:
        return error
    except Exception as error:  # noqa: BLE001  — its text may quote cells: its type is told, no more
        return DataError(
            f"Something went wrong inside sfumato, in a worker ({type(error).__name__}).",
            hint="please report it; try it with the engine `stream`",
        )


@cache
def fingerprint() -> tuple[str, ...]:
    """What results depend on to the last bit: the versions of libraries, and what the processor offers."""
    from importlib.metadata import version

    import numpy as np

    from sfumato.version import __version__

    extensions: Any = np.show_config(mode="dicts")
    processor = "+".join(extensions.get("SIMD Extensions", {}).get("found", ()))
    libraries = (f"{name} {version(name)}" for name in ("polars", "numpy", "numba", "scipy"))
    return (f"sfumato {__version__}", *libraries, f"processor with {processor}")


@contextmanager
def connect(name: str, folder: Path, memory: int | None) -> Iterator[ClusterEngine]:
    """An engine on processes of this machine (``local:2``), or on a scheduler at a TLS address."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ModuleNotFoundError:
        raise MissingDependencyError.of("distributed", extra="cluster", purpose="work on a cluster") from None
    with dask.config.set(_SETTINGS):
        if name.startswith("tls://"):
            with _client_of(name) as client:
                yield ClusterEngine(memory=memory, client=client, folder=folder)
            return
        with (
            LocalCluster(
                n_workers=_number_of(name), threads_per_worker=1, processes=True, security=True,
                dashboard_address="127.0.0.1:0", scheduler_kwargs={"dashboard": False}, memory_limit=0,
                silence_logs=50, host="127.0.0.1",
            ) as cluster,
            Client(cluster) as client,
        ):  # fmt: skip
            yield ClusterEngine(memory=memory, client=client, folder=folder)


def _number_of(name: str) -> int:
    number = name.removeprefix("local").removeprefix(":") or "2"
    if not number.isdecimal() or not int(number):
        raise ParameterError(f"There is no engine `{name}`.", hint="write local:2 for two processes")
    return int(number)


@contextmanager
def _client_of(address: str) -> Iterator[Any]:
    """A client of a scheduler that both sides have shown their certificates to."""
    from distributed import Client, Security

    security = Security(require_encryption=True)
    if not security.get_connection_args("client").get("ssl_context"):
        raise ParameterError(
            "A cluster needs certificates, since whoever reaches an open scheduler can run code on it.",
            hint="set DASK_DISTRIBUTED__COMM__TLS__CA_FILE, …__CLIENT__CERT and …__CLIENT__KEY",
        )
    try:
        client = Client(address, security=security, timeout=_SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, TimeoutError):
        raise DataError(
            f"No scheduler answers at {address}.", hint="is it started, and with these certificates?"
        ) from None
    with client:
        yield client

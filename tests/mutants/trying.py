"""Tries mutants within one run of pytest: each mutant has a process of its own, and collects the tests it is tried with.

Nothing is collected before: a test that makes a table where it is imported starts the threads of polars, and a fork has
none of them, so that it would wait for ever.
"""

import ast
import contextlib
import hashlib
import importlib
import json
import os
import resource
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mutants.changes import Mutant
from mutants.planting import load, planted
from mutants.reach import Reach, Trace, file_hash, texts_of
from mutants.rooms import ROOMS

#: Tests are traced in all files that may be mutated, whichever are today.
ALL_FILES = sorted({file for room in ROOMS.values() for file in room.files})

#: The tests of a file are traced for so many times the seconds that a mutant may take; those that come later are not asked.
TRACE_FACTOR = 5
NEVER = 1e9

#: What is said of a mutant that no test noticed. One that waits for ever may be the fault of the fork.
UNNOTICED = frozenset({"survived", "unreached", "waited"})


class Trying:
    """A plugin of pytest that runs, instead of all tests, those that reach each mutant until one fails."""

    def __init__(self, mutants: list[Mutant], files: list[str], folder: Path, *, budget: float) -> None:
        self._mutants, self._files, self._budget = mutants, files, budget
        self._reach_file, self._results_file = folder / "reach.json", folder / "results.json"
        self._results: dict[str, dict[str, Any]] = _read(self._results_file)
        self._tests: dict[str, dict[str, Any]] = {}
        self._sound: dict[str, bool] = {}

    def result_of(self, mutant: Mutant) -> str | None:
        """The test that noticed it, ``survived``, ``unreached``, or None where it was not tried."""
        return self._results.get(_key(mutant), {}).get(mutant.change, {}).get("result")

    # --------------------------------------------------------------------------------------- hooks of pytest

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool:
        """Collect nothing yet; a mutant need not be shown by the smallest example."""
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", settings.get_profile("quick"), phases=phases, database=None)
        settings.load_profile("mutants")
        session.items = []
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Trace what was not traced yet, then try each mutant that was not tried yet."""
        self._session = session
        paths = _files_in(session.config.args)
        _import_what_is_imported(paths)
        functions = load(self._files)
        assert threading.active_count() == 1 and not _has_threads_of_polars(), "a fork would wait for ever"  # noqa: PT018
        self._trace(paths)
        reach = Reach(self._tests, self._files)
        killers: dict[str, int] = {}
        for number, mutant in enumerate(self._mutants, 1):
            tests = self._chosen(mutant, reach, killers)
            kept = self._results.setdefault(_key(mutant), {})
            tried = self._digest(tests)
            before = kept.get(mutant.change)
            if before and (before["result"] not in UNNOTICED or before["tests"] == tried):
                continue
            result = self._try(mutant, functions, [test for test, _ in tests], sum(s for _, s in tests))
            killers[result] = killers.get(result, 0) + 1
            kept[mutant.change] = {"result": result, "tests": tried}
            self._results_file.write_text(json.dumps(self._results, indent=0), encoding="utf-8")
            print(
                f"\r{number}/{len(self._mutants)} {mutant.file}: {result}"[:150], file=sys.stderr, flush=True
            )
        return True

    # ---------------------------------------------------------------------------------------------- tracing

    def _trace(self, paths: list[Path]) -> None:
        """Which lines each test reaches: read where its file is as it was, else found in a process of its own."""
        kept, texts = _read(self._reach_file), texts_of(ALL_FILES)
        limit = TRACE_FACTOR * self._budget
        for path in paths:
            name, asked = str(path.relative_to(Path(__file__).parents[1])), file_hash(path)
            before = kept.get(name, {})
            if before.get("asked") != asked or before["cut_after"] < limit:
                print(f"tracing {name}", file=sys.stderr, flush=True)
                answer = _in_a_process(lambda path=path: self._traced(path, texts, limit), 3 * limit)
                if answer is None:
                    print(f"{name} was left out: it took too long, or broke", file=sys.stderr)
                kept[name] = {"asked": asked, **(answer or {"cut_after": limit, "tests": {}})}
                self._reach_file.write_text(json.dumps(kept), encoding="utf-8")
            self._tests.update(kept[name]["tests"])

    def _traced(self, path: Path, texts: dict[str, str], limit: float) -> dict[str, Any]:
        trace, tests, spent = Trace(ALL_FILES), {}, 0.0
        for item, following in pairwise([*self._collected(path), None]):
            started = time.process_time()
            with trace:
                passed = self._passes(item, following)
            seconds = time.process_time() - started
            if passed and trace.lines:
                reached = {name: [texts[name], sorted(lines)] for name, lines in trace.lines.items()}
                tests[item.nodeid] = {"seconds": round(seconds, 3), "reached": reached}
            spent += seconds
            if spent > limit:
                return {"cut_after": limit, "tests": tests}
        return {"cut_after": NEVER, "tests": tests}

    def _collected(self, path: Path) -> list[pytest.Item]:
        """The tests of a file, in the process that runs them."""
        return list(self._session.perform_collect([str(path)]))

    # ----------------------------------------------------------------------------------------------- trying

    def _chosen(self, mutant: Mutant, reach: Reach, killers: dict[str, int]) -> list[tuple[str, float]]:
        """Tests of the file's own first, then the fastest, as many as the time allows; those that noticed much begin."""
        own = f"/test_{Path(mutant.file).stem.lstrip('_')}.py"
        chosen, seconds = [], 0.0
        for test, cost in sorted(reach.tests_of(mutant), key=lambda each: (own not in each[0], each[1])):
            if not chosen or seconds + cost <= self._budget:
                chosen.append((test, cost))
                seconds += cost
        return sorted(chosen, key=lambda each: (-min(killers.get(each[0], 0), 3), each[1]))

    def _digest(self, tests: list[tuple[str, float]]) -> str:
        files = {test.split("::")[0] for test, _ in tests}
        root = Path(__file__).parents[2]
        texts = [*sorted(test for test, _ in tests), *(file_hash(root / each) for each in sorted(files))]
        return hashlib.sha256(" ".join(texts).encode()).hexdigest()[:12]

    def _try(self, mutant: Mutant, functions: dict, tests: list[str], seconds: float) -> str:
        if not tests:
            return "unreached"
        # Planted in this process, so that a mutant that cannot be is heard of.
        with planted(mutant, functions):
            result = (
                _in_a_process(lambda: self._noticing(tests), 10 + 3 * seconds, waited="waited") or "timeout"
            )
        if result not in tests or self._is_sound(result):
            return result
        return self._try(mutant, functions, [test for test in tests if test != result], seconds)

    def _is_sound(self, test: str) -> bool:
        """Whether a test that noticed something passes alone where nothing is changed."""
        if test not in self._sound:
            self._sound[test] = _in_a_process(lambda: self._noticing([test]), 600) == "survived"
        return self._sound[test]

    def _noticing(self, tests: list[str]) -> str:
        """The first test that fails."""
        items: dict[str, pytest.Item] = {}
        for test, following in pairwise([*tests, None]):
            for each in (test, following):
                if each is not None and each not in items:
                    path = self._session.config.rootpath / each.split("::")[0]
                    items |= {item.nodeid: item for item in self._collected(path)}
            if not self._passes(items[test], following and items[following]):
                return test
        return "survived"

    def _passes(self, item: pytest.Item, following: pytest.Item | None) -> bool:
        """Run one test; whether it passes or is skipped."""
        self._failed = False
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        return not self._failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Hear of a failure."""
        self._failed |= report.failed


def _in_a_process(work: Callable[[], Any], seconds: float, *, waited: Any = None) -> Any:
    """Do something in a fork and give its answer; None if it takes more seconds of CPU, or dies.

    ``waited`` is the answer if it waits, and does not end.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        with contextlib.suppress(BaseException), os.fdopen(writing, "wb") as pipe:
            pipe.write(json.dumps(work()).encode())
        os._exit(0)
    os.close(writing)
    answer, until = b"", time.monotonic() + 10 * seconds + 60  # it may wait, or share the machine
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        while (is_there := bool(select.select([pipe], [], [], max(until - time.monotonic(), 0))[0])) and (
            piece := pipe.read(1 << 16)
        ):
            answer += piece
    os.kill(child, signal.SIGKILL)  # or a zombie, until it is waited for
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if not is_there:
        return waited
    return json.loads(answer) if answer else None


def _files_in(places: list[str]) -> list[Path]:
    """The files of tests in folders, or named."""
    paths = [Path(each) for each in places]
    found = [sorted(each.rglob("test_*.py")) if each.is_dir() else [each] for each in paths]
    return list(dict.fromkeys(path for files in found for path in files))


def _import_what_is_imported(paths: list[Path]) -> None:
    """Import all methods and measures, and what files of tests import of libraries, once for all forks."""
    from sfumato.core import registry

    registry.measures()
    registry.methods()
    for path in paths:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            for name in [node.module] if isinstance(node, ast.ImportFrom) else names:
                if name and name.split(".")[0] in {
                    "sfumato",
                    "numpy",
                    "polars",
                    "scipy",
                    "hypothesis",
                    "sklearn",
                }:
                    importlib.import_module(name)


def _has_threads_of_polars() -> bool:
    tasks = Path("/proc/self/task").glob("*/comm")
    return any(each.read_text(encoding="utf-8").startswith("polars-0") for each in tasks)


def _key(mutant: Mutant) -> str:
    return f"{mutant.function}@{mutant.digest}"


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}

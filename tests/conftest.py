"""What all tests share."""

import fcntl
import functools
import gc
import os
import random
import secrets
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from xdist.scheduler.loadscope import LoadScopeScheduling

import sfumato.methods
from effort import FULL
from sfumato.kernels.threads import CompileAllowance

# Processes share the cores, and what tests leave behind is little: looking for it often took a tenth of the time.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
os.environ.pop("COLUMNS", None)  # a worker is told the width of the screen that it does not write to
gc.set_threshold(200_000, 50, 100)

# The first call of a kernel compiles it, so no example has a deadline; derandomised, so that CI repeats.
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=6)
settings.register_profile("full", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("full" if FULL else "quick")
# Hypothesis tries the constants of whatever modules are loaded, and which are depends on the tests that ran before.
providers.is_local_module_file = lambda _path: False

# Small work goes by kernels here, whatever was done before; that it may go by numpy has tests of its own.
CompileAllowance.granted = False

SHARED = Path(
    os.environ.get("SFUMATO_REFERENCE_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
)


#: The families of methods: tests about them share kernels.
FAMILIES = {path.stem for path in Path(sfumato.methods.__file__).parent.glob("[!_]*.py")}


def compiling_one_at_a_time(work):
    """Have processes wait for each other: who comes second finds the kernel compiled."""
    turn, depth = Path(__file__).open(), 0  # noqa: SIM115  — open as long as the process

    @functools.wraps(work)
    def wait_and_work(*arguments):
        nonlocal depth
        with global_compiler_lock:  # threads take turns too; compiling one kernel compiles those it calls
            if depth == 0:
                fcntl.flock(turn, fcntl.LOCK_EX)
            depth += 1
            try:
                return work(*arguments)
            finally:
                depth -= 1
                if depth == 0:
                    fcntl.flock(turn, fcntl.LOCK_UN)

    return wait_and_work


Dispatcher.compile = compiling_one_at_a_time(Dispatcher.compile)


#: Folders whose files take long: they go first, so that no process is left alone with one at the end.
LONG_FIRST = ("browser", "contract", "web", "cli", "reference", "property")


def _group_of(path: Path) -> str:
    """Tests of one file stay in one process, and those of all methods in one: only that compiles their kernels."""
    about = path.stem.removeprefix("test_")
    of_methods = about == "methods" or path.parent.name == "methods" or about in FAMILIES
    return "methods" if of_methods else str(path)


class _ByGroup(LoadScopeScheduling):
    """Deal groups to processes; xdist's own marker of groups is not heard by every version of pytest."""

    def _split_scope(self, nodeid):
        return _group_of(Path(nodeid.split("::")[0]))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Have groups stay together."""
    return _ByGroup(config, log)


def pytest_collection_modifyitems(items):
    """Mark what `make prove` runs (properties, and what is slow), and put first what takes long."""
    turns = {}
    for item in items:
        if item.get_closest_marker("slow") or hasattr(getattr(item, "obj", None), "hypothesis"):
            item.add_marker(pytest.mark.prove)
        folder = item.path.parent.name
        of_methods = _group_of(item.path) == "methods"
        turns[item] = (
            -1 if of_methods else LONG_FIRST.index(folder) if folder in LONG_FIRST else len(LONG_FIRST)
        )
    items.sort(key=turns.__getitem__)


@pytest.fixture(autouse=True)
def _chance_of_its_own(request, monkeypatch):
    """Where nobody gives a seed, draw it from the test's name: what passes here passes elsewhere."""
    monkeypatch.setattr(secrets, "randbits", random.Random(request.node.nodeid).getrandbits)


@pytest.fixture
def reference_data():
    """Give the path of a reference data file, skipping where the folder is absent."""

    def find(name: str) -> Path:
        path = SHARED / name
        if not path.exists():
            pytest.skip(f"the reference data set {name} is not here")
        return path

    return find

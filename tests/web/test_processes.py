"""Processes end with the server, whichever way it ends, and leave nothing unfinished behind."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pages import Client, serving

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no /proc here"),
]
ANSWERS = {
    "role:name": "identifier",
    "role:age": "key",
    "role:sex": "key",
    "role:illness": "sensitive",
}


def children(process):
    """The processes that a process has started, and theirs."""
    found = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *children(child)]
    return found


def is_alive(process):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def wait_until(holds, seconds=120):
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.1)
    return holds()


@pytest.fixture
def data(folder, tmp_path):
    place = tmp_path / "data"
    place.mkdir()
    (place / "people.csv").write_bytes((folder / "people.csv").read_bytes())
    return place


@pytest.fixture
def process(data, tmp_path):
    """`sfumato web` as it is started in a terminal."""
    own = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config"), "HOME": str(tmp_path)}
    made = subprocess.Popen(
        [sys.executable, "-m", "sfumato", "web", ".", "--no-browser"], cwd=data, env=own, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    yield made
    made.kill()
    made.wait()
    made.stdout.close()


def client_of(process):
    address = next(word for line in process.stdout for word in line.split() if word.startswith("http"))
    client = Client.__new__(Client)
    client.port, client.cookie = int(address.split(":")[2].partition("/")[0]), ""
    client.token, client.scheme = address.partition("token=")[2], "http"
    assert wait_until(lambda: _answers(client))
    client.enter()
    return client


def _answers(client):
    try:
        return client.ask("GET", "/nowhere")[0].status == 403
    except OSError:
        return False


@pytest.mark.parametrize(
    "ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda each: each.name
)
def test_no_process_stays_when_the_server_ends(process, data, ending):
    client = client_of(process)
    session = client.open("people.csv", **ANSWERS)
    client.post(f"/desk/{session}/jobs/compare", {"methods": ["mdav", "rank-swapping", "pram"]})
    assert wait_until(lambda: len(children(process.pid)) >= 2)
    started = children(process.pid)
    process.send_signal(ending)
    process.wait(20)
    assert wait_until(lambda: not any(map(is_alive, started)))
    assert not [each.name for each in data.iterdir() if each.name.startswith(".") or each.is_dir()]


def test_a_server_within_python_leaves_no_child(data, tmp_path):
    before = {each.pid for each in multiprocessing.active_children()}
    with serving(data, tmp_path / "s.sqlite") as made:
        client = Client(made)
        client.enter()
        session = client.open("people.csv", **ANSWERS)
        client.post(f"/desk/{session}/jobs/compare", {"methods": ["mdav", "rank-swapping", "pram"]})
        own = made.guard.app.state.own
        assert wait_until(lambda: own.jobs._running)
        os.kill(own.desk(session)._process.pid, signal.SIGSTOP)  # it is asked something as the server ends
        asking = threading.Thread(target=lambda: _ask(client, session), daemon=True)
        asking.start()
        time.sleep(0.3)
    assert wait_until(lambda: not {each.pid for each in multiprocessing.active_children()} - before)
    asking.join(10)
    assert not asking.is_alive()


def _ask(client, session):
    with contextlib.suppress(OSError, ValueError):
        client.get(f"/desk/{session}")


def test_a_file_that_could_not_be_stored_leaves_nothing(tmp_path):
    from sfumato.web.start_page import _store

    class Broken:
        def read(self, size):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        _store(Broken(), tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []


def test_the_server_imports_neither_numba_nor_scipy():
    """Nor polars nor NumPy: what needs a table is asked of a process of its own."""
    code = (
        "import sys, sfumato.web.serve, sfumato.web.app;"
        "print(*sorted({each.partition('.')[0] for each in sys.modules} & {'numba', 'scipy', 'polars', 'numpy'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []

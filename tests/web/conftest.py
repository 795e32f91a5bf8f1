"""A page that is really served, on a folder of its own, and a client that speaks plain HTTP."""

import contextlib
import http.client
import json
import random
import threading
import time
import urllib.parse

import polars as pl
import pytest

pytest.importorskip("starlette", reason="the extra `web` is not installed")
pytest.importorskip("uvicorn", reason="the extra `web` is not installed")

from sfumato.web.serve import PageServer

SECRET = "Zanzibar"  # a cell that must be nowhere


class Client:
    """What a browser would send, and whatever else a test wants to send."""

    def __init__(self, server):
        self.port, self.cookie, self.token = server.port, "", server.guard.token

    def ask(self, verb, path, form=None, *, headers=None, body=None, host=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        own = f"127.0.0.1:{self.port}"
        sent = {"Host": host or own, "Accept": "application/json", "Cookie": self.cookie}
        if form is not None:
            body = urllib.parse.urlencode(form, doseq=True).encode()
            sent |= {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://{own}"}
        connection.request(verb, path, body=body, headers={**sent, **(headers or {})})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer, data

    def get(self, path, **more):
        answer, data = self.ask("GET", path, **more)
        return answer.status, _content(answer, data)

    def post(self, path, form, **more):
        answer, data = self.ask("POST", path, form, **more)
        return answer.status, _content(answer, data)

    def enter(self):
        answer, _ = self.ask("GET", f"/?token={self.token}")
        self.first = answer.getheader("set-cookie")
        self.cookie = self.first.split(";")[0]
        return answer

    def wait_for(self, job, seconds=120):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            _, content = self.get(job)
            if content["job"]["state"] in {"done", "failed", "stopped"}:
                return content["job"]
            time.sleep(0.2)
        raise AssertionError("the job did not end")


def _content(answer, data):
    is_json = "json" in (answer.getheader("content-type") or "")
    return json.loads(data) if is_json else data.decode()


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("served")
    rows, rng = range(120), random.Random(1)
    pl.DataFrame({
        "name": [f"{SECRET} {i}" for i in rows],
        "age": [rng.randrange(20, 60) for _ in rows],
        "sex": [rng.choice("fm") for _ in rows],
        "illness": [rng.choice(["flu", "asthma", "cold"]) for _ in rows],
    }).write_csv(place / "people.csv")  # fmt: skip
    return place


@contextlib.contextmanager
def serving(folder, history):
    made = PageServer(folder, history)
    thread = threading.Thread(target=made.server.run, kwargs={"sockets": [made._socket]}, daemon=True)
    thread.start()
    while not made.server.started:
        time.sleep(0.05)
    try:
        yield made
    finally:
        made.server.should_exit = True
        thread.join(20)


@pytest.fixture(scope="session")
def server(folder, tmp_path_factory):
    with serving(folder, tmp_path_factory.mktemp("history") / "sessions.sqlite") as made:
        yield made


@pytest.fixture(scope="module")
def own_client(tmp_path_factory):
    """A page on a folder of the module's own, which its tests may treat badly."""
    place = tmp_path_factory.mktemp("own")
    with serving(place, tmp_path_factory.mktemp("history") / "sessions.sqlite") as made:
        client = Client(made)
        client.enter()
        client.folder, client.own = place, made.guard.app.state.own
        yield client


@pytest.fixture(scope="session")
def client(server):
    made = Client(server)
    made.enter()
    return made

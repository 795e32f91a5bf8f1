"""Pages on folders of their own."""

import random
import shutil

import polars as pl
import pytest

from pages import SECRET, Client, serving

pytest.importorskip("starlette", reason="the extra `web` is not installed")
pytest.importorskip("uvicorn", reason="the extra `web` is not installed")


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
        client.own.rehearse = lambda *_: None  # a process more; the server that all share has it
        yield client


@pytest.fixture(scope="module")
def source(folder, request):
    """A file of the module's own: whoever opens the same file goes on in the same session."""
    name = f"{request.path.stem}.csv"
    shutil.copy(folder / "people.csv", folder / name)
    return name


@pytest.fixture(scope="session")
def client(server):
    made = Client(server)
    made.enter()
    made.jobs = server.guard.app.state.own.jobs.jobs
    return made


@pytest.fixture(scope="module", autouse=True)
def _no_job_is_left(client):
    """Stop what a file of tests has put in line at the page that all share: the next would wait for it."""
    yield
    for job in [each for each in client.jobs.values() if not each.is_over]:
        client.post(f"/jobs/{job.id}/stop", {})
        client.wait_for(f"/jobs/{job.id}")

"""One plan, one seed: what the page writes is what the command line writes, byte for byte."""

import shutil

import pytest
from click.testing import CliRunner

from sfumato.cli import cli
from sfumato.web.workers import Worker


def sfumato(*words):
    return CliRunner().invoke(cli, [str(each) for each in words])


@pytest.fixture(scope="module")
def made(own_client, folder):
    """The folder that the page writes of a plan with noise, which no seed was given for."""
    shutil.copy(folder / "people.csv", own_client.folder)
    roles = {"role:name": "identifier", "role:age": "key", "role:sex": "key", "role:illness": "sensitive"}
    session = own_client.open("people.csv", **roles)
    own_client.post(f"/desk/{session}", {"action": "remove-step", "number": 0})
    for step in ({"method": "rank-swapping", "columns": "age"}, {"method": "pram", "columns": "sex"}):
        status, content = own_client.post(f"/desk/{session}", {"action": "add-step", **step})
        assert status == 200, content
    _, content = own_client.post(f"/desk/{session}/jobs/release", {"override": "a test of equal bytes"})
    job = own_client.wait_for(content["next"])
    assert job["state"] == "done", job["sentence"]
    _, content = own_client.get(f"/release/{session}")
    return own_client.folder / content["results"]["release"]["folder"]


def test_the_command_line_verifies_what_the_page_wrote(made, monkeypatch):
    monkeypatch.chdir(made.parent)
    result = sfumato("verify", made.name)
    assert result.exit_code == 0, result.output


def test_the_same_seed_gives_equal_bytes(made):
    """`run --replay` takes the seed of the page's private trail, and the plan of its folder."""
    place = made.parent / "again" / "there"
    place.mkdir(parents=True)
    plan = (made / "private" / "plan.toml").read_text()
    (place / "plan.toml").write_text(plan.replace('"../release.csv"', '"again.csv"'))
    words = ("--replay", made / "private" / "trail.private.json", "--override", "a test of equal bytes")
    result = sfumato("run", place / "plan.toml", *words)
    assert result.exit_code == 0, result.output
    again = (place / "again.csv").read_bytes()
    assert again == (made / "release.csv").read_bytes()
    ages = [line.split(b",")[0] for line in again.splitlines()]
    assert ages != [line.split(b",")[1] for line in (made.parent / "people.csv").read_bytes().splitlines()]


def test_another_run_of_the_page_draws_another_seed(made):
    """So that equal bytes above are no accident."""
    worker = Worker(str(made.parent))
    try:
        toml = (made.parent / "people-plan.toml").read_text()
        worker._call(
            "carry_out_plan", lambda _: None, {"toml": toml, "folder": "other", "override": "a test"}
        )
    finally:
        worker.close()
    assert (made.parent / "other" / "release.csv").read_bytes() != (made / "release.csv").read_bytes()

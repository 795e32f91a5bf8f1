"""The page from a file to a verified release, by plain forms; and that it says what the other doors say."""

import json
import re
import sqlite3

import pytest

from pages import SECRET
from sfumato.recipes.plan import Plan


@pytest.fixture(scope="module")
def opened(client, source):
    roles = {"role:age": "key", "role:sex": "key", "role:illness": "sensitive"}
    session = client.open(source, profile="scientific", **roles)
    return session, client.plan_of(session)


@pytest.fixture
def desk(client, opened):
    return client.go_back(*opened)


def test_the_start_lists_files_of_the_folder(client):
    status, content = client.get("/")
    assert status == 200
    assert "people.csv" in content["files"]


def test_questions_propose_roles_with_reasons(client, desk):
    _, content = client.get(f"/questions/{desk}")
    roles = {each["name"]: each["role"] for each in content["overview"]["columns"]}
    assert roles["name"] == "identifier"
    assert all(each["role_reason"] for each in content["overview"]["columns"])
    assert {each["name"] for each in content["profiles"]} >= {"public", "scientific"}


def test_the_desk_scores_as_python_does(client, desk, folder, monkeypatch):
    from sfumato.core.run import Run
    from sfumato.releasing.carry_out import carry_out

    _, content = client.get(f"/desk/{desk}")
    shown = {
        (each["requirement"], each["scenario"]): each for each in content["results"]["score"]["requirements"]
    }
    monkeypatch.chdir(folder)
    outcome = carry_out(Plan.read(folder / content["plan_path"]), Run())
    assert shown
    for judgement in outcome.judgements:
        each = shown[str(judgement.requirement), judgement.scenario]
        assert each["met"] is judgement.is_met
        assert each["score"]["value"] == pytest.approx(judgement.score.value)


def test_a_change_is_kept_undone_and_done_again(client, desk, folder):
    _, before = client.get(f"/desk/{desk}")
    form = {"action": "change-step", "number": 0, "version": before["version_id"], "k": "7"}
    assert client.post(f"/desk/{desk}", form)[0] == 200
    _, after = client.get(f"/desk/{desk}")
    assert {each["name"]: each["value"] for each in after["steps"][0]["fields"]}["k"] == 7
    plan_file = folder / after["plan_path"]
    assert Plan.read(plan_file).recipe.steps[0].method.k == 7
    client.post(f"/desk/{desk}/move", {"to": "undo"})
    _, undone = client.get(f"/desk/{desk}")
    assert undone["version_id"] == before["version_id"]
    client.post(f"/desk/{desk}/move", {"to": "redo"})
    assert client.get(f"/desk/{desk}")[1]["version_id"] == after["version_id"]
    _, lines = client.get(f"/desk/{desk}/difference?from={before['version_id']}&to={after['version_id']}")
    assert any(line.startswith("+") and "k = 7" in line for line in lines["lines"])


def test_an_edit_from_outside_becomes_part_of_the_history(client, desk, folder):
    _, before = client.get(f"/desk/{desk}")
    plan_file = folder / before["plan_path"]
    plan_file.write_text(plan_file.read_text() + "\n# edited\n", encoding="utf-8")
    _, after = client.get(f"/desk/{desk}")
    assert after["versions"][-1]["action"] == "edited outside of this page"
    assert after["version_id"] != before["version_id"]


def test_a_plan_that_changed_elsewhere_is_not_overwritten(client, desk):
    _, now = client.get(f"/desk/{desk}")
    form = {"action": "change-step", "number": 0, "version": now["version_id"] - 1, "k": "9"}
    status, content = client.post(f"/desk/{desk}", form)
    assert status == 422
    assert "another window" in content["sentence"]
    assert client.get(f"/desk/{desk}")[1]["version_id"] == now["version_id"]


@pytest.mark.parametrize(
    ("form", "part"),
    [
        ({"action": "change-step", "number": 0, "k": "0"}, "must be"),
        ({"action": "change-step", "number": 99, "k": "3"}, "no step"),
        ({"action": "add-step", "method": "no-such"}, "no method"),
        ({"action": "nonsense"}, "no action"),
        ({"action": "set-role", "column": "nobody", "role": "key"}, "nobody"),
    ],
)
def test_what_is_wrong_is_a_sentence(client, desk, form, part):
    status, content = client.post(f"/desk/{desk}", form)
    assert status in {404, 422}
    assert part in content["sentence"]


def test_a_release_is_made_and_verified(client, desk, folder):
    client.post(f"/desk/{desk}", {"action": "change-step", "number": 0, "k": "20"})
    _, content = client.post(f"/desk/{desk}/jobs/release", {})
    job = client.wait_for(content["next"])
    assert job["state"] == "done", job["sentence"]
    _, content = client.get(f"/release/{desk}")
    made = folder / content["results"]["release"]["folder"]
    assert (made / "release.csv").is_file()
    assert SECRET not in (made / "release.csv").read_text()
    for form in ("internal", "public"):
        assert client.ask("GET", f"/release/{desk}/report/{form}")[0].status == 200
    _, content = client.post(f"/desk/{desk}/jobs/verify", {})
    assert client.wait_for(content["next"])["state"] == "done"
    assert client.get(f"/release/{desk}")[1]["results"]["verification"]["holds"]


def test_a_job_can_be_stopped(client, desk):
    _, content = client.post(f"/desk/{desk}/jobs/compare", {"methods": ["mdav", "rank-swapping", "pram"]})
    client.post(f"{content['next']}/stop", {})
    assert client.wait_for(content["next"])["state"] == "stopped"


def test_history_and_pages_hold_no_cell(client, desk, server):
    paths = ["/", f"/questions/{desk}", f"/desk/{desk}", f"/release/{desk}"]
    for path in paths:
        assert SECRET not in client.ask("GET", path, headers={"Accept": "text/html"})[1].decode()
    base = sqlite3.connect(server.history_path)
    kept = json.dumps(
        [base.execute(f"select * from {name}").fetchall() for name in ("session", "plan", "result")]
    )
    base.close()
    assert SECRET not in kept
    assert not re.search(r'"?seed"?\s*[:=]', kept)


def test_every_page_without_an_answer_is_a_sentence(client):
    for path in (
        "/desk/999",
        "/questions/999",
        "/release/999",
        "/jobs/999",
        "/static/x.js",
        "/nowhere",
        "/desk/x",
    ):
        status, content = client.get(path)
        assert status == 404, path
        assert content["sentence"]

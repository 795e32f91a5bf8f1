"""The desk: a search and a comparison that lead to a plan, two plans side by side, and records at risk."""

import json

import pytest

from sfumato.recipes.plan import Plan

pytestmark = pytest.mark.xdist_group("web")


@pytest.fixture(scope="module")
def desk(client):
    _, content = client.post("/open", {"source": "people.csv"})
    session = int(content["next"].rpartition("/")[2])
    roles = {"role:age": "key", "role:sex": "key", "role:illness": "sensitive"}
    client.post(f"/questions/{session}", {"then": "desk", "profile": "scientific", **roles})
    return session


def run_job(client, desk, kind, form):
    status, content = client.post(f"/desk/{desk}/jobs/{kind}", form)
    assert status == 200, content
    return client.wait_for(content["next"])


def html(client, path):
    return client.ask("GET", path, headers={"Accept": "text/html"})[1].decode()


def test_a_search_tells_its_candidates_and_ends_as_the_plan(client, desk, folder):
    _, before = client.get(f"/desk/{desk}")
    job = run_job(client, desk, "tune", {"minutes": "0.2"})
    assert job["state"] == "done", job["sentence"]
    assert job["found"]
    assert all(each["label"] and each["value"] is not None and each["steps"] for each in job["found"])
    _, after = client.get(f"/desk/{desk}")
    last = after["versions"][-1]
    assert last["action"].startswith("found by the search")
    assert (last["id"], last["parent"]) == (after["version_id"], before["version_id"])
    best = after["results"]["search"]["candidates"][0]
    assert Plan.read(folder / after["plan_path"]).recipe.to_list() == best["steps"]
    assert all(each["met"] for each in after["results"]["score"]["requirements"])
    assert best["label"] in html(client, f"/desk/{desk}").replace("&#39;", "'")


@pytest.mark.parametrize("minutes", ["soon", "0", "-1", "1e9", "nan"])
def test_minutes_that_are_none_are_a_sentence(client, desk, minutes):
    status, content = client.post(f"/desk/{desk}/jobs/tune", {"minutes": minutes})
    assert status == 422
    assert "minutes" in content["sentence"]


def test_a_comparison_ranks_says_why_not_and_can_be_used(client, desk, folder):
    _, now = client.get(f"/desk/{desk}")
    client.post(f"/desk/{desk}/move", {"to": now["versions"][0]["id"]})
    form = {"methods": ["mdav", "rank-swapping"], "intruder": now["intruders"][-1]["name"]}
    job = run_job(client, desk, "compare", form)
    assert job["state"] == "done", job["sentence"]
    assert len(job["found"]) == 3
    _, content = client.get(f"/desk/{desk}")
    ranking = content["results"]["comparison"]["ranking"]
    assert all(each["why_not"] for each in ranking if not each["rank"])
    assert client.get(f"/desk/{desk}/charts/comparison")[1]["map"]
    present = Plan.read(folder / content["plan_path"]).recipe.to_list()
    best = next(each for each in ranking if each["rank"] and each["steps"] != present)
    form = {"action": "use-recipe", "version": content["version_id"], "steps": json.dumps(best["steps"])}
    assert client.post(f"/desk/{desk}", form)[0] == 200
    _, after = client.get(f"/desk/{desk}")
    assert Plan.read(folder / after["plan_path"]).recipe.to_list() == best["steps"]
    assert after["results"]["comparison_of"]  # the map stays, and says of which plan it is
    assert "Use it" in html(client, f"/desk/{desk}")


@pytest.mark.parametrize("steps", ["", "{", "[1]", '[{"method": "no-such"}]', '{"a": 1}', "null"])
def test_steps_that_are_none_are_a_sentence(client, desk, steps):
    status, content = client.post(f"/desk/{desk}", {"action": "use-recipe", "steps": steps})
    assert status in {404, 422}
    assert content["sentence"]
    assert "inside sfumato" not in content["sentence"]

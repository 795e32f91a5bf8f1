"""The map: its ranking at every level is that of `study`, candidates are picked and used, and it fills."""

import json
from html import unescape

import numpy as np
import polars as pl
import pytest
from starlette.datastructures import QueryParams

import sfumato
from sfumato.recipes.plan import Plan
from sfumato.study.known_levels import at_level, known_levels
from sfumato.web import candidates
from sfumato.web.map_page import map_at

METHODS = ["mdav", "rank-swapping"]


@pytest.fixture(scope="module")
def opened(own_client):
    rng = np.random.default_rng(3)
    ages, incomes = rng.integers(20, 70, 80), rng.normal(3000, 500, 80).round()
    pl.DataFrame({"age": ages, "<b>income</b>": incomes}).write_csv(own_client.folder / "few.csv")
    roles = {"role:age": "key", "role:<b>income</b>": "key"}
    session = own_client.open("few.csv", profile="scientific", **roles)
    return session, own_client.plan_of(session)


@pytest.fixture
def desk(own_client, opened):
    return own_client.go_back(*opened)


@pytest.fixture(scope="module")
def job(own_client, opened):
    _, content = own_client.post(f"/desk/{opened[0]}/jobs/compare", {"methods": METHODS})
    done = own_client.wait_for(content["next"])
    assert done["state"] == "done", done["sentence"]
    return done


@pytest.fixture(scope="module")
def compared(own_client, job):
    """All that the server knows of the comparison."""
    return next(content for (_, name), content in own_client.own.drawn.items() if name == "comparison")


def html(client, path):
    return client.ask("GET", path, headers={"Accept": "text/html"})[1].decode()


def test_before_a_comparison_there_is_no_map(own_client):
    pl.DataFrame({"a": [1, 2, 3]}).write_csv(own_client.folder / "other.csv")
    _, content = own_client.post("/open", {"source": "other.csv"})
    session = int(content["next"].rpartition("/")[2])
    assert own_client.get(f"/desk/{session}/map")[0] == 404
    assert own_client.get("/jobs/99999/map")[0] == 404


def test_the_map_fills_while_it_runs(own_client, job):
    """What is settled is a chart: first the methods, then the settings of their lines."""
    lines = [each for each in job["found"] if each["line"]]
    assert len(job["found"]) - len(lines) == 1 + len(METHODS)
    assert lines
    assert all(place["risk"] is not None for each in lines for place in each["line"])
    status, spec = own_client.get(f"/jobs/{job['id']}/map")
    assert status == 200
    assert {row["label"] for row in spec["data"]["values"]} >= {each["label"] for each in lines}
    assert len(spec["data"]["values"]) <= 5_000


def test_its_own_level_shows_the_ranking_of_the_study(own_client, desk, compared):
    status, content = own_client.get(f"/desk/{desk}/map")
    assert status == 200
    found = content["map"]
    assert found["at"] == found["level"]
    assert found["ranking"] == compared["rankings"][compared["levels"].index(compared["level"])]
    assert not any(each["estimated"] for each in found["ranking"])
    assert {each["id"] for each in found["marks"]} == {"you", "original"}


def test_the_ranking_at_a_level_is_that_of_the_study():
    rng = np.random.default_rng(5)
    table = pl.DataFrame({"age": rng.normal(40, 10, 60), "income": rng.normal(3000, 500, 60)})
    study = sfumato.compare(table, METHODS, points=3, repeats=2, seed=1)
    labels = [each.step.method.title for each in study.outcomes]
    for level in known_levels(study)[::8]:
        found = candidates.ranking_at(study, level, labels)
        expected = at_level(study, level).outcomes
        assert [each["label"] for each in found] == [each.step.method.title for each in expected]
        assert [each["rank"] for each in found] == [each.rank for each in expected]
        assert [each["value"] for each in found] == [each.ranked and each.ranked.mean for each in expected]


def test_every_level_has_a_ranking_or_a_reason(own_client, desk, compared):
    for level in compared["levels"][::5]:
        _, content = own_client.get(f"/desk/{desk}/map?level={level}")
        assert content["map"]["at"] == level
        ranking = content["map"]["ranking"]
        assert len(ranking) == 1 + len(METHODS)
        assert all(each["rank"] or each["why_not"] for each in ranking)
        estimated = [each["id"] for each in ranking if each["estimated"]]  # some may be measured just there
        assert [each["id"] for each in content["map"]["estimates"]] == estimated


def test_what_is_not_reached_says_by_how_much(compared):
    missed = [each for ranking in compared["rankings"] for each in ranking if "misses" in each["why_not"]]
    assert missed
    assert all(" by " in each["why_not"] for each in missed)


@pytest.mark.parametrize("level", ["x", "nan", "inf", "1;2"])
def test_a_level_that_is_none_is_a_sentence(own_client, desk, compared, level):
    status, content = own_client.get(f"/desk/{desk}/map?level={level}")
    assert (status, "level" in content["sentence"]) == (422, True)


def test_levels_beyond_the_map_are_its_ends(own_client, desk, compared):
    for level, end in (("-5", 0), ("1e9", -1), ("0,5", None)):
        _, content = own_client.get(f"/desk/{desk}/map?level={level}")
        if end is not None:
            assert content["map"]["at"] == compared["levels"][end]


def test_one_candidate_is_shown_and_two_stand_side_by_side(own_client, desk, compared):
    path = f"/desk/{desk}/map?candidate=p0"
    _, content = own_client.get(path)
    (one,) = content["map"]["picked"]
    assert one["id"] == "p0"
    assert content["map"]["rings"][0]["risk"] == one["risk"]["value"]
    page = unescape(html(own_client, path))
    assert one["setting"] in page
    assert "Use it" in page
    _, content = own_client.get(f"{path}&candidate=original&candidate=p1")
    assert [each["id"] for each in content["map"]["picked"]] == ["p0", "original"]
    assert "What do you get from this" in html(own_client, f"{path}&candidate=original")
    assert own_client.get(f"/desk/{desk}/map?candidate=<b>")[0] == 404


def test_a_candidate_of_the_map_can_be_used(own_client, desk, compared):
    _, now = own_client.get(f"/desk/{desk}")
    steps = compared["points"][-1]["steps"]
    form = {"action": "use-recipe", "version": now["version_id"], "steps": json.dumps(steps)}
    assert own_client.post(f"/desk/{desk}", form)[0] == 200
    _, after = own_client.get(f"/desk/{desk}")
    assert Plan.read(own_client.folder / after["plan_path"]).recipe.to_list() == steps
    assert after["results"]["comparison"]["ranking"]
    page = html(own_client, f"/desk/{desk}?level={compared['levels'][0]}")
    assert "when you compared" in page
    assert "<b>" not in page


def test_the_chart_has_a_line_to_move_and_names_for_its_marks(own_client, desk, compared):
    spec = own_client.get(f"/desk/{desk}/charts/comparison")[1]["map"]
    assert {each["name"] for each in spec["params"]} == {"level"}
    rows = [row for layer in spec["layer"] for row in layer.get("data", {}).get("values", [])]
    names = {row["id"] for row in rows if "id" in row}
    known = {each["id"] for each in (*compared["points"], *compared["marks"])}
    assert known <= names
    assert len(rows) <= 5_000


def test_a_map_without_points_or_marks_still_answers(compared):
    bare = {**compared, "points": [], "marks": [], "levels": [0.5], "rankings": [[]], "level": 0.5}
    found = map_at(bare, QueryParams(""))
    assert (found["at"], found["ranking"], found["picked"]) == (0.5, [], [])


def test_a_settled_line_has_no_rank():
    line = [{"title": "", "method": "mdav", "risk": 0.1, "utility": 0.2}]
    settled = candidates.candidate_of({"line": line, "axes": ["dbrl", "earth-movers-distance"]})
    assert (settled["order"], settled["line"]) == (None, [{"risk": 0.1, "utility": 0.2}])


def test_pictures_have_thresholds_and_a_lattice_whose_levels_can_be_used(own_client, desk, compared):
    _, now = own_client.get(f"/desk/{desk}")
    steps = json.dumps([{"method": "global-recoding", "parameters": {"k": 3}}])
    own_client.post(f"/desk/{desk}", {"action": "use-recipe", "version": now["version_id"], "steps": steps})
    _, content = own_client.post(f"/desk/{desk}/jobs/pictures", {})
    assert own_client.wait_for(content["next"])["state"] == "done"
    _, content = own_client.get(f"/desk/{desk}")
    pictures, specs = content["results"]["pictures"], own_client.get(f"/desk/{desk}/charts/pictures")[1]
    stops, at = pictures["threshold"]["stops"], pictures["threshold"]["at"]
    assert stops[at]["threshold"] == specs["risks-0"]["params"][0]["value"]
    counts = [each["at_risk"] for each in stops]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 0
    (lattice,) = pictures["lattices"]
    assert lattice["nodes"][0]["state"] in {"optimum", "met"}
    assert len(specs["lattice-0"]["data"]["values"]) <= 500
    assert set(pictures["about"]) <= set(specs)
    assert "Which levels meet what is asked?" in html(own_client, f"/desk/{desk}")
    form = {"action": "use-recipe", "version": content["version_id"]}
    form["steps"] = json.dumps(lattice["nodes"][0]["steps"])
    assert own_client.post(f"/desk/{desk}", form)[0] == 200
    _, after = own_client.get(f"/desk/{desk}")
    assert [each["method"] for each in after["steps"]] == ["recoding"]
    assert all(len(spec.get("data", {}).get("values", ())) <= 5_000 for spec in specs.values())

"""Columns: a spark at once, a drawer with counts, and a hierarchy that CLI and Python read as the page does."""

import math
import random
import re
import stat
from collections import Counter
from html import unescape

import polars as pl
import pytest
from click.testing import CliRunner

from sfumato.cli import cli
from sfumato.core.run import Run
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import carry_out

RARE = ("Quaxley", "Zennor", "Thixby")  # towns of few people, which no page may name
TOWNS = ["Ashford"] * 60 + ["Barton"] * 30 + ["Corby"] * 15 + ["Dover"] * 12
TOWNS += [RARE[0]] * 4 + [RARE[1]] * 3 + [RARE[2]]
ROWS, CHANCE = range(len(TOWNS)), random.Random(5)
PEOPLE = pl.DataFrame({
    "number": [f"Person {i}" for i in ROWS], "age": [CHANCE.randrange(18, 80) for _ in ROWS],
    "town": CHANCE.sample(TOWNS, len(TOWNS)), "pay": [1000 + 7 * CHANCE.randrange(900) for _ in ROWS],
    "ill": [CHANCE.choice(["flu", "cold"]) for _ in ROWS],
})  # fmt: skip
ROLES = {"number": "identifier", "age": "key", "town": "key", "pay": "other", "ill": "sensitive"}


def at_desk(client, name, frame=PEOPLE, roles=ROLES):
    frame.write_csv(client.folder / name)
    return client.open(name, **{f"role:{column}": role for column, role in roles.items()})


@pytest.fixture(scope="module")
def opened(own_client):
    """A desk whose one step shows towns and ages at the first level of their hierarchies."""
    session = at_desk(own_client, "towns.csv")
    for form in ({"action": "remove-step"}, {"action": "add-step", "method": "recoding"}):
        assert own_client.post(f"/desk/{session}", form)[0] == 200
    return session, own_client.plan_of(session)


@pytest.fixture
def desk(own_client, opened):
    return own_client.go_back(*opened)


def html(client, path):
    answer, data = client.ask("GET", path, headers={"Accept": "text/html"})
    return answer.status, unescape(data.decode())


def column(client, desk, name):
    status, content = client.get(f"/desk/{desk}/columns/{PEOPLE.columns.index(name)}")
    assert status == 200, content
    return content["column"] | (content["column"]["became"] or {})


def change(client, desk, name, /, **form):
    return client.post(f"/desk/{desk}/columns/{PEOPLE.columns.index(name)}/hierarchy", form)


def level_of(client, desk, name, level):
    return column(client, desk, name)["hierarchy"]["levels"][level]


def codes_of(level, *labels):
    known = {each["label"]: each["code"] for each in level["labels"]}
    return [known[label] for label in labels]


# Sparks and drawers ---------------------------------------------------------------------------------------


def test_a_spark_has_the_heights_of_the_counts_and_no_value(own_client, desk):
    _, content = own_client.get(f"/desk/{desk}")
    sparks = content["results"]["score"]["sparks"]
    assert set(sparks) == {"age", "town", "pay", "ill"}  # none that names people
    assert all(len(bars) <= 24 for each in sparks.values() for bars in each.values())
    assert all(len(each["before"]) == len(each["after"]) for each in sparks.values())
    shares = [round(count / len(PEOPLE), 4) for _, count in Counter(PEOPLE["ill"]).most_common()]
    assert sparks["ill"]["before"] == [math.ceil(20 * share / max(shares)) for share in shares]
    assert sparks["pay"]["before"] == sparks["pay"]["after"]
    status, page = html(own_client, f"/desk/{desk}")
    assert status == 200
    assert page.count('class="spark-after"') == 4
    assert "style=" not in page


def test_a_drawer_tells_what_became_of_a_column(own_client, desk):
    found = column(own_client, desk, "pay")
    assert found["sentence"] == "pay untouched"
    for row in found["quantiles"]:
        exact = PEOPLE["pay"].quantile(row["share"], interpolation="linear")
        assert row["before"] == pytest.approx(exact, rel=0.01)
        assert row["after"] == row["before"]
    assert (found["suppressed"], found["present"]) == (0, len(PEOPLE))
    assert found["hierarchy"] is None  # it is no key
    status, page = html(own_client, f"/desk/{desk}/columns/3")
    assert status == 200
    assert "Quantiles" in page


def test_a_drawer_of_a_key_says_whom_it_singles_out(own_client, desk):
    counts = Counter(PEOPLE["age"])
    alone = sum(count == 1 for count in counts.values())
    found = column(own_client, desk, "age")["exposure"]
    assert found["before"] == {
        "k": min(counts.values()),
        "alone": alone,
        "of": len(PEOPLE),
        "counted": "records",
    }
    assert found["after"]["alone"] <= alone
    _, questions = own_client.get(f"/questions/{desk}")
    shown = {each["name"]: each["alone"] for each in questions["overview"]["columns"]}
    assert (shown["age"], shown["town"], shown["number"]) == (alone, 1, len(PEOPLE))


def test_a_drawer_names_no_rare_value(own_client, desk):
    shares = {each["value"] for each in column(own_client, desk, "town")["shares"]}
    assert "Ashford" in shares
    for name in range(len(PEOPLE.columns)):
        for path in (f"/desk/{desk}/columns/{name}", f"/desk/{desk}"):
            _, page = html(own_client, path)
            assert not any(rare in page for rare in (*RARE, "Person 1"))


@pytest.mark.parametrize("number", ["99", "-1", "x", "9" * 30])
def test_a_column_that_is_not_there_is_a_sentence(own_client, desk, number):
    for verb, path in (("GET", ""), ("POST", "/hierarchy")):
        form = {} if verb == "POST" else None
        answer, data = own_client.ask(verb, f"/desk/{desk}/columns/{number}{path}", form)
        assert answer.status in {404, 422}
        assert b"sentence" in data


def test_suppressed_cells_are_counted(own_client, desk):
    form = {"action": "change-step", "levels": "0", "levels:age": "99"}
    assert own_client.post(f"/desk/{desk}", form)[0] == 200
    assert column(own_client, desk, "age")["suppressed"] == len(PEOPLE)
    assert column(own_client, desk, "town")["suppressed"] == 0


def test_odd_columns_have_drawers(own_client):
    frame = pl.DataFrame({
        "age": [30, 31] * 20, "same": ["f"] * 40, "lacking": [None] * 39 + ["f"],
        "<b>": ["", "1", "two", "=1+1", "<b>"] * 8, "empty": pl.Series([None] * 40, dtype=pl.String),
    })  # fmt: skip
    session = at_desk(own_client, "odd.csv", frame, dict.fromkeys(frame.columns, "key"))
    for number in range(frame.width):
        status, content = own_client.get(f"/desk/{session}/columns/{number}")
        assert status == 200, content
        assert "inside sfumato" not in str(content)
        _, data = own_client.ask("GET", f"/desk/{session}/columns/{number}", headers={"Accept": "text/html"})
        assert b"<b>" not in data


def test_of_many_columns_some_are_listed(own_client):
    frame = pl.DataFrame({"age": [20 + i % 5 for i in range(60)]} | {f"c{i}": [i] * 60 for i in range(120)})
    roles = {"age": "key"} | {f"c{i}": "other" for i in range(120)}
    session = at_desk(own_client, "wide.csv", frame, roles)
    for first, shown in ((0, 100), (100, 21)):
        status, page = html(own_client, f"/desk/{session}?first={first}")
        assert status == 200
        assert page.count("Role of ") == shown
        assert len(page.encode()) < 300_000
    assert html(own_client, f"/desk/{session}?first=x")[0] == 404


# Hierarchies ----------------------------------------------------------------------------------------------


def test_a_proposal_is_shown_with_counts_and_rare_values_together(own_client, desk):
    values = level_of(own_client, desk, "town", 0)
    counts = Counter(PEOPLE["town"])
    assert {each["label"]: each["records"] for each in values["labels"]} == {
        name: count for name, count in counts.items() if name not in RARE
    }
    assert sum(each["records"] for each in values["rest"]) == 8
    assert sum(each["labels"] for each in values["rest"]) == 3
    for level in column(own_client, desk, "town")["hierarchy"]["levels"]:
        assert sum(each["records"] for each in (*level["labels"], *level["rest"])) == len(PEOPLE)


def test_groups_are_made_by_a_form_and_everybody_reads_them(own_client, desk, monkeypatch):
    values = level_of(own_client, desk, "town", 0)
    _, before = own_client.get(f"/desk/{desk}")
    form = {"level": 0, "do": "put", "version": before["version_id"]}
    south = codes_of(values, "Ashford", "Dover")
    assert change(own_client, desk, "town", labels=south, name="Southland", **form)[0] == 200
    status, stale = change(own_client, desk, "town", labels=south, name="Southland", **form)
    assert (status, "another window" in stale["sentence"]) == (422, True)
    del form["version"]
    rest = [each["code"] for each in values["rest"]]
    north = [*codes_of(values, "Barton", "Corby"), *rest]
    assert change(own_client, desk, "town", labels=north, name="Northland", **form)[0] == 200
    groups = level_of(own_client, desk, "town", 1)
    assert {each["label"]: each["records"] for each in groups["labels"]} == {"Southland": 72, "Northland": 53}
    _, after = own_client.get(f"/desk/{desk}")
    assert [each["action"] for each in after["versions"][-2:]] == ["changed the hierarchy of town"] * 2
    monkeypatch.chdir(own_client.folder)
    plan = Plan.read(own_client.folder / after["plan_path"])
    source = plan.resources[plan.schema["town"].hierarchy]
    assert source.holds == "hierarchy"
    assert stat.S_IMODE((own_client.folder / source.path).stat().st_mode) == 0o600
    assert "Ashford" not in source.path
    released = carry_out(plan, Run()).parts[""].release.table
    assert Counter(released.frame["town"].cast(pl.String)) == {"Southland": 72, "Northland": 53}
    checked = CliRunner().invoke(cli, ["hierarchy", "towns.csv", "town", "--check", source.path])
    assert checked.exit_code == 0, checked.output
    assert "Southland" in checked.output
    sentence = after["results"]["score"]["changes"]["town"]
    assert "group" in sentence


def test_history_and_plan_hold_no_value_and_undo_brings_back(own_client, desk):
    _, now = own_client.get(f"/desk/{desk}")
    values = level_of(own_client, desk, "town", 0)
    form = {"level": 0, "do": "put", "labels": codes_of(values, "Corby"), "name": "Middlemarch"}
    assert change(own_client, desk, "town", **form)[0] == 200
    kept = own_client.own.history._path.read_bytes()
    toml = (own_client.folder / now["plan_path"]).read_text()
    for word in (*RARE, "Ashford", "Middlemarch", "Southland"):
        assert word.encode() not in kept
        assert word not in toml
    labels = {each["label"] for each in level_of(own_client, desk, "town", 1)["labels"]}
    assert "Middlemarch" in labels
    assert own_client.post(f"/desk/{desk}/move", {"to": "undo"})[0] == 200
    labels = {each["label"] for each in level_of(own_client, desk, "town", 1)["labels"]}
    assert "Middlemarch" not in labels


def test_values_move_groups_are_renamed_and_levels_come_and_go(own_client, desk):
    for town, name in (("Dover", "Southland"), ("Barton", "Northland")):
        codes = codes_of(level_of(own_client, desk, "town", 0), town)
        assert change(own_client, desk, "town", level=0, do="put", labels=codes, name=name)[0] == 200
    values = level_of(own_client, desk, "town", 0)
    group = {each["label"]: each["code"] for each in values["groups"]}
    moved = {"level": 0, "do": "move", "labels": codes_of(values, "Ashford"), "into": group["Northland"]}
    assert change(own_client, desk, "town", **moved)[0] == 200
    values = level_of(own_client, desk, "town", 0)
    assert {each["label"]: each["parent"] for each in values["labels"]}["Ashford"] == "Northland"
    groups = level_of(own_client, desk, "town", 1)
    renamed = {"level": 1, "do": "rename", "labels": codes_of(groups, "Northland"), "name": "<b>Up</b>"}
    assert change(own_client, desk, "town", **renamed)[0] == 200
    height = len(column(own_client, desk, "town")["hierarchy"]["levels"])
    for do, change_of_height in (("add", 1), ("drop", 0)):
        assert change(own_client, desk, "town", level=1, do=do)[0] == 200
        assert len(column(own_client, desk, "town")["hierarchy"]["levels"]) == height + change_of_height
    _, data = own_client.ask("GET", f"/desk/{desk}/columns/2", headers={"Accept": "text/html"})
    assert b"<b>Up" not in data
    assert b"&lt;b&gt;Up" in data


def test_another_proposal_can_be_taken(own_client, desk):
    form = {"do": "propose", "way": "intervals", "numbers": "20, 40"}
    assert change(own_client, desk, "age", **form)[0] == 200
    levels = column(own_client, desk, "age")["hierarchy"]["levels"]
    assert [each["count"] for each in levels][1:] == [4, 2, 1]
    assert {each["label"] for each in levels[1]["labels"]} <= {"[0;19]", "[20;39]", "[40;59]", "[60;79]"}


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"do": "put", "level": "0", "name": "x"}, "Choose at least one"),
        ({"do": "put", "level": "0", "labels": "0", "name": " "}, "needs a name"),
        ({"do": "put", "level": "0", "labels": "0", "name": "*"}, "needs a name"),
        ({"do": "put", "level": "77", "labels": "0", "name": "x"}, "no such level"),
        ({"do": "move", "level": "0", "labels": "0", "into": "999"}, "Choose the group"),
        ({"do": "rename", "level": "0", "labels": "0", "name": "x"}, "keep their names"),
        ({"do": "drop", "level": "0"}, "cannot be taken out"),
        ({"do": "burn"}, "no change"),
        ({"do": "propose", "way": "magic"}, "no way"),
        ({"do": "propose", "way": "prefix", "numbers": "two"}, "must be numbers"),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_said_in_its_form(own_client, desk, form, words):
    _, before = own_client.get(f"/desk/{desk}")
    status, content = change(own_client, desk, "town", **form)
    assert status == 422
    assert words in content["sentence"]
    path = f"/desk/{desk}/columns/2/hierarchy"
    answer, data = own_client.ask("POST", path, form, headers={"Accept": "text/html"})
    page = unescape(data.decode())
    assert answer.status == 422
    assert re.search(rf'role="alert">[^<]*{re.escape(words)}', page)
    assert own_client.get(f"/desk/{desk}")[1]["version_id"] == before["version_id"]


def test_a_hierarchy_that_lacks_a_value_is_said_and_can_be_replaced(own_client, desk):
    assert change(own_client, desk, "town", do="propose", way="frequencies")[0] == 200
    _, content = own_client.get(f"/desk/{desk}")
    (own_client.folder / "few.csv").write_text("Ashford;South;*\nBarton;North;*\n")
    place = own_client.folder / content["plan_path"]
    text = place.read_text().replace('hierarchy = "hierarchy of town"', 'hierarchy = "few"')
    assert '"few"' in text
    place.write_text(f'{text}\n[resources.few]\npath = "few.csv"\nholds = "hierarchy"\n')
    found = column(own_client, desk, "town")
    assert "does not cover" in found["hierarchy"]["note"]
    assert "does not cover" in found["fault"]
    assert "Nothing comes of this plan" in html(own_client, f"/desk/{desk}/columns/2")[1]
    assert change(own_client, desk, "town", do="propose", way="frequencies")[0] == 200
    assert column(own_client, desk, "town")["hierarchy"]["levels"]

"""What goes wrong is said in a sentence: processes that are killed, files that change, odd tables, two windows."""

import errno
import json
import os
import random
import signal
import sqlite3
import threading
import time

import polars as pl
import pytest

ROWS, CHANCE = range(60), random.Random(3)
PEOPLE = pl.DataFrame({
    "age": [CHANCE.randrange(20, 30) for _ in ROWS], "sex": [CHANCE.choice("fm") for _ in ROWS],
    "illness": [CHANCE.choice(["flu", "cold"]) for _ in ROWS],
})  # fmt: skip
ANSWERS = {"then": "desk", "role:age": "key", "role:sex": "key", "role:illness": "sensitive"}


def opened(client, frame, name):
    """The session of a table that is written to a file of this name."""
    frame.write_csv(client.folder / name)
    status, content = client.post("/open", {"source": name})
    assert status == 200
    return int(content["next"].rpartition("/")[2])


def at_desk(client, name, frame=PEOPLE, answers=ANSWERS):
    session = opened(client, frame, name)
    status, content = client.post(f"/questions/{session}", answers)
    assert status == 200, content
    return session


def process_of(client, session):
    return client.own.desk(session)._process


def page(client, path):
    answer, data = client.ask("GET", path, headers={"Accept": "text/html"})
    return answer.status, data.decode()


# Processes -----------------------------------------------------------------------------------------------


def test_a_desk_that_is_killed_while_idle_is_started_again(own_client):
    session = at_desk(own_client, "idle.csv")
    before = own_client.get(f"/desk/{session}")[1]["version_id"]
    process_of(own_client, session).kill()
    process_of(own_client, session).join()
    status, content = own_client.get(f"/desk/{session}")
    assert status == 422
    assert "has ended" in content["sentence"]
    status, content = own_client.get(f"/desk/{session}")
    assert (status, content["version_id"]) == (200, before)


def test_a_desk_that_is_killed_during_a_task_is_started_again(own_client):
    session = at_desk(own_client, "busy.csv")
    own_client.get(f"/desk/{session}")
    os.kill(process_of(own_client, session).pid, signal.SIGSTOP)  # it never answers
    found = []
    asking = threading.Thread(target=lambda: found.append(own_client.get(f"/questions/{session}")))
    asking.start()
    time.sleep(0.3)
    assert own_client.get("/")[0] == 200  # the server answers meanwhile
    process_of(own_client, session).kill()
    asking.join(20)
    assert found[0][0] == 422
    assert "has ended" in found[0][1]["sentence"]
    assert own_client.get(f"/desk/{session}")[0] == 200


def test_a_file_that_is_opened_ends_the_desk_of_the_other(own_client):
    session = at_desk(own_client, "first.csv")
    own_client.get(f"/desk/{session}")
    process = process_of(own_client, session)
    other = opened(own_client, PEOPLE, "second.csv")
    assert own_client.get(f"/questions/{other}")[0] == 200
    assert not process.is_alive()
    assert own_client.get(f"/desk/{session}")[0] == 200


def test_a_job_that_is_killed_fails_with_a_sentence_and_writes_nothing(own_client):
    session = at_desk(own_client, "killed.csv")
    _, content = own_client.post(f"/desk/{session}/jobs/release", {})
    while not own_client.own.jobs._running:
        time.sleep(0.01)
    assert own_client.get(f"/desk/{session}")[0] == 200  # the desk answers during a job
    own_client.own.jobs._worker._process.kill()
    job = own_client.wait_for(content["next"])
    assert job["state"] == "failed"
    assert "has ended" in job["sentence"]
    assert not list(own_client.folder.glob("killed-release*"))
    status, _ = own_client.post(f"/desk/{session}/jobs/verify", {})
    assert status == 422  # there is no release of this plan
    own_client.post(f"/desk/{session}", {"action": "change-step", "number": 0, "k": "3"})
    again = own_client.post(f"/desk/{session}/jobs/release", {"override": "a test"})[1]["next"]
    assert own_client.wait_for(again)["state"] == "done"


def test_a_job_whose_result_cannot_be_kept_does_not_block_the_line(own_client, monkeypatch):
    session = at_desk(own_client, "line.csv")
    monkeypatch.setattr(own_client.own, "keep", lambda *_: 1 / 0)
    first = own_client.post(f"/desk/{session}/jobs/release", {"override": "a test"})[1]["next"]
    second = own_client.post(f"/desk/{session}/jobs/pictures", {})[1]["next"]
    job = own_client.wait_for(first)
    assert (job["state"], "could not be kept" in job["sentence"]) == ("failed", True)
    assert own_client.wait_for(second)["state"] == "done"


def test_fifty_jobs_at_once_are_refused_with_a_sentence(own_client):
    session = at_desk(own_client, "many.csv")
    found = [own_client.post(f"/desk/{session}/jobs/compare", {"methods": "mdav"}) for _ in range(50)]
    refused = [content for status, content in found if status == 422]
    assert len(refused) >= 28  # one works, twenty wait
    assert all("Too many jobs" in each["sentence"] for each in refused)
    for _, content in reversed(found):
        if "next" in content:
            own_client.post(f"{content['next']}/stop", {})
    states = {own_client.wait_for(content["next"])["state"] for _, content in found if "next" in content}
    assert states <= {"stopped", "done"}
    assert (
        own_client.post(f"/desk/{session}/jobs/pictures", {})[0] == 200
    )  # those that were stopped wait no more
    own_client.post(f"/jobs/{max(own_client.own.jobs.jobs)}/stop", {})


# Windows and files ---------------------------------------------------------------------------------------


def test_two_windows_at_once_lose_nothing(own_client):
    session = at_desk(own_client, "windows.csv")
    version = own_client.get(f"/desk/{session}")[1]["version_id"]
    found = []

    def change(k):
        form = {"action": "change-step", "number": 0, "version": version, "k": k}
        found.append(own_client.post(f"/desk/{session}", form))

    windows = [threading.Thread(target=change, args=(k,)) for k in (5, 6, 7, 8)]
    for each in windows:
        each.start()
    for each in windows:
        each.join()
    assert sorted(status for status, _ in found) == [200, 422, 422, 422]
    assert all("another window" in content["sentence"] for status, content in found if status == 422)
    _, content = own_client.get(f"/desk/{session}")
    assert [each["parent"] for each in content["versions"]] == [None, version]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[[steps]]\nmethod = = 3\n", "not valid TOML"),
        ("nonsense = 3\n", "nonsense"),
        ("", "one table"),
        ('[data]\npath = "nowhere.csv"\n', "one table"),
        ('[[steps]]\nmethod = "no-such"\n', "no-such"),
        ("\xff\xfe", "TOML"),
    ],
)
def test_a_plan_that_was_spoilt_outside_is_told_and_undone(own_client, text, part):
    session = at_desk(own_client, "spoilt.csv")
    _, before = own_client.get(f"/desk/{session}")
    plan_file = own_client.folder / before["plan_path"]
    good = plan_file.read_text()
    plan_file.write_bytes(text.encode("latin-1"))
    for path in (f"/desk/{session}", f"/release/{session}"):
        status, shown = page(own_client, path)
        assert status in {200, 422}
        assert "went wrong inside" not in shown
    status, shown = page(own_client, f"/desk/{session}")
    assert status == 422
    assert part in shown
    assert "Undo it" in shown
    assert own_client.post(f"/desk/{session}/move", {"to": "undo"})[0] == 200
    assert plan_file.read_text() == good
    assert own_client.get(f"/desk/{session}")[1]["version_id"] == before["version_id"]


def test_undo_right_after_an_edit_outside_keeps_the_edit(own_client):
    session = at_desk(own_client, "edited.csv")
    plan_file = own_client.folder / own_client.get(f"/desk/{session}")[1]["plan_path"]
    plan_file.write_text(plan_file.read_text() + "\n# mine\n")
    own_client.post(f"/desk/{session}/move", {"to": "undo"})
    assert "# mine" not in plan_file.read_text()
    own_client.post(f"/desk/{session}/move", {"to": "redo"})
    assert "# mine" in plan_file.read_text()


def test_a_file_that_changed_or_went_is_told(own_client):
    session = at_desk(own_client, "changed.csv")
    assert own_client.get(f"/desk/{session}")[0] == 200
    PEOPLE.head(50).write_csv(own_client.folder / "changed.csv")
    status, content = own_client.get(f"/desk/{session}")
    assert (status, content["results"]["score"]["records"]) == (200, 50)
    assert own_client.get(f"/questions/{session}")[1]["overview"]["records"] == 50
    (own_client.folder / "changed.csv").unlink()
    for path in (f"/desk/{session}", f"/questions/{session}"):
        status, content = own_client.get(path)
        assert status == 422
        assert "not found" in content["sentence"]
    assert own_client.get(f"/release/{session}")[0] == 200  # the plan is there


def test_a_folder_that_is_removed_and_brought_back(own_client):
    session = at_desk(own_client, "moved.csv")
    elsewhere = own_client.folder.with_name("elsewhere")
    own_client.folder.rename(elsewhere)
    try:
        for path in ("/", f"/questions/{session}", f"/desk/{session}"):
            status, content = own_client.get(path)
            assert status == 422, path
            assert "ended" not in content["sentence"]
            assert "inside sfumato" not in content["sentence"]
        assert own_client.post(f"/desk/{session}", {"action": "describe", "title": "x"})[0] == 422
    finally:
        elsewhere.rename(own_client.folder)
    assert own_client.get(f"/desk/{session}")[0] == 200


# Full disks ----------------------------------------------------------------------------------------------


def drop(client, name):
    body = (
        f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\nage\n3\n\r\n--x--\r\n'
    )
    headers = {"Origin": f"http://127.0.0.1:{client.port}", "Content-Type": "multipart/form-data; boundary=x"}
    answer, data = client.ask("POST", "/upload", body=body.encode(), headers=headers)
    return answer.status, json.loads(data)


def no_space(*_given, **_more):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_is_full_is_told_where_a_file_is_dropped(own_client, monkeypatch):
    monkeypatch.setattr("sfumato.web.start_page.shutil.copyfileobj", no_space)
    status, content = drop(own_client, "dropped.csv")
    assert (status, "No space left" in content["sentence"]) == (422, True)
    assert not [*own_client.folder.rglob("*.part")]
    monkeypatch.undo()
    assert drop(own_client, "dropped.csv")[0] == 200
    assert drop(own_client, "dropped.csv")[0] == 422  # there is one of this name


def test_a_plan_that_cannot_be_written_is_not_changed(own_client, monkeypatch):
    session = at_desk(own_client, "full.csv")
    _, before = own_client.get(f"/desk/{session}")
    text = (own_client.folder / before["plan_path"]).read_text()
    monkeypatch.setattr("sfumato.io.write_text", no_space)
    form = {"action": "change-step", "step": 0, "number": 0, "k": "9"}
    status, content = own_client.post(f"/desk/{session}", form)
    assert (status, "No space left" in content["sentence"]) == (422, True)
    monkeypatch.undo()
    assert own_client.get(f"/desk/{session}")[1]["version_id"] == before["version_id"]
    assert (own_client.folder / before["plan_path"]).read_text() == text
    assert own_client.post(f"/desk/{session}", form)[0] == 200


def test_a_history_without_space_is_told_and_stays_whole(own_client, monkeypatch):
    """SQLite itself says that it may not grow, as it does of a disk that is full."""
    session = at_desk(own_client, "grown.csv")
    versions = own_client.get(f"/desk/{session}")[1]["versions"]
    real = sqlite3.connect

    def connect(*given, **more):
        base = real(*given, **more)
        base.execute("pragma max_page_count = 1")
        return base

    monkeypatch.setattr("sfumato.web.history.sqlite3.connect", connect)
    form = {"title": "x" * 500_000}
    status, content = own_client.post(f"/release/{session}", form)
    assert (status, "full" in content["sentence"]) == (422, True)
    monkeypatch.undo()
    assert own_client.get(f"/desk/{session}")[1]["versions"] == versions
    assert own_client.post(f"/release/{session}", form)[0] == 200


def test_a_history_that_is_no_database_is_told(tmp_path):
    from sfumato.web.history import HistoryError, PlanHistory

    (tmp_path / "s.sqlite").write_bytes(b"nonsense" * 200)
    with pytest.raises(HistoryError, match="not a database"):
        PlanHistory(tmp_path / "s.sqlite")


# Tables --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("records", [0, 1, 2])
def test_few_records(own_client, records):
    session = opened(own_client, PEOPLE.head(records), f"few{records}.csv")
    own_client.get(f"/questions/{session}")
    status, content = own_client.post(f"/questions/{session}", ANSWERS)
    assert status in {200, 422}
    if status == 422:
        assert content["sentence"]
        return
    for path in (f"/questions/{session}", f"/desk/{session}", f"/release/{session}"):
        status, shown = page(own_client, path)
        assert status in {200, 422}
        assert "inside sfumato" not in shown
    _, content = own_client.post(f"/desk/{session}/jobs/release", {})
    job = own_client.wait_for(content["next"])
    assert "inside sfumato" not in job["sentence"]
    _, content = own_client.post(f"/desk/{session}/jobs/pictures", {})
    assert "inside sfumato" not in own_client.wait_for(content["next"])["sentence"]


def test_three_hundred_columns(own_client):
    frame = PEOPLE.with_columns(pl.Series(f"c{i}", [(i * n) % 7 for n in ROWS]) for i in range(300))
    others = {f"role:c{i}": "other" for i in range(300)}
    session = at_desk(
        own_client, "wide.csv", frame, {**ANSWERS, **others, "matters": [f"c{i}" for i in range(300)]}
    )
    for path in (f"/questions/{session}", f"/desk/{session}"):
        status, shown = page(own_client, path)
        assert status == 200
        assert len(shown) < 300_000


def test_the_questions_on_two_thousand_columns_are_a_small_page():
    """Those that need a decision or say something of people have rows, the others a role together."""
    from sfumato.web.answers import render
    from sfumato.web.start_page import split_columns

    known = {"distinct": 7, "role_reason": "the name suggests information that others may know"}
    roles = {3: None, 1_000: "key", 1_999: "sensitive"}
    columns = [{"name": f"question {i}", "role": roles.get(i, "other"), **known} for i in range(2_000)]
    rows, groups = split_columns(columns)
    assert {"question 3", "question 1000", "question 1999"} <= {each["name"] for each in rows}
    names = [each["name"] for each in rows] + [name for each in groups for name in each["names"]]
    assert sorted(names) == sorted(each["name"] for each in columns)
    content = {
        "session": 1, "source": "wide.csv", "reading": {}, "warnings": [], "profiles": [], "is_local": True,
        "roles": [*"abcdefgh"], "overview": {"records": 1, "columns": columns}, "rows": rows, "groups": groups,
    }  # fmt: skip
    assert len(render("questions", content)) < 300_000
    assert split_columns(columns[:100]) == (columns[:100], [])


def test_a_role_of_many_columns_is_given_together(own_client):
    session = opened(own_client, PEOPLE, "together.csv")
    group = {
        "group": [json.dumps(["age", "sex"]), json.dumps(["illness"])],
        "group-role": ["key", "sensitive"],
    }
    assert own_client.post(f"/questions/{session}", {"then": "desk", **group})[0] == 200
    shown = own_client.get(f"/desk/{session}")[1]["columns"]
    assert {each["name"]: each["role"] for each in shown} == {
        "age": "key",
        "sex": "key",
        "illness": "sensitive",
    }
    status, content = own_client.post(
        f"/questions/{session}", {"then": "desk", "group": "[", "group-role": "key"}
    )
    assert (status, "group" in content["sentence"]) == (422, True)


def test_two_thousand_fields_are_taken(own_client):
    session = opened(own_client, PEOPLE, "fields.csv")
    status, content = own_client.post(
        f"/questions/{session}", {**ANSWERS, **{f"role:c{i}": "other" for i in range(2000)}}
    )
    assert status in {200, 422}
    assert "not understood" not in content.get("sentence", "")


NAMES = (
    "<b>bold</b>",
    "=1+1",
    "مرحبا",
    "a\u202eb",
    'q"uote',
    "a,b",
    "{{ 7*7 }}",
    "role:x",
    "&amp;",
    "' or 1=1 --",
)


def test_odd_names_are_text(own_client):
    frame = PEOPLE.with_columns(pl.Series(name, [f"{i % 3}" for i in ROWS]) for name in NAMES)
    answers = {**ANSWERS, **{f"role:{name}": "other" for name in NAMES}, "role:=1+1": "key"}
    session = at_desk(own_client, "odd <i>.csv", frame, answers)
    for path in ("/", f"/questions/{session}", f"/desk/{session}", f"/release/{session}"):
        status, shown = page(own_client, path)
        assert status == 200, shown
        assert "<b>bold" not in shown
        assert "odd <i>" not in shown
    names = {each["name"] for each in own_client.get(f"/desk/{session}")[1]["columns"]}
    assert set(NAMES) <= names
    for name in NAMES:
        form = {"action": "set-role", "column": name, "role": "other"}
        assert own_client.post(f"/desk/{session}", form)[0] == 200, name
    _, content = own_client.post(f"/desk/{session}/jobs/release", {"override": "<script>"})
    assert own_client.wait_for(content["next"])["state"] == "done"
    assert "<script>" not in page(own_client, f"/release/{session}")[1].partition("<main")[2]

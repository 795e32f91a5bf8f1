"""The release page: what blocks and what to do, what its owner says, and the session as files that repeat it."""

import contextlib
import dataclasses
import io
import re
import shlex
import shutil

import pytest
from click.testing import CliRunner

import sfumato
from pages import SECRET
from sfumato.cli import cli
from sfumato.core.run import Run
from sfumato.recipes.parts import About
from sfumato.recipes.plan import Plan
from sfumato.web.release_page import ABOUT_QUESTIONS
from sfumato.web.session_export import python_file
from sfumato.web.tasks import Desk
from sfumato.web.tasks.jobs import carry_out_plan

#: The names are left in, which blocks a release whatever its random numbers are.
ROLES = {"role:name": "other", "role:age": "key", "role:sex": "key", "role:illness": "sensitive"}
REASON = 'it\'s a <b>test</b> of "equal" bytes'


@pytest.fixture(scope="module")
def opened(own_client, folder):
    """A session with a plan of two steps that draw random numbers, and that may not leave."""
    shutil.copy(folder / "people.csv", own_client.folder)
    number = own_client.open("people.csv", **ROLES)
    own_client.post(f"/desk/{number}", {"action": "remove-step", "step": 0, "number": 0})
    for step in ({"method": "rank-swapping", "columns": "age"}, {"method": "pram", "columns": "sex"}):
        assert own_client.post(f"/desk/{number}", {"action": "add-step", **step})[0] == 200
    return number, own_client.plan_of(number)


@pytest.fixture
def session(own_client, opened):
    return own_client.go_back(*opened)


def page(client, path):
    answer, data = client.ask("GET", path, headers={"Accept": "text/html"})
    assert answer.status == 200
    return data.decode()


def test_what_blocks_is_said_with_a_next_step(own_client, session):
    _, content = own_client.get(f"/release/{session}")
    assert content["blocked"]
    for each in content["blocked"]:
        assert each["next_step"]
        assert each["address"].startswith((f"/desk/{session}#", f"/questions/{session}#"))
    shown = page(own_client, f"/release/{session}")
    assert re.search('name="override"[^>]* required', shown)


@pytest.mark.parametrize("reason", ["", "   "])
def test_it_yields_only_to_a_reason(own_client, session, reason):
    before = {*own_client.folder.glob("people-release*")}
    _, content = own_client.post(f"/desk/{session}/jobs/release", {"override": reason})
    job = own_client.wait_for(content["next"])
    assert job["state"] == "failed"
    assert "type a reason" in job["hint"]
    assert "--override" not in job["sentence"] + job["hint"]
    assert before == {*own_client.folder.glob("people-release*")}


def test_all_that_a_plan_can_say_of_a_release_is_asked():
    assert set(ABOUT_QUESTIONS) == {each.name for each in dataclasses.fields(About)}


def test_what_is_said_of_a_release_is_kept_and_changes_no_score(own_client, session):
    before = own_client.get(f"/release/{session}")[1]
    form = {"title": "<b>Stays</b>", "recipients": "a clinic; a school ;", "review_date": "2030-12-31"}
    status, content = own_client.post(f"/release/{session}", {**form, "version": before["version_id"]})
    assert (status, content["next"]) == (200, f"/release/{session}")
    after = own_client.get(f"/release/{session}")[1]
    answers = {each["name"]: each["value"] for each in after["about"]}
    assert (answers["title"], answers["recipients"]) == ("<b>Stays</b>", "a clinic; a school")
    assert after["results"]["score"] == before["results"]["score"]
    plan = Plan.read(own_client.folder / after["plan_path"])
    assert plan.about.recipients == ("a clinic", "a school")
    assert "<b>Stays" not in page(own_client, f"/release/{session}")
    status, content = own_client.post(f"/release/{session}", {"title": "x", "version": before["version_id"]})
    assert (status, "another window" in content["sentence"]) == (422, True)
    status, content = own_client.post(f"/release/{session}", {"review_date": "soon"})
    assert (status, "2030-12-31" in content["sentence"]) == (422, True)


@pytest.fixture(scope="module")
def made(own_client, opened):
    """The folder that the page writes, and what the release page says then."""
    session = own_client.go_back(*opened)
    _, content = own_client.post(f"/desk/{session}/jobs/release", {"override": REASON})
    job = own_client.wait_for(content["next"])
    assert job["state"] == "done", job["sentence"]
    _, content = own_client.get(f"/release/{session}")
    return own_client.folder / content["results"]["release"]["folder"], content["exports"]


def exported(client, session, name):
    answer, data = client.ask("GET", f"/release/{session}/session/{name}")
    assert answer.status == 200
    assert answer.getheader("content-disposition") == f'attachment; filename="{name}"'
    return data.decode()


def test_the_files_of_a_session_have_no_seed_and_no_cell(own_client, session, made):
    for name, text in made[1].items():
        assert exported(own_client, session, name) == text
        assert "seed" not in text
        assert SECRET not in text
        assert "asthma" not in text
    assert own_client.get(f"/release/{session}/session/trail.private.json")[0] == 404


def test_a_report_that_leads_elsewhere_is_not_shown(own_client, session, made, tmp_path):
    (tmp_path / "secret.html").write_text(SECRET)
    report = made[0] / "report.html"
    report.rename(made[0] / "kept.html")
    report.symlink_to(tmp_path / "secret.html")
    try:
        for form in ("public", "..%2fpeople.csv", "private%2ftrail.private.json"):
            assert own_client.get(f"/release/{session}/report/{form}")[0] == 404
    finally:
        report.unlink()
        (made[0] / "kept.html").rename(report)


def run_python(text):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(text, "session.py", "exec"), {})
    return said.getvalue()


def test_the_python_file_makes_the_release_again(made, monkeypatch):
    """With the random numbers of the page's private trail: the same bytes."""
    from sfumato.releasing.trail import randomness_of

    folder, files = made
    monkeypatch.chdir(folder.parent)
    again = randomness_of(
        folder / "private" / "trail.private.json", Plan.read(folder / "private" / "plan.toml")
    )
    real = sfumato.release
    monkeypatch.setattr(
        sfumato,
        "release",
        lambda *given, **more: real(*given, **more, run=Run(randomness=again)),
        raising=False,
    )
    assert "Result:" in run_python(files["session.py"])
    written = folder.parent / "people-release-2"
    assert (written / "release.csv").read_bytes() == (folder / "release.csv").read_bytes()
    assert REASON in (written / "private" / "trail.private.json").read_text().replace('\\"', '"')
    shutil.rmtree(written)


def test_the_console_lines_make_the_release_again(made, monkeypatch):
    """With one seed, the job of the page and its lines write the same bytes; and the page's folder is verified."""
    folder, files = made
    monkeypatch.chdir(folder.parent)
    release, verify = (shlex.split(line) for line in files["console.txt"].splitlines())
    seeded = type("Seeded", (Desk,), {"run": lambda self, resources=None: Run(seed=5, resources=resources)})
    desk = seeded(tell=lambda _: None, stopped=lambda: False)
    carry_out_plan(desk, toml=files["plan.toml"], folder="by-page", override=REASON)
    result = CliRunner().invoke(cli, [*release[1:], "--seed", "5"])
    assert result.exit_code == 0, result.output
    by_line = folder.parent / release[release.index("--out") + 1]
    assert (by_line / "release.csv").read_bytes() == (folder.parent / "by-page" / "release.csv").read_bytes()
    assert (by_line / "release.csv").read_bytes() != (folder / "release.csv").read_bytes()
    result = CliRunner().invoke(cli, verify[1:])
    assert result.exit_code == 0, result.output


def test_a_python_file_of_odd_names_is_text():
    toml = '[data]\npath = "a\'b\\".csv"\n[columns."x\\u202ey"]\nrole = "key"\n[odd]\nday = 2024-01-01\n'
    text = python_file(toml, ["x is key\nimport os; os.abort()"], folder="a'b", override='"')
    compile(text, "session.py", "exec")
    assert "\nimport os" not in text
    assert "\u202e" not in text
    assert text.startswith("import datetime")
    assert python_file("= broken", [], folder="x") == ""

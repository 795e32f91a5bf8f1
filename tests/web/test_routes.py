"""Every route, asked in every way: an answer with a sentence, never a crash, never a cell."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pages import SECRET
from sfumato.web.app import _ROUTES
from sfumato.web.working import WORKING_PREFIX

VERBS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
QUICK = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
ODD = st.sampled_from([
    "", "0", "-1", "1e999", "nan", "9" * 30, "9" * 5000, "٣", "\x00", "../..", "..%2f..", "a b", "<b>", "=1+1", "true",
    "key", "k", "undo", "release", "people.csv", "builtin:../../x", "builtin:fair", "name", "desk", "\u202e", "{}", "[]",
])  # fmt: skip
TEXTS = ODD | st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NAMES = st.sampled_from([
    "action", "step", "method", "columns", "k", "column", "role", "profile", "version", "to", "from", "source",
    "minutes", "matters", "then", "role:age", "role:nobody", "override", "folder", "methods", "delimiter", "decimal",
    "encoding", "sheet", "title", "token", "file", "number", "do", "way", "labels", "into", "level", "name", "numbers",
]) | st.text(st.characters(exclude_categories=["Cs"]), max_size=10)  # fmt: skip
ACTIONS = st.sampled_from([
    {"action": "add-step"}, {"action": "change-step"}, {"action": "remove-step"}, {"action": "set-role"},
    {"action": "set-profile"}, {"action": "describe"}, {"then": "desk"}, {}, {"do": "put", "level": "0"}, {"do": "propose"},
])  # fmt: skip
FORMS = st.builds(lambda action, more: {**more, **action}, ACTIONS, st.dictionaries(NAMES, TEXTS, max_size=5))


@pytest.fixture(scope="module")
def opened(client, source):
    roles = {"role:age": "key", "role:sex": "key", "role:illness": "sensitive"}
    session = client.open(source, **roles)
    return session, client.plan_of(session)


@pytest.fixture
def session(client, opened):
    return client.go_back(*opened)


def sound(answer, data):
    """An answer that is no crash and tells of nobody."""
    assert answer.status < 500, data
    assert SECRET.encode() not in data
    assert b"Traceback" not in data
    if "json" in (answer.getheader("content-type") or "") and answer.status >= 400 and data:
        assert json.loads(data)["sentence"]


def path_of(route, session):
    """The path of a route with what exists."""
    known = {
        "session:int": session,
        "job:int": 1,
        "measure:str": "k",
        "name:str": "plan.toml" if "/session/" in route else "map",
        "form:str": "internal",
    }
    known["number:int"] = 0
    known["kind:str"] = "nothing"  # jobs themselves have tests of their own
    return "".join(str(known.get(part, part)) for part in route.replace("}", "{").split("{"))


@pytest.mark.parametrize("verb", VERBS)
def test_every_route_answers_every_verb(client, session, verb):
    for _, route, _ in _ROUTES:
        if verb == "HEAD" and route.endswith("/events"):
            continue
        origin = {"Origin": f"http://127.0.0.1:{client.port}"}
        for accept in ("application/json", "text/html"):
            answer, data = client.ask(verb, path_of(route, session), headers={**origin, "Accept": accept})
            sound(answer, data)
            if verb not in {"GET", "HEAD", "POST"}:
                assert answer.status == 405


@QUICK
@given(form=FORMS)
@pytest.mark.parametrize("route", [path for verb, path, _ in _ROUTES if verb == "POST" and path != "/upload"])
def test_no_form_breaks_a_page(client, session, route, form):
    if route == "/questions/{session:int}":
        form = {**form, "then": "desk"}  # a release would be searched for
    sound(*client.ask("POST", path_of(route, session), form))
    status, content = client.get(f"/desk/{session}")
    assert status < 500
    if status == 422:  # what was accepted can be taken back
        assert content["undo"]
        client.post(f"/desk/{session}/move", {"to": "undo"})


@settings(QUICK, max_examples=25)
@given(parts=st.lists(TEXTS, max_size=4), query=st.dictionaries(NAMES, TEXTS, max_size=3))
def test_no_path_or_query_breaks_a_page(client, session, parts, query):
    from urllib import parse

    for start in ("", "/desk", f"/desk/{session}", f"/desk/{session}/difference", "/jobs", "/static"):
        path = "/".join([start, *(parse.quote(part, safe="%") for part in parts)]) or "/"
        address = f"{path if path.startswith('/') else '/' + path}?{parse.urlencode(query)}"
        if len(address) < 60_000:
            sound(*client.ask("GET", address))


@settings(QUICK, max_examples=8)
@given(
    query=st.dictionaries(st.sampled_from(["delimiter", "decimal", "encoding", "sheet"]), TEXTS, max_size=3)
)
def test_no_way_to_read_a_file_breaks_the_questions(client, session, query):
    from urllib import parse

    sound(*client.ask("GET", f"/questions/{session}?{parse.urlencode(query)}"))


@settings(QUICK, max_examples=20)
@given(name=TEXTS, data=st.binary(max_size=300))
def test_no_file_that_is_dropped_breaks_the_page(client, folder, name, data):
    before = {*folder.parent.rglob("*")}
    shown = name.encode().replace(b'"', b"%22").replace(b"\n", b"%0A").replace(b"\r", b"%0D")
    body = b'--x\r\nContent-Disposition: form-data; name="file"; filename="' + shown
    body += b'"\r\nContent-Type: text/csv\r\n\r\n' + data + b"\r\n--x--\r\n"
    headers = {"Origin": f"http://127.0.0.1:{client.port}", "Content-Type": "multipart/form-data; boundary=x"}
    sound(*client.ask("POST", "/upload", body=body, headers=headers))
    new = {*folder.parent.rglob("*")} - before
    assert all(each.is_dir() or WORKING_PREFIX in each.parent.name for each in new)
    assert not [each for each in new if each.name.endswith(".part")]
    for each in new:
        if each.is_file():
            each.unlink()


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data; boundary=x", b"--x\r\nbroken"),
        ("multipart/form-data", b"--x\r\n"),
        ("multipart/form-data; boundary=x; charset=none", b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n--x--'),
        ("application/x-www-form-urlencoded", b"%ff%fe=%zz&&&==&a"),
        ("application/json", b"[" * 100_000),
        ("nonsense", b"\x00\xff"),
        ("application/x-www-form-urlencoded", b"&".join(b"a%d=1" % i for i in range(5000))),
    ],
)  # fmt: skip
def test_bodies_that_are_no_form(client, session, kind, body):
    headers = {"Origin": f"http://127.0.0.1:{client.port}", "Content-Type": kind}
    for path in ("/open", "/upload", f"/desk/{session}", f"/questions/{session}", f"/desk/{session}/move"):
        answer, data = client.ask("POST", path, body=body, headers=headers)
        sound(answer, data)

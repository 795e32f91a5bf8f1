"""Who may ask: the hostile host, origin, cookie, token, path and body are refused, and nothing is said of cells."""

import contextlib
import socket

import pytest


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example", "[::1]", "[::1]:80",
        "[::ffff:127.0.0.1]", "0.0.0.0", "127.1", "2130706433", "127.0.0.1@evil.example", "",
    ],
)  # fmt: skip
def test_other_hosts_are_refused(client, host):
    for name in (host, f"{host}:{client.port}"):
        if name != f"127.0.0.1:{client.port}":
            assert client.ask("GET", "/", host=name or " ")[0].status in {400, 421}


def test_without_the_cookie_nothing_is_shown(client):
    for path in ("/", "/desk/1", "/static/web.css"):
        assert client.ask("GET", path, headers={"Cookie": ""})[0].status == 403


def test_the_cookie_of_another_port_opens_nothing_and_hides_nothing(client):
    value = client.cookie.partition("=")[2]
    assert client.ask("GET", "/", headers={"Cookie": f"sfumato-{client.port + 1}={value}"})[0].status == 403
    for other in ('sfumato-1="broken', 'other={"a": [1, 2]}', "a b c", "=", "x=\xff"):
        for cookie in (f"{other}; {client.cookie}", f"{client.cookie}; {other}"):
            assert client.ask("GET", "/", headers={"Cookie": cookie})[0].status == 200, cookie


def test_a_cookie_is_for_this_page_alone(server, client):
    assert client.first.count("HttpOnly") == 1
    assert "samesite=strict" in client.first.lower()
    assert client.first.startswith(f"sfumato-{server.port}=")


def test_the_token_works_once(client):
    assert client.ask("GET", f"/?token={client.token}", headers={"Cookie": ""})[0].status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
    ],
)
def test_only_the_page_itself_may_send(client, headers):
    assert client.ask("POST", "/open", {"source": "people.csv"}, headers=headers)[0].status == 403


def test_a_request_without_any_origin_may_not_change_anything(client):
    assert client.ask("POST", "/open", body=b"source=people.csv")[0].status == 403


@pytest.mark.parametrize(
    "path",
    [
        "../people.csv", "/etc/passwd", "link.csv", "linked/outside.csv", "circle.csv", "a/../../x.csv", "\x00", "x" * 5000,
        "..%2fpeople.csv", "%2e%2e/people.csv", "..\\people.csv", "file:///etc/passwd", "~/.profile", ".", "", "-",
        "builtin:../../etc/passwd", "builtin:/etc/passwd", "builtin:", "postgresql://127.0.0.1/x", "people.csv/",
    ],
)  # fmt: skip
def test_paths_stay_below_the_folder(client, folder, path, tmp_path):
    (tmp_path / "outside.csv").write_text("a\n1\n")
    links = {"link.csv": tmp_path / "outside.csv", "linked": tmp_path, "circle.csv": folder / "circle.csv"}
    for name, target in links.items():
        (folder / name).symlink_to(target)
    status, content = client.post("/open", {"source": path})
    for name in links:
        (folder / name).unlink()
    if path == "people.csv/":  # the same file
        assert status == 200
        return
    assert status in {404, 422}
    assert content["sentence"]


@pytest.mark.parametrize(
    "line",
    [
        '[data]\npath = "../outside.csv"', '[data]\npath = "/etc/passwd"', '[data]\npath = "postgresql://127.0.0.1/x"',
        '[data]\npath = "link.csv"', '[data]\npath = "people.csv"\n[resources.r]\npath = "../outside.csv"',
        '[series]\nearlier = ["people.csv", "/etc/passwd"]', '[output]\npath = "../../x.csv"',
        '[output]\npseudonym_key = "/etc/passwd"', '[tables.a.data]\npath = "/etc/passwd"',
    ],
)  # fmt: skip
def test_a_plan_names_no_file_outside_the_folder(client, folder, tmp_path, line):
    (folder / "link.csv").symlink_to(tmp_path)
    (folder / "hostile.toml").write_text(line)
    try:
        _, content = client.post("/open", {"source": "hostile.toml"})
        for path in (content["next"], content["next"].replace("desk", "release")):
            status, content = client.get(path)
            assert (status, "outside of the folder" in content["sentence"]) == (422, True)
    finally:
        (folder / "link.csv").unlink()
        (folder / "hostile.toml").unlink()


@pytest.mark.parametrize(
    "path", ["/static/../guard.py", "/static/%2e%2e/guard.py", "/static/..%2fguard.py", "//etc/passwd"]
)
def test_scripts_are_known_by_name_alone(client, path):
    assert client.ask("GET", path)[0].status == 404


def test_a_folder_that_is_a_link_is_served_as_what_it_leads_to(folder, tmp_path):
    from sfumato.web.history import PlanHistory
    from sfumato.web.state import ServerState

    (tmp_path / "served").symlink_to(folder)
    state = ServerState(tmp_path / "served", PlanHistory(tmp_path / "s.sqlite"))
    assert state.locate("people.csv") == "people.csv"


def test_a_file_that_is_too_large_is_refused_while_it_comes(client, server, folder, monkeypatch):
    monkeypatch.setattr(server.guard, "upload_bytes", 100_000)
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="large.csv"\r\n\r\n'
    headers = {"Origin": f"http://127.0.0.1:{client.port}", "Content-Type": "multipart/form-data; boundary=x"}
    body = (head if number == 0 else b"x" * 65_536 for number in range(20))
    answer, _ = client.ask("POST", "/upload", body=body, headers=headers)
    assert answer.status == 413
    assert not [*folder.glob("*large*"), *folder.glob(".*.part")]


def test_a_socket_is_refused(server):
    import asyncio

    said = []

    async def send(message):
        said.append(message["type"])

    asyncio.run(server.guard({"type": "websocket", "path": "/", "headers": []}, None, send))
    assert said == ["websocket.close"]


def test_bodies_are_counted_while_they_are_read(client):
    def endless():
        for _ in range(40):
            yield b"x" * 65_536

    form = "application/x-www-form-urlencoded"
    headers = {"Origin": f"http://127.0.0.1:{client.port}", "Content-Type": form}
    answer, _ = client.ask("POST", "/open", body=endless(), headers=headers)
    assert answer.status == 413


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ("POST /open", "application/x-www-form-urlencoded"),
        ("POST /upload", "multipart/form-data; boundary=x"),
        ("POST /nowhere", "text/plain"),
        ("GET /", "text/plain"),
    ],
)
def test_ten_gigabytes_in_chunks_are_not_listened_to(client, server, monkeypatch, asked, kind):
    """Of what is sent without end a few megabytes are read, then the connection is closed."""
    monkeypatch.setattr(server.guard, "upload_bytes", 1_000_000)
    lines = (
        f"{asked} HTTP/1.1", f"Host: 127.0.0.1:{client.port}", f"Origin: http://127.0.0.1:{client.port}",
        f"Cookie: {client.cookie}", f"Content-Type: {kind}", "Transfer-Encoding: chunked", "", "",
    )  # fmt: skip
    part = b'--x\r\nContent-Disposition: form-data; name="file"; filename="x.csv"\r\n\r\n'
    sent, chunk = 0, b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    with socket.create_connection(("127.0.0.1", client.port), 30) as there:
        there.sendall("\r\n".join(lines).encode() + b"%x\r\n" % len(part) + part + b"\r\n")
        with contextlib.suppress(ConnectionError):
            while sent < 10_000_000_000:
                there.sendall(chunk)
                sent += 65_536
    assert sent < 50_000_000


def test_a_token_is_no_cookie_and_a_cookie_no_token(client, server):
    value = client.cookie.partition("=")[2]
    for path, cookie in (
        (f"/?token={value}", ""),
        ("/", f"{client.cookie.partition('=')[0]}={client.token}"),
    ):
        assert client.ask("GET", path, headers={"Cookie": cookie})[0].status == 403
    assert server.guard.token == ""
    assert client.ask("GET", "/?token=", headers={"Cookie": ""})[0].status == 403


def test_headers_forbid_all_but_this_page(client):
    answer, _ = client.ask("GET", "/")
    policy = answer.getheader("content-security-policy")
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.getheader("cache-control") == "no-store"
    assert answer.getheader("referrer-policy") == "no-referrer"
    assert "frame-ancestors 'none'" in policy

"""Who may ask: the hostile host, origin, cookie, token, path and body are refused, and nothing is said of cells."""

import pytest

pytestmark = pytest.mark.xdist_group("web")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example"])
def test_other_hosts_are_refused(client, host):
    assert client.ask("GET", "/", host=host)[0].status == 421


def test_without_the_cookie_nothing_is_shown(client):
    for path in ("/", "/desk/1", "/static/web.css"):
        assert client.ask("GET", path, headers={"Cookie": ""})[0].status == 403


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
    "path", ["../people.csv", "/etc/passwd", "link.csv", "a/../../x.csv", "\x00", "x" * 5000]
)
def test_paths_stay_below_the_folder(client, folder, path, tmp_path):
    outside = tmp_path / "outside.csv"
    outside.write_text("a\n1\n")
    link = folder / "link.csv"
    link.unlink(missing_ok=True)
    link.symlink_to(outside)
    status, content = client.post("/open", {"source": path})
    link.unlink()
    assert status in {404, 422}
    assert content["sentence"]


def test_bodies_are_counted_while_they_are_read(client):
    def endless():
        for _ in range(40):
            yield b"x" * 65_536

    form = "application/x-www-form-urlencoded"
    headers = {"Origin": f"http://127.0.0.1:{client.port}", "Content-Type": form}
    answer, _ = client.ask("POST", "/open", body=endless(), headers=headers)
    assert answer.status == 413


def test_headers_forbid_all_but_this_page(client):
    answer, _ = client.ask("GET", "/")
    policy = answer.getheader("content-security-policy")
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.getheader("cache-control") == "no-store"
    assert answer.getheader("referrer-policy") == "no-referrer"
    assert "frame-ancestors 'none'" in policy

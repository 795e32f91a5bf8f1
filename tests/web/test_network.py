"""The page for other machines: by TLS and by name only; and what its terminal says."""

import http.client
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import time

import pytest

from pages import Client, serving
from sfumato.errors import ParameterError


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate of this machine that signs itself, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here")
    place = tmp_path_factory.mktemp("tls")
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    words += ["-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=data.example"]
    words += ["-addext", "subjectAltName=DNS:data.example,IP:127.0.0.1"]
    subprocess.run(words, cwd=place, check=True, capture_output=True)
    return place / "cert.pem", place / "key.pem"


def address(certificate, **more):
    from sfumato.web.serve import PageAddress

    return PageAddress(certificate=certificate[0], key=certificate[1], **more)


class SafeClient(Client):
    """A client that speaks TLS, and trusts one certificate."""

    def __init__(self, server, certificate):
        super().__init__(server)
        self.scheme, self._trusted = "https", ssl.create_default_context(cafile=certificate)

    def connect(self):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=self._trusted)


@pytest.fixture(scope="module")
def safe(certificate, tmp_path_factory):
    place = tmp_path_factory.mktemp("far")
    at = address(certificate, names=("data.example",))
    with serving(place, tmp_path_factory.mktemp("history") / "s.sqlite", at=at) as made:
        client = SafeClient(made, certificate[0])
        client.enter()
        yield client


def test_the_page_answers_by_tls(safe):
    assert safe.get("/")[0] == 200
    assert "Secure" in safe.first
    assert "HttpOnly" in safe.first
    shown = safe.ask("GET", "/", headers={"Accept": "text/html"})[1].decode()
    assert "on this machine only" not in shown


def test_plain_http_gets_no_answer_where_tls_is_spoken(safe):
    connection = http.client.HTTPConnection("127.0.0.1", safe.port, timeout=20)
    connection.request("GET", "/", headers={"Cookie": safe.cookie})
    with pytest.raises((http.client.HTTPException, OSError)):
        connection.getresponse()
    connection.close()


def test_the_names_that_were_allowed_are_taken_and_no_others(safe):
    for host, status in (
        (f"data.example:{safe.port}", 200), (f"127.0.0.1:{safe.port}", 200), ("data.example", 421),
        (f"evil.example:{safe.port}", 421), (f"data.example.evil.example:{safe.port}", 421),
    ):  # fmt: skip
        assert safe.ask("GET", "/", host=host)[0].status == status, host


def test_the_origin_is_that_of_tls(safe):
    form = {"source": "nothing.csv"}
    for origin, status in (("https", 422), ("http", 403)):
        headers = {"Origin": f"{origin}://127.0.0.1:{safe.port}"}
        assert safe.ask("POST", "/open", form, headers=headers)[0].status == status
    headers = {"X-Forwarded-Proto": "http", "X-Forwarded-Host": "evil.example"}  # no proxy is believed
    assert safe.ask("POST", "/open", form, headers=headers)[0].status == 422


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"host": "0.0.0.0"}, "encrypted"),
        ({"host": "::"}, "encrypted"),
        ({"host": "192.0.2.7"}, "encrypted"),
        ({"names": ("data.example",)}, "encrypted"),
        ({"host": "no such host"}, "address of this machine"),
        ({"host": "127.0.0.1", "port": 1, "certificate": "cert.pem"}, "together"),
    ],
)
def test_no_other_machine_without_tls(given, part, tmp_path):
    from sfumato.web.serve import PageAddress, PageServer

    with pytest.raises(ParameterError, match=part):
        PageServer(tmp_path, tmp_path / "s.sqlite", at=PageAddress(**given))


def test_with_tls_an_address_needs_a_name_and_a_certificate_that_fits(certificate, tmp_path):
    from sfumato.web.serve import PageAddress, PageServer

    history = tmp_path / "s.sqlite"
    with pytest.raises(ParameterError, match="no name"):
        PageServer(tmp_path, history, at=address(certificate, host="0.0.0.0"))
    with pytest.raises(ParameterError, match="not of each other"):
        PageServer(tmp_path, history, at=PageAddress(certificate=certificate[0], key=certificate[0]))
    with pytest.raises(ParameterError, match="no such file"):
        PageServer(tmp_path, history, at=address((tmp_path / "none.pem", certificate[1])))
    made = PageServer(tmp_path, history, at=address(certificate, host="0.0.0.0", names=("data.example",)))
    assert made.address.startswith(f"https://data.example:{made.port}/?token=")
    made._socket.close()


def test_the_usual_port_may_be_left_out(certificate):
    hosts = address(certificate, names=("data.example", "::1", "data.example:8443")).hosts(443)
    assert hosts[:3] == ["data.example:443", "[::1]:443", "data.example:8443"]
    assert {"data.example", "[::1]"} <= {*hosts}


# The terminal --------------------------------------------------------------------------------------------


@pytest.fixture
def started(tmp_path):
    """`sfumato web` in a process of its own, with a client, its folder, and what it has said once it ends."""
    (tmp_path / "served").mkdir()
    running = []

    def start(*words):
        place = {
            "cwd": tmp_path / "served",
            "env": {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)},
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "sfumato", "web", "--no-browser", *words],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **place,
        )  # fmt: skip
        running.append(process)
        line = process.stdout.readline()
        found = re.search(r"http://127.0.0.1:(\d+)/\?token=(\S+)", line)
        assert found, line
        client = Client(
            type("Server", (), {"port": int(found[1]), "guard": type("G", (), {"token": found[2]})})
        )
        for _ in range(200):
            try:
                client.enter()
                break
            except OSError:
                time.sleep(0.05)
        return process, client, tmp_path / "served"

    yield start
    for process in running:
        process.kill()
        process.stdout.close()
        process.wait()


def drop(client, name, text):
    body = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n{text}\r\n--x--\r\n'
    headers = {"Origin": f"http://127.0.0.1:{client.port}", "Content-Type": "multipart/form-data; boundary=x"}
    answer, _ = client.ask("POST", "/upload", body=body.encode(), headers=headers)
    assert answer.status == 200


def working_files(folder):
    return [path for path in folder.rglob("*.csv") if path.parent.name.startswith(".sfumato-web-")]


@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_was_dropped_goes_with_the_server(started, ended_by):
    if signal.getsignal(ended_by) is signal.SIG_IGN:
        pytest.skip(f"{ended_by.name} is ignored here, as by nohup")
    process, client, folder = started()
    drop(client, "people.csv", "name,age\nZanzibar,3\n")
    (place,) = working_files(folder)
    assert (place.stat().st_mode & 0o777, place.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert client.get("/")[1]["sessions"][0]["name"] == "people.csv"
    process.send_signal(ended_by)
    process.wait(20)
    assert [*folder.iterdir()] == []
    assert "Zanzibar" not in process.stdout.read()


def test_what_a_kill_left_goes_with_the_next_start(started):
    process, client, folder = started()
    drop(client, "people.csv", "age\n3\n")
    _, second, _ = started()
    drop(second, "others.csv", "age\n3\n")
    assert len(working_files(folder)) == 2  # one server does not delete what another uses
    process.kill()
    process.wait()
    _, third, _ = started()
    assert [path.name for path in working_files(folder)] == ["others.csv"]
    assert [each["name"] for each in third.get("/")[1]["sessions"]] == ["others.csv"]


def test_what_was_dropped_is_kept_if_asked_for(started):
    process, client, folder = started("--keep")
    drop(client, "people.csv", "age\n3\n")
    process.send_signal(signal.SIGINT)
    process.wait(20)
    assert [path.name for path in folder.iterdir()] == ["people.csv"]


def test_nothing_that_goes_wrong_is_told_in_the_terminal(started):
    """No cell and no address with what was typed: the terminal has what is said at the start and at the end."""
    process, client, folder = started()
    (folder / "people.csv").write_text('name;age\n"Zanzibar;3\nZanzibar;x\n')
    client.post("/open", {"source": "people.csv"})
    for path in (
        "/questions/1?decimal=Zanzibar&encoding=Zanzibar",
        "/desk/1",
        "/Zanzibar",
        "/static/Zanzibar",
    ):
        client.get(path)
    client.post("/questions/1", {"then": "desk", "role:name": "Zanzibar", "minutes": "Zanzibar"})
    process.send_signal(signal.SIGINT)
    process.wait(20)
    said = process.stdout.read()
    assert "Zanzibar" not in said
    assert said.splitlines()[-1] == "The page is closed."
    assert len(said.splitlines()) == 2, said


def test_the_page_opens_at_the_file_that_was_named(started, tmp_path):
    (tmp_path / "served" / "people.csv").write_text("age\n3\n")
    _, client, _ = started("people.csv")
    assert client.entry == "/questions/1"

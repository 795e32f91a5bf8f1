"""A page that is really served, and a client that speaks plain HTTP."""

import contextlib
import http.client
import json
import threading
import time
import urllib.parse

SECRET = "Zanzibar"  # a cell that must be nowhere


class Client:
    """What a browser would send, and whatever else a test wants to send."""

    def __init__(self, server):
        self.port, self.cookie, self.token = server.port, "", server.guard.token
        self.scheme = "http"

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def ask(self, verb, path, form=None, *, headers=None, body=None, host=None):
        connection = self.connect()
        own = f"127.0.0.1:{self.port}"
        sent = {"Host": host or own, "Accept": "application/json", "Cookie": self.cookie}
        if form is not None:
            body = urllib.parse.urlencode(form, doseq=True).encode()
            sent |= {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"{self.scheme}://{own}"}
        connection.request(verb, path, body=body, headers={**sent, **(headers or {})})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer, data

    def get(self, path, **more):
        answer, data = self.ask("GET", path, **more)
        return answer.status, _content(answer, data)

    def post(self, path, form, **more):
        answer, data = self.ask("POST", path, form, **more)
        return answer.status, _content(answer, data)

    def enter(self):
        answer, _ = self.ask("GET", f"/?token={self.token}")
        self.first, self.entry = answer.getheader("set-cookie"), answer.getheader("location")
        self.cookie = self.first.split(";")[0]
        return answer

    def open(self, source, **answers):
        """The session of a file, at its desk. Whoever opens the same file goes on in the same session."""
        _, content = self.post("/open", {"source": source})
        session = int(content["next"].rpartition("/")[2])
        status, content = self.post(f"/questions/{session}", {"then": "desk", **answers})
        assert status == 200, content
        return session

    def plan_of(self, session):
        return self.get(f"/desk/{session}")[1]["version_id"]

    def go_back(self, session, plan):
        """The session as it was with a plan: a test sees nothing of what another has changed."""
        assert self.post(f"/desk/{session}/move", {"to": plan})[0] == 200
        return session

    def wait_for(self, job, seconds=120):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            _, content = self.get(job)
            if content["job"]["state"] in {"done", "failed", "stopped"}:
                return content["job"]
            time.sleep(0.2)
        raise AssertionError("the job did not end")


def _content(answer, data):
    is_json = "json" in (answer.getheader("content-type") or "")
    return json.loads(data) if is_json else data.decode()


@contextlib.contextmanager
def serving(folder, history, **more):
    from sfumato.web.serve import PageServer  # needs the extra `web`

    made = PageServer(folder, history, **more)
    thread = threading.Thread(target=made.server.run, kwargs={"sockets": [made._socket]}, daemon=True)
    thread.start()
    while not made.server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.05)
    try:
        yield made
    finally:
        made.server.should_exit = True
        thread.join(20)

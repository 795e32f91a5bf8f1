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

    def ask(self, verb, path, form=None, *, headers=None, body=None, host=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        own = f"127.0.0.1:{self.port}"
        sent = {"Host": host or own, "Accept": "application/json", "Cookie": self.cookie}
        if form is not None:
            body = urllib.parse.urlencode(form, doseq=True).encode()
            sent |= {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://{own}"}
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
        self.first = answer.getheader("set-cookie")
        self.cookie = self.first.split(";")[0]
        return answer

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
def serving(folder, history):
    from sfumato.web.serve import PageServer  # needs the extra `web`

    made = PageServer(folder, history)
    thread = threading.Thread(target=made.server.run, kwargs={"sockets": [made._socket]}, daemon=True)
    thread.start()
    while not made.server.started:
        time.sleep(0.05)
    try:
        yield made
    finally:
        made.server.should_exit = True
        thread.join(20)

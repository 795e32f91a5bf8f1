"""Open the page: a free port on this machine, a token that works once, and the browser."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from sfumato.web.app import make_app
from sfumato.web.guard import Guard
from sfumato.web.history import PlanHistory

LOOPBACK = "127.0.0.1"
#: Bytes of a file that may be dropped on the page; larger ones are opened by their path.
MAX_UPLOAD_BYTES = 2_000_000_000


class PageServer:
    """The page of one folder, listening but not yet answering."""

    def __init__(self, folder: Path, history: Path, *, port: int = 0) -> None:
        self.history_path = history
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((LOOPBACK, port))
        self.port = self._socket.getsockname()[1]
        hosts = frozenset({f"{LOOPBACK}:{self.port}", f"localhost:{self.port}"})
        app = make_app(folder, PlanHistory(history))
        self.guard = Guard(app, hosts=hosts, port=self.port, upload_bytes=MAX_UPLOAD_BYTES)
        config = uvicorn.Config(
            self.guard, log_level="error", access_log=False, server_header=False, lifespan="on",
            timeout_graceful_shutdown=2,
        )  # fmt: skip
        self.server = uvicorn.Server(config)

    @property
    def address(self) -> str:
        """Where the page is opened, once."""
        return f"http://{LOOPBACK}:{self.port}/?token={self.guard.token}"

    def run(self, *, browser: bool, say: Callable[[str], None]) -> None:
        """Answer until Ctrl-C."""
        say(f"The page is at {self.address}")
        say("It works on this machine only, and needs no network. Ctrl-C ends it.")
        if browser:
            webbrowser.open(self.address)
        self.server.run(sockets=[self._socket])

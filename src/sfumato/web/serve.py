"""Open the page: a port of this machine, or with a certificate of a network; a token that works once."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import signal
import socket
import ssl
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from sfumato.errors import ParameterError, trouble_with
from sfumato.web.app import make_app
from sfumato.web.guard import Guard
from sfumato.web.history import PlanHistory
from sfumato.web.start_page import begin_session

LOOPBACK = "127.0.0.1"
#: Bytes of a file that may be dropped on the page; larger ones are opened by their path.
MAX_UPLOAD_BYTES = 2_000_000_000
#: The ports that a browser does not name.
_USUAL_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class PageAddress:
    """Where the page listens: on this machine alone, or at another address with a certificate and its key.

    ``names`` are what the address is called by those who open it, where that differs.
    """

    host: str = LOOPBACK
    port: int = 0
    names: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None

    @property
    def scheme(self) -> str:
        """How it is asked: encrypted if there is a certificate."""
        return "https" if self.certificate else "http"

    def listen(self) -> socket.socket:
        """A socket at this address, if it may be opened there."""
        try:
            family, _, _, _, place = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0]
        except (OSError, UnicodeError):
            raise ParameterError(f"`--host` must be an address of this machine, got: `{self.host}`") from None
        self._require_certificate(ipaddress.ip_address(str(place[0]).partition("%")[0]))
        try:
            return socket.create_server(place[:2], family=family)
        except OSError as error:
            message = f"The page cannot listen at {self.host}, port {self.port}: {trouble_with(error)}."
            raise ParameterError(
                message, hint="leave out --port and --host, and a free one is taken"
            ) from None

    def _require_certificate(self, place: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ParameterError("A certificate and its key are given together: --tls-cert and --tls-key.")
        if self.certificate is None and (self.names or not place.is_loopback):
            raise ParameterError(
                "Other machines may open the page by an encrypted connection only.",
                hint="add --tls-cert FILE --tls-key FILE, or leave out --host and --allow-host",
            )
        if place.is_unspecified and not self.names:
            raise ParameterError(
                f"`--host {self.host}` has no name by which the page is opened.",
                hint="name it with --allow-host NAME",
            )

    def hosts(self, port: int) -> list[str]:
        """The hosts that a request may name, the first in the address that is printed."""
        named = [*self.names, self.host, *(["localhost"] if self.host == LOOPBACK else [])]
        named = [f"[{each}]" if each.count(":") > 1 and not each.startswith("[") else each for each in named]
        hosts = [each if each.rpartition(":")[2].isdecimal() else f"{each}:{port}" for each in named]
        bare = f":{_USUAL_PORTS[self.scheme]}"
        return [*hosts, *(each.removesuffix(bare) for each in hosts if each.endswith(bare))]


class PageServer:
    """The page of one folder, listening but not yet answering; it opens at ``source``, if that is given."""

    def __init__(
        self,
        folder: Path,
        history: Path,
        *,
        source: str = "",
        at: PageAddress | None = None,
        keep: bool = False,
    ) -> None:
        at = at or PageAddress()
        self.history_path, self._socket = history, at.listen()
        self.port = self._socket.getsockname()[1]
        app = make_app(folder, PlanHistory(history), keep=keep)
        hosts = at.hosts(self.port)
        self.guard = Guard(
            app, hosts=frozenset(hosts), port=self.port, upload_bytes=MAX_UPLOAD_BYTES, scheme=at.scheme,
            entry=begin_session(app.state.own, source) if source else "/",
        )  # fmt: skip
        self._home = f"{at.scheme}://{hosts[0]}"
        self._config = uvicorn.Config(
            self.guard, log_level="critical", access_log=False, server_header=False, proxy_headers=False,
            lifespan="on", timeout_graceful_shutdown=2, ssl_certfile=at.certificate, ssl_keyfile=at.key,
        )  # fmt: skip
        try:
            self._config.load()
        except OSError as error:  # of a file, or of what is in it
            self._socket.close()
            fits = not isinstance(error, ssl.SSLError)
            reason = trouble_with(error) if fits else "they are no PEM files, or not of each other"
            raise ParameterError(f"The certificate and its key cannot be used: {reason}.") from None
        self.server = uvicorn.Server(self._config)

    @property
    def address(self) -> str:
        """Where the page is opened, once."""
        return f"{self._home}/?token={self.guard.token}"

    def run(self, *, browser: bool, say: Callable[[str], None]) -> None:
        """Answer until Ctrl-C."""
        say(f"The page is at {self.address}")
        if self._config.is_ssl:
            say("Whoever opens this address first is let in, and nobody else. Ctrl-C ends it.")
        else:
            say("It works on this machine only, and needs no network. Ctrl-C ends it.")
        logging.disable()  # other packages tell of requests; what goes wrong is said on the page
        if browser:
            webbrowser.open(self.address)
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
            signal.signal(signal.SIGHUP, self.server.handle_exit)  # its terminal was closed
        with contextlib.suppress(KeyboardInterrupt):
            self.server.run(sockets=[self._socket])
        say("The page is closed.")

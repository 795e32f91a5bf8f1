"""Messages between the leader and a party: JSON and bytes over TLS, each knowing the other's certificate."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.core.run import Run
from sfumato.errors import RefusedError
from sfumato.parties.identity import PartyCertificate

#: The lengths of the JSON and of the bytes that follow it.
_LENGTHS = struct.Struct(">IQ")
_MAX_JSON = 2**20
#: The most bytes of a message: the records of a part.
MAX_BYTES = 2**33
#: How long a wait is before it is asked whether someone wants to stop, and the most that is read at once.
SECONDS_BETWEEN_CHECKS, _READ_BYTES = 0.5, 2**20
#: How long the other end may take to see that the session is over.
_LAST_SECONDS = 1.0
FAILED = "failed"


@dataclass
class Channel:
    """One connection; ``peer`` is who is at its other end, and ``seconds`` how long its silence is borne."""

    socket: ssl.SSLSocket
    peer: str
    run: Run
    seconds: float

    def send(self, kind: str, body: bytes = b"", **values: Any) -> None:
        """Send a message: its kind, values and bytes."""
        head = json.dumps({"kind": kind, **values}).encode()
        try:
            self.socket.settimeout(self.seconds)
            self.socket.sendall(_LENGTHS.pack(len(head), len(body)) + head)
            self.socket.sendall(body)
        except OSError:
            raise self.left() from None

    def receive(self, kind: str, *, max_bytes: int = 0) -> tuple[dict[str, Any], bytes]:
        """Wait for the next message, which must be of a kind; give its values and bytes."""
        n_head, n_body = _LENGTHS.unpack(self._read(_LENGTHS.size))
        if n_head > _MAX_JSON or n_body > max_bytes:
            raise self.misbehaved("a message is too long")
        try:
            values = dict(json.loads(self._read(n_head)))
        except (ValueError, TypeError):
            raise self.misbehaved("a message is damaged") from None
        came, body = values.pop("kind", None), self._read(n_body)
        if came == FAILED:  # its words are shown without anything that could act on a screen
            reason = "".join(each for each in str(values.get("reason"))[:400] if each.isprintable())
            raise RefusedError(f"{self.peer} ended the session, so nothing was written: {reason}")
        if came != kind:
            raise self.misbehaved(f"`{kind}` was due, each message once")
        return values, body

    def _read(self, size: int) -> bytes:
        data, until = bytearray(), time.monotonic() + self.seconds
        self.socket.settimeout(SECONDS_BETWEEN_CHECKS)
        while len(data) < size:
            self.run.check()
            try:
                came = self.socket.recv(min(size - len(data), _READ_BYTES))
            except TimeoutError:
                if time.monotonic() < until:
                    continue
                came = b""
            except OSError:
                came = b""
            if not came:
                raise self.left()
            data += came
            until = time.monotonic() + self.seconds
        return bytes(data)

    def left(self) -> RefusedError:
        """The error for a peer that is gone."""
        hint = "start again when all parties are there"
        return RefusedError(f"{self.peer} left the session, so nothing was written", hint=hint)

    def misbehaved(self, how: str) -> RefusedError:
        """The error for a peer whose messages are not what they must be."""
        hint = "tell the other parties before you join again"
        return RefusedError(f"{self.peer} does not follow the protocol: {how}", hint=hint)

    def by_party(self, roster: Collection[str], body: bytes) -> dict[str, bytes]:
        """The equal pieces of a message, one for each party in the order of their names."""
        size, rest = divmod(len(body), len(roster))
        if rest:
            raise self.misbehaved("a message is damaged")
        return {name: body[size * i : size * (i + 1)] for i, name in enumerate(sorted(roster))}

    def close(self) -> None:
        """End the connection; whoever is at its other end can read what was sent last."""
        until = time.monotonic() + _LAST_SECONDS
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)
            self.socket.settimeout(_LAST_SECONDS)
            while time.monotonic() < until and self.socket.recv(_READ_BYTES):
                pass  # a system that closes with messages unread takes back its own
        self.socket.close()


def tls_context(side: int, own: Path, key: Path, trusted: Iterable[PartyCertificate]) -> ssl.SSLContext:
    """TLS with the owners of these certificates alone, both ends of which show theirs."""
    context = ssl.SSLContext(side)
    context.check_hostname = False  # the very certificate is known, whatever the address
    context.verify_mode = ssl.CERT_REQUIRED
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(own, key)
    for each in trusted:
        context.load_verify_locations(cadata=each.der)
    return context


def connect(address: tuple[str, int], context: ssl.SSLContext, run: Run, seconds: float) -> Channel:
    """Connect with the leader, who may not be there yet."""
    host, port = address
    until = time.monotonic() + seconds
    while True:
        run.tell("waiting for the leader", 0, 0)
        try:
            plain = socket.create_connection(address, timeout=seconds)
            return Channel(context.wrap_socket(plain), "the leader", run, seconds)
        except ssl.SSLError:
            plain.close()
            raise RefusedError(f"who waits at {host}:{port} is not the leader of the plan") from None
        except OSError:
            if time.monotonic() >= until:
                raise RefusedError(
                    f"no leader answers at {host}:{port}", hint="is `sfumato party serve` running there?"
                ) from None
            time.sleep(SECONDS_BETWEEN_CHECKS)

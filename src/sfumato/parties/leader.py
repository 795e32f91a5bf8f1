"""What the leader does: bring the parties together, add up, search, pool the protected records.

The leader sees totals and protected records, never the counts or the original records of a party. It holds no
data: an owner of data who leads joins as a party, too.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.core.run import Run
from sfumato.errors import RefusedError, SfumatoError, quoted, trouble_with
from sfumato.parties.channel import FAILED, MAX_BYTES, SECONDS_BETWEEN_CHECKS, Channel, tls_context
from sfumato.parties.identity import PartyIdentity
from sfumato.parties.masks import Words, add_up
from sfumato.parties.party_plan import LEADER, PartyPlan
from sfumato.parties.pooling import release_pooled
from sfumato.parties.search import AgreedRecoding, search_apart, search_pooled
from sfumato.releasing.outcome import PlanOutcome

#: How long a connection may take to show a certificate.
_HANDSHAKE_SECONDS = 10.0


@dataclass
class LeaderSession:
    """A session that waits for parties at an address; each message goes to all of them, and comes of all."""

    party_plan: PartyPlan
    run: Run
    seconds: float
    listener: socket.socket
    context: ssl.SSLContext
    channels: dict[str, Channel] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Where parties join."""
        host, port = self.listener.getsockname()[:2]
        return f"{host}:{port}"

    def lead(self, write: Callable[[AgreedRecoding, PlanOutcome | None], None]) -> None:
        """Lead the session to its end; ``write`` is called once all parties have said good-bye."""
        nonces = self._gather()
        self._send_all("session", b"".join(nonces[name] for name in sorted(nonces)))
        hellos = self._receive_all("hello", "keys", max_bytes=1024)
        self._send_all("hellos", b"".join(hellos[name] for name in sorted(hellos)))
        self._send_all("sum")
        totals = self._add_up()
        search = search_pooled if self.party_plan.pools else search_apart
        agreed = search(self.party_plan, totals, self.run)
        self._send_all("agreed", np.packbits(agreed.failing).tobytes(), **agreed.to_dict())
        parts = self._receive_all("records", "records", max_bytes=MAX_BYTES)
        outcome = None
        if self.party_plan.pools:
            outcome = release_pooled(self.party_plan, agreed, parts, self.run)
        self._send_all("close")
        self._receive_all("bye", "last word")
        write(agreed, outcome)
        self._send_all("end")

    def _add_up(self) -> Words:
        vectors = self._receive_all("masked", "masked counts", max_bytes=8 * self.party_plan.n_numbers)
        for name, body in vectors.items():
            if len(body) != 8 * self.party_plan.n_numbers:
                raise self.channels[name].misbehaved("it sent other counts")
        words = {name: np.frombuffer(body, dtype="<u8") for name, body in vectors.items()}
        return add_up(words, self.party_plan.spec.roster)

    def _gather(self) -> dict[str, bytes]:
        """Wait until every party of the roster is there with the same plan; give their nonces."""
        roster, until = self.party_plan.spec.roster, time.monotonic() + self.seconds
        nonces: dict[str, bytes] = {}
        while len(nonces) < len(roster):
            self.run.tell("waiting for the parties", len(nonces), len(roster))
            name = self._accept()
            if name is not None:
                begin = self.channels[name].receive("begin", max_bytes=1024)[1]
                plan, nonces[name] = begin[:-32], begin[-32:]
                if plan != self.party_plan.digest:
                    raise RefusedError(f"party `{name}` has another plan, so nothing was written")
            elif time.monotonic() > until:
                missing = quoted(sorted(set(roster) - set(nonces)))
                raise RefusedError(f"not all parties came in time, so nothing was written: {missing}")
        return nonces

    def _accept(self) -> str | None:
        """The next party; None if nobody came for a while, or a stranger did, or a party once more."""
        try:
            plain, _ = self.listener.accept()
        except TimeoutError:
            return None
        plain.settimeout(_HANDSHAKE_SECONDS)
        try:
            connection = self.context.wrap_socket(plain, server_side=True)
        except OSError:  # no certificate of the roster
            plain.close()
            return None
        shown, known = connection.getpeercert(binary_form=True), self.party_plan.certificates
        name = next((each for each in self.party_plan.spec.roster if known[each].der == shown), None)
        if name is None or name in self.channels:
            connection.close()
            return None
        self.channels[name] = Channel(connection, f"party `{name}`", self.run, self.seconds)
        return name

    def _send_all(self, kind: str, body: bytes = b"", **values: Any) -> None:
        for channel in self.channels.values():
            channel.send(kind, body, **values)

    def _receive_all(self, kind: str, what: str, *, max_bytes: int = 0) -> dict[str, bytes]:
        """One message of each party, in whatever order they come."""
        received: dict[str, bytes] = {}
        for name, channel in self.channels.items():
            self.run.tell(f"waiting for the {what} of all parties", len(received), len(self.channels))
            received[name] = channel.receive(kind, max_bytes=max_bytes)[1]
        return received

    def end(self, reason: str) -> None:
        """Tell all who are there that the session has ended, and why."""
        for channel in self.channels.values():
            with suppress(SfumatoError):
                channel.send(FAILED, reason=reason)


@contextmanager
def open_session(
    party_plan: PartyPlan, identity: PartyIdentity, address: tuple[str, int], run: Run, *, seconds: float
) -> Iterator[LeaderSession]:
    """Wait for parties at an address; whatever goes wrong is told to those who are there."""
    if identity.public_key != party_plan.certificates[LEADER].key:
        raise RefusedError(f"the key `{identity.path}` is not the leader's of the plan")
    certificate, trusted = party_plan.plan.folder / f"{LEADER}.pem", party_plan.certificates.values()
    context = tls_context(ssl.PROTOCOL_TLS_SERVER, certificate, identity.path, trusted)
    try:
        listener = socket.create_server(address)
    except OSError as error:
        raise RefusedError(f"cannot wait at {address[0]}:{address[1]}: {trouble_with(error)}") from None
    listener.settimeout(SECONDS_BETWEEN_CHECKS)
    session = LeaderSession(party_plan, run, seconds, listener, context)
    try:
        yield session
    except SfumatoError as error:
        session.end(error.message)
        raise
    finally:
        listener.close()
        for channel in session.channels.values():
            channel.close()

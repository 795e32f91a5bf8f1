"""Secure sums of counts by pairwise masks: who adds up learns the totals, and nothing of one party.

Guarantee. Each pair of parties shares a secret of this session (X25519), known to no third. Of it each turn
has a key of its own (HKDF), and the key a stream of random words (ChaCha20), which the one party adds to its
counts and the other subtracts, modulo 2^64. All masks cancel in the sum over all parties. A sum over fewer
still has the masks of pairs of honest parties, one of whom is not in it: random words to whoever cannot break
the cipher. This is for parties that follow the protocol and are curious. All but one of them together learn
the counts of the last: they know the sum, and all other counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from sfumato.errors import RefusedError

#: Counts, and counts under masks: whole numbers modulo 2^64.
Words = npt.NDArray[np.uint64]

#: The length of a key for a session.
KEY_BYTES = 32
#: Of two parties each knows the other's counts from the sum.
FEWEST_PARTIES = 3


@dataclass(frozen=True)
class Hello:
    """A party's key for one session, signed with all that the parties agree on."""

    name: str
    key: bytes
    signature: bytes


def agreement_of(plan: bytes, nonces: Mapping[str, bytes]) -> bytes:
    """A digest of what all agree on: the plan, who takes part, and which session it is.

    Each party draws a nonce, so that no session is the same as another for any of them.
    """
    state = hashlib.blake2b(digest_size=32, person=b"sfumato-parties")
    for piece in (plan, *(each for name in sorted(nonces) for each in (name.encode(), nonces[name]))):
        state.update(len(piece).to_bytes(8, "little") + piece)
    return state.digest()


@dataclass
class Masker:
    """Puts the counts of one party under masks, in one session.

    ``roster`` are the public keys of all parties, known beforehand and never from the leader.
    """

    name: str
    identity: Ed25519PrivateKey = field(repr=False)
    roster: Mapping[str, bytes]
    agreement: bytes
    _secret: X25519PrivateKey = field(default_factory=X25519PrivateKey.generate, repr=False)
    _shared: dict[str, bytes] = field(default_factory=dict, repr=False)
    _turns: set[int] = field(default_factory=set, repr=False)

    def hello(self) -> Hello:
        """The key of this party for this session."""
        key = self._secret.public_key().public_bytes_raw()
        return Hello(self.name, key, self.identity.sign(self._bytes_to_sign(self.name, key)))

    def meet(self, hellos: Sequence[Hello]) -> None:
        """Take the keys of the others: each must be signed by who the roster says, for this very session."""
        if len(self.roster) < FEWEST_PARTIES:
            raise RefusedError("a secure sum needs three parties: of two each learns the other's counts")
        if sorted(each.name for each in hellos) != sorted(self.roster):
            raise RefusedError("not all parties of the roster take part in the session, or others do")
        for each in hellos:
            try:
                signer = Ed25519PublicKey.from_public_bytes(self.roster[each.name])
                signer.verify(each.signature, self._bytes_to_sign(each.name, each.key))
                if each.name != self.name:
                    their_key = X25519PublicKey.from_public_bytes(each.key)
                    self._shared[each.name] = self._secret.exchange(their_key)
            except (InvalidSignature, ValueError):
                self._shared.clear()
                raise RefusedError(
                    f"the session key of `{each.name}` is forged: the key in the roster did not sign it",
                    hint="do not join again before you know who sent it",
                ) from None

    def mask(self, turn: int, counts: Words) -> Words:
        """The counts under the masks of one turn, each of which there is once.

        Two vectors under the same masks would tell the difference of the counts.
        """
        if not self._shared:
            raise RefusedError("no counts are sent before the keys of all parties are checked")
        if turn in self._turns:
            raise RefusedError(
                "the leader asked for the same turn twice, which would reveal counts",
                hint="tell the other parties: an honest leader asks once",
            )
        self._turns.add(turn)
        total = counts.astype(np.uint64)
        for other, shared in self._shared.items():
            words = self._mask_words(shared, other, turn, len(total))
            total = total + words if self.name < other else total - words
        return total

    def _bytes_to_sign(self, name: str, key: bytes) -> bytes:
        return self.agreement + name.encode() + b"\0" + key

    def _mask_words(self, shared: bytes, other: str, turn: int, n: int) -> Words:
        pair = "|".join(sorted((self.name, other))).encode()
        info = self.agreement + pair + turn.to_bytes(8, "little")
        key = HKDF(hashes.SHA256(), 32, salt=None, info=info).derive(shared)
        stream = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(8 * n))
        return np.frombuffer(stream, dtype="<u8")


def add_up(vectors: Mapping[str, Words], roster: Iterable[str]) -> Words:
    """The totals: nothing unless there is a vector of every party."""
    if set(vectors) != set(roster):
        raise RefusedError("the sum needs a vector of every party")
    total = np.zeros_like(next(iter(vectors.values())))
    for vector in vectors.values():
        total += vector
    return total

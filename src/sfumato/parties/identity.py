"""Who a party is: an Ed25519 key that only it can read, and a certificate of it that all others have."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

from sfumato.errors import ParameterError, ReadError, trouble_with
from sfumato.io import Staging

#: What a party may be called: its name is that of a file, too.
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_OTHERS_MAY = 0o077
_VALID_FOR = timedelta(days=3650)


@dataclass(frozen=True)
class PartyCertificate:
    """The public part of an identity."""

    der: bytes
    key: bytes  # of Ed25519, 32 bytes

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the public key: what a roster holds, and people compare."""
        return hashlib.sha256(self.key).hexdigest()

    @classmethod
    def read(cls, path: Path) -> PartyCertificate:
        """Read a certificate of an Ed25519 key."""
        try:
            made = x509.load_pem_x509_certificate(path.read_bytes())
        except OSError as error:
            raise ReadError(f"cannot read the certificate `{path}`: {trouble_with(error)}") from None
        except ValueError:
            raise ReadError(f"`{path}` is not a certificate") from None
        key = made.public_key()
        if not isinstance(key, Ed25519PublicKey):
            raise ReadError(
                f"`{path}` is not a certificate of an Ed25519 key", hint="make it with `sfumato party key`"
            )
        return cls(made.public_bytes(Encoding.DER), key.public_bytes_raw())


@dataclass(frozen=True)
class PartyIdentity:
    """The private part of an identity, and the file that it lies in."""

    path: Path
    key: Ed25519PrivateKey

    @property
    def public_key(self) -> bytes:
        """The public key, 32 bytes."""
        return self.key.public_key().public_bytes_raw()

    @classmethod
    def read(cls, path: Path) -> PartyIdentity:
        """Read a key that only its owner may read."""
        try:
            shared, text = path.stat().st_mode & _OTHERS_MAY, path.read_bytes()
        except OSError as error:
            raise ReadError(f"cannot read the key `{path}`: {trouble_with(error)}") from None
        if shared:
            raise ReadError(
                f"other users can read the key `{path}`",
                hint=f"`chmod 600 {path.name}`; if others have read it, make a new key",
            )
        try:
            key = load_pem_private_key(text, None)
        except (ValueError, TypeError):
            key = None
        if not isinstance(key, Ed25519PrivateKey):
            raise ReadError(f"`{path}` is not a key of a party", hint="make one with `sfumato party key`")
        return cls(path, key)


def make_identity(name: str, folder: Path) -> PartyCertificate:
    """Write a new ``NAME.key`` for its owner alone and ``NAME.pem`` for all, and give the certificate."""
    if not NAME.fullmatch(name):
        raise ParameterError(
            "a party's name must be of small letters, digits and hyphens, at most 32, got: another name"
        )
    key = Ed25519PrivateKey.generate()
    owner, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), datetime.now(UTC)
    made = (
        x509.CertificateBuilder(owner, owner, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + _VALID_FOR)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, None)
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with Staging() as staging:
        staging.write_text(folder / f"{name}.key", private.decode(), private=True)
        staging.write_text(folder / f"{name}.pem", made.public_bytes(Encoding.PEM).decode())
    return PartyCertificate.read(folder / f"{name}.pem")

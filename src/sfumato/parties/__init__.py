"""Parties: several owners of one table's records find one recoding together, and none shows its records."""

from __future__ import annotations

from importlib.util import find_spec

from sfumato.errors import MissingDependencyError

if find_spec("cryptography") is None:
    raise MissingDependencyError.of("cryptography", extra="parties", purpose="a session of parties")

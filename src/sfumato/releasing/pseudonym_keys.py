"""The key of pseudonyms: in a file of its own, so that people keep their names from release to release.

Who has the key can tell whose number a pseudonym is, by trying those they know; nobody else can, nor whether
two releases under different keys speak of the same person.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from sfumato.data.pseudonyms import KEY_SIZE
from sfumato.errors import PlanError, ReadError, trouble_with
from sfumato.recipes.parts import locate
from sfumato.recipes.plan import Plan

_OTHERS_MAY = 0o077


def key_places(plan: Plan) -> dict[str, Path]:
    """Where the key of each table lies or will lie, for those that have one of their own."""
    found = {}
    for name, part in plan.parts.items():
        if part.output.pseudonym_key:
            place = locate(part.output.pseudonym_key, part.folder)
            if not isinstance(place, Path):
                raise PlanError("`pseudonym_key` of the output must be a file, got: a database")
            found[name] = place
    return found


def keys_of(plan: Plan) -> tuple[dict[str, bytes], dict[Path, str]]:
    """The key of each table that has one of its own, and new ones by the file they are to be written to."""
    keys: dict[Path, bytes] = {}
    new: dict[Path, str] = {}
    places = key_places(plan)
    for place in dict.fromkeys(places.values()):
        if place.exists():
            keys[place] = read_key(place)
        else:
            keys[place] = secrets.token_bytes(KEY_SIZE)
            new[place] = keys[place].hex() + "\n"
    return {name: keys[place] for name, place in places.items()}, new


def read_key(place: Path) -> bytes:
    """Read a key that only its owner may read."""
    try:
        shared = place.stat().st_mode & _OTHERS_MAY
        text = place.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ReadError(f"cannot read the key `{place}`: {trouble_with(error)}") from None
    if shared:
        raise ReadError(
            f"other users can read the key `{place}`",
            hint=f"`chmod 600 {place.name}`; if others have read it, use a new key",
        )
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_SIZE:
        raise ReadError(
            f"`{place}` is not a key of {2 * KEY_SIZE} hexadecimal digits",
            hint="restore the key: with a new one every pseudonym changes",
        )
    return key

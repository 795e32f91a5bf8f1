"""SHA256SUMS of a release folder: what must be in it, and which file is not what it was.

There are two lists, in the form of ``sha256sum``: one beside the files that leave, of these; and one in
``private``, of everything. The last line of each is a comment with the hash of the lines above it, so that
a list in which a byte has changed is seen to be damaged, and blames no other file.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sfumato.recipes.parts import fingerprint

PRIVATE, SUMS = "private", "SHA256SUMS"
#: The scripts that check a release without sfumato: what leaves, and in ``private`` what needs the original.
CHECK, CHECK_ORIGINAL, CHECK_LATTICE = "check_release.py", "check_original.py", "check_lattice.py"
#: A signature of a list, which someone may put beside it; nobody here touches or checks it.
SIGNATURES = tuple(
    f"{folder}{SUMS}.{ending}" for folder in ("", f"{PRIVATE}/") for ending in ("sig", "asc", "minisig")
)
#: Where reasons of overrides are kept: others than a release may add to it, so no list names it.
OVERRIDES = "overrides.private.jsonl"

State = Literal[
    "identical", "equal", "different", "missing", "unchanged", "added", "unchecked", "signature", "grows"
]

_LINE = re.compile(r"([0-9a-f]{64})  ([^\n]+)\n")
_LAST = "# sha256 of the lines above: "


def sums_of(folder: Path, names: Iterable[str], *, seen_from: str = "") -> str:
    """The list of files of a folder, by names seen from it or from a folder in it."""
    start = seen_from or "."
    lines = "".join(f"{fingerprint(folder / n)}  {posixpath.relpath(n, start)}\n" for n in sorted(names))
    return f"{lines}{_LAST}{_hash(lines)}\n"


def _hash(lines: str) -> str:
    return hashlib.sha256(lines.encode()).hexdigest()


@dataclass(frozen=True)
class Sums:
    """A list that was read: the hash of each file by its name in the release folder, if it is sound."""

    hashes: Mapping[str, str]
    sound: bool = True

    @classmethod
    def read(cls, folder: Path, name: str) -> Sums | None:
        """Read a list of a release folder; None if it is not there."""
        place = folder / name
        if not place.is_file() or place.is_symlink():
            return None
        lines, sign, last = place.read_bytes().decode(errors="replace").rpartition(_LAST)
        home = posixpath.dirname(name)
        found = {posixpath.normpath(posixpath.join(home, each)): sha for sha, each in _LINE.findall(lines)}
        sound = bool(sign) and last == f"{_hash(lines)}\n" and not any(map(_leads_out, found))
        return cls(found if sound else {}, sound=sound)


def _leads_out(name: str) -> bool:
    return posixpath.isabs(name) or name.startswith("../") or name == ".."


def contents(folder: Path) -> Iterator[str]:
    """The names of all that is in a folder; links are not followed, and a folder is named if it is empty."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_dir() or not any(path.iterdir()):
            yield path.relative_to(folder).as_posix()


def is_release_folder(place: Path) -> bool:
    """Whether a folder has the lists that a release folder has, or one of them."""
    return (place / SUMS).is_file() or has_private_part(place)


def has_private_part(place: Path) -> bool:
    """Whether a folder is a release folder with all that stays with its owner."""
    return (place / PRIVATE / SUMS).is_file()


def states_of(folder: Path) -> dict[str, State]:
    """What became of every file of a release folder since it was written, by its name; nothing is made again.

    Without its ``private`` part a folder is known by the list of what leaves. What no sound list speaks of is
    ``unchecked``, or ``added`` where all lists are sound.
    """
    names = [f"{PRIVATE}/{SUMS}", SUMS] if (folder / PRIVATE).is_dir() else [SUMS]
    lists = {name: Sums.read(folder, name) for name in names}
    states: dict[str, State] = {}
    hashes: dict[str, str] = {}
    for name in reversed(names):
        found = lists[name]
        states[name] = "missing" if found is None else "unchanged" if found.sound else "different"
        hashes |= found.hashes if found else {}
    for name, sha in hashes.items():
        if states.get(name) != "different":
            states[name] = state_of(folder / name, sha)
    all_sound = all(each is not None and each.sound for each in lists.values())
    for name in contents(folder):
        if name not in states:
            states[name] = _state_of_unlisted(name, all_sound=all_sound)
    return dict(sorted(states.items(), key=lambda each: (each[0].startswith(f"{PRIVATE}/"), each[0])))


def state_of(place: Path, sha256: str) -> State:
    """Whether a file is there, and has the bytes that were written."""
    if not place.is_file():
        return "missing"
    return "unchanged" if not place.is_symlink() and fingerprint(place) == sha256 else "different"


def _state_of_unlisted(name: str, *, all_sound: bool) -> State:
    if name in SIGNATURES:
        return "signature"
    if name == f"{PRIVATE}/{OVERRIDES}":
        return "grows"
    return "added" if all_sound else "unchecked"

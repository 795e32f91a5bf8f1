"""Whether the file of a statistical package is what its name says and whole, looked at before it is read.

The library that reads these files trusts them: cut or damaged at certain places they would be read short, or
end the process.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from sfumato.errors import ReadError
from sfumato.io.formats import damaged_file, other_format

#: How the files of each suffix begin; an old Stata file begins with the number of its version.
_STARTS: dict[str, tuple[bytes, ...]] = {
    ".sav": (b"$FL2", b"$FL3"),
    ".zsav": (b"$FL2", b"$FL3"),
    ".dta": (
        b"<stata_dta>",
        *(bytes([version]) for version in (102, 103, 104, 105, 108, 110, *range(111, 116))),
    ),
    ".sas7bdat": (b"\0" * 12 + b"\xc2\xea\x81\x60",),
    ".xpt": (b"HEADER RECORD*******LIB",),
    ".por": (),
}
_DTA_END = b"</stata_dta>"
_OLD_DTA_ORDERS = (1, 2)  # the second byte of an old Stata file: which byte of a number comes first

_HINTS = {
    b"ENCRYPTED": "it is protected by a password: save it without one",
    b"**COMPRESSED**": "it was made by PROC CPORT: make it with the XPORT engine instead",
}


def require_sound(path: Path, package: str) -> None:
    """Raise unless a file begins, and as far as it can be known ends, as one of its suffix does."""
    suffix = path.suffix.lower()
    with path.open("rb") as file:
        head = file.read(80)
    if not head:
        raise ReadError(f"the {package} file `{path.name}` is empty")
    if not _begins_right(head, suffix):
        raise other_format(path.name, package, *(hint for mark, hint in _HINTS.items() if mark in head))
    if suffix in {".sav", ".zsav"}:
        _require_dictionary(path, package)
    elif head.startswith(b"<stata_dta>"):
        with path.open("rb") as file:
            file.seek(-min(path.stat().st_size, 80), 2)
            if not file.read().rstrip(b"\0\r\n ").endswith(_DTA_END):
                raise damaged_file(path.name, package)


def _begins_right(head: bytes, suffix: str) -> bool:
    starts = _STARTS[suffix]
    if suffix == ".dta" and not head.startswith(b"<"):
        return head.startswith(starts) and len(head) > 1 and head[1] in _OLD_DTA_ORDERS
    return not starts or head.startswith(starts)


# The dictionary of an SPSS file ----------------------------------------------------------------------------

_HEADER, _LAYOUT_AT, _END = 176, 64, 999
_TEXT_FORMATS = {1, 2}  # A and AHEX


def _require_dictionary(path: Path, package: str) -> None:
    """Walk through the dictionary: labels for a variable that is not there would end the process."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        try:
            _Dictionary(content).walk()
        except (struct.error, IndexError, ValueError):
            raise damaged_file(path.name, package) from None


class _Dictionary:
    """The records of the dictionary, each a number that says what it is, and what follows."""

    def __init__(self, content: mmap.mmap) -> None:
        self.content = content
        self.at = _HEADER
        self.widths: list[int] = []  # for each slot of eight bytes: 0 for a number, −1 where a text goes on
        self.values: list[bytes] = []  # those that were last given labels
        self.order = "<" if struct.unpack_from("<i", content, _LAYOUT_AT)[0] in {2, 3} else ">"

    def walk(self) -> None:
        """Go to the end, or raise ValueError for what cannot be."""
        ways = {2: self.variable, 3: self.labels, 4: self.labelled, 6: self.document, 7: self.extension}
        while (record := self.numbers(1)[0]) != _END:
            if record not in ways:
                raise ValueError
            ways[record]()

    def numbers(self, count: int) -> tuple[int, ...]:
        if not 0 <= count <= len(self.content):
            raise ValueError
        found: tuple[int, ...] = struct.unpack_from(f"{self.order}{count}i", self.content, self.at)
        self.pass_over(4 * count)
        return found

    def pass_over(self, length: int) -> None:
        if not 0 <= length <= len(self.content):
            raise ValueError
        self.at += length

    def variable(self) -> None:
        width, labelled, codes, *formats, _, _ = self.numbers(7)
        if width == 0 and any(shown_as >> 16 in _TEXT_FORMATS for shown_as in formats):
            raise ValueError
        self.widths.append(width)
        if labelled:
            self.pass_over(-(-self.numbers(1)[0] // 4) * 4)
        self.pass_over(8 * abs(codes))

    def labels(self) -> None:
        self.values = []
        for _ in range(self.numbers(1)[0]):
            self.values.append(self.content[self.at : self.at + 8])
            self.pass_over(8 + -(-(1 + self.content[self.at + 8]) // 8) * 8)

    def labelled(self) -> None:
        slots = self.numbers(self.numbers(1)[0])
        if not slots or not all(0 < slot <= len(self.widths) for slot in slots):
            raise ValueError
        widths = {self.widths[slot - 1] for slot in slots}
        if min(widths) < 0 or (max(widths) > 0 and any(b"\0" in value for value in self.values)):
            raise ValueError

    def document(self) -> None:
        self.pass_over(80 * self.numbers(1)[0])

    def extension(self) -> None:
        _, size, count = self.numbers(3)
        self.pass_over(size * count)

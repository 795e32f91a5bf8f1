"""SAS transport files as bytes: whether they are whole, and the special missing values in them.

Such a file is filled up with blanks to a multiple of 80 bytes; a missing number is one byte, ``.`` or a
letter, and zeros. The library in use reads no letters and writes none, and takes what is left of a file that
was cut for the whole.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from sfumato.errors import ReadError
from sfumato.io.formats import damaged_file
from sfumato.kernels.arrays import Bytes

_RECORD = 80
_BEFORE_DATA = b"HEADER RECORD*******OBS"
_NEXT_MEMBER = b"HEADER RECORD*******MEM"
_COUNT_AT = slice(48, 64)  # where newer files state how many records there are
_LETTERS = np.frombuffer(b"_ABCDEFGHIJKLMNOPQRSTUVWXYZ", dtype=np.uint8)


@dataclass(frozen=True)
class XportLayout:
    """Where the records begin, and how many bytes each of their variables has."""

    path: Path
    start: int
    widths: tuple[int, ...]

    @property
    def length(self) -> int:
        """The number of bytes of a record."""
        return sum(self.widths)

    @property
    def records(self) -> int:
        """The number of records that there is room for; some of the last may be nothing but filling."""
        return (self.path.stat().st_size - self.start) // self.length

    def field(self, place: int, records: range, *, mode: Literal["r", "r+"] = "r") -> Bytes:
        """The bytes of one variable, a row for each record."""
        every: Bytes = np.memmap(
            self.path,
            dtype=np.uint8,
            mode=mode,
            offset=self.start + records.start * self.length,
            shape=(len(records), self.length),
        )
        first = sum(self.widths[:place])
        return every[:, first : first + self.widths[place]]


def layout(path: Path, widths: Sequence[int]) -> XportLayout:
    """Find where the records begin, or raise for a file that is not whole or holds several tables."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        header = content.find(_BEFORE_DATA)
        start = header + _RECORD
        if header < 0 or sum(widths) <= 0 or min(widths) < 0:
            raise damaged_file(path.name, "SAS transport")
        other = content.find(_NEXT_MEMBER, start)
        if other >= 0 and other % _RECORD == 0:
            hint = "write each data set to its own file"
            raise ReadError(f"`{path.name}` holds several data sets", hint=hint)
        found = XportLayout(path, start, tuple(widths))
        filling = content[start + found.records * found.length :]
        stated = content[header:start][_COUNT_AT].strip().lstrip(b"0")
    if len(filling) >= _RECORD or filling.strip(b" "):
        raise damaged_file(path.name, "SAS transport")
    if stated.isdigit() and int(stated) > found.records:
        raise damaged_file(path.name, "SAS transport")
    return found


def letters(where: XportLayout, place: int, records: range) -> npt.NDArray[np.str_]:
    """The letter of each record's special missing value of a variable, "" where it has none."""
    field = where.field(place, records)
    special = np.isin(field[:, 0], _LETTERS) & ~field[:, 1:].any(axis=1)
    return np.where(special, field[:, 0], 0).astype(np.uint32).view("U1")


def put_letters(where: XportLayout, place: int, given: npt.NDArray[np.str_]) -> None:
    """Write letters where a variable has missing values; "" leaves them as they are."""
    field = where.field(place, range(len(given)), mode="r+")
    codes = given.astype("U1").view(np.uint32)
    field[codes > 0, 0] = codes[codes > 0].astype(np.uint8)

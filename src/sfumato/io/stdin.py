"""The file that is piped in, named ``-``: kept in a private file until the end, as it is read once only."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

from sfumato.errors import ReadError

STDIN = "-"

#: How files of each suffix begin; all others are delimited text.
_BEGINNINGS = {
    b"PAR1": ".parquet",
    b"PK\x03\x04": ".xlsx",
    b"$FL2": ".sav",
    b"$FL3": ".zsav",
    b"ARRO": ".arrow",
}


@cache
def stdin_file() -> Path:
    """What came through the pipe, as a file that only its owner may read and that goes at the end."""
    if sys.stdin.isatty():
        raise ReadError("`-` reads a file from a pipe, and there is none", hint="cat FILE | sfumato … -")
    beginning = sys.stdin.buffer.read(4)
    suffix = _BEGINNINGS.get(beginning, ".csv")
    with tempfile.NamedTemporaryFile(prefix="piped-", suffix=suffix, delete=False) as file:
        place = Path(file.name)
        atexit.register(place.unlink, missing_ok=True)
        file.write(beginning)
        shutil.copyfileobj(sys.stdin.buffer, file)
    return place

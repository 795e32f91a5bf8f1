"""Codes that are cut short: of ``E11*`` and ``93***`` the beginning stays, of ``*123`` and ``***21`` the end.

What is cut short stands for every code that begins, or ends, so, whether anyone has it or not; of digits,
three to five together, for those that are as long.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property

import polars as pl

STAR = "*"
#: What is cut short of codes of digits: so short that all of them can be listed.
LISTED = re.compile(r"(?=.{3,5}$)(?:[0-9]+\*+|\*+[0-9]+)")
#: Any text that is cut short.
CUT = re.compile(r".*[^*]\*+|\*+[^*].*", re.DOTALL)
_CODE = re.compile(r"[0-9]+\**|\*+[0-9]+")
_LAST = chr(0x10FFFF)


def _keeps_end(cut: str) -> bool:
    return not cut.endswith(STAR)


def kept_part(cut: str) -> str:
    """What is left of a text that is cut short."""
    return cut.lstrip(STAR) if _keeps_end(cut) else cut.rstrip(STAR)


def stands_for(cut: str, value: str) -> bool:
    """Whether a label is cut short, and a value begins or ends like it."""
    if CUT.fullmatch(cut) is None:
        return False
    return value.endswith(kept_part(cut)) if _keeps_end(cut) else value.startswith(kept_part(cut))


def all_like(values: pl.Series, cut: str) -> bool:
    """Whether all of some texts begin, or end, like one that is cut short."""
    kept = kept_part(cut)
    return bool((values.str.ends_with(kept) if _keeps_end(cut) else values.str.starts_with(kept)).all())


def codes_of(cut: str) -> list[str]:
    """Every code of digits that is cut short so: ``93***`` is 93000 to 93999; of stars only, all."""
    known = kept_part(cut)
    left = len(cut) - len(known)
    begin, end = ("", known) if _keeps_end(cut) else (known, "")
    return [f"{begin}{rest:0{left}d}{end}" for rest in range(10**left)]


def have_one_length(codes: Sequence[str]) -> bool:
    """Whether codes are of digits, or cut short, and all of one length."""
    return len({*map(len, codes)}) == 1 and all(map(_CODE.fullmatch, codes))


class SortedValues:
    """Values in order, so that those that begin or end alike are found at once."""

    def __init__(self, values: Iterable[str]) -> None:
        self.ascending = sorted(values)

    @cached_property
    def _from_behind(self) -> list[str]:
        return sorted(value[::-1] for value in self.ascending)

    def __len__(self) -> int:
        return len(self.ascending)

    def like(self, cut: str) -> list[str]:
        """Those that begin, or end, like a text that is cut short."""
        kept = kept_part(cut)
        if _keeps_end(cut):
            return [value[::-1] for value in _beginning(self._from_behind, kept[::-1])]
        return _beginning(self.ascending, kept)


def _beginning(values: list[str], start: str) -> list[str]:
    return values[bisect_left(values, start) : bisect_left(values, start + _LAST)]

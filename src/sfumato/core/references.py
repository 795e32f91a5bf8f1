"""The literature: one BibTeX file that docstrings, docs pages and reports cite by key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

_ENTRY = re.compile(r"@\w+\{(?P<key>[^,\s]+),(?P<body>.*?)\n\}", re.DOTALL)
_FIELD = re.compile(r"^\s*(?P<name>\w+)\s*=\s*\{(?P<value>.*)\},?\s*$", re.MULTILINE)


@cache
def references() -> Mapping[str, Mapping[str, str]]:
    """Every entry of ``references.bib`` by key, its fields as text."""
    text = files("sfumato.core").joinpath("references.bib").read_text(encoding="utf-8")
    found = {
        entry["key"]: {field["name"].lower(): field["value"] for field in _FIELD.finditer(entry["body"])}
        for entry in _ENTRY.finditer(text)
    }
    return MappingProxyType(found)


def cite(key: str) -> str:
    """Write one entry as a line: authors (year). Title. Where."""
    entry = references()[key]
    where = (
        entry.get("journal")
        or entry.get("booktitle")
        or entry.get("institution")
        or entry.get("publisher", "")
    )
    authors = entry["author"].replace(" and ", ", ")
    return f"{authors} ({entry['year']}). {entry['title']}. {where}.".replace("{", "").replace("}", "")

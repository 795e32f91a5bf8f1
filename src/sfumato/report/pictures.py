"""What a page of words, tables and pictures says: sections as plain data, and the charts by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato.report.marks import Spec
from sfumato.version import __version__

Cell = float | str | None


@dataclass(frozen=True)
class Section:
    """A heading with its words, charts and a table."""

    title: str
    words: str = ""
    headers: Sequence[str] = ()
    rows: Sequence[Sequence[Cell]] = ()
    charts: Mapping[str, Spec] = field(default_factory=dict)


@dataclass(frozen=True)
class Pictures:
    """A page: its sort and title, what it says in brief, and its sections. It stays with the owner."""

    kind: str
    title: str
    verdict: Sequence[str]
    sections: Sequence[Section]

    @property
    def specs(self) -> dict[str, Spec]:
        """All charts of the page."""
        return {name: spec for section in self.sections for name, spec in section.charts.items()}

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON: all that the page says."""
        return {
            "sfumato": __version__,
            "kind": self.kind,
            "title": self.title,
            "verdict": list(self.verdict),
            "sections": [
                {
                    "title": each.title,
                    "words": each.words,
                    "headers": list(each.headers),
                    "rows": [list(row) for row in each.rows],
                    "charts": list(each.charts),
                }
                for each in self.sections
            ],
        }

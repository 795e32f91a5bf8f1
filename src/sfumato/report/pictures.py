"""What a page of words, tables and pictures says: sections as plain data, and the charts by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sfumato.report.frame import Spec
from sfumato.version import __version__

Cell = float | str | None


@dataclass(frozen=True)
class Section:
    """A heading with its words, charts and a table, and any parts of it.

    Charts stand one below the other, or by ``layout`` as a ``pair`` or a ``triptych`` side by side; ``notes``
    are small print.
    """

    title: str
    words: str = ""
    headers: Sequence[str] = ()
    rows: Sequence[Sequence[Cell]] = ()
    charts: Mapping[str, Spec] = field(default_factory=dict)
    layout: Literal["", "pair", "triptych"] = ""
    notes: Sequence[str] = ()
    parts: Sequence[Section] = ()

    @classmethod
    def table(
        cls,
        title: str,
        words: str,
        columns: Mapping[str, str],
        entries: Sequence[Mapping[str, Any]],
        *,
        notes: Sequence[str] = (),
    ) -> Section | None:
        """A row for each entry, under headers each with the key of what it shows; None if there is none."""
        rows = [[each[key] for key in columns.values()] for each in entries]
        return cls(title, words, tuple(columns), rows, notes=notes) if rows else None

    @property
    def specs(self) -> dict[str, Spec]:
        """The charts of it and of its parts."""
        return {**self.charts, **specs_of(self.parts)}

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON; charts by their names."""
        return {
            "title": self.title,
            "words": self.words,
            "headers": list(self.headers),
            "rows": [list(row) for row in self.rows],
            "charts": list(self.charts),
            "layout": self.layout,
            "notes": list(self.notes),
            "parts": [each.to_dict() for each in self.parts],
        }


def specs_of(sections: Sequence[Section]) -> dict[str, Spec]:
    """All charts of sections."""
    return {name: spec for section in sections for name, spec in section.specs.items()}


@dataclass(frozen=True)
class Pictures:
    """A page: its sort and title, what it says in brief, and its sections. It stays with the owner."""

    kind: str
    title: str
    verdict: Sequence[str]
    sections: Sequence[Section]

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON: all that the page says."""
        return {
            "sfumato": __version__,
            "kind": self.kind,
            "title": self.title,
            "verdict": list(self.verdict),
            "sections": [each.to_dict() for each in self.sections],
        }

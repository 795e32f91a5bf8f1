"""The data card: what a release is, for whom and on what terms, as its owner says it in the plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.recipes.plan import About

NOT_STATED = "not stated"
#: What the owner says that may leave, and the heading it stands under.
CARD: Mapping[str, str] = {
    "description": "What it is",
    "population": "Whom it is about",
    "period": "When the data are from",
    "publisher": "Who gives it out",
    "contact": "Whom to ask",
    "purpose": "What it is for",
    "legal_basis": "Legal basis",
    "recipients": "Who receives it",
    "terms": "Terms of use",
    "safeguards": "Safeguards",
    "transparency": "What the people it is about were told",
    "review_date": "To be reviewed on",
}
#: Holds of every release, whatever else its terms are.
_NOBODY = "Nobody may try to find out whom a record is about, alone or by linking it with other data."


def data_card(about: About, told: Mapping[str, Any]) -> str:
    """The card as Markdown, of what the owner says and of what the public form of the report tells.

    What nobody has said is said to be missing.
    """
    said = {name: stated(getattr(about, name)) for name in CARD}
    said["terms"] = f"{_NOBODY} Beside that: {said['terms']}"
    columns = [
        f"| {_cell(each['column'])} | {each['kind']} | {_cell(each['became'])} |" for each in told["roles"]
    ]
    records = told["records"]["released"]
    return "\n".join(
        [
            f"# {about.title or told['title']}",
            "",
            f"{records:,} records, protected by sfumato {told['sfumato']} on {told['generated']}.",
            "",
            *(line for name, title in CARD.items() for line in (f"## {title}", "", said[name], "")),
            "## Columns",
            "",
            "| column | kind | what became of it |",
            "|---|---|---|",
            *columns,
            "",
            "What to correct for in an analysis stands in `change-note.md`.",
            "",
        ]
    )


def stated(said: str | tuple[str, ...]) -> str:
    """What was said, or that nothing was."""
    text = said if isinstance(said, str) else "; ".join(said)
    return text.strip() or NOT_STATED


def _cell(text: str) -> str:
    """A text that does not end its cell of a table."""
    return " ".join(text.replace("|", "\\|").split())

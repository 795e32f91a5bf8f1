"""The change note: by column what was done to a release, and what who analyses it must correct for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sfumato.core import registry

_INTRODUCTION = (
    "What was done to the data before they were given out, and what to correct for when you analyse them. "
    "Parameters are not told: they would help who tries to undo it."
)
_ENDINGS = ("untouched", "left out", "renamed")
_MEANING = {
    "untouched": "as they were",
    "left out": "left out, so that nobody is named or found by them",
    "renamed": "numbers of people or households, replaced by pseudonyms: alike for alike, and nothing else",
}


def change_note(told: Mapping[str, Any]) -> str:
    """The note as Markdown, of what the public form of a report tells."""
    return "\n".join(
        [
            f"# Change note: {told['title']}",
            "",
            _INTRODUCTION,
            "",
            *_on_all(told["steps"]),
            *(line for each in told["roles"] for line in _on_column(each, told["steps"])),
            *_on_others(told["roles"]),
        ]
    )


def _on_all(steps: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Steps that change which records there are: they concern every column."""
    found = [step for step in steps if registry.method(step["method"]).gives.other_records]
    if found:
        yield from ("## All records", "")
        for step in found:
            yield f"- {_done(step)}"
            yield f"- **To correct for:** {registry.method(step['method']).analyst_note}"
        yield ""


def _on_column(column: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    name, became = column["column"], column["became"]
    if became.endswith(_ENDINGS):
        return
    own = [step for step in steps if name in step["columns"]]
    said = dict.fromkeys(registry.method(step["method"]).analyst_note for step in own)
    yield from (f"## {name}", "", f"- {became}.")
    for step in own:
        yield f"- {_done(step)}"
    for sentence in said:
        yield f"- **To correct for:** {sentence}"
    if not own:
        yield "- It was mended, or changed with another column: rules of the data hold again."
    yield ""


def _done(step: Mapping[str, Any]) -> str:
    return f"{step['title']}: {step['what'][:1].lower()}{step['what'][1:]}"


def _on_others(columns: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The columns to which nothing, or always the same, was done."""
    rows = [
        f"- {', '.join(names)}: {meaning}."
        for fate, meaning in _MEANING.items()
        if (names := [each["column"] for each in columns if each["became"].endswith(fate)])
    ]
    if rows:
        yield from ("## Other columns", "", *rows, "")

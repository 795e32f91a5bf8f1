"""A rerun paper as a page with figures, as JSON and as Markdown, all of the same content."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.core import registry
from sfumato.errors import count_noun
from sfumato.io import write_text
from sfumato.report import write_pictures
from sfumato.report.frame import Spec
from sfumato.report.page import as_json
from sfumato.report.pictures import Pictures, Section
from sfumato.reproduce.cells import LISTED, NO_NUMBER, NOT_PRINTED, OUTSIDE, WITHIN
from sfumato.version import __version__

Content = Mapping[str, Any]
HEADERS = ("cell", "published", "ours", "difference", "tolerance", "verdict")
#: What stands behind a verdict, and what it means.
MARKS = {
    "*": "the reading or the tolerance was chosen after the numbers were seen (post-hoc)",
    "≈": "mean of runs with private noise, which no seed repeats; the band is in the JSON file",
    "⏱": "measured time of this machine",
}
_VARIES = {"noise": "≈", "time": "⏱", "": ""}


@dataclass(frozen=True)
class _ReproducedPage(Pictures):
    """A page whose JSON file has every number, too."""

    content: Content = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON: what the page says, and the numbers."""
        return {**super().to_dict(), "public": True, **self.content}


def write_pages(content: Content, figures: Mapping[str, Spec], folder: Path) -> list[Path]:
    """Write a paper as HTML, JSON and Markdown; returns the places."""
    drawn = {name: spec for name, spec in figures.items() if spec["data"]["values"]}
    sections = [Section("Figures", charts=drawn)] if drawn else []
    sections += [_section(table) for table in content["tables"] if table["cells"]]
    page = _ReproducedPage("reproduction", heading(content), verdict(content), sections, content)
    places = list(write_pictures(page, folder / f"{content['paper']}.html", overwrite=True))
    text = folder / f"{content['paper']}.md"
    write_text(text, markdown_of(content), overwrite=True)
    return [*places, text]


def heading(content: Content) -> str:
    """The title of a page."""
    return f"Paper {content['paper']}: {content['subject']}"


def verdict(content: Content) -> list[str]:
    """How many cells are within their tolerances, and how they were computed."""
    counts = counts_of(content)
    printed = sum(counts.values()) - counts[NOT_PRINTED]
    parts = [f"{counts[WITHIN]} of {count_noun(printed, 'printed number')} within tolerance"]
    parts += [f"{counts[LISTED]} listed with the reason why they cannot be reached"] * bool(counts[LISTED])
    parts += [f"{counts[OUTSIDE]} outside"] * bool(counts[OUTSIDE])
    parts += [f"{counts[NO_NUMBER]} without a number of ours"] * bool(counts[NO_NUMBER])
    left = sum(table["not_run"] for table in content["tables"])
    how = {"full": "full", "quick": "quick (fewer runs, smaller data, wider tolerances)"}[content["mode"]]
    return [
        "; ".join(parts) + ".",
        f"{how.capitalize()} run of {content['date']} with sfumato {content['version']}, "
        f"seed {content['seed']}"
        + (f"; {count_noun(left, 'printed number')} not run" if left else "")
        + (f"; {count_noun(content['left_out'], 'experiment')} left out." if content["left_out"] else "."),
        content["source"],
    ]


def counts_of(content: Content) -> Counter[str]:
    """How many cells have each verdict."""
    return Counter(cell["verdict"] for table in content["tables"] for cell in table["cells"])


def words_of(table: Content) -> str:
    """Where a table was printed, and how it is read."""
    return " ".join(filter(None, [f"Place: {table['place']}.", table["reading"], table["why"]]))


def is_printed(table: Content) -> bool:
    """Whether the paper has a number of this table."""
    return any(cell["published"] is not None for cell in table["cells"])


def matrix_of(table: Content) -> tuple[list[str], list[list[Any]]]:
    """Headers and rows of a table of which nothing was printed: our numbers alone."""
    columns = list(dict.fromkeys([*table["columns"], *(cell["column"] for cell in table["cells"])]))
    ours = {(cell["row"], cell["column"]): cell["ours"] for cell in table["cells"]}
    names = dict.fromkeys(cell["row"] for cell in table["cells"])
    return ["", *columns], [[name, *(ours.get((name, column)) for column in columns)] for name in names]


def _section(table: Content) -> Section:
    words = words_of(table)
    if not is_printed(table):
        return Section(table["title"], words, *matrix_of(table))
    rows = [
        [
            label_of(each),
            each["published"],
            each["ours"],
            each["difference"],
            each["tolerance"],
            mark_of(each),
        ]
        for each in table["cells"]
    ]
    return Section(table["title"], words, HEADERS, rows, notes=reasons_of(table))


def label_of(cell: Content) -> str:
    """The row and the column of a cell."""
    return f"{cell['row']}, {cell['column']}".removesuffix(", holds")


def mark_of(cell: Content) -> str:
    """The verdict on a cell, with the marks of how it was reached."""
    return f"{cell['verdict']}{'*' * cell['post_hoc']}{_VARIES[cell['varies']]}"


def reasons_of(table: Content) -> list[str]:
    """Why cells are outside their tolerances, each reason once with the cells it is about."""
    listed = [cell for cell in table["cells"] if cell["verdict"] == LISTED]
    sentences = []
    for reason in dict.fromkeys(cell["unreachable"] for cell in listed):
        own = [cell for cell in listed if cell["unreachable"] == reason]
        rows, columns = ("; ".join(dict.fromkeys(cell[part] for cell in own)) for part in ("row", "column"))
        sentences.append(f"{rows} ({columns}): {reason}")
    return sentences


def texts_of(cell: Content) -> list[str]:
    """A cell as the texts of a row."""
    numbers = [cell[name] for name in ("published", "ours", "difference", "tolerance")]
    return [label_of(cell), *map(text_of, numbers), mark_of(cell)]


def text_of(value: Any) -> str:
    """A value of a cell as people read it: four digits, and whole numbers whole."""
    if value is None or isinstance(value, str):
        return "–" if value is None else value
    is_whole = isinstance(value, int) or abs(value) >= 1000  # noqa: PLR2004
    return (f"{value:,.0f}" if is_whole else f"{value:.4g}").replace("-", "−")


def marks_of(tables: Sequence[Content]) -> list[str]:
    """What the marks mean that these tables have."""
    seen = "".join(mark_of(cell) for table in tables for cell in table["cells"])
    return [f"{mark} {meaning}" for mark, meaning in MARKS.items() if mark in seen]


def markdown_of(content: Content, pictures: Mapping[str, str] | None = None) -> str:
    """The page as Markdown; ``pictures`` are the places of its figures, by their captions."""
    return "\n".join(_markdown_lines(content, pictures or {})) + "\n"


def _markdown_lines(content: Content, pictures: Mapping[str, str]) -> Iterator[str]:
    yield f"# {heading(content)}\n"
    yield "\n\n".join(verdict(content))
    yield f"\nMade by `sfumato reproduce {content['paper']}`; every number is also in its JSON file."
    for note in content["notes"]:
        yield f"\n{note}"
    for caption, place in pictures.items():
        yield f"\n![{caption}]({place})\n\n*{caption}*"
    for table in content["tables"]:
        if table["cells"]:
            yield from _markdown_table(table)
    for mark in marks_of(content["tables"]):
        yield f"\n{mark.replace('*', chr(92) + '*')}."
    yield "\n## Data\n"
    yield "\n".join(f"- `{name}`: SHA-256 `{code}`" for name, code in content["data"].items()) or "None."


def _markdown_table(table: Content) -> Iterator[str]:
    yield f"\n## {table['title']}\n"
    yield words_of(table)
    headers, rows = list(HEADERS), [texts_of(cell) for cell in table["cells"]]
    if not is_printed(table):
        headers, numbers = matrix_of(table)
        rows = [[text_of(value) for value in row] for row in numbers]
    yield f"\n| {' | '.join(headers)} |\n|---|{'--:|' * (len(headers) - 1)}"
    for row in rows:
        yield f"| {' | '.join(text.replace('*', chr(92) + '*').replace('|', '¦') for text in row)} |"
    for reason in reasons_of(table):
        yield f"\nListed: {reason}"
    if table["not_run"]:
        yield f"\nNot run: {count_noun(table['not_run'], 'printed number')}."


def _refer(text: str) -> str:
    """Methods and measures in code, with or without settings, become roles that lead to their pages."""

    def reference(found: re.Match[str]) -> str:
        name, settings = found[1], f" `{found[2]}`" if found[2] else ""
        kinds = {"method": registry.methods(), "measure": registry.measures()}
        kind = next((each for each, known in kinds.items() if name in known), None)
        return found[0] if kind is None else f"{{{kind}}}`{name}`{settings}"

    return re.sub(r"(?<!\})`([\w-]+)(?:\(([^`]*)\))?`", reference, text)


def write_catalogue(rows: Sequence[Any], measured: Sequence[Any], folder: Path) -> list[Path]:
    """Write the catalogue of the survey, a row for each term, and Table 3, as JSON and Markdown."""
    parts = ("place", "term", "ours", "verdict", "test", "pages", "reason")
    entries = [{part: getattr(row, part) for part in parts} for row in rows]
    lines = [
        "# Paper 002: the catalogue of the survey\n",
        "| place | term | here | verdict | reason |",
        "|---|---|---|---|---|",
    ]
    for each in entries:
        here = ", ".join(f"`{name}`" for name in each["ours"])
        lines.append(f"| {each['place']} | {each['term']} | {here} | {each['verdict']} | {each['reason']} |")
    lines += [
        "\n## Table 3: what is said of each family, and two numbers of it\n",
        "| family | statement | measured | first | second | holds |",
        "|---|---|---|---|---|---|",
    ]
    for each in measured:
        numbers = f"{text_of(each.first)} | {text_of(each.second)} | {'yes' if each.holds else 'no'}"
        lines.append(f"| {each.family}, {each.side} | {each.text} | {each.measured} | {numbers} |")
    places = [folder / "002.json", folder / "002.md"]
    content = {"paper": "002", "version": __version__, "rows": entries,
               "table_3": [each._asdict() for each in measured]}  # fmt: skip
    for place, text in zip(places, (as_json(content), _refer("\n".join(lines))), strict=True):
        write_text(place, text + "\n", overwrite=True)
    return places

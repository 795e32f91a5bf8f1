"""How results show themselves in a notebook: sentences and a small table, written once."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import polars as pl

#: Rows that a notebook is shown; the frame has them all.
_ROWS = 30


def as_html(sentences: Sequence[str], frame: pl.DataFrame | None = None) -> str:
    """Sentences as paragraphs, and below them the first rows of a table."""
    paragraphs = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    if frame is None or not frame.width:
        return f"<div>{paragraphs}</div>"
    head = "".join(f"<th>{escape(name)}</th>" for name in frame.columns)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(_cell(value))}</td>' for value in row)}</tr>"
        for row in frame.head(_ROWS).iter_rows()
    )
    more = f"<p>… {frame.height - _ROWS} more</p>" if frame.height > _ROWS else ""
    return f"<div>{paragraphs}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}</div>"


def as_page(title: str, body: str) -> str:
    """A small page that needs nothing else."""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>{body}</html>\n'
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)

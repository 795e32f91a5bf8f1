"""How results show themselves in a notebook, and go out as frames: written once."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from html import escape
from typing import Any

import polars as pl

#: Rows that a notebook is shown; the frame has them all.
_ROWS = 30


class Tabular:
    """What is a table or can be set as one: had as a polars or a pandas frame."""

    def to_frame(self) -> pl.DataFrame:
        """As a polars frame."""
        raise NotImplementedError  # abstract

    def to_polars(self) -> Any:
        """As a polars frame; of several tables, a dictionary by their names."""
        return self.to_frame()

    def to_pandas(self) -> Any:
        """As a pandas frame, ranges as text; of several tables, a dictionary by their names."""
        made = self.to_polars()
        if isinstance(made, dict):
            return {name: _to_pandas(frame) for name, frame in made.items()}
        return _to_pandas(made)


def _to_pandas(frame: pl.DataFrame) -> Any:
    """A frame as one of pandas; the room above is asked by its name, when it is needed."""
    frames = importlib.import_module("sfumato.io.frames")
    return frames.to_native(frame, frames.Native("pandas"))


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

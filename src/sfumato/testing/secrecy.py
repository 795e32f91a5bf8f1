"""No cell value in a message, a log or a traceback: sentinel values are fed in and listened for."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import polars as pl

from sfumato.core.measure import Score
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.testing.tables import table_of

#: Numbers and words that occur nowhere else: found in a message, they are a leak.
SENTINEL_NUMBER = 918273645.5
SENTINEL_WORD = "Zanzibarquux"


def noises(work: Callable[[Table], Any], kind: Kind) -> Iterator[str]:
    """What work says, in log, message and traceback, on tables of sentinel values, sound and unsound."""
    for table in _sentinel_tables(kind):
        with _log() as heard:
            try:
                result = work(table)
            except Exception as error:  # noqa: BLE001  — whatever is raised must keep the secret
                heard.append("".join(traceback.format_exception(error)))
            else:
                heard.append(result.reason if isinstance(result, Score) else repr(result))
        yield "\n".join(heard)


def _sentinel_tables(kind: Kind) -> Iterator[Table]:
    usual = table_of(kind, 8)
    if kind is Kind.CONTINUOUS:
        yield usual.with_values("a", pl.Series([SENTINEL_NUMBER] * 8))
        yield usual.with_values("a", pl.Series([SENTINEL_WORD] * 8))
        yield usual.with_values("a", pl.Series([SENTINEL_NUMBER, float("inf")] * 4))
    elif kind in {Kind.NOMINAL, Kind.ORDINAL}:
        yield usual.with_values("b", pl.Series([SENTINEL_WORD] * 8))
        yield usual.with_values("a", pl.Series([SENTINEL_WORD] * 8))
    elif kind is Kind.DATE:
        yield usual.with_values("a", pl.Series([SENTINEL_WORD] * 8))


@contextmanager
def _log() -> Iterator[list[str]]:
    heard: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    root, ear = logging.getLogger(), Ear(level=logging.DEBUG)
    before = root.level
    root.addHandler(ear)
    root.setLevel(logging.DEBUG)
    try:
        yield heard
    finally:
        root.removeHandler(ear)
        root.setLevel(before)


def assert_silent(text: str, who: str) -> None:
    """Fail if a sentinel is in the text."""
    for secret in (SENTINEL_WORD, "918273645", "918_273_645", "9.18273645"):
        assert secret not in text, f"{who} shows a cell value"

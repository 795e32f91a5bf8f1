"""Keeps a spreadsheet from taking a text for a formula.

A spreadsheet that opens a delimited text runs what begins with ``=``, ``+``, ``-`` or ``@``: a formula in a
column of free text could call out with the cells beside it. Guarded texts begin with an apostrophe instead,
which such programs show or hide but never run. A text that is a number through and through, such as ``-5`` or
``+49301234``, is none of these and stays as it is, and so do columns of numbers, dates and truth values.
A guarded text is no longer the text it was: the guard is for files that people open, not for those that
programs read.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from sfumato.data.schema import Schema
from sfumato.data.table import TEXTUAL, Table
from sfumato.errors import WriteError

#: The formats whose files are opened by spreadsheets.
GUARDED = frozenset({"delimited", "excel"})

# The full-width signs are taken for the plain ones where people write Chinese, Japanese or Korean.
_STARTS = r"^[=+\-@\t\r\n＝＋－＠]"
_NUMBER = r"^[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?$"


def escape_formulas_in(table: Table) -> Table:
    """Put an apostrophe before every text and name of a column that a spreadsheet could run."""
    old = table.frame.columns
    names = _escape_formulas(pl.Series("", old, dtype=pl.String)).to_list()
    if len(set(names)) < len(names):
        raise WriteError(
            "two columns would have the same name when guarded",
            hint="the guard puts an apostrophe before some names: rename the column that has one already",
        )
    columns = [
        _escape_formulas(series.cast(pl.String)) if series.dtype in TEXTUAL else series
        for series in table.frame
    ]
    frame = pl.DataFrame([series.alias(name) for series, name in zip(columns, names, strict=True)])
    facts = tuple(replace(table.schema[was], name=name) for was, name in zip(old, names, strict=True))
    return Table(frame, Schema(facts))  # rules and relations speak of the old names


def guarded_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """Do the same to a frame of nothing but texts, such as the codebook of a guarded file."""
    return pl.DataFrame([_escape_formulas(series) for series in frame])


def _escape_formulas(texts: pl.Series) -> pl.Series:
    risky = texts.str.contains(_STARTS) & ~texts.str.contains(_NUMBER)
    return texts.zip_with(~risky.fill_null(value=False), "'" + texts)

"""A table that may not leave, for τ-ARGUS: cells and sums (``.tab``) and their description (``.rda``)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from sfumato.releasing.tabulate import Tabulation

#: How the names of its files begin.
_PREFIX = "tau-argus."


def is_tau_argus(name: str) -> bool:
    """Whether a file of a release folder is called like one for τ-ARGUS."""
    return name.startswith(_PREFIX)


def tau_argus_names(table: str) -> tuple[str, str]:
    """The names of the files of a table: its cells, and what they are."""
    return f"{_PREFIX}{table}.tab", f"{_PREFIX}{table}.rda"


def tau_argus_files(made: Tabulation) -> Mapping[str, str]:
    """The table with all its sums and its description, as τ-ARGUS reads them, by their names.

    Each cell has its amount (the count, or the first total or mean that is asked for), how many contribute
    and the two largest contributions.
    """
    asked, everyone = made.asked, np.ones(len(made.cells), dtype=np.bool_)
    amounts = made.amounts(asked.values[0]) if asked.values else everyone.astype(np.float64)
    present = np.flatnonzero(~np.isnan(amounts))
    frame = made.table.frame.select(asked.columns)[present].select(pl.all().cast(pl.String))
    keys = frame.with_columns(pl.all().str.replace_all(r'[",;\r\n]', " ")).fill_null(_spare(frame, "missing"))
    total, lines = _spare(frame, "Total"), []
    person = made.persons[present]
    for shown in range(2 ** len(asked.columns)):
        kept = [name for place, name in enumerate(asked.columns) if shown >> place & 1]
        cut = keys.with_columns(pl.lit(total).alias(name) for name in asked.columns if name not in kept)
        own = cut.with_columns(pl.Series("amount ", amounts[present]), pl.Series("person ", person))
        persons = own.group_by([*asked.columns, "person "]).agg(pl.col("amount ").sum())
        cells = persons.group_by(asked.columns).agg(
            pl.col("amount ").sum(),
            pl.len().alias("n "),
            pl.col("amount ").sort(descending=True).get(0).alias("first "),
            pl.col("amount ").sort(descending=True).get(1, null_on_oob=True).fill_null(0.0).alias("second "),
        )
        lines += [",".join(map(str, row)) for row in cells.sort(asked.columns).iter_rows()]
    variables = [f'{_spare_name(name)}\n  <RECODABLE>\n  <TOTCODE> "{total}"\n' for name in asked.columns]
    response = _spare_name(asked.values[0]) if asked.values else "Count"
    variables += [f"{response}\n  <NUMERIC>\n  <RESPONSE>\n", "Contributors\n  <NUMERIC>\n  <FREQUENCY>\n"]
    variables += [f"Top{place}\n  <NUMERIC>\n  <MAXSCORE>\n" for place in (1, 2)]
    text = "".join(f"{line}\n" for line in dict.fromkeys(lines))
    described = '<SEPARATOR> ","\n' + "".join(variables)
    return dict(zip(tau_argus_names(asked.name), (text, described), strict=True))


def _spare(frame: pl.DataFrame, word: str) -> str:
    """A word that is no value of a table."""
    taken = {value for series in frame for value in series.unique().to_list()}
    return (
        word if word not in taken else _spare(frame.with_columns(pl.lit(word).alias(f"{word} ")), f"{word}_")
    )


def _spare_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name)

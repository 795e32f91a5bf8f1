"""What a step fitted in the first release of a series, kept for the later ones: spreads of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import PlanError, quoted

#: The tables in which it is confided.
_FITTED_TABLE, _COLUMNS = "fitted", "fitted_of"


@dataclass(frozen=True)
class FrozenSummaries:
    """The summaries of a step on some columns, as an earlier release of the series has confided them."""

    columns: tuple[str, ...]
    earlier: dict[int, list[float]]

    @classmethod
    def of(cls, run: Run, method: str, columns: Sequence[str]) -> FrozenSummaries | None:
        """What the same step fitted before; None outside of a series."""
        if not run.randomness.is_by_person:
            return None
        numbers, before = (run.randomness.previous_fit(name) for name in (_FITTED_TABLE, _COLUMNS))
        if numbers is None or before is None:
            return cls(tuple(columns), {})
        if (names := tuple(before.frame["column"])) != tuple(columns):
            raise PlanError(
                f"{method} protected {quoted(names)} in the earlier release, and {quoted(columns)} now",
                hint="protect other columns in a separate step: the spread of the noise must stay the same",
            )
        earlier: dict[int, list[float]] = {}
        for turn, number in numbers.frame.select("round", "number").iter_rows():
            earlier.setdefault(turn, []).append(float.fromhex(number))
        return cls(tuple(columns), earlier)

    def freeze(self, turn: int, fresh: Any) -> Any:
        """The summary of a round in the first release; in the first one, that of now."""
        return _fill_summary(fresh, iter(self.earlier[turn])) if turn in self.earlier else fresh

    def private_tables(self, summaries: Sequence[Any]) -> dict[str, Table]:
        """The tables that the private trail keeps, every digit of them."""
        rows = [(turn, float(x).hex()) for turn, each in enumerate(summaries) for x in _numbers(each)]
        numbers = pl.DataFrame(rows, schema={"round": pl.Int64, "number": pl.String}, orient="row")
        kinds = (Column("round", Kind.CONTINUOUS), Column("number", Kind.NOMINAL))
        columns = pl.DataFrame({"column": pl.Series(self.columns, dtype=pl.String)})
        return {
            _FITTED_TABLE: Table(numbers, Schema(kinds)),
            _COLUMNS: Table(columns, Schema((Column("column", Kind.NOMINAL),))),
        }


def _numbers(what: Any) -> Iterator[float]:
    """All numbers of a summary, one after the other."""
    if isinstance(what, np.ndarray):
        yield from what.ravel().tolist()
    elif is_dataclass(what):
        for each in fields(what):
            yield from _numbers(getattr(what, each.name))
    else:
        yield what


def _fill_summary(what: Any, numbers: Iterator[float]) -> Any:
    """A summary of the same shape with other numbers."""
    if isinstance(what, np.ndarray):
        return np.array([next(numbers) for _ in range(what.size)]).astype(what.dtype).reshape(what.shape)
    if is_dataclass(what) and not isinstance(what, type):
        return replace(
            what, **{each.name: _fill_summary(getattr(what, each.name), numbers) for each in fields(what)}
        )
    return type(what)(next(numbers))

"""Edit rules: what must hold between the columns of one record (a total is the sum of its parts)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import polars as pl

from sfumato.errors import PlanError


@dataclass(frozen=True)
class Rule:
    """A condition every record must meet, written as an SQL expression.

    ``total = part_a + part_b``, ``child_age < mother_age``, ``sex <> 'male' OR pregnant = 'no'``.
    As with SQL's CHECK, a record that lacks a value the rule needs does not violate it.

    Examples
    --------
    >>> rule = Rule("total = part_a + part_b")
    >>> rule.columns
    ('part_a', 'part_b', 'total')
    >>> frame = pl.DataFrame({"total": [3, 5, 9], "part_a": [1, 2, None], "part_b": [2, 2, 4]})
    >>> rule.violations(frame)
    1
    """

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.columns:  # what cannot be read is refused when made
            raise self._unreadable()

    @cached_property
    def expression(self) -> pl.Expr:
        """The rule as a polars expression."""
        try:
            return pl.sql_expr(self.text)
        except (pl.exceptions.PolarsError, TypeError) as error:
            raise self._unreadable() from error

    def _unreadable(self) -> PlanError:
        return PlanError(
            f"a rule must be an SQL condition on columns, got: `{self.text}`",
            hint="write it like `total = part_a + part_b`; put odd column names in double quotes",
        )

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns the rule speaks of, sorted."""
        return tuple(sorted(set(self.expression.meta.root_names())))

    def violations(self, frame: pl.DataFrame) -> int:
        """Number of records that break the rule."""
        try:
            holds = frame.select(self.expression.alias("holds")).to_series()
        except pl.exceptions.PolarsError:  # its text may quote cells, so it is not passed on
            raise PlanError(f"rule `{self.text}` does not fit the types of its columns") from None
        if holds.dtype != pl.Boolean:
            raise PlanError(f"rule `{self.text}` must be true or false for a record, got: {holds.dtype}")
        if len(holds) != frame.height:
            raise PlanError(f"rule `{self.text}` must speak of one record, got: a total over all of them")
        return int((~holds).sum())

"""What methods share that draw columns from a model conditional on other, given columns."""

from __future__ import annotations

import numpy as np

from sfumato.core.method import Method
from sfumato.core.params import Columns, param
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.errors import quoted
from sfumato.kernels.arrays import Floats, Ints

#: Categories of all given nominal columns together: each is a column of the model.
MOST_CATEGORIES = 200

#: Records for each column of the model. With about as many columns as records a model recites the original.
_RECORDS_PER_GIVEN = 10


class GivenMethod(Method):
    """Draws columns conditional on given columns, which are released as they are."""

    given: Columns = param(
        Columns(),
        "Columns released as they are, whose relations to the protected ones the release keeps.",
        label="Given columns",
    )
    independence: float = param(
        1.0,
        (
            "Share of what the given columns do not explain that is drawn at random; 1 keeps nothing "
            "specific to a record."
        ),
        gt=0,
        le=1,
        symbol="δ",
        log=True,
        tune=(0.01, 1),
        drive=True,
        hint="1 is the method as published; below 1, a record stays closer to its own values",
    )

    def refuses(self, table: Table) -> str | None:
        """Refuse given columns that no score can be made of, or too many for a model of so few records."""
        reason = super().refuses(table)
        if reason is not None:
            return reason
        given = self.given_columns(table)
        sets = [name for name in given if table.schema[name].kind is Kind.SET]
        if sets:
            return f"{self.name} must be given columns of single values, got: sets in {quoted(sets)}"
        nominal = [name for name in given if table.schema[name].kind is Kind.NOMINAL]
        n_categories = sum(len(table.codes(name).categories) for name in nominal)
        if n_categories > MOST_CATEGORIES:
            return (
                f"{self.name} must be given nominal columns of at most {MOST_CATEGORIES} categories in all, "
                f"got: {n_categories}"
            )
        needed = _RECORDS_PER_GIVEN * (len(given) - 2 * len(nominal) + n_categories)
        if 0 < len(table) < needed:
            return f"{self.name} must have {needed} records for these given columns, got: {len(table)}"
        return None

    def given_columns(self, table: Table) -> tuple[str, ...]:
        """Resolve the given columns, in an order that is not the file's; ``@key`` means the other keys."""
        return tuple(sorted(set(table.schema.resolve(self.given)) - set(table.chosen)))


def indicators(codes: Ints, n_categories: int) -> Floats:
    """A column for each category but the first; NaN where a value is missing."""
    found: Floats = (codes[:, None] == np.arange(1, n_categories)).astype(np.float64)
    found[codes < 0] = np.nan
    return found

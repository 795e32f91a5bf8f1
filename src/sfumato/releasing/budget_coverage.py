"""Which released columns a privacy budget covers: **the one place** that says so.

A guarantee for a person is one of all that is released of them: a column that comes from the data by any
other way than private steps tells whatever it tells, however small ε is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.core import registry
from sfumato.core.budget import NO_GUARANTEE, PrivacyBudget
from sfumato.core.method import ColumnMethod, Method
from sfumato.core.release import Provenance, Release
from sfumato.data.schema import Role
from sfumato.data.table import Table
from sfumato.errors import quoted


@dataclass(frozen=True)
class BudgetCoverage:
    """The released columns that private steps alone tell, and the ``uncovered`` ones."""

    covered: tuple[str, ...]
    uncovered: tuple[str, ...] = ()

    @classmethod
    def joint(cls, tables: Mapping[str, BudgetCoverage]) -> BudgetCoverage:
        """The coverage of tables that leave together: a person may be in all of them."""
        if list(tables) == [""]:
            return tables[""]
        covered, uncovered = (
            tuple(f"{name}.{column}" for name, own in tables.items() for column in getattr(own, which))
            for which in ("covered", "uncovered")
        )
        return cls(covered, uncovered)

    @property
    def sentence(self) -> str:
        """What ε covers where that is not all; empty if it is."""
        if not self.uncovered:
            return ""
        only = f"only {quoted(self.covered)}" if self.covered else "no released column"
        others = f"{quoted(self.uncovered)} {'is' if len(self.uncovered) == 1 else 'are'} released without it"
        return f"ε covers {only}; {others}: no guarantee for a person"

    def statement(self, budget: PrivacyBudget) -> dict[str, Any]:
        """A budget as a dictionary for JSON, which promises nothing to a person if columns are uncovered."""
        payload = budget.to_dict()
        if self.uncovered:
            payload.pop("advantage_at_most", None)
            payload |= {"guarantee": NO_GUARANTEE, "coverage": self.sentence}
            payload["uncovered"] = list(self.uncovered)
        return payload


def coverage_of(release: Release, original: Table) -> BudgetCoverage:
    """Which columns of a release the budget of its steps covers; in doubt a column is not covered.

    A private step covers its columns, unless it shows which of their values are missing or that records share
    a household, and one that draws new records covers everything. Once all columns are covered, any step
    after it only works on what is released. Before, a step that is about other records, or that may look at
    other columns than the one it changes, uncovers what it is about.
    """
    covered, whole = _covered_by_steps(release, original)
    names = dict.fromkeys(name for table in release.tables.values() for name in table.names)
    looked_up = {  # which values few have in the original decides what their sets name
        name
        for table in release.tables.values()
        for name in table.nodes
        if name not in original.schema or not original.schema[name].hierarchy
    }
    own = tuple(name for name in names if (whole or name in covered) and name not in looked_up)
    return BudgetCoverage(own, tuple(name for name in names if name not in own))


def _covered_by_steps(release: Release, original: Table) -> tuple[set[str], bool]:
    """The columns that private steps alone tell, and whether these are all that there are."""
    covered, whole, has_more = set[str](), False, False
    for step in release.steps:
        if whole:
            break
        method = registry.method(step.method)
        if method.randomness.epsilon_parameter:
            covered = (covered - set(step.columns)) | _private_columns(step, original)
            is_new = method.nature == "synthetic" and method.gives.other_records
            whole = is_new or (not has_more and covered >= set(original.names))
        elif method.gives.other_records or method.gives.deassociated:
            covered = set()
        elif not _is_by_column(method, step, original, covered):
            covered -= set(step.columns)
        has_more |= method.gives.new_columns
    return covered, whole


def _private_columns(step: Provenance, original: Table) -> set[str]:
    """The columns of which a private step shows nothing else, such as which values are missing."""
    if step.together:
        return set()
    shows_holes = step.parameters.get("missing") == "shown"
    known = [name for name in step.columns if name in original.schema]
    return {name for name in known if not (shows_holes and original.missing(name).any())}


def _is_by_column(method: type[Method], step: Provenance, original: Table, covered: Collection[str]) -> bool:
    """Whether a step makes each column of that column alone, and of weights that are covered."""
    weight = original.schema.only_role(Role.WEIGHT)
    return (
        issubclass(method, ColumnMethod)
        and not step.within
        and not step.together
        and (weight is None or weight in covered)
    )

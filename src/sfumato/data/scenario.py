"""The intruder against whom a release is judged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from sfumato.data.records import as_spec
from sfumato.errors import ParameterError

#: The resource that holds people of the same population who were not protected.
CONTROL = "control"


@dataclass(frozen=True)
class Scenario:
    """The intruder: what they know before they see the release.

    ``columns`` they know (empty: the keys and columns without a role, or everything when no column is a key);
    the ``records`` they hold, as a share of the original; whether they know who is in the file
    (``membership``); and the name of an ``external`` table they hold instead of the original.
    """

    name: str = "default"
    columns: tuple[str, ...] = ()
    records: float = 1.0
    membership: bool = True
    external: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        if not 0 < self.records <= 1:
            raise ParameterError(
                f"`records` of scenario `{self.name}` must be a share above 0 and at most 1, "
                f"got: `{self.records}`"
            )

    def to_dict(self) -> dict[str, Any]:
        """Say what is not default, as the plan's table."""
        return {"name": self.name, **as_spec(self)}


def by_knowledge(scenarios: Iterable[Scenario]) -> dict[str, Scenario]:
    """Intruders by their names, those who know the same as one: to ask about each would be to ask again."""
    names: dict[Scenario, list[str]] = {}
    for each in scenarios:
        names.setdefault(replace(each, name=""), []).append(each.name)
    return {", ".join(same): replace(each, name=", ".join(same)) for each, same in names.items()}

"""The intruder against whom a release is judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from sfumato.errors import ParameterError, PlanError, UnknownNameError

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
        default = asdict(type(self)())
        said = {key: v for key, v in asdict(self).items() if key == "name" or v != default[key]}
        return {key: list(v) if isinstance(v, tuple) else v for key, v in said.items()}

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> Self:
        """Read the plan's table."""
        if not isinstance(said, Mapping):
            raise PlanError(f"a scenario must be a table, got: {type(said).__name__}")
        what = f"scenario `{said.get('name', 'default')}`"
        faults = [f"{what}: {fault}" for fault in _scenario_faults(said)]
        if faults:
            raise PlanError.gather(what, faults)
        facts: dict[str, Any] = {key: tuple(v) if key == "columns" else v for key, v in said.items()}
        return cls(**facts)


def _scenario_faults(said: Mapping[str, Any]) -> Iterator[str]:
    known = {item.name for item in fields(Scenario)}
    for key, value in said.items():
        if key not in known:
            error = UnknownNameError.of("setting", key, known)
            yield f"{error.message} ({error.hint})"
        elif key == "columns":
            if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
                yield "`columns` must be a list of names"
        elif key == "records":
            if isinstance(value, bool) or not isinstance(value, int | float):
                yield f"`records` must be a number, got: {type(value).__name__}"
        elif key == "membership":
            if not isinstance(value, bool):
                yield f"`membership` must be true or false, got: {type(value).__name__}"
        elif not isinstance(value, str):
            yield f"`{key}` must be a text, got: {type(value).__name__}"

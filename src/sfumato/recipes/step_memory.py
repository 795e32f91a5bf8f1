"""What the first steps of a recipe made of a table: who changes a later step need not take them again."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from sfumato.core.randomness import ByPlace
from sfumato.core.release import Release
from sfumato.data.table import Table


class StepMemory:
    """The release after each step of the last recipe that was followed, on one table with one chance.

    ``basis`` stands for what else the steps read, such as the files of a plan; with another basis, table or
    chance all steps are taken anew.
    """

    def __init__(self) -> None:
        self.basis: Hashable = ()
        self._place: Any = None
        self._made: list[tuple[str, Release]] = []

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known yet."""
        return not self._made

    def recall(self, table: Table, chance: ByPlace, steps: Sequence[str]) -> list[Release]:
        """The releases of the first steps that are the same as before, and what comes after is forgotten."""
        place = (table, self.basis, chance)
        if place != self._place:
            self._place, self._made = place, []
        known = 0
        while known < min(len(steps), len(self._made)) and steps[known] == self._made[known][0]:
            known += 1
        del self._made[known:]
        return [release for _, release in self._made]

    def keep(self, number: int, step: str, release: Release) -> None:
        """Keep what a step made, if all before it are kept."""
        if number == len(self._made):
            self._made.append((step, release))

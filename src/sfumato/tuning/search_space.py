"""What a tuner may try: for each group of columns one of the methods that take it, with its parameters.

Nothing here is a list of methods: a method comes in because it is registered and takes the columns, and an
axis because its parameter declares a range worth searching or a few words to choose from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np

from sfumato.core.method import Method
from sfumato.core.params import Param, PerColumn
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step

#: A point of the space: for each name of a choice what was chosen.
Point = Mapping[str, float | int | str]

NO, YES = "no", "yes"

#: Groups that are protected, each by a method with its choices.
Parts = dict[str, tuple[str, Mapping[str, Any]]]

#: How often a neighbour has other steps, and how often of the others only one step is moved.
_SHARE_OF_MOVES: Final = 0.35
_SHARE_OF_ONE: Final = 0.5

#: How far a nudge goes, as a share of an axis.
_NUDGE: Final = 0.04


class Chooser(Protocol):
    """Who chooses a point: what a trial of Optuna can do."""

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> Any:
        """Choose a word."""

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        """Choose a number."""

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False) -> int:
        """Choose a whole number."""


@dataclass(frozen=True)
class ParameterAxis:
    """One parameter that is searched: a range, or some words and what each of them means."""

    name: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False
    drive: bool = False
    meanings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_range(cls, declared: Param, low: float, high: float) -> ParameterAxis:
        """Make the axis of a parameter with a range worth searching."""
        whole = declared.type is int
        low, high = (math.ceil(low), math.floor(high)) if whole else (float(low), float(high))
        return cls(
            declared.name, low, max(low, high), declared.log and low > 0, whole=whole, drive=declared.drive
        )

    def suggest(self, chooser: Chooser, name: str) -> float | int | str:
        """Let somebody choose."""
        if self.meanings:
            return str(chooser.suggest_categorical(name, tuple(self.meanings)))
        if self.whole:
            return chooser.suggest_int(name, int(self.low), int(self.high), log=self.log)
        return chooser.suggest_float(name, self.low, self.high, log=self.log)

    def value_of_choice(self, chosen: float | str) -> Any:
        """The parameter's value that a choice means."""
        return self.meanings[str(chosen)] if self.meanings else chosen

    def takes(self, choices: Mapping[str, Any]) -> bool:
        """Whether one of the choices for a method is for this axis, and means something on it."""
        return self.name in choices and (not self.meanings or choices[self.name] in self.meanings)

    def choice_of(self, value: Any) -> float | int | str | None:
        """The choice that means this value of the parameter; None if there is none."""
        if isinstance(value, PerColumn):
            value = None if value.exceptions else value.default
        if self.meanings:
            return next((word for word, meant in self.meanings.items() if meant == value), None)
        inside = isinstance(value, int | float) and self.low <= value <= self.high
        return value if inside else None

    def shift_choice(self, chosen: float, share: float) -> float | int:
        """The number a share of the axis away, inside its ends; a whole number moves by at least one."""
        scale, back = (math.log, math.exp) if self.log else (float, float)
        position = scale(chosen) + share * (scale(self.high) - scale(self.low))
        value = min(max(back(position), self.low), self.high)
        if not self.whole:
            return value
        whole = round(value)
        if whole == chosen and share:
            whole += 1 if share > 0 else -1
        return int(min(max(whole, self.low), self.high))


@dataclass(frozen=True)
class Option:
    """One method on one group of columns, with the parameters that are searched.

    ``start`` is how it is tried alone; of two, that of the smaller ``tier`` promises more.
    """

    method: type[Method]
    axes: tuple[ParameterAxis, ...] = ()
    start: Mapping[str, Any] = field(default_factory=dict)
    tier: int = 0

    @property
    def name(self) -> str:
        """The word for the method."""
        return self.method.name

    def make(self, settings: Mapping[str, Any]) -> Method:
        """The method with these choices; what is not searched keeps its default."""
        values = {axis.name: axis.value_of_choice(settings[axis.name]) for axis in self.axes}
        made: Method = self.method.from_dict(values)
        return made


@dataclass(frozen=True)
class Group:
    """Columns that are protected by one step, and the methods that can; strata are protected separately."""

    name: str
    columns: tuple[str, ...]
    options: tuple[Option, ...]
    within: tuple[str, ...] = ()

    def option(self, name: str) -> Option | None:
        """One of the methods by its word; None if it is not among them."""
        return next((option for option in self.options if option.name == name), None)

    def __getitem__(self, name: str) -> Option:
        return next(option for option in self.options if option.name == name)


@dataclass(frozen=True)
class SearchSpace:
    """Groups of columns in the order in which they are protected, and what was left out and why.

    Wider groups come later, so that what a method enforces on all keys is not undone by a later step.
    """

    groups: tuple[Group, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)

    def choose(self, chooser: Chooser) -> dict[str, float | int | str]:
        """Let somebody choose a point: whether a group is protected, by what, and how."""
        point: dict[str, float | int | str] = {}
        for group in self.groups:
            name = _protection_parameter(group)
            point[name] = chooser.suggest_categorical(name, (NO, YES))
            if point[_protection_parameter(group)] == NO:
                continue
            words = tuple(option.name for option in group.options)
            word = point[_method(group)] = chooser.suggest_categorical(_method(group), words)
            option = group[str(word)]
            for axis in option.axes:
                name = _axis(group, option, axis)
                point[name] = axis.suggest(chooser, name)
        return point

    def recipe(self, point: Point) -> Recipe:
        """The recipe that a point means."""
        parts = self.parts(point)
        return Recipe(
            tuple(Step(option.make(choices), group.columns, group.within) for group, option, choices in parts)
        )

    def parts(self, point: Point) -> Iterator[tuple[Group, Option, dict[str, Any]]]:
        """Yield each group that a point protects, with its method and the choices for it."""
        for group in self.groups:
            if point.get(_protection_parameter(group), NO) == YES:
                option = group[str(point[_method(group)])]
                yield group, option, {axis.name: point[_axis(group, option, axis)] for axis in option.axes}

    def point(self, parts: Mapping[str, tuple[str, Mapping[str, Any]]]) -> dict[str, float | int | str]:
        """The point that protects these groups, each by a method with its choices, and no other."""
        point: dict[str, float | int | str] = {}
        for group in self.groups:
            if group.name not in parts:
                point[_protection_parameter(group)] = NO
                continue
            word, choices = parts[group.name]
            option = group[word]
            point[_protection_parameter(group)], point[_method(group)] = YES, word
            point.update({_axis(group, option, axis): choices[axis.name] for axis in option.axes})
        return point

    def point_of(self, step: Step) -> dict[str, float | int | str] | None:
        """The point whose recipe is one step; None when the step lies outside the space."""
        for group in self.groups:
            option = group.option(step.method.name)
            if option is None or set(group.columns) != set(step.columns) or group.within != step.within:
                continue
            choices = {axis.name: axis.choice_of(getattr(step.method, axis.name)) for axis in option.axes}
            if all(choice is not None for choice in choices.values()):
                point = self.point({group.name: (option.name, choices)})
                if self.recipe(point).steps[0].method == step.method:
                    return point
        return None

    def singles(self) -> list[Step]:
        """Each method alone on the widest groups it takes: most columns first, then what promises most."""
        found: list[tuple[int, Step]] = []
        for group in self.groups:
            for option in group.options:
                wider = [g for g in self.groups if set(g.columns) > set(group.columns)]
                if not any(other.option(option.name) for other in wider):
                    step = Step(option.method.from_dict(dict(option.start)), group.columns, group.within)
                    found.append((option.tier, step))
        found.sort(key=lambda each: (-len(each[1].columns), each[0], each[1].method.name, each[1].columns))
        return [step for _, step in found]

    def neighbour(
        self, point: Point, rng: np.random.Generator, *, stride: float = 0.1
    ) -> dict[str, float | int | str]:
        """A point near by: mostly other numbers, sometimes a step more, less, divided or by another method.

        ``stride`` is how far a number moves, as a share of its axis: one standard deviation.
        """
        parts = self._parts(point)
        idle = [group for group in self.groups if group.name not in parts]
        moves: list[Callable[[], None]] = []
        if len(parts) > 1:
            moves.append(lambda: parts.pop(_pick(sorted(parts), rng)) and None)
        if parts:
            moves += [lambda: self._divide(parts, rng), lambda: self._exchange(parts, rng)]
        if idle:
            moves.append(lambda: self._add(parts, _pick(idle, rng), rng))
        if not parts or rng.random() < _SHARE_OF_MOVES:
            _pick(moves, rng)()
        else:
            parts.update(self._perturb_point(parts, rng, stride))
        return self.point(parts)

    def _divide(self, parts: Parts, rng: np.random.Generator) -> None:
        """Protect the columns of one step by steps on fewer columns each, by the same method if it can."""
        name = _pick(sorted(parts), rng)
        word, own_choices = parts[name]
        whole = set(self._group_by_name(name).columns)
        rest = set(whole)
        for group in sorted(self.groups, key=lambda group: (-len(group.columns), group.name)):
            if set(group.columns) < whole and set(group.columns) <= rest:
                rest -= set(group.columns)
                option = group.option(word) or _pick(group.options, rng)
                choices = _draw_choices(option, rng)
                if option.name == word:  # which choices there are may differ between columns
                    choices |= {
                        axis.name: own_choices[axis.name] for axis in option.axes if axis.takes(own_choices)
                    }
                parts[group.name] = (option.name, choices)
        if rest != whole:
            del parts[name]

    def _exchange(self, parts: Parts, rng: np.random.Generator) -> None:
        name = _pick(sorted(parts), rng)
        self._add(parts, self._group_by_name(name), rng)

    @staticmethod
    def _add(parts: Parts, group: Group, rng: np.random.Generator) -> None:
        option = _pick(group.options, rng)
        parts[group.name] = (option.name, _draw_choices(option, rng))

    def _perturb_point(self, parts: Parts, rng: np.random.Generator, stride: float) -> Parts:
        """The same methods, the numbers of all steps or of one moved a little."""
        names = sorted(parts)
        if rng.random() < _SHARE_OF_ONE:
            names = [_pick(names, rng)]
        moved: Parts = {}
        for name in names:
            word, choices = parts[name]
            moved[name] = (word, _perturb_choices(self._group_by_name(name)[word], choices, rng, stride))
        return moved

    def _parts(self, point: Point) -> Parts:
        return {group.name: (option.name, choices) for group, option, choices in self.parts(point)}

    def _group_by_name(self, name: str) -> Group:
        return next(group for group in self.groups if group.name == name)

    def structure(self, point: Point) -> tuple[tuple[str, str], ...]:
        """Which groups a point protects and by what, without the settings."""
        return tuple((group.name, option.name) for group, option, _ in self.parts(point))

    def split_step(self, point: Point, rng: np.random.Generator) -> dict[str, float | int | str]:
        """The point with one of its steps divided into steps on fewer columns; the same if none can be."""
        parts = self._parts(point)
        if parts:
            self._divide(parts, rng)
        return self.point(parts)

    def along(self, point: Point, turn: int, shares: Sequence[float]) -> Iterator[dict[str, Any]]:
        """Yield the points that lie these shares of an axis away along one of its drives, the turn's."""
        parts = self._parts(point)
        drives = [
            (group.name, option.name, axis)
            for group, option, _ in self.parts(point)
            for axis in option.axes
            if axis.drive and not axis.meanings
        ]
        if not drives:
            return
        name, word, axis = drives[turn % len(drives)]
        choices = parts[name][1]
        moved = dict.fromkeys(axis.shift_choice(float(choices[axis.name]), share) for share in shares)
        for value in moved:
            if value != choices[axis.name]:
                yield self.point({**parts, name: (word, {**choices, axis.name: value})})

    def nudges(self, point: Point) -> Iterator[dict[str, Any]]:
        """Yield the points one small step of one drive away, either way."""
        for turn in range(len(self._parts(point))):
            yield from self.along(point, turn, (-_NUDGE, _NUDGE))

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON, and for the fingerprint of a search."""
        return {
            "groups": {
                group.name: {
                    "columns": list(group.columns),
                    **({"within": list(group.within)} if group.within else {}),
                    "methods": {option.name: _axes_dict(option) for option in group.options},
                }
                for group in self.groups
            },
            "left_out": dict(self.left_out),
        }


def _protection_parameter(group: Group) -> str:
    return f"{group.name}: protected"


def _method(group: Group) -> str:
    return f"{group.name}: method"


def _axis(group: Group, option: Option, axis: ParameterAxis) -> str:
    return f"{group.name}: {option.name}: {axis.name}"


def _axes_dict(option: Option) -> dict[str, Any]:
    return {
        axis.name: list(axis.meanings) or [axis.low, axis.high, "log" if axis.log else "linear"]
        for axis in option.axes
    }


def _pick(items: Sequence[Any], rng: np.random.Generator) -> Any:
    return items[int(rng.integers(len(items)))]


def _draw_choices(option: Option, rng: np.random.Generator) -> dict[str, Any]:
    """Choices for a method that was not there before: words by lot, numbers anywhere on their axes."""
    return {
        axis.name: _pick(sorted(axis.meanings), rng)
        if axis.meanings
        else axis.shift_choice(axis.low, float(rng.random()))
        for axis in option.axes
    }


def _perturb_choices(
    option: Option, choices: Mapping[str, Any], rng: np.random.Generator, stride: float
) -> dict[str, Any]:
    """The same choices, the numbers moved a little, a word sometimes exchanged."""
    moved: dict[str, Any] = {}
    for axis in option.axes:
        exchange, share = rng.random() < 0.1, float(rng.normal(0, stride))  # noqa: PLR2004
        if not axis.meanings:
            moved[axis.name] = axis.shift_choice(float(choices[axis.name]), share)
        else:
            moved[axis.name] = _pick(sorted(axis.meanings), rng) if exchange else choices[axis.name]
    return moved

"""Derive a tuner's search space from a table: which columns belong together, and which methods take them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sfumato.core import registry
from sfumato.core.group_measure import GroupMeasure
from sfumato.core.measure import ClassMeasure
from sfumato.core.method import Method
from sfumato.core.params import Param, Requirements
from sfumato.core.requirement import Requirement
from sfumato.core.vetting import Only, require_vetted, unvetted
from sfumato.data.schema import STRUCTURAL_ROLES, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError, PlanError, quoted
from sfumato.tuning.search_space import Group, Option, ParameterAxis, SearchSpace

#: From here on a method that looks at all pairs of records is too slow to be tried again and again.
MOST_RECORDS_FOR_PAIRS: Final = 50_000

#: From here on it is tried after what does not.
MANY_FOR_PAIRS: Final = 10_000

#: The two words for a parameter that takes requirements: its default, or what the release must meet.
_UNPROTECTED, _AS_REQUIRED = "as it is", "as required"


@dataclass(frozen=True)
class Scope:
    """What a search is confined to; what is not said is derived from the table.

    ``columns`` are to be protected (empty: the keys, and sensitive columns if a requirement looks at them);
    ``groups`` name sets of columns that are protected by one step each, in this order; ``methods`` are the
    only ones to try, ``without`` those not to; ``only`` confines those that nobody names to what is vetted.
    """

    columns: tuple[str, ...] = ()
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    methods: tuple[str | type[Method], ...] = ()
    without: tuple[str, ...] = ()
    only: Only = ""

    def classes(self) -> dict[str, type[Method]]:
        """The methods to look at, by name."""
        named = [registry.method(each) if isinstance(each, str) else each for each in self.methods]
        require_vetted(self.only, named)
        known = {cls.name: cls for cls in named} or dict(registry.methods())
        unwanted = {registry.method(name).name for name in self.without}
        unwanted |= {*unvetted(known.values())} if self.only else set()
        return {name: cls for name, cls in sorted(known.items()) if name not in unwanted}


def derive(
    table: Table,
    scope: Scope,
    *,
    requirements: Sequence[Requirement] = (),
    resources: Iterable[str] = (),
    sensitive: bool = True,
) -> SearchSpace:
    """Derive the space: groups of columns, and for each the registered methods that take it.

    ``sensitive`` says whether the sensitive columns are worth changing when nobody named columns.
    """
    classes = scope.classes()
    left_out: dict[str, str] = {}
    able: dict[str, type[Method]] = {}
    for name, cls in classes.items():
        reason = _why_unsuitable(cls, table, set(resources), named=bool(scope.methods))
        if reason:
            left_out[name] = reason
        else:
            able[name] = cls
    sets = _sets(table.schema, scope, able.values(), sensitive=sensitive)
    refusals: dict[str, str] = {}
    groups = [
        Group(name, columns, tuple(_options(table.aimed_at(columns), able, requirements, refusals)))
        for name, columns in sets.items()
    ]
    groups = [group for group in groups if group.options]
    groups += [
        each
        for strata in _strata_asked(requirements, table.schema)
        for each in _protect_within(strata, groups)
    ]
    used = {option.name for group in groups for option in group.options}
    for name in able:
        if name not in used:
            left_out[name] = refusals.get(name, "it protects none of the groups of columns")
    if not groups:
        raise ParameterError(
            "no method can protect these columns",
            hint="; ".join(f"{name}: {reason}" for name, reason in sorted(left_out.items())),
        )
    return SearchSpace(tuple(groups), dict(sorted(left_out.items())))


def _strata_asked(requirements: Sequence[Requirement], schema: Schema) -> list[tuple[str, ...]]:
    """The columns in whose every group something is required: protecting these separately may help."""
    measures = (each.measure for each in requirements)
    asked = (each.groups.sorts_in(schema) for each in measures if isinstance(each, GroupMeasure))
    return list(dict.fromkeys(each.columns for sorts in asked for each in sorts))


def _protect_within(strata: tuple[str, ...], groups: Sequence[Group]) -> Iterator[Group]:
    """The same groups of columns with a step for each stratum; one that enforces it does so by itself."""
    for group in groups:
        options = tuple(each for each in group.options if not each.start)
        if options and not set(strata) & set(group.columns):
            yield Group(f"{group.name} within {'+'.join(strata)}", group.columns, options, strata)


def _why_unsuitable(cls: type[Method], table: Table, resources: set[str], *, named: bool) -> str:
    """Why a method cannot be searched at all; empty if it can."""
    if not cls.randomness.replay:
        return "its noise cannot be repeated, and tuning a parameter on the data would void its guarantee"
    for declared in cls.parameters():
        if declared.holds and not declared.optional and str(declared.default) not in resources:
            return f"it needs a {declared.holds} as the resource `{declared.default}`"
    if cls.cost.startswith("n²") and len(table) > MOST_RECORDS_FOR_PAIRS and not named:
        return f"it compares all pairs of {len(table):,} records; name it among the methods to try it"
    return ""


def _sets(
    schema: Schema, scope: Scope, classes: Iterable[type[Method]], *, sensitive: bool
) -> dict[str, tuple[str, ...]]:
    """The sets of columns that are protected by one step each, the widest last."""
    if scope.groups:
        if scope.columns:
            raise ParameterError("only one of `columns` and `groups` can be given, got: both")
        return {name: _resolve_group(schema, words, name) for name, words in scope.groups.items()}
    keys = schema.known_columns() if schema.with_role(Role.KEY) else ()  # what nobody decided on is known too
    if scope.columns:
        parts = {"columns": schema.resolve(scope.columns)}
    elif keys:
        parts = {"sensitive columns": schema.with_role(Role.SENSITIVE)} if sensitive else {}
        parts["keys"] = keys
    else:
        parts = {"columns": tuple(c.name for c in schema.columns if c.role not in STRUCTURAL_ROLES)}
    found: dict[str, tuple[str, ...]] = {}
    for part, columns in parts.items():
        takes = {tuple(name for name in columns if schema[name].kind in cls.kinds) for cls in classes}
        for names in sorted(takes - {()}, key=lambda names: (len(names), names)):
            found[_title(part, names, columns, schema)] = names
    return found


def _resolve_group(schema: Schema, words: Sequence[str], name: str) -> tuple[str, ...]:
    columns = schema.resolve((words,) if isinstance(words, str) else words)
    if not columns:
        raise PlanError(f"the group `{name}` must name at least one column, got: none")
    return columns


def _title(part: str, names: tuple[str, ...], columns: tuple[str, ...], schema: Schema) -> str:
    kinds = ", ".join(sorted({schema[name].kind.value for name in names}))
    return part if names == columns else f"{kinds} {part}"


def _options(
    table: Table,
    classes: Mapping[str, type[Method]],
    requirements: Sequence[Requirement],
    refusals: dict[str, str],
) -> Iterable[Option]:
    """Yield the methods that take the columns aimed at; note why others of fitting kind refuse."""
    kinds = {table.schema[column].kind for column in table.chosen}
    for word, cls in classes.items():
        if not kinds <= cls.kinds:
            continue
        reason = cls().refuses(table)
        if reason:
            refusals[word] = reason
        else:
            axes = tuple(_axes(cls, table, requirements))
            start = {axis.name: axis.meanings[_AS_REQUIRED] for axis in axes if _AS_REQUIRED in axis.meanings}
            yield Option(cls, axes, start, _tier(cls, len(table), enforces=bool(start), asked=requirements))


def _tier(cls: type[Method], records: int, *, enforces: bool, asked: Sequence[Requirement]) -> int:
    """How little a method promises, from what it declares: 0 is tried first.

    Where records must be alike, that is what enforces it, then what makes groups; elsewhere what changes
    values rather than suppresses them. What has no drive can be brought to nothing, and what compares all
    pairs comes late where there are many.
    """
    drive = cls.drive()
    if any(isinstance(each.measure.ungrouped, ClassMeasure) for each in asked):
        tier = 0 if enforces else 1 if drive is not None and drive.symbol == "k" else 2
    else:
        tier = int(cls.gives.suppressed)
    slow = cls.cost.startswith("n²") and records > MANY_FOR_PAIRS
    return tier + 3 * (drive is None) + 3 * slow


def _axes(cls: type[Method], table: Table, requirements: Sequence[Requirement]) -> Iterable[ParameterAxis]:
    for declared in cls.parameters():
        if declared.drive:
            yield ParameterAxis.of_range(declared, *cls().drive_range(table))
        elif declared.tune is not None:
            yield ParameterAxis.of_range(declared, *declared.tune)
        else:
            meanings = _meanings(cls, declared, table, requirements)
            if len(meanings) > 1:
                yield ParameterAxis(declared.name, meanings=meanings)


def _meanings(
    cls: type[Method], declared: Param, table: Table, requirements: Sequence[Requirement]
) -> dict[str, Any]:
    """The words to choose from and what they mean; a choice the method refuses here is none."""
    if declared.type is Requirements:
        # What classes of records alike tell can be enforced; a method that cannot says so when it is tried.
        enforced = [str(each) for each in requirements if isinstance(each.measure.ungrouped, ClassMeasure)]
        default = declared.clean(declared.default, owner=cls.name)
        return {_UNPROTECTED: default, _AS_REQUIRED: Requirements(enforced)} if enforced else {}
    if not declared.choices:
        return {}
    return {
        word: word for word in declared.choices if cls.from_dict({declared.name: word}).refuses(table) is None
    }


def unprotected_keys_note(space: SearchSpace, schema: Schema) -> str:
    """Say which keys no group of the space holds; empty if all are held."""
    held = {column for group in space.groups for column in group.columns}
    keys = schema.known_columns() if schema.with_role(Role.KEY) else ()
    bare = [name for name in keys if name not in held]
    return f"no step of this search protects the keys {quoted(bare)}" if bare else ""

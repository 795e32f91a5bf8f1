"""The plan to start from: what a profile requires, and a step that can reach it on the keys."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from sfumato.core import registry
from sfumato.core.group_measure import GroupMeasure
from sfumato.core.measure import ClassMeasure, EstimatedMeasure
from sfumato.core.params import Requirements
from sfumato.data.schema import UNIT_ROLES, Kind, Role, Schema
from sfumato.io.formats import written_suffix
from sfumato.recipes.demand import Demand
from sfumato.recipes.parts import Output, Source
from sfumato.recipes.plan import Plan
from sfumato.recipes.profile import Profile
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step

#: Methods that make records alike and so enforce what is demanded, and of those that move values some that
#: meet it where nobody must be alike; the first is what a plan starts from. Recoding needs a hierarchy, or it
#: takes long and leaves little.
_ENFORCING: Final = (
    "mondrian", "mdav", "mdav-in-parts", "sullivan-noise", "correlated-noise", "rank-swapping",
    "global-recoding", "local-suppression",
)  # fmt: skip
_BY_HIERARCHY: Final = frozenset({"global-recoding"})


def starter(schema: Schema, profile: Profile, data: Source | None = None) -> Plan:
    """A plan with the requirements of a profile and a step that fits the keys, for a person to edit.

    The numbers of persons, households and groups have a pseudonym, and are left out where something is
    required: whose records are told together is seldom like anyone.
    """
    output = Output(path=f"release{written_suffix(data.path if data else '')}")
    plan = profile.apply_to(Plan(data, with_pseudonyms(schema), output=output))
    step = next(iter(safe_steps(plan.schema or schema, plan.demands)), None)
    drop = schema.with_role(*UNIT_ROLES) if plan.demands else ()
    return replace(plan, recipe=Recipe((step,) if step else ()), output=replace(plan.output, drop=drop))


def with_pseudonyms(schema: Schema) -> Schema:
    """The schema with a pseudonym for each number of persons, households and groups."""
    renamed = [
        replace(column, pseudonym=column.name if column.role is Role.GROUP else column.role)
        for column in schema.columns
        if column.role in UNIT_ROLES and not column.pseudonym
    ]
    return schema.replace(*renamed)


def safe_steps(schema: Schema, demands: Sequence[Demand], companions: Sequence[str] = ()) -> list[Step]:
    """Steps that may enforce what is demanded on all that the intruders know; none if nothing is, or can be.

    ``companions`` are columns that are changed along, as they would give known ones back.

    Records alike in k find a person with a chance of one in k, so a demand on that chance is one on k. What
    holds in all keys together holds in some of them, as their classes are unions.
    """
    known = {
        name
        for demand in demands
        for name in schema.resolve(demand.scenario.columns) or schema.known_columns()
    }
    known |= set(companions) if known else set()
    columns = tuple(name for name in schema.names if name in known and schema[name].kind is not Kind.SET)
    risks = [demand for demand in demands if demand.requirement.judges == "risk"]
    if not columns or not risks:
        return []
    k = max(_class_size_for(demand) for demand in risks)
    also = tuple(dict.fromkeys(text for demand in risks for text in _enforceable(demand, schema)))
    kinds = {schema[name].kind for name in columns}
    alike = any(isinstance(demand.measure.ungrouped, ClassMeasure) for demand in risks)
    coded = any(schema[name].hierarchy for name in columns)
    classes = [registry.method(name) for name in _ENFORCING if coded or name not in _BY_HIERARCHY]
    asked = {"k": k, "also": Requirements(also)}
    return [
        Step(cls(**{each.name: asked[each.name] for each in cls.parameters() if each.name in asked}), columns)
        for cls in classes
        if kinds <= cls.kinds and (not alike or not cls.randomness.stochastic)
    ]


def _enforceable(demand: Demand, schema: Schema) -> Iterator[str]:
    """What a method is to enforce besides the number of records alike; in every group that number, too."""
    asked, scored = demand.requirement, demand.measure
    if isinstance(scored, GroupMeasure) and scored.groups.sorts_in(schema) != (scored.groups,):
        return  # a record is in several of them, and no method protects these one by one
    asked, scored = demand.requirement, demand.measure.ungrouped
    if not isinstance(scored, ClassMeasure):
        if asked.where:
            yield f"k-anonymity >= {_class_size_for(demand)}{asked.where}"
    elif asked.required_class_size is None and (asked.at or not isinstance(scored, EstimatedMeasure)):
        yield f"{scored} {asked.sign} {asked.level:.12g}{asked.at}{asked.where}"


def _class_size_for(demand: Demand) -> int:
    """How many must be alike for a demand, be it on their number or on the chance to find one of them."""
    alike, level = demand.requirement.required_class_size, demand.requirement.level
    if isinstance(demand.measure.ungrouped, EstimatedMeasure):
        return 2  # in a population more are alike: what is estimated of them is enforced besides
    if alike is None and demand.measure.tells.intruder and demand.measure.better == "low" and level > 0:
        alike = math.ceil(1 / level - 1e-9)
    return max(alike or 1, 2)

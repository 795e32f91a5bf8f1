"""What a table's columns are: their kinds, their roles, and the facts that must hold of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Self

import polars as pl

from sfumato.data.date_forms import FORMS
from sfumato.data.notebook import Tabular, as_html
from sfumato.data.records import as_spec, raise_all, read_record, read_values
from sfumato.data.rules import Rule
from sfumato.errors import PlanError, UnknownNameError, count_noun, note_renamed, quoted

Scalar = str | float


class Kind(StrEnum):
    """What sort of values a column holds."""

    CONTINUOUS = "continuous"
    ORDINAL = "ordinal"
    NOMINAL = "nominal"
    DATE = "date"
    SET = "set"


#: Kinds whose values have an order, and those whose values, exact or generalised, are equal or not.
ORDERED = frozenset({Kind.CONTINUOUS, Kind.ORDINAL, Kind.DATE})
COMPARABLE = ORDERED | {Kind.NOMINAL}


class Role(StrEnum):
    """What a column means to someone who wants to know who is in the table."""

    IDENTIFIER = "identifier"
    KEY = "key"
    SENSITIVE = "sensitive"
    WEIGHT = "weight"
    HOUSEHOLD = "household"
    PERSON = "person"
    GROUP = "group"
    OTHER = "other"

    @classmethod
    def _missing_(cls, value: object) -> Role | None:
        if value == "unit":
            note_renamed("the role", "unit", cls.PERSON)
            return cls.PERSON
        return None


#: Roles that at most one column may have.
SINGLE_ROLES = (Role.WEIGHT, Role.HOUSEHOLD, Role.PERSON)

#: Roles of numbers that say which records belong together: those of a person, of a household, of any group
#: such as a dwelling, a class or a firm.
UNIT_ROLES = (Role.PERSON, Role.HOUSEHOLD, Role.GROUP)

#: Whose word the role of a sensitive column is that is dropped.
DROPPED = "left out; sensitive, should it ever leave"

#: Roles that say how records belong together or count, not what they say of a person.
STRUCTURAL_ROLES = (Role.IDENTIFIER, Role.WEIGHT, *UNIT_ROLES)


def _text_labels(labels: Any) -> Any:
    """Pairs of a value and what it means, with the meaning as a text: people write numbers, too."""
    if not isinstance(labels, list | tuple):
        return labels
    return [
        (pair[0], str(pair[1])) if isinstance(pair, list | tuple) and len(pair) == 2 else pair  # noqa: PLR2004
        for pair in labels
    ]


#: The most that a column can be worth, and what one is that is said to matter.
MOST_IMPORTANCE, MATTERS = 1000.0, 3.0


@dataclass(frozen=True)
class Column:
    """One column: its kind, its role (``None`` until someone decided) and what must hold of its values.

    ``order`` lists an ordinal column's values from low to high (empty: the natural order of the values);
    ``missing`` lists the codes that stand for "not known" (−9, 99, "."), ``missing_range`` the ends of a
    range of such codes; ``suppressed`` is the code that a release writes where it holds a value back;
    ``labels`` say what values mean (1 is "male"). ``hierarchy`` names a resource; columns of one
    ``pseudonym`` hold the same numbers (of persons, of households) and are renamed alike in a release;
    ``form`` is how a text file writes dates (``dd.mm.yyyy``), ``separator`` what stands there between the
    items of a set. ``importance`` is how much analysts need the column, 1 unless said: searches and methods
    that choose what to lose lose less of it. ``role_basis`` says whose word the role is where nobody has
    declared it: a guess and its reason, an answer to a question, a default that was accepted.
    """

    name: str
    kind: Kind
    role: Role | None = None
    order: tuple[Scalar | bool, ...] = field(default=(), kw_only=True)
    missing: tuple[Scalar | bool, ...] = field(default=(), kw_only=True)
    integer: bool = field(default=False, kw_only=True)
    lower: float | None = field(default=None, kw_only=True)
    upper: float | None = field(default=None, kw_only=True)
    hierarchy: str = field(default="", kw_only=True)
    label: str = field(default="", kw_only=True)
    labels: tuple[tuple[Scalar | bool, str], ...] = field(
        default=(), kw_only=True, metadata={"prepare": _text_labels}
    )
    missing_range: tuple[float, float] | None = field(default=None, kw_only=True)
    suppressed: Scalar | None = field(default=None, kw_only=True)
    pseudonym: str = field(default="", kw_only=True)
    form: str = field(default="", kw_only=True)
    separator: str = field(default="", kw_only=True)
    importance: float = field(default=1.0, kw_only=True)
    role_basis: str = field(default="", kw_only=True, compare=False)

    def __post_init__(self) -> None:
        # "key" for Role.KEY and a list for a tuple are what people write; all code may rely on the latter.
        cls, faults = type(self), list[str]()
        spec = {key: value for key, value in vars(self).items() if value is not getattr(cls, key, MISSING)}
        for key, value in read_values(cls, spec, faults).items():
            object.__setattr__(self, key, value)
        if self.missing_range and not faults:
            object.__setattr__(self, "missing_range", tuple(map(float, self.missing_range)))
        raise_all(f"column `{self.name}`", faults or list(self._faults()))

    def _faults(self) -> Iterator[str]:
        if not self.name:
            yield "its name must not be empty"
        if self.name.startswith("^") and self.name.endswith("$"):  # polars reads it as a pattern
            yield "its name must not begin with ^ and end with $"
        if self.order and self.kind is not Kind.ORDINAL:
            yield f"`order` is for ordinal columns, got kind: `{self.kind}`"
        if len(set(self.order)) != len(self.order):
            yield "`order` must list each value once"
        if (self.lower is not None or self.upper is not None) and self.kind is not Kind.CONTINUOUS:
            yield f"`lower` and `upper` are for continuous columns, got kind: `{self.kind}`"
        yield from (
            f"`{word}` must be a number, got: nan"
            for word, bound in (("lower", self.lower), ("upper", self.upper))
            if bound is not None and math.isnan(bound)
        )
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            yield f"`lower` must be at most `upper`, got: {self.lower} and {self.upper}"
        if not 0 < self.importance <= MOST_IMPORTANCE:
            yield f"`importance` must be above 0 and at most {MOST_IMPORTANCE:g}, got: {self.importance:g}"
        yield from self._kind_faults()
        if len({value for value, _ in self.labels}) != len(self.labels):
            yield "`labels` must name each value once"
        if self.missing_range is not None and not self.missing_range[0] <= self.missing_range[1]:
            yield "`missing_range` must go from the lower end to the upper"

    def _kind_faults(self) -> Iterator[str]:
        if self.form and (self.form not in FORMS or self.kind is not Kind.DATE):
            yield f"`form` is for dates, and one of {', '.join(FORMS)}, got: `{self.form}` ({self.kind})"
        if self.separator and self.kind is not Kind.SET:
            yield f"`separator` is for sets, got kind: `{self.kind}`"
        if self.separator and not self.separator.strip():
            yield "`separator` must hold more than blanks, which do not part items"
        if self.role is Role.WEIGHT and self.kind is not Kind.CONTINUOUS:
            yield f"a weight must be continuous, got kind: `{self.kind}`"

    @property
    def missing_codes(self) -> tuple[Scalar, ...]:
        """All codes that stand for a value that is not there, the code for suppressed ones among them."""
        if self.suppressed is None or self.suppressed in self.missing:
            return self.missing
        return (*self.missing, self.suppressed)

    def to_dict(self) -> dict[str, Any]:
        """Say what is not default, as the plan's table for this column."""
        return {key: value for key, value in as_spec(self).items() if key != "name"}

    @classmethod
    def from_dict(cls, name: str, spec: Mapping[str, Any]) -> Self:
        """Read the plan's table for this column, reporting all its faults together."""
        return read_record(cls, spec, f"column `{name}`", given={"name": name})


@dataclass(frozen=True, repr=False)
class Schema(Tabular):
    """The columns of a table in order, the rules between them, and which of them tell the same story."""

    columns: tuple[Column, ...]
    rules: tuple[Rule, ...] = ()
    related: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        for key in ("columns", "rules", "related"):
            object.__setattr__(self, key, tuple(getattr(self, key)))
        faults = list(self._faults())
        if faults:
            raise PlanError.gather("the schema", faults)

    def _faults(self) -> Iterator[str]:
        seen: set[str] = set()
        for column in self.columns:
            if column.name in seen:
                yield f"column `{column.name}` is declared twice"
            seen.add(column.name)
        for role in SINGLE_ROLES:
            holders = self.with_role(role)
            if len(holders) > 1:
                yield f"at most one column may be the {role}, got: {quoted(holders)}"
        named = [(f"rule `{rule.text}`", rule.columns) for rule in self.rules]
        named += [("`related`", group) for group in self.related]
        for what, names in named:
            strangers = [name for name in names if name not in seen]
            if strangers:
                yield f"{what} names columns that are not declared: {quoted(strangers)}"

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    def __getitem__(self, name: str) -> Column:
        if name in self._by_name:
            return self._by_name[name]
        raise UnknownNameError.of("column", name, self.names)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._by_name

    def __repr__(self) -> str:  # neither values nor codes: it may stand in a traceback
        roles = Counter(column.role or "undecided" for column in self.columns)
        return f"Schema({', '.join(f'{count} {role}' for role, count in roles.items())})"

    def to_frame(self) -> pl.DataFrame:
        """The columns, a row each: name, kind, role and label."""
        facts = [(each.name, each.kind, each.role, each.label) for each in self.columns]
        return pl.DataFrame(
            facts, schema=dict.fromkeys(("column", "kind", "role", "label"), pl.String), orient="row"
        )

    def _repr_html_(self) -> str:
        return as_html([repr(self)], self.to_frame())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns, in order."""
        return tuple(column.name for column in self.columns)

    def with_role(self, *roles: Role) -> tuple[str, ...]:
        """Names of the columns that have one of these roles."""
        return tuple(column.name for column in self.columns if column.role in roles)

    def with_kind(self, *kinds: Kind) -> tuple[str, ...]:
        """Names of the columns that are of one of these kinds."""
        return tuple(column.name for column in self.columns if column.kind in kinds)

    def resolve(self, words: Iterable[str]) -> tuple[str, ...]:
        """Names of columns, in which ``@key`` or ``@continuous`` stand for all of a role or kind.

        A kind does not reach the numbers of persons and households, weights and identifiers: what tells whose
        a record is would be changed unnoticed. Their roles do, and their names.
        """
        groups = {f"@{word}" for word in (*Kind, *Role)}
        chosen: dict[str, None] = {}
        for word in words:
            if word == "@unit":
                note_renamed("the group of columns", word, "@person")
                word = "@person"  # noqa: PLW2901
            if not word.startswith("@"):
                chosen[self[word].name] = None
            elif word in groups:
                for column in self.columns:
                    of_kind = column.kind == word[1:] and column.role not in STRUCTURAL_ROLES
                    if of_kind or column.role == word[1:]:
                        chosen[column.name] = None
            else:
                raise UnknownNameError.of("group of columns", word, groups)
        return tuple(chosen)

    def known_columns(self) -> tuple[str, ...]:
        """What an intruder is taken to know unless someone says more: the keys, and what nobody decided on.

        Without any key it is all that says something of people.
        """
        if self.with_role(Role.KEY):
            return tuple(column.name for column in self.columns if column.role in {Role.KEY, None})
        return self.said_of_people()

    def said_of_people(self) -> tuple[str, ...]:
        """All columns but identifiers, weights and numbers of persons, households and groups."""
        return tuple(column.name for column in self.columns if column.role not in STRUCTURAL_ROLES)

    def only_role(self, role: Role) -> str | None:
        """Name of the one column with a role such as weight, or None."""
        names = self.with_role(role)
        return names[0] if names else None

    def select(self, names: Iterable[str]) -> Schema:
        """Keep these columns, with the rules and relations that still make sense."""
        columns = tuple(self[name] for name in names)
        have = {column.name for column in columns}
        return Schema(
            columns=columns,
            rules=tuple(rule for rule in self.rules if set(rule.columns) <= have),
            related=tuple(group for group in self.related if set(group) <= have),
        )

    def dropping(self, names: Iterable[str]) -> Schema:
        """The schema in which sensitive columns that are dropped are so no longer: nobody learns them.

        Else methods would keep them diverse and close, at the cost of what leaves.
        """
        gone = set(names) & set(self.with_role(Role.SENSITIVE))
        return self.replace(*(replace(self[name], role=Role.OTHER, role_basis=DROPPED) for name in gone))

    def replace(self, *columns: Column) -> Schema:
        """Put these columns in place of those of the same name, or behind the others."""
        new = {column.name: column for column in columns}
        kept_columns = [new.pop(column.name, column) for column in self.columns]
        return replace(self, columns=(*kept_columns, *new.values()))

    def faults_with(self, frame: pl.DataFrame) -> list[str]:
        """Everything in which a frame does not fit this schema, gathered."""
        present = set(frame.columns)
        faults = [
            str(UnknownNameError.of("column", name, present)).replace("\n\nhint:", " —")
            for name in self.names
            if name not in present
        ]
        faults += [
            f"column `{name}` of the data is not declared" for name in frame.columns if name not in self
        ]
        dtypes = frame.schema  # made anew each time it is asked for
        for column in self.columns:
            if column.name in present:
                faults += list(_dtype_faults(column, dtypes[column.name]))
                if dtypes[column.name].is_float() and (column.pseudonym or column.role in UNIT_ROLES):
                    faults += list(_merged_units(frame[column.name]))
        return faults

    def columns_without_role(self) -> tuple[str, ...]:
        """Columns nobody has given a role: they block a release."""
        return tuple(column.name for column in self.columns if column.role is None)

    def to_dict(self) -> dict[str, Any]:
        """Say the schema as the plan's tables."""
        payload: dict[str, Any] = {"columns": {column.name: column.to_dict() for column in self.columns}}
        if self.rules:
            payload["rules"] = [rule.text for rule in self.rules]
        if self.related:
            payload["related"] = [list(group) for group in self.related]
        return payload

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any]) -> Schema:
        """Read the plan's tables, gathering the faults of all columns and rules."""
        return read_record(SchemaSpec, spec, "the schema", makers={Rule: Rule}).schema


@dataclass(frozen=True)
class SchemaSpec:
    """The parts of a plan that declare its columns."""

    columns: Mapping[str, Column] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    related: tuple[tuple[str, ...], ...] = ()

    @property
    def schema(self) -> Schema:
        """What they declare."""
        return Schema(tuple(self.columns.values()), self.rules, self.related)


def with_roles(schema: Schema, roles: Mapping[str, Any]) -> Schema:
    """A schema whose columns have the roles that are given by their names."""
    given = (replace(schema[name], role=role, role_basis="") for name, role in roles.items())
    return schema.replace(*given)


def like_schema(schema: Schema, other: Schema) -> Schema:
    """A schema whose columns are declared as those of the same name in another, but for what they promise.

    Roles that only one column may have stay with the columns that have them.
    """
    shared = [name for name in schema.names if name in other]
    taken = {other[name].role for name in shared}
    kept_columns = [
        replace(each, role=None) if each.role in taken.intersection(SINGLE_ROLES) else each
        for each in schema.columns
        if each.name not in shared
    ]
    promises: dict[str, Any] = {"lower": None, "upper": None, "pseudonym": ""}
    columns = {each.name: each for each in kept_columns}
    columns |= {name: replace(other[name], **promises) for name in shared}
    return Schema(tuple(columns[name] for name in schema.names))


def _merged_units(numbers: pl.Series) -> Iterator[str]:
    """A number of persons is told from the next one only as far as a float has digits."""
    bits = 24 if numbers.dtype == pl.Float32 else 53
    if large := int((numbers.is_not_nan() & (numbers.abs() >= 2**bits)).sum()):
        yield (
            f"column `{numbers.name}` identifies units and has {count_noun(large, 'float')} of 2^{bits} or "
            "more, where two different numbers may be one: read the column as text"
        )


def _dtype_faults(column: Column, dtype: pl.DataType) -> Iterator[str]:
    if isinstance(dtype, pl.Struct):  # a generalised value: any kind may have been made coarser
        return
    textual = dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null)  # not a set: an Enum has its own hash
    if column.kind is Kind.CONTINUOUS and not (dtype.is_numeric() or textual or dtype == pl.Boolean):
        yield f"column `{column.name}` is declared continuous, but has the type {dtype.base_type()}"
    if column.kind is Kind.DATE and not (dtype.is_temporal() or textual):
        yield f"column `{column.name}` is declared a date, but has the type {dtype.base_type()}"
    if column.kind is Kind.SET and not (isinstance(dtype, pl.List) or textual):
        yield f"column `{column.name}` is declared set-valued, but has the type {dtype.base_type()}"

"""What can be said of a table without showing a value of it: counts, proposals, reasons and warnings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl

from sfumato.data.classes.classes import alike_in_all
from sfumato.data.combinations import ColumnCombinations
from sfumato.data.guess import words
from sfumato.data.guess.columns import Guess
from sfumato.data.guess.kind import shown_order
from sfumato.data.guess.person_numbers import in_records
from sfumato.data.notebook import Tabular, as_html
from sfumato.data.persons import persons_of
from sfumato.data.relations.associations import RelatedColumns
from sfumato.data.relations.joining import units_of
from sfumato.data.relations.regrouping import HOW, regroupings
from sfumato.data.schema import UNIT_ROLES, Column, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import count_noun

_NAMED = 10  # the most columns that a sentence names

_DECLARED = "declared by the data set"

#: Records that are looked at to see what would put them together again, and the ways to do so that are named.
_RECORDS_JOINED, _REGROUPINGS_NAMED = 100_000, 3

_REMEDIES = "round them, microaggregate them (individual-ranking), top-code them, or keep one record of each"

#: Codes of our own lists: to show one that the table has gives nothing of the table away.
_KNOWN_CODES = frozenset(
    str(code)
    for code in (
        *words.MISSING_WORDS,
        *words.SHORT_MISSING_WORDS,
        *words.NOT_APPLICABLE,
        *words.MISSING_NUMBERS,
        *words.MISSING_DATES,
    )
)
#: Facts of a column that list values of it: of these only the number is told.
_LISTS = {"order": "ordered_values", "labels": "value_labels", "missing": "missing_codes"}


@dataclass(frozen=True)
class Summary:
    """One column: what it seems to be and why, and its counts.

    ``distinct`` counts the values that are there, ``missing`` the records without one, be it by a code,
    ``alone`` the people who have a value that nobody else has.
    """

    guess: Guess
    dtype: str
    distinct: int
    missing: int
    alone: int = 0
    related: tuple[str, ...] = ()

    @property
    def column(self) -> Column:
        """The column as it is proposed."""
        return self.guess.column

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes for missing values that may be shown."""
        return tuple(str(code) for code in self.column.missing if str(code) in _KNOWN_CODES)

    def notes(self) -> list[str]:
        """What there is to say beside kind and role."""
        notes = []
        if self.column.labels:
            notes.append(count_noun(len(self.column.labels), "value label"))
        if self.guess.is_guessed and (order := shown_order(self.column)):
            notes.append(f"order {order}")
        if self.codes:
            notes.append(f"missing code{'s' if len(self.codes) > 1 else ''} {' '.join(self.codes)}")
        hidden = len(self.column.missing_codes) - len(self.codes)
        if hidden:
            notes.append(count_noun(hidden, "other missing code" if self.codes else "missing code"))
        if self.column.missing_range is not None:
            notes.append("a range of missing codes")
        if self.related:
            notes.append(f"strongly related to {name_columns(self.related)}")
        return notes

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON, without any value."""
        payload = self.column.to_dict()
        for fact in ("missing_range", "suppressed"):
            payload.pop(fact, None)
        counts = {word: len(payload.pop(fact, ())) for fact, word in _LISTS.items()}
        return {
            "name": self.column.name,
            "type": self.dtype,
            "distinct": self.distinct,
            "missing": self.missing,
            "alone": self.alone,
            "kind": payload.pop("kind"),
            "kind_reason": self.guess.kind_reason,
            "role": payload.pop("role", None),
            "role_reason": self.guess.role_reason,
            "confidence": self.guess.confidence,
            "label": payload.pop("label", ""),
            **counts,
            "known_missing_codes": list(self.codes),
            "related": list(self.related),
            **payload,
        }


@dataclass(frozen=True)
class PersonCounts:
    """How many persons a table is of, by which column, the fewest and most records that one has.

    ``unique`` counts those whom nobody else is alike in the keys of all their records.
    """

    column: str
    persons: int
    fewest: int
    most: int
    unique: int

    def sentence(self, keys: Sequence[str]) -> str:
        """How many there are, and how many of them are unique on the keys."""
        records = in_records(self.fewest, self.most)
        there = f"{count_noun(self.persons, 'person')} with {records} by `{self.column}`"
        if not keys:
            return there
        return f"{there}; {_unique_sentence(self.unique, self.persons, 'person', keys)}"


@dataclass(frozen=True)
class Overview(Tabular):
    """A table at a glance; ``unique`` counts the records that no other is alike in all keys.

    Of a table with several records of each person ``persons`` counts these.
    """

    records: int
    columns: tuple[Summary, ...]
    relations: tuple[RelatedColumns, ...]
    duplicates: int
    unique: int
    joins: tuple[str, ...] = ()  # on what would put records together again
    notes: tuple[str, ...] = ()  # on how the file was read
    reading: Mapping[str, str] = field(default_factory=dict)  # what a plan says of that
    persons: PersonCounts | None = None
    combinations: ColumnCombinations | None = None  # where they were asked for

    @property
    def schema(self) -> Schema:
        """The schema as it is proposed."""
        related = tuple(relation.columns for relation in self.relations)
        return Schema(tuple(summary.column for summary in self.columns), related=related)

    def warnings(self) -> list[str]:
        """What should be known before anything is done with the table, in words."""
        schema = self.schema
        keys = schema.with_role(Role.KEY)
        found = [
            _about(
                schema.with_role(Role.IDENTIFIER),
                "is a direct identifier: leave it out",
                "are direct identifiers: leave them out",
            ),
            _about(
                schema.columns_without_role(),
                "has no role: choose one, or leave the column out",
                "have no role: choose one for each, or leave the columns out",
            ),
            _about(self._with_distinct(0), "has no value at all", "have no value at all"),
            _about(self._with_distinct(1), "has the same value throughout", "have the same value throughout"),
            _about(
                [summary.column.name for summary in self.columns if summary.codes],
                "has codes that may mean missing: check them",
                "have codes that may mean missing: check them",
            ),
        ]
        found += [
            f"{name_columns(group.columns)} are strongly related: {group.reason}" for group in self.relations
        ]
        if self.duplicates:
            verb = "repeats" if self.duplicates == 1 else "repeat"
            found.append(f"{self.duplicates} of {self.records} records {verb} another one in full")
        if keys and self.records and self.persons is None:
            found.append(_unique_sentence(self.unique, self.records, "record", keys))
        found += [*self.joins, *([self.persons.sentence(keys)] if self.persons else [])]
        return [*self.notes, *(sentence for sentence in found if sentence)]

    def to_frame(self) -> pl.DataFrame:
        """A row for each column: its counts, what it seems to be, and why."""
        return pl.DataFrame(
            [
                {
                    "column": each.column.name,
                    "type": each.dtype,
                    "distinct": each.distinct,
                    "missing": each.missing,
                    "kind": each.column.kind.value,
                    "role": each.column.role.value if each.column.role else "?",
                    "why": each.guess.role_reason,
                }
                for each in self.columns
            ]
        )

    def __repr__(self) -> str:
        with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True, fmt_str_lengths=60):
            return "\n".join([str(self.to_frame()), *self.warnings()])

    def _repr_html_(self) -> str:
        return as_html(self.warnings(), self.to_frame())

    def _with_distinct(self, count: int) -> list[str]:
        present = [summary for summary in self.columns if self.records]
        return [s.column.name for s in present if s.distinct == count and (count == 0 or not s.missing)]

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON, without any value."""
        keys = list(self.schema.with_role(Role.KEY))
        return {
            "records": self.records,
            "reading": dict(self.reading),
            "columns": [summary.to_dict() for summary in self.columns],
            "duplicates": self.duplicates,
            "keys": keys,
            "unique_on_keys": self.unique if keys else None,
            **({} if self.persons is None else {"persons": asdict(self.persons)}),
            "unique_share": self.unique / self.records if keys and self.records else None,
            "related": [
                {"columns": list(group.columns), "reason": group.reason, "confidence": group.confidence}
                for group in self.relations
            ],
            "warnings": self.warnings(),
            **({} if self.combinations is None else {"quasi_identifiers": self.combinations.to_dict()}),
        }


def overview_of_schema(table: Table) -> Overview:
    """A table whose schema is known at a glance: nothing is guessed."""
    guesses = [Guess(column, _DECLARED, _DECLARED, 1.0, is_guessed=False) for column in table.schema.columns]
    return survey(
        table.frame, guesses, [RelatedColumns(group, _DECLARED, 1.0) for group in table.schema.related]
    )


def survey(frame: pl.DataFrame, guesses: Sequence[Guess], relations: Sequence[RelatedColumns]) -> Overview:
    """Count what there is to count in a table, beside what was proposed of it."""
    table = Table(frame, Schema(tuple(guess.column for guess in guesses)))
    persons = pl.Series(persons_of(table)) if table.schema.only_role(Role.PERSON) else None
    columns = tuple(_summary(table, guess, relations, persons) for guess in guesses)
    keys = set(table.schema.with_role(Role.KEY))
    # Where one column alone tells all records apart there is no need to compare them.
    apart = {summary.column.name for summary in columns if summary.distinct == frame.height}
    compared = table.select(keys).frame.is_unique().sum() if keys and not apart & keys else 0
    return Overview(
        records=frame.height,
        columns=columns,
        relations=tuple(relations),
        duplicates=0 if apart or not columns else _count_repeats(frame),
        unique=frame.height if apart & keys else int(compared),
        joins=tuple(_joins(table)),
        persons=_persons(table, sorted(keys)),
    )


def _count_repeats(frame: pl.DataFrame) -> int:
    """How many records repeat another one in full; of others whose hashes differ no copy is made."""
    if not any(dtype.is_nested() for dtype in frame.dtypes):
        frame = frame.filter(frame.hash_rows().is_duplicated())
    return frame.height - frame.n_unique() if frame.height else 0


def _persons(table: Table, keys: Sequence[str]) -> PersonCounts | None:
    """Count the persons of a table, if a column says whose its records are, and those who are unique."""
    column = table.schema.only_role(Role.PERSON)
    if column is None or not len(table):
        return None
    _, owners, sizes = np.unique(persons_of(table), return_inverse=True, return_counts=True)
    shown = table.frame.select(keys).hash_rows().to_numpy() if keys else np.zeros(len(table))
    alike = alike_in_all(np.unique(shown, return_inverse=True)[1].astype(np.int64), owners)
    first = np.unique(owners, return_index=True)[1]
    _, places, like = np.unique(alike[first], return_inverse=True, return_counts=True)
    alone = int((like[places] == 1).sum())
    return PersonCounts(column, len(sizes), int(sizes.min()), int(sizes.max()), alone)


def _joins(table: Table) -> Iterator[str]:
    """Say which columns put persons, households or groups together again whose number is left out."""
    numbers = table.schema.with_role(*UNIT_ROLES)
    if not numbers:
        return
    table = table.take(np.arange(min(len(table), _RECORDS_JOINED)))
    others = (*UNIT_ROLES, Role.IDENTIFIER, Role.KEY)  # keys are changed anyhow
    beside = [name for name in table.names if table.schema[name].role not in others]
    units = {name: codes for name, codes in units_of(table).items() if name in numbers}
    for each in regroupings(table.select(beside), units)[:_REGROUPINGS_NAMED] if beside else ():
        yield (
            f"even without `{each.unit}`, {HOW[each.how]} {name_columns(each.columns)} would link the "
            f"records of {each.regrouped:,} of {count_noun(each.units, 'unit')} with several: {_REMEDIES}"
        )


def _count_alone(present: pl.Series, persons: pl.Series | None) -> int:
    """How many people have a value that nobody else has; without persons each record is of its own."""
    if persons is None:
        return int(present.to_frame().is_unique().sum())
    held = pl.DataFrame({"value": present, "person": persons}).unique()
    return held.filter(held.select("value").is_unique())["person"].n_unique()


def _summary(
    table: Table, guess: Guess, relations: Sequence[RelatedColumns], persons: pl.Series | None
) -> Summary:
    name = guess.column.name
    missing = pl.Series(table.missing(name))
    present = table.frame[name].filter(~missing)
    others = [
        other for group in relations if name in group.columns for other in group.columns if other != name
    ]
    return Summary(
        guess=guess,
        dtype=str(table.frame[name].dtype.base_type()),
        distinct=present.n_unique(),
        missing=int(missing.sum()),
        alone=_count_alone(present, None if persons is None else persons.filter(~missing)),
        related=tuple(dict.fromkeys(others)),
    )


# Words ----------------------------------------------------------------------------------------------------


def percent(share: float) -> str:
    """A share in words: a little is not nothing, and nearly all is not all."""
    rounded = round(100 * share, 1)
    if share > 0 and rounded == 0:
        return "under 0.1 %"
    if share < 1 and rounded == 100:  # noqa: PLR2004
        return "over 99.9 %"
    return f"{rounded:g} %"


def name_columns(names: Iterable[str]) -> str:
    """Names of columns in a row, the first of them if there are many."""
    every = [f"`{name}`" for name in names]
    if len(every) > _NAMED:
        return f"{', '.join(every[:_NAMED])} and {len(every) - _NAMED} more"
    return " and ".join([", ".join(every[:-1]), every[-1]]) if len(every) > 1 else "".join(every)


def _unique_sentence(unique: int, total: int, noun: str, keys: Sequence[str]) -> str:
    share = percent(unique / total)
    quasi = f"{count_noun(len(keys), 'likely quasi-identifier')} ({'key' if len(keys) == 1 else 'keys'})"
    return f"{unique} of {count_noun(total, noun)} ({share}) are unique on the {quasi} {name_columns(keys)}"


def _about(names: Sequence[str], one: str, several: str) -> str:
    return f"{name_columns(names)} {one if len(names) == 1 else several}" if names else ""

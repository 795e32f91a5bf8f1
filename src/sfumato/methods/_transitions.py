"""Transitions between categories: which exist, which records may make them, and their probabilities.

Several columns may be one: their categories are then the combinations that occur.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from sfumato import kernels
from sfumato.core.method import set_protected_values
from sfumato.data.checks import without_missing
from sfumato.data.classes.packing import Coding, number, pack
from sfumato.data.generalised.nodes import canonical_text, parse_exact
from sfumato.data.pseudonyms import keyed_numbers
from sfumato.data.rules import Rule
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import TEXTUAL, Table
from sfumato.errors import DataError, count_noun
from sfumato.kernels.arrays import Codes, Flags, Floats, Words

#: The key of categories, which are no secret: that of the person is put to them.
_CATEGORY = b"category".ljust(32)
#: What the columns of a table of transitions are.
MATRIX = Schema(
    (
        Column("column", Kind.NOMINAL),
        Column("where", Kind.NOMINAL),
        Column("from", Kind.NOMINAL),
        Column("to", Kind.NOMINAL),
        Column("probability", Kind.CONTINUOUS, lower=0.0, upper=1.0),
    )
)

#: A matrix has at most so many categories, and all matrices of a column so many chances.
MOST_CATEGORIES, MOST_CHANCES = 2_000, 50_000_000

#: What the chances of a row may miss 1 by, as they were written with few digits.
_SUM_TOLERANCE = 1e-6

#: A matrix whose condition is worse cannot be inverted in double precision.
_WORST_CONDITION = 1e10


@dataclass(frozen=True, eq=False)
class Categories:
    """Columns that are treated as one: their combinations that occur, and which one each record has."""

    names: tuple[str, ...]
    values: pl.DataFrame  # [K] what each category is, null where a column has no value
    codes: Codes  # [n] −1: no column has a value

    @classmethod
    def of(cls, table: Table, names: tuple[str, ...]) -> Categories:
        """Number the combinations that occur, in the order of the columns' own categories."""
        if len(names) == 1:
            own = table.categories(names[0]).alias(names[0]).to_frame()
            return cls(names, own, table.narrow_codes(names[0]))
        coded = [table.codes(name) for name in names]
        there = np.max([each.codes for each in coded], axis=0) >= 0
        rows = np.flatnonzero(there)
        packed = [
            Coding((each.codes[rows] + 1).astype(np.uint64), len(each.categories) + 1) for each in coded
        ]
        of_record, sizes = number(pack(packed, len(rows)))
        firsts = np.empty(len(sizes), dtype=np.int64)
        firsts[of_record[::-1]] = rows[::-1]
        codes = np.full(len(table), -1, dtype=np.int32)
        codes[rows] = of_record
        values = [
            each.decode(each.codes[firsts]).alias(name) for name, each in zip(names, coded, strict=True)
        ]
        return cls(names, pl.DataFrame(values), codes)

    def __len__(self) -> int:
        return self.values.height

    @property
    def label(self) -> str:
        """How a table of transitions calls these columns."""
        return "+".join(self.names)

    @cached_property
    def texts(self) -> pl.Series:
        """How a table of transitions calls each category."""
        texts = pl.DataFrame([canonical_text(self.values[name]).fill_null("") for name in self.names])
        if len(self.names) > 1 and any(each.str.contains("+", literal=True).any() for each in texts):
            raise DataError(
                f"`{self.label}` are changed jointly, and some of their values contain +, which joins them"
            )
        return texts.select(pl.concat_str(pl.all(), separator="+")).to_series()

    def words(self) -> Words:
        """[n] a number of each record's category that is the same in every table."""
        texts = [canonical_text(self.values[name]).fill_null("") for name in self.names]
        whole = pl.DataFrame(texts).select(pl.concat_str(pl.all(), separator="\x1f")).to_series()
        return np.append(keyed_numbers(whole, _CATEGORY), np.uint64(0))[self.codes]

    @cached_property
    def comparable(self) -> Flags:
        """[K, K] which categories lack a value in the same columns: a missing value stays missing."""
        gone = np.column_stack([self.values[name].is_null().to_numpy() for name in self.names])
        _, patterns = np.unique(gone, axis=0, return_inverse=True)
        alike: Flags = patterns.reshape(-1, 1) == patterns.reshape(1, -1)
        return alike

    def places(self, texts: pl.Series) -> Codes:
        """Where categories of these texts stand, −1 where there is none."""
        own = pl.DataFrame({"text": self.texts, "place": np.arange(len(self), dtype=np.int32)})
        if len(own) > own["text"].n_unique():
            raise DataError(f"some categories of `{self.label}` have the same text")
        found = pl.DataFrame({"text": texts}).join(own, on="text", how="left", maintain_order="left")
        return found["place"].fill_null(-1).to_numpy()

    def with_more(self, texts: pl.Series) -> Categories:
        """The same with categories that no record has, given as text, as far as they read."""
        new = texts.filter(pl.Series(self.places(texts) < 0)).unique().sort()
        if not len(new):
            return self
        parts = (
            new.str.splitn("+", len(self.names)).struct.unnest() if len(self.names) > 1 else new.to_frame()
        )
        read = [
            _as_type_of(self.values[name], part if len(self.names) == 1 else part.replace("", None))
            for name, part in zip(self.names, parts, strict=True)
        ]
        more = pl.DataFrame(read).filter(pl.any_horizontal(pl.all().is_not_null()))
        return Categories(self.names, pl.concat([self.values, more]), self.codes)

    def write(self, table: Table, codes: Codes) -> Table:
        """The table with these categories in its records."""
        for name in self.names:
            missing = table.missing(name)
            own = self.values[name]
            if len(self.names) == 1:
                categories, numbers = own, codes
            else:
                categories = own.unique(maintain_order=True).drop_nulls()
                positions = pl.Series(np.arange(len(categories), dtype=np.int32))
                numbers = own.replace_strict(categories, positions, default=-1).to_numpy()[codes]
            there = numbers[~missing] if missing.any() else numbers
            table = table.with_values(name, set_protected_values(table, name, there, categories=categories))
        return table


def _as_type_of(values: pl.Series, texts: pl.Series) -> pl.Series:
    """Read texts as values of a column; what does not read is null."""
    read = texts if values.dtype in TEXTUAL else parse_exact(texts, values.dtype)
    return read.cast(values.dtype).alias(values.name)


# Who may move where ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AllowedTransitions:
    """Which categories records may move to, by what else they say: all records of a ``part`` may the same."""

    parts: Codes | None  # [n] None: there is one part
    targets: Flags  # [parts, K]

    @classmethod
    def of(cls, table: Table, categories: Categories) -> AllowedTransitions:
        """Ask the rules that speak of these columns, for each combination of what else they speak of."""
        own = set(categories.names)
        rules = [
            rule
            for rule in table.schema.rules
            if own & set(rule.columns) and not table.is_generalised(*rule.columns)
        ]
        if not rules or not len(categories):
            return cls(None, np.ones((1, len(categories)), dtype=np.bool_))
        others = sorted({name for rule in rules for name in rule.columns} - own)
        frame = without_missing(table, others)
        if others:
            contexts = frame.select(others).unique(maintain_order=True)
            places = contexts.with_row_index("context number")
            found = frame.select(others).join(
                places, on=others, how="left", maintain_order="left", nulls_equal=True
            )["context number"]
        else:
            contexts, found = pl.DataFrame({"": [0]}), pl.Series(np.zeros(len(table), dtype=np.uint32))
        broken = np.column_stack(list(_rule_breaks(rules, contexts, categories, frame.schema)))
        targets, part = np.unique(~broken, axis=0, return_inverse=True)
        return cls(part.reshape(-1).astype(np.int32)[found.to_numpy()], targets)

    def rows(self, categories: Categories) -> Codes:
        """[n] the row of all parts' matrices that each record stands in."""
        codes = categories.codes
        if self.parts is None:
            return codes
        return np.where(codes < 0, -1, self.parts * len(categories) + codes).astype(np.int32)

    def counts(self, categories: Categories, weights: Floats | None) -> Floats:
        """[parts, K] how many records have each category, by their weights."""
        rows = self.rows(categories)
        sums = kernels.transitions.tally(rows, np.empty(0) if weights is None else weights, self.targets.size)
        return np.asarray(sums).reshape(self.targets.shape)

    def name(self, part: int, categories: Categories) -> str:
        """The records of a part, in the words of a table of transitions."""
        barred = categories.texts.filter(pl.Series(~self.targets[part]))
        return "; ".join(f"not {text}" for text in barred.sort())


def _rule_breaks(
    rules: Sequence[Rule], contexts: pl.DataFrame, categories: Categories, types: pl.Schema
) -> Iterator[Flags]:
    """For each category, in which contexts a record that has it breaks a rule."""
    for row in categories.values.iter_rows():
        has = [
            pl.lit(value, dtype=pl.String if types[name] in TEXTUAL else types[name]).alias(name)
            for name, value in zip(categories.names, row, strict=True)
        ]
        frame = contexts.with_columns(has)
        yield np.logical_or.reduce([rule.breaks(frame).to_numpy() for rule in rules])


# With what chance --------------------------------------------------------------------------------------


def even(allowed: Flags, retain: float) -> Floats:
    """The matrix that keeps a category with chance ``retain``, or moves to each allowed one alike."""
    others = allowed & ~np.eye(len(allowed), dtype=np.bool_)
    n_others = others.sum(axis=1)
    matrix: Floats = others * ((1 - retain) / np.maximum(n_others, 1))[:, None]
    np.fill_diagonal(matrix, np.where(n_others > 0, retain, 1.0))
    return matrix


def restrict_transitions(allowed: Flags, matrix: Floats) -> Floats:
    """The matrix without what is not allowed: who would have gone there stays."""
    allowed_part = np.where(allowed, matrix, 0.0)
    np.fill_diagonal(allowed_part, 0.0)
    np.fill_diagonal(allowed_part, np.maximum(1.0 - allowed_part.sum(axis=1), 0.0))
    return allowed_part


def invariant(matrix: Floats, counts: Floats, allowed: Flags, least: float) -> Floats:
    r"""A matrix that keeps the expected ``counts``, by a second stage that goes back by Bayes' rule.

    After the first stage :math:`P`, a record seen in :math:`m` goes to :math:`l` with the chance that it came
    from there. The two stages together,

    .. math::

        R_{kl} = \sum_m p_{km} \frac{c_l\,p_{lm}}{\sum_j c_j p_{jm}}

    are in balance: as many are expected to go from :math:`k` to :math:`l` as back, for :math:`c_k R_{kl}` is
    the same with :math:`k` and :math:`l` exchanged. That stays so if both are left out (what is not
    allowed one way is not gone the other), or both are made smaller by the same factor. With

    .. math::

        s_k = \min\left(1, \frac{1 - r}{1 - R_{kk}}\right), \qquad
        R'_{kl} = R_{kl} \min(s_k, s_l) \quad (k \ne l)

    at most :math:`s_k (1 - R_{kk}) \le 1 - r` leave :math:`k`, so that :math:`R'_{kk} \ge r`, which is
    ``least``.
    """
    reached = counts @ matrix
    back = np.divide(
        counts * matrix.T, reached[:, None], out=np.zeros_like(matrix), where=reached[:, None] > 0
    )
    both = matrix @ back
    both[counts == 0] = 0.0  # nobody is there
    both = restrict_transitions(allowed & allowed.T, both)
    leaving = 1.0 - both.diagonal()
    shares = np.minimum(1.0, np.divide(1 - least, leaving, out=np.ones_like(leaving), where=leaving > 0))
    return restrict_transitions(allowed & allowed.T, both * np.minimum.outer(shares, shares))


def draw_transitions(matrices: Floats, rows: Codes, rng: np.random.Generator) -> Codes:
    """Draw the next category of each record by the row of the matrices that it stands in."""
    n_categories = matrices.shape[1]
    moves = matrices.copy()
    moves[:, np.arange(n_categories), np.arange(n_categories)] = 0.0
    heaps = moves.reshape(-1, n_categories).cumsum(axis=1)
    stays = np.maximum(1.0 - heaps[:, -1], 0.0)
    drawn: Codes = kernels.transitions.move(rows, stays, heaps, rng.random(len(rows)))
    return drawn


# Tables of transitions ---------------------------------------------------------------------------------


def as_rows(label: str, where: str, texts: pl.Series, matrix: Floats) -> pl.DataFrame:
    """A matrix as a table of transitions, without those of chance 0."""
    start, end = np.nonzero(matrix)
    return pl.DataFrame(
        {
            "column": pl.repeat(label, len(start), eager=True),
            "where": pl.repeat(where, len(start), eager=True),
            "from": texts.gather(start),
            "to": texts.gather(end),
            "probability": matrix[start, end],
        }
    )


def read_matrix(rows: pl.DataFrame, categories: Categories, occurring: Flags) -> Floats:
    """The matrix of these categories that a table of transitions holds, all its faults being counted."""
    label = categories.label
    chances = rows["probability"].cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    wrong = int((~((chances >= 0) & (chances <= 1))).sum())
    if wrong:
        raise DataError(
            f"the probabilities of `{label}` must be from 0 to 1, got: {count_noun(wrong, 'other')}"
        )
    starts, ends = categories.places(rows["from"]), categories.places(rows["to"])
    there = np.zeros(len(categories), dtype=np.bool_)
    there[starts[starts >= 0]] = True
    lost = int((occurring & ~there).sum())
    if lost:
        raise DataError(
            f"the transitions of `{label}` must begin at every category of its records, got: "
            f"{count_noun(lost, 'category')} without one"
        )
    unknown = int(((ends < 0) & (chances > 0)).sum())
    if unknown:
        raise DataError(
            f"the transitions of `{label}` must lead to its categories, got: {unknown} that lead elsewhere",
            hint="to use a category that no record has, list transitions that begin there too",
        )
    used = (starts >= 0) & (ends >= 0)
    places = starts[used].astype(np.int64) * len(categories) + ends[used]
    if len(np.unique(places)) < len(places):
        raise DataError(f"some transitions of `{label}` are listed twice")
    matrix = np.bincount(places, weights=chances[used], minlength=len(categories) ** 2)
    matrix = matrix.reshape(len(categories), -1)
    sums = matrix.sum(axis=1)
    off = int((np.abs(sums - 1)[there] > _SUM_TOLERANCE).sum())
    if off:
        raise DataError(
            f"the probabilities of a row of `{label}` must sum to 1, got: {count_noun(off, 'other row')}"
        )
    matrix[~there] = np.eye(len(categories))[~there]
    return matrix / np.where(there, sums, 1.0)[:, None]


def invert_matrix(matrix: Floats, label: str) -> Floats:
    """The inverse of a matrix, if the released counts tell the original ones."""
    if np.linalg.cond(matrix) > _WORST_CONDITION:
        raise DataError(
            f"the matrix of `{label}` must have an inverse for counts to be corrected, got: a singular one",
            hint="raise `retain`: if all rows of the matrix are equal, nothing can be estimated",
        )
    return np.linalg.inv(matrix).astype(np.float64)

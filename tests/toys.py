"""Toy methods and tables whose answer can be worked out by hand: one per shape and sort of parameter.

They stand outside the registry, so no door offers them.
"""

from dataclasses import replace

import numpy as np
import polars as pl

from sfumato.core.block_method import BlockMethod
from sfumato.core.measure import Measure, Score
from sfumato.core.method import ColumnMethod, Gives, Method, Randomness
from sfumato.core.origin import Origin
from sfumato.core.params import PerColumn, Resource, param
from sfumato.core.release import Release
from sfumato.data.buckets import ReleaseLayout
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table

#: Numbers and words that stand nowhere else: found in a message, they are a leak.
SECRET_NUMBER = 918273645.5
SECRET_WORD = "Zanzibarquux"

CONTINUOUS = frozenset({Kind.CONTINUOUS})
ORDERED = frozenset({Kind.CONTINUOUS, Kind.ORDINAL, Kind.NOMINAL, Kind.DATE})

# ---------------------------------------------------------------------------------------- column methods


class Mean(ColumnMethod):
    """Replace every value by the mean of the column."""

    name = "mean"
    title = "Mean"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = CONTINUOUS
    randomness = Randomness(stochastic=False)

    def protect_column(self, column, rng):
        return np.full(len(column), column.values.mean())


class Draw(ColumnMethod):
    """Replace every value by a draw, so that a release shows its stream of chance."""

    name = "draw"
    title = "Draw"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = CONTINUOUS

    spread: float = param(1.0, "Largest draw.", gt=0, le=10, log=True, tune=(0.1, 10), drive=True)

    def protect_column(self, column, rng):
        return self.spread * rng.random(len(column))


class Rounding(ColumnMethod):
    """Round to a multiple of a base, which may differ by column."""

    name = "rounding"
    title = "Rounding"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = CONTINUOUS
    randomness = Randomness(stochastic=False)

    base: PerColumn[float] = param(10.0, "Distance between two rounded values.", gt=0, le=1e6)

    def protect_column(self, column, rng):
        base = self.base[column.column.name]
        return np.rint(column.values / base) * base


class Turned(ColumnMethod):
    """Turn the values of a column round: the first record gets the last value."""

    name = "turned"
    title = "Turned"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = ORDERED
    randomness = Randomness(stochastic=False)

    def protect_column(self, column, rng):
        return column.values[::-1]


class Constant(ColumnMethod):
    """Give every record the same number or code."""

    name = "constant"
    title = "Constant"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = ORDERED
    randomness = Randomness(stochastic=False)

    number: float = param(0.0, "What every record gets.")

    def protect_column(self, column, rng):
        return np.full(len(column), self.number)


class Unrepeatable(ColumnMethod):
    """Replace every value by a draw that no seed repeats, as differential privacy must."""

    name = "unrepeatable"
    title = "Unrepeatable"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = CONTINUOUS
    randomness = Randomness(replay=False)

    def protect_column(self, column, rng):
        return np.random.default_rng().random(len(column))


class Private(ColumnMethod):
    """Draw noise that no seed repeats, of a scale that is the ε of a guarantee."""

    name = "private"
    title = "Private"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = CONTINUOUS
    randomness = Randomness(replay=False, epsilon_parameter="epsilon")

    epsilon: float = param(1.0, "What it spends.", gt=0, le=100, log=True, tune=(0.1, 10), drive=True)

    def protect_column(self, column, rng):
        return column.values + np.random.default_rng().laplace(0, 1 / self.epsilon, len(column))


class Invented(Method):
    """Draw each column on its own from the whole: records that are nobody's."""

    name = "invented"
    title = "Invented"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = frozenset(Kind)
    gives = Gives(other_records=True)

    def protect(self, table, run):
        made = table
        for name in table.chosen:
            rows = run.rng(name).integers(0, max(len(table), 1), len(table))
            made = made.with_values(name, table.take(rows).frame[name])
        return replace(Release.of(made), origin=Origin.synthetic())


class Short(ColumnMethod):
    """Lose a record: a fault that must be noticed."""

    name = "short"
    title = "Short"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = ORDERED
    randomness = Randomness(stochastic=False)

    def protect_column(self, column, rng):
        return column.values[1:]


# ----------------------------------------------------------------------------------------- block methods


class Standardised(BlockMethod):
    """Subtract the mean, then divide by the mean absolute deviation: two rounds, the second needs the first."""

    name = "standardised"
    title = "Standardised"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = CONTINUOUS
    randomness = Randomness(stochastic=False)
    rounds = 2

    def summarise(self, block, summaries, run):
        values = block.values if not summaries else np.abs(block.values - summaries[0][0] / summaries[0][1])
        return np.nansum(values, axis=0), (~np.isnan(values)).sum(axis=0)

    def merge(self, first, second):
        return first[0] + second[0], first[1] + second[1]

    def protect_block(self, block, summaries, run):
        means, deviations = (total / count for total, count in summaries)
        return (block.values - means) / deviations


class CentredNoise(BlockMethod):
    """Add noise whose sum is nought: the last pass must draw what the first pass has summed."""

    name = "centred-noise"
    title = "Centred noise"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = CONTINUOUS

    def draws(self, block, run):
        return np.stack([run.rng(name).random(len(block)) for name in block.names], axis=1)

    def summarise(self, block, summaries, run):
        return self.draws(block, run).sum(axis=0), len(block)

    def merge(self, first, second):
        return first[0] + second[0], first[1] + second[1]

    def protect_block(self, block, summaries, run):
        total, records = summaries[0]
        return block.values + self.draws(block, run) - total / records


class Flipped(BlockMethod):
    """Turn the scale round: the lowest category becomes the highest."""

    name = "flipped"
    title = "Flipped"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = frozenset({Kind.ORDINAL, Kind.NOMINAL, Kind.DATE})
    randomness = Randomness(stochastic=False)

    def summarise(self, block, summaries, run):
        return np.fmin.reduce(block.values, initial=np.inf), np.fmax.reduce(block.values, initial=-np.inf)

    def merge(self, first, second):
        return np.minimum(first[0], second[0]), np.maximum(first[1], second[1])

    def protect_block(self, block, summaries, run):
        low, high = summaries[0]
        return low + high - block.values


class Thinned(BlockMethod):
    """Leave out the records of a block that are drawn, and those above the mean of the whole table."""

    name = "thinned"
    title = "Thinned"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = CONTINUOUS
    gives = Gives(other_records=True)

    def summarise(self, block, summaries, run):
        return np.nansum(block.values[:, 0]), np.count_nonzero(~np.isnan(block.values[:, 0]))

    def merge(self, first, second):
        return first[0] + second[0], first[1] + second[1]

    def protect_block(self, block, summaries, run):
        total, count = summaries[0]
        drawn = run.rng("record").random(len(block)) < 0.5
        rows = np.flatnonzero(~drawn & ~(block.values[:, 0] > total / max(count, 1)))
        return Release.of(block.table.take(rows), source_rows=rows)


class Worded(BlockMethod):
    """Say numbers as words: another kind than they came in."""

    name = "worded"
    title = "Worded"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = ORDERED
    randomness = Randomness(stochastic=False)
    rounds = 0

    def protect_block(self, block, summaries, run):
        worded = block.table
        for position, name in enumerate(block.names):
            words = pl.Series(
                [f"n{value:g}" if not np.isnan(value) else None for value in block.values[:, position]]
            )
            column = replace(block.table.schema[name], kind=Kind.NOMINAL, order=())
            worded = worded.with_values(name, words.cast(pl.String), column=column)
        return Release.of(worded, source_rows=np.arange(len(block)))


class Marked(BlockMethod):
    """Mark the blocks in a column of their own, and leave the values alone."""

    name = "marked"
    title = "Marked"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = frozenset(Kind)
    gives = Gives(new_columns=True)
    randomness = Randomness(stochastic=False)
    rounds = 0

    def protect_block(self, block, summaries, run):
        marks = pl.Series([block.index] * len(block), dtype=pl.Int64)
        marked = block.table.with_values("mark", marks, column=Column("mark", Kind.NOMINAL, Role.OTHER))
        return Release.of(marked, source_rows=np.arange(len(block)))


# ----------------------------------------------------------------------------------------- whole tables


class Sampling(Method):
    """Keep a sample of the records, in an order of its own."""

    name = "sampling"
    title = "Sampling"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = frozenset(Kind)
    gives = Gives(other_records=True)

    share: float = param(0.5, "Share of the records kept.", gt=0, le=1, tune=(0.1, 1), drive=True)

    def protect(self, table, run):
        order = run.rng("sample").permutation(len(table))
        rows = order[: round(self.share * len(table))].astype(np.int64)
        return Release.of(table.take(rows), source_rows=rows)


class Pairs(Method):
    """Show the mean of two neighbours in order, and vouch for the pairs as classes."""

    name = "pairs"
    title = "Pairs"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = CONTINUOUS
    randomness = Randomness(stochastic=False)

    def protect(self, table, run):
        protected = table
        classes = np.empty(len(table), dtype=np.int64)
        for name in table.chosen:
            values = table.numbers(name)
            classes[np.argsort(values, kind="stable")] = np.arange(len(table)) // 2
            means = np.bincount(classes, values) / np.bincount(classes)
            protected = protected.with_values(name, pl.Series(means[classes]))
        return Release.of(protected, source_rows=np.arange(len(table)), classes=classes)


class Shift(Method):
    """Add the mean of a resource's column."""

    name = "shift"
    title = "Shift"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = CONTINUOUS
    randomness = Randomness(stochastic=False)

    source: Resource = param(Resource("population"), "Where the mean is taken from.", holds="table")

    def protect(self, table, run):
        other = run.resource(self.source)
        protected = table
        for name in table.chosen:
            protected = protected.with_values(
                name, pl.Series(table.numbers(name) + other.numbers(name).mean())
            )
        return Release.of(protected, source_rows=np.arange(len(table)))


class Synthetic(Method):
    """Make three records that come from nobody."""

    name = "synthetic"
    title = "Synthetic"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = frozenset(Kind)
    gives = Gives(other_records=True)
    randomness = Randomness(stochastic=False)

    def protect(self, table, run):
        return Release.of(table.take(np.zeros(min(3, len(table)), dtype=np.int64)))


class Halves(Method):
    """Give two tables, as the de-associative methods do."""

    name = "halves"
    title = "Halves"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = frozenset(Kind)
    randomness = Randomness(stochastic=False)

    def protect(self, table, run):
        first, *rest = table.names
        return replace(
            Release.unchanged(table), tables={"first": table.select([first]), "rest": table.select(rest)}
        )


class Buckets(Method):
    """Give the keys and the rest as two tables that join by a new column, as anatomy does."""

    name = "buckets"
    title = "Buckets"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = frozenset(Kind)
    gives = Gives(new_columns=True)

    def protect(self, table, run):
        drawn = pl.Series(run.rng("bucket").integers(0, 1_000_000, len(table)))
        wide = table.with_values("bucket", drawn, column=Column("bucket", Kind.NOMINAL, Role.OTHER))
        rest = [name for name in table.names if name not in table.chosen]
        tables = {"keys": wide.select([*table.chosen, "bucket"]), "rest": wide.select([*rest, "bucket"])}
        return replace(
            Release.unchanged(table), tables=tables, layout=ReleaseLayout(dict.fromkeys(tables, ("bucket",)))
        )


#: What a method may do, each once: the contract must hold of them, too.
CONTRACT = (Draw, Turned, Unrepeatable, CentredNoise, Thinned, Worded, Marked, Sampling, Synthetic, Buckets)


# ----------------------------------------------------------------------------------------------- measures


class Shifted(Measure):
    """How far the mean of the columns has moved, which may be by nothing."""

    name = "shifted"
    title = "Shifted"
    analyst_note = "A toy of the tests: nothing to correct for."
    kinds = CONTINUOUS
    aspect = "utility"
    better = "low"
    bounds = (0.0, np.inf)

    def measure(self, evidence, run):
        tables = [table.matrix(self.columns(evidence)) for table in (evidence.original, evidence.protected)]
        first, second = (np.nansum(values) / max(np.count_nonzero(~np.isnan(values)), 1) for values in tables)
        return Score(abs(first - second))


# ------------------------------------------------------------------------------------------------ tables


def numbers_table(records=12, *, seed=0, **more):
    """A table of two keys, a stratum, a household number and an untouched column."""
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "income": rng.lognormal(3, 1, records).round(3),
            "age": rng.integers(18, 90, records),
            "region": rng.choice(["north", "south", "west"], records),
            "house": rng.integers(0, max(records // 2, 1), records),
            "note": np.arange(records),
        }
    )
    schema = Schema(
        (
            Column("income", Kind.CONTINUOUS, Role.KEY),
            Column("age", Kind.CONTINUOUS, Role.KEY),
            Column("region", Kind.NOMINAL, Role.OTHER),
            Column("house", Kind.NOMINAL, Role.HOUSEHOLD),
            Column("note", Kind.NOMINAL, Role.OTHER),
        ),
        **more,
    )
    return Table(frame, schema)


def table_of(columns, **kinds):
    """A table of literal columns; a kind, or a kind and a role, may be given by name."""
    frame = pl.DataFrame(columns)
    described = []
    for name in frame.columns:
        kind, role = kinds.get(name, Kind.CONTINUOUS), Role.KEY
        if isinstance(kind, tuple):
            kind, role = kind
        described.append(kind if isinstance(kind, Column) else Column(name, kind, role))
    return Table(frame, Schema(tuple(described)))

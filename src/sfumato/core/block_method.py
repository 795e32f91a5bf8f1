"""Methods on blocks of records: what each block tells is merged first, then every block is protected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, ClassVar, final

import numpy as np
import polars as pl

from sfumato.core.frozen_summaries import FrozenSummaries
from sfumato.core.method import Method, categories_of, set_protected_values
from sfumato.core.origin import Origin
from sfumato.core.randomness import RandomKey
from sfumato.core.release import PrivateArtifact, Release, concatenate_releases
from sfumato.core.run import Run
from sfumato.core.state import State
from sfumato.data.column_store import active_store
from sfumato.data.digest import BLOCK_RECORDS
from sfumato.data.schema import Kind, Role
from sfumato.data.table import Table
from sfumato.errors import DataError
from sfumato.kernels.arrays import Floats

#: The square of a number up to here, and a sum of them, is finite, and that of its inverse is not 0.
_MAX_SQUARABLE = 1e150


@dataclass(frozen=True)
class Block:
    """A run of consecutive records: a small table of the chosen columns, and the weight where there is one.

    ``categories`` are those of the whole table, so that a code means the same in every block.
    """

    index: int
    table: Table
    categories: Mapping[str, pl.Series] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def names(self) -> tuple[str, ...]:
        """The chosen columns."""
        return self.table.chosen

    @cached_property
    def values(self) -> Floats:
        """The chosen columns as numbers (codes for ordinal and nominal ones), NaN where missing."""
        return self.table.matrix(self.names, self.categories)

    @property
    def weights(self) -> Floats | None:
        """The sampling weights, or None when no column is a weight."""
        return self.table.weights


class BlockMethod(Method):
    """Protects records block by block, after one or more rounds of summaries over the whole table.

    Write ``summarise`` and ``merge`` for each of ``rounds`` rounds, then ``protect_block``. A later round
    sees the merged summaries of the earlier ones, and draws the same chance in the same block: that is
    how Höhne's and Kim's noise learn the moments of the noisy data.
    """

    state = State("blocks")
    rounds: ClassVar[int] = 1
    #: In a series, how many of the rounds keep what they found in the first release: the same draws times
    #: another spread would tell themselves to who has both releases.
    frozen_rounds: ClassVar[int] = 0

    @classmethod
    def shape(cls) -> str:
        """Which of the three shapes a method is written in."""
        return "block"

    def summarise(self, block: Block, summaries: Sequence[Any], chance: RandomKey) -> Any:
        """Summarise one block in round ``len(summaries)``."""
        raise NotImplementedError  # abstract: every method in the registry has its own

    def merge(self, first: Any, second: Any) -> Any:
        """Merge the summaries of two neighbouring groups of blocks."""
        return first.merge(second)

    def protect_block(self, block: Block, summaries: Sequence[Any], chance: RandomKey) -> Floats | Release:
        """Protect one block.

        An array means the values of all its records, as ``block.values`` has them; cells that were missing
        are ignored. A release of ``block.table`` may have fewer records (its ``source_rows`` count from the
        start of the block), other kinds or more columns, and is taken as it is.
        """
        raise NotImplementedError  # abstract: every method in the registry has its own

    @final
    def protect(self, table: Table, run: Run) -> Release:
        """Run the rounds, then protect every block."""
        if not len(table):
            return Release.unchanged(table)
        blocks = cut(table, run.engine.block_records)
        starts = np.cumsum([0, *map(len, blocks)])
        work = [
            (block, run.randomness.block_key(block.index, slice(start, start + len(block))))
            for block, start in zip(blocks, starts, strict=False)
        ]
        if self.rounds and any(table.schema[name].kind is Kind.CONTINUOUS for name in table.chosen):
            sizes = run.engine.map(_largest, (block for block, _ in _lighten(work)))
            _require_squares(table.chosen, list(sizes))
        first = FrozenSummaries.of(run, self.name, table.chosen) if self.frozen_rounds else None
        summaries: tuple[Any, ...] = ()
        for turn in range(self.rounds + 1):
            results = run.engine.map(partial(_take_turn, self, summaries), _lighten(work))
            tracked = _report_progress(
                run, self.title, results, turn * len(blocks), len(blocks) * (self.rounds + 1)
            )
            if turn < self.rounds:
                found = run.engine.fold(self.merge, tracked)
                summaries = (
                    *summaries,
                    first.freeze(turn, found) if first and turn < self.frozen_rounds else found,
                )
        release = _assemble_release(self, table, blocks, tracked)
        if first is None:
            return release
        artifact = PrivateArtifact(self, first.private_tables(summaries[: self.frozen_rounds]))
        return replace(release, byproducts=replace(release.byproducts, private_artifacts=(artifact,)))


def _take_turn(method: BlockMethod, summaries: tuple[Any, ...], work: tuple[Block, RandomKey]) -> Any:
    if len(summaries) < method.rounds:
        return method.summarise(work[0], summaries, work[1])
    return method.protect_block(work[0], summaries, work[1])


def _lighten(work: list[tuple[Block, RandomKey]]) -> Iterable[tuple[Block, RandomKey]]:
    """The same blocks; past the memory as copies, so that what each makes of its columns goes with it."""
    if active_store() is None:
        return work
    return ((replace(block, table=replace(block.table)), key) for block, key in work)


def _report_progress(run: Run, task: str, results: Any, before: int, total: int) -> Iterator[Any]:
    for done, result in enumerate(results, start=before + 1):
        run.tell(task, done, total)
        yield result


def _largest(block: Block) -> Floats:
    sizes = np.abs(block.values.T, order="C")  # column by column: ten times as fast as across few columns
    largest: Floats = np.fmax.reduce(sizes, axis=1, initial=0.0)  # NaN is no number
    return largest


def _require_squares(names: Sequence[str], sizes: Sequence[Floats]) -> None:
    """Raise if variances would be infinite, or 0 in a column that varies: it would go out as it came."""
    for name, size in zip(names, np.max(sizes, axis=0), strict=True):
        if size > _MAX_SQUARABLE or 0 < size < 1 / _MAX_SQUARABLE:
            raise DataError(
                f"column `{name}` must hold numbers from {1 / _MAX_SQUARABLE:g} to {_MAX_SQUARABLE:g} in "
                f"size to have a variance, got: only smaller ones, or larger",
                hint="declare codes such as 1e300 as missing, or write the column in another unit",
            )


def cut(table: Table, records: int = BLOCK_RECORDS) -> list[Block]:
    """Cut a table into its logical blocks."""
    categories, weight = categories_of(table), table.schema.only_role(Role.WEIGHT)
    _ = table.weights  # what is wrong with them is counted in the whole table
    names = dict.fromkeys([*table.chosen, *([weight] if weight else [])])
    small = table.select(names).aimed_at(table.chosen)
    return [
        Block(index, replace(small, frame=frame), categories)
        for index, frame in enumerate(small.frame.iter_slices(records))
    ]


def _assemble_release(
    method: BlockMethod, table: Table, blocks: Sequence[Block], answers: Iterator[Any]
) -> Release:
    starts = np.cumsum([0, *map(len, blocks)])
    first = next(answers)
    if isinstance(first, Release):
        pieces = [
            (Origin(range(start, start + len(block))), answer)
            for start, block, answer in zip(starts, blocks, chain([first], answers), strict=False)
        ]
        return _beside_the_rest(table, blocks[0].table.names, concatenate_releases(pieces, keep_order=False))
    columns = [np.empty(len(table), dtype=np.float64) for _ in table.chosen]
    for start, block, answer in zip(starts, blocks, chain([first], answers), strict=False):
        if np.shape(answer) != (len(block), len(block.names)):
            raise DataError(
                f"{method.name} must return a row for each record of a block, or a release, "
                "got: a block of another shape"
            )
        for column, values in zip(columns, answer.T, strict=True):
            column[start : start + len(block)] = values
    protected = table
    for name in reversed(table.chosen):
        values, gone = columns.pop(), table.missing(name)
        values = values[~gone] if gone.any() else values
        series = set_protected_values(table, name, values, categories=blocks[0].categories.get(name))
        protected = protected.with_values(name, series)
    return Release.record_by_record(protected)


def _beside_the_rest(table: Table, seen: Sequence[str], made: Release) -> Release:
    """Put what blocks made of their columns beside those they have not seen; what they left out is gone."""
    if not made.origin.is_known:
        raise DataError("the records of a block must be said to come from its records, got: no source rows")
    given = made.table
    kept_columns = [name for name in table.names if name in given.schema or name not in seen]
    whole = made.origin.records_of(table.select(kept_columns))
    for name in given.names:
        whole = whole.with_values(name, given.frame[name], column=given.schema[name])
    unseen = {name: nodes for name, nodes in table.nodes.items() if name not in seen}
    return made.with_table(replace(whole, nodes={**unseen, **given.nodes}))

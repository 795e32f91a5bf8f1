"""How far two records agree, column by column, and which pairs of records an intruder compares at all.

A column of two tables is compared in levels: both missing, equal, ever farther apart, one missing. The pairs
and their levels come from splink on a DuckDB in memory; it is given numbers and codes, never a text. Where
all pairs are too many, each record is compared with those that are nearest to it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from sfumato import kernels
from sfumato.core.run import Run
from sfumato.data.codings import codes_of_both, numbers_of_both
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.errors import MissingDependencyError
from sfumato.kernels.arrays import Floats, Ints, distinct_numbers

if TYPE_CHECKING:
    import duckdb

Differences = Literal["values", "ranks"]
Levels = npt.NDArray[np.int8]

#: Distances between equal and farthest at which the levels of a number change.
CUTS = 9

#: Values of each table whose differences tell where the cuts are.
SAMPLED = 500

#: Two differences that are equal but for rounding fall on the same side of a cut.
FLOAT_TOLERANCE = 1e-9

#: Pairs that are compared at a time.
AT_A_TIME = 400_000


@dataclass(frozen=True)
class ColumnComparison:
    """A column of two tables, as numbers or codes with NaN where missing, and where its levels end.

    The levels, from nearest to farthest: 0 both missing, 1 equal, 2 and so on by the ``cuts`` above 0 that
    the difference does not exceed, then farther than the last cut, and last that one of both is missing.
    """

    known: Floats
    released: Floats
    cuts: Floats  # rising, the first is 0
    ordered: bool  # whether a difference says more than equal or not

    @property
    def n_levels(self) -> int:
        """Levels there are."""
        return len(self.cuts) + 3

    def conditions(self, name: str) -> Iterator[str]:
        """Say when a pair is on each level, the first that holds counts; missing is NULL."""
        left, right = f"{name}_l", f"{name}_r"
        yield f"{left} IS NULL AND {right} IS NULL"
        yield f"{left} = {right}"
        for cut in self.cuts[1:]:
            yield f"abs({left} - {right}) <= {float(cut)!r}"
        yield f"{left} IS NOT NULL AND {right} IS NOT NULL"
        yield "ELSE"

    def levels(self, known: Ints, released: Ints) -> Levels:
        """The level of each pair."""
        apart = np.abs(self.known[known] - self.released[released])
        levels = 1 + np.searchsorted(self.cuts, apart)  # what is missing comes behind all
        gone = np.isnan(self.known)[known].astype(np.int8) + np.isnan(self.released)[released]
        levels = np.where(gone == 1, self.n_levels - 1, np.where(gone == 0, levels, 0))
        return levels.astype(np.int8)

    def shares(self) -> Floats:
        """The share of all pairs on each level, counted without looking at pairs."""
        known, released = self.known[~np.isnan(self.known)], np.sort(self.released[~np.isnan(self.released)])
        within = [
            np.searchsorted(released, known + cut, side="right")
            - np.searchsorted(released, known - cut, side="left")
            for cut in self.cuts
        ]
        up_to = [0, *(int(each.sum()) for each in within), len(known) * len(released)]
        both_missing = (len(self.known) - len(known)) * (len(self.released) - len(released))
        counts = np.array([both_missing, *np.diff(up_to), 0])
        n_pairs = len(self.known) * len(self.released)
        counts[-1] = n_pairs - counts.sum()
        shares: Floats = counts / max(n_pairs, 1)
        return shares


def comparisons_of(
    known: Table, released: Table, names: tuple[str, ...], rows: Ints, differences: Differences
) -> list[ColumnComparison]:
    """Compare the intruder's records ``rows`` and all released ones in each of the columns."""
    made = []
    for name in names:
        ordered = known.schema[name].kind is not Kind.NOMINAL
        if ordered:
            first, second = numbers_of_both(known, released, name)
        else:
            codes = codes_of_both(known, released, name)
            first, second = (np.where(each < 0, np.nan, each.astype(np.float64)) for each in codes)
        first = first[rows]
        if ordered:
            first, second = (_mid_ranks if differences == "ranks" else _small)(first, second)
        cuts = _cuts(first, second) if ordered else np.zeros(1)
        made.append(ColumnComparison(first, second, cuts, ordered))
    return made


def _small(known: Floats, released: Floats) -> tuple[Floats, Floats]:
    """Both, a power of two smaller, so that differences are numbers too."""
    largest = np.nanmax(np.abs(np.concatenate((known, released))), initial=0.0)
    exponent = int(np.frexp(largest)[1]) + 1
    return np.ldexp(known, -exponent), np.ldexp(released, -exponent)


def _mid_ranks(known: Floats, released: Floats) -> tuple[Floats, Floats]:
    """Replace both by mid-ranks among both; a missing value has none."""
    ranks = kernels.ranks.midranks(np.concatenate((known, released)))
    return ranks[: len(known)], ranks[len(known) :]


def _cuts(known: Floats, released: Floats) -> Floats:
    """0, and differences that ever larger shares of all pairs do not exceed, from one in a file to all."""
    few = []
    for values in (known, released):
        there = np.sort(values[~np.isnan(values)])
        places = np.linspace(0, len(there) - 1, min(len(there), SAMPLED)).round().astype(np.int64)
        few.append(there[places])
    apart = np.abs(few[0][:, None] - few[1][None, :])
    apart = apart[apart > 0]
    if not len(apart):
        return np.zeros(1)
    shares = np.geomspace(1 / max(len(released), 2), 1, CUTS + 1)[:-1]
    cuts: Floats = np.unique(np.append(0.0, np.quantile(apart, shares) * (1 + FLOAT_TOLERANCE)))
    return cuts


def cells_of(comparisons: list[ColumnComparison], blocked: list[int]) -> tuple[Ints, Ints]:
    """Number the records by what they say in the columns ``blocked``: pairs in one cell are compared."""
    values = [np.concatenate((comparisons[column].known, comparisons[column].released)) for column in blocked]
    n_mine = len(comparisons[0].known)
    cells = number_equal(values, n_mine + len(comparisons[0].released))
    return cells[:n_mine], cells[n_mine:]


def n_pairs(cells: tuple[Ints, Ints]) -> int:
    """Count the pairs that share a cell."""
    size = int(np.concatenate(cells).max(initial=0)) + 1
    return int(np.bincount(cells[0], minlength=size) @ np.bincount(cells[1], minlength=size))


def nearest_pairs(
    comparisons: list[ColumnComparison], cells: tuple[Ints, Ints], most: int, run: Run
) -> Pairs:
    """Compare each of mine with those of theirs in its cell that are nearest, ``most`` in all.

    Half of them are nearest by values, half by ranks: what is near by either is what an intruder looks at
    first, and the true one is among them unless many strangers are nearer in both.
    """
    n_mine, n_theirs = len(comparisons[0].known), len(comparisons[0].released)
    count = max(1, most // n_mine)
    sizes = np.bincount(cells[1], minlength=int(np.concatenate(cells).max()) + 1)
    small = np.flatnonzero(sizes[cells[0]] <= count)  # these are compared with all
    keys = [_in_cells(small, cells, n_theirs)]
    points = [_points(comparisons, ranked=ranked) for ranked in (False, True)]
    for cell in np.unique(cells[0][sizes[cells[0]] > count]):
        known_rows, released_rows = (np.flatnonzero(each == cell) for each in cells)
        for k, (here, there, n_codes) in zip((count - count // 2, count // 2), points, strict=True):
            near = kernels.assignment.nearest(
                here[known_rows], there[released_rows], "euclidean", k, n_codes=n_codes, beat=run.check
            )
            keys.append((known_rows[:, None] * n_theirs + released_rows[near]).reshape(-1))
    known_rows, released_rows = np.divmod(distinct_numbers(np.concatenate(keys)), n_theirs)
    return Pairs(
        known_rows,
        released_rows,
        np.array([each.levels(known_rows, released_rows) for each in comparisons], dtype=np.int8),
    )


def _in_cells(known: Ints, cells: tuple[Ints, Ints], n_theirs: int) -> Ints:
    """Number the pairs of some of mine and all that are in their cell."""
    order = np.argsort(cells[1], kind="stable")
    first, last = (np.searchsorted(cells[1][order], cells[0][known], side) for side in ("left", "right"))
    counts = last - first
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    numbers: Ints = np.repeat(known, counts) * n_theirs + order[np.repeat(first, counts) + within]
    return numbers


def _points(comparisons: list[ColumnComparison], *, ranked: bool) -> tuple[Floats, Floats, int]:
    """Records as points: numbers in deviations, codes behind them; a missing value is a code of its own."""
    measured, coded = [], []
    for each in comparisons:
        values = np.concatenate((each.known, each.released))
        gone = np.isnan(values)
        if not each.ordered:
            coded.append(np.where(gone, -1.0, values))
            continue
        if gone.any():
            coded.append(gone.astype(np.float64))
        there = kernels.ranks.midranks(values[~gone]) if ranked else values[~gone]
        placed = np.zeros(len(values))
        if len(there):
            placed[~gone] = (there - there.mean()) / (there.std() or 1.0)
        measured.append(placed)
    points = np.column_stack((*measured, *coded))
    n_mine = len(comparisons[0].known)
    return points[:n_mine], points[n_mine:], len(coded)


def number_equal(columns: Sequence[Floats | Ints], size: int) -> Ints:
    """Number the records by what they say: those that say the same in all columns have the same number."""
    groups = np.zeros(size, dtype=np.int64)
    for values in columns:
        codes = np.unique(values, return_inverse=True)[1]  # all missing ones are one
        # Dense again after each, so the product stays below n², which 64 bits hold.
        groups = np.unique(groups * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
    return groups


@dataclass(frozen=True)
class Pairs:
    """The pairs that are compared, in order, and the level of each in each column."""

    known_rows: Ints  # [p] rising
    released_rows: Ints  # [p] rising for each of mine
    levels: Levels  # [d, p]


def compare_pairs(
    comparisons: list[ColumnComparison], cells: tuple[Ints, Ints], run: Run, task: str
) -> Pairs:
    """Let splink find the pairs that share a cell, and the level of each in each column."""
    n_mine, n_theirs = len(comparisons[0].known), len(comparisons[0].released)
    n_shared = n_pairs(cells)
    if not n_shared:
        nobody = np.empty(0, dtype=np.int64)
        return Pairs(nobody, nobody, np.empty((len(comparisons), 0), dtype=np.int8))
    n_parts = -(-n_shared // AT_A_TIME)
    with _linker(comparisons, cells) as (linker, database):
        parts = []
        for part in run.track(task, range(1, n_parts + 1), n_parts):
            found = linker.inference.predict_chunk(left_chunk=(part, n_parts), warning_mode="never")
            parts.append(_fetch_pairs(database, found.physical_name, len(comparisons)))
            found.drop_table_from_database_and_remove_from_cache()
    first, second, levels = (np.concatenate(each, axis=-1) for each in zip(*parts, strict=True))
    # Which of both tables splink puts first is its own affair; the numbers of the records tell.
    known_rows, released_rows = np.minimum(first, second), np.maximum(first, second) - n_mine
    farthest = np.array([each.n_levels - 1 for each in comparisons], dtype=np.int8)  # splink's level 0
    order = np.argsort(known_rows * n_theirs + released_rows)
    return Pairs(known_rows[order], released_rows[order], farthest[:, None] - levels[:, order])


def _fetch_pairs(
    database: duckdb.DuckDBPyConnection, table: str, n_columns: int
) -> tuple[Ints, Ints, Levels]:
    """Read the numbers of the records and the levels of the pairs of a table."""
    levels = ", ".join(f"gamma_column{column}::TINYINT AS level{column}" for column in range(n_columns))
    found = database.execute(f"SELECT unique_id_l, unique_id_r, {levels} FROM {table}").fetchnumpy()  # noqa: S608
    first, second = (found[side].astype(np.int64) for side in ("unique_id_l", "unique_id_r"))
    return first, second, np.array([found[f"level{i}"] for i in range(n_columns)], dtype=np.int8)


@contextmanager
def _linker(
    comparisons: list[ColumnComparison], cells: tuple[Ints, Ints]
) -> Iterator[tuple[Any, duckdb.DuckDBPyConnection]]:
    """Open a linker of splink on a database that lives in memory, says nothing and asks nobody."""
    try:
        import duckdb
        import splink
    except ImportError:
        purpose = "probabilistic record linkage"
        raise MissingDependencyError.of("splink", extra="linkage", purpose=purpose) from None
    settings = {
        "link_type": "link_only",
        "comparisons": [_settings(f"column{i}", each) for i, each in enumerate(comparisons)],
        "blocking_rules_to_generate_predictions": ["l.cell = r.cell"],
        "retain_matching_columns": True,  # or it does not tell the levels
    }
    config: dict[str, Any] = {
        "threads": 1,  # so that every run gives the same
        "temp_directory": "",  # nothing of the records goes to a disk
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    with closing(duckdb.connect(":memory:", config=config)) as database, _silent("splink"):
        backend = splink.DuckDBAPI(connection=database)
        sides = [_as_arrow(comparisons, cells, side) for side in (0, 1)]
        tables = [backend.register(each, table_name=f"side{i}") for i, each in enumerate(sides)]
        yield splink.Linker(tables, settings, log_level=None, validate_settings=False), database


def _settings(name: str, comparison: ColumnComparison) -> dict[str, Any]:
    """A comparison for splink; its weights are of no interest, but it must have some."""
    levels = [
        {"sql_condition": condition, "label_for_charts": str(i), "m_probability": 0.5, "u_probability": 0.5}
        for i, condition in enumerate(comparison.conditions(name))
    ]
    return {"output_column_name": name, "comparison_levels": levels}


def _as_arrow(comparisons: list[ColumnComparison], cells: tuple[Ints, Ints], side: int) -> Any:
    """One of both tables: a number for each record, its cell and its values."""
    import pyarrow as pa

    values = [(each.known, each.released)[side] for each in comparisons]
    first = len(comparisons[0].known) if side else 0  # no number stands for two records
    columns = {f"column{i}": pa.array(each, from_pandas=True) for i, each in enumerate(values)}  # NaN is NULL
    return pa.table({"unique_id": np.arange(first, first + len(values[0])), "cell": cells[side], **columns})


@contextmanager
def _silent(name: str) -> Iterator[None]:
    """Let a logger say nothing."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)

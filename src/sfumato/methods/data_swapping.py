"""Data swapping: categories are exchanged so that all tables of up to t columns stay unchanged."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sfumato import kernels
from sfumato.core.method import Method
from sfumato.core.params import param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Ints


class DataSwapping(Method):
    r"""Exchange categories between records and keep all tables of up to t columns exactly.

    The release is *t-order equivalent* to the original: each count of records by :math:`t` or fewer of the
    protected columns is the same in both. The assignment of values to records changes, and so do the tables
    of more than :math:`t` protected columns and all tables with other columns.

    An exchange of one column's values between two records keeps the tables of one column, and in general no
    others. So exchanges are joined to *moves*. The other protected columns are divided at random into blocks
    :math:`A_1, \dots, A_t`; with two values of each block and two values :math:`c, c'` of the column, a move
    takes :math:`2^t` records that show every choice of the block values, where the column holds

    .. math::

        C = \begin{cases} c & b_1 + \dots + b_t \text{ even} \\ c' & b_1 + \dots + b_t \text{ odd} \end{cases}
        \qquad b_1, \dots, b_t \in \{0, 1\},

    and exchanges :math:`c` with :math:`c'`. Summed over any one block, or over the column, nothing has
    changed; and any :math:`t` columns leave one of these :math:`t + 1` out. For :math:`t = 1` this is the
    exchange between two records, for :math:`t = 2` it takes four. Two values of a block may be the same: then
    records that are equal in all other protected columns exchange values, which no table of the protected
    columns shows.

    Column by column, moves are made until :math:`s` per cent of the records have exchanged their value in it,
    or the sweeps are used up. Within a column no record takes part twice.

    See Also
    --------
    TargetedSwapping : exchanges the area of records at risk, as census offices do.
    RankSwapping : for numbers and long ordered scales.

    Notes
    -----
    **When to use.** Categorical columns whose low-order tables are published or will be made by users, and
    must agree with the original to the last count.

    **Guarantees.** All tables of up to :math:`t` protected columns are unchanged (a missing value counts as a
    category), and so is every column's multiset of values. If :math:`t` reaches the number of columns, their
    whole joint table is.

    **Risk to know.** Kept tables are kept for the intruder too: a count of one in a table of :math:`t`
    columns is still there. The finer the table of all columns, the fewer moves exist: with many columns, many
    categories or a high :math:`t`, few records change or none, and then there is no protection. The notes of
    the release say how many did not change; check them, and measure the risk. Impossible combinations of more
    than :math:`t` columns can arise.

    **Ties, missing, weights.** Equal values are not exchanged: every exchange changes two records. A missing
    value stays where it is. Weights are not used and stay with their record, so weighted tables change.

    **Cost.** A few sorts of the records for each sweep, at most ``sweeps`` for each column.

    Examples
    --------
    >>> frame = pl.DataFrame({"sex": ["f", "f", "m", "m"], "job": [1, 2, 1, 2], "ill": ["-", "+", "+", "-"]})
    >>> schema = Schema(tuple(Column(name, Kind.NOMINAL) for name in frame.columns))
    >>> release = DataSwapping(order=2, share=100).protect(Table(frame, schema), Run(seed=1))
    >>> release.table.frame.rows()  # the only other table with the same counts by two columns each
    [('m', 2, '+'), ('m', 1, '-'), ('f', 2, '-'), ('f', 1, '+')]
    """

    name = "data-swapping"
    vetted = "brute-forced: property/test_swapping_records.py::test_every_table_up_to_the_order_stays"
    synonyms = ("swapping of categories",)
    family = "swapping and shuffling"
    title = "Data swapping (t-order)"
    analyst_note = (
        "Counts by few columns hold exactly, up to a number of columns that the data owner may disclose; "
        "counts by more columns do not."
    )
    kinds = frozenset({Kind.NOMINAL, Kind.ORDINAL})
    references = ("dalenius1982", "fienberg2004", "diaconis1998")
    cost = "n log n"

    share: float = param(
        10.0,
        "Share of the records that exchange their value, in each column.",
        gt=0,
        le=100,
        unit="%",
        symbol="s",
        tune=(0.5, 100),
        drive=True,
        hint="it is a percentage of the records; fewer change where the tables allow no more moves",
    )
    order: int = param(
        2,
        "Tables of up to this many columns stay exactly as they are.",
        ge=1,
        le=20,
        unit="columns",
        symbol="t",
        hint="1 keeps each column's counts, 2 all tables of two columns; each step up allows far fewer moves",
    )
    sweeps: int = param(
        20,
        "How many times moves are searched in a column.",
        ge=1,
        le=10_000,
        hint="more sweeps find more moves, if there are any",
        advanced=True,
    )

    def protect(self, table: Table, run: Run) -> Release:
        """Exchange the values of one column after the other, each on the table as it is by then."""
        codes = {name: table.codes(name).codes for name in table.chosen}
        protected, notes, n_missed = table, [], 0
        for name in run.track(self.title, table.chosen, total=len(table.chosen)):
            source, missed = self._exchanges(codes, name, run)
            codes[name] = codes[name][source]
            protected = protected.with_values(name, table.frame[name].gather(source))
            if missed > 0:
                notes.append(f"`{name}`: {missed} records fewer than requested were exchanged")
                n_missed += missed
        figures = {"cells_not_exchanged": n_missed}
        return Release.record_by_record(protected, notes=tuple(notes), figures=figures)

    def _exchanges(self, codes: Mapping[str, Ints], name: str, run: Run) -> tuple[Ints, int]:
        """Find which record's value each record gets, and how many exchanges are lacking."""
        rng = run.rng(name)
        values = codes[name]
        others = [codes[other] + 1 for other in codes if other != name]  # missing is a category
        source = np.arange(len(values), dtype=np.int64)
        present = values >= 0
        wanted = int(np.ceil(self.share * int(present.sum()) / 100))
        for _ in range(self.sweeps):
            rows = np.flatnonzero(present & (source == np.arange(len(values))))
            if wanted <= 0 or len(rows) < 2:  # noqa: PLR2004  — nobody to exchange with
                break
            run.check()
            blocks = self._blocks(others, len(values), rng)
            pairs = kernels.moves.margin_keeping_exchanges(values, blocks, rows, wanted=wanted, rng=rng)
            source[pairs[:, 0]], source[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
            wanted -= pairs.size
        return source, wanted

    def _blocks(self, others: list[Ints], n: int, rng: np.random.Generator) -> list[Ints]:
        """Divide the other columns at random into t blocks; with too few columns, one of no column leads."""
        shuffled = [others[place] for place in rng.permutation(len(others))]
        n_cuts = min(self.order, len(others)) - 1
        cuts = np.sort(rng.permutation(max(len(others) - 1, 0))[: max(n_cuts, 0)]) + 1
        parts = np.split(np.arange(len(others)), cuts)
        blocks = [kernels.moves.combine_codes([shuffled[place] for place in part], n) for part in parts]
        return blocks if self.order <= len(others) else [np.zeros(n, dtype=np.int64), *blocks]

"""Record swapping: records or households exchange their areas, those at risk first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from sfumato import kernels
from sfumato.core.method import Method
from sfumato.core.params import Columns, param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, count_noun
from sfumato.kernels.arrays import Flags, Ints


class TargetedSwapping(Method):
    r"""Swap the areas of records or households at risk with those of similar ones elsewhere.

    The columns of the step say where a record belongs, such as region and county; one combination of their
    values is an *area*. Swapped records exchange their areas, as whole combinations, with what these
    ``carry_along``, and nothing else moves: every area keeps its number of records, and all tables without
    what moved stay exactly as they are.

    A record is *at risk* when fewer than :math:`k` records of its area share its values of ``keys``:

    .. math::

        f_i = \#\{j : \mathrm{area}_j = \mathrm{area}_i,\ \mathrm{keys}_j = \mathrm{keys}_i\} < k

    Each record at risk, in random order, draws a partner from another area that is equal to it in all columns
    of ``similar``, from those at risk if there are any and otherwise from the others. A record without a
    partner tries again without the last named column of ``similar``, then without the last two, until only
    the first is left. If fewer than :math:`s` per cent of the records are swapped by then, others drawn at
    random are swapped in the same way to reach that share. No record is swapped twice.

    See Also
    --------
    DataSwapping : exchanges values so that tables of several columns stay unchanged.
    RankSwapping : for numbers.

    Notes
    -----
    **When to use.** Censuses and household surveys whose tables by area are published from one file, as
    statistical offices do. Name the columns of the area in the step: by default all keys are used. With a
    column of role *household*, households move as a whole and are the units of ``share``: a household is at
    risk when one of its members is, and two are similar when they have the same number of members (this is
    always required) and their first-listed members are equal in ``similar``.

    **Guarantees.** The multiset of areas is unchanged. Where partners were found without dropping a column of
    ``similar``, so is the table of area by ``similar``; the table of area by the first column of ``similar``
    always is (for households: counted in households, by their first-listed members). A record at risk without
    any partner stays unchanged; the notes of the release say how many did.

    **Risk to know.** A swap changes the area of a rare record, but the record stays rare: its other values
    are released unchanged. If at least one in :math:`100/s` areas is false, a claimed match is deniable, not
    impossible. Columns that also reveal the area (a postcode, a hospital) must move with it: ``carry_along``.

    **Ties, missing, weights.** A record whose area is missing, wholly or in part, stays unchanged, and so
    does its household. A missing value of ``keys`` or ``similar`` counts as a value of its own. Without any
    key left besides the swapped columns, the records of areas of fewer than :math:`k` are at risk. Keys with
    many distinct values, such as an income, put all records at risk. Weights are not used and stay with their
    record.

    **Cost.** :math:`O(n \log n)` for each column of ``similar``.

    Examples
    --------
    >>> frame = pl.DataFrame({"region": [*"NNNSSS"], "job": [*"aabbba"]})
    >>> schema = Schema((Column("region", Kind.NOMINAL), Column("job", Kind.NOMINAL, Role.KEY)))
    >>> table = Table(frame, schema, targets=("region",))
    >>> method = TargetedSwapping(share=0, k=2)  # the third and the last are alone in their region
    >>> method.protect(table, Run(seed=1)).table.frame["region"].to_list()
    ['N', 'N', 'S', 'S', 'S', 'N']
    """

    name = "targeted-swapping"
    vetted = "brute-forced: property/test_swapping_records.py::test_records_are_swapped_by_the_rules"
    synonyms = ("recordSwap", "record swapping", "carry_along", "carry along")
    family = "swapping and shuffling"
    title = "Targeted record swapping"
    analyst_note = (
        "Some records are listed in another area than their own: counts by area and other columns are "
        "disturbed, most in small areas, and less certain than they look."
    )
    kinds = frozenset({Kind.NOMINAL, Kind.ORDINAL, Kind.CONTINUOUS, Kind.DATE})
    references = ("dalenius1982", "shlomo2010", "hundepool2012")
    cost = "n log n"

    share: float = param(
        5.0,
        "Share of the records or households to swap in total, if fewer are at risk.",
        ge=0,
        le=100,
        unit="%",
        symbol="s",
        tune=(0.5, 100),
        drive=True,
        hint="census offices swap from 2 to 10; 0 swaps only those at risk",
    )
    k: int = param(
        3,
        "Records are at risk, and swapped, if fewer than this many of their area share their keys.",
        ge=1,
        unit="records",
        symbol="k",
        hint="3 is usual; with 1 no record is at risk",
        label="At risk below",
    )
    similar: Columns = param(
        Columns(),
        "Columns in which partners are equal; if there is no partner, the last named is dropped.",
        label="Equal columns",
    )
    keys: Columns = param(Columns(("@key",)), "Columns in which a rare record is at risk.")
    carry_along: Columns = param(
        Columns(),
        "Columns that move with the area, without a say in who is swapped with whom.",
        hint="columns that reveal the area, such as a postcode or a hospital",
        label="Columns that move along",
    )

    def refuses(self, table: Table) -> str | None:
        """Households cannot exchange themselves."""
        reason = super().refuses(table)
        household = table.schema.only_role(Role.HOUSEHOLD)
        if reason is None and household in self._moving_columns(table):
            return f"{self.name} must be given columns of the area, got: `{household}` (the household)"
        return reason

    def followers(self, schema: Schema) -> tuple[str, ...]:
        """The columns that move along."""
        return schema.resolve(self.carry_along)

    def _moving_columns(self, table: Table) -> tuple[str, ...]:
        return (*table.chosen, *self.followers(table.schema))

    def protect(self, table: Table, run: Run) -> Release:
        """Pair the records or households, and let partners exchange their areas."""
        units = _units(table)
        _require_one_area(table, units, self._moving_columns(table))
        at_risk = np.zeros(len(units.first), dtype=np.bool_)
        at_risk[units.of_record[self._rare(table)]] = True
        at_risk &= units.areas >= 0
        partners = self._partners(table, units, at_risk, run.rng("partners"))
        alone = int((at_risk & (partners < 0)).sum())
        what = "records" if table.schema.only_role(Role.HOUSEHOLD) is None else "households"
        notes = (f"{alone} {what} at risk found no partner and kept their area",) if alone else ()
        run.tell(self.title, len(partners), len(partners))
        source = np.where(partners < 0, -1, units.first[partners])[units.of_record]
        rows = np.arange(len(table), dtype=np.int64)
        protected = table
        for name in self._moving_columns(table):
            moved = table.frame[name].gather(np.where(source < 0, rows, source))
            protected = protected.with_values(name, moved)
        return Release.record_by_record(protected, notes=notes, figures={f"{what}_without_partner": alone})

    def _rare(self, table: Table) -> Flags:
        """Which records share area and keys with fewer than k records, themselves among them."""
        keys = [name for name in table.schema.resolve(self.keys) if name not in self._moving_columns(table)]
        cells = _combinations(table, [*table.chosen, *keys])
        rare: Flags = np.bincount(cells, minlength=1)[cells] < self.k
        return rare

    def _partners(self, table: Table, units: _Units, at_risk: Flags, rng: np.random.Generator) -> Ints:
        """Find partners for all units at risk, then for as many others as the share asks for."""
        profiles = list(self._profiles(table, units))
        known = np.flatnonzero(units.areas >= 0)
        n_pairs = int(np.ceil(self.share * len(known) / 200))
        partners = np.full(len(units.first), -1, dtype=np.int64)
        for seekers, in_all in ((np.flatnonzero(at_risk), len(partners)), (known, n_pairs)):
            turns = rng.permutation(seekers)
            for alike in profiles:
                most = in_all - int((partners >= 0).sum()) // 2
                partners = kernels.swaps.pair_up(
                    alike, units.areas, partners, seekers=turns, preferred=at_risk, most=most, rng=rng
                )
        return partners

    def _profiles(self, table: Table, units: _Units) -> Iterator[Ints]:
        """Say what partners must have in common: all similar columns, then one fewer, down to the first."""
        similar = [
            name for name in table.schema.resolve(self.similar) if name not in self._moving_columns(table)
        ]
        for count in range(max(len(similar), 1), 0, -1):  # the size of a household is never given up
            looks = _combinations(table, similar[:count])[units.first]
            yield looks * (int(units.sizes.max(initial=0)) + 1) + units.sizes


class _Units(NamedTuple):
    """What is swapped as a whole: the households, or else the records."""

    of_record: Ints  # [record] -> unit
    first: Ints  # [unit] -> its first-listed record
    sizes: Ints  # [unit] records in it
    areas: Ints  # [unit] label of its combination of the chosen columns, −1 where a part is missing


def _units(table: Table) -> _Units:
    household = table.schema.only_role(Role.HOUSEHOLD)
    rows = np.arange(len(table), dtype=np.int64)
    firsts = rows
    if household is not None:
        # without a household number everyone is their own household
        firsts = np.where(table.missing(household), rows, _combinations(table, [household]))
    first, of_record, sizes = np.unique(firsts, return_inverse=True, return_counts=True)
    areas = _combinations(table, table.chosen)
    for name in table.chosen:
        areas[table.missing(name)] = -1
    return _Units(of_record.reshape(-1), first, sizes, areas[first])


def _combinations(table: Table, names: Sequence[str]) -> Ints:
    """Label each record by the first that has the same values; a missing value is a value of its own."""
    if not names or not len(table):
        return np.zeros(len(table), dtype=np.int64)
    columns = {
        f"by_{place}": pl.select(pl.when(pl.Series(~table.missing(name))).then(table.frame[name])).to_series()
        for place, name in enumerate(names)
    }
    labelled = pl.DataFrame(columns).with_row_index("row").select(pl.col("row").min().over(list(columns)))
    return labelled["row"].to_numpy().astype(np.int64)


def _require_one_area(table: Table, units: _Units, moved: Sequence[str]) -> None:
    if len(units.first) == len(table):
        return
    for name in moved:
        labels = _combinations(table, [name])
        differs = int((labels != labels[units.first][units.of_record]).sum())
        if differs:
            household = table.schema.only_role(Role.HOUSEHOLD)
            raise DataError(
                f"`{name}` must be the same for all records of a household, got: "
                f"{count_noun(differs, 'record')} different from the first of their `{household}`",
                hint=f"correct `{name}`, or remove the role of `{household}` to swap single records",
            )

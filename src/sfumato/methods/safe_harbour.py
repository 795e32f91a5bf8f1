"""Safe harbour: rare records are masked key by key, in a fixed order, as long as they are rare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from sfumato.core.method import Gives, Method, Randomness, Takes
from sfumato.core.params import param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.classes.classes import MISSING_POLICIES, Classes, Missing
from sfumato.data.generalised.suppressing import as_ranges, to_missing, to_wildcard
from sfumato.data.generalised.text_forms import parse_intervals
from sfumato.data.hierarchy.build import from_cuts, from_prefix
from sfumato.data.hierarchy.grow import present_values, propose
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Kind
from sfumato.data.table import Table
from sfumato.errors import DataError, count_noun
from sfumato.kernels.arrays import Flags
from sfumato.methods._analyst_notes import FEWER_CELLS
from sfumato.methods._enforcing import COMPARABLE
from sfumato.methods._resources import declared_hierarchy

#: The order of masking in the Californian discharge data, Table S3 of [sanchez2016]: age in 20 and then in 5
#: ranges, the zip code to its first three digits.
TABLE_S3 = "age_yrs@1, ethncty, race, sex, age_yrs@2, age_yrs, adm_qtr, patzip@1, patcnty, patzip"

_RANGES_OF_AGE = (20, 5)
_DIGITS_OF_ZIP = (3,)


@dataclass(frozen=True)
class _Turn:
    """One turn of the masking: a column, and the level it climbs to; None: it is suppressed."""

    column: str
    level: int | None

    @classmethod
    def read(cls, text: str, names: tuple[str, ...]) -> _Turn | None:
        """Read ``column`` or ``column@level``; None where it is neither."""
        column, mark, level = text.rpartition("@")
        if text in names:
            return cls(text, None)
        climbs = mark and column.strip() in names and level.strip().isdecimal() and int(level) > 0
        return cls(column.strip(), int(level)) if climbs else None


class SafeHarbour(Method):
    r"""Mask the keys of rare records, one key after another in a fixed order, as long as they are rare.

    The order is a list of turns :math:`(q_1, \ell_1), (q_2, \ell_2), \dots`: in turn :math:`s` every record
    whose class has fewer than :math:`k` people is generalised in key :math:`q_s` to level :math:`\ell_s` of
    its hierarchy, or loses the key entirely,

    .. math::

        R_s = \{ i : f_i^{(s-1)} < k \}, \qquad
        x_{iq_s}^{(s)} = \begin{cases} \ell_s(x_{iq_s}) & i \in R_s \\
                         x_{iq_s}^{(s-1)} & \text{else} \end{cases}

    where :math:`f_i^{(s)}` is the number of people who after turn :math:`s` equal record :math:`i` in all
    protected columns, whether these are in the order or not. With :math:`k = 2` and the order of the
    Californian patient discharge data (Table S3 of Sánchez et al., 2016) this is how that office masks unique
    records under the safe harbour rules of HIPAA: age to one of 20 ranges, ethnicity, race, sex, age to one
    of 5 ranges, age, quarter of admission, zip code to 3 digits, county, zip code. To count rarity "with
    regard to these attributes" only, as in the table, protect no others; together with the hospital about as
    much is masked as in the published file.

    ``order`` lists the turns, such as ``age@1, race, age``: ``age@1`` generalises to level 1 of the hierarchy
    of ``age``, ``age`` alone suppresses it. The default is the order of Table S3 where its columns exist;
    otherwise keys are suppressed from the one with the most distinct values to the one with the fewest.

    See Also
    --------
    Regeneration : fills what was masked from known marginals.
    LocalSuppression : suppresses as few cells as it can, and guarantees k.
    Uniqueness : who is still unique, if ranges and wildcards are read as the values they may hide.

    Notes
    -----
    **When to use.** To see what a fixed rule achieves, or because the law requires it. Methods that enforce
    k-anonymity change less and give a guarantee.

    **Guarantees.** Records that are not rare stay as they are, and once a record is not rare it stays so
    (unless missing keys may be ``any`` value: an equal record may get a wildcard for its missing value).
    k-anonymity is *not* guaranteed: records that are still rare at the end of the order are released as they
    are, with their number in the notes, and unprotected columns do not count (in the Californian data the
    length of stay). For k-anonymity require ``k`` of the release.

    **Risk to know.** An intruder who knows one more column finds many unique records. A masked cell reveals
    that its record was rare, and rare values are masked most, so that the rest is not a sample of the whole.

    **Ties, missing, weights.** A masked key is shown as the wildcard (``show="wildcard"``), also where it was
    missing, or as missing. Wildcards equal wildcards only; ``missing`` says what a *missing* key equals. With
    a column of persons, people are counted instead of records. Weights are not used. Numbers become ranges,
    categories labels of their hierarchy. A hierarchy that is not declared is proposed from the values; for
    Table S3 age is cut into 20 and 5 ranges of equal width, because the paper does not say which.

    **Cost.** Each turn groups the records by the keys, in :math:`O(n \log n)`.

    Examples
    --------
    >>> people = pl.DataFrame({"town": ["Ely"] * 4 + ["Bath"], "race": ["a", "a", "b", "c", "a"]})
    >>> release = sfumato.protect(people, SafeHarbour(order="race, town"), columns=["town", "race"])
    >>> release.data["race"].to_list(), release.data["town"].to_list()
    (['a', 'a', '*', '*', '*'], ['Ely', 'Ely', 'Ely', 'Ely', '*'])
    >>> release.provenance[0].notes
    ('1 record still in classes of fewer than 2 when the order ended',)
    """

    name = "safe-harbour"
    vetted = "brute-forced: property/test_safe_harbour.py::test_turns_are_those_done_by_hand"
    synonyms = ("safe harbor",)
    family = "suppression"
    nature = "non-perturbative"
    title = "Safe harbour masking"
    analyst_note = FEWER_CELLS
    kinds = COMPARABLE
    references = ("sanchez2016", "hipaa2000")
    takes = Takes(generalised=True)
    gives = Gives(generalised=True, suppressed=True)
    randomness = Randomness(stochastic=False)

    k: int = param(
        2,
        "Smallest number of people in an equivalence class that is not masked further.",
        ge=1,
        symbol="k",
        log=True,
        tune=(2, 50),
        drive=True,
    )
    order: str = param(
        "",
        "Order of masking, as in age@1, race, age: to a level of the hierarchy, or entirely.",
        hint="by default that of Table S3 for its columns, else from the most to the fewest distinct values",
        label="Order of masking",
    )
    show: Literal["wildcard", "missing"] = param(
        "wildcard",
        "How a suppressed key is shown.",
        choices={"wildcard": "As the wildcard, `*`.", "missing": "As a missing value."},
        renamed={"star": "wildcard"},
        label="Suppressed keys",
    )
    missing: Missing = param(
        "category", "What a missing key counts for.", choices=MISSING_POLICIES, label="Missing keys"
    )

    def refuses(self, table: Table) -> str | None:
        """Refuse an order that names other columns, or levels of what has none."""
        reason = super().refuses(table)
        if reason is not None or not self.order:
            return reason
        texts = [text.strip() for text in self.order.split(",")]
        turns = [_Turn.read(text, table.chosen) for text in texts]
        read = [turn for turn in turns if turn is not None]
        if len(read) < len(turns) or not _gets_coarser(read):
            expected = "protected columns or their levels, coarser with each turn, as in `age@1, race, age`"
            return f"`order` of {self.name} must list {expected}, got: `{self.order}`"
        climbing = {turn.column for turn in read if turn.level is not None}
        coarse = [f"`{name}`" for name in sorted(climbing) if table.is_generalised(name)]
        if coarse:
            return f"{self.name} must be given exact values, got: generalised ones in {', '.join(coarse)}"
        return None

    def turns(self, table: Table) -> list[_Turn]:
        """What is masked in this table, in order."""
        names = table.chosen
        if self.order:
            found = [_Turn.read(text.strip(), names) for text in self.order.split(",")]
            return [turn for turn in found if turn is not None]
        published = [_Turn.read(text, names) for text in TABLE_S3.split(", ")]
        if all(turn and not table.is_generalised(turn.column) for turn in published):
            return [turn for turn in published if turn is not None]
        n_values = {name: table.frame[name].n_unique() for name in names}
        return [_Turn(name, None) for name in sorted(names, key=lambda name: (-n_values[name], name))]

    def protect(self, table: Table, run: Run) -> Release:
        """Take the turns, as long as a record is rare."""
        turns = self.turns(table)
        shown, rare, notes = table, self._rare(table), []
        hierarchies = _Hierarchies(table, run, published=not self.order)
        for turn in run.track(self.title, turns, total=len(turns)):
            if not rare.any():
                continue
            if turn.level is None:
                shown = (to_wildcard if self.show == "wildcard" else to_missing)(shown, turn.column, rare)
            elif not table.missing(turn.column).all():
                shown = _show_at_level(
                    table, shown, turn.column, rare, hierarchies.at(turn.column, turn.level)
                )
            rare = self._rare(shown)
        if rare.any():
            n_rare = count_noun(int(rare.sum()), "record")
            notes.append(f"{n_rare} still in classes of fewer than {self.k} when the order ended")
        return Release.record_by_record(shown, notes=(*notes, *hierarchies.notes))

    def _rare(self, table: Table) -> Flags:
        if self.k == 1:
            return np.zeros(len(table), dtype=np.bool_)
        classes = Classes.of(table, table.chosen, missing=self.missing)
        return (classes.persons < self.k)[classes.of_record]


def _gets_coarser(turns: list[_Turn]) -> bool:
    """Whether no turn shows more of a column than an earlier one left."""
    reached: dict[str, float] = {}
    for turn in turns:
        level = np.inf if turn.level is None else turn.level
        if level <= reached.get(turn.column, 0):
            return False
        reached[turn.column] = level
    return True


# Climbing ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _HierarchyLevel:
    """A level of a hierarchy, and whether the labels of numbers are ranges on all levels."""

    hierarchy: Hierarchy
    level: int
    ranged: bool


class _Hierarchies:
    """The hierarchies of the columns: declared ones, those of Table S3, or proposed ones."""

    def __init__(self, table: Table, run: Run, *, published: bool) -> None:
        self._table, self._run, self._published = table, run, published
        self._made: dict[str, tuple[Hierarchy, bool]] = {}
        self.notes: list[str] = []

    def at(self, name: str, level: int) -> _HierarchyLevel:
        """One level of a column's hierarchy, which is made once."""
        if name not in self._made:
            made = self._make(name)
            self._made[name] = made, self._is_ranged(name, made)
        hierarchy, ranged = self._made[name]
        if level >= hierarchy.height and not self._published:
            raise DataError(
                f"`order` must name a level from 1 to {hierarchy.height - 1} of `{name}`, got: `{level}`"
            )
        return _HierarchyLevel(hierarchy, min(level, hierarchy.height - 1), ranged)

    def _make(self, name: str) -> Hierarchy:
        column, series = self._table.schema[name], self._table.frame[name]
        if column.hierarchy:
            return declared_hierarchy(self._run, column.hierarchy, name)
        hierarchy = self._of_table_s3(column, present_values(column, series)) if self._published else None
        if hierarchy is None:
            self.notes.append(f"the hierarchy of `{name}` is not declared: proposed from its values")
            hierarchy = propose(column, series)
        return hierarchy

    def _of_table_s3(self, column: Column, values: pl.Series) -> Hierarchy | None:
        if column.name == "patzip":
            return from_prefix(values, lengths=_DIGITS_OF_ZIP)
        if column.kind is not Kind.CONTINUOUS or not values.dtype.is_numeric():
            return None
        numbers = values.cast(pl.Float64).to_numpy()
        low = int(np.floor(numbers.min() if column.lower is None else column.lower))
        high = int(np.floor(numbers.max() if column.upper is None else column.upper))
        # Each of the 5 ranges is made of 4 of the 20, since both are cut by the same rule.
        cuts = [
            sorted({low + i * (high - low + 1) // n for i in range(1, n)} - {low}) for n in _RANGES_OF_AGE
        ]
        return from_cuts(values, cuts=cuts) if all(cuts) else None

    def _is_ranged(self, name: str, hierarchy: Hierarchy) -> bool:
        dtype = self._table.frame.schema[name]
        if self._table.schema[name].kind is not Kind.CONTINUOUS or not dtype.is_numeric():
            return False
        try:
            for level in range(1, hierarchy.height):
                parse_intervals(hierarchy.labels(level), dtype)
        except DataError:  # words such as `child` or `old`
            return False
        return True


def _show_at_level(table: Table, shown: Table, name: str, rows: Flags, to: _HierarchyLevel) -> Table:
    """Show the records ``rows`` at a level of their hierarchy."""
    series, present = table.frame[name], ~table.missing(name)
    exact = series.zip_with(pl.Series(present), pl.Series([None], dtype=series.dtype))
    labels, chosen = to.hierarchy.climb(exact, to.level).cast(pl.String), pl.Series(rows & present)
    before = shown.frame[name]
    if to.ranged:
        before = as_ranges(shown, name).frame[name]
        return shown.with_values(name, parse_intervals(labels, series.dtype).zip_with(chosen, before))
    nodes = to.hierarchy.nodes()
    texts = before.cast(pl.String) if name in shown.nodes else to.hierarchy.climb(exact, 0).cast(pl.String)
    return shown.with_nodes(name, labels.zip_with(chosen, texts).cast(nodes.dtype), nodes)

"""Suppression of records and of whole columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from sfumato.core.method import Gives, Method, Randomness, Takes
from sfumato.core.params import PerColumn, param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.suppressing import to_missing, to_wildcard
from sfumato.data.schema import Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import UnreachableError
from sfumato.kernels.arrays import Flags, Ints
from sfumato.methods._enforcing import COMPARABLE, EnforcingMethod, Guarantee

#: Up to so many keys the best choice of columns is found for sure.
_MOST_KEYS = 20


class RecordSuppression(EnforcingMethod):
    r"""Suppress all keys of the records that violate a requirement, or drop those records.

    .. math::

        W_0 = \emptyset, \qquad W_{t+1} = W_t \cup \{ i : i \text{ fails in the table without the keys of }
        W_t \}

    until no record fails. A record must meet k, the requirements in ``also``, or both: every model that is
    measured by its worst record can be enforced, including k-map, δ-presence, LKC-privacy, :math:`k^m` on
    sets of items and the risk of each record (``prosecutor-risk <= 0.2``).

    See Also
    --------
    local-suppression : suppresses single cells, far fewer where a few keys make a record unique.
    attribute-suppression : suppresses the same keys of all records.

    Notes
    -----
    **When to use.** Last, after recoding, for the few remaining records at risk; or alone, to enforce a model
    that no other method supports.

    **Guarantees.** The release is measured: all requirements are met under the policy ``missing``, or nothing
    is released. Records that are not suppressed do not change. At most ``limit`` per cent of the records are
    suppressed or dropped.

    **Risk to know.** Suppressed records (``show`` = ``wildcard`` or ``missing``) form one equivalence class
    and keep their other columns; if this class itself does not meet the requirements, because it is too small
    or not diverse enough, its records are dropped. Where many records are unique, most of the table is lost;
    the remaining common records are not a sample of all, and totals are biased.

    **Ties, missing, weights.** Records of one equivalence class fail together. Missing values count as
    ``missing`` says. Set-valued keys have no wildcard: they become missing or are dropped, and k applies to
    any two items. With a column of persons, people are counted instead of records. Weights are not used.

    **Cost.** A few rounds, each of which measures the requirements.

    Examples
    --------
    >>> frame = pl.DataFrame({"job": ["cook", "cook", "smith", "king", "cook"]})
    >>> protect(frame, RecordSuppression(k=2), columns=["job"]).data["job"].to_list()
    ['cook', 'cook', '*', '*', 'cook']
    >>> protect(frame, RecordSuppression(k=2, show="drop"), columns=["job"]).data["job"].to_list()
    ['cook', 'cook', 'cook']
    """

    name = "record-suppression"
    vetted = "brute-forced: property/test_enforced_models.py::test_record_suppression"
    synonyms = ("localSupp", "record removal", "row suppression", "tuple suppression", "suppression")
    family = "suppression"
    nature = "non-perturbative"
    takes = Takes(generalised=True)
    gives = Gives(suppressed=True, other_records=True)
    title = "Record suppression"
    analyst_note = (
        "Rare records have no keys, or were removed: small groups are undercounted, and the remaining "
        "records are not a random sample."
    )
    kinds = COMPARABLE | {Kind.SET}
    references = ("samarati2001", "sweeney2002generalization", "hundepool2012")

    show: Literal["wildcard", "missing", "drop"] = param(
        "wildcard",
        "What a suppressed record shows.",
        choices={
            "wildcard": "Its keys show the wildcard, `*`.",
            "missing": "Its keys are missing.",
            "drop": "Nothing: the record is dropped.",
        },
        renamed={"star": "wildcard"},
        label="Suppressed records",
    )
    limit: float = param(
        100.0, "Largest share of records to suppress or drop; an error if more must be.", ge=0, le=100,
        unit="per cent of the records",
        label="Most suppressed",
    )  # fmt: skip

    def guarantee(self, schema: Schema, keys: Sequence[str]) -> Guarantee:
        """What is asked of these keys: of set-valued ones, that k people have any two items."""
        if not keys or any(schema[name].kind is not Kind.SET for name in keys):
            return super().guarantee(schema, keys)
        also = [*self.also, *([f"km-anonymity >= {self.k}"] if self.k > 1 else [])]
        return Guarantee.of(keys, k=1, also=also, missing=self.missing)

    def enforce(self, table: Table, guarantee: Guarantee, run: Run) -> Release:
        """Suppress and drop until nobody stands in the way."""
        draft = _Rows.of(table)
        while (failing := guarantee.failing(draft.table, run)).any():
            run.tell(self.title, int(draft.suppressed.sum()) + len(table) - len(draft.table), len(table))
            new = failing & ~draft.suppressed
            if self.show == "drop" or not new.any():  # those that are suppressed already can only be dropped
                draft = draft.drop_records(failing)
            else:
                draft = draft.cover(new, guarantee.keys, show=self.show)
            if not len(draft.table) and self.show != "drop":  # none alone will do, perhaps all together
                draft = _Rows.of(table).cover(
                    np.ones(len(table), dtype=np.bool_), guarantee.keys, show=self.show
                )
                if guarantee.failing(draft.table, run).any():
                    draft = draft.drop_records(draft.suppressed)
            self._require_within_limit(draft, len(table))
        n_suppressed, n_dropped = int(draft.suppressed.sum()), len(table) - len(draft.table)
        note = f"{n_suppressed} records suppressed and {n_dropped} dropped, of {len(table)}"
        return Release.of(
            draft.table,
            source_rows=draft.rows,
            notes=(note,) if n_suppressed + n_dropped else (),
            figures={"records_suppressed": n_suppressed, "records_left_out": n_dropped},
        )

    def _require_within_limit(self, draft: _Rows, n: int) -> None:
        n_lost = int(draft.suppressed.sum()) + n - len(draft.table)
        if n_lost > self.limit / 100 * n:
            raise UnreachableError(
                f"{self.name} may suppress at most {self.limit:g} per cent of the records, but at least "
                f"{n_lost} of {n} violate the requirements",
                hint="recode the keys first, raise `limit`, or relax the requirements",
            )
        if not len(draft.table):
            raise UnreachableError(
                f"{self.name} would suppress all {n} records, because all violate the requirements",
                hint="recode the keys first, protect fewer of them, or relax the requirements",
            )


@dataclass(frozen=True, eq=False)
class _Rows:
    """A table of which more and more records are suppressed or dropped."""

    table: Table
    rows: Ints  # of the original
    suppressed: Flags

    @classmethod
    def of(cls, table: Table) -> _Rows:
        """Begin with a table as it is."""
        return cls(table, np.arange(len(table), dtype=np.int64), np.zeros(len(table), dtype=np.bool_))

    def drop_records(self, gone: Flags) -> _Rows:
        """Drop records."""
        left = np.flatnonzero(~gone)
        return _Rows(self.table.take(left), self.rows[left], self.suppressed[left])

    def cover(self, more: Flags, names: tuple[str, ...], *, show: str) -> _Rows:
        """Suppress the keys of more records."""
        table = self.table
        for name in names:
            cover = to_missing if show == "missing" or table.schema[name].kind is Kind.SET else to_wildcard
            table = cover(table, name, more)
        return replace(self, table=table, suppressed=self.suppressed | more)


class AttributeSuppression(EnforcingMethod):
    r"""Suppress whole columns, the least important first, until the requirements are met.

    .. math::

        \max_{K \subseteq Q} \sum_{q \in K} w_q \quad\text{such that what is asked holds if only } K
        \text{ is shown}

    where :math:`Q` are the keys and :math:`w_q` their ``importance``.

    See Also
    --------
    trivial-removal : suppresses all chosen columns.
    local-suppression : suppresses single cells.
    record-suppression : suppresses the keys of single records.

    Notes
    -----
    **When to use.** Few keys out of many are needed, and it does not matter much which. Columns that are
    shown are complete, so analyses need not deal with missing values.

    **Guarantees.** The release is measured: all requirements are met under the policy ``missing``, or nothing
    is released. With up to 20 keys, no choice of columns with more importance meets k or any model that a
    coarser table meets whenever a finer one does; with more keys, columns are suppressed one by one.

    **Risk to know.** A single rare value, even a typing error, costs its column. Suppress or recode single
    cells first.

    **Ties, missing, weights.** Of choices with equal importance, the first by name is taken. Missing values
    count as ``missing`` says. With a column of persons, people are counted instead of records.

    **Cost.** Each choice that is tried is measured; supersets of a failing choice are skipped. At most
    :math:`2^q` for :math:`q` keys, mostly far fewer.

    Examples
    --------
    >>> frame = pl.DataFrame({"job": ["cook", "smith", "king"], "sex": ["m", "m", "m"]})
    >>> release = protect(frame, AttributeSuppression(k=2), columns=["job", "sex"])
    >>> release.data["job"].to_list(), release.data["sex"].to_list()
    (['*', '*', '*'], ['m', 'm', 'm'])
    """

    name = "attribute-suppression"
    vetted = "brute-forced: property/test_enforced_models.py::test_attribute_suppression"
    synonyms = ("variable suppression", "column suppression", "attribute removal", "suppression")
    family = "suppression"
    nature = "non-perturbative"
    takes = Takes(generalised=True)
    title = "Attribute suppression"
    analyst_note = "Whole columns are suppressed: an analysis cannot adjust for them."
    references = ("hundepool2012", "willenborg2001")

    importance: PerColumn[float] = param(
        1.0, "Importance of a column: important columns are kept if possible.", ge=0.001, le=1000, symbol="w"
    )
    show: Literal["wildcard", "missing"] = param(
        "wildcard",
        "What a suppressed column shows.",
        choices={"wildcard": "The wildcard, `*`, in every record.", "missing": "Missing values."},
        renamed={"star": "wildcard"},
        label="Suppressed columns",
    )

    def enforce(self, table: Table, guarantee: Guarantee, run: Run) -> Release:
        """Choose the columns that can stay."""
        search = _ColumnSearch(table, guarantee, run, self)
        lost = search.best() if len(guarantee.keys) <= _MOST_KEYS else search.one_by_one()
        notes = (f"columns suppressed: {', '.join(lost)}",) if lost else ()
        figures = {"columns_suppressed": len(lost)}
        return Release.record_by_record(search.suppress_columns(lost), notes=notes, figures=figures)


class _ColumnSearch:
    """Which columns must go."""

    def __init__(self, table: Table, guarantee: Guarantee, run: Run, method: AttributeSuppression) -> None:
        self.table, self.guarantee, self.run, self.method = table, guarantee, run, method
        every = np.ones(len(table), dtype=np.bool_)
        cover = to_wildcard if method.show == "wildcard" else to_missing
        self.covered = {name: cover(table, name, every) for name in guarantee.keys}
        self.tried: dict[frozenset[str], bool] = {}

    def _importance(self, name: str) -> float:
        """What a column is worth: by the method and by the schema."""
        return self.method.importance[name] * self.table.schema[name].importance

    def suppress_columns(self, lost: tuple[str, ...]) -> Table:
        """The table with these columns suppressed."""
        table = self.table
        for name in lost:
            new = self.covered[name]
            nodes = {**table.nodes, **({name: new.nodes[name]} if name in new.nodes else {})}
            table = replace(table.with_values(name, new.frame[name]), nodes=nodes)
        return table

    def holds(self, columns_shown: frozenset[str]) -> bool:
        """Whether all is met if only these keys are shown; what fails on fewer keys fails on more."""
        if columns_shown not in self.tried:
            self.run.tell(self.method.title, len(self.tried), 0)
            fails = any(part < columns_shown and not met for part, met in self.tried.items())
            lost = tuple(name for name in self.guarantee.keys if name not in columns_shown)
            self.tried[columns_shown] = (
                not fails and not self.guarantee.failing(self.suppress_columns(lost), self.run).any()
            )
        return self.tried[columns_shown]

    def best(self) -> tuple[str, ...]:
        """The columns to suppress so that those that stay weigh most."""
        keys = self.guarantee.keys
        if self.holds(frozenset(keys)):
            return ()
        weights = [self._importance(name) for name in keys]
        in_turn = sorted(range(len(keys)), key=lambda j: (-weights[j], j))
        left = [*np.cumsum([weights[j] for j in in_turn][::-1])[::-1].tolist(), 0.0]
        best, most = frozenset[str](), 0.0

        def go_on(place: int, columns_shown: frozenset[str], weight: float) -> None:
            nonlocal best, most
            if weight > most + 1e-9:
                best, most = columns_shown, weight
            if place == len(in_turn) or weight + left[place] <= most + 1e-9:
                return
            more = columns_shown | {keys[in_turn[place]]}
            if self.holds(more):
                go_on(place + 1, more, weight + weights[in_turn[place]])
            go_on(place + 1, columns_shown, weight)

        go_on(0, best, 0.0)
        return tuple(name for name in keys if name not in best)

    def one_by_one(self) -> tuple[str, ...]:
        """Give up the column whose loss helps most records for its importance, until none is in the way."""
        lost: tuple[str, ...] = ()
        while (n := int(self.guarantee.failing(self.suppress_columns(lost), self.run).sum())) and len(
            lost
        ) < len(self.guarantee.keys):
            gains = []
            for name in self.guarantee.keys:
                if name not in lost:
                    after = int(self.guarantee.failing(self.suppress_columns((*lost, name)), self.run).sum())
                    gains.append(((after - n - 1) / self._importance(name), name))
            lost = tuple(sorted((*lost, min(gains)[1])))
        return lost


class TrivialRemoval(Method):
    """Suppress every value of the chosen columns.

    The other end of the scale: no method protects these columns better, and none keeps less of them. Compare
    other methods with it.

    See Also
    --------
    attribute-suppression : suppresses only as many columns as necessary.
    resampling : the baseline that keeps values but no record.

    Notes
    -----
    **When to use.** As a baseline in a comparison; or for columns that are not needed but whose names should
    stay.

    **Guarantees.** No information of the columns is left: all records are equal in them.

    **Risk to know.** Related columns that are not suppressed still reveal the information.

    **Ties, missing, weights.** Missing values are suppressed too, so that not even their absence is revealed.
    Weights are not used.

    **Cost.** :math:`O(n)` per column.

    Examples
    --------
    >>> frame = pl.DataFrame({"job": ["cook", None]})
    >>> protect(frame, TrivialRemoval(), columns=["job"]).data["job"].to_list()
    ['*', '*']
    """

    name = "trivial-removal"
    family = "suppression"
    nature = "non-perturbative"
    takes = Takes(generalised=True)
    gives = Gives(suppressed=True)
    randomness = Randomness(stochastic=False)
    title = "Trivial removal"
    analyst_note = "The columns are suppressed and contain no information."
    kinds = COMPARABLE
    references = ("brickell2008",)

    def protect(self, table: Table, run: Run) -> Release:  # noqa: ARG002  — no chance is used
        """Cover the columns."""
        every = np.ones(len(table), dtype=np.bool_)
        protected = table
        for name in table.chosen:
            protected = to_wildcard(protected, name, every)
        return Release.record_by_record(protected, classes=np.zeros(len(table), dtype=np.int64))

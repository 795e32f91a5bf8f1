"""Local suppression: as few single cells of the keys as possible are suppressed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np

from sfumato.core.method import Takes
from sfumato.core.params import PerColumn, param
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.generalised.suppressing import to_missing
from sfumato.data.schema import Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError, UnknownNameError, UnreachableError, count_noun
from sfumato.kernels.arrays import Flags, Ints
from sfumato.methods._analyst_notes import FEWER_CELLS
from sfumato.methods._enforcing import EnforcingMethod, Guarantee
from sfumato.methods._key_cells import ClassSizeRule, KeyCells, cover_originals, form_classes

#: So many combinations of keys are looked at.
_MOST_COMBINATIONS = 2000


class LocalSuppression(EnforcingMethod):
    r"""Suppress single cells of the keys until the release is k-anonymous.

    Every record :math:`i` keeps a set :math:`K_i` of its keys. The cost

    .. math::

        \sum_i \sum_{q \notin K_i} w_q

    is made small, where :math:`w_q` is the ``importance`` of key :math:`q` and only cells that had a value
    count. The condition depends on how a missing key is treated (``missing``). As a value of its own
    (``category``), at least k records must show the same: a record that loses a cell joins others that lose
    it too. As ``any`` value, what a record shows must fit at least k records of the original: for each record
    all :math:`K_i` are tried and the cheapest is taken.

    See Also
    --------
    record-suppression : suppresses all keys of a record, and enforces every model.
    attribute-suppression : suppresses all cells of a key.

    Notes
    -----
    **When to use.** A few records are still unique after recoding, because of one or two of their cells.

    **Guarantees.** The release is measured: k and the requirements in ``also`` are met under the policy
    ``missing``, or nothing is released. Values that are shown are true. For k alone the cost is minimal up to
    twelve records under ``category``, and up to twelve keys under ``any`` (with one record for each person,
    at most 16 patterns of missing keys, and all records fitting k originals). On 100,000 hospital stays with
    nine keys ``category`` suppressed 10 per cent more cells than a lower bound for all partitions into
    classes.

    **Risk to know.** Under ``any`` an intruder who assumes a certain value for a suppressed cell counts fewer
    than k; the notes give k under the policy ``category``. A record is never protected by cells that are
    suppressed in others only, as in tools that suppress until every pattern with wildcards occurs k times:
    these suppress fewer cells, and a unique record may stay unchanged. Under ``worst`` a
    suppressed cell protects no one, so the method cannot help. A suppressed cell may itself reveal that its
    value is rare.

    **Columns that follow.** A column that tells a key, such as the city tells the region, would give a
    suppressed cell away. Name it in ``ghosts``: it is suppressed wherever the key is missing, also where that
    was missing before. It costs nothing, is not counted among the keys and need not be known to the intruder.

    **Ties, missing, weights.** Missing values stay missing and cost nothing. Of patterns with equal cost, the
    one that suppresses the keys with the most values is taken. With a column of persons, people are counted
    instead of records. Sampling weights are not used.

    **Cost.** :math:`O(2^q n)` for :math:`q` keys; with more than twelve not all patterns are tried. About
    five seconds for 100,000 records of nine keys under ``any``, two under ``category``. Requirements in
    ``also`` are met afterwards in rounds, each of which measures the table.

    Examples
    --------
    >>> frame = pl.DataFrame({"age": [30, 30, 30, 31], "sex": ["m", "m", "f", "f"]})
    >>> release = protect(frame, LocalSuppression(k=2), columns=["age", "sex"])
    >>> release.data["age"].to_list(), release.data["sex"].to_list()
    ([30, 30, None, None], ['m', 'm', 'f', 'f'])
    """

    name = "local-suppression"
    vetted = "brute-forced: property/test_suppression.py::test_k_holds_by_plain_counting"
    synonyms = ("kAnon", "localSupp", "cell suppression", "suppression", "k-anonymisation")
    family = "suppression"
    nature = "non-perturbative"
    takes = Takes(generalised=True)
    title = "Local suppression"
    analyst_note = FEWER_CELLS
    references = ("hundepool2012", "dewaal1996", "meyerson2004", "templ2015")
    cost = "n"

    importance: PerColumn[float] = param(
        1.0,
        "Cost of suppressing a cell: important keys lose cells last.",
        ge=0.001,
        le=1000,
        symbol="w",
        hint="1000 for a key whose cells should be suppressed only as a last resort",
    )
    combine: int | None = param(
        None,
        "Require k for all combinations of this many keys, instead of all keys at once.",
        ge=1,
        le=6,
        label="Keys in a combination",
    )
    subsets: str | None = param(
        None,
        (
            "Require k for these combinations of keys instead, some with a k of their own: age+sex, "
            "region+job:3."
        ),
        label="Combinations of keys",
    )

    ghosts: PerColumn[str] = param(
        "",
        "Columns that follow a key, with + between: their cells are suppressed where that of the key is.",
        hint="region=city+postcode: where the region is missing, city and postcode are suppressed",
        label="Columns that follow a key",
        advanced=True,
    )

    def followers(self, schema: Schema) -> tuple[str, ...]:
        """The columns named in ``ghosts``."""
        words = (self.ghosts.default, *(text for _, text in self.ghosts.exceptions))
        return schema.resolve(dict.fromkeys(name for text in words for name in _names_in(text)))

    def guarantee(self, schema: Schema, keys: Sequence[str]) -> Guarantee:
        """What is asked for: of all keys, or of some combinations of them."""
        wanted = self._combinations(tuple(sorted(keys)))
        if wanted is None:
            return super().guarantee(schema, keys)
        whole = Guarantee.of(keys, k=1, also=self.also, missing=self.missing)
        parts = [Guarantee.of(some, k=k, also=(), missing=self.missing) for some, k in wanted if k > 1]
        return replace(whole, parts=tuple(parts))

    def _combinations(self, keys: tuple[str, ...]) -> list[tuple[tuple[str, ...], int]] | None:
        """The combinations of keys that k must hold for, each with its k; None for all keys at once."""
        found: dict[tuple[str, ...], int] = {}
        if self.combine is not None and self.combine < len(keys):
            if comb(len(keys), self.combine) > _MOST_COMBINATIONS:
                raise ParameterError(
                    f"`combine` must make at most {_MOST_COMBINATIONS} combinations of the {len(keys)} keys, "
                    f"got: {comb(len(keys), self.combine)}"
                )
            found |= dict.fromkeys(combinations(keys, self.combine), self.k)
        for text in (self.subsets or "").split(",") if self.subsets else ():
            names, _, level = (piece.strip() for piece in text.partition(":"))
            some = tuple(sorted({name.strip() for name in names.split("+")}))
            for name in some:
                if name not in keys:
                    raise UnknownNameError.of("key among the protected ones", name, keys)
            if level and not (level.isdecimal() and int(level) >= 1):
                raise ParameterError(
                    "the k of a combination in `subsets` must be a whole number, as in `age+sex:3`"
                )
            found[some] = max(int(level) if level else self.k, found.get(some, 1))
        return list(found.items()) or None

    def enforce(self, table: Table, guarantee: Guarantee, run: Run) -> Release:
        """Find the cells that k asks for, then mend what else must hold."""
        ghosts = {key: table.schema.resolve(_names_in(self.ghosts[key])) for key in guarantee.keys}
        table = _follow_keys(table, ghosts)
        if not guarantee.failing(table, run).any():
            nothing = {"cells_suppressed": 0, "cells": len(table) * len(guarantee.keys)}
            return Release.record_by_record(table, figures=nothing)
        if self.missing == "worst":
            raise UnreachableError(
                "`missing` of local-suppression must be category or any, got: worst, under which suppressing "
                "a cell protects no one",
                hint="remove records or whole columns instead: record-suppression, attribute-suppression",
            )
        cells = KeyCells.of(table, guarantee.keys, self.importance)
        draft = _Draft(table, cells, ghosts)
        draft.suppress(self._for_k(table, cells, guarantee, run))
        draft.mend(guarantee, run)
        notes, figures = draft.suppression_notes()
        if self.missing == "any":
            more, strict = _strict_k_notes(draft, guarantee)
            notes, figures = (*notes, *more), figures | strict
        return Release.record_by_record(draft.table, notes=notes, figures=figures)

    def _for_k(self, table: Table, cells: KeyCells, guarantee: Guarantee, run: Run) -> Flags:
        """The cells to suppress so that k holds for the combinations of keys."""
        wanted = [(part.keys, part.k) for part in guarantee.parts]
        own = replace(
            guarantee, requirements=tuple(filter(self._has_same_missing_policy, guarantee.requirements))
        )
        if own.k > 1:
            wanted.append((guarantee.keys, own.k))
        asked = [ClassSizeRule(cells.pattern(names), k) for names, k in wanted]
        if not asked:
            return np.zeros((len(table), len(cells.names)), dtype=np.bool_)
        if self.missing == "category" and len(asked) == 1:
            return cells.suppressed_cells(form_classes(cells, asked[0], run, self.title))
        return cells.suppressed_cells(cover_originals(cells, asked, run, self.title))

    def _has_same_missing_policy(self, requirement: Requirement) -> bool:
        """Whether a requirement takes a missing key for what this method does."""
        return getattr(requirement.measure, "missing", None) == self.missing


def _names_in(text: str) -> list[str]:
    return [name.strip() for name in text.split("+") if name.strip()]


def _follow_keys(table: Table, ghosts: Mapping[str, Sequence[str]]) -> Table:
    """Suppress what follows a key wherever the key is missing: it could tell what the key was."""
    for key, names in ghosts.items():
        for name in names:
            table = to_missing(table, name, table.missing(key) & ~table.missing(name))
    return table


def _strict_k_notes(draft: _Draft, guarantee: Guarantee) -> tuple[tuple[str, ...], dict[str, float]]:
    """What k is where a missing key is a value, and who is protected only by records that show nothing.

    An intruder looks at the others: these tell nothing.
    """
    shows = ~draft.gone.all(axis=1)
    strict, leaning = len(draft.table), 0
    for each in guarantee.parts or (guarantee,):
        strict = min(strict, int(Classes.of(draft.table, each.keys).persons.min()))
        rest = Classes.of(draft.table.take(np.flatnonzero(shows)), each.keys, missing="any")
        leaning = max(leaning, int(rest.members[rest.persons < each.k].sum()))
    notes = [f"k is {strict} if a missing key counts as a value of its own"]
    if leaning:
        notes.append(
            f"{count_noun(leaning, 'record')} would be in classes of fewer than k without the records that "
            f"show no key ({int((~shows).sum())}): this meets the policy formally, but protects no one"
        )
    return tuple(notes), {"k_strict": strict, "records_protected_by_empty_ones": leaning}


class _Draft:
    """A table of which more and more cells are suppressed."""

    def __init__(self, table: Table, cells: KeyCells, ghosts: Mapping[str, Sequence[str]]) -> None:
        self.original, self.table, self.cells, self.ghosts = table, table, cells, ghosts
        self.suppressed = np.zeros((len(table), len(cells.names)), dtype=np.bool_)
        self.gone = np.column_stack([table.missing(name) for name in cells.names])

    def suppress(self, more: Flags) -> None:
        """Suppress these cells as well."""
        self.suppressed |= more & ~self.gone
        for position, name in enumerate(self.cells.names):
            self.table = to_missing(self.table, name, more[:, position] & ~self.gone[:, position])
        self.table = _follow_keys(self.table, self.ghosts)
        self.gone |= more

    def mend(self, guarantee: Guarantee, run: Run) -> None:
        """Suppress one more cell of each record that stands in the way, until nobody does."""
        turn = np.argsort(-self.cells.telling / self.cells.weights, kind="stable")
        for each in (*guarantee.parts, guarantee):  # the whole again: what one part did to another
            own = np.array([name in each.keys for name in self.cells.names])
            n_more = 1
            while (failing := each.failing(self.table, run)).any():
                run.check()
                left = ~self.gone & own
                if not (failing[:, None] & left).any():
                    failing, n_more = self._more_records(failing, left, n_more), 2 * n_more
                self.suppress(_next_cells(failing, left, turn, all_at_once=n_more > 1))

    def _more_records(self, failing: Flags, left: Flags, n: int) -> Flags:
        """Records that still show something, whole classes of them, to keep the others company."""
        classes = Classes.of(self.table, self.cells.names)
        shown = (left * self.cells.weights).sum(axis=1)
        cost = np.bincount(classes.of_record, weights=shown, minlength=len(classes))
        able = np.flatnonzero(cost > 0)
        if not len(able):
            raise UnreachableError(
                "the requirements cannot be met, even if no key is shown: "
                f"{count_noun(int(failing.sum()), 'record')} still violate them",
                hint=(
                    "relax the requirements, use record-suppression, or set `missing` to any for population "
                    "models"
                ),
            )
        cheapest = able[np.argsort(cost[able], kind="stable")]
        enough = np.searchsorted(np.cumsum(classes.members[cheapest]), max(n, int(failing.sum()))) + 1
        return np.isin(classes.of_record, cheapest[:enough])

    def suppression_notes(self) -> tuple[tuple[str, ...], dict[str, float]]:
        """How many cells are suppressed, in words and in numbers."""
        counts = self.suppressed.sum(axis=0).tolist()
        by_key = ", ".join(f"{name} {count}" for name, count in zip(self.cells.names, counts, strict=True))
        note = f"{sum(counts)} cells suppressed of {self.suppressed.size}: {by_key}"
        return (note,), {"cells_suppressed": sum(counts), "cells": self.suppressed.size}


def _next_cells(failing: Flags, left: Flags, turn: Ints, *, all_at_once: bool) -> Flags:
    """The next cell of each failing record, the most telling key first; or all that it has left."""
    found = failing[:, None] & left
    if all_at_once:
        return found
    first = np.argmax(found[:, turn], axis=1)
    one = np.zeros_like(found)
    one[np.arange(len(found)), turn[first]] = True
    return one & found

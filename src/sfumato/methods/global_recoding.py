"""Global recoding: the levels of the keys with the least information loss, proved optimal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from math import prod
from typing import Any, cast

import numpy as np

from sfumato.core.method import Gives
from sfumato.core.params import Columns, PerColumn, Resource, param
from sfumato.core.release import FittedMethod, Release
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.classes.packing import Coding, number, pack
from sfumato.data.generalised.levels import GeneralisationLattice, KeyLevels
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Role
from sfumato.data.table import Table
from sfumato.errors import UnreachableError, count_noun, quoted
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.methods._analyst_notes import GROUPED
from sfumato.methods._enforcing import EnforcingMethod, Guarantee
from sfumato.methods._recoding.judges import RecodingProblem, cover_by_wildcard, evidence_of_classes, judge_of
from sfumato.methods._recoding.objectives import (
    MEASURES,
    OBJECTIVES,
    Aggregate,
    AverageClassSizeObjective,
    ClassificationObjective,
    DiscernibilityObjective,
    Objective,
    ObjectiveName,
    Prices,
    Tally,
    hierarchy_loss,
    measured_loss,
    payout,
)
from sfumato.methods._recoding.search import LatticeSearch, Leftover, NodeState, RollUp
from sfumato.methods.recode_like import learning
from sfumato.methods.recoding import Recoding, hierarchies_of

#: What a share of the records may miss a whole number by: 0.1 · 30 is not quite 3.
_FLOAT_TOLERANCE = 1e-9


_PRICED: dict[str, Any] = {"le": 1e12, "unit": "per record", "when": "objective=payout", "advanced": True}


class GlobalRecoding(EnforcingMethod):
    r"""Find the hierarchy level of each key that gives k-anonymity with the least information loss.

    Every combination of levels :math:`\ell = (\ell_1, \dots, \ell_m)`, one for each key, is a node of a
    lattice. Records in equivalence classes that violate a requirement are suppressed, up to a share :math:`s`
    of all records. Among the nodes for which this suffices, the one with the least loss is taken, by default

    .. math::

        \Bigl( \prod_{j=1}^{m} (1 + L_j) \Bigr)^{1/m} - 1, \qquad
        L_j = \frac{1}{n} \sum_{i=1}^{n} \frac{|y_{ij}| - 1}{|H_j| - 1}

    where :math:`|y_{ij}|` is the number of values of the hierarchy that the label of a record covers,
    :math:`|H_j|` the number of all, and a suppressed record counts :math:`L = 1` (the loss of ARX). With
    ``importance`` the mean is weighted; with a ``balance`` :math:`b` what is generalised counts
    :math:`\min(2 - 2b, 1)` times, and what is suppressed :math:`\min(2b, 1)` times. Other
    objectives: *granularity*, *precision*, *non-uniform-entropy*, *discernibility*, *average-class-size* are
    the measures of these names (generalised-information-loss, precision-loss …), *classification* the
    classification-metric of the ``target``, and *payout* one minus publisher-payout, at prices of your own,
    against an adversary who knows who is in the table or, with a ``population``, only that people are of it
    (Wan and others, 2015); suppressed records count as one class of wildcards there, left out or not.

    See Also
    --------
    recoding : fixed levels; what is fitted here is one.
    classification-metric : the objective if the keys are used for prediction.

    Notes
    -----
    **When to use.** All records of a key should be on one level, so that tables can be computed and compared,
    with meaningful labels. Where that loses too much, use local recoding: with ``local`` and ``suppression``
    100 the nodes are tried from the finest to the coarsest, and every record is shown at the first node at
    which its class among the remaining records is large enough. On Adult with nine keys the granularity is
    then .948 at k = 5 and .923 at k = 10, against .772 and .732 of one level for all.

    **Known algorithms.** Samarati's, Incognito, OLA and Flash search the same lattice; Datafly, top-down
    specialisation and bottom-up generalisation take a greedy way through it, and find no better node than the
    exact search here. l-diversity and t-closeness are requirements in ``also``.

    **Guarantees.** k-anonymity and all further requirements, measured on the release. The node is the best of
    the whole lattice; if ``budget`` did not suffice for the proof, the notes give a bound on the possible
    improvement. Of nodes with equal loss that with the fewest suppressed records is taken, then that with the
    lowest sum of levels, then the first in the order of the keys' names.

    **Risk to know.** Suppressed records show ``*`` in all keys. If they do not meet the requirements as a
    class of their own (for example, if there are fewer than k), they are removed from the release, and the
    notes say how many. An intruder who knows that a person is missing learns that the person was rare. A
    hierarchy that was built from the data has limits that depend on the data.

    **Ties, missing, weights.** A missing key is a value that no level changes, except a root that is the
    wildcard, which stands for any value or none; ``missing`` says what it counts for. Losses are weighted if
    the table is, and of cells that had a value; people are counted, not weights.

    **Cost.** One pass over the data, then a roll-up of the distinct combinations for each node evaluated;
    bounds exclude most nodes. Policies other than *category* for keys with missing values, and models that do
    not follow from the classes (k-map, LKC …), cost a pass for each node; so does a ``population``.

    Examples
    --------
    >>> people = pl.DataFrame({"age": [21, 23, 28, 35, 38, 64], "sex": ["f", "m", "f", "m", "f", "m"]})
    >>> release = sfumato.protect(people, GlobalRecoding(k=2), columns=["age", "sex"])
    >>> sfumato.assess(release.table, measures=["k-anonymity"])["k-anonymity"].value
    3.0
    >>> release.fitted.levels["age"], release.fitted.levels["sex"]
    (4, 0)
    """

    name = "global-recoding"
    vetted = "proved: proofs/lattice.md"
    synonyms = (
        "globalRecode", "full-domain generalisation", "Incognito", "Flash", "OLA", "k-anonymisation",
        "top-down specialisation", "TDS", "bottom-up generalisation", "Datafly", "Samarati",
        "Incognito with l-diversity", "Incognito with t-closeness",
    )  # fmt: skip
    family = "recoding"
    nature = "non-perturbative"
    title = "Global recoding"
    analyst_note = GROUPED
    analyst_extras = (("local=True", "Records that would have been suppressed have groups of their own."),)
    references = ("elemam2009", "kohlmayer2012", "prasser2020", "samarati2001", "iyengar2002", "wan2015")
    gives = Gives(generalised=True, suppressed=True, other_records=True)
    cost = "n + nodes · classes"

    suppression: float = param(
        0.0,
        "Largest share of the records that may be suppressed.",
        ge=0,
        le=100,
        unit="%",
        symbol="s",
        label="Most suppressed",
    )
    objective: ObjectiveName = param("loss", "What is minimised.", choices=OBJECTIVES)
    aggregate: Aggregate = param(
        "geometric",
        "How the losses of the keys are aggregated.",
        choices={
            "geometric": "The geometric mean of one plus each loss, minus one.",
            "arithmetic": "The mean of the losses.",
        },
        when="objective=loss",
        advanced=True,
    )
    importance: PerColumn[float] = param(
        1.0,
        "How much the loss of a key counts: important keys are generalised last.",
        ge=0.001,
        le=1000,
        symbol="w",
        when="objective=loss",
        advanced=True,
    )
    balance: float = param(
        0.5,
        "What counts less: below a half suppressing, above a half generalising.",
        ge=0,
        le=1,
        when="objective=loss",
        advanced=True,
        hint="at 0.5 both count in full; at 0 suppressing costs nothing, at 1 generalising",
    )
    target: Columns = param(("@sensitive",), "Columns to be predicted.", when="objective=classification")
    benefit: float = param(1200.0, "What a record is worth to the publisher.", gt=0, **_PRICED)
    loss: float = param(300.0, "What a re-identified person costs the publisher.", ge=0, **_PRICED)
    gain: float = param(300.0, "What a re-identified person is worth to the adversary.", ge=0, **_PRICED)
    price: float = param(4.0, "What an attempt costs the adversary.", ge=0, **_PRICED)
    population: Resource | None = param(
        None,
        "The population among whom the adversary looks; by default the adversary knows who is in the table.",
        holds="table",
        when="objective=payout",
        advanced=True,
    )
    local: bool = param(
        default=False,
        help=(
            "Whether suppressed records are recoded among themselves, at the lowest levels that meet the "
            "requirements; with suppression=100, all records are."
        ),
        label="Recode suppressed records",
    )
    budget: int = param(
        20_000,
        "Largest number of nodes to evaluate; if it does not suffice, the best found is taken, with a bound.",
        ge=1,
        le=10**9,
        advanced=True,
        label="Most nodes",
    )

    def refuses(self, table: Table) -> str | None:
        """Refuse keys that were generalised before, and to predict nothing or a key."""
        reason = super().refuses(table) or self.refuses_generalised(table)
        if reason is None and self.objective == "payout" and table.schema.only_role(Role.PERSON):
            return f"the payout of {self.name} must be that of records, got: several records of a person"
        if reason is not None or self.objective != "classification":
            return reason
        targets = set(table.schema.resolve(self.target))
        if not targets or targets & set(table.chosen):
            found = f"keys {quoted(sorted(targets & set(table.chosen)))}" if targets else "none"
            return f"`target` of {self.name} must name columns that are not keys, got: {found}"
        return None

    def enforce(self, table: Table, guarantee: Guarantee, run: Run) -> Release:
        """Search the lattice, suppress what fails at the best node, and recode the rest."""
        whole, limit, notes = self._problem(table, guarantee, run)
        if (
            self.local
            and limit >= len(table)
            and (release := self._each_at_its_own(whole, notes)) is not None
        ):
            return release
        search, proved = self.search(whole, limit)
        best = search.best
        assert best is not None  # else the search has raised
        outcome = RecodingResult(best.node.levels, whole.records(best.node, best.failing), best.leftover)
        if self.local and best.suppressed:
            outcome = self._recode_suppressed(whole, outcome)
        fitted, resources = _fitted_recoding(best.node.levels, whole)
        search_notes, figures = self._search_notes(search, outcome, proved=proved)
        made = replace(outcome.release(whole), fit=FittedMethod(fitted, resources))
        return made.with_notes(*notes, *search_notes, figures=figures)

    def explore(self, table: Table, run: Run, *, most: int) -> LatticeOverview:
        """What the search knows of every node of the lattice of the chosen columns, if there are few."""
        whole, limit, _ = self._problem(table, self.guarantee_for(table), run)
        keys, n_nodes = whole.lattice.keys, prod(whole.lattice.heights)
        names, heights = tuple(key.column.name for key in keys), tuple(whole.lattice.heights)
        if n_nodes > most:
            return LatticeOverview(names, heights, {}, proved=False)
        search, proved = self.search(whole, limit)
        return LatticeOverview(names, heights, search.node_states(), proved=proved)

    def _problem(
        self, table: Table, guarantee: Guarantee, run: Run
    ) -> tuple[RecodingProblem, int, tuple[str, ...]]:
        """The lattice to search, how many records may be suppressed, and notes on hierarchies."""
        hierarchies, notes = hierarchies_of(table, run)
        keys = [KeyLevels.of(table, name, hierarchies[name]) for name in guarantee.keys]
        limit = self.max_suppressed(len(table))
        lattice = GeneralisationLattice.of(keys, table.weights)
        return RecodingProblem(table, lattice, guarantee, run), limit, notes

    def max_suppressed(self, n_records: int) -> int:
        """How many of so many records may be suppressed."""
        return int(self.suppression / 100 * n_records + _FLOAT_TOLERANCE)

    def search(self, part: RecodingProblem, limit: int) -> tuple[LatticeSearch, bool]:
        """Search the lattice with at most so many records suppressed; give whether the best was proved."""
        judge = judge_of(part, limit)
        objective, tallies = self._objective(part)
        search = LatticeSearch(
            lattice=part.lattice,
            objective=objective,
            judge=judge,
            roll_up=RollUp(part.lattice, judge.base_counts, tallies),
            limit=limit,
            budget=self.budget,
            run=part.run,
            title=self.title,
        )
        proved = search.go()
        if search.best is None:
            raise UnreachableError(
                f"no combination of levels meets the requirements with at most {count_noun(limit, 'record')} "
                f"suppressed ({search.looked_at:,} of {search.n_nodes:,} were evaluated)",
                hint="relax the requirements, protect fewer keys, or allow more suppression",
            )
        return search, proved

    def _objective(self, part: RecodingProblem) -> tuple[Objective, tuple[Tally, ...]]:
        lattice, table = part.lattice, part.table
        flat, n = np.zeros(lattice.starts.shape), len(table)
        if self.objective == "loss":
            importance = np.array([self.importance[key.column.name] for key in lattice.keys])
            return hierarchy_loss(lattice, self.aggregate, importance, self.balance), ()
        if self.objective in MEASURES:
            return measured_loss(lattice, table, MEASURES[self.objective], part.run), ()
        if self.objective == "payout":
            prices = Prices(self.benefit, self.loss, self.gain, self.price)
            return payout(lattice, table, prices, self.population, part.run), ()
        if self.objective == "discernibility":
            return DiscernibilityObjective(flat, n), ()
        if self.objective == "average-class-size":
            return AverageClassSizeObjective(flat, n), ()
        names = sorted(table.schema.resolve(self.target))
        tallies = tuple(Tally.of(table, name, lattice.of_record) for name in names)
        return ClassificationObjective(flat, tuple(float(each.amounts.sum()) for each in tallies)), tallies

    def _recode_suppressed(self, whole: RecodingProblem, before: RecodingResult) -> RecodingResult:
        """Recode the suppressed records among themselves, each at the lowest levels that will do."""
        objective, _ = self._objective(whole)
        terms = objective.terms
        if not terms.any():  # classes are counted, not cells: then by width
            terms = hierarchy_loss(whole.lattice, "arithmetic").terms
        nodes = _nodes_in_order(terms, whole.lattice.heights, self.budget)
        found = RecodingResult(
            *_peel_records(whole, before.levels, before.suppressed, nodes), before.leftover
        )
        fates: tuple[Leftover, ...] = ("suppressed", "dropped")
        for way in (replace(found, leftover=fate) for fate in fates):
            if not whole.guarantee.unmet(way.release(whole).table, whole.run):
                return way
        return before

    def _each_at_its_own(self, whole: RecodingProblem, notes: Sequence[str]) -> Release | None:
        """Recode every record at the lowest levels that will do: nothing is the same everywhere."""
        n = len(whole.table)
        everyone = RecodingResult([0] * len(whole.lattice.keys), np.ones(n, dtype=np.bool_), "suppressed")
        found = self._recode_suppressed(whole, everyone)
        if found is everyone:
            return None
        release, n_left = found.release(whole), int(found.suppressed.sum())
        n_nodes = len(np.unique(np.column_stack([np.broadcast_to(each, n) for each in found.levels]), axis=0))
        search_notes = (
            (
                f"{count_noun(n_nodes, 'combination')} of levels, each record at the lowest that meets the "
                "requirements"
            ),
            f"{count_noun(n_left, 'record')} {'dropped' if found.leftover == 'dropped' else 'suppressed'}",
        )
        gone = "records_left_out" if found.leftover == "dropped" else "records_suppressed"
        learnt = learning(release, whole.table.chosen)
        return learnt.with_notes(*notes, *search_notes, figures={gone: n_left, "combinations": n_nodes})

    def _search_notes(
        self, search: LatticeSearch, outcome: RecodingResult, *, proved: bool
    ) -> tuple[list[str], dict[str, float]]:
        """What is to be known of the search, in words and in numbers."""
        best = search.best
        assert best is not None
        n_suppressed = count_noun(best.suppressed, "record")
        value, is_payout = search.objective.value, self.objective == "payout"
        shown = 1.0 - value(best.score) if is_payout else value(best.score)  # what is lost of it is minimised
        at = ", ".join(
            f"`{key.column.name}` {level} of {key.height - 1}"
            for key, level in zip(search.lattice.keys, best.node.levels, strict=True)
        )
        notes = [
            f"levels: {at}",
            f"{self.objective} {_figure(shown)} with {n_suppressed} suppressed",
            f"{search.looked_at:,} of {count_noun(search.n_nodes, 'combination')} of levels evaluated",
        ]
        low = value(best.score)
        if not proved:
            low = min(max(value(max(search.bound, 0.0)), 0.0), low)
            gap = value(best.score) - low
            far = f"at most {1.0 - low:.4g}" if is_payout else f"at least {low:.4g}"
            notes.append(f"not proved optimal: the optimum is {far}, a gap of {gap:.3g}")
        n = int(outcome.suppressed.sum())
        if n < best.suppressed:
            notes.append(f"{count_noun(best.suppressed - n, 'suppressed record')} recoded among themselves")
        if n and outcome.leftover == "dropped":
            notes.append(
                f"{count_noun(n, 'suppressed record')} dropped: as a class of their own they do not meet "
                "the requirements"
            )
        n_out = n if outcome.leftover == "dropped" else 0
        name = "payout_lost" if is_payout else self.objective
        return notes, {
            name: value(best.score),
            f"{name}_at_least": low,
            "records_suppressed": n - n_out,
            "records_left_out": n_out,
            "records_recoded_apart": best.suppressed - n,
            "nodes_looked_at": search.looked_at,
        }


@dataclass(frozen=True)
class LatticeOverview:
    """The keys of a lattice, how many levels each has, and what is known of each node by its levels.

    Of a lattice of too many nodes ``states`` is empty. ``proved`` says that the optimum is one.
    """

    keys: tuple[str, ...]
    heights: tuple[int, ...]
    states: Mapping[tuple[int, ...], NodeState]
    proved: bool


@dataclass(frozen=True, eq=False)
class RecodingResult:
    """The level of each record in each key, who is suppressed, and what becomes of them."""

    levels: Sequence[int | Ints]  # [keys] of all records, or of each
    suppressed: Flags
    leftover: Leftover

    def release(self, whole: RecodingProblem) -> Release:
        """The release: suppressed records covered by wildcards, or left out."""
        table, rows = whole.lattice.write(whole.table, self.levels), np.arange(len(whole.table))
        if self.leftover == "dropped":
            rows = np.flatnonzero(~self.suppressed)
            return Release.of(table.take(rows), source_rows=rows)
        return Release.of(cover_by_wildcard(table, whole.guarantee.keys, self.suppressed), source_rows=rows)


def _fitted_recoding(levels: Sequence[int], part: RecodingProblem) -> tuple[Recoding, dict[str, Hierarchy]]:
    """The recoding that does the same to other tables, and the hierarchies it needs."""
    names, resources = {}, {}
    for key in part.lattice.keys:
        if key.hierarchy is not None:
            resource = key.column.hierarchy or f"hierarchy of {key.column.name}"
            names[key.column.name], resources[resource] = Resource(resource), key.hierarchy
    at = [(key.column.name, level) for key, level in zip(part.lattice.keys, levels, strict=True)]
    given = PerColumn(cast("Resource", None), tuple(names.items())) if names else None
    return Recoding(levels=PerColumn(0, tuple(at)), hierarchies=given, unseen="root"), resources


# Record by record: each at the lowest levels at which enough of those that are left are alike -------------


def _nodes_in_order(terms: Floats, heights: Sequence[int], most: int) -> Iterator[tuple[int, ...]]:
    """Yield the nodes of a lattice, those that lose least first; of some levels only if they are too many."""
    levels = [list(range(height)) for height in heights]
    while prod(map(len, levels)) > most and max(map(len, levels)) > 2:  # noqa: PLR2004  — values and root
        longest = max(levels, key=len)
        longest[1:-1] = longest[2:-1:2]
    bottom = (0,) * len(levels)
    heap, seen = [(0.0, bottom)], {bottom}
    for _ in range(most):
        if not heap:
            return
        _, places = heappop(heap)
        yield tuple(own[place] for own, place in zip(levels, places, strict=True))
        for key, own in enumerate(levels):
            above = (*places[:key], places[key] + 1, *places[key + 1 :])
            if above[key] < len(own) and above not in seen:
                seen.add(above)
                lost = sum(float(terms[j, levels[j][place]]) for j, place in enumerate(above))
                heappush(heap, (lost, above))


def _peel_records(
    whole: RecodingProblem, levels: Sequence[int | Ints], left: Flags, nodes: Iterator[tuple[int, ...]]
) -> tuple[list[Ints], Flags]:
    """Show each record that is ``left`` at the first of the nodes at which its class may stand.

    Returns
    -------
    list of int64[n], bool[n]
        The level of each record in each key, and who is still left.
    """
    n, k = len(whole.table), whole.guarantee.k
    own, left = [np.broadcast_to(level, n).copy() for level in levels], left.copy()
    by_size = _needs_only_k(whole)
    for node in nodes:
        whole.run.check()
        rows = np.flatnonzero(left)
        if len(rows) < k:
            break
        groups, sizes = _number_at_node(whole.lattice, node, rows)
        stands = sizes >= k
        if stands.any() and not by_size:
            stands &= ~_failing(whole, own, node, (rows, groups))
        found = rows[stands[groups]]
        if len(found):
            for each, level in zip(own, node, strict=True):
                each[found] = level
            left[found] = False
    return own, left


def _needs_only_k(whole: RecodingProblem) -> bool:
    asked, whose = whole.guarantee.requirements, whole.table.schema.only_role(Role.PERSON)
    by_size = all(each.required_class_size is not None for each in asked)
    return by_size and whose is None and evidence_of_classes(whole) is not None


def _number_at_node(lattice: GeneralisationLattice, node: Sequence[int], rows: Ints) -> tuple[Ints, Ints]:
    """Number these records by what they would show at a node, and count them."""
    codings = []
    for key, level in zip(lattice.keys, node, strict=True):
        labels = key.labels[level]
        codings.append(Coding(labels[key.codes[rows]].astype(np.uint32), int(labels.max(initial=0)) + 1))
    groups, counts = number(pack(codings, len(rows)))
    return groups, counts


def _failing(
    whole: RecodingProblem, own: Sequence[Ints], node: Sequence[int], found: tuple[Ints, Ints]
) -> Flags:
    """Which groups of the records left could not stand at a node, beside all others."""
    rows, groups = found
    n_groups = int(groups.max(initial=-1)) + 1
    evidence = evidence_of_classes(whole)
    if evidence is not None:
        of_record = np.full(len(whole.table), n_groups, dtype=np.int64)  # all others are one class
        of_record[rows] = groups
        _, examples, of_record, members = np.unique(
            of_record, return_index=True, return_inverse=True, return_counts=True
        )
        classes = Classes.known(
            whole.table, whole.guarantee.keys, of_record, members, examples=examples, counts={}
        )
        return whole.guarantee.failing_classes(evidence, classes)[:n_groups]
    tried = [each.copy() for each in own]
    for each, level in zip(tried, node, strict=True):
        each[rows] = level
    shown = whole.lattice.write(whole.table, tried)
    records = whole.guarantee.failing(shown, whole.run)[rows]
    return np.bincount(groups[records], minlength=n_groups) > 0


def _figure(value: float) -> str:
    """A number in four digits; large ones are whole."""
    return f"{value:.0f}" if abs(value) >= 10_000 else f"{value:.4g}"  # noqa: PLR2004

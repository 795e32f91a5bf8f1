"""The search for one recoding of all parties, on sums alone.

Where records are pooled, the sums are how many records of all parties have each combination of values, and
the search is that of global-recoding on these counts. Where they leave apart, each party says for each node
of the lattice how much its part would lose there if it met k by itself; only the sum of these is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, get_args

import numpy as np

from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.levels import GeneralisationLattice
from sfumato.data.table import Table
from sfumato.errors import DataError, RefusedError, UnreachableError, count_noun
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.methods._recoding.judges import RecodingProblem, judge_of
from sfumato.methods._recoding.objectives import hierarchy_loss
from sfumato.methods._recoding.search import FLOAT_TOLERANCE, Leftover, RollUp
from sfumato.methods.global_recoding import RecodingResult
from sfumato.parties.masks import Words
from sfumato.parties.party_plan import PartyPlan

#: What is told of a recoding beside its classes.
_AGREED = ("node", "leftover", "n_records", "n_suppressed", "loss", "proved")
#: More records than any table has: sums above are of parties that do not follow the protocol.
_MAX_RECORDS = 2**40


@dataclass(frozen=True, eq=False)
class AgreedRecoding:
    """What comes back to all parties: the level of each key, and which classes are suppressed.

    ``failing`` says of every class of the public domain whether fewer than k of all records are in it, empty
    ones included: nobody learns which classes there are. It is empty where each party decides for its part.
    """

    levels: Mapping[str, int]
    failing: Flags
    leftover: Leftover
    n_records: int
    n_suppressed: int
    loss: float
    proved: bool = True  # that no levels lose less

    @property
    def node(self) -> tuple[int, ...]:
        """The levels in the order of the keys."""
        return tuple(self.levels.values())

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON, without the classes."""
        return {"node": self.node, **{name: getattr(self, name) for name in _AGREED[1:]}}

    @classmethod
    def read(cls, party_plan: PartyPlan, values: Mapping[str, Any], body: bytes) -> AgreedRecoding:
        """Read what the leader says was agreed on, and refuse what the public domain has not."""
        domain = party_plan.domain
        try:
            node, leftover, *rest = (values[name] for name in _AGREED)
            np.ravel_multi_index(node, domain.heights)
            n_classes = prod(domain.class_shape(node)) if party_plan.pools else 0
            sound = leftover in get_args(Leftover) and 8 * len(body) - n_classes in range(8)
            numbers = int(rest[0]), int(rest[1]), float(rest[2]), bool(rest[3])
        except (KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            raise RefusedError("the leader does not follow the protocol: its recoding is not of the plan")
        failing = np.unpackbits(np.frombuffer(body, np.uint8), count=n_classes).astype(np.bool_)
        levels = dict(zip(domain.names, node, strict=True))
        return cls(levels, failing, leftover, *numbers)

    def sentence(self) -> str:
        """What was agreed on, in words."""
        at = ", ".join(f"`{name}` {level}" for name, level in self.levels.items())
        return (
            f"levels: {at}; loss {self.loss:.4g}{'' if self.proved else ' (not proved to be the least)'}, "
            f"{self.n_suppressed:,} of {count_noun(self.n_records, 'record')} of all parties suppressed"
        )


def problem_of(party_plan: PartyPlan, table: Table, run: Run, counts: Ints | None = None) -> RecodingProblem:
    """The records of a table with their keys coded, each of which may stand for so many."""
    domain = party_plan.domain
    lattice = GeneralisationLattice.of(domain.levels_of(table), None)
    if counts is not None:
        own = counts[lattice.rows]
        lattice = replace(lattice, counts=own, weights=own.astype(np.float64))
    return RecodingProblem(table, lattice, party_plan.method.guarantee(table.schema, domain.names), run)


# Pooled records ----------------------------------------------------------------------------------------


def search_pooled(party_plan: PartyPlan, totals: Words, run: Run) -> AgreedRecoding:
    """The levels that meet k on the totals with the least loss."""
    domain, method = party_plan.domain, party_plan.method
    cells = np.flatnonzero(totals)
    n = _require_records(int(totals.sum(dtype=np.float64)))
    codes = np.column_stack(np.unravel_index(cells, domain.shape))
    counts = totals[cells].astype(np.int64)
    problem = problem_of(party_plan, domain.table(codes), run, counts)
    search, proved = method.search(problem, method.max_suppressed(n))
    best = search.best
    assert best is not None  # else the search has raised
    node = best.node.levels
    classes = np.bincount(domain.classes(codes, node), counts, minlength=prod(domain.class_shape(node)))
    levels, loss = dict(zip(domain.names, node, strict=True)), search.objective.value(best.score)
    return AgreedRecoding(levels, classes < method.k, best.leftover, n, best.suppressed, loss, proved)


def _require_records(n_records: int) -> int:
    if not 0 <= n_records <= _MAX_RECORDS:
        raise RefusedError("the counts do not add up: some party did not send its counts as agreed")
    if not n_records:
        raise DataError("the parties have no records")
    return n_records


# Parts that leave apart --------------------------------------------------------------------------------


def losses_by_node(party_plan: PartyPlan, table: Table, run: Run) -> Words:
    """What a part loses at each node if it meets k there by itself, in whole numbers that add up.

    The first row has the number of records and, for each key, of those that have a value. Then each node has
    the number of suppressed records and, for each key, how many values beyond one its cells cover.
    """
    problem, heights = problem_of(party_plan, table, run), party_plan.domain.heights
    limit = len(table)
    judge, objective = judge_of(problem, limit), hierarchy_loss(problem.lattice, "geometric")
    roll_up, units = RollUp(problem.lattice, judge.base_counts, ()), _units(party_plan)
    values = [int((key.codes > 0).sum()) for key in problem.lattice.keys]
    rows = np.zeros((party_plan.n_nodes + 1, len(heights) + 1), dtype=np.int64)
    rows[0] = len(table), *values
    nodes = run.track("losses of this part", product(*map(range, heights)), party_plan.n_nodes)
    for row, levels in zip(rows[1:], nodes, strict=True):
        node = roll_up.at(levels)
        failing, _ = judge.failing(node, limit)
        lost = objective.losses(node.classes, failing) * values * units
        row[:] = int(node.classes.counts[failing].sum()), *np.rint(lost).astype(np.int64)
    return rows.ravel().astype(np.uint64)


def _units(party_plan: PartyPlan) -> Floats:
    """How many values beyond one the root of each hierarchy covers; of a single value it counts as one."""
    return np.array([max(size - 2, 1) for size in party_plan.domain.shape], dtype=np.float64)


def search_apart(party_plan: PartyPlan, totals: Words, run: Run) -> AgreedRecoding:
    """The levels at which the parts of all parties lose least, when each part meets k by itself."""
    heights = party_plan.domain.heights
    (n, *values), *rows = totals.astype(np.int64).reshape(-1, len(heights) + 1).tolist()
    limit = party_plan.method.max_suppressed(_require_records(n))
    known = np.array([count > 0 for count in values])
    units = np.maximum(np.array(values) * _units(party_plan), 1.0)
    ranked = []
    nodes = run.track("losses of all parts", product(*map(range, heights)), party_plan.n_nodes)
    for levels, (suppressed, *lost) in zip(nodes, rows, strict=True):
        if suppressed <= limit:
            losses = np.log1p(np.array(lost) / units)[known]
            ranked.append((float(losses.mean()) if known.any() else 0.0, suppressed, sum(levels), levels))
    if not ranked:
        raise UnreachableError(
            f"no combination of levels meets k in every part with at most {count_noun(limit, 'record')} of "
            "all parties suppressed",
            hint="require a smaller k, protect fewer keys, or allow more suppression",
        )
    least = min(ranked)[0]
    score, suppressed, _, levels = min(
        (each for each in ranked if each[0] <= least + FLOAT_TOLERANCE), key=lambda each: each[1:]
    )
    agreed = dict(zip(party_plan.domain.names, levels, strict=True))
    return AgreedRecoding(agreed, np.zeros(0, dtype=np.bool_), "none", n, suppressed, float(np.expm1(score)))


def recode_part(party_plan: PartyPlan, agreed: AgreedRecoding, table: Table, run: Run) -> Release:
    """The release of a part: suppressed are classes that fail on the totals, or else in the part itself."""
    problem, domain = problem_of(party_plan, table, run), party_plan.domain
    if party_plan.pools:
        suppressed = agreed.failing[domain.classes(domain.codes(table), agreed.node)]
        result = RecodingResult(agreed.node, suppressed, agreed.leftover)
    else:
        judge = judge_of(problem, len(table))
        node = RollUp(problem.lattice, judge.base_counts, ()).at(agreed.node)
        failing, _ = judge.failing(node, len(table))
        leftover = judge.leftover(node, failing) if failing.any() else "none"
        if leftover is None:
            raise DataError("no record of this part can leave: it has fewer records than k")
        result = RecodingResult(agreed.node, problem.records(node, failing), leftover)
    return result.release(problem).with_notes(f"one recoding for all parties; {agreed.sentence()}")

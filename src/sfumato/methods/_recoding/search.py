"""The search for the best node of a lattice of recodings: in order of a bound, with classes rolled up.

Nodes are taken in the order of a bound that neither suppression nor any node above can undercut, so that the
search may end when the best node found is not above the next bound. Where too many fail at a node however
finely its classes are divided, the nodes below it are ruled out as well.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from heapq import heapify, heapreplace
from itertools import combinations, product
from math import prod
from typing import Any, Literal, Protocol, cast

import numpy as np

from sfumato import kernels
from sfumato.core.run import Run
from sfumato.data.classes.classes import Counts
from sfumato.data.classes.packing import blocks
from sfumato.data.generalised.levels import GeneralisationLattice
from sfumato.errors import RefusedError
from sfumato.kernels.arrays import Flags, Ints
from sfumato.methods._recoding.objectives import NodeClasses, Objective, Tally

#: What becomes of the suppressed records: covered by wildcards, or left out; or nothing is suppressed.
Leftover = Literal["none", "suppressed", "dropped"]

#: What a search knows of a node: met what is asked, or not, by its own look or for one above did not.
NodeState = Literal["optimum", "met", "failed", "ruled out", "not looked at"]

#: Scores that differ by no more than this are equal.
FLOAT_TOLERANCE = 1e-12
#: The most nodes that are marked one by one.
_MARKED = 2**26
#: The most nodes a lattice may have: numbers of nodes are whole numbers of 64 bits.
_COUNTABLE = 2**62
#: How many nodes that are ruled out may be passed by for each that is looked at.
_PASSED = 2_000
#: From so many distinct combinations of values on, nodes are ruled out by one or two keys first.
_MANY_COMBINATIONS = 2**17
#: How many classes of former nodes are kept for those above them, and of how many nodes.
_KEPT_CLASSES, _KEPT_NODES = 4_000_000, 512


@dataclass(frozen=True, eq=False)
class LatticeNode:
    """A node with its classes."""

    classes: NodeClasses
    locate: Callable[[], Ints] = field(repr=False)  # see `of_combination`
    finer: tuple[Mapping[str, Counts], Ints]  # counts of sensitive columns in parts, and whose parts they are

    @cached_property
    def of_combination(self) -> Ints:
        """The class of each combination: few nodes are asked."""
        return self.locate()

    @cached_property
    def counts(self) -> Mapping[str, Counts]:
        """How often sensitive values stand in each class: added up when asked, as many nodes fail before."""
        counts, of_part = self.finer
        return {name: each.join_classes(of_part, len(self.classes.counts)) for name, each in counts.items()}

    def parts_of(self, coarser: Ints, bottom: LatticeNode) -> tuple[Mapping[str, Counts], Ints]:
        """What the counts of coarser classes are added up from: these if they are known, or all there are."""
        if "counts" in self.__dict__ or not bottom.finer[0]:
            return self.counts, coarser
        return bottom.counts, coarser[self.of_combination]

    @property
    def levels(self) -> tuple[int, ...]:
        """The level of each key."""
        return tuple(self.classes.levels.tolist())


class RollUp:
    """Gives the classes of any node: joined from those of the coarsest node below it that is still kept."""

    def __init__(
        self, lattice: GeneralisationLattice, counts: Mapping[str, Counts], tallies: Sequence[Tally]
    ) -> None:
        self.lattice = lattice
        self._divides = bool(counts or tallies)  # whether more than sizes is added up
        n = len(lattice.counts)
        places = np.empty(n, dtype=np.int64)
        for block in blocks(n):
            places[block] = np.arange(block.start, block.stop)
        none = np.zeros(len(lattice.keys), dtype=np.int64)
        classes = NodeClasses(none, places, lattice.counts, lattice.weights, tuple(tallies))
        self._bottom = LatticeNode(classes, lambda: places, (counts, places))
        self._recent_nodes = [self._bottom] * _KEPT_NODES
        self._levels = np.full((_KEPT_NODES, len(lattice.keys)), np.iinfo(np.int64).max, dtype=np.int64)
        self._sizes = np.zeros(_KEPT_NODES, dtype=np.int64)
        self._levels[0], self._sizes[0] = 0, n  # the bottom stays
        self._free, self._places_in_use, self._cost = list(range(2, _KEPT_NODES)), deque[tuple[int, int]](), 0

    def keep_below(self, levels: Sequence[int]) -> None:
        """Keep a node for good: all that will be asked for are above it."""
        node = self.at(levels)
        self._recent_nodes[1], self._levels[1] = node, node.classes.levels
        self._sizes[1] = len(node.classes.counts)

    def at(self, levels: Sequence[int]) -> LatticeNode:
        """The classes of a node."""
        wanted = np.asarray(levels, dtype=np.int64)
        usable = (self._levels <= wanted).all(axis=1)
        source = self._recent_nodes[int(np.argmin(np.where(usable, self._sizes, np.iinfo(np.int64).max)))]
        if (source.classes.levels == wanted).all():
            return source
        of_part = np.empty(len(source.classes.counts) if self._divides else 0, dtype=np.int64)
        classes = self._merge(source.classes, wanted, of_part)
        if self._divides:
            of_combination = of_part[source.of_combination]
            node = LatticeNode(classes, lambda: of_combination, source.parts_of(of_part, self._bottom))
        else:
            node = LatticeNode(classes, partial(self._locate, wanted), ({}, of_part))
        self._keep(node)
        return node

    def _merge(self, finer: NodeClasses, wanted: Ints, of_part: Ints) -> NodeClasses:
        keys, lattice = np.arange(len(wanted)), self.lattice
        starts, sizes = lattice.starts[keys, wanted], lattice.sizes[keys, wanted]
        parts = (finer.firsts, finer.counts, finer.weights, of_part)
        firsts, counts, weights = kernels.lattice.merge(lattice.leaves, lattice.labels, starts, sizes, parts)
        tallies = tuple(each.join_classes(of_part, len(counts)) for each in finer.tallies)
        return NodeClasses(wanted, firsts, counts, weights, tallies)

    def _locate(self, wanted: Ints) -> Ints:
        """The class of each combination at a node: they are numbered alike from wherever they are joined."""
        of_part: Ints = np.empty(len(self._bottom.classes.counts), dtype=np.int64)
        self._merge(self._bottom.classes, wanted, of_part)
        return of_part

    def _keep(self, node: LatticeNode) -> None:
        """Keep a node in place of the oldest ones: so many that their classes are not too many."""
        n = len(self._bottom.classes.counts)
        cost = len(node.classes.counts) + (n if self._divides else 0)
        most = max(_KEPT_CLASSES, n // 4)
        while self._places_in_use and (self._cost + cost > most or not self._free):
            place, former = self._places_in_use.popleft()
            self._levels[place], self._recent_nodes[place] = np.iinfo(np.int64).max, self._bottom
            self._free.append(place)
            self._cost -= former
        place = self._free.pop()
        self._recent_nodes[place], self._levels[place] = node, node.classes.levels
        self._sizes[place] = len(node.classes.counts)
        self._places_in_use.append((place, cost))
        self._cost += cost


class NodeJudge(Protocol):
    """Says which classes of a node must be suppressed, and whether what is left can be released."""

    @property
    def rules_out(self) -> bool:
        """Whether a node that fails may rule out all nodes below."""

    @property
    def base_counts(self) -> Mapping[str, Counts]:
        """How often sensitive values stand in each combination of values, where that is to be rolled up."""

    def failing(self, node: LatticeNode, limit: int) -> tuple[Flags, bool]:
        """The classes to be suppressed; and whether more than the limit must be in every node below too.

        Where that is so the classes need not be all.
        """

    def leftover(self, node: LatticeNode, failing: Flags) -> Leftover | None:
        """What can be done with the suppressed records; None if nothing makes the release meet the model."""


@dataclass(frozen=True, eq=False)
class BestNode:
    """A node that can be released."""

    node: LatticeNode
    failing: Flags
    score: float
    suppressed: int
    leftover: Leftover

    @property
    def rank(self) -> tuple[int, int, tuple[int, ...]]:
        """Of nodes of equal score the first in this order is taken."""
        return self.suppressed, sum(self.node.levels), self.node.levels


@dataclass(eq=False)
class LatticeSearch:
    """The search for the node of least score among those that need no more than a number suppressed."""

    lattice: GeneralisationLattice
    objective: Objective
    judge: NodeJudge
    roll_up: RollUp
    limit: int
    budget: int
    run: Run
    title: str = ""
    best: BestNode | None = field(default=None, init=False)
    looked_at: int = field(default=0, init=False)
    bound: float = field(default=-np.inf, init=False)  # the score that no node undercuts
    _seen: dict[tuple[int, ...], tuple[bool, bool]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._heights = np.array(self.lattice.heights, dtype=np.int64)
        self.n_nodes = prod(self.lattice.heights)
        if self.n_nodes > _COUNTABLE:
            raise RefusedError(
                f"the levels of all keys must make at most 2^62 nodes, got: {float(self.n_nodes):.1e}",
                hint="protect fewer keys, or use hierarchies with fewer levels",
            )
        self._marks = np.zeros(self.n_nodes if self.n_nodes <= _MARKED else 0, dtype=np.uint8)
        self._tops = np.empty((0, len(self._heights)), dtype=np.int64)
        self._guide = self.objective.terms
        if not self._guide.any():  # levels that join many labels are climbed last
            sizes = np.maximum(self.lattice.sizes, 1).astype(np.float64)
            self._guide = np.log(sizes[:, :1]) - np.log(sizes)
        self._rises = [  # what each step up costs; none leads on from the top
            [*np.diff(costs[:height]).tolist(), np.inf]
            for costs, height in zip(self._guide, self._heights, strict=True)
        ]

    def go(self) -> bool:
        """Search; give whether the best node was proved to be the best."""
        top = tuple(int(height) - 1 for height in self._heights)
        self._look(top)
        low = self._rule_out_by_few_keys(top)
        if self.n_nodes > 1:
            self._descend(self._chain(low), lambda levels: self._look(levels)[0])
        if self.n_nodes > self.budget:  # the proof may not be had: what is found had better be good
            self._improve()
        front: Any = kernels.lattice.frontier()
        while True:
            limits = (self._worth(), _PASSED * self.budget)
            front, node, score, _ = kernels.lattice.next_node(
                front, self.objective.terms, self._heights, (self._marks, self._tops), limits
            )
            if node == kernels.lattice.NONE_BETTER:
                self.bound = np.inf if self.best is None else self.best.score
                return True
            if node == kernels.lattice.TOO_MANY or self.looked_at >= self.budget:
                self.bound = score if node < 0 or not front.size[0] else min(score, float(front.scores[0]))
                return False
            levels = self._levels(node)
            if levels not in self._seen:
                if self.judge.rules_out:
                    self._descend(self._chain(levels), lambda levels: not self._look(levels)[1])
                else:
                    self._look(levels)
            if self._bounds and levels in self._seen:
                bound = self.objective.lower_bound(self.roll_up.at(levels).classes)
                if bound > score:
                    kernels.lattice.raise_bounds(front, self._heights, np.asarray(levels), bound)
            self.run.tell(self.title, self.looked_at, min(self.budget, self.n_nodes))

    def _rule_out_by_few_keys(self, top: tuple[int, ...]) -> tuple[int, ...]:
        """The lowest level that each key allows, whatever the others show; pairs of keys are tried too.

        Where all others are at the top there are few classes, and what fails there fails at all nodes below
        (Incognito). Of few combinations of values every node has few classes: all levels may be allowed.
        """
        if not self.judge.rules_out or len(self.lattice.counts) < _MANY_COMBINATIONS:
            return (0,) * len(top)
        low = list(top)
        for key in range(len(top)):
            chain = [(*top[:key], level, *top[key + 1 :]) for level in range(top[key] + 1)]
            self._look(chain[0])  # the others are joined from its classes
            low[key] = self._descend(chain, lambda levels: not self._look(levels)[1])[key]
        self.roll_up.keep_below(low)
        for pair in combinations(range(len(top)), 2):
            self._look(tuple(low[key] if key in pair else level for key, level in enumerate(top)))
        return tuple(low)

    def node_states(self) -> dict[tuple[int, ...], NodeState]:
        """What is known of every node, by its levels; only for lattices whose nodes are marked one by one."""
        known = {node: "met" if allowed else "failed" for node, (allowed, _) in self._seen.items()}
        out = self._marks.reshape(tuple(self._heights))
        found: dict[tuple[int, ...], NodeState] = {}
        for levels in product(*map(range, self.lattice.heights)):
            unseen = "ruled out" if out[levels] else "not looked at"
            found[levels] = cast("NodeState", known.get(levels, unseen))
        if self.best is not None:
            found[self.best.node.levels] = "optimum"
        return found

    @property
    def _bounds(self) -> bool:
        """Whether the objective has bounds that only classes tell."""
        return not self.objective.terms.any()

    def _worth(self) -> float:
        """The score above which no node can be better."""
        return (
            np.inf
            if self.best is None
            else self.best.score + FLOAT_TOLERANCE * max(1.0, abs(self.best.score))
        )

    def _levels(self, node: int) -> tuple[int, ...]:
        return tuple(int(level) for level in np.unravel_index(node, tuple(self._heights)))

    def _chain(self, levels: tuple[int, ...]) -> list[tuple[int, ...]]:
        """A way from a node to the top that climbs what costs least first."""
        here, chain = list(levels), [levels]
        steps = [(self._rises[key][level], key) for key, level in enumerate(here)]
        heapify(steps)
        for _ in range(int(self._heights.sum()) - len(here) - sum(here)):
            key = steps[0][1]
            here[key] += 1
            heapreplace(steps, (self._rises[key][here[key]], key))
            chain.append(tuple(here))
        return chain

    def _descend(
        self, chain: list[tuple[int, ...]], holds: Callable[[tuple[int, ...]], bool]
    ) -> tuple[int, ...]:
        """Look for the lowest node of a chain that something holds for, by halving."""
        low, high = 0, len(chain) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(chain[middle]) else (middle + 1, high)
        self._look(chain[low])
        return chain[low]

    def _improve(self) -> None:
        """Go from the best node to a better neighbour, one key lower or one lower and another higher."""
        keys, before = range(len(self._heights)), None
        while self.best is not None and self.best is not before:
            before = self.best
            for lower, higher in product(keys, [None, *keys]):
                levels = list(before.node.levels)
                levels[lower] -= 1
                if higher is not None:
                    levels[higher] += 1
                inside = all(0 <= level < height for level, height in zip(levels, self._heights, strict=True))
                if inside and higher != lower and self.looked_at < self.budget:
                    self._look(tuple(levels))

    def _look(self, levels: tuple[int, ...]) -> tuple[bool, bool]:
        """Whether a node needs no more suppressed than allowed, and whether none below does.

        The best that is allowed is kept.
        """
        if levels in self._seen:
            return self._seen[levels]
        self.looked_at += 1
        node = self.roll_up.at(levels)
        failing, hopeless = self.judge.failing(node, self.limit)
        suppressed = int(node.classes.counts[failing].sum())
        allowed = not hopeless and suppressed <= self.limit
        self._seen[levels] = allowed, hopeless
        if hopeless:
            self._rule_out(levels)
        elif allowed:
            self._consider(node, failing, suppressed)
        return allowed, hopeless

    def _consider(self, node: LatticeNode, failing: Flags, suppressed: int) -> None:
        score = self.objective.score(node.classes, failing)
        if score > self._worth():
            return
        found = BestNode(node, failing, score, suppressed, "none")
        best = self.best
        if (
            best is not None
            and score >= best.score - FLOAT_TOLERANCE * max(1.0, abs(score))
            and found.rank >= best.rank
        ):
            return
        leftover = self.judge.leftover(node, failing) if suppressed else "none"
        if leftover is not None:
            self.best = BestNode(node, failing, score, suppressed, leftover)

    def _rule_out(self, levels: tuple[int, ...]) -> None:
        """A node fails, and so do all below it."""
        if self._marks.size:
            below = tuple(slice(0, level + 1) for level in levels)
            self._marks.reshape(tuple(self._heights))[below] = 1
            return
        wanted = np.asarray(levels)
        self._tops = np.vstack([self._tops[~(self._tops <= wanted).all(axis=1)], wanted[None]])

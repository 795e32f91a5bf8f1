"""A tree of categories whose noisy counts are known: what it must be, and records drawn from it.

Each column but the root hangs on one other. Belief propagation gives all marginals of the model by two walks
along the tree; its potentials are moved until these fit the noisy counts (McKenna, Sheldon and Miklau 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sfumato.kernels.arrays import Floats, Ints

#: Steps of the fit, and the gain of the fit below which it ends.
_MOST_STEPS, _ENOUGH = 1_000, 1e-7


@dataclass(frozen=True)
class Measured:
    """Noisy counts of a column, or of the one it hangs on and itself [parent, child]; and their deviation."""

    counts: Floats
    deviation: float


@dataclass
class TreeModel:
    """``parents`` of the columns (−1 at the root), and the ``order`` in which each comes after its own."""

    sizes: Sequence[int]
    parents: Sequence[int]
    order: Sequence[int]
    total: float
    nodes: list[Floats] = field(default_factory=list)  # log-potentials of columns
    edges: dict[int, Floats] = field(default_factory=dict)  # and of each with its parent [parent, child]

    @classmethod
    def of(cls, sizes: Sequence[int], pairs: Sequence[tuple[int, int]], total: float) -> TreeModel:
        """The model of a tree in which everything is as likely."""
        parents, order = [-1] * len(sizes), [0]
        for column in order:  # grows while it is walked
            near = [a + b - column for a, b in pairs if column in {a, b}]
            for other in near:
                if other != parents[column]:
                    parents[other] = column
                    order.append(other)
        nodes = [np.zeros(size) for size in sizes]
        edges = {each: np.zeros((sizes[parents[each]], sizes[each])) for each in order[1:]}
        return cls(sizes, parents, order, total, nodes, edges)

    def marginals(
        self, nodes: Sequence[Floats], edges: dict[int, Floats]
    ) -> tuple[list[Floats], dict[int, Floats]]:
        """The chances of the values of each column, and of each with its parent, by belief propagation."""
        below, up = [each.copy() for each in nodes], {}
        for column in reversed(self.order[1:]):
            up[column] = _log_sums(edges[column] + below[column], axis=1)
            below[self.parents[column]] += up[column]
        whole, pairs = list(below), {}
        for column in self.order[1:]:
            joint = edges[column] + (whole[self.parents[column]] - up[column])[:, None]
            whole[column] = below[column] + _log_sums(joint, axis=0)
            pairs[column] = _chances(joint + below[column])
        return [_chances(each) for each in whole], pairs

    def fit(self, singles: Sequence[Measured], pairs: dict[int, Measured]) -> None:
        """Move the potentials until the marginals are nearest to what was measured, in its deviations."""
        aims = [(each.counts / self.total, (self.total / each.deviation) ** 2) for each in singles]
        joint = {
            key: (each.counts / self.total, (self.total / each.deviation) ** 2) for key, each in pairs.items()
        }
        largest = max([weight for _, weight in aims] + [weight for _, weight in joint.values()])
        length = 1.0 / largest
        loss, slopes = self._loss(self.nodes, self.edges, aims, joint)
        for _ in range(_MOST_STEPS):
            nodes = [each - length * slope for each, slope in zip(self.nodes, slopes[0], strict=True)]
            edges = {key: each - length * slopes[1][key] for key, each in self.edges.items()}
            found, fresh = self._loss(nodes, edges, aims, joint)
            if found > loss:
                length /= 2
                if length * largest < _ENOUGH:
                    return
                continue
            gain, loss, slopes, self.nodes, self.edges = loss - found, found, fresh, nodes, edges
            length *= 1.1
            if gain < _ENOUGH * loss:
                return

    def _loss(
        self,
        nodes: Sequence[Floats],
        edges: dict[int, Floats],
        aims: Sequence[tuple[Floats, float]],
        joint: dict[int, tuple[Floats, float]],
    ) -> tuple[float, tuple[list[Floats], dict[int, Floats]]]:
        own, pairs = self.marginals(nodes, edges)
        slopes = [weight * (each - aim) for each, (aim, weight) in zip(own, aims, strict=True)]
        steep = {key: joint[key][1] * (pairs[key] - joint[key][0]) for key in joint}
        loss = sum(float((each**2).sum()) / weight for each, (_, weight) in zip(slopes, aims, strict=True))
        loss += sum(float((steep[key] ** 2).sum()) / joint[key][1] for key in joint)
        return loss / 2, (slopes, steep)

    def drawn(self, records: int, rng: np.random.Generator) -> list[Ints]:
        """The codes of so many new records, column by column; counts are those expected but for rounding."""
        own, pairs = self.marginals(self.nodes, self.edges)
        codes = [np.zeros(0, dtype=np.int64)] * len(self.sizes)
        for column in self.order:
            parent = self.parents[column]
            if parent < 0:
                codes[column] = evenly(own[column][None], np.zeros(records, dtype=np.int64), rng)
            else:
                codes[column] = evenly(pairs[column], codes[parent], rng)
        return codes


def evenly(chances: Floats, given: Ints, rng: np.random.Generator) -> Ints:
    """Draw a code for each record by the row of chances that is given, in even steps within each row."""
    sums = chances.sum(axis=1, keepdims=True)
    rows = np.divide(chances, sums, out=np.full_like(chances, 1 / chances.shape[1]), where=sums > 0)
    heaps = np.cumsum(rows, axis=1)
    heaps /= heaps[:, -1:]
    mixed = rng.permutation(len(given))
    order = mixed[np.argsort(given[mixed], kind="stable")]
    counts = np.bincount(given, minlength=len(chances))
    starts = np.cumsum(counts) - counts
    at = given[order]
    shares = (np.arange(len(given)) - starts[at] + rng.random(len(chances))[at]) / np.maximum(counts[at], 1)
    codes = np.empty(len(given), dtype=np.int64)
    found = np.searchsorted((heaps + np.arange(len(heaps))[:, None]).ravel(), at + shares, side="right")
    codes[order] = np.clip(found - at * chances.shape[1], 0, chances.shape[1] - 1)
    return codes


def _log_sums(values: Floats, axis: int) -> Floats:
    top = values.max(axis=axis, keepdims=True)
    summed: Floats = np.log(np.exp(values - top).sum(axis=axis)) + top.squeeze(axis)
    return summed


def _chances(values: Floats) -> Floats:
    scaled: Floats = np.exp(values - values.max())
    scaled /= scaled.sum()
    return scaled

"""How a column is drawn anew from what others tell of it: by a tree, by a regression, or as it is.

A draw is always the number of a record of the original whose value is taken: so a model knows of a column
nothing but codes, and whatever a column holds can be drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, Self

import numpy as np

from sfumato import kernels
from sfumato.data.digest import BLOCK_RECORDS
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Bytes, Codes, Floats, Ints

if TYPE_CHECKING:
    from sfumato.kernels.cart import CartTree

By = Literal["cart", "regression", "sample"]

#: Values of a column with an order up to which they are told apart as classes, and not by their rank.
_FEW_VALUES = 20

#: What is added to the variance of each feature of a regression, so that redundant ones do no harm.
_RIDGE = 1e-6


@dataclass(frozen=True)
class ModelColumn:
    """A column as models see it: ``codes`` where it tells others (0: missing), and what is told of it.

    It is told as ``classes`` (0: missing) or, where it has many values in an order, as ``ranks`` from 0 to 1
    (NaN: missing).
    """

    name: str
    codes: Bytes
    nominal: bool
    classes: Codes | None
    ranks: Floats | None

    @classmethod
    def of(cls, table: Table, name: str) -> Self:
        """Code a column."""
        most = kernels.cart.CODES - 2
        if table.schema[name].kind is Kind.NOMINAL:
            classes = (table.codes(name).codes + 1).astype(np.int32)
            counts = np.bincount(classes)
            counts[0] = len(classes) + 1  # the missing keep their code
            places = np.empty(len(counts), dtype=np.int64)
            places[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
            # By how common they are: beyond what a tree can tell apart the rare ones are one.
            return cls(name, np.minimum(places, most + 1)[classes].astype(np.uint8), True, classes, None)
        ranks = kernels.ranks.midranks(table.numbers(name))
        present = ~np.isnan(ranks)
        distinct, places = np.unique(ranks[present], return_inverse=True)
        codes, shares = np.zeros(len(ranks), dtype=np.int64), (ranks - 0.5) / max(int(present.sum()), 1)
        many = len(distinct) > most
        codes[present] = 1 + (np.floor(shares[present] * most).astype(np.int64) if many else places)
        few = len(distinct) <= _FEW_VALUES
        return cls(
            name, codes.astype(np.uint8), False,
            codes.astype(np.int32) if few else None, None if few else shares,
        )  # fmt: skip


class ConditionalModel(Protocol):
    """What was fitted to a column."""

    def draw_donors(self, predictors: Bytes, rng: np.random.Generator) -> Ints:
        """A record of the original for each new one, whose codes are ``predictors`` uint8[d, m]."""


def fit_conditional_model(
    by: By, target: ModelColumn, predictors: Sequence[ModelColumn], rows: Ints, leaf: int
) -> ConditionalModel:
    """Fit a model to some records; in a column of ranks first to whether there is a value at all."""
    if by == "sample" or not predictors:
        return _RandomDonor(rows)
    model: type[_Cart | _LinearModel] = _Cart if by == "cart" else _LinearModel
    if target.classes is not None:
        return model.of(target.classes, None, predictors, rows, leaf)
    assert target.ranks is not None
    lacking = np.isnan(target.ranks)
    there = rows[~lacking[rows]]
    if not len(there):
        return _RandomDonor(rows)
    values = model.of(None, target.ranks, predictors, there, leaf)
    if len(there) == len(rows):
        return values
    return _Either(model.of(lacking.astype(np.int32), None, predictors, rows, leaf), values, lacking)


@dataclass(frozen=True)
class _RandomDonor:
    """Any record."""

    rows: Ints

    def draw_donors(self, predictors: Bytes, rng: np.random.Generator) -> Ints:
        n: int = predictors.shape[1]
        return self.rows[rng.integers(0, len(self.rows), n)]


@dataclass(frozen=True)
class _Either:
    """First whether the value is missing; the record whose value is taken only if it is not."""

    which: ConditionalModel
    values: ConditionalModel
    lacking: np.ndarray[tuple[int], np.dtype[np.bool_]]

    def draw_donors(self, predictors: Bytes, rng: np.random.Generator) -> Ints:
        which, values = self.which.draw_donors(predictors, rng), self.values.draw_donors(predictors, rng)
        return np.where(self.lacking[which], which, values)


@dataclass(frozen=True)
class _Cart:
    """One of the records in the leaf."""

    tree: CartTree

    @classmethod
    def of(
        cls,
        classes: Codes | None,
        ranks: Floats | None,
        predictors: Sequence[ModelColumn],
        rows: Ints,
        leaf: int,
    ) -> Self:
        """Grow the tree."""
        nominal = np.array([each.nominal for each in predictors])
        codes = np.stack([each.codes for each in predictors])
        return cls(kernels.cart.grow(codes, nominal, rows, classes=classes, numbers=ranks, leaf=leaf))

    def draw_donors(self, predictors: Bytes, rng: np.random.Generator) -> Ints:
        n: int = predictors.shape[1]
        found: Ints = kernels.cart.donors(self.tree, predictors, rng.random(n))
        return found


@dataclass(frozen=True)
class _LinearModel:
    """A linear model of normal scores, or linear discriminants of classes; ``rows`` in the target's order.

    ``features`` has, for each predictor, what each of its codes stands for. Classes begin in ``rows`` at
    ``starts``; of a single number there is one, and ``deviation`` is that around the model.
    """

    rows: Ints
    features: tuple[Floats, ...]
    slopes: Floats
    constants: Floats
    starts: Ints
    deviation: float

    @classmethod
    def of(
        cls,
        classes: Codes | None,
        ranks: Floats | None,
        predictors: Sequence[ModelColumn],
        rows: Ints,
        leaf: int,
    ) -> Self:
        """Fit it: both are one regression, of the scores or of indicators of the classes."""
        del leaf  # a regression has none
        features = tuple(_features(each, rows) for each in predictors)
        if ranks is not None:
            scores = _normal_scores(ranks[rows])[:, None]
            square, across, _ = _products(features, predictors, rows, scores)
            slopes: Floats = np.linalg.solve(square, across).astype(np.float64)
            explained = float((slopes * across).sum()) / len(rows)
            spread = np.sqrt(max(float((scores**2).mean()) - explained, 0.0))
            order = rows[np.argsort(ranks[rows], kind="stable")]
            return cls(order, features, slopes, np.zeros(1), np.array([0, len(rows)]), float(spread))
        assert classes is not None
        present, places = np.unique(classes[rows], return_inverse=True)
        square, _, sums = _products(features, predictors, rows, places=places, n_classes=len(present))
        counts = np.bincount(places, minlength=len(present))
        means = sums / counts[:, None]
        within = (square - (means * counts[:, None]).T @ means) / len(rows) + _RIDGE * np.eye(len(square))
        slopes = np.linalg.solve(within, means.T).astype(np.float64)
        constants = np.log(counts / len(rows)) - (means * slopes.T).sum(axis=1) / 2
        order, starts = rows[np.argsort(places, kind="stable")], np.concatenate([[0], np.cumsum(counts)])
        return cls(order, features, slopes, constants, starts, 0.0)

    def draw_donors(self, predictors: Bytes, rng: np.random.Generator) -> Ints:
        from scipy.special import ndtr

        n: int = predictors.shape[1]
        chosen, within, normals = rng.random(n), rng.random(n), rng.standard_normal(n)
        found = np.empty(n, dtype=np.int64)
        for start in range(0, len(found), BLOCK_RECORDS):
            block = slice(start, start + BLOCK_RECORDS)
            scores = _looked_up(self.features, predictors[:, block]) @ self.slopes + self.constants
            if self.deviation or len(self.starts) == 2:  # noqa: PLR2004  — one class: a number
                shares = ndtr(scores[:, 0] + self.deviation * normals[block])
                found[block] = np.minimum((shares * len(self.rows)).astype(np.int64), len(self.rows) - 1)
                continue
            chances = np.exp(scores - scores.max(axis=1, keepdims=True)).cumsum(axis=1)
            drawn = (chances < chosen[block, None] * chances[:, -1:]).sum(axis=1)
            sizes = np.diff(self.starts)[drawn]
            found[block] = self.starts[drawn] + np.minimum(
                (within[block] * sizes).astype(np.int64), sizes - 1
            )
        return self.rows[found]


def _features(column: ModelColumn, rows: Ints) -> Floats:
    """What each code of a predictor stands for, around 0: its normal score, or an indicator of it."""
    counts = np.bincount(column.codes[rows], minlength=kernels.cart.CODES).astype(np.float64)
    shares = counts / len(rows)
    there = np.flatnonzero(counts[1:]) + 1
    if column.nominal:
        table = np.eye(kernels.cart.CODES)[:, there[1:] if counts[0] == 0 else there]
    else:
        below = np.cumsum(counts) - counts - counts[0]
        present = max(len(rows) - counts[0], 1.0)
        scores = np.zeros(kernels.cart.CODES)
        scores[there] = _normal_scores((below[there] + counts[there] / 2) / present)
        table = np.column_stack([scores, np.eye(kernels.cart.CODES)[:, :1][:, : int(counts[0] > 0)]])
    centred: Floats = table - shares @ table
    return centred


def _normal_scores(shares: Floats) -> Floats:
    from scipy.special import ndtri

    scores: Floats = ndtri(np.clip(shares, 1e-9, 1 - 1e-9))
    return scores


def _looked_up(features: Sequence[Floats], predictors: Bytes) -> Floats:
    return np.hstack([table[codes] for table, codes in zip(features, predictors, strict=True)])


def _products(
    features: Sequence[Floats],
    predictors: Sequence[ModelColumn],
    rows: Ints,
    scores: Floats | None = None,
    *,
    places: Ints | None = None,
    n_classes: int = 0,
) -> tuple[Floats, Floats, Floats]:
    """Products of the features with each other and with scores, and their sums by class; block by block."""
    d = sum(table.shape[1] for table in features)
    square, across, sums = _RIDGE * len(rows) * np.eye(d), np.zeros((d, 1)), np.zeros((n_classes, d))
    for start in range(0, len(rows), BLOCK_RECORDS):
        part = rows[start : start + BLOCK_RECORDS]
        block = _looked_up(features, np.stack([each.codes[part] for each in predictors]))
        square += block.T @ block
        if scores is not None:
            across += block.T @ scores[start : start + BLOCK_RECORDS]
        if places is not None:
            np.add.at(sums, places[start : start + BLOCK_RECORDS], block)
    return square, across, sums

"""Rounding: each value is replaced by a nearby one from a small set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, Self

import numpy as np

from sfumato import kernels
from sfumato.core.block_method import Block, BlockMethod
from sfumato.core.method import ColumnMethod, ColumnView
from sfumato.core.params import PerColumn, param
from sfumato.core.randomness import RandomKey
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Floats, Values

#: A base nobody has chosen is near this share of the column's standard deviation.
_USUAL_SHARE = 0.1


class Rounding(ColumnMethod):
    r"""Round each value to a multiple of a base: the nearest, or at random with unbiased totals.

    A value :math:`x = b\,(l + f)`, with a whole number :math:`l` and :math:`0 \le f < 1`, lies between the
    multiples :math:`b\,l` and :math:`b\,(l + 1)` of the base :math:`b`, and becomes one of them:

    .. math::

        y = b\,(l + a), \qquad a \in \{0, 1\}, \quad a = 0 \text{ if } f = 0

    where for ``mode``

    - *nearest*: :math:`a = 1` if :math:`f > \tfrac{1}{2}`; from the middle to the even multiple;
    - *random*: :math:`P(a = 1) = f`, each value independently, so that :math:`E[y] = x`;
    - *controlled*: also :math:`P(a = 1) = f`, but drawn together by systematic selection: in the order of the
      values, ties in random order, :math:`a_i = \lfloor u + f_1 + \dots + f_i \rfloor - \lfloor u + f_1 +
      \dots + f_{i-1} \rfloor` with one uniform start :math:`u`. The total of the column becomes one of the
      two multiples next to it (zero-restricted controlled rounding).

    The base is :math:`b = c\,b_0`, where :math:`b_0` is the ``base`` given or else a round number (1, 2 or 5
    times a power of ten) near a tenth of the column's standard deviation, and :math:`c` is the
    ``coarseness``. With :math:`c \ne 1` the base is rounded to two digits, or to as many as :math:`b_0` has;
    for whole numbers it is whole.

    See Also
    --------
    MultivariateRounding : rounds several columns together, along their correlations.
    TopBottomCoding : hides the tails, which rounding does not.

    Notes
    -----
    **When to use.** Amounts whose exact figure identifies a person but of which only the size is needed. Give
    the base in the unit of the column and by column (``base = {income = 1000, age = 5}``); a search for a
    level then moves all bases in proportion.

    **Guarantees.** Every value shown is a multiple of the base, written in no more decimals than the base
    has; a value that is a multiple stays. No value moves by :math:`b` or more; by the nearest mode, by no
    more than :math:`b/2`. *Random* and *controlled* are unbiased. *Controlled*: the total of all values, and
    of all values up to any threshold, changes by less than :math:`b`, and not at all if it is a multiple; a
    step ``within`` strata keeps the totals of each. All this as far as the column's declared range and whole
    numbers allow: a multiple outside the range becomes the end of the range.

    **Risk to know.** Where values are sparse a rounded value is still unique: the largest income stays the
    largest. Two releases rounded at random reveal more than one, by their mean. Rules such as ``total =
    part_a + part_b`` are violated by rounding column by column; a plan's repair restores them.

    **Ties, missing, weights.** Ties stay ties in mode *nearest*; otherwise they may be separated. Missing
    values stay missing and count in no total. Weights are not used: totals are unweighted.

    **Cost.** :math:`O(n)` per column; *controlled* :math:`O(n \log n)`.

    Examples
    --------
    >>> incomes = ColumnView(Column("income", Kind.CONTINUOUS), np.array([1234.0, 1250, 1350, 990, -49]))
    >>> Rounding(base=100, mode="nearest").protect_column(incomes, np.random.default_rng(1)).tolist()
    [1200.0, 1200.0, 1400.0, 1000.0, 0.0]
    >>> controlled = Rounding(base=100).protect_column(incomes, np.random.default_rng(1))
    >>> float(incomes.values.sum()), float(controlled.sum()) in {4700.0, 4800.0}
    (4775.0, True)
    """

    name = "rounding"
    vetted = "brute-forced: property/test_rounding.py::test_every_value_is_a_multiple_next_to_its_own"
    family = "rounding and coding"
    title = "Rounding"
    analyst_note = (
        "Values are rounded: sums carry rounding error, differences below the rounding base mean nothing, "
        "and totals need not be the sum of their parts."
    )
    kinds = frozenset({Kind.CONTINUOUS})
    references = ("dalenius1981", "cox1987", "fellegi1975", "willenborg2001", "hundepool2012")
    cost = "n log n"

    base: PerColumn[float] | None = param(
        None,
        "Values are rounded to multiples of this; by default a round number near a tenth of the standard "
        "deviation.",
        ge=1e-9,
        le=1e15,
        symbol="b₀",
        hint="choose it in the unit of the column: 1000 for incomes, 5 for ages",
    )
    coarseness: float = param(
        1.0,
        "Factor by which every base is multiplied.",
        ge=1e-3,
        le=1e4,
        symbol="c",
        log=True,
        tune=(0.01, 100),
        drive=True,
        hint="1 takes the bases as they are; a search for a level moves it",
    )
    mode: Literal["controlled", "random", "nearest"] = param(
        "controlled",
        "To which of its two neighbouring multiples a value is rounded.",
        choices={
            "controlled": "At random, by distance, so that the total changes by less than a base.",
            "random": "At random, by distance, each value independently.",
            "nearest": "To the nearest.",
        },
    )

    def by_person(self) -> bool:
        """Each value is rounded by a draw of its own, or by none."""
        return self.mode != "controlled"

    def refuses(self, table: Table) -> str | None:
        """Refuse a base that would make fractions of whole numbers."""
        reason = super().refuses(table)
        if reason is not None or self.base is None:
            return reason
        for name in table.chosen:
            base = self.base[name]
            if base is not None and table.schema[name].integer and not float(base).is_integer():
                return (
                    f"`base` of {self.name} must be a whole number for `{name}`, which is declared to hold "
                    f"whole numbers, got: `{base}`"
                )
        return None

    def protect_column(self, column: ColumnView, rng: np.random.Generator) -> Values:
        """Round the values of one column."""
        between = kernels.rounding.RoundingCell.of(column.values, self.base_of(column))
        if self.mode == "nearest":
            up = between.nearer_up()
        elif self.mode == "random":
            up = rng.random(len(column)) < between.share
        else:
            order = rng.permutation(len(column))
            order = order[np.argsort(column.values[order], kind="stable")]
            up = np.empty(len(column), dtype=np.bool_)
            up[order] = kernels.rounding.turns(between.share[order], rng, margin=between.margin())
        rounded: Values = between.round_to_base(up)
        return rounded

    def base_of(self, column: ColumnView) -> float:
        """Find the base by which a column is rounded."""
        given = None if self.base is None else self.base[column.column.name]
        if given is not None and self.coarseness == 1:
            return given
        base = _usual_base(column.values) if given is None else given
        scaled = _to_digits(base * self.coarseness, max(2, _digits(base)))
        if np.all(column.values == np.rint(column.values)):
            return float(max(np.rint(scaled), 1.0))
        return scaled


def _usual_base(values: Floats) -> float:
    """Take 1, 2 or 5 times a power of ten, whichever is nearest in proportion to a tenth of the deviation."""
    scale = float(np.abs(values).max(initial=0.0))
    spread = float((values / scale).std()) * scale if scale > 0 else 0.0  # no square can overflow
    wanted = spread * _USUAL_SHARE
    # A constant up to the rounding of its mean has no deviation; then any base will do.
    wanted = min(max(wanted if spread > 1e-12 * scale else 1.0, 1e-9), 1e15)
    power = 10.0 ** np.floor(np.log10(wanted))
    choices = [_to_digits(digit * power, 1) for digit in (1, 2, 5, 10)]
    return min(choices, key=lambda choice: abs(np.log(choice / wanted)))


def _digits(number: float) -> int:
    return len(Decimal(repr(number)).normalize().as_tuple().digits)


def _to_digits(number: float, digits: int) -> float:
    return float(f"{number:.{digits}g}")


class MultivariateRounding(BlockMethod):
    r"""Round several columns together to the points of a lattice that follows their correlations.

    The columns are standardised and decorrelated, each record goes to the nearest point of a lattice of
    cubes, and the points are transformed back:

    .. math::

        z = R^{-1/2} D^{-1} (x - \mu), \qquad
        q_j = w \left( \left\lfloor \frac{z_j}{w} - o_j + \tfrac{1}{2} \right\rfloor + o_j \right), \qquad
        y = \mu + D\,R^{1/2} q

    where :math:`\mu`, :math:`D` and :math:`R` are the means, the standard deviations and the correlation
    matrix of the columns, :math:`w` is the ``width`` of a cell in standard deviations, and :math:`o` is the
    ``offset`` of the lattice: one uniform draw for each column, the same for all records, or 0, so that the
    mean is a point of it. :math:`y` is the rounding point nearest to :math:`x` in Mahalanobis distance. The
    symmetric root (Kessy, Lewin and Strimmer 2018, "ZCA-cor") keeps each direction as near as possible to
    its own column; without correlations the method rounds each column to a multiple of :math:`w` deviations.

    See Also
    --------
    Rounding : rounds column by column, to round numbers.
    Mdav : rounds to the means of groups of k.

    Notes
    -----
    **When to use.** Several correlated continuous columns that an intruder knows together. If columns are
    rounded one by one, a record of an unusual combination stays alone in its cell; cells along the
    correlations are filled more evenly, and no combinations arise that contradict the correlations.

    **Guarantees.** No record moves by more than :math:`w\sqrt{d}/2` in Mahalanobis distance, :math:`d`
    being the number of columns. With a random offset :math:`E[y] = x` for every record; as long as the cells
    are smaller than the spread of the data, covariances grow by about :math:`1 + w^2/12`. Columns that are
    sums of others stay so.

    **Risk to know.** Cells in the tails have few records: an outlier stays an outlier, so code the tails
    first. The values shown are not round numbers, and may leave a column's range. An intruder who knows means
    and covariances knows the lattice up to its offset.

    **Ties, missing, weights.** Equal records stay equal. Missing values stay missing; a record is rounded in
    the columns it has, by their part of the correlation matrix. That is over the records that have both
    values; if it is not positive, as may happen then, its eigenvalues are raised to the size of the most
    negative. Constants stay. Weights are not used.

    **Cost.** :math:`O(n)`, three passes.

    Examples
    --------
    >>> frame = pl.DataFrame({"height": [154.0, 190, 161, 175, 166, 174], "shoe": [36.0, 45, 38, 42, 39, 40]})
    >>> table = Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS) for name in frame.columns)))
    >>> release = MultivariateRounding(width=1, offset="mean").protect(table, Run(seed=1))
    >>> [(round(height), round(shoe)) for height, shoe in release.table.frame.rows()]
    [(152, 36), (188, 44), (160, 38), (168, 40), (170, 40), (172, 40)]
    """

    name = "multivariate-rounding"
    vetted = "brute-forced: unit/methods/test_rounding.py::test_multivariate_is_the_formula"
    family = "rounding and coding"
    title = "Multivariate rounding"
    analyst_note = (
        "Columns were rounded together: sums carry rounding error, and small differences mean nothing."
    )
    kinds = frozenset({Kind.CONTINUOUS})
    references = ("willenborg2001", "kessy2018")
    rounds = 2
    frozen_rounds = 2

    width: float = param(
        0.5,
        "Width of a cell of the lattice, in standard deviations.",
        ge=1e-6,
        le=1e3,
        symbol="w",
        log=True,
        tune=(0.01, 10),
        drive=True,
        hint="0.1 is light, from 4 on few points are left",
    )
    offset: Literal["random", "mean"] = param(
        "random",
        "Where the lattice lies.",
        choices={"random": "Anywhere, at random.", "mean": "With a point on the mean of all records."},
    )

    def by_person(self) -> bool:
        """The lattice is that of the first release, and draws nothing for a record."""
        return True

    def summarise(self, block: Block, summaries: Sequence[Any], chance: RandomKey) -> Any:
        """Find the means, then the covariances around them and where the lattice lies."""
        if not summaries:
            return kernels.moments.means_of(block.values)
        draws = [chance.rng(name, "offset").random() for name in block.names]
        offsets = np.array(draws) if self.offset == "random" else np.zeros(len(draws))
        return _RoundingLattice(kernels.moments.PairwiseMoments.of(block.values, summaries[0].mean), offsets)

    def protect_block(self, block: Block, summaries: Sequence[Any], chance: RandomKey) -> Floats:  # noqa: ARG002
        """Carry the records of one block to the lattice and back."""
        lattice: _RoundingLattice = summaries[1]
        means, deviations = lattice.moments.means(), np.sqrt(lattice.moments.variances())
        scales = np.where(deviations > 0, deviations, 1.0)
        correlation = _definite(lattice.moments.covariance() / np.outer(scales, scales))
        protected = block.values.copy()
        for columns, rows in kernels.outlyingness.patterns(~np.isnan(block.values)):
            part = correlation[np.ix_(columns, columns)]
            inverse = kernels.moments.inverse_root(part)
            root = part @ inverse  # no direction comes in that the inverse has left out
            here = np.ix_(rows, columns)
            spots = ((block.values[here] - means[columns]) / scales[columns]) @ inverse
            offsets = lattice.offsets[columns]
            points = self.width * (np.floor(spots / self.width - offsets + 0.5) + offsets)
            protected[here] = means[columns] + (points @ root) * scales[columns]
        return protected


def _definite(correlation: Floats) -> Floats:
    """Raise eigenvalues to the size of the most negative one, which only missing values bring about.

    That size tells how well the small ones are known. Set to 0 they would carry all records onto a plane.
    """
    eigenvalues, vectors = np.linalg.eigh(correlation)
    raised = np.maximum(eigenvalues, -eigenvalues.min(initial=0.0))
    return (vectors * raised) @ vectors.T  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _RoundingLattice:
    """What the blocks know of the lattice: the moments of all records, and the offsets drawn first."""

    moments: Any
    offsets: Floats

    def merge(self, other: Self) -> Self:
        return type(self)(self.moments.merge(other.moments), self.offsets)

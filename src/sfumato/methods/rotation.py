"""Rotation: records become mixtures of records, or columns of columns; what is computed from angles stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sfumato import kernels
from sfumato.core.method import Gives, Method, Randomness, with_matrix
from sfumato.core.params import param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Floats, Ints

#: Fewer records cannot be turned: the only mixtures of two that keep the variance are the two themselves.
_MIN_RECORDS = 3

#: Numbers drawn at a time, so that the planes of all groups need not be held at once. It changes no result.
_DRAWS_AT_ONCE = 1_000_000


class RotationNoise(Method):
    r"""Mix each record with others at random, keeping means and covariances exactly.

    Random orthogonal matrix masking: the records are put at random into groups of :math:`g`, and each group
    :math:`X` (a matrix of :math:`g` records) becomes

    .. math::

        Y = T X, \qquad T^\top T = I, \quad T \mathbf{1} = \mathbf{1}

    so that sums, and sums of products, do not change. :math:`T` rotates by the angle :math:`\theta` in random
    planes that are orthogonal to each other and to :math:`\mathbf{1}`, as many as possible. For odd :math:`g`
    that is

    .. math::

        y_i = \bar x + \cos\theta\,(x_i - \bar x) + \sin\theta \sum_k J_{ik}\,x_k

    where :math:`\bar x` is the mean of the group and :math:`J` a random skew-symmetric matrix: noise made of
    the other records, with :math:`\tan^2\theta` for the ratio :math:`\gamma` of Kim's.

    See Also
    --------
    KimNoise : normal noise, with covariances kept in expectation or exactly.
    CorrelatedNoise : keeps correlations only.

    Notes
    -----
    **When to use.** Regressions, factor analyses and everything else that is computed from means and
    covariances should give the same numbers on the release as on the original.

    **Guarantees.** Means and the covariance matrix of the protected columns are those of the original up to
    rounding, and so they are in any set of whole groups; columns that satisfy a linear equation still do. For
    odd :math:`g` the covariance of a column with its original is, within groups, :math:`\cos\theta` times its
    variance. Where the schema declares a range or whole numbers, clipping and rounding keep this only
    approximately.

    **Risk to know.** Each release has new noise: an intruder with several releases of the same data averages
    the noise away. Release once. Small angles leave records close to their original values. The means of
    subgroups are not kept; to keep them, protect within strata, of which none may have one or two records.
    Distributions become more normal, and values may leave their range. An intruder who knows all other
    records of a group can solve for the last one, so do not publish the groups.

    **Ties, missing, weights.** Ties are broken apart. Constants stay. Missing values stay missing, and
    records are grouped with those that lack the same columns. Records whose pattern of missing values is
    shared by fewer than three are rotated column by column, which keeps their means and variances but not
    their covariances. Columns with only one or two values are refused. Weights are not used, and weighted
    moments are not kept.

    **Cost.** :math:`O(n\,g^2)`.

    Examples
    --------
    >>> frame = pl.DataFrame({"pay": [10.0, 20.0, 40.0, 30.0, 90.0], "rent": [4.0, 9.0, 8.0, 9.0, 20.0]})
    >>> table = Table(frame, Schema((Column("pay", Kind.CONTINUOUS), Column("rent", Kind.CONTINUOUS))))
    >>> turned = RotationNoise(angle=60).protect(table, Run(seed=1)).table.frame
    >>> bool(np.allclose(np.cov(turned.to_numpy().T), np.cov(frame.to_numpy().T)))
    True
    """

    name = "rotation-noise"
    vetted = "brute-forced: property/test_noise.py::test_rotation_keeps_moments"
    synonyms = ("ROMM", "random orthogonal matrix masking")
    family = "noise"
    title = "Random rotation (ROMM)"
    analyst_note = (
        "Means and covariances of all records hold exactly; distributions, ranks and figures of subgroups do "
        "not."
    )
    kinds = frozenset({Kind.CONTINUOUS})
    references = ("ting2008", "hundepool2012")
    cost = "n g²"

    angle: float = param(
        20.0,
        "Angle by which records are rotated.",
        gt=0,
        le=90,
        unit="°",
        symbol="θ",
        log=True,
        tune=(0.1, 90),
        drive=True,
        hint="at 45 half of every variance is other records'; at 90 nothing of the record itself is left",
    )
    size: int = param(
        11,
        "Number of records that are mixed with each other.",
        ge=3,
        le=101,
        unit="records",
        symbol="g",
        hint="odd numbers turn every direction; the last group takes what is left over",
        advanced=True,
    )

    def refuses(self, table: Table) -> str | None:
        """Refuse columns in which there are too few values to mix."""
        counts = {name: int(np.count_nonzero(~table.missing(name))) for name in table.chosen}
        few = ", ".join(f"{count} in `{name}`" for name, count in counts.items() if 0 < count < _MIN_RECORDS)
        reason = super().refuses(table)
        if reason is None and few:
            reason = f"{self.name} must have three records or more with a value, got: {few}"
        return reason

    def protect(self, table: Table, run: Run) -> Release:
        """Turn the records of each pattern of missing values among themselves."""
        if not len(table):
            return Release.unchanged(table)
        values = table.matrix(table.chosen)
        centre = kernels.moments.means_of(values).mean
        turned = self._rotate_records(values - centre, table.chosen, run) + centre
        return Release.record_by_record(with_matrix(table, table.chosen, turned))

    def _rotate_records(self, values: Floats, names: Sequence[str], run: Run) -> Floats:
        """Turn centred records, each among those that have the same columns."""
        tick, turned = run.ticker(self.title), values.copy()
        missing, lonely = np.isnan(values), list[Ints]()
        for columns, rows in kernels.outlyingness.patterns(~missing):
            if len(rows) < _MIN_RECORDS:
                lonely.append(rows)
                continue
            place, key = np.ix_(rows, columns), np.packbits(missing[rows[0]]).tobytes()
            turned[place] = self._rotate_groups(
                values[place], run.rng("groups", key if missing.any() else b""), tick
            )
        if lonely:
            self._rotate_rare_patterns(turned, np.concatenate(lonely), names, run)
        return turned

    def _rotate_rare_patterns(self, values: Floats, rows: Ints, names: Sequence[str], run: Run) -> None:
        """Turn, one column at a time, the records whose pattern of missing values too few share."""
        for column, name in enumerate(names):
            present = np.flatnonzero(~np.isnan(values[:, column]))
            pool = np.intersect1d(rows, present)
            rng = run.rng("lonely", name)
            if 0 < len(pool) < _MIN_RECORDS:  # ask some others in: `refuses` saw to it that there are enough
                others = np.setdiff1d(present, pool)
                pool = np.concatenate([pool, rng.choice(others, _MIN_RECORDS - len(pool), replace=False)])
            if len(pool):
                values[pool, column] = self._rotate_groups(values[pool, column][:, None], rng, _untold)[:, 0]

    def _rotate_groups(
        self, values: Floats, rng: np.random.Generator, tick: Callable[[int, int], None]
    ) -> Floats:
        """Deal records into groups and turn each; what is left over joins the last."""
        n = len(values)
        order, mixed = rng.permutation(n), np.empty_like(values)
        last = max(n // self.size - 1, 0) * self.size
        groups = order[:last].reshape(-1, self.size)
        at_once = max(1, _DRAWS_AT_ONCE // self.size**2)
        for start in range(0, len(groups), at_once):
            some = groups[start : start + at_once]
            mixed[some] = rotate_groups(values[some], np.radians(self.angle), rng)
            tick(start * self.size, n)
        rest = order[None, last:]
        mixed[rest] = rotate_groups(values[rest], np.radians(self.angle), rng)
        tick(n, n)
        return mixed


class PairRotation(Method):
    r"""Rotate pairs of columns by an angle, keeping the distances between records.

    Each column is put in standard deviations from its mean, :math:`z = (x - \bar x) / s`; the columns are
    taken in pairs, in the order of their names, and each pair becomes

    .. math::

        \begin{pmatrix} z_1' \\ z_2' \end{pmatrix} =
        \begin{pmatrix} \cos\theta & \sin\theta \\ -\sin\theta & \cos\theta \end{pmatrix}
        \begin{pmatrix} z_1 \\ z_2 \end{pmatrix}

    where :math:`\theta` is the angle. The last of an odd number of columns is rotated with the first one,
    after that was rotated. The values are then shown in the units of their columns, :math:`\bar x + s z'`.

    See Also
    --------
    RotationNoise : mixes records, not columns; keeps means and covariances.

    Notes
    -----
    **When to use.** To reproduce the literature on clustering of rotated data, or where recipients are bound
    by contract: clusters, nearest neighbours and everything else that is computed from distances stay.

    **Guarantees.** The distance between any two complete records is that of the original, where a column
    counts in the standard deviations that it has in the original; means are unchanged. Where the schema
    declares a range or whole numbers, clipping and rounding keep this only approximately. With correlation
    :math:`\rho` of the pair, a column differs from its original by a variance of
    :math:`2 (1 - \cos\theta)(1 \mp \rho \sin\theta)\,s^2`.

    **Risk to know.** It hides little. All records are mapped alike: an intruder who knows the values of one
    or two people more than there are columns solves for the map, and then maps anyone; so do the principal
    axes of a similar table. Measures of linkage find the map and compare by it, so their scores stay near
    those of the original. Do not publish the angle, and do not rely on it.

    **Ties, missing, weights.** Records that are equal in all columns stay equal. Constants stay, and are in
    no pair. Missing values stay missing; the other value of the pair is rotated as if the missing one were
    the mean, so distances of such records are not kept. Weights are not used.

    **Cost.** :math:`O(n)`.

    Examples
    --------
    >>> frame = pl.DataFrame({"pay": [10.0, 20.0, 40.0, 30.0, 90.0], "rent": [4.0, 9.0, 8.0, 9.0, 20.0]})
    >>> table = Table(frame, Schema((Column("pay", Kind.CONTINUOUS), Column("rent", Kind.CONTINUOUS))))
    >>> turned = PairRotation(angle=60).protect(table, Run(seed=1)).table.frame
    >>> before, after = (each.to_numpy() / frame.to_numpy().std(axis=0) for each in (frame, turned))
    >>> bool(np.isclose(np.linalg.norm(before[0] - before[4]), np.linalg.norm(after[0] - after[4])))
    True
    """

    name = "pair-rotation"
    vetted = "brute-forced: unit/methods/test_pair_rotation.py::test_distances_and_means_hold"
    synonyms = (
        "rotation-based transformation", "RBT", "rotation perturbation", "geometric data transformation",
        "rotation", "rotation noise",
    )  # fmt: skip
    family = "noise"
    title = "Rotation of pairs of columns"
    analyst_note = (
        "Pairs of columns were rotated: distances between records hold, in the standard deviations that the "
        "columns had; single values, correlations and distributions do not."
    )
    kinds = frozenset({Kind.CONTINUOUS})
    references = ("oliveira2004", "liu2006distance")
    gives = Gives(kept=("linear",))
    randomness = Randomness(stochastic=False)

    angle: float = param(
        45.0,
        "Angle by which each pair of columns is rotated.",
        gt=0,
        le=90,
        unit="°",
        symbol="θ",
        log=True,
        tune=(0.1, 90),
        drive=True,
        hint="small angles leave values close to their original ones",
    )

    def refuses(self, table: Table) -> str | None:
        """Refuse tables in which no two columns vary."""
        reason = super().refuses(table)
        if reason is None and len(table) and len(_varying(table)) < 2:  # noqa: PLR2004
            reason = f"{self.name} must be given two columns that vary, got: {len(_varying(table)) or 'none'}"
        return reason

    def protect(self, table: Table, run: Run) -> Release:  # noqa: ARG002  — no chance is used
        """Rotate pair after pair, in standard deviations."""
        if not len(table):
            return Release.unchanged(table)
        names = _varying(table)
        values = table.matrix(names)
        centre = kernels.moments.means_of(values).mean
        sizes = np.nanmax(np.abs(values - centre), axis=0)
        scaled = (values - centre) / sizes  # no square overflows
        units = np.sqrt(np.nanmean(scaled**2, axis=0))
        turned = np.nan_to_num(scaled / units)
        cosine, sine = np.cos(np.radians(self.angle)), np.sin(np.radians(self.angle))
        for first in range(0, len(names), 2):
            pair = [first, (first + 1) % len(names)]
            turned[:, pair] = turned[:, pair] @ np.array([[cosine, -sine], [sine, cosine]])
        return Release.record_by_record(with_matrix(table, names, centre + turned * units * sizes))


def _varying(table: Table) -> tuple[str, ...]:
    """The chosen columns that have two different values at least."""
    numbers = {name: table.numbers(name) for name in table.chosen}
    present = {name: each[~np.isnan(each)] for name, each in numbers.items()}
    return tuple(name for name, each in present.items() if len(each) and each.min() < each.max())


def rotate_groups(groups: Floats, angle: float, rng: np.random.Generator) -> Floats:
    """Turn the records of each group (float64[groups, records, columns]) in random planes.

    The planes are orthogonal to each other and to the vector of ones: sums and sums of products over a
    group stay. Of an even number of records one direction is left as it is.
    """
    n_groups, size, _ = groups.shape
    planes = (size - 1) // 2
    draws = rng.standard_normal((n_groups, size, 2 * planes))
    basis, upper = np.linalg.qr(draws - draws.mean(axis=1, keepdims=True))
    # LAPACK prefers one sign, which would turn all groups of three in one direction.
    basis *= np.sign(np.diagonal(upper, axis1=1, axis2=2))[:, None, :]
    first, second = basis[:, :, :planes], basis[:, :, planes:]
    along_first, along_second = first.transpose(0, 2, 1) @ groups, second.transpose(0, 2, 1) @ groups
    loss, gain = np.cos(angle) - 1.0, np.sin(angle)
    turned: Floats = (
        groups
        + first @ (loss * along_first - gain * along_second)
        + second @ (gain * along_first + loss * along_second)
    )
    return turned


def _untold(_done: int, _total: int) -> None:
    """Tell nobody: these are few."""

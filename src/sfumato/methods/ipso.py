"""IPSO: numbers drawn from a regression, so that its coefficients and covariances are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np

from sfumato import kernels
from sfumato.core.method import with_matrix
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags, Floats
from sfumato.methods._conditional_method import GivenMethod, indicators

#: With fewer complete records what keeps a covariance is the records themselves, or their mirror image.
_FEWEST_COMPLETE = 3

#: Directions with less than this share of the largest singular value are said by the others already.
_REDUNDANT = 1e-10

Keeps = Literal["the model", "coefficients", "covariances"]


class _Ipso(GivenMethod):
    """Draws the residuals of a regression on the given columns; ``keeps`` says what they keep."""

    nature = "synthetic"
    kinds = frozenset({Kind.CONTINUOUS})
    references = ("burridge2003", "muralidhar2008")

    keeps: ClassVar[Keeps] = "the model"

    def refuses(self, table: Table) -> str | None:
        """Refuse what would give records back: too few that have all values."""
        reason = super().refuses(table)
        if reason is not None or not len(table):
            return reason
        complete = int(_complete(table, _present(table)).sum())
        if _present(table) and complete < _FEWEST_COMPLETE:
            return f"{self.name} must have {_FEWEST_COMPLETE} records with all values, got: {complete}"
        return None

    def protect(self, table: Table, run: Run) -> Release:
        """Fit the regression, and draw around it."""
        names = _present(table)
        if not len(table) or not names:
            return Release.unchanged(table)
        run.tell(self.title, 0, len(names))
        model = _IpsoRegression.fit(table, names, self.given_columns(table))
        normals = np.stack([run.rng(name).standard_normal(len(table)) for name in names], axis=1)
        drawn = model.draw(normals, self.independence, self.keeps)
        run.tell(self.title, len(names), len(names))
        return Release.record_by_record(with_matrix(table, names, drawn))


class IpsoA(_Ipso):
    r"""Generate columns from their regression on other columns (IPSO-A).

    The protected columns :math:`X` are regressed on the ``given`` ones :math:`S` and a constant, and drawn
    from the fitted model:

    .. math::

        Y = S\hat B + \sqrt{1 - \delta^2}\,E + \delta\,Z, \qquad
        E = X - S\hat B, \quad Z_i \sim N(0, \hat\Sigma), \quad \hat\Sigma = \frac{E^\top E}{n - q}

    where :math:`q` is the number of linearly independent columns of :math:`S`. With an independence
    :math:`\delta` of 1, the default, this is the method of Burridge: nothing specific to a record is left.
    Smaller :math:`\delta` keep part of it, which is our extension. Without given columns the records are
    draws from a normal distribution that has the means and covariances of the original.

    See Also
    --------
    IpsoB : keeps the coefficients of the regression exactly.
    IpsoC : keeps its residual covariances as well.
    DataShuffling : keeps the values of each column exactly, and the correlations about.

    Notes
    -----
    **When to use.** Amounts that are analysed by linear models, where exact copies of the estimates would
    suggest too much certainty. To protect all columns, take two steps: the first half given the second, then
    the second given the first.

    **Guarantees.** In expectation means, coefficients and covariances are those of the original.

    **Risk to know.** What the given columns reveal about the protected ones stays in the release. Columns
    that are nearly functions of each other stay so: the draws then lie where the original records lie, and an
    intruder who takes the nearest record comes close to the right values without knowing whose they are. The
    distribution is a normal one around the regression: skewness, ties at zero and bounds are lost, and values
    that the schema forbids are brought to the nearest that it allows.

    **Ties, missing, weights.** Ties are separated. The regression is fitted to the records that have all
    protected values; missing ones stay missing, and the values beside them are drawn from the same model. A
    missing given value counts as an average one. Given nominal columns enter as indicators, at most 200.
    There must be ten records for each given column or indicator. Weights are not used.

    **Cost.** :math:`O(n\,d^2)` for :math:`d` columns and indicators.

    Examples
    --------
    >>> from sfumato.core.params import Columns
    >>> age = np.arange(20.0, 60.0)
    >>> frame = pl.DataFrame({"age": age, "income": 10 * age})
    >>> columns = (Column("age", Kind.CONTINUOUS), Column("income", Kind.CONTINUOUS))
    >>> table = Table(frame, Schema(columns), targets=("income",))
    >>> drawn = IpsoA(given=Columns(["age"])).protect(table, Run(seed=1)).table.frame
    >>> bool(np.allclose(drawn["income"], frame["income"]))  # age tells all of income
    True
    """

    name = "ipso-a"
    synonyms = ("IPSO", "information preserving statistical obfuscation")
    family = "synthetic data"
    title = "Draws around a regression (IPSO-A)"
    analyst_note = (
        "Values are drawn from a regression: its coefficients hold in expectation, and other relations are "
        "lost. One copy understates the uncertainty of an estimate."
    )


class IpsoB(_Ipso):
    r"""Generate columns from their regression on others, with its coefficients kept exactly (IPSO-B).

    As `IpsoA`, but the part of the draws that the given columns :math:`S` explain is removed:

    .. math::

        Y = S\hat B + \sqrt{1 - \delta^2}\,E + \delta\,(I - H)\,Z, \qquad H = S (S^\top S)^{-1} S^\top

    so that a regression of :math:`Y` on :math:`S` gives :math:`\hat B`. Without given columns :math:`S` is a
    constant, and the means are kept.

    See Also
    --------
    IpsoA : lets the coefficients vary as those of a new sample would.
    IpsoC : keeps the residual covariances as well.

    Notes
    -----
    **When to use.** Amounts whose regressions on released columns must come out as published, while standard
    errors need not.

    **Guarantees.** Means and coefficients of the regression on the given columns are those of the original,
    to rounding, over the records that have all values and where no value had to be brought back into a
    declared range or to a whole number.

    **Risk to know.** As in `IpsoA`. Exact coefficients make the release look more certain than a sample.

    **Ties, missing, weights.** As in `IpsoA`.

    **Cost.** :math:`O(n\,d^2)` for :math:`d` columns and indicators.

    Examples
    --------
    >>> frame = pl.DataFrame({"income": [10.5, 20.0, 39.5, 30.0, 60.0]})
    >>> release = sfumato.protect(frame, IpsoB(), columns=["income"], seed=1)
    >>> round(release.data["income"].mean(), 9)
    32.0
    """

    name = "ipso-b"
    vetted = "brute-forced: property/test_ipso.py::test_coefficients_are_kept_given_columns_numbers_and_words"
    synonyms = ("IPSO", "information preserving statistical obfuscation")
    family = "synthetic data"
    title = "Draws around a regression, coefficients kept (IPSO-B)"
    analyst_note = (
        "Values are drawn from a regression whose coefficients hold exactly; other relations are lost. One "
        "copy understates the uncertainty of an estimate."
    )
    keeps = "coefficients"


class IpsoC(_Ipso):
    r"""Generate columns from their regression on others, with coefficients and covariances exact (IPSO-C).

    As `IpsoB`, but the draws are made orthogonal to each other too, and then given the covariances of the
    residuals:

    .. math::

        Y = S\hat B + U \Lambda^{1/2} V^\top, \qquad E^\top E = V \Lambda V^\top, \quad
        U^\top U = I, \quad U^\top S = 0

    where :math:`U` is the orthonormal matrix nearest to
    :math:`\sqrt{1-\delta^2}\, E V \Lambda^{-1/2} + \delta\,(I - H) Z / \sqrt{n - q}` with standard normal
    :math:`Z`. Directions in which nothing varies are left out, so that redundant columns do no harm. Without
    given columns it is the unconditional form: draws that have the means and covariances of the original.

    See Also
    --------
    IpsoB : keeps only the coefficients.
    DataShuffling : keeps the values of each column exactly, and the correlations about.

    Notes
    -----
    **When to use.** Amounts whose linear models must come out as published, estimates and standard errors.

    **Guarantees.** Means, coefficients and covariances, with the given columns too, are those of the
    original, to rounding, over the records that have all values and where no value had to be brought back
    into a declared range or to a whole number.

    **Risk to know.** As in `IpsoA`. On the 1,080 records and 13 columns of the set Census, each half given
    the other, distance links about 35 records to their own; the literature reports 415 and, by assignment,
    1,074, which random draws do not give, and which suggest that residuals were kept.

    **Ties, missing, weights.** As in `IpsoA`.

    **Cost.** :math:`O(n\,d^2)` for :math:`d` columns and indicators.

    Examples
    --------
    >>> frame = pl.DataFrame({"x": [1.5, 2.5, 4.0, 3.0, 6.0], "y": [1.5, 3.0, 2.0, 5.5, 9.0]})
    >>> drawn = sfumato.protect(frame, IpsoC(), columns=["x", "y"], seed=1).data
    >>> bool(np.allclose(np.cov(drawn.to_numpy().T), np.cov(frame.to_numpy().T)))
    True
    """

    name = "ipso-c"
    vetted = "brute-forced: property/test_ipso.py::test_c_keeps_means_and_covariances"
    synonyms = ("IPSO", "information preserving statistical obfuscation")
    family = "synthetic data"
    title = "Draws around a regression, covariances kept (IPSO-C)"
    analyst_note = (
        "Values are drawn from a regression: coefficients and covariances hold exactly; shapes, tails and "
        "other relations are lost."
    )
    keeps = "covariances"


def _present(table: Table) -> list[str]:
    return [name for name in table.chosen if not table.missing(name).all()]


def _complete(table: Table, names: list[str]) -> Flags:
    """Which records have all values of the columns."""
    lacking = [table.missing(name) for name in names]
    return ~np.any(lacking, axis=0) if lacking else np.ones(len(table), dtype=np.bool_)


@dataclass(frozen=True)
class _IpsoRegression:
    """Columns in units of their own size, and their regression on the given ones.

    ``basis`` are orthonormal columns, over the complete records, that span a constant and the given ones.
    """

    values: Floats
    sizes: Floats
    centre: Floats
    complete: Flags
    basis: Floats
    expected: Floats

    @classmethod
    def fit(cls, table: Table, names: list[str], given: tuple[str, ...]) -> Self:
        """Fit it to the records that have all values."""
        values, complete = table.matrix(names), _complete(table, names)
        sizes = np.nanmax(np.abs(values), axis=0)
        sizes = np.where(sizes > 0, sizes, 1.0)  # so that no square is too large, or too small to be seen
        values = values / sizes
        centre = values[complete].mean(axis=0)
        values = values - centre
        basis = _basis(_design(table, given), complete)
        expected = basis @ (basis[complete].T @ values[complete])
        return cls(values, sizes, centre, complete, basis, expected)

    def draw(self, normals: Floats, independence: float, keeps: Keeps) -> Floats:
        """New values, of standard normals for each of them."""
        own, left = self.values - self.expected, np.sqrt(1 - independence**2)
        free = max(int(self.complete.sum()) - self.basis.shape[1], 1)
        residuals = own[self.complete]
        squares = residuals.T @ residuals
        noise = normals @ kernels.moments.symmetric_root(squares / free)
        made = left * own + independence * noise
        if keeps == "coefficients":
            made[self.complete] = left * residuals + independence * self._residuals_of_draws(
                noise[self.complete]
            )
        elif keeps == "covariances":
            made[self.complete] = self._rotate_residuals(residuals, normals[self.complete], independence)
        whole: Floats = (self.expected + made + self.centre) * self.sizes
        return whole

    def _residuals_of_draws(self, draws: Floats) -> Floats:
        """Take out of draws, once more for rounding, what the given columns tell of them."""
        basis = self.basis[self.complete]
        for _ in range(2):
            draws = draws - basis @ (basis.T @ draws)
        return draws

    def _rotate_residuals(self, residuals: Floats, normals: Floats, independence: float) -> Floats:
        """Residuals of the same covariances in another, random direction."""
        vectors, lengths, directions = np.linalg.svd(residuals, full_matrices=False)
        signs = kernels.moments.canonical_signs(directions)
        vectors, directions = vectors * signs, directions * signs[:, None]
        varies = lengths > _REDUNDANT * max(lengths.max(initial=0.0), np.finfo(float).tiny)
        free = max(len(residuals) - self.basis.shape[1], 1)
        fresh = self._residuals_of_draws(normals[:, : int(varies.sum())]) / np.sqrt(free)
        mixed = self._residuals_of_draws(
            np.sqrt(1 - independence**2) * vectors[:, varies] + independence * fresh
        )
        left, _, right = np.linalg.svd(mixed, full_matrices=False)
        turned: Floats = ((left @ right) * lengths[varies]) @ directions[varies]
        return turned


def _design(table: Table, given: tuple[str, ...]) -> Floats:
    """The given columns as numbers, each in deviations of its own; 0, the average, where missing."""
    parts = [np.empty((len(table), 0))]
    for name in given:
        if table.schema[name].kind is Kind.NOMINAL:
            codes = table.codes(name)
            parts.append(indicators(codes.codes, len(codes.categories)))
        else:
            parts.append(table.numbers(name)[:, None])
    design = np.hstack(parts)
    sizes = np.nanmax(np.abs(np.nan_to_num(design)), axis=0, initial=0.0)
    design = design / np.where(sizes > 0, sizes, 1.0)
    present = np.maximum((~np.isnan(design)).sum(axis=0), 1)
    centred: Floats = np.nan_to_num(design - np.nansum(design, axis=0) / present)
    return centred


def _basis(design: Floats, complete: Flags) -> Floats:
    """Orthonormal columns over the complete records that span a constant and the design."""
    part = design[complete]
    centred = design - part.mean(axis=0)
    spread = np.sqrt((centred[complete] ** 2).sum(axis=0))
    centred = centred[:, spread > 0] / spread[spread > 0]
    _, lengths, directions = np.linalg.svd(centred[complete], full_matrices=False)
    spans = lengths > _REDUNDANT * lengths.max(initial=0.0)
    turned = centred @ directions[spans].T / lengths[spans]
    basis: Floats = np.column_stack([np.full(len(design), 1 / np.sqrt(len(part))), turned])
    return basis

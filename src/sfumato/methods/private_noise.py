"""Differentially private noise on every number."""

from __future__ import annotations

import math
from typing import Any

from sfumato.core.budget import Spending, rho_of_epsilon
from sfumato.core.method import set_protected_values
from sfumato.core.params import param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Ints
from sfumato.methods import _opendp
from sfumato.methods._private import ByColumnMethod, Grid, grids_of, spending


class _PrivateNoise(ByColumnMethod):
    """Adds noise of a mechanism to each column, which gets a share of the budget by its weight."""

    kinds = frozenset({Kind.CONTINUOUS})

    def protect(self, table: Table, run: Run) -> Release:
        """Put each column on its grid, draw the noise, and bring it back into the declared bounds."""
        grids, protected, steps = grids_of(table, self.domain), table, []
        spent = _opendp.shares(self._budget(), [self.weight[name] for name in table.chosen])
        for (name, grid), share in zip(grids.items(), spent, strict=True):
            there = ~self.kept_missing(table, name)
            places = grid.places(table.numbers(name)[there])
            tick = run.ticker(f"{self.title}: {name}")
            noisy = self._noisy(places, grid.size, share, tick) if grid.size else places
            protected = protected.with_values(name, self._series(table, name, grid, noisy))
            steps.append(self._step(name, share))
        release = Release.record_by_record(protected, notes=self.remarks(table))
        return self.with_budget(release, table, steps, delta=getattr(self, "delta", 0.0))

    def _series(self, table: Table, name: str, grid: Grid, places: Ints) -> Any:
        fresh = grid.series(places, table.schema[name], table.frame.schema[name])
        return set_protected_values(table, name, fresh) if len(fresh) < len(table) else fresh.alias(name)

    def _budget(self) -> float:
        raise NotImplementedError

    def _noisy(self, places: Ints, size: int, share: float, tick: _opendp.Tick) -> Ints:
        """Places with noise that hides the whole ``size`` of the grid, in all records of a person."""
        raise NotImplementedError

    def _step(self, name: str, share: float) -> Spending:
        raise NotImplementedError


class PrivateLaplace(_PrivateNoise):
    r"""Add Laplace noise to every value, calibrated to give ε-differential privacy.

    A value between the declared bounds :math:`a_j` and :math:`b_j` gets noise of the scale

    .. math::

        y_{ij} = x_{ij} + \mathrm{Lap}\left(\frac{c\,(b_j - a_j)}{\varepsilon_j}\right), \qquad
        \varepsilon_j = \varepsilon\,\frac{w_j}{\sum_l w_l}

    where :math:`c` is the largest number of records of a person and :math:`w_j` the weight of the column. Any
    value of a person could have been any other: the probability of a release differs by a factor of at most
    :math:`e^\varepsilon`. Whole numbers get discrete noise, others are put on a grid of about a millionth of
    their range first. Values that leave the declared bounds are brought back to them.

    See Also
    --------
    PrivateGaussian : less noise in many columns, for a small δ.
    PrivateMicroaggregation : noise on means of groups, which is less.
    PrivateMarginals : new records from noisy counts, which keep much more of the data.

    Notes
    -----
    **When to use.** To see what differential privacy of every single value costs, and for data collected by a
    party that is not trusted. For analysts `PrivateMarginals` is nearly always better.

    **Guarantees.** ε-differential privacy of the protected columns, where neighbours are tables in which
    one record, or all of one person, has other values. The noise is OpenDP's, and no seed repeats it.

    **Risk to know.** Unprotected columns are released unchanged. Bounds from the data (``domain`` data: 0 to
    1.5 times the maximum) and an ε chosen from the data disclose information about the data: neither gives a
    guarantee. The same ε can mean different disclosure risks: measure ``dbrl`` and ``cm2`` too. Each release
    spends budget again.

    **Ties, missing, weights.** Ties are broken apart. Missing values visibly stay missing; with ``missing``
    hidden they count as the middle of the range. Sampling weights are not used.

    **Cost.** :math:`O(n)`, about 10 µs for a value.

    Examples
    --------
    >>> ages = Column("age", Kind.CONTINUOUS, integer=True, lower=0, upper=120)
    >>> table = Table(pl.DataFrame({"age": [20, 35, 61]}), Schema((ages,))).aimed_at(["age"])
    >>> release = PrivateLaplace(epsilon=1).apply(table, Run(seed=1))
    >>> release.table.frame["age"].is_between(0, 120).all(), release.budget.total().epsilon
    (True, 1.0)
    """

    name = "private-laplace"
    vetted = "proved: proofs/budgets.md"
    synonyms = ("Laplace mechanism",)
    title = "Private Laplace noise"
    analyst_note = (
        "Laplace noise was added, on a scale that follows from the published ε: subtract its variance. Means "
        "hold, except where values were clipped at the bounds."
    )
    family = "differential privacy"
    references = ("dwork2006", "ghosh2012", "muralidhar2020")

    def _budget(self) -> float:
        return self.epsilon

    def _noisy(self, places: Ints, size: int, share: float, tick: _opendp.Tick) -> Ints:
        return _opendp.laplace(places, sensitivity=size * self.records, epsilon=share, tick=tick)

    def _step(self, name: str, share: float) -> Spending:
        return spending(f"discrete Laplace noise on {name}", "replace", epsilon=share)


class PrivateGaussian(_PrivateNoise):
    r"""Add Gaussian noise to every value, calibrated to give (ε, δ)-differential privacy.

    A value between the declared bounds :math:`a_j` and :math:`b_j` gets noise of the standard deviation

    .. math::

        \sigma_j = (b_j - a_j) \sqrt{\frac{c}{2 \rho_j}}, \qquad
        \rho_j = \rho\,\frac{w_j}{\sum_l w_l}

    where :math:`c` is the largest number of records of a person, :math:`w_j` the weight of the column, and
    :math:`\rho` gives (ε, δ) by the conversion of Canonne, Kamath and Steinke. :math:`\rho` adds up over
    columns, so that noise grows with the square root of their number. Whole numbers get discrete noise,
    others are put on a grid of about a millionth of their range first. Values that leave the declared bounds
    are brought back to them.

    See Also
    --------
    PrivateLaplace : no δ, and less noise in few columns.
    PrivateMarginals : new records from noisy counts, which keep much more of the data.

    Notes
    -----
    **When to use.** Instead of Laplace noise where there are many columns: from about 15, at
    an ε of 1 and a δ of a millionth.

    **Guarantees.** ρ-zero-concentrated differential privacy of the protected columns, and so (ε, δ), where
    neighbours are tables in which one record, or all of one person, has other values.

    **Risk to know.** As for `PrivateLaplace`. With probability δ the guarantee may fail.

    **Ties, missing, weights.** Ties are broken apart. Missing values visibly stay missing; with ``missing``
    hidden they count as the middle of the range. Sampling weights are not used.

    **Cost.** :math:`O(n)`, about 13 µs for a value.

    Examples
    --------
    >>> ages = Column("age", Kind.CONTINUOUS, integer=True, lower=0, upper=120)
    >>> table = Table(pl.DataFrame({"age": [20, 35, 61]}), Schema((ages,))).aimed_at(["age"])
    >>> release = PrivateGaussian(epsilon=1, delta=1e-5).apply(table, Run(seed=1))
    >>> f"{release.budget.total(1e-5).epsilon:.3f}"
    '1.000'
    """

    name = "private-gaussian"
    vetted = "proved: proofs/budgets.md"
    synonyms = ("Gaussian mechanism",)
    title = "Private Gaussian noise"
    analyst_note = (
        "Gaussian noise was added, on a scale that follows from the published budget: subtract its variance. "
        "Means hold, except where values were clipped at the bounds."
    )
    family = "differential privacy"
    references = ("bun2016", "canonne2020", "muralidhar2020")

    delta: float = param(
        1e-6, "Probability with which the guarantee may fail.", ge=1e-15, le=0.1, symbol="δ", log=True,
        hint="well below 1 / (number of records)",
    )  # fmt: skip

    def _budget(self) -> float:
        return rho_of_epsilon(self.epsilon, self.delta)

    def _noisy(self, places: Ints, size: int, share: float, tick: _opendp.Tick) -> Ints:
        return _opendp.gaussian(places, sensitivity=size * math.sqrt(self.records), rho=share, tick=tick)

    def _step(self, name: str, share: float) -> Spending:
        return spending(f"discrete Gaussian noise on {name}", "replace", rho=share)

"""Combine the estimates of several synthetic copies into one, with the variance that drawing adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sfumato.errors import ParameterError

#: Whether all values were drawn, or only some of them.
Drawn = Literal["full", "partial"]


@dataclass(frozen=True)
class CombinedEstimate:
    """An estimate from several copies: its variance, and the degrees of freedom of its t distribution.

    ``between`` is how much the copies differ, ``within`` the mean of the variances that each gives.
    """

    estimate: float
    variance: float
    degrees: float
    between: float
    within: float

    @property
    def error(self) -> float:
        """The standard error."""
        return float(np.sqrt(self.variance))

    def interval(self, confidence: float = 95.0) -> tuple[float, float]:
        """The interval that holds the truth with so many per cent confidence."""
        from scipy.stats import t

        if not 0 < confidence < 100:  # noqa: PLR2004  — per cent
            raise ParameterError(f"`confidence` must be above 0 and below 100, got: `{confidence}`")
        far = float(t.ppf(0.5 + confidence / 200, self.degrees)) * self.error
        return self.estimate - far, self.estimate + far


def combine(
    estimates: Sequence[float], variances: Sequence[float], kind: Drawn = "partial"
) -> CombinedEstimate:
    r"""Combine the same estimate from :math:`m` synthetic copies, each with its variance.

    With the mean :math:`\bar q`, the variance between copies :math:`b` and the mean variance within,
    :math:`\bar u`:

    .. math::

        T_{\mathrm{partial}} = \bar u + \frac{b}{m}, \quad
        \nu = (m - 1)\left(1 + \frac{m \bar u}{b}\right)^2, \qquad
        T_{\mathrm{full}} = \left(1 + \frac{1}{m}\right) b - \bar u, \quad
        \nu = (m - 1)\left(1 - \frac{m \bar u}{(m + 1)\,b}\right)^2

    (Reiter 2003; Raghunathan, Reiter and Rubin 2003). The latter is for copies of a whole population drawn
    with a fresh fit each, and may be negative: then :math:`\bar u` is taken, which is on the safe side.

    Parameters
    ----------
    estimates, variances
        Of each copy: an estimate, and the square of its standard error.
    kind
        Whether all values were drawn (``"full"``) or only some (``"partial"``). Copies that one fit was drawn
        from, as `Synthesis` makes them, follow ``"partial"`` even if all their columns are drawn.

    Examples
    --------
    >>> found = combine([10.0, 12.0, 11.0], [4.0, 4.0, 4.0])
    >>> found.estimate, round(found.variance, 3), round(found.degrees)
    (11.0, 4.333, 338)
    """
    points, within = np.asarray(estimates, dtype=np.float64), np.asarray(variances, dtype=np.float64)
    if points.ndim != 1 or points.shape != within.shape or len(points) < 2:  # noqa: PLR2004
        got = f"{points.size} and {within.size}"
        raise ParameterError(f"an estimate and a variance must be given for at least two copies, got: {got}")
    if not np.isfinite(points).all() or not (np.isfinite(within).all() and (within >= 0).all()):
        raise ParameterError("estimates must be numbers, and variances numbers from 0 up")
    if kind not in {"full", "partial"}:
        raise ParameterError(f"`kind` must be full or partial, got: `{kind}`")
    m, mean = len(points), float(points.mean())
    inside, between = float(within.mean()), float(points.var(ddof=1))
    if kind == "partial":
        degrees = (m - 1) * (1 + m * inside / between) ** 2 if between else np.inf
        return CombinedEstimate(mean, inside + between / m, degrees, between, inside)
    variance = (1 + 1 / m) * between - inside
    if variance <= 0:
        return CombinedEstimate(mean, inside, m - 1.0, between, inside)
    freedom = (m - 1) * (1 - m * inside / ((m + 1) * between)) ** 2
    return CombinedEstimate(mean, variance, freedom, between, inside)

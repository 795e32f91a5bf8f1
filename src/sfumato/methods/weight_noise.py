"""Noise on weights: each moves by at most a share of itself, and their total stays."""

from __future__ import annotations

import numpy as np

from sfumato.core.method import ColumnMethod, ColumnView
from sfumato.core.params import param
from sfumato.data.schema import Kind
from sfumato.kernels.arrays import Floats
from sfumato.methods.multiplicative_noise import SPREAD


class WeightNoise(ColumnMethod):
    r"""Multiply sampling weights by random factors around one, and keep their total.

    .. math::

        y_i = x_i (1 + \beta u_i), \qquad u_i = \frac{v_i - c\,\operatorname{sign}(x_i)}{m}, \qquad
        c = \frac{\sum_j x_j v_j}{\sum_j |x_j|}

    where :math:`v_i \sim U(-1, 1)` are independent and :math:`m \ge 1` is the smallest number by which
    :math:`|u_i| \le 1`. As :math:`\sum_i x_i u_i = 0`, the total is that of the original.

    See Also
    --------
    UniformNoise : factors of mean one, by which a total is kept in expectation only.
    IndividualRanking : means of groups of weights.

    Notes
    -----
    **When to use.** Weights that tell a stratum, or a household whose members all have the same, are to leave
    with each record, and estimates of totals should stay. Name the column of weights in the step. Weights
    that no step names leave as means of classes, which tell less: prefer these. ``within`` keeps the total of
    each stratum.

    **Guarantees.** :math:`|y_i - x_i| \le \beta\,|x_i|`, so positive weights stay positive. The total stays,
    up to rounding (of whole weights, if declared as such, to whole numbers).

    **Risk to know.** A weight is found within the bound: strata whose weights differ by more are still told
    apart, and so are households if few have similar weights; ``regrouped`` finds what rejoins records. The
    weight of a single record with one is not changed, since the total is. Two releases with new noise tell
    more than one: release once.

    **Ties, missing, weights.** Equal weights get different noise. Missing weights stay missing, and count in
    no total.

    **Cost.** :math:`O(n)`.

    Examples
    --------
    >>> weights = ColumnView(Column("weight", Kind.CONTINUOUS), np.array([120.0, 120, 80, 400]))
    >>> noisy = WeightNoise(spread=0.1).protect_column(weights, np.random.default_rng(1))
    >>> round(float(noisy.sum()), 9), bool((abs(noisy / weights.values - 1) <= 0.1).all())
    (720.0, True)
    """

    name = "weight-noise"
    vetted = (
        "brute-forced: unit/methods/test_weight_noise.py::"
        "test_the_total_stays_and_no_weight_moves_farther_than_its_share"
    )
    synonyms = ("noise on weights", "add noise to weight", "noise for weight")
    family = "noise"
    title = "Noise on weights"
    analyst_note = "Weights carry noise: their total stays, and totals of groups are off by chance."
    kinds = frozenset({Kind.CONTINUOUS})
    references = ("willenborg2001", "hundepool2012")

    spread: float = param(0.1, "Largest change of a weight, as a share of it.", **SPREAD)

    def protect_column(self, column: ColumnView, rng: np.random.Generator) -> Floats:
        """Draw the changes, and take out what they would change of the total."""
        values = np.asarray(column.values, dtype=np.float64)
        drawn = rng.uniform(-1.0, 1.0, len(values))
        size = np.abs(values).sum()
        if not size > 0:
            return values
        drawn -= (values @ drawn) / size * np.sign(values)
        noisy: Floats = values * (1.0 + self.spread * drawn / max(1.0, float(np.abs(drawn).max())))
        return noisy

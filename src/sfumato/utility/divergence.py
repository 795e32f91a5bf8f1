"""Divergence: how surprised somebody would be by the original who had only seen the release."""

from __future__ import annotations

from itertools import combinations
from typing import Literal

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Score
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.kernels.arrays import Floats
from sfumato.utility._binnings import BinnedColumn, bin_column, binning_of, joint_masses, reading_of
from sfumato.utility._marginals import read_both
from sfumato.utility.distributions import BinnedDistance, both_masses

#: Categories of a column that stand alone in tables of two columns; the rarest beyond share one.
_MAX_CATEGORIES = 100


class KullbackLeiblerDivergence(BinnedDistance):
    r"""Extra bits per record to encode the original by the release's table of counts.

    .. math::

        D(P \,\|\, Q) = \sum_c p_c \log_2 \frac{p_c}{q_c}, \qquad
        p_c = (1 - \epsilon)\, \hat p_c + \frac{\epsilon}{K}, \quad
        \epsilon = \frac{\alpha K}{n + \alpha K}

    where :math:`\hat p_c` (and :math:`\hat q_c` alike) is the share of cell :math:`c` in the original
    (release), :math:`K` the number of cells that occur in either table and :math:`n` the number of records
    of the smaller one. A cell that is empty in the release only would make the divergence infinite;
    :math:`\alpha` pseudo-records (``prior``) in each cell of both tables keep it finite, and two equal
    tables have a divergence of 0 all the same.

    A cell is a category, or one of the ``bins`` into which numbers are cut at the original's quantiles; with
    ``dimension="two"`` a pair of them, of each pair of columns.

    See Also
    --------
    jensen-shannon : bounded, symmetric, and finite without pseudo-records.
    total-variation : the share of records that would have to change.

    Notes
    -----
    **How to read it.** 0 means the same shares in all cells, and only that. There is no upper
    bound, but at most :math:`\log_2(n / \alpha + K)` can come out. It is not symmetric: what the release
    has lost of the original is dear, what it has made up is cheap. ``by_column`` shows where; in tables of
    two, the mean of those with the column.

    **Doubt.** Exact, for categories; of numbers only what crosses a bin's edge is seen, so 0 does not mean
    that they are the same. It depends on ``prior`` where cells are empty. In tables of two only the 100
    most frequent categories of a column stand alone. Each table counts by its own weights, if it has any.
    Generalised values are spread evenly over what they stand for, or (not nominal ones) taken at their
    middle.

    **Missing.** A category of its own.

    **Cost.** Sorting the original's columns, and a pass for each table of two.

    Examples
    --------
    >>> schema = Schema((Column("x", Kind.NOMINAL),))
    >>> original = Table(pl.DataFrame({"x": ["a", "a", "a", "b"]}), schema)
    >>> released = Table(pl.DataFrame({"x": ["a", "a", "b", "b"]}), schema)
    >>> evidence = Evidence(original, Release.of(released))
    >>> score = KullbackLeiblerDivergence(prior=0.0001).score(evidence, Run(seed=1))
    >>> round(score.value, 3)  # 3/4 · log2(3/2) + 1/4 · log2(1/2)
    0.189
    """

    name = "kl-divergence"
    vetted = "brute-forced: unit/utility/test_divergence.py::test_what_scipy_says"
    synonyms = ("relative entropy", "KL")
    family = "distributions"
    title = "Kullback–Leibler divergence"
    bounds = (0.0, np.inf)
    references = ("kullback1951", "kifer2006")

    prior: float = param(
        0.5,
        "Pseudo-records in each cell of both tables, for those that are empty.",
        ge=1e-9,
        le=1000,
        symbol="α",
    )
    dimension: Literal["one", "two"] = param(
        "one",
        "Which tables of counts are compared.",
        choices={"one": "Those of each column.", "two": "Those of each pair of columns."},
    )

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse one column alone where tables of two are asked for."""
        reason = super().refuses(evidence)
        if reason is None and self.dimension == "two" and len(self.columns(evidence)) < 2:  # noqa: PLR2004
            reason = f"{self.name} with dimension=two needs two columns, and there is one"
        return reason

    def distance(self, evidence: Evidence, name: str) -> float:
        """The divergence of one column."""
        masses = both_masses(evidence, name, bins=self.bins, generalised=self.generalised)
        return self._divergence(*masses, evidence)

    def _divergence(self, first: Floats, second: Floats, evidence: Evidence) -> float:
        assert evidence.protected is not None
        n = min(len(evidence.original), len(evidence.protected))
        return divergence(first, second, pseudo_records=self.prior, n=n)

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Compare the columns one by one, or two by two."""
        assert evidence.protected is not None
        empty = not len(evidence.original) or not len(evidence.protected)
        if self.dimension == "one" or empty:
            return super().measure(evidence, run)
        names = self.columns(evidence)
        sides = {name: self._common_bins(evidence, name) for name in names}
        weights = evidence.original.weights, evidence.protected.weights
        found: dict[str, list[float]] = {name: [] for name in names}
        pairs = list(combinations(names, 2))
        for one, other in run.track(self.title, pairs, len(pairs)):
            cells = ((sides[one][side], sides[other][side], weights[side]) for side in (0, 1))
            masses = [joint_masses(*each).ravel() for each in cells]
            value = self._divergence(masses[0], masses[1], evidence)
            found[one].append(value)
            found[other].append(value)
        by_column = {name: float(np.mean(values)) for name, values in found.items()}
        together = np.mean if self.over == "mean" else np.max
        return Score(
            value=float(together(list(by_column.values()))),
            by_column=by_column,
            details={
                "columns": len(names),
                "columns_left_out": len(evidence.shared_columns) - len(names),
                "tables": len(pairs),
                "records": len(evidence.original),
                "released": len(evidence.protected),
            },
        )

    def _common_bins(self, evidence: Evidence, name: str) -> tuple[BinnedColumn, BinnedColumn]:
        """A column of both tables, in common bins."""
        assert evidence.protected is not None
        kind = evidence.original.schema[name].kind
        how = reading_of(kind, self.generalised)
        one, other = read_both(evidence.original, evidence.protected, name)
        both = one.distribution(how), other.distribution(how)
        binning = binning_of(*both, kind, bins=self.bins, most=_MAX_CATEGORIES)
        return bin_column(one, binning, how), bin_column(other, binning, how)


def divergence(first: Floats, second: Floats, *, pseudo_records: float, n: int) -> float:
    """Kullback–Leibler divergence in bits of two distributions over the same cells, kept finite."""
    occurring = (first > 0) | (second > 0)
    first, second = first[occurring], second[occurring]
    mixed = pseudo_records * len(first) / (n + pseudo_records * len(first))
    first, second = ((1 - mixed) * each + mixed / len(first) for each in (first, second))
    return max(float((first * np.log2(first / second)).sum()), 0.0)

"""Ambiguity: what a released record leaves open, as a number of possibilities or in bits."""

from __future__ import annotations

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Needs, Score
from sfumato.core.run import Run
from sfumato.data.generalised.cover import Cover
from sfumato.data.schema import COMPARABLE
from sfumato.kernels.arrays import Floats
from sfumato.utility._readings import Rows, by_original, n_left_out, pairs_of, spans_of
from sfumato.utility.generalisation import cells_of, rows_of

#: Beyond this power of 2 a number of combinations is no number any more.
_MAX_BITS = 1000.0


class Ambiguity(Measure):
    r"""Mean number of combinations of exact values that a released record may stand for.

    .. math::

        \frac{1}{n} \sum_{i=1}^{n} \prod_{j=1}^{m} |S_{ij}|

    where :math:`S_{ij}` are the values of the original column :math:`j` for which the released cell may
    stand: 1 for an exact cell, those within a range or below a label, and all of them for a wildcard.

    See Also
    --------
    non-uniform-entropy : in bits, by how likely the values are.

    Notes
    -----
    **How to read it.** 1 means that all released records are exact (though they need not be
    true: noise and swapping cost nothing here). The numbers grow fast, and with every column: it is made to
    compare releases of one original, and a few records that say little dominate it. ``details`` gives the
    mean in bits, which they do not; ``by_column`` is the mean number of values of each column,
    ``by_record`` the number of combinations of each record.

    **Doubt.** Exact, as far as the values of the original are all there can be. Above :math:`2^{1000}`
    there is no number for it. Where the original has weights, means are weighted.

    **Missing.** A value missing in the original counts as 1. One missing only in the release, a wildcard,
    and all values of a record that was left out may be any. Where records do not map, nobody can tell a
    suppressed value from one that never was there: all may be any.

    **Cost.** Sorting, for columns that hold ranges; a few passes for others.

    Examples
    --------
    >>> from sfumato.data.generalised.intervals import intervals
    >>> schema = Schema((Column("age", Kind.CONTINUOUS), Column("sex", Kind.NOMINAL)))
    >>> original = Table(pl.DataFrame({"age": [20, 30, 40, 60], "sex": ["f", "m", "m", "f"]}), schema)
    >>> ages = intervals([20, 20, 30, 60], [30, 30, 60, 60], name="age")
    >>> released = Table(pl.DataFrame([ages, pl.Series("sex", [None, "m", None, "f"])]), schema)
    >>> evidence = Evidence(original, Release.of(released, source_rows=np.arange(4)))
    >>> Ambiguity().score(evidence, Run(seed=1)).value  # 2·2, 2·1, 3·2 and 1·1
    3.25
    """

    name = "ambiguity"
    vetted = "brute-forced: property/test_losses.py::test_possibilities_and_bits_against_enumeration"
    family = "coarseness"
    title = "Ambiguity"
    aspect = "utility"
    better = "low"
    bounds = (1.0, np.inf)
    kinds = COMPARABLE
    references = ("nergiz2007thoughts",)
    cost = "n log n"
    needs = Needs(exact_original=True)

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Multiply the numbers of values, in bits."""
        released, sources, weights = rows_of(evidence)
        bits: Floats = np.zeros(1)
        by_column: dict[str, float] = {}
        names = self.columns(evidence)
        for name in run.track(self.title, names, len(names)):
            known, spans = cells_of(evidence, name, released, sources)
            if not known.any():
                continue
            assert evidence.protected is not None
            numbers, _ = spans_of(evidence.original, evidence.protected, name)
            counts = np.where(known, _possible(numbers, spans), 1.0)
            by_column[name] = float(np.average(counts, weights=weights))
            bits = bits + np.log2(counts)
        if not by_column:
            return Score.not_estimable("no released cell stands for a value of the original")
        if (most := float(bits.max())) > _MAX_BITS:
            return Score.not_estimable("a record may stand for more combinations than a number can count")
        return Score(
            value=max(float(np.average(2.0 ** (bits - most), weights=weights)) * 2.0**most, 1.0),
            by_column=by_column,
            by_record=None if sources is None else by_original(2.0**bits, sources, len(evidence.original)),
            details={
                "bits": float(np.average(bits, weights=weights)),
                "columns": len(by_column),
                "records": len(bits),
                "records_left_out": n_left_out(released),
                "weighted": "no" if weights is None else "yes",
            },
        )


def _possible(numbers: Floats, spans: Cover) -> Floats:
    """How many values of the original each cell may stand for, and 1 at least."""
    silent = spans.uninformative
    if spans.exact and not silent.any():
        return np.ones(len(silent))
    distinct = np.unique(numbers[~np.isnan(numbers)])
    if spans.sets is not None and spans.codes is not None:
        up_to = np.concatenate([[0], np.cumsum(np.isin(spans.sets.values, distinct))])
        of_label = up_to[spans.sets.starts[1:]] - up_to[spans.sets.starts[:-1]]
        counts = np.maximum(np.append(of_label, 1)[spans.codes], 1)
        return np.where(silent, max(len(distinct), 1), counts).astype(np.float64)
    if spans.exact:
        return np.where(silent, max(len(distinct), 1.0), 1.0)
    first = np.searchsorted(distinct, spans.lows)
    last = np.searchsorted(distinct, spans.highs, side="right")
    counts = np.where(spans.lows == spans.highs, 1, np.maximum(last - first, 1))
    return np.where(silent, max(len(distinct), 1), counts).astype(np.float64)


class NonUniformEntropy(Measure):
    r"""Share of the information in the values, in bits, that the release has lost.

    .. math::

        \frac{\sum_{ij} -\log_2 \Pr(x_{ij} \mid S_{ij})}{\sum_{ij} -\log_2 \Pr(x_{ij})}, \qquad
        \Pr(x \mid S) = \frac{|\{i' : x_{i'j} = x\}|}{|\{i' : x_{i'j} \in S\}|}

    where :math:`S_{ij}` are the values for which the released cell may stand, and frequencies are those of
    the original column. A frequent value in a range of rare ones is easily guessed, and costs little to
    generalise. A cell that does not stand for the true value says nothing true of it, and counts as if it
    were suppressed: so noise and swapping cost all that they change.

    See Also
    --------
    ambiguity : counts the values, whatever their frequency.
    generalised-information-loss : by the width of ranges.

    Notes
    -----
    **How to read it.** 0 means that every value can be told from the release, 1 that nothing
    beyond the frequencies of each column is left. ``details`` gives the bits lost per cell, ``by_column``
    the share lost in each column.

    **Doubt.** Exact. Columns count by the information they hold: one that hardly varies hardly counts, and
    one that does not vary not at all. Where the original has weights, frequencies and sums are weighted.

    **Missing.** A value missing in the original does not count. One missing only in the release, a
    wildcard, and all values of a record that was left out are lost altogether.

    **Cost.** A sort of each column.

    Examples
    --------
    >>> from sfumato.data.generalised.intervals import intervals
    >>> schema = Schema((Column("age", Kind.CONTINUOUS),))
    >>> original = Table(pl.DataFrame({"age": [20, 30, 40, 60]}), schema)
    >>> released = Table(pl.DataFrame([intervals([20, 20, 40, 60], [30, 30, 40, 60], name="age")]), schema)
    >>> evidence = Evidence(original, Release.of(released, source_rows=np.arange(4)))
    >>> NonUniformEntropy().score(evidence, Run(seed=1)).value  # 1 + 1 + 0 + 0 of 4 · 2 bits
    0.25
    """

    name = "non-uniform-entropy"
    vetted = "brute-forced: property/test_losses.py::test_possibilities_and_bits_against_enumeration"
    synonyms = ("normalised entropy", "entropy-based information loss")
    family = "coarseness"
    title = "Non-uniform entropy"
    aspect = "utility"
    better = "low"
    bounds = (0.0, 1.0)
    kinds = COMPARABLE
    references = ("gionis2009",)
    cost = "n log n"
    needs = Needs(mapping=True, exact_original=True)

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Sum up the bits that each cell has lost."""
        assert evidence.protected is not None
        released, sources = pairs_of(evidence)
        own = evidence.original.weights
        weights = np.ones(len(evidence.original)) if own is None else own
        of_pairs = weights[sources]
        lost_bits: Floats = np.zeros(len(of_pairs))
        all_bits: Floats = np.zeros(len(of_pairs))
        by_column: dict[str, float] = {}
        names = self.columns(evidence)
        for name in run.track(self.title, names, len(names)):
            numbers, spans = spans_of(evidence.original, evidence.protected, name)
            lost, held = _bits(numbers, sources, spans.take(released), weights)
            if (total := float((held * of_pairs).sum())) > 0:
                by_column[name] = min(float((lost * of_pairs).sum()) / total, 1.0)
            lost_bits, all_bits = lost_bits + lost, all_bits + held
        total = float((all_bits * of_pairs).sum())
        if total == 0:
            return Score.not_estimable("no column of the original varies")
        return Score(
            value=min(float((lost_bits * of_pairs).sum()) / total, 1.0),
            by_column=by_column,
            by_record=by_original(lost_bits, sources, len(evidence.original)),
            details={
                "bits_lost_per_cell": float(np.average(lost_bits, weights=of_pairs)) / len(names),
                "bits_per_cell": float(np.average(all_bits, weights=of_pairs)) / len(names),
                "columns": len(by_column),
                "records": len(of_pairs),
                "records_left_out": n_left_out(released),
                "weighted": "no" if evidence.original.weights is None else "yes",
            },
        )


def _bits(numbers: Floats, sources: Rows, spans: Cover, weights: Floats) -> tuple[Floats, Floats]:
    """The bits that each cell has lost, and those its original held; 0 where that has no value."""
    own, present = numbers[sources], ~np.isnan(numbers)
    known = present[sources]
    if not present.any():
        return np.zeros(len(own)), np.zeros(len(own))
    distinct, places = np.unique(numbers[present], return_inverse=True)
    masses = np.bincount(places, weights=weights[present], minlength=len(distinct)).astype(np.float64)
    sums = np.concatenate([[0.0], np.cumsum(masses)])
    mass = np.ones(len(numbers))
    mass[present] = masses[places]
    mass = mass[sources]
    held = np.where(known, np.log2(np.maximum(sums[-1] / mass, 1.0)), 0.0)
    if spans.exact:
        return np.where(spans.lows == own, 0.0, held), held
    among = np.where(spans.holds(own), _mass_of(spans, distinct, masses, sums), sums[-1])
    # An exact cell has the mass of its own value, whatever sums of many have rounded.
    among = np.where((spans.lows == own) & (spans.highs == own), mass, among)
    return np.where(known, np.minimum(np.log2(np.maximum(among / mass, 1.0)), held), 0.0), held


def _mass_of(spans: Cover, distinct: Floats, masses: Floats, sums: Floats) -> Floats:
    """How much of the original column lies in what each cell may stand for."""
    if spans.sets is None or spans.codes is None:
        first = np.searchsorted(distinct, spans.lows)
        last = np.searchsorted(distinct, spans.highs, side="right")
        return sums[last] - sums[first]
    sets = spans.sets
    place = np.minimum(np.searchsorted(distinct, sets.values), len(distinct) - 1)
    of_member = np.where(distinct[place] == sets.values, masses[place], 0.0)
    up_to = np.concatenate([[0.0], np.cumsum(of_member)])
    of_label = up_to[sets.starts[1:]] - up_to[sets.starts[:-1]]
    return np.append(of_label, sums[-1])[spans.codes]

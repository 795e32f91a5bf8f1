"""Knowledge gain: how far the class of somebody moves what was believed of their sensitive value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Score, Tells
from sfumato.core.run import Run
from sfumato.data.classes.classes import Counts
from sfumato.kernels.arrays import Floats
from sfumato.risk._key_measures import RECORD_LAWS, SensitiveMeasure, by_original, of_records


class KnowledgeGain(SensitiveMeasure):
    r"""How much, on average, an intruder learns about a sensitive value from a person's equivalence class.

    .. math::

        A_\mathrm{know} = \frac{1}{N} \sum_r \frac{1}{2} \sum_s \left| p_{C(r)}(s) - p(s) \right|

    where :math:`p(s)` is the share of the sensitive value :math:`s` in the whole table, which a release
    without any keys would tell, and :math:`p_C(s)` that in the class of records with the same keys. The worst
    sensitive column makes the score.

    See Also
    --------
    TCloseness : the largest such distance of a class.

    Notes
    -----
    **How to read it.** 0 means that the keys tell nothing; 1 that every class has a value that nobody else
    has. It counts what holds of everybody of these keys, too: `Inference` takes that off. ``accuracy_gain``
    is by how much more often a value drawn from the class is the right one than one drawn from the table.

    **Doubt.** Exact.

    **Missing.** Keys as in k-anonymity. A missing sensitive value is a value of its own.

    **Cost.** :math:`O(n \log n)`, one sparse count for each sensitive column.
    """

    name = "knowledge-gain"
    synonyms = ("adversarial knowledge gain",)
    title = "Knowledge gain"
    family = "attribute disclosure"
    better = "low"
    bounds = (0.0, 1.0)
    counts = replace(SensitiveMeasure.counts, laws=RECORD_LAWS)
    tells = Tells(record_sentence="its class changes the belief about its sensitive value by {:.3g} of 1")
    references = ("brickell2008",)

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002  — no chance is used
        """Compare each class with the whole table."""
        classes = self.classes(evidence)
        gains, accuracy = dict[str, Floats](), dict[str, float]()
        for name in self.sensitive_columns(evidence):
            counts = classes.counts(name)
            gains[name] = _distance_from_whole(counts)
            shares, of_all = _shares(counts)
            accuracy[name] = float((counts.counts * (shares - of_all)).sum() / counts.counts.sum())
        records = {name: of_records(classes, each) for name, each in gains.items()}
        by_column = {name: min(float(each.mean()), 1.0) for name, each in records.items()}
        worst = max(by_column, key=lambda name: by_column[name])
        return Score(
            value=by_column[worst],
            by_column=by_column,
            by_record=by_original(evidence, np.max(list(records.values()), axis=0), worst="high"),
            details={"classes": len(classes), "accuracy_gain": accuracy[worst]},
        )


def _shares(counts: Counts) -> tuple[Floats, Floats]:
    """The share of each entry's value in its class, and in the whole table."""
    of_values = np.bincount(counts.values, counts.counts)
    return counts.counts / counts.totals[counts.classes], (of_values / of_values.sum())[counts.values]


def _distance_from_whole(counts: Counts) -> Floats:
    """Half the sum of the differences of each class from the whole; of values it lacks, their share there."""
    shares, of_all = _shares(counts)
    size = len(counts.starts) - 1
    sums = np.bincount(counts.classes, np.abs(shares - of_all) - of_all, minlength=size)
    return np.clip((sums + 1) / 2, 0.0, 1.0)

"""Copula risk: who is unique in a population, by a model of how the keys go together.

Written from the paper of Rocher, Hendrickx and de Montjoye (2019) alone. The code that its authors published
says "patent pending": whoever uses this measure for business may want to ask whether that concerns them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Laws, Score, Status
from sfumato.core.run import Run
from sfumato.data.schema import Kind
from sfumato.kernels.arrays import Floats
from sfumato.risk._cells import CellMeasure, ContingencyCells
from sfumato.risk._key_measures import by_original, of_records
from sfumato.risk._latent_normal import LatentNormal, order_unordered_keys
from sfumato.risk._sampling import UNIQUE

#: So many people may have a value of a key that nobody else has: about as many of the population have one
#: that nobody of the sample has.
_MOST_NEW = 0.1


class CopulaRisk(CellMeasure):
    r"""Share of people who are unique in the population, estimated by a Gaussian copula of the keys.

    Each key is taken for a normal variable cut into its values by their frequencies, and all of them for
    jointly normal. The correlation of two keys is the one at which the model's mutual information is that of
    the sample. With the chance :math:`p` of a record's combination, and a population of :math:`N`,

    .. math::

        \xi = (1 - p)^{N-1}, \qquad \kappa = \frac{1 - (1 - p)^N}{N p}

    are the chances that the record is unique in the population, and that a match with it is right. The score
    is what the model expects of the first over its people or, if ``chance`` is *match*, of the second.

    See Also
    --------
    LogLinearRisk : by a model of counts, with a statistic of its bias.
    PopulationUniqueness : by the sizes of classes alone.

    Notes
    -----
    **How to read it.** Give the share of the population that was drawn (``fraction``), or its size; else
    sampling weights tell, by the mean of one over them. ``by_record`` is the chance of each record; who has a
    double in the sample is not unique. ``details`` has both expectations (``unique``, ``match``), and
    ``population_uniques``.

    **Doubt.** An estimate, *approximate*, and no better than the model: that keys go together as normal
    variables do, and that the sample has all values there are: *not-estimable* where more than a tenth of the
    people have a value of a key that nobody else has, and understated by about that share else. Nominal
    values are put into the order in which the keys go together most, others keep theirs. It has no interval,
    so no requirement can rely on it: ``simulate`` shows its bias on a population that is known. It depends on
    no chance: people of the model and integrals are taken on a fixed lattice.

    **Missing.** A missing key is a value of its own by default (``category``), before all others. At
    ``worst`` who lacks a key is unique. As ``any`` classes overlap, and the result is not estimable.

    **Units.** Where a column joins records, persons are in no one cell: not estimable.

    **Cost.** A few integrals for each pair of keys, and for each combination that occurs an integral of
    64 to 256 points in as many dimensions as there are keys.

    Examples
    --------
    >>> people = {"sex": ["f", "f", "m", "m"], "age": [30, 40, 30, 40]}
    >>> score = sfumato.assess(people, measures=["copula-risk(population_size=8)"])
    >>> round(next(iter(score.values())).value, 4)  # one chance in four for each: (3/4)^7
    0.1335
    """

    name = "copula-risk"
    synonyms = ("Gaussian copula", "Gaussian copulas")
    family = "re-identification"
    title = "Copula risk"
    counts = replace(
        CellMeasure.counts,
        laws=Laws(reads_names="Its points of integration follow the order of the names of the keys."),
    )
    references = ("rocher2019",)

    @property
    def estimates(self) -> str:
        """What is estimated of all records."""
        return UNIQUE if self.chance == "unique" else "matches that are right"

    def true_value(self, alike: Floats, people: Floats) -> float | None:
        """The share of records that are unique in the population, or of matches that are right."""
        found = (people == 1) if self.chance == "unique" else 1.0 / people
        return float(alike @ found / alike.sum())

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Fit the latent variables, and integrate the box of each combination."""
        classes, people = self.classes(evidence), max(self.people(evidence), 1.0)
        cells, n, lacking = ContingencyCells.of(classes), float(classes.persons.sum()), self.unknown(classes)
        table = classes.table
        kinds, coarse = table.schema, table.is_generalised
        unordered = [kinds[key].kind is Kind.NOMINAL or coarse(key) for key in classes.keys]
        new = max(float(np.count_nonzero(cells.margin(key) == 1)) for key in range(len(cells.sizes))) / n
        if new > _MOST_NEW:
            return Score.not_estimable(
                f"{new:.0%} of the people have a value of a key that nobody else has: the sample does not "
                "show all values of the population"
            )
        cells = order_unordered_keys(cells, unordered)
        model = LatentNormal.fit(cells, run)
        unique, match = _chances(model.chances(cells.codes, run)[cells.of_class], people)
        expected = _chances(model.chances(model.lattice_sample(), run), people)
        known = float(classes.persons[lacking].sum()) / n
        means = {
            what: known + (1 - known) * float(each.mean())
            for what, each in zip(("unique", "match"), expected, strict=True)
        }
        risks = np.where(classes.persons > 1, 0.0, unique) if self.chance == "unique" else match
        return Score(
            means[self.chance],
            status=Status.APPROXIMATE,
            reason="estimated by a model of how the keys are associated" + self.weights_note(evidence),
            by_record=by_original(evidence, of_records(classes, np.where(lacking, 1.0, risks)), worst="high"),
            details={
                "people": people,
                "sample": int(n),
                "sample_uniques": int((classes.persons == 1).sum()),
                "population_uniques": people * means["unique"],
                **means,
            },
        )


def _chances(boxes: Floats, people: float) -> tuple[Floats, Floats]:
    """That nobody else of so many has the combination, and that who has it is the one."""
    boxes = np.minimum(boxes, 1.0)
    with np.errstate(divide="ignore"):  # a combination that all people have
        nobody = np.log1p(-boxes)
    unique = np.exp((people - 1) * nobody) if people > 1 else np.ones(len(boxes))
    return unique, np.minimum(-np.expm1(people * nobody) / (people * boxes), 1.0)

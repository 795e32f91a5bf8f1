"""Population uniqueness: how many who are unique in a sample are so in the population it is drawn from."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Literal

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Counting, EstimatedMeasure, Score, Status, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.kernels.arrays import Floats
from sfumato.risk import _population_models as models
from sfumato.risk._key_measures import by_original, of_records
from sfumato.risk._model_fitting import PopulationModel, SizeFrequencies, UniquenessEstimate
from sfumato.risk._possible_populations import PossiblePopulations
from sfumato.risk._sampling import UNIQUE, SampledMeasure

ModelName = Literal[
    "pitman", "ewens", "log-series", "dirichlet-multinomial", "poisson-gamma", "slide-negative-binomial",
    "zayatz", "good-toulmin", "dankar",
]  # fmt: skip

_MODELS: dict[ModelName, PopulationModel] = {
    "pitman": models.Pitman(),
    "ewens": models.Ewens(),
    "log-series": models.LogSeries(),
    "dirichlet-multinomial": models.DirichletMultinomial(),
    "poisson-gamma": models.PoissonGamma(),
    "slide-negative-binomial": models.SlideNegativeBinomial(),
    "zayatz": models.Zayatz(),
    "good-toulmin": models.GoodToulmin(),
    "dankar": models.Dankar(),
}

#: Those that must know how many combinations of keys there could be.
_OF_CELLS = frozenset({"dirichlet-multinomial", "poisson-gamma"})

#: Points of a normal distribution, and their weights.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()

#: What a whole population may differ from its sample by rounding.
_FLOAT_TOLERANCE = 1e-9


class PopulationUniqueness(SampledMeasure, EstimatedMeasure):
    r"""Share of records that are unique in the sample and in the population, estimated by a model.

    .. math::

        \frac{1}{n} \sum_C P(F_C = 1 \mid f_C = 1)\, [f_C = 1] = \frac{s_1\, p}{n}

    where :math:`f_C` and :math:`F_C` are the people of class :math:`C` of the keys in the sample and in the
    population, :math:`s_1` is the number of classes of one person in the sample, and :math:`p` is the chance
    that nobody else of the population is in such a class. With :math:`s_j` classes of :math:`j` people,
    :math:`u` in all, a sample of :math:`n` and a population of :math:`N`, the ``model`` gives

    =========================  =====================================================================
    pitman                     :math:`\prod_{j=n}^{N-1} (1 - (1 - \alpha) / (\theta + j))` (Hoshino)
    ewens                      :math:`(\theta + n - 1) / (\theta + N - 1)`
    log-series                 :math:`(\theta + n) / (\theta + N)`, with :math:`u = \theta \log(1 + n/\theta)`
    dirichlet-multinomial      :math:`\prod_{j=n}^{N-1} (1 - (1 + \gamma) / (K \gamma + j))` (Takemura)
    poisson-gamma              :math:`((K a + n) / (K a + N))^{a + 1}` (Bethlehem, Keller, Pannekoek)
    slide-negative-binomial    :math:`F - 1` negative binomial (Chen, Keller-McNulty)
    zayatz                     :math:`F` distributed as :math:`f`, drawn without replacement
    good-toulmin               no model: :math:`\sum_i (-\lambda)^i P(L \ge i) (i + 1) s_{i+1} / s_1`,
                               :math:`\lambda = (N - n) / n` (Camerlenghi and others)
    dankar                     pitman up to a fraction of 0.1; beyond, the lower of slide-negative-binomial
                               and zayatz (Dankar and others)
    =========================  =====================================================================

    The parameters of the first six are those of maximum likelihood. :math:`K` is the number of combinations
    that the values of the keys could make.

    See Also
    --------
    Uniqueness : who is unique in the sample.
    KMap : with a table of the population, none is estimated.

    Notes
    -----
    **How to read it.** Give the share of the population that was drawn (``fraction``), or its size; else
    sampling weights tell. Of those who are unique in the sample most may have doubles who were not drawn;
    this is the share of records that surely point at one person. ``by_record`` is :math:`p` for sample
    uniques, 0 for others. ``details`` has :math:`p` (``chance``), the number of sample uniques, how many
    population uniques are expected in the sample and in the population, and the fitted parameters.

    **Doubt.** An estimate, and no better than its model: compare several; where they differ, the sample does
    not tell. That a model expects another number of uniques in the sample (``expected_uniques``) than there
    are, beyond chance, is said; zayatz overstates uniqueness where the fraction is small. The interval does
    not rest on the model: it holds every number of people that some population could have, of whatever
    classes, which fits the numbers of classes of one person, of two, of three … about as well as the best one
    does. If classes of at least two in the population make the pairs and triples that are seen, they make
    some of the uniques, too; all others may be alone in the population, and the far end counts them. So it is
    wide, often most of the sample uniques, and the wider the smaller the share that was drawn: nothing in a
    small sample tells one of one from one of five. It is never narrower than what the model itself leaves
    open: parameters as sure as the curvature of the likelihood says, then who is unique is binomial (for
    zayatz and good-toulmin by Poisson counts of classes). A requirement (``at 95%``) may rely on it, whatever
    the model: of 323 samples of .5 to 20 % of populations that are known (mixtures of people alone and of
    groups, log-normal and Zipf, Adult, survey and other files) the truth was above the far end in none, where
    Pitman's own interval missed 23 of the 114 that it seemed to fit, by up to five times. *Not-estimable*
    where the likelihood has no maximum inside, where all are unique, and for good-toulmin below a fraction of
    the order of :math:`1 / \log n`, where no estimate without a model is consistent. Exact for a whole
    population, and where nobody is unique in the sample. The draw is taken to be simple: unequal weights only
    tell the size of the population, by the mean of one over them, which a single huge weight cannot take to
    0; that their sum would differ much is said.

    **Missing.** A missing key is a value of its own by default (``category``). At ``worst`` who lacks a key
    is unique in the population. As ``any`` classes overlap, and the result is not estimable.

    **Units.** Where a column joins records, persons (or households) alike in all their records are counted,
    and the population is of these; models of cells (dirichlet-multinomial, poisson-gamma) do not apply then.

    **Cost.** That of grouping by the keys; models see only the number of classes of each size.

    Examples
    --------
    Of 60 people, 20 are unique and 20 pairs are alike, in a sample of one in ten:

    >>> frame = pl.DataFrame({"place": [*range(20), *range(20, 40), *range(20, 40)]})
    >>> table = Table(frame, Schema((Column("place", Kind.NOMINAL, Role.KEY),)))
    >>> score = PopulationUniqueness(model="ewens", fraction=0.1).score(Evidence(table), Run(seed=1))
    >>> round(score.value, 4), score.status.value
    (0.0565, 'approximate')
    """

    name = "population-uniqueness"
    family = "re-identification"
    counts = Counting(people=True, joins_person_records=True)
    tells = Tells(places={"report": 7})
    title = "Population uniqueness"
    better = "low"
    bounds = (0.0, 1.0)
    references = (
        "hoshino2001", "ewens1972", "takemura1999", "bethlehem1990", "chen1998", "zayatz1991",
        "camerlenghi2021", "orlitsky2016", "dankar2012", "oleary1986",
    )  # fmt: skip

    model: ModelName = param(
        "pitman",
        "Model of the class sizes in the population.",
        choices={
            "pitman": "Pitman's sampling formula, with two parameters.",
            "ewens": "Ewens's sampling formula, with one parameter.",
            "log-series": "Fisher's log-series.",
            "dirichlet-multinomial": "A Dirichlet-multinomial over all combinations of keys.",
            "poisson-gamma": "Poisson counts with gamma means over all combinations of keys.",
            "slide-negative-binomial": "One more than a negative binomial.",
            "zayatz": "Class sizes as in the sample, which is drawn without replacement.",
            "good-toulmin": "No model: the smoothed estimator of Good and Toulmin.",
            "dankar": "Pitman's up to a fraction of 0.1, then the lower of slide-negative-binomial, zayatz.",
        },
        synonyms={
            "logarithmic series": "log-series",
            "SNB": "slide-negative-binomial",
            "decision rule": "dankar",
        },
    )

    def sentence(self, value: float) -> str:
        """Say in words what its number means for one record."""
        if value <= 0:
            return "it is not unique in the sample"
        return f"it is unique in the population with a probability of {value:.3g}"

    def why_not_estimable(self, evidence: Evidence) -> str | None:
        """Say that the cells of joined records cannot be counted."""
        reason = super().why_not_estimable(evidence)
        if reason is None and self.model in _OF_CELLS and self.classes(evidence).joined is not None:
            return f"a column links records, and {self.model} needs the number of possible classes"
        return reason

    @property
    def estimates(self) -> str:
        """What is estimated of all records."""
        return UNIQUE

    def true_value(self, alike: Floats, people: Floats) -> float | None:
        """The share of records that are unique in both."""
        return float(((alike == 1) & (people == 1)).sum() / alike.sum())

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002  — no chance is used
        """Count the classes of each size, and ask the model."""
        classes = self.classes(evidence)
        lacking = self.unknown(classes)
        class_sizes, n = classes.persons[~lacking], int(classes.persons.sum())
        people = self.people(evidence) * int(class_sizes.sum()) / n
        sample = SizeFrequencies.of(class_sizes, people, _cells(classes))
        certain = sample.uniques == 0 or people <= sample.n * (1 + _FLOAT_TOLERANCE)
        if certain:
            chance = 1.0 if sample.uniques else 0.0
            return self._score(evidence, classes, sample, UniquenessEstimate(chance, 0.0, {}), certain=True)
        found = _MODELS[self.model].estimate(sample)
        if isinstance(found, str):
            return Score.not_estimable(f"{self.model}: {found}")
        return self._score(evidence, classes, sample, found, certain=False)

    def _score(
        self,
        evidence: Evidence,
        classes: Classes,
        sample: SizeFrequencies,
        found: UniquenessEstimate,
        *,
        certain: bool,
    ) -> Score:
        lacking, n = self.unknown(classes), float(classes.persons.sum())
        known = float(classes.persons[lacking].sum())  # unique out there, at worst
        interval = None
        if not certain:
            low, high = self._interval_of_uniques(sample, found)
            interval = ((known + low) / n, (known + high) / n)
        chances = np.where(lacking, 1.0, np.where(classes.persons == 1, found.chance, 0.0))
        return Score(
            value=(known + sample.uniques * found.chance) / n,
            status=Status.OK if certain else Status.APPROXIMATE,
            interval=interval,
            reason="" if certain else self._reason(sample, found) + self.weights_note(evidence),
            confidence=None if certain else self.confidence,
            by_record=by_original(evidence, of_records(classes, chances), worst="high"),
            details={
                "model": self.model,
                "people": self.people(evidence),
                "sample": int(n),
                "sample_uniques": int(known + sample.uniques),
                "chance": found.chance,
                "uniques_in_both": known + sample.uniques * found.chance,
                "population_uniques": known
                + sample.uniques * found.chance * sample.people / max(sample.n, 1),
                **found.parameters,
                **({} if found.expected_uniques is None else {"expected_uniques": found.expected_uniques}),
            },
        )

    def _reason(self, sample: SizeFrequencies, found: UniquenessEstimate) -> str:
        """Say what it rests on, and if the model does not fit what is seen."""
        if found.misfits(sample):
            return (
                f"{self.model} does not fit: it expects {found.expected_uniques:.0f} unique people in the "
                f"sample where there are {sample.uniques:.0f}"
            )
        return f"estimated by a model ({self.model}), with {self.confidence:g} % confidence"

    def _interval_of_uniques(self, sample: SizeFrequencies, found: UniquenessEstimate) -> tuple[float, float]:
        """How many are unique in both: as the model doubts, and as any population that fits may have it."""
        low, high = PossiblePopulations.of(sample).unique(self._tail)
        least, most = (sample.uniques * share for share in self._by_model(sample.uniques, found))
        return min(low, least), max(high, most)

    @property
    def _tail(self) -> float:
        return 0.5 - self.confidence / 200

    def _by_model(self, ones: float, found: UniquenessEstimate) -> tuple[float, float]:
        """The interval of the share of sample uniques: the fitted chance is drawn, then who is unique.

        It is what a parametric bootstrap tends to: the log odds of the chance are normal about their
        estimate, and the number of people is binomial. Few people are counted, not rounded off.
        """
        from scipy.special import bdtr, expit, logit  # slow to import

        width = found.chance * (1 - found.chance)
        if width <= 0:
            return 0.0, 1.0
        doubt = math.sqrt(max(found.variance - ones * width, 0.0)) / ones / width
        chances = expit(logit(found.chance) + doubt * _NODES)

        def at_most(people: int) -> float:
            return float(_WEIGHTS @ bdtr(people, int(ones), chances))

        ends = (self._tail, 1 - self._tail)
        low, high = (bisect_left(range(int(ones)), share, key=at_most) / ones for share in ends)
        return min(low, found.chance), max(high, found.chance)


def _cells(classes: Classes) -> float:
    """How many combinations the values of the keys that occur could make."""
    return math.prod(float(len(np.unique(column))) for column in classes.codes.T)

"""Rules of statistical offices: how many people share a few keys, and which columns leave at all."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Literal

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import classes_of, seen_table
from sfumato.core.measure import Counting, Measure, Needs, Score
from sfumato.core.params import Columns, Resource, param
from sfumato.core.run import Run
from sfumato.data.generalised.cover import uninformative_records
from sfumato.data.guess.facts import Facts
from sfumato.data.schema import Kind, Role
from sfumato.data.table import Table
from sfumato.errors import quoted
from sfumato.risk._key_measures import CLASS_LAWS, KeyMeasure, by_original, of_records
from sfumato.risk._population import population_sizes, why_no_population
from sfumato.risk._subsets import too_many


class PopulationCombinations(KeyMeasure):
    r"""Smallest number of people in a population who share a combination of a few released keys.

    .. math::

        \min_{S \subseteq Q,\ |S| \le d} \ \min_i F_S(i)

    where :math:`F_S(i)` is the number of people of the population who match record :math:`i` in all keys of
    :math:`S`, and :math:`d` is the ``dimension``. Statistical offices ask it of microdata: at Statistics
    Netherlands 200,000 people for each value and 1,000 for each pair of values in a public file, and 100 for
    each triple of a region, a visible and a further key in a file for researchers.

    See Also
    --------
    KMap : all keys at once.
    UnsafeCombinations : in the file instead of the population.

    Notes
    -----
    **How to read it.** Higher is safer; 0 means that the population has nobody like some record. Of
    ``places`` only combinations with a place are looked at: with ``dimension=1`` that is the smallest region.
    Places are told by the names of columns, in nine languages, and by ``regions``. ``by_column`` is the
    rarest combination that a key takes part in, ``by_record`` that of a record; ``rarest`` names the keys.

    **Doubt.** Exact for the population given, a table of people or of counts (a column
    ``population_count``). All keys count, so that a rule for some of them, such as the visible ones,
    is met if this is.

    **Missing.** As in k-map: a value of its own, anything, or the worst it could be.

    **Units.** People of the population.

    **Cost.** That of k-map for each combination of ``dimension`` keys. More than 20,000 are refused.

    Examples
    --------
    >>> kinds = {"region": Kind.NOMINAL, "sex": Kind.NOMINAL}
    >>> schema = Schema(tuple(Column(name, kind, Role.KEY) for name, kind in kinds.items()))
    >>> counts = pl.DataFrame(
    ...     {"region": ["N", "N", "S", "S"], "sex": ["f", "m", "f", "m"], "population_count": [60, 50, 9, 8]})
    >>> census = Table(counts, Schema((*schema.columns, Column("population_count", Kind.CONTINUOUS))))
    >>> file = Table(pl.DataFrame({"region": ["N", "S", "S"], "sex": ["f", "f", "m"]}), schema)
    >>> evidence = Evidence(file, resources={"census": census})
    >>> for dimension in (1, 2):
    ...     measure = PopulationCombinations(population="census", dimension=dimension)
    ...     print(measure.score(evidence, Run(seed=1)).value)
    17.0
    8.0
    """

    name = "population-combinations"
    vetted = "brute-forced: unit/risk/test_population_combinations.py::test_by_brute_force"
    synonyms = ("ARGUS threshold rule", "threshold rule", "population of a region", "population thresholds")
    family = "equivalence classes"
    title = "Combinations in the population"
    better = "high"
    bounds = (0.0, np.inf)
    references = ("hundepool2024", "dewaal1996", "willenborg2001")
    cost = "n log n"

    population: Resource | None = param(None, "The table of the population.", holds="table")
    dimension: int = param(2, "Number of keys in a combination.", ge=1, le=4, symbol="d")
    of: Literal["keys", "places"] = param(
        "keys",
        "Which combinations are looked at.",
        choices={"keys": "All combinations of keys.", "places": "Those with a place among them."},
    )
    regions: Columns = param((), "Columns of places, whatever they are called.", when="of=places")

    def refuses(self, evidence: Evidence) -> str | None:
        """Say that a population is needed, with all keys, or that there are no places or too many subsets."""
        keys = self.keys(evidence)
        reason = super().refuses(evidence)
        if reason is None and self.population is None:
            return f"{self.name} needs a table of the population: give it as `population`"
        reason = reason or why_no_population(self.name, evidence, str(self.population), keys)
        if reason is None and self.of == "places" and not self._places(evidence):
            return f"{self.name} finds no place among the keys by its name: name it by `regions`"
        return reason or too_many(
            self.name, len(keys), range(size := min(self.dimension, len(keys)), size + 1)
        )

    def _places(self, evidence: Evidence) -> set[str]:
        named = evidence.original.schema.resolve(self.regions)
        return {
            name
            for name in self.keys(evidence)
            if name in named or is_about(evidence.original, name, _PLACES)
        }

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Count each combination of as many keys in the population; fewer are never rarer."""
        keys, table = self.keys(evidence), seen_table(evidence)
        size = min(self.dimension, len(keys))
        places = set(keys) if self.of == "keys" else self._places(evidence)
        fewest, by_column, rarest = np.full(len(table), np.inf), dict.fromkeys(keys, np.inf), ""
        for subset in run.track(self.title, combinations(keys, size), comb(len(keys), size)):
            if not places & set(subset):
                continue
            classes = classes_of(evidence, subset, missing=self.missing)
            sizes = population_sizes(evidence, classes, str(self.population))
            if sizes.min() < fewest.min():
                rarest = quoted(subset)
            fewest = np.minimum(fewest, of_records(classes, sizes))
            by_column |= {name: min(by_column[name], float(sizes.min())) for name in subset}
        return Score(
            float(fewest.min()),
            by_column={name: value for name, value in by_column.items() if np.isfinite(value)},
            by_record=by_original(evidence, fewest, worst="low"),
            details={"keys": len(keys), "rarest": rarest, "counted": "people of the population"},
        )


_PLACES, _ORIGINS = ("place", "state"), ("origin",)


def is_about(table: Table, name: str, about: tuple[str, ...]) -> bool:
    """Whether the name of a column says that it is about one of these."""
    return any(concept.about in about for concept in Facts(table.frame[name]).concepts)


class ReleasedColumns(Measure):
    r"""Number of released columns of a sort, such as keys or places.

    .. math::

        \left|\{ c : c \text{ is released and of the sort} \}\right|

    Statistical offices limit them: at Statistics Netherlands a public file has at most 15 identifying
    columns, no direct region, no origin (nationality, country of birth, ethnicity) and no sensitive column,
    and a panel has no region.

    Notes
    -----
    **How to read it.** Require ``<= 15`` of keys, or ``<= 0``. Keys are the columns that the intruder knows,
    sensitive columns and weights are told by their roles, places and origins by their names, in nine
    languages. ``by_column`` is 1 for each, ``reason`` names them. A column of which nothing is shown, all
    missing or wildcards, does not count.

    **Doubt.** Exact; but a place that its name does not tell is not found.

    **Missing.** Missing values show nothing.

    **Cost.** One look at each column.

    Examples
    --------
    >>> schema = Schema(tuple(Column(name, Kind.NOMINAL, Role.KEY) for name in ("city", "nationality")))
    >>> table = Table(pl.DataFrame({"city": ["Ely", "Bath"], "nationality": ["uk", "fr"]}), schema)
    >>> for of in ("keys", "places", "origins"):
    ...     print(ReleasedColumns(of=of).score(Evidence(table), Run(seed=1)).value)
    2.0
    1.0
    1.0
    """

    name = "released-columns"
    synonyms = ("number of identifying variables", "identifying variables", "number of quasi-identifiers")
    family = "re-identification"
    title = "Released columns of a sort"
    aspect = "risk"
    threat = "singling out"
    better = "low"
    bounds = (0.0, np.inf)
    kinds = frozenset(Kind)
    references = ("hundepool2024",)
    needs = Needs(release=False, columns=0)
    counts = Counting(joins_person_records=True, laws=CLASS_LAWS)
    cost = "n"

    of: Literal["keys", "places", "origins", "sensitive", "weights"] = param(
        "keys",
        "Which columns are counted.",
        choices={
            "keys": "Those that the intruder knows.",
            "places": "Places, by their names.",
            "origins": "Nationality, country of birth, ethnicity, language, by their names.",
            "sensitive": "Sensitive ones, by their role.",
            "weights": "Weights, by their role.",
        },
    )

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002  — no chance is used
        """Count the columns of the sort that show something."""
        table = evidence.original if evidence.protected is None else evidence.protected
        found = [
            name
            for name in table.names
            if self._counts(evidence, table, name) and not uninformative_records(table, (name,)).all()
        ]
        return Score(float(len(found)), by_column=dict.fromkeys(found, 1.0), reason=quoted(found))

    def _counts(self, evidence: Evidence, table: Table, name: str) -> bool:
        if self.of == "keys":
            return name in evidence.known_columns
        if self.of in ("sensitive", "weights"):
            role = Role.SENSITIVE if self.of == "sensitive" else Role.WEIGHT
            return name in (*table.schema.with_role(role), *evidence.original.schema.with_role(role))
        return is_about(table, name, _PLACES if self.of == "places" else _ORIGINS)

"""Laws between scores: every measure keeps those that it declares, and most risks declare some."""

import pytest

from sfumato.core import registry
from sfumato.core.measure import Counting, Laws, Score
from sfumato.data.schema import Kind
from sfumato.risk._key_measures import KeyMeasure
from sfumato.testing.laws import (
    LAW_CHECKS,
    check_a_second_record_hides_nobody,
    check_coarser_is_never_riskier,
    check_knowledge_is_never_safer,
    check_names_are_irrelevant,
    check_order_of_all_records_is_irrelevant,
)

MEASURES = registry.measures()
#: They start a database or grow a forest for every score.
SLOW = {"probabilistic-linkage", "inference"}

#: Risks that declare none: what a perturbed value comes near to, what an attack succeeds in, what a model estimates.
WITHOUT = {
    "attribute-linkage", "averaging-risk", "certain-links", "cluster-isolation", "cm1", "cm2", "cm3",
    "copula-risk", "dbrl", "density-isolation", "difference-risk", "direct-matching", "disco", "gdbrl",
    "household-risk", "inference", "interval-disclosure", "interval-linkage", "k-map-estimate",
    "km-anonymity", "linkability", "log-linear-risk", "membership", "nearest-record-distance",
    "outlier-disclosure", "permutation-distance", "population-uniqueness", "power-mean",
    "probabilistic-linkage", "rank-interval-linkage", "rank-linkage", "regrouped", "released-columns",
    "replicated-uniques", "rmdid1", "rmdid2", "safe-harbour-violations", "singling-out",
}  # fmt: skip


def declared(cls):
    laws = cls.laws()
    return {
        name
        for name in ("coarser_is_safer", "knowledge_is_risk", "copies_hide_nobody")
        if getattr(laws, name)
    }


def test_no_more_risks_than_before_declare_no_law():
    assert {name for name, cls in MEASURES.items() if cls.aspect == "risk" and not declared(cls)} == WITHOUT


@pytest.mark.slow
@pytest.mark.parametrize("check", LAW_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", sorted(MEASURES.keys() - SLOW))
def test_laws_hold_on_many_tables(name, check):
    check(MEASURES[name], seeds=range(3, 23))


class Records(KeyMeasure):
    """The share of records in a class of their own, by lot: what breaks every law, and declares them all."""

    name = "toy-records"
    title = "Records"
    better = "low"
    bounds = (0.0, float("inf"))
    kinds = frozenset(Kind)
    counts = Counting(people=True, laws=Laws("", "", True, True, True))

    def measure(self, evidence, run):
        table, known = evidence.protected, evidence.known_columns
        coarse = sum(table.is_generalised(name) for name in known)
        first = 0.0 if coarse else float(table.frame[known[0]][0])  # changes with the order
        second = table.frame[known[1]].n_unique()  # and with names
        return Score(first + second + coarse - 5.0 * len(known) + 100.0)


@pytest.mark.parametrize("check", [
    check_order_of_all_records_is_irrelevant, check_names_are_irrelevant, check_coarser_is_never_riskier,
    check_knowledge_is_never_safer,
])  # fmt: skip
def test_a_measure_that_breaks_a_law_is_caught(check):
    with pytest.raises(AssertionError):
        check(Records, seeds=range(1, 6))


class Means(KeyMeasure):
    """One over the number of records: a copy hides somebody."""

    name = "toy-means"
    title = "Means"
    better = "low"
    bounds = (0.0, 1.0)
    kinds = frozenset(Kind)

    def measure(self, evidence, run):
        return Score(1 / len(evidence.protected))


def test_a_measure_that_counts_records_is_caught():
    with pytest.raises(AssertionError, match="a copy hides"):
        check_a_second_record_hides_nobody(Means)

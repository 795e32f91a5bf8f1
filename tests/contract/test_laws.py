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

#: Why a risk declares no law: by its definition none of the three holds, or nobody could tell.
WITHOUT = {
    "It compares values that changed: in more columns the own record may be farther, and the scales of numbers, "
    "the ranks and the draw among equals move with each copy. It takes no generalised values.": {
        "attribute-linkage", "certain-links", "direct-matching", "interval-disclosure", "interval-linkage",
        "permutation-distance", "probabilistic-linkage", "rank-interval-linkage", "rank-linkage", "rmdid1",
        "rmdid2",
    },
    "It is a correlation or a mean over the records that have all values, so more columns leave fewer records, "
    "and a copy counts twice.": {"cm1", "cm2", "cm3", "power-mean"},
    "It compares the mean of several releases, in which what is coarse may meet what is fine.": {
        "averaging-risk", "difference-risk",
    },
    "What is crowded depends on the neighbours' own crowds, which further columns thin out as well.": {
        "density-isolation",
    },
    "A model is fitted to the counts, and another one to other counts.": {
        "copula-risk", "log-linear-risk", "population-uniqueness",
    },
    "An attack succeeds or fails beside the same one on strangers, who are as much nearer or farther.": {
        "inference", "linkability", "membership", "nearest-record-distance", "singling-out",
    },
}  # fmt: skip


def declared(cls):
    laws = cls.laws()
    return {
        name
        for name in ("coarser_is_safer", "knowledge_is_risk", "copies_hide_nobody")
        if getattr(laws, name)
    }


def test_a_risk_declares_a_law_or_it_is_said_why_none_holds():
    without = [name for names in WITHOUT.values() for name in names]
    assert len(without) == len(set(without))
    assert {name for name, cls in MEASURES.items() if cls.aspect == "risk" and not declared(cls)} == set(
        without
    )


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
        second = table.frame[known[1 % len(known)]].n_unique()  # and with names
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

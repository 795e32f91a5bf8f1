"""Sequential trees against a copula and independent draws, and on NIST's Collaborative Research Cycle.

Source of the second: SDNist's scores of single files on `national2019.csv` (27,253 records). synthpop's CART of 21 columns
has a k-marginal of 923 and breaks 5 edit rules. k-marginal = (2 − mean over all pairs of columns of Σ|p − q|) · 500, numbers
cut at the twentieths of the original; a file with PUMA is scored *within each PUMA*, and the mean of these is printed. A fresh
sample of as many records would have about 956 there, and 986 over pairs of all records (bootstraps). Which 21 columns the file
had is not said; here all but the two weights and the detailed industry, which its category stands for. SDNist takes 100 pairs
at random, here all are taken.
"""

from itertools import combinations

import numpy as np
import polars as pl
import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.run import Run
from sfumato.data.rules import Rule
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.datasets import rand
from sfumato.datasets.reference import adult
from sfumato.methods.gaussian_copula import GaussianCopula
from sfumato.methods.synthesis import Synthesis
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.utility.propensity import PropensityMeanSquare

pytestmark = pytest.mark.slow

NUMBERS, ORDERED = ("AGEP", "DENSITY", "PINCP", "POVPIP", "NOC", "NPF"), ("EDU", "PINCP_DECILE")

#: The edit rules of the data (FACTS.md, section 9).
RULES = (
    "AGEP >= 15 OR (DVET IS NULL AND MSP IS NULL AND PINCP IS NULL AND PINCP_DECILE IS NULL AND INDP_CAT IS NULL)",
    "AGEP >= 15 OR EDU IS NULL OR EDU < 12",
    "AGEP >= 5 OR (DPHY IS NULL AND DREM IS NULL)",
    "AGEP >= 5 OR EDU IS NULL OR EDU < 5",
    "AGEP >= 3 OR EDU IS NULL",
    "AGEP <= 15 OR (MSP IS NOT NULL AND PINCP IS NOT NULL AND PINCP_DECILE IS NOT NULL)",
    "AGEP <= 15 OR (EDU IS NOT NULL AND DPHY IS NOT NULL AND DREM IS NOT NULL)",
    "NOC IS NULL OR NPF IS NULL OR NOC < NPF",
    "HOUSING_TYPE = 1 OR (NOC IS NULL AND NPF IS NULL AND OWN_RENT = 0)",
    "HOUSING_TYPE <> 1 OR (NOC IS NOT NULL AND OWN_RENT IN (1, 2))",
)


def census_2019(path):
    frame = pl.read_csv(path, null_values="N", infer_schema_length=None).drop("PWGTP", "WGTP", "INDP")
    kinds = {
        name: Kind.CONTINUOUS if name in NUMBERS else Kind.ORDINAL if name in ORDERED else Kind.NOMINAL
        for name in frame.columns
    }
    columns = tuple(Column(name, kind, Role.KEY) for name, kind in kinds.items())
    return Table(frame, Schema(columns, rules=tuple(Rule(rule) for rule in RULES)))


def codes_of(first, second):
    """A column of both tables as whole numbers from 0 (missing) on, numbers by the twentieths of the first."""
    if first.name in {"AGEP", "PINCP", "POVPIP"}:
        ends = np.unique(np.quantile(first.drop_nulls(), np.linspace(0, 1, 21)[1:-1]))
        return [
            np.where(each.is_null(), 0, 1 + np.searchsorted(ends, each.fill_null(0).to_numpy(), side="right"))
            for each in (first, second)
        ]
    both = pl.concat([first, second.cast(first.dtype)]).rank("dense").fill_null(0).cast(pl.Int64).to_numpy()
    return both[: len(first)], both[len(first) :]


def k_marginal(first, second, within=None):
    """The score over all pairs of columns; with a column that parts the records, the mean of its parts'."""
    coded = {name: codes_of(first[name], second[name]) for name in first.columns}
    parts = coded.pop(within) if within else [np.zeros(len(each), dtype=np.int64) for each in (first, second)]
    n_parts, lost = int(max(each.max() for each in parts)) + 1, []
    there = np.bincount(parts[0], minlength=n_parts) > 0
    for one, other in combinations(coded.values(), 2):
        space = int(max(other[0].max(), other[1].max())) + 1
        cells = [a * space + b for a, b in zip(one, other, strict=True)]
        size = int(max(each.max() for each in cells)) + 1
        counts = [
            np.bincount(part * size + cell, minlength=n_parts * size).reshape(n_parts, size)[there]
            for part, cell in zip(parts, cells, strict=True)
        ]
        shares = [each / np.maximum(each.sum(axis=1, keepdims=True), 1) for each in counts]
        lost.append(np.abs(shares[0] - shares[1]).sum(axis=1).mean())
    return (2 - np.mean(lost)) * 500


def test_the_collaborative_research_cycle(reference_data):
    """Reached with three seeds: 941 to 942 within each PUMA (published: 923), 984 to 985 over all; 0 broken rules."""
    table = census_2019(reference_data("crc/national2019.csv"))
    assert len(table.names) == 21
    assert sum(rule.violations(table.frame) for rule in table.schema.rules) == 0
    release = Recipe((Step(Synthesis(), table.names),)).apply(table, Run(seed=3))
    assert k_marginal(table.frame, release.table.frame, within="PUMA") >= 935
    assert k_marginal(table.frame, release.table.frame) >= 980
    assert sum(rule.violations(release.table.frame) for rule in table.schema.rules) == 0


def test_the_cycle_drawn_within_each_area(reference_data):
    """Reached with three seeds: 949 to 950 within each PUMA; what the areas share is not learnt from the others."""
    table = census_2019(reference_data("crc/national2019.csv"))
    drawn = [name for name in table.names if name != "PUMA"]
    release = Recipe((Step(Synthesis(), drawn, within=("PUMA",)),)).apply(table, Run(seed=3))
    assert k_marginal(table.frame, release.table.frame, within="PUMA") >= 943
    assert sum(rule.violations(release.table.frame) for rule in table.schema.rules) == 0


def scores(table):
    """pMSE of trees, of the copula and of independent draws, of one seed."""
    measure = PropensityMeanSquare()
    found = []
    for method in (Synthesis(), GaussianCopula(), Synthesis(by="sample")):
        release = Recipe((Step(method, table.names),)).apply(table, Run(seed=5))
        found.append(measure.score(Evidence(table, release), Run(seed=5)).value)
    return found


def test_trees_beat_a_copula_and_independent_draws_on_rand():
    """Reached: .0023 and .0084. `meddol` is left out: all but a sum of others, which no draw hits (.11, .20, .24)."""
    pytest.importorskip("statsmodels")
    table = rand(per="person")
    columns = [each.name for each in table.schema.columns if each.role is not Role.IDENTIFIER]
    trees, copula, independent = scores(table.select([name for name in columns if name != "meddol"]))
    assert trees < copula / 2
    assert trees < independent / 2


def test_trees_beat_a_copula_and_independent_draws_on_adult(reference_data):
    """Reached on all records: .0004, .034 and .053."""
    whole = adult(reference_data("adult/adult.csv"))
    table = whole.take(np.arange(0, len(whole), 4))  # the measure takes far longer than the methods
    trees, copula, independent = scores(table)
    assert trees < copula / 2
    assert trees < independent / 2

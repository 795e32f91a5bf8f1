"""MST and AIM on NIST's benchmark (Collaborative Research Cycle): national2019, 10 columns, ε = 1.

What SDNist prints for the MST and the AIM of that benchmark is in `sfumato.reproduce`. Here records are counted that
break a rule.
"""

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl
import pytest

from sfumato.core.run import Run
from sfumato.data.rules import Rule
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.methods import PrivateMarginals
from sfumato.reproduce.cells import published

NAMES = ("AGEP", "SEX", "MSP", "RAC1P", "HOUSING_TYPE", "OWN_RENT", "EDU", "PINCP_DECILE", "DVET", "DEYE")


def people(folder):
    declared = json.loads(folder.joinpath("data_dictionary.json").read_text(encoding="utf-8"))
    frame = pl.read_csv(folder / "national2019.csv", infer_schema=False).select(NAMES)
    columns = [Column("AGEP", Kind.CONTINUOUS, integer=True, lower=0, upper=99)]
    columns += [
        Column(name, Kind.NOMINAL, labels=tuple(declared[name]["values"].items())) for name in NAMES[1:]
    ]
    return Table(frame.with_columns(pl.col("AGEP").cast(pl.Int64)), Schema(tuple(columns))).aimed_at(NAMES)


def k_marginal(original, made):
    """SDNist's score: 1,000 less 500 times the mean distance (L1) of all pairs of columns."""
    edges = np.quantile(original["AGEP"], np.linspace(0, 1, 21))[1:-1]
    both = pl.concat([original, made])
    codes = [both[name].rank("dense").to_numpy().astype(np.int64) for name in NAMES[1:]]
    codes.insert(0, np.searchsorted(edges, both["AGEP"].to_numpy()))
    n, far = len(original), []
    for a, b in combinations(codes, 2):
        cells = a * 100 + b
        shares = [np.bincount(part, minlength=cells.max() + 1) / len(part) for part in (cells[:n], cells[n:])]
        far.append(np.abs(shares[0] - shares[1]).sum())
    return 500 * (2 - np.mean(far))


def broken(made):
    """Records that break an edit rule of these columns."""
    age, education = made["AGEP"], made["EDU"].cast(pl.Int64, strict=False).fill_null(0)
    absent = {name: made[name] == "N" for name in ("MSP", "PINCP_DECILE", "DVET", "EDU")}
    rules = [(age < 15) & ~absent[name] for name in ("MSP", "PINCP_DECILE", "DVET")]
    rules += [(age > 15) & absent[name] for name in ("MSP", "PINCP_DECILE", "EDU")]
    rules += [(age < 15) & (education >= 12), (age < 5) & (education >= 5), (age < 3) & ~absent["EDU"]]
    rules += [(made["HOUSING_TYPE"] == "1") == (made["OWN_RENT"] == "0")]
    return int(np.any([rule.to_numpy() for rule in rules], axis=0).sum())


#: The same rules as the schema says them: what they forbid has no chance.
RULES = (
    "AGEP >= 15 OR (MSP = 'N' AND PINCP_DECILE = 'N' AND DVET = 'N')",
    "AGEP <= 15 OR (MSP <> 'N' AND PINCP_DECILE <> 'N' AND EDU <> 'N')",
    "AGEP >= 15 OR EDU NOT IN ('12')",
    "AGEP >= 5 OR EDU IN ('N', '1', '2', '3', '4')",
    "AGEP >= 3 OR EDU = 'N'",
    "(HOUSING_TYPE = '1') <> (OWN_RENT = '0')",
)


@pytest.mark.slow
@pytest.mark.parametrize(("choice", "row"), [("tree", "MST, ε = 1"), ("adaptive", "AIM, ε = 1")])
def test_marginals_reach_the_published_score_and_break_fewer_rules(reference_data, choice, row):
    """Reached in runs without a seed: a tree 962 to 964 and about 2,050 broken; adaptive 979 to 982 and 750 to 1,070."""
    table = people(reference_data("crc"))
    assert broken(table.frame) == 0
    made = PrivateMarginals(epsilon=1, choice=choice).apply(table, Run(seed=1)).table.frame
    printed = published("crc")
    assert k_marginal(table.frame, made) >= printed[f"scores/{row}/k-marginal"]
    assert broken(made) < printed[f"scores/{row}/rules broken"]


def ruled(table):
    return replace(table, schema=Schema(table.schema.columns, rules=tuple(map(Rule, RULES))))


@pytest.mark.slow
@pytest.mark.parametrize(("choice", "score"), [("tree", 958), ("adaptive", 972)])
def test_rules_that_are_declared_hold(reference_data, choice, score):
    """Nothing of the data is needed for that. Reached: a tree 968, adaptive 977 to 982."""
    table = ruled(people(reference_data("crc")))
    assert sum(rule.violations(table.frame) for rule in table.schema.rules) == 0
    made = PrivateMarginals(epsilon=1, choice=choice).apply(table, Run(seed=1)).table.frame
    assert broken(made) == 0
    assert k_marginal(table.frame, made) >= score


#: Ages that the rules part, and decades.
AGES = (0, 3, 5, 15, 16, 25, 35, 45, 55, 65, 75, 100)


@pytest.mark.slow
@pytest.mark.parametrize("third", range(3))
def test_rules_cost_no_age_group_its_people(reference_data, third):
    """Means of six runs each reached: under 15 within .3 points of the original, every group within .8 of its share
    without rules (all under 15 within 1.4), and scores of 954 to 955 with rules and 944 to 946 without."""
    table = people(reference_data("crc"))
    table = table.take(np.sort(np.random.default_rng(0).permutation(len(table))[third::3]))
    shares, scores = [], []
    for each in (table, ruled(table)):
        made = [PrivateMarginals(epsilon=1).apply(each, Run(seed=1)).table.frame for _ in range(4)]
        shares.append(np.mean([np.histogram(one["AGEP"], AGES)[0] / len(one) for one in made], axis=0))
        scores.append(np.mean([k_marginal(table.frame, one) for one in made]))
    assert sum(map(broken, made)) == 0
    assert np.abs(shares[1] - shares[0]).max() < 0.03  # the noise of a share of four runs is up to a point
    assert shares[1][:3].sum() == pytest.approx((table.frame["AGEP"] < 15).mean(), abs=0.015)
    assert scores[1] >= scores[0] - 5

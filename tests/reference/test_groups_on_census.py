"""What a requirement in every group does for the worst group, on the American Community Survey of 2019 (NIST).

Two searches with the same methods, risk, loss and seed: one asks for the least loss of all records, the other
also that the error of no area (PUMA) is above half of what the first left to the worst one. Seen: without asking
dbrl 0.045 and an error of 0.0129 in the worst area, asked for 0.036 and 0.
"""

import polars as pl
import pytest

import sfumato
from sfumato.core.evidence import Evidence
from sfumato.core.requirement import parse_measure
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table

RISK, LOSS, ERROR = "dbrl <= 0.05", "contingency-difference", "column-emd in every PUMA"
RECORDS = 6000
METHODS = ("rank-swapping", "mdav-in-parts", "individual-ranking", "uncorrelated-noise")
AMOUNTS = ("AGEP", "EDU", "PINCP_DECILE", "POVPIP")


@pytest.fixture(scope="module")
def people(reference_data):
    frame = (
        pl.read_csv(reference_data("crc/national2019.csv"), infer_schema_length=None, null_values=["N"])
        .select("PUMA", *AMOUNTS)
        .sample(RECORDS, seed=1)
    )
    keys = (Column(name, Kind.CONTINUOUS, Role.KEY, integer=True) for name in AMOUNTS)
    return Table(frame, Schema((Column("PUMA", Kind.NOMINAL, Role.OTHER), *keys)))


def search(table, require):
    """The recipe that is found, and its risk, its loss and the error of the worst area."""
    found = sfumato.tune(
        table, require, utility=LOSS, columns=AMOUNTS, methods=METHODS, trials=12, repeats=1, confirmations=2,
        minutes=None, seed=1,
    )  # fmt: skip
    evidence = Evidence(table, found.recipe.apply(table, Run(seed=2)))
    return found.recipe, [parse_measure(each).score(evidence, Run()).value for each in ("dbrl", LOSS, ERROR)]


@pytest.mark.slow
def test_the_error_of_the_worst_area_falls_by_half_at_equal_risk(people):
    recipe, (risk, _, error) = search(people, [RISK])
    assert risk <= 0.06  # a fresh run
    assert all(step.within == () for step in recipe.steps)
    recipe, (risk, _, less) = search(people, [RISK, ERROR.replace(" in", f" <= {error / 2:.4g} in")])
    assert risk <= 0.06
    assert less <= error / 2
    assert ("PUMA",) in [step.within for step in recipe.steps]

"""What a requirement in every group does for the worst group, on the American Community Survey of 2019 (NIST).

Two searches with the same methods, the same risk and the same seed: one asks for the least error of all
records, the other also that the error of no area (PUMA) is above half of what the first left to the worst one.
"""

import polars as pl
import pytest

import sfumato
from sfumato.core.evidence import Evidence
from sfumato.core.requirement import parse_measure
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table

RISK, ERROR = "dbrl <= 0.05", "column-emd"
METHODS = ("rank-swapping", "mdav-in-parts", "individual-ranking", "uncorrelated-noise")
AMOUNTS = ("AGEP", "EDU", "PINCP_DECILE", "POVPIP")


@pytest.fixture(scope="module")
def people(reference_data):
    frame = pl.read_csv(
        reference_data("crc/national2019.csv"), infer_schema_length=None, null_values=["N"]
    ).select("PUMA", *AMOUNTS)
    keys = (Column(name, Kind.CONTINUOUS, Role.KEY, integer=True) for name in AMOUNTS)
    return Table(frame, Schema((Column("PUMA", Kind.NOMINAL, Role.OTHER), *keys)))


def search(table, require):
    found = sfumato.tune(
        table, require, utility=ERROR, columns=AMOUNTS, methods=METHODS, trials=24, repeats=1,
        confirmations=2, minutes=None, seed=1,
    )  # fmt: skip
    release = found.recipe.apply(table, Run(seed=2))
    scores = (parse_measure(each).score(Evidence(table, release), Run(seed=3)).value for each in MEASURED)
    return found, dict(zip(MEASURED, scores, strict=True))


MEASURED = ("dbrl", ERROR, f"{ERROR} in every PUMA")


@pytest.mark.slow
def test_the_error_of_the_worst_area_falls_by_half_at_equal_risk(people):
    _, plain = search(people, [RISK])
    before = plain[f"{ERROR} in every PUMA"]
    found, asked = search(people, [RISK, f"{ERROR} <= {before / 2:.4g} in every PUMA"])
    assert max(plain["dbrl"], asked["dbrl"]) <= 0.05
    assert asked[f"{ERROR} in every PUMA"] <= before / 2
    assert [step.within for step in found.recipe.steps] == [("PUMA",)]

"""Paper 003 (Sánchez, Martínez, Domingo-Ferrer 2016), supplementary Tables S2, S6 to S8 and equations 1 and 3 to 5."""

import numpy as np
import polars as pl
import pytest

from brute import covers
from sfumato.core.evidence import Evidence
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.datasets import patients
from sfumato.risk.disclosure import AttributeDisclosure
from sfumato.risk.uniqueness import Uniqueness
from sfumato.utility.coarseness import GeneralisationLoss

CENSUS = ("age", "gender", "ethnicity", "race", "zip", "county")
NUMBERS = ("age", "zip", "quarter", "stay")
NODES = {
    "gender": Nodes.of({"Male": ["Male"], "Male or female": ["Male", "Female"]}, leaves=["Male", "Female"]),
    "ethnicity": Nodes.of(
        {"Non-hispanic": ["Non-hispanic"], "any": ["Hispanic", "Non-hispanic"]},
        leaves=["Hispanic", "Non-hispanic"],
    ),
    "race": Nodes.of({"White": ["White"], "White or black": ["White", "Black"]}, leaves=["White", "Black"]),
    "county": Nodes.of(
        {"Fresno or Kern": ["Fresno", "Kern"], "Kern or L.A.": ["Kern", "Los Angeles"]},
        leaves=["Fresno", "Kern", "Los Angeles"],
    ),
}


def schema():
    kinds = dict.fromkeys(("hospital", *CENSUS, "quarter", "stay"), Kind.NOMINAL)
    kinds |= dict.fromkeys(NUMBERS, Kind.CONTINUOUS)
    keys = [Column(name, kind, Role.KEY) for name, kind in kinds.items()]
    return Schema(
        (*keys, Column("charge", Kind.CONTINUOUS, Role.SENSITIVE),
         Column("diagnosis", Kind.NOMINAL, Role.SENSITIVE))
    )  # fmt: skip


CONFIDENTIAL = {
    "charge": [505_785, 1_083_683, 252_303, 107_179, 34_392, 24_846],
    "diagnosis": [
        "Pneumonia", "Meningitis", "Necrosis", "Breast Cancer", "Kidney Cancer", "Stomach Cancer",
    ],
}  # fmt: skip


def table_s2():
    frame = pl.DataFrame(
        {
            "hospital": ["Cedars-Sinai"] * 6,
            "age": [42, 35, 52, 70, 57, 61],
            "gender": ["Male", "Male", "Male", "Female", "Male", "Male"],
            "ethnicity": ["Non-hispanic"] * 3 + ["Hispanic"] + ["Non-hispanic"] * 2,
            "race": ["White", "White", "Black", "White", "White", "White"],
            "zip": [93_722, 93_611, 93_561, 93_560, 93_555, 93_551],
            "county": ["Fresno", "Fresno", "Kern", "Kern", "Kern", "Los Angeles"],
            "quarter": [1, 2, 2, 2, 4, 2],
            "stay": [33, 47, 13, 1, 2, 2],
            **CONFIDENTIAL,
        }
    )
    return Table(frame, schema())


def table_s6(first_ages=(35, 52)):
    """The 3-anonymous version; the printed first range of ages, 42 to 52, is an erratum."""

    def twice(name, first, second):
        return intervals([first[0]] * 3 + [second[0]] * 3, [first[1]] * 3 + [second[1]] * 3, name=name)

    def labels(name, first, second):
        return pl.Series(name, [first] * 3 + [second] * 3, dtype=NODES[name].dtype)

    frame = pl.DataFrame(
        [
            pl.Series("hospital", ["Cedars-Sinai"] * 6),
            twice("age", first_ages, (57, 70)),
            labels("gender", "Male", "Male or female"),
            labels("ethnicity", "Non-hispanic", "any"),
            labels("race", "White or black", "White"),
            twice("zip", (93_561, 93_722), (93_551, 93_560)),
            labels("county", "Fresno or Kern", "Kern or L.A."),
            twice("quarter", (1, 2), (2, 4)),
            twice("stay", (13, 47), (1, 2)),
            *(pl.Series(name, values) for name, values in CONFIDENTIAL.items()),
        ]
    )
    return Table(frame, schema(), nodes=NODES)


def score_of(measure, original, protected=None, **evidence):
    rows = None if protected is None else np.arange(len(protected))
    return measure.score(Evidence(original, protected, source_rows=rows, **evidence), Run(seed=1))


def test_john_doe_is_unique_before_and_not_after():
    """Equation 1: who knows the census details and the hospital finds him in Table S2, not in Table S6."""
    neighbour = Scenario(columns=("hospital", *CENSUS))
    before = score_of(Uniqueness(), table_s2(), scenario=neighbour)
    assert before.value == 1
    assert before.by_record[0] == 1
    after = score_of(Uniqueness(), table_s2(), table_s6(), scenario=neighbour)
    assert after.value == 0
    everything = score_of(Uniqueness(), table_s2(), table_s6())
    assert everything.value == 0
    assert everything.details["classes"] == 2


def test_printed_first_range_of_ages_leaves_one_out():
    ages = table_s2().frame["age"]
    assert covers(table_s6().frame["age"], ages).all()
    printed = covers(table_s6(first_ages=(42, 52)).frame["age"], ages)
    assert printed.tolist() == [True, False, True, True, True, True]


def test_what_the_classes_of_table_s6_give_away():
    """Equation 5: charges above 250,000 in the first group, cancer in the second; above 100,000 three of four."""
    release = table_s6()
    for measure, value, disclosed in (
        (AttributeDisclosure(low=250_001, sensitive=("charge",)), 1.0, [1, 1, 1, 0, 0, 0]),
        (AttributeDisclosure(low=100_001, sensitive=("charge",)), 0.75, [1, 1, 1, 0, 0, 0]),
        (
            AttributeDisclosure(value="Breast Cancer|Kidney Cancer|Stomach Cancer", sensitive=("diagnosis",)),
            1.0,
            [0, 0, 0, 1, 1, 1],
        ),
        (AttributeDisclosure(value="Kidney Cancer", sensitive=("diagnosis",)), 0.0, [0] * 6),
    ):
        score = score_of(measure, table_s2(), release)
        assert score.value == value
        assert score.by_record.tolist() == disclosed


def test_loss_of_table_s6():
    """Equations 2 to 4, worked out: the farthest end of each range, in standard deviations of Table S2."""
    score = score_of(GeneralisationLoss(about=NUMBERS), table_s2(), table_s6())
    farthest = {
        "age": [
            10,
            17,
            17,
            13,
            13,
            9,
        ],  # 42 from 52, 35 from 52, 52 from 35; 70 from 57, 57 from 70, 61 from 70
        "zip": [161, 111, 161, 9, 5, 9],
        "quarter": [1, 1, 1, 2, 2, 2],
        "stay": [20, 34, 34, 1, 1, 1],
    }
    sigmas = {name: np.std(table_s2().frame[name].to_numpy()) for name in NUMBERS}
    squares = sum((np.array(farthest[name]) / sigmas[name]) ** 2 for name in NUMBERS)
    assert score.value == pytest.approx(np.sqrt(squares).sum() / (6 * 4), rel=1e-12)
    for name in NUMBERS:
        assert score.by_column[name] == pytest.approx(np.mean(farthest[name]) / sigmas[name], rel=1e-12)


def coarsened(table, resolution):
    """Algorithm S3: each key in fixed ranges; the bounds that give Tables S7 and S8."""
    columns = []
    for name in table.schema.with_role(Role.KEY):
        values = table.frame[name].cast(pl.Int64)
        low, high = values.min(), values.max()
        bounds = low + np.arange(resolution + 1) * (high - low + 1) // resolution
        cell = np.searchsorted(bounds, values.to_numpy(), side="right") - 1
        columns.append(intervals(bounds[cell], bounds[cell + 1] - 1, name=name))
    return Table(table.frame.with_columns(columns), table.schema)


@pytest.mark.parametrize("resolution", [2, 8, 32])
def test_on_fixed_ranges_unique_is_who_is_alone(resolution):
    original = patients(4000)
    release = coarsened(original, resolution)
    score = score_of(Uniqueness(), original, release)
    classes = Classes.of(release, original.schema.with_role(Role.KEY))
    np.testing.assert_array_equal(score.by_record, (classes.members == 1)[classes.of_record])
    assert score.details["fitted"] == score.details["undecided"] == 0
    assert 0 < score.value < score_of(Uniqueness(), original).value


def test_the_more_is_known_the_more_are_unique():
    """Figure S3: census features, then the hospital, then time."""
    table = patients(20_000)
    census = ("age_yrs", "sex", "ethncty", "race", "patzip", "patcnty")
    known = [census, (*census, "oshpd_id"), (*census, "oshpd_id", "adm_qtr", "los")]
    values = [score_of(Uniqueness(), table, scenario=Scenario(columns=columns)).value for columns in known]
    assert values == sorted(values)
    assert values[0] < values[-1] <= 1

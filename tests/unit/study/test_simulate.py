"""Samples of a known population: truths by hand, bias as it is, and reasons where there is no number."""

import numpy as np
import polars as pl
import pytest

from sfumato.core.measure import Score, Status
from sfumato.core.run import Progress, Run
from sfumato.data.schema import Kind, Role
from sfumato.errors import Cancelled, ParameterError
from sfumato.report.pictures import specs_of
from sfumato.report.simulation import simulation_pictures
from sfumato.risk.anonymity import KAnonymity
from sfumato.risk.copula import CopulaRisk
from sfumato.risk.individual import IndividualRisk
from sfumato.risk.log_linear import LogLinearRisk
from sfumato.risk.population import PopulationUniqueness
from sfumato.risk.suda import DisSuda
from sfumato.study.simulate import Estimator, estimators, simulate
from toys import table_of

NOMINAL = Kind.NOMINAL
QUICK = (PopulationUniqueness(model="zayatz"), IndividualRisk())


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(1)
    columns = {"age": rng.integers(0, 40, 600).tolist(), "job": rng.integers(0, 20, 600).tolist()}
    return table_of({**columns, "w": [3.0] * 600}, age=NOMINAL, job=NOMINAL, w=(Kind.CONTINUOUS, Role.WEIGHT))


def test_what_is_known():
    """Five classes of the sample, of 1, 1, 1, 2 and 3 people, of 1, 2, 4, 2 and 9 in the population."""
    alike, in_all = np.array([1.0, 1, 1, 2, 3]), np.array([1.0, 2, 4, 2, 9])
    assert PopulationUniqueness().true_value(alike, in_all) == 1 / 8
    assert LogLinearRisk().true_value(alike, in_all) == 1 / 8
    assert LogLinearRisk(chance="match").true_value(alike, in_all) == pytest.approx((1 + 1 / 2 + 1 / 4) / 8)
    assert CopulaRisk().true_value(alike, in_all) == 1 / 8
    assert CopulaRisk(chance="match").true_value(alike, in_all) == pytest.approx((1.75 + 1 + 1 / 3) / 8)
    assert IndividualRisk().true_value(alike, in_all) == pytest.approx((1.75 + 1 + 1 / 3) / 8)
    assert DisSuda().true_value(alike, in_all) == 3 / 7


def test_truth_of_every_sample(people):
    """Against a join with the population."""
    found = simulate(people, Run(seed=3), fraction=0.2, draws=4, measures=QUICK)
    assert (found.people, found.sample, found.draws) == (600, 120, 4)
    zayatz = next(each for each in found.estimators if each.measure.name == "population-uniqueness")
    counts = people.frame.with_columns(n=pl.len().over("age", "job"))["n"].to_numpy()
    for draw, truth in enumerate(zayatz.truths):
        rows = Run(seed=3).rng("sample", draw).choice(600, 120, replace=False)
        assert truth == pytest.approx((counts[rows] == 1).mean())
    assert zayatz.bias == pytest.approx(np.mean(zayatz.estimates) - np.mean(zayatz.truths))
    again = simulate(people, Run(seed=3), fraction=0.2, draws=4, measures=QUICK)
    assert again.to_dict() == found.to_dict()


def test_all_estimators_take_part(people):
    names = {str(each) for each in estimators()}
    assert {"log-linear-risk", "copula-risk", "individual-risk", "dis-suda"} <= names
    assert {"population-uniqueness", "population-uniqueness(model=dankar)"} <= names
    found = simulate(people, Run(seed=1), fraction=0.2, draws=1)
    assert len(found.estimators) == len(names)
    told = found.to_dict()
    assert len(told["verdict"]) == len({each["estimates"] for each in told["estimators"]})
    for each in told["estimators"]:
        assert each["draws"] + each["not_estimable"] == 1
        assert each["reason"] or each["estimate"] is not None
    pictures = simulation_pictures(found)
    specs = specs_of(pictures.sections)
    assert set(specs) == {f"estimators-{place}" for place in range(4)}
    assert [name for each in pictures.to_dict()["sections"] for name in each["charts"]] == [*specs]
    for section in pictures.sections:
        assert all(len(row) == len(section.headers) for row in section.rows)
        for row in section.rows:
            assert (row[1] is None) == bool(row[-1]) == (f"{row[0]} gave no number" in section.words)
    lows = [row["low"] for spec in specs.values() for row in spec["data"]["values"]]
    assert min(lows) >= 0


def test_persons_are_drawn_with_all_their_records():
    table = table_of(
        {"key": [1, 2, 3, 4, 5, 6, 7, 8], "who": [1, 1, 2, 2, 3, 3, 4, 4]},
        key=NOMINAL,
        who=(NOMINAL, Role.PERSON),
    )
    found = simulate(table, Run(seed=1), fraction=0.5, draws=2, measures=[IndividualRisk()])
    assert (found.people, found.sample) == (4, 2)
    assert found.estimators[0].truths == [1, 1]


def test_what_has_no_number_says_why():
    table = table_of({"key": list(range(50))}, key=NOMINAL)
    found = simulate(table, Run(seed=1), fraction=0.2, draws=3, measures=[PopulationUniqueness()])
    told = found.to_dict()["estimators"][0]
    assert (told["draws"], told["not_estimable"], told["bias"]) == (0, 3, None)
    assert "every person of the sample is unique in the keys" in told["reason"]
    assert "none of the estimators" in found.verdict()[0]
    assert not specs_of(simulation_pictures(found).sections)


def test_an_interval_of_another_number_tells_nothing():
    each = Estimator(PopulationUniqueness())
    each.add(Score(0.2, Status.APPROXIMATE, (0.1, 0.3)), 0.25)
    each.add(Score(0.2, Status.APPROXIMATE, (0.1, 0.3)), 0.35)
    assert each.held == [True, False]
    assert each.bias == pytest.approx(-0.1)
    risk = Estimator(IndividualRisk())
    risk.add(Score(0.9, Status.APPROXIMATE, (0.1, 1.0), details={"global_risk": 0.2}), 0.25)
    assert (risk.held, risk.estimates) == ([], [0.2])


def test_time_that_is_over_and_stopping(people):
    found = simulate(people, Run(seed=1), fraction=0.2, draws=50, measures=QUICK, seconds=0)
    assert (found.draws, found.asked) == (1, 50)
    with pytest.raises(Cancelled):
        simulate(people, Run(seed=1, progress=Progress(stopped=lambda: True)), measures=QUICK)


@pytest.mark.parametrize("how", [{"fraction": 1.0}, {"fraction": 0.001}, {"draws": 0}])
def test_what_cannot_be_drawn(people, how):
    with pytest.raises(ParameterError):
        simulate(people, Run(seed=1), measures=QUICK, **how)


def test_only_estimators(people):
    with pytest.raises(ParameterError, match="k-anonymity"):
        simulate(people, Run(seed=1), measures=[KAnonymity()])

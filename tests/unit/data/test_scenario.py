"""Scenarios: what the intruder knows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.records import read_record
from sfumato.data.scenario import Scenario
from sfumato.errors import ParameterError, PlanError

SCENARIOS = st.builds(
    Scenario,
    name=st.text(max_size=5),
    columns=st.lists(st.text(max_size=3), max_size=3).map(tuple),
    records=st.floats(0, 1, exclude_min=True),
    membership=st.booleans(),
    external=st.text(max_size=4),
)


@given(SCENARIOS)
def test_a_scenario_says_itself(scenario):
    assert read_record(Scenario, scenario.to_dict(), "it") == scenario


def test_says_only_what_is_not_default():
    assert Scenario().to_dict() == {"name": "default"}
    assert Scenario(name="x", columns=("a",)).to_dict() == {"name": "x", "columns": ["a"]}


def test_a_list_of_columns_is_as_good_as_a_tuple():
    assert Scenario(columns=["a"]) == Scenario(columns=("a",))
    assert hash(Scenario(columns=["a"]))


@pytest.mark.parametrize("records", [0, -0.1, 1.1, float("nan"), float("inf")])
def test_a_share_of_the_records(records):
    with pytest.raises(ParameterError) as caught:
        Scenario(name="x", records=records)
    assert caught.value.message == (
        f"`records` of scenario `x` must be a share above 0 and at most 1, got: `{records}`"
    )


def test_all_faults_come_together():
    with pytest.raises(PlanError) as caught:
        read_record(
            Scenario,
            {"name": "nosy", "colums": ["a"], "records": "half", "membership": "yes", "external": 3},
            "the scenario",
        )
    assert caught.value.faults == (
        "there is no setting `colums` (did you mean `columns`?)",
        "`records` must be a number, got: str",
        "`membership` must be true or false, got: str",
        "`external` must be a text, got: int",
    )


@pytest.mark.parametrize(
    "said",
    [
        "x",
        5,
        None,
        ["a"],
        {"columns": "age"},
        {"columns": [1]},
        {"columns": 3},
        {"records": True},
        {"records": []},
        {"name": 3},
        {"name": ["x"]},
    ],
)
def test_wrong_types_are_faults_and_no_crash(said):
    """A text for a list would be taken letter by letter: an intruder who knows `a`, `g`, `e`."""
    with pytest.raises(PlanError):
        read_record(Scenario, said, "the scenario")

"""The map to work with, and scales that have a place for zero."""

from sfumato.report import frame
from sfumato.report.map_charts import settled_map
from sfumato.report.release_charts import risk_bars, slider_chart
from sfumato.risk._sample_classes import RiskThreshold

RISK, UTILITY = {"title": "Risk", "better": "low"}, {"title": "Loss", "better": "low"}


def test_a_zero_has_a_place_beside_orders_of_magnitude():
    values = [0.0, 0.001, 1.0]
    assert frame.scale(values)["zero"] is False
    fitted = frame.scale(values, with_zero=True)
    assert (fitted["type"], fitted["constant"]) == ("symlog", 0.001)
    assert frame.ticks(fitted, values)["values"][0] == 0
    assert frame.scale([0.001, 1.0], with_zero=True)["type"] == "log"
    assert "type" not in frame.scale([-1.0, 0.001, 1.0], with_zero=True)
    assert "type" not in frame.scale([0.0, 0.0], with_zero=True)


def test_what_is_settled_is_in_its_place():
    rows = [
        {"label": "A", "order": None, "risk": 0.1, "utility": 0.2},
        {"label": "<b>", "order": 0, "risk": 0.3, "utility": 0.0},
    ]
    spec = settled_map(RISK, UTILITY, rows)
    assert [(row["risk"], row["utility"]) for row in spec["data"]["values"]] == [(0.1, 0.2), (0.3, 0.0)]


def test_a_threshold_can_be_moved_in_both_pictures():
    found = {
        "ends": [0.1, 0.2, 1.0], "threshold": 0.2, "records": {"original": 2, "release": 2},
        "original": [0, 0, 2], "release": [1, 1, 0],
    }  # fmt: skip
    bars = risk_bars(found)
    assert bars["params"] == [{"name": "threshold", "value": 0.2}]
    assert bars["usermeta"]["starts"] == [0.0, 0.1, 0.2]
    rows, own = [[0.1, 1, 0.05], [0.2, 0, 0.1]], RiskThreshold(0.2, 0, 0.1)
    assert slider_chart("Risk", rows, own, movable=True)["params"] == bars["params"]
    assert "params" not in slider_chart("Risk", rows, own)


def test_bars_of_columns_know_which_one_is_looked_at():
    params, opacity = frame.column_pick()
    assert params == [{"name": "column", "value": None}]
    assert "datum.label == column" in opacity["condition"]["test"]
